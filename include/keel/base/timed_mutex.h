// TimedMutex: a Mutex that can be waited for until a deadline. For what may be held for long, while
// a function of a caller's runs for example; taking it costs two locks. Not recursive. It is no
// std::timed_mutex, because ThreadSanitizer does not know the call by which that one waits for a
// steady clock, and takes every Unlock after it for a mistake.
//
//   if (!mutex.LockBefore(deadline)) return DeadlineExceeded(...);
//   const TimedMutexUnlocker unlocker(mutex);
#pragma once

#include <utility>

#include "keel/base/deadline.h"
#include "keel/base/mutex.h"

namespace keel {

class KEEL_CAPABILITY("mutex") TimedMutex {
 public:
  TimedMutex() = default;
  TimedMutex(const TimedMutex&) = delete;
  TimedMutex& operator=(const TimedMutex&) = delete;

  void Lock() KEEL_ACQUIRE() { (void)LockBefore(Deadline::Never()); }
  // Looks at no clock.
  bool TryLock() KEEL_TRY_ACQUIRE(true) {
    const MutexLock lock(mutex_);
    return !std::exchange(held_, true);
  }
  // False: somebody has it, and the deadline has passed.
  bool LockBefore(Deadline deadline) KEEL_TRY_ACQUIRE(true) {
    const MutexLock lock(mutex_);
    while (held_) {
      if (deadline.Passed()) return false;
      if (deadline.never()) {
        released_.Wait(mutex_);
      } else {
        released_.WaitUntil(mutex_, deadline.when());
      }
    }
    held_ = true;
    return true;
  }
  void Unlock() KEEL_RELEASE() {
    const MutexLock lock(mutex_);
    held_ = false;
    // With the lock: whoever takes it next may end it.
    released_.NotifyOne();
  }

 private:
  Mutex mutex_;
  CondVar released_;
  bool held_ KEEL_GUARDED_BY(mutex_) = false;
};

// Unlocks at its end what was locked before it.
class KEEL_SCOPED_CAPABILITY TimedMutexUnlocker {
 public:
  explicit TimedMutexUnlocker(TimedMutex& mutex) KEEL_REQUIRES(mutex) : mutex_(mutex) {}
  ~TimedMutexUnlocker() KEEL_RELEASE() { mutex_.Unlock(); }
  TimedMutexUnlocker(const TimedMutexUnlocker&) = delete;
  TimedMutexUnlocker& operator=(const TimedMutexUnlocker&) = delete;

 private:
  TimedMutex& mutex_;
};

}  // namespace keel
