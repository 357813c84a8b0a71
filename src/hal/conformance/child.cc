#include "hal/conformance/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "keel/base/deadline.h"
#include "keel/base/unique_fd.h"

namespace keel::hal::conformance {
namespace {

constexpr const char* kChildVariable = "KEEL_CONFORMANCE_CHILD";
constexpr std::string_view kDone = "[conformance] the child ran its test";
constexpr std::string_view kSkipped = "[conformance] the child skipped its test";

std::vector<std::string>& ProgramArguments() {
  static std::vector<std::string>* arguments = new std::vector<std::string>;
  return *arguments;
}

std::vector<std::string> ChildArguments(const ChildOptions& options) {
  std::vector<std::string> arguments;
  for (const std::string& argument : ProgramArguments()) {
    if (!argument.starts_with("--gtest_")) arguments.push_back(argument);
  }
  if (arguments.empty()) arguments.emplace_back("conformance");
  arguments.push_back("--gtest_filter=" + options.filter);
  arguments.emplace_back("--gtest_color=no");
  return arguments;
}

std::vector<std::string> ChildEnvironment(const ChildOptions& options) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    // The parent's filter, sharding and report files are not the child's.
    if (text.starts_with("GTEST_") || text.starts_with("TEST_") ||
        text.starts_with(kChildVariable)) {
      continue;
    }
    environment.emplace_back(text);
  }
  environment.push_back(std::string(kChildVariable) + "=" + options.argument);
  return environment;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (std::string& string : strings) pointers.push_back(string.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Appends what the pipe holds now. False at its end.
bool Drain(int pipe, std::string* output) {
  std::array<char, 4096> buffer;
  while (true) {
    const ssize_t got = read(pipe, buffer.data(), buffer.size());
    if (got > 0) {
      output->append(buffer.data(), static_cast<std::size_t>(got));
    } else if (got == 0) {
      return false;
    } else if (errno != EINTR) {
      return true;  // EAGAIN: nothing there now
    }
  }
}

std::string DescribeExit(int status) {
  if (WIFEXITED(status)) return "exited with " + std::to_string(WEXITSTATUS(status));
  if (WIFSIGNALED(status)) return std::string("was ended by ") + strsignal(WTERMSIG(status));
  return "ended with status " + std::to_string(status);
}

struct SpawnActions {
  posix_spawn_file_actions_t actions;
  SpawnActions() { posix_spawn_file_actions_init(&actions); }
  ~SpawnActions() { posix_spawn_file_actions_destroy(&actions); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
};

}  // namespace

void SetProgramArguments(int argc, char** argv) { ProgramArguments().assign(argv, argv + argc); }

bool IsChild() { return std::getenv(kChildVariable) != nullptr; }

std::string ChildArgument() {
  const char* value = std::getenv(kChildVariable);
  return value == nullptr ? "" : value;
}

void ReportChildDone(bool skipped) {
  const std::string_view line = skipped ? kSkipped : kDone;
  std::printf("%.*s\n", static_cast<int>(line.size()), line.data());
  std::fflush(stdout);
}

ChildOutcome RunChild(const ChildOptions& options) {
  ChildOutcome outcome;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    outcome.problem = std::string("could not make a pipe: ") + std::strerror(errno);
    return outcome;
  }
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  // Only the parent's end: the child's standard output must block as usual.
  fcntl(reader.get(), F_SETFL, O_NONBLOCK);

  SpawnActions spawn;
  posix_spawn_file_actions_adddup2(&spawn.actions, writer.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&spawn.actions, writer.get(), STDERR_FILENO);
  if (options.descriptor >= 0) {
    posix_spawn_file_actions_adddup2(&spawn.actions, options.descriptor, kInheritedDescriptor);
  }
  std::vector<std::string> arguments = ChildArguments(options);
  std::vector<std::string> environment = ChildEnvironment(options);
  std::fflush(nullptr);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, "/proc/self/exe", &spawn.actions, nullptr,
                                Pointers(arguments).data(), Pointers(environment).data());
  if (error != 0) {
    outcome.problem = std::string("could not be started: ") + std::strerror(error);
    return outcome;
  }
  writer.Reset(-1);

  // The end of the pipe is not the end of the child (something it started may still hold it), so
  // both are looked at.
  const Deadline deadline = Deadline::After(options.limit);
  int status = 0;
  bool open = true;
  while (true) {
    pollfd waited{.fd = open ? reader.get() : -1, .events = POLLIN, .revents = 0};
    poll(&waited, 1, 10);
    if (open) open = Drain(reader.get(), &outcome.output);
    const pid_t ended = waitpid(pid, &status, WNOHANG);
    if (ended == pid) break;
    if (deadline.Passed()) {
      kill(pid, SIGKILL);
      waitpid(pid, &status, 0);
      Drain(reader.get(), &outcome.output);
      outcome.problem = "was still running after " + std::to_string(options.limit.count()) + " s";
      return outcome;
    }
  }
  Drain(reader.get(), &outcome.output);
  outcome.skipped = outcome.output.find(kSkipped) != std::string::npos;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    outcome.problem = DescribeExit(status);
  } else if (!outcome.skipped && outcome.output.find(kDone) == std::string::npos) {
    outcome.problem = "ended well, but did not run the test " + options.filter;
  }
  outcome.passed = outcome.problem.empty();
  return outcome;
}

}  // namespace keel::hal::conformance
