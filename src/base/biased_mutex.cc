#include "base/biased_mutex.h"

#include <cstdio>
#include <cstdlib>

#include "base/short_lock.h"

namespace keel {

BiasedMutex::Owner* BiasedMutex::FindOwner() {
  for (Owner& owner : owners_) {
    if (owner.IsThis()) return &owner;
    if (owner.thread.load(std::memory_order_relaxed) != nullptr) continue;
    owner.thread.store(Owner::Self(), std::memory_order_relaxed);
    return &owner;
  }
  return nullptr;
}

void BiasedMutex::LockSlow() KEEL_NO_THREAD_SAFETY_ANALYSIS {
  // Before the wait: whoever has others_ may wait for this thread. An owner that is here is busy
  // only if it has the lock.
  if (const Owner* const has = owner_.load(std::memory_order_relaxed);
      has->IsThis() && has->busy.load(std::memory_order_relaxed)) {
    static_cast<void>(std::fputs("keel: a thread that has a BiasedMutex locks it again\n", stderr));
    std::abort();
  }
  others_.Lock();
  const void* const self = Owner::Self();
  Owner* const owner = owner_.load(std::memory_order_relaxed);
  if (owner->IsThis()) {
    // Whoever made it step back has left, and the next one waits for others_.
    owner->busy.store(true, std::memory_order_relaxed);
    others_.Unlock();
    return;
  }
  if (owner != &nobody_) {
    wanted_.store(true, std::memory_order_seq_cst);
    OwnerLock::Barrier();
    ShortWait wait;
    while (owner->busy.load(std::memory_order_acquire)) wait.Pause();
    if (turns_ - seen_ < kWorth) owner_.store(&nobody_, std::memory_order_relaxed);
    seen_ = turns_;
    streak_ = 0;
    last_ = self;
    return;
  }
  if (last_ != self) {
    last_ = self;
    streak_ = 0;
  }
  if (++streak_ < kStreak || !can_be_biased_) return;
  streak_ = 0;
  Owner* const next = FindOwner();
  if (next == nullptr) return;
  seen_ = turns_ - kWorth;  // the first intruder does not end it
  next->busy.store(true, std::memory_order_relaxed);
  owner_.store(next, std::memory_order_release);
  others_.Unlock();
}

void BiasedMutex::UnlockSlow() KEEL_NO_THREAD_SAFETY_ANALYSIS {
  if (wanted_.load(std::memory_order_relaxed)) wanted_.store(false, std::memory_order_release);
  others_.Unlock();
}

}  // namespace keel
