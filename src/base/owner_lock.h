// OwnerLock: a ShortLock for what one thread uses all the time and others now and then. Its owner
// takes it with two plain stores and a load, without an atomic exchange; the others pay for a
// system call, microseconds. For short work on both sides, as a ShortLock is; not fair, not
// recursive.
//
// A lock has at most one owner at a time. Who that is, its user decides: a thread becomes the owner
// after the last one has left for good and said so (with release and acquire, as a lock or an
// atomic does). A lock that has no owner is right too. The owner may also take it as others do.
//
// Why it is right. The owner stores `busy` and then loads `wanted`; another stores `wanted` and
// then loads `busy`. If neither load can overtake the store before it, one of the two sees the
// other: the owner steps back, or the other waits. The compiler keeps the owner's order. The
// processor need not: the other one has every running thread of the process execute a full fence
// (membarrier) between its own two steps. An owner that stored before that fence has its `busy`
// seen; one that stores after it sees `wanted`. Where the kernel has no such call, or forbids it,
// the store and the load are sequentially consistent on both sides, which costs the owner what an
// exchange does. Either enters by an acquiring load of what the other stored, releasing, when it
// left.
#pragma once

#include <atomic>

#include "base/short_lock.h"
#include "keel/base/mutex.h"

namespace keel {

class KEEL_CAPABILITY("mutex") OwnerLock {
 public:
  // Who keeps the owner's store before its load.
  enum class Order {
    kOthers,  // the others, by a barrier
    kOwner,   // the owner, by a fence
  };

  // kOthers if this process can: found out once, by the first that asks.
  static Order OrderOfProcess();
  // That.
  OwnerLock() : OwnerLock(OrderOfProcess()) {}
  // kOthers only if RegisterBarrier() was true.
  explicit OwnerLock(Order order) : order_(order) {}
  OwnerLock(const OwnerLock&) = delete;
  OwnerLock& operator=(const OwnerLock&) = delete;

  void LockAsOwner() KEEL_ACQUIRE() {
    if (order_ == Order::kOthers) [[likely]] {
      busy_.store(true, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);  // the compiler's order
    } else {
      busy_.store(true, std::memory_order_seq_cst);
    }
    if (wanted_.load(std::memory_order_seq_cst)) [[unlikely]] {
      WaitAsOwner();
    }
  }
  void UnlockAsOwner() KEEL_RELEASE() { busy_.store(false, std::memory_order_release); }

  // Any thread.
  void Lock() KEEL_ACQUIRE() {
    Ask();
    if (order_ == Order::kOthers) Barrier();
    Enter();
  }
  void Unlock() KEEL_RELEASE();

  // Lock in three steps, so that one barrier does for many locks: Ask each of them, in an order
  // that all who do so keep; Barrier once; Enter each. Whoever asked must enter. From Ask on the
  // owner and all others wait.
  void Ask();
  static void Barrier();
  void Enter() KEEL_ACQUIRE();

  // Tells the kernel that this process will use barriers. False: it has none, or forbids them.
  static bool RegisterBarrier();

 private:
  void WaitAsOwner();

  const Order order_;
  std::atomic<bool> busy_{false};    // the owner is inside, or about to look whether it may be
  std::atomic<bool> wanted_{false};  // written under others_
  ShortLock others_;                 // one other at a time; the owner waits here for it
};

class KEEL_SCOPED_CAPABILITY OwnerGuard {
 public:
  explicit OwnerGuard(OwnerLock& lock) KEEL_ACQUIRE(lock) : lock_(lock) { lock_.LockAsOwner(); }
  ~OwnerGuard() KEEL_RELEASE() { lock_.UnlockAsOwner(); }
  OwnerGuard(const OwnerGuard&) = delete;
  OwnerGuard& operator=(const OwnerGuard&) = delete;

 private:
  OwnerLock& lock_;
};

// Of any other thread.
class KEEL_SCOPED_CAPABILITY OtherGuard {
 public:
  explicit OtherGuard(OwnerLock& lock) KEEL_ACQUIRE(lock) : lock_(lock) { lock_.Lock(); }
  ~OtherGuard() KEEL_RELEASE() { lock_.Unlock(); }
  OtherGuard(const OtherGuard&) = delete;
  OtherGuard& operator=(const OtherGuard&) = delete;

 private:
  OwnerLock& lock_;
};

}  // namespace keel
