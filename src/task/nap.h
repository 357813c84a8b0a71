// Nap: where one thread sleeps until it is rung, or for a while. A ring is not lost when nobody
// sleeps: the next sleep ends at once.
//
// Any thread may ring; it costs a system call, and nothing is held while one sleeps.
#pragma once

#include <chrono>
#include <utility>

#include "keel/base/mutex.h"

namespace keel::task {

class Nap {
 public:
  void Ring() KEEL_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    rung_ = true;
    changed_.NotifyOne();
  }
  void Sleep() KEEL_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    while (!rung_) changed_.Wait(mutex_);
    rung_ = false;
  }
  // True: it was rung.
  bool SleepFor(std::chrono::nanoseconds time) KEEL_EXCLUDES(mutex_) {
    const auto until = std::chrono::steady_clock::now() + time;
    const MutexLock lock(mutex_);
    while (!rung_ && changed_.WaitUntil(mutex_, until)) {
    }
    return std::exchange(rung_, false);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool rung_ KEEL_GUARDED_BY(mutex_) = false;
};

}  // namespace keel::task
