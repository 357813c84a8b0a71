// keel run: a Python program on Keel's memory. Finds a Python that has the package, and becomes
// `python -m keel.run`, which does the work: this process is then that one, with its exit code.

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "command.h"
#include "keel/base/result.h"
#include "keel/base/unique_fd.h"
#include "keel/base/version.h"
#include "terminal.h"

namespace keel::cli {
namespace {

// Before the version, in what the question to Python prints: other lines may be there too.
constexpr std::string_view kAnswer = "keel version ";

struct Options {
  std::string python;
};

std::vector<char*> Pointers(std::vector<std::string>& arguments) {
  std::vector<char*> pointers;
  pointers.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  return pointers;
}

// What was given, what is active, what is on the path; and who says so.
struct Python {
  std::string path;
  std::string chosen_by;
};

Result<Python> ChoosePython(const Options& options) {
  Python python{.path = options.python, .chosen_by = "--python"};
  if (python.path.empty()) {
    const char* environment = std::getenv("VIRTUAL_ENV");
    if (environment == nullptr || *environment == '\0') return Python{"python3", "PATH"};
    python = {.path = std::string(environment) + "/bin/python", .chosen_by = "VIRTUAL_ENV"};
  }
  // A name without a slash is looked for on the path.
  if (python.path.find('/') != std::string::npos && access(python.path.c_str(), X_OK) != 0) {
    return NotFound(fmt::format("{} says {}, which is no program: {}; choose another with --python",
                                python.chosen_by, python.path, std::strerror(errno)));
  }
  return python;
}

struct SpawnActions {
  posix_spawn_file_actions_t actions;
  SpawnActions() { posix_spawn_file_actions_init(&actions); }
  ~SpawnActions() { posix_spawn_file_actions_destroy(&actions); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
};

// What the program prints, on either of its outputs, until it ends.
Result<std::string> OutputOf(std::vector<std::string> command) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return Internal(fmt::format("could not make a pipe: {}", std::strerror(errno)));
  }
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  SpawnActions spawn;
  posix_spawn_file_actions_addopen(&spawn.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&spawn.actions, writer.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&spawn.actions, writer.get(), STDERR_FILENO);
  pid_t pid = 0;
  const std::vector<char*> arguments = Pointers(command);
  const int error =
      posix_spawnp(&pid, arguments[0], &spawn.actions, nullptr, arguments.data(), environ);
  if (error != 0) {
    return NotFound(fmt::format("could not start {}: {}; choose a Python with --python", command[0],
                                std::strerror(error)));
  }
  writer.Reset(-1);
  std::string output;
  char piece[4096];
  while (true) {
    const ssize_t count = read(reader.get(), piece, sizeof(piece));
    if (count > 0) {
      output.append(piece, static_cast<std::size_t>(count));
    } else if (count == 0 || errno != EINTR) {
      break;
    }
  }
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return output;
}

std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (end > 0) lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// The package is there, and of this version.
Status CheckPackage(const Python& python) {
  KEEL_ASSIGN(
      const std::string output,
      OutputOf({python.path, "-c",
                fmt::format("import keel.run; print('\\n{}' + keel.__version__)", kAnswer)}));
  const std::vector<std::string_view> lines = Lines(output);
  for (std::string_view line : lines) {
    if (!line.starts_with(kAnswer)) continue;
    line.remove_prefix(kAnswer.size());
    if (line == KEEL_VERSION_STRING) return OkStatus();
    return InvalidArgument(
        fmt::format("{} (by {}) has version {} of the package keel, but this is {}; install the "
                    "same, or choose another Python with --python",
                    python.path, python.chosen_by, line, KEEL_VERSION_STRING));
  }
  return NotFound(
      fmt::format("{} (by {}) cannot import the package keel: {}; install it there, with 'pip "
                  "install' and the folder of Keel's sources, or choose another with --python",
                  python.path, python.chosen_by,
                  lines.empty() ? std::string_view("it says nothing") : lines.back()));
}

// In the order in which they were given, for the package to read again. One that was given twice
// has its last value both times.
std::vector<std::string> Forwarded(const CLI::App& app) {
  std::vector<std::string> arguments;
  for (const CLI::Option* option : app.parse_order()) {
    const std::string name = option->get_name();
    if (name == "--python") continue;
    const std::string& value = option->results().back();
    const bool bare = option->get_items_expected_max() == 0 && value == "true";
    arguments.push_back(bare ? name : name + "=" + value);
  }
  return arguments;
}

ExitCode Run(const CLI::App& app, const Options& options) {
  const std::vector<std::string> program = app.remaining();
  const std::string first = program.empty() ? "" : program.front();
  if (first.empty()) {
    PrintError("run", "which program? Give a script, -m MODULE or -c CODE; see 'keel run --help'");
    return kUsage;
  }
  if (first.starts_with('-') && !first.starts_with("-m") && !first.starts_with("-c")) {
    PrintError("run", fmt::format("unknown option '{}'; see 'keel run --help'", first));
    return kUsage;
  }
  const auto python = ChoosePython(options);
  if (!python.ok()) return ReportError("run", python.status());
  if (const Status status = CheckPackage(*python); !status.ok()) return ReportError("run", status);

  std::vector<std::string> command = {python->path, "-m", "keel.run"};
  for (const std::string& argument : Forwarded(app)) command.push_back(argument);
  command.insert(command.end(), program.begin(), program.end());
  std::fflush(nullptr);
  execvp(command[0].c_str(), Pointers(command).data());
  PrintError("run", fmt::format("could not start {}: {}", command[0], std::strerror(errno)));
  return kFailure;
}

// What they are set to is read by the package: see Forwarded.
void AddFlag(CLI::App& app, const std::string& name, const std::string& what) {
  app.add_flag(name, what);
}
void AddValue(CLI::App& app, const std::string& name, const std::string& type,
              const std::string& what) {
  app.add_option(
         name, [](const CLI::results_t&) { return true; }, what)
      ->type_name(type)
      ->take_last();
}

}  // namespace

