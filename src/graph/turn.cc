#include "graph/turn.h"

#include <algorithm>
#include <chrono>

namespace keel::graph {
namespace {

using Clock = std::chrono::steady_clock;

// Who has the turn may be waiting for a device that is lost, in a function of the caller's.
constexpr std::chrono::milliseconds kLookAtDevice{10};

}  // namespace

bool TakeTurn(TimedMutex& mutex, const hal::Device& device, Deadline deadline, Reason reason,
              ReplayReport& report) {
  if (mutex.TryLock()) return true;
  const Clock::time_point begin = Clock::now();
  bool taken = false;
  while (!taken && !deadline.Passed() && device.Health().ok()) {
    taken = mutex.LockBefore(Deadline::At(std::min(deadline.when(), Clock::now() + kLookAtDevice)));
  }
  const std::int64_t ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
  report.waited_ns += ns;
  report.Add({.kind = ActionKind::kWaited, .reason = reason, .host_ns = ns});
  return taken;
}

}  // namespace keel::graph
