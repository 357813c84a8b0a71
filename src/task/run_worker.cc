#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "keel/memory/process_memory.h"
#include "keel/task/worker_main.h"
#include "task/doorbell.h"
#include "task/process_peer.h"
#include "task/serve.h"

namespace keel::task {
namespace {

Result<int> Number(std::string_view text) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) {
    return InvalidArgument(fmt::format("'{}' is not a number", text));
  }
  return number;
}

// Whatever the orchestrator's program had open and did not mean to hand on.
void CloseOthers(std::array<int, 3> keep) {
  std::ranges::sort(keep);
  unsigned from = 3;
  for (const int fd : keep) {
    if (static_cast<unsigned>(fd) > from) syscall(SYS_close_range, from, fd - 1, 0);
    from = static_cast<unsigned>(fd) + 1;
  }
  syscall(SYS_close_range, from, ~0U, 0);
}

// What is opened later must not become a standard stream, which others write to.
void OpenStandardStreams() {
  for (int fd = 0; fd < 3; ++fd) {
    if (fcntl(fd, F_GETFD) < 0) (void)open("/dev/null", O_RDWR);
  }
}

// Ends this process when the one that started it has ended, whatever the other threads do.
void EndWithParent(int parent) {
  for (;;) {
    pollfd wait{.fd = parent, .events = POLLIN, .revents = 0};
    if (poll(&wait, 1, -1) > 0) _exit(kOrphanExit);
  }
}

Status Run(const WorkerArguments& arguments, FindFunction find) {
  try {
    std::thread([fd = arguments.parent] { EndWithParent(fd); }).detach();
  } catch (const std::system_error& error) {
    return SystemError("the thread that watches the orchestrator", error.code().value());
  }
  KEEL_ASSIGN(std::shared_ptr<Region> region, Region::Open(UniqueFd(arguments.region)));
  KEEL_ASSIGN(const std::shared_ptr<Doorbell> doorbell, OpenDoorbell(UniqueFd(arguments.doorbell)));
  Server server({
      .region = region,
      .open = [&arguments]() -> Result<std::shared_ptr<memory::DeviceMemory>> {
        KEEL_ASSIGN(const hal::DeviceName name, hal::DeviceName::Parse(arguments.device));
        return memory::ProcessMemory::Global().For(name);
      },
      .orchestration = arguments.orchestration,
      .in_place = false,
      .find = std::move(find),
      .answered = [&doorbell] { doorbell->RingSleepers(); },
      .give_up =
          [&region](const Status& why) {
            // Not exit(): the other thread may be anywhere.
            const std::string_view text = why.message();
            char* const words = region->header().last_words;
            std::memcpy(words, text.data(),
                        std::min(text.size(), sizeof(region->header().last_words) - 1));
            _exit(kGaveUpExit);
          },
  });
  server.Main();
  // The device's threads end with it.
  return memory::ProcessMemory::Global().Shutdown();
}

}  // namespace

int RunWorker(int argc, char** argv, FindFunction find) {
  const auto parse = [&]() -> Result<WorkerArguments> {
    if (argc != 6) return InvalidArgument("five arguments are due");
    WorkerArguments arguments;
    KEEL_ASSIGN(arguments.region, Number(argv[1]));
    KEEL_ASSIGN(arguments.doorbell, Number(argv[2]));
    KEEL_ASSIGN(arguments.parent, Number(argv[3]));
    KEEL_ASSIGN(const int orchestration, Number(argv[4]));
    if (orchestration > static_cast<int>(Orchestration::kHost)) {
      return InvalidArgument(fmt::format("orchestration {} is unknown", orchestration));
    }
    arguments.orchestration = static_cast<Orchestration>(orchestration);
    arguments.device = argv[5];
    return arguments;
  };
  const Result<WorkerArguments> arguments = parse();
  if (!arguments.ok()) {
    fmt::print(stderr, "the program of a worker is started by an orchestrator, not by hand: {}\n",
               arguments.status().message());
    return kUsageExit;
  }
  CloseOthers({arguments->region, arguments->doorbell, arguments->parent});
  OpenStandardStreams();
  prctl(PR_SET_NAME, "keel-worker");
  // A terminal interrupts all of its processes: when a worker ends is for the orchestrator to say.
  std::signal(SIGINT, SIG_IGN);
  const Status status = Run(*arguments, std::move(find));
  if (status.ok()) return 0;
  fmt::print(stderr, "keel-worker: {}\n", status.ToString());
  return kUsageExit;
}

}  // namespace keel::task