Command AddRun(CLI::App& parent) {
  auto options = std::make_shared<Options>();
  CLI::App* app = parent.add_subcommand("run", "Run a Python program on Keel's memory");
  app->prefix_command();
  app->add_option("--python", options->python,
                  "The Python to use (default: that of VIRTUAL_ENV, else python3)")
      ->type_name("PATH");
  AddValue(*app, "--conf", "CONF", "Configuration of the allocators, as KEEL_ALLOC_CONF");
  AddFlag(*app, "--history",
          "Keep the newest things that happen to memory, for snapshots;\n"
          "--history=N: so many (default 100000)");
  AddFlag(*app, "--stacks", "With the stacks of native code; --history is implied");
  AddValue(*app, "--snapshot", "FILE", "Write a snapshot at the end: .pickle or .json");
  AddValue(*app, "--oom-snapshot", "FILE|none",
           "Where to write one when memory runs out\n(default: keel-oom-{pid}.pickle)");
  AddFlag(*app, "--summary", "A summary on standard error at the end (the default)");
  AddFlag(*app, "--no-summary", "No summary");
  AddValue(*app, "--json", "FILE", "The summary as JSON, into a file");
  AddFlag(*app, "--no-torch", "Leave PyTorch its own allocator");
  AddFlag(*app, "--no-cupy", "Leave CuPy its own allocators");
  AddFlag(*app, "--strict",
          "End with exit code 1 if one of them cannot use Keel\n(default: warn and go on)");
  AddFlag(*app, "--children",
          "Do the same in Python processes that the program starts (the default)");
  AddFlag(*app, "--no-children", "Leave them alone");
  app->footer(
      "After the options: SCRIPT [ARGUMENT...], -m MODULE [ARGUMENT...] or -c CODE [ARGUMENT...].\n"
      "The program is not changed: it runs as 'python SCRIPT' would run it, and PyTorch and CuPy\n"
      "take device memory from Keel from when they are imported. {pid} in the name of a file is\n"
      "the process's number. The exit code is the program's. docs/run.md is a guide.");
  return {app, [app, options] { return Run(*app, *options); }};
}

}  // namespace keel::cli
