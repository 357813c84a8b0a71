// Ticket: one moment in a stream's work, for others to wait for. Events hand them out: each
// recording makes a new one, so that whoever waits for an earlier recording is not disturbed.
//
// Thread-safe; happens once.
#pragma once

#include <chrono>

#include "keel/base/deadline.h"
#include "keel/base/mutex.h"

namespace keel::sim {

class Ticket {
 public:
  enum class State {
    kPending,
    kReached,
    kAbandoned,  // the work before it was dropped: its device was lost or closed
  };

  void Reach() { Set(State::kReached); }
  void Abandon() { Set(State::kAbandoned); }

  State state() const {
    MutexLock lock(mutex_);
    return state_;
  }
  // When it was reached.
  std::chrono::steady_clock::time_point when() const {
    MutexLock lock(mutex_);
    return when_;
  }

  // Waits until it is no longer pending, the deadline passes or `cancelled` is true (looked at
  // every few milliseconds: who cancels need not know who waits).
  template <class Cancelled>
  State Wait(Deadline deadline, Cancelled cancelled) const {
    MutexLock lock(mutex_);
    while (state_ == State::kPending && !deadline.Passed() && !cancelled()) {
      const auto slice = std::chrono::steady_clock::now() + std::chrono::milliseconds(5);
      changed_.WaitUntil(mutex_, deadline.when() < slice ? deadline.when() : slice);
    }
    return state_;
  }

 private:
  void Set(State state) {
    MutexLock lock(mutex_);
    if (state_ != State::kPending) return;
    state_ = state;
    when_ = std::chrono::steady_clock::now();
    changed_.NotifyAll();
  }

  mutable Mutex mutex_;
  mutable CondVar changed_;
  State state_ KEEL_GUARDED_BY(mutex_) = State::kPending;
  std::chrono::steady_clock::time_point when_ KEEL_GUARDED_BY(mutex_);
};

}  // namespace keel::sim
