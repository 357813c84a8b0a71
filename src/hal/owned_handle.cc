#include "keel/hal/owned_handle.h"

#include <utility>

#include "keel/base/log.h"

namespace keel::hal::internal {

// Out of host memory here ends the process: what cannot even be noted down would be lost silently.
void LeaveForRetry(Device& device, const Status& status, std::string what,
                   std::function<Status()> attempt) noexcept {
  if (status.code() == StatusCode::kDeviceLost) return;
  // Also the parent's device in a forked child, which the code alone does not tell.
  if (!device.Health().ok()) return;
  Log(LogLevel::kWarn, what + " failed and will be tried again: " + status.ToString());
  device.retries().Add({std::move(what), std::move(attempt)});
}

void DrainBeforeClose(Device& device) {
  if (device.retries().empty()) return;
  // The parent's, in a forked child: its lock may be held for ever.
  if (device.Health().code() == StatusCode::kFailedPrecondition) return;
  // What stays on the list has been logged, and is not the failure of the handle being closed.
  (void)device.retries().Drain();
}

}  // namespace keel::hal::internal
