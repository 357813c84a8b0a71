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

void ShortLock::LockSlow() {
  int looks = 0;
  do {
    while (taken_.load(std::memory_order_relaxed)) {
      if (looks < kSpins) {
        SpinPause();
      } else if (looks < kSpins + kYields) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(kSleep);
      }
      if (looks < kSpins + kYields) ++looks;
    }
  } while (taken_.exchange(true, std::memory_order_acquire));
}

}  // namespace keel
