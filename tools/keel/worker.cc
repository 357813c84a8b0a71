// keel worker: a rank of an MPI run. Rank 0 runs the program that has the orchestrator; the others
// serve it until it exits.

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "command.h"
#include "keel/base/unique_fd.h"
#include "keel/task/mpi_worker.h"
#include "terminal.h"

namespace keel::cli {
namespace {

// Signals that are meant for the program.
constexpr std::array kPassedOn{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

// What the program does when it is started: it does not outlive this process.
[[noreturn]] void StartProgram(std::vector<std::string> program, const sigset_t& mask,
                               pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kFailure);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  std::vector<char*> arguments;
  arguments.reserve(program.size() + 1);
  for (std::string& argument : program) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  PrintError("worker", fmt::format("could not start {}: {}", program[0], std::strerror(errno)));
  _exit(kFailure);
}

// Ends this process, and the program with it, when what launched it has ended: an mpirun that was
// killed tells nobody, and the program may never have started MPI, which would see it.
void EndWithLauncher() {
  UniqueFd launcher(static_cast<int>(syscall(SYS_pidfd_open, getppid(), 0)));
  if (!launcher.valid()) return;
  try {
    std::thread([descriptor = std::move(launcher)] {
      pollfd wait{.fd = descriptor.get(), .events = POLLIN, .revents = 0};
      while (poll(&wait, 1, -1) <= 0) {
      }
      _exit(kFailure);
    }).detach();
  } catch (const std::system_error&) {
    // Then it is as if there were none of this.
  }
}

// Waits for the program, as a shell would, and ends as it did.
ExitCode RunProgram(const std::vector<std::string>& program) {
  const auto note = task::MpiProgram::Create();
  if (!note.ok()) return ReportError("worker", note.status());
  sigset_t awaited;
  sigset_t mask;
  sigemptyset(&awaited);
  sigaddset(&awaited, SIGCHLD);
  for (const int signal : kPassedOn) sigaddset(&awaited, signal);
  sigprocmask(SIG_BLOCK, &awaited, &mask);
  std::fflush(nullptr);
  const pid_t self = getpid();
  const pid_t child = fork();
  if (child == 0) StartProgram(program, mask, self);
  if (child < 0) {
    PrintError("worker", fmt::format("could not start {}: {}", program[0], std::strerror(errno)));
    return kFailure;
  }
  EndWithLauncher();
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    int signal = 0;
    sigwait(&awaited, &signal);
    if (signal != SIGCHLD) kill(child, signal);
  }
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  if (WIFSIGNALED(status)) {
    // So that mpirun says which it was; without a second core.
    const rlimit none{};
    setrlimit(RLIMIT_CORE, &none);
    std::signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
    return kFailure;
  }
  const auto code = static_cast<ExitCode>(WEXITSTATUS(status));
  if (code != kSuccess || note->started()) return code;
  const Status released = task::MpiProgram::Release();
  return released.ok() ? kSuccess : ReportError("worker", released);
}

struct Options {
  task::MpiWorkerOptions worker;
  std::optional<std::uint32_t> start_timeout;
  std::vector<std::string> program;
};

ExitCode Run(const Options& options) {
  const std::optional<int> rank = task::MpiRank();
  if (!rank) {
    PrintError("worker",
               "nobody has launched this as a rank: use mpirun, as in 'mpirun -n 4 keel worker -- "
               "PROGRAM'");
    return kUsage;
  }
  if (*rank == 0) {
    if (!options.program.empty()) return RunProgram(options.program);
    PrintError("worker",
               "this is rank 0, which has the orchestrator: give its program after '--', or start "
               "it as in 'mpirun -n 1 PROGRAM : -n 3 keel worker'");
    return kUsage;
  }
  task::MpiWorkerOptions worker = options.worker;
  if (options.start_timeout) {
    worker.start_timeout = std::chrono::seconds(*options.start_timeout);
  } else if (!options.program.empty()) {
    // Rank 0 is such a process, too, and releases the others when the program has ended.
    worker.start_timeout = std::chrono::seconds(0);
  }
  const Status status = task::ServeMpi(worker);
  return status.ok() ? kSuccess : ReportError("worker", status);
}

}  // namespace

Command AddWorker(CLI::App& parent) {
  auto options = std::make_shared<Options>();
  CLI::App* app = parent.add_subcommand("worker", "Serve tasks as a rank of an MPI run");
  app->add_option("--device", options->worker.device,
                  "The device, for an orchestrator that names none (default: the first there is);\n"
                  "{worker} in it is the worker's number, {local} the rank's on its machine")
      ->type_name("NAME:N");
  app->add_option("--start-timeout", options->start_timeout,
                  "How long to wait for an orchestrator, at first; 0: for ever (default: 600, or\n"
                  "0 with PROGRAM, whose end is seen)")
      ->type_name("SECONDS");
  // Without it '--' would end the subcommand.
  app->add_option("PROGRAM", options->program, "After '--': what rank 0 runs")
      ->type_name("[ARGUMENT...]");
  app->footer(
      "Under mpirun: rank 0 runs PROGRAM, which makes an orchestrator with Transport::kMpi, "
      "and\n"
      "the other ranks are its workers until it exits. Either of these starts three workers:\n"
      "\n"
      "  mpirun -n 4 keel worker -- PROGRAM [ARGUMENT...]\n"
      "  mpirun -n 1 PROGRAM [ARGUMENT...] : -n 3 keel worker\n"
      "\n"
      "Worker i is rank i + 1. Its device is that of WorkerOptions::device, or of --device, as in\n"
      "'--device sim:{worker}'. A rank starts the program keel-worker, which has the device and\n"
      "runs the tasks. A rank that is lost ends the run. docs/tasks.md is a guide.");
  return {app, [options] { return Run(*options); }};
}

}  // namespace keel::cli
