// BiasedLock: a lock that belongs to one thread, which takes it with two plain stores and one load;
// any other thread may take it too, at the price of a system call.
//
// The owner says "I am in" and looks whether somebody asked for the lock; the other asks, and looks
// whether the owner is in. On both sides the look must not overtake the word before it. For the
// owner that would take a fence on every entry, some 20 cycles. Instead the other one makes every
// thread of the process execute a fence (membarrier), once, when it wants the lock. Where the
// system cannot do that, the owner pays for the fence.
//
// Meant for caches of one thread from which others take now and then, when memory is short.
#pragma once

#include <atomic>

#include "keel/base/mutex.h"

namespace keel::memory {

class KEEL_CAPABILITY("mutex") BiasedLock {
 public:
  BiasedLock() = default;
  BiasedLock(const BiasedLock&) = delete;
  BiasedLock& operator=(const BiasedLock&) = delete;

  // For the owner: one thread, always the same. Not recursive.
  void OwnerLock() KEEL_ACQUIRE() {
    if (kAsymmetric.load(std::memory_order_relaxed)) {
      inside_.store(true, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);  // for the compiler alone
    } else {
      inside_.store(true, std::memory_order_seq_cst);
    }
    if (asked_.load(std::memory_order_seq_cst)) [[unlikely]] {
      WaitForOther();
    }
  }
  void OwnerUnlock() KEEL_RELEASE() { inside_.store(false, std::memory_order_release); }

  // For every other thread. The owner never waits for another lock while it has this one, so this
  // ends soon.
  void OtherLock() KEEL_ACQUIRE();
  void OtherUnlock() KEEL_RELEASE();

 private:
  // Whether the system has membarrier for a process: known before main.
  static const std::atomic<bool> kAsymmetric;
  void WaitForOther();

  std::atomic<bool> inside_{false};
  std::atomic<bool> asked_{false};
  Mutex others_;  // one other at a time; the owner waits here for it
};

}  // namespace keel::memory
