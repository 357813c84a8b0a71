// ShortLock: for a few hundred instructions on a hot path, and rarely, where nothing is in a hurry
// (statistics, snapshots), for a walk; never for a call of a driver. Taking it is one atomic
// exchange and giving it back a plain store, where a Mutex has a second exchange that waits until
// everything written under the lock has reached the cache.
//
// The price: whoever finds it taken looks again and again, soon giving way to other threads and
// then sleeping in between, so that a holder that lost its processor gets it back. Not fair, not
// recursive, no condition variable.
#pragma once

#include <atomic>

#include "keel/base/mutex.h"

namespace keel {

// What a loop does between two looks at what another thread holds for a short time: it spins, soon
// gives way to other threads, and then sleeps.
class ShortWait {
 public:
  void Pause();

 private:
  int pauses_ = 0;
};

class KEEL_CAPABILITY("mutex") ShortLock {
 public:
  ShortLock() = default;
  ShortLock(const ShortLock&) = delete;
  ShortLock& operator=(const ShortLock&) = delete;

  void Lock() KEEL_ACQUIRE() {
    if (taken_.exchange(true, std::memory_order_acquire)) [[unlikely]] {
      LockSlow();
    }
  }
  void Unlock() KEEL_RELEASE() { taken_.store(false, std::memory_order_release); }

 private:
  void LockSlow();

  std::atomic<bool> taken_{false};
};

class KEEL_SCOPED_CAPABILITY ShortLockGuard {
 public:
  explicit ShortLockGuard(ShortLock& lock) KEEL_ACQUIRE(lock) : lock_(lock) { lock_.Lock(); }
  ~ShortLockGuard() KEEL_RELEASE() { lock_.Unlock(); }
  ShortLockGuard(const ShortLockGuard&) = delete;
  ShortLockGuard& operator=(const ShortLockGuard&) = delete;

 private:
  ShortLock& lock_;
};

}  // namespace keel
