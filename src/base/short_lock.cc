#include "base/short_lock.h"

#include <chrono>
#include <thread>

#include "base/spin_pause.h"

namespace keel {
namespace {

// As long as a short critical section, and as long as a few turns of the scheduler.
constexpr int kSpins = 100;
constexpr int kYields = 100;
constexpr std::chrono::microseconds kSleep{50};

}  // namespace

void ShortWait::Pause() {
  if (pauses_ >= kSpins + kYields) {
    std::this_thread::sleep_for(kSleep);
    return;
  }
  if (pauses_ < kSpins) {
    SpinPause();
  } else {
    std::this_thread::yield();
  }
  ++pauses_;
}

void ShortLock::LockSlow() {
  ShortWait wait;
  do {
    while (taken_.load(std::memory_order_relaxed)) wait.Pause();
  } while (taken_.exchange(true, std::memory_order_acquire));
}

}  // namespace keel
