#include "graph/timeline.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

namespace keel::graph {
namespace {

using Clock = std::chrono::steady_clock;
// About as long as a short step takes.
constexpr std::chrono::microseconds kSpin{20};
constexpr std::chrono::microseconds kFirstSleep{20};
constexpr std::chrono::microseconds kLongestSleep{500};
// The mark never comes if the device is lost, and only a call of the driver tells.
constexpr std::chrono::milliseconds kLookAtDevice{5};

void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

}  // namespace

void Timeline::Look(hal::Device& device) {
  if (!lost_track_.load(std::memory_order_acquire)) return;
  const Result<hal::Completion> completion = device.QueryStream(stream());
  if (completion.ok() && *completion == hal::Completion::kDone) FoundDone();
}

Status Timeline::Wait(hal::Device& device, std::uint64_t mark, Deadline deadline) {
  if (lost_track_.load(std::memory_order_acquire)) {
    KEEL_TRY(device.SynchronizeStream(stream(), deadline));
    FoundDone();
    return OkStatus();
  }
  if (Reached(mark)) return OkStatus();
  const Clock::time_point begin = Clock::now();
  while (Clock::now() - begin < kSpin) {
    if (Reached(mark)) return OkStatus();
    if (deadline.Passed()) break;
    Pause();
  }
  std::chrono::microseconds sleep = kFirstSleep;
  Clock::time_point looked = begin;
  while (!Reached(mark)) {
    KEEL_TRY(device.Health());
    if (deadline.Passed()) {
      return DeadlineExceeded("step " + std::to_string(mark) +
                              " of the slot is not done: " + std::to_string(Seen()) + " are");
    }
    if (Clock::now() - looked >= kLookAtDevice) {
      looked = Clock::now();
      const Result<hal::Completion> completion = device.QueryStream(stream());
      // A stream that captures cannot be asked; a fault is what this is for.
      if (completion.status().code() == StatusCode::kDeviceLost) return completion.status();
    }
    auto until = Clock::now() + sleep;
    if (!deadline.never()) until = std::min(until, deadline.when());
    std::this_thread::sleep_until(until);
    sleep = std::min(2 * sleep, kLongestSleep);
  }
  return OkStatus();
}

}  // namespace keel::graph
