#include "task/mpi/watchdog.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "keel/base/log.h"

namespace keel::task::mpi {
namespace {

constexpr int kExit = 1;

int Milliseconds(Deadline deadline) {
  if (deadline.never()) return -1;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline.when() - Deadline::Clock::now())
          .count();
  return static_cast<int>(std::clamp<decltype(left)>(left, 0, INT_MAX));
}

}  // namespace

Watchdog::Watchdog(std::string what, Deadline deadline, int process)
    : what_(std::move(what)),
      deadline_(deadline),
      process_(process),
      stop_(eventfd(0, EFD_CLOEXEC)) {
  try {
    if (stop_.valid()) thread_ = std::thread([this] { Main(); });
  } catch (const std::system_error&) {  // said below
  }
  if (!thread_.joinable()) {
    Log(LogLevel::kWarn, fmt::format("{} is not watched: no thread can be had for it", what_));
  }
}

Watchdog::~Watchdog() {
  if (!thread_.joinable()) return;
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

void Watchdog::Main() const {
  for (;;) {
    std::array<pollfd, 2> polled{{{.fd = stop_.get(), .events = POLLIN, .revents = 0},
                                  {.fd = process_, .events = POLLIN, .revents = 0}}};
    const int ready = poll(polled.data(), polled.size(), Milliseconds(deadline_));
    if (ready < 0 && errno == EINTR) continue;
    if (polled[0].revents != 0) return;
    if (ready == 0 && !deadline_.Passed()) continue;
    Log(LogLevel::kError,
        fmt::format("{} has not ended, {}: this process ends", what_,
                    polled[1].revents != 0 ? "and what launched it has" : "and the time is up"));
    std::_Exit(kExit);
  }
}

}  // namespace keel::task::mpi
