#include "graph/timeline.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include "base/spin_pause.h"

namespace keel::graph {
namespace {

using Clock = std::chrono::steady_clock;
// About as long as a short step takes.
constexpr std::chrono::microseconds kSpin{20};
constexpr std::chrono::microseconds kFirstSleep{20};
constexpr std::chrono::microseconds kLongestSleep{500};
// The mark never comes if the device is lost, and only a call of the driver tells.
constexpr std::chrono::milliseconds kLookAtDevice{5};

}  // namespace

Status Timeline::Look(hal::Device& device) { return lost_track() ? Ask(device) : OkStatus(); }

Result<bool> Timeline::StreamDone(hal::Device& device) const {
  KEEL_ASSIGN(const hal::CaptureState capture, device.GetCaptureState(stream()));
  if (capture != hal::CaptureState::kNone) return false;
  KEEL_ASSIGN(const hal::Completion completion, device.QueryStream(stream()));
  return completion == hal::Completion::kDone;
}

Status Timeline::Ask(hal::Device& device) {
  KEEL_ASSIGN(const bool done, StreamDone(device));
  if (done && lost_track()) FoundDone();
  return OkStatus();
}

Status Timeline::Wait(hal::Device& device, std::uint64_t mark, Deadline deadline) {
  if (Reached(mark)) return OkStatus();
  const Clock::time_point begin = Clock::now();
  while (Clock::now() - begin < kSpin) {
    if (Reached(mark)) return OkStatus();
    if (deadline.Passed()) break;
    SpinPause();
  }
  std::chrono::microseconds sleep = kFirstSleep;
  Clock::time_point looked = begin;
  while (true) {
    KEEL_TRY(Look(device));
    if (Reached(mark)) return OkStatus();
    KEEL_TRY(device.Health());
    if (deadline.Passed()) {
      return DeadlineExceeded(
          lost_track() ? "a step that failed half way is not done"
                       : "step " + std::to_string(mark) +
                             " of the slot is not done: " + std::to_string(Seen()) + " are");
    }
    if (Clock::now() - looked >= kLookAtDevice) {
      looked = Clock::now();
      const Status status = Ask(device);
      if (status.code() == StatusCode::kDeviceLost) return status;
    }
    auto until = Clock::now() + sleep;
    if (!deadline.never()) until = std::min(until, deadline.when());
    std::this_thread::sleep_until(until);
    sleep = std::min(2 * sleep, kLongestSleep);
  }
}

}  // namespace keel::graph
