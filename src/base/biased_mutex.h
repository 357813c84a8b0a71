// BiasedMutex: a Mutex that costs nearly nothing to the thread that takes it again and again.
//
// A thread that took it kStreak times in a row becomes its owner, and takes and gives it from then
// on by plain stores, as that of an OwnerLock does (owner_lock.h says why that is right): no atomic
// exchange, which would also wait until everything that was written before has reached the cache.
// Any other thread that takes it while it has an owner pays for a system call, microseconds; so if
// the owner took it fewer than kWorth times since another thread did, it is nobody's again, and a
// plain mutex until the next streak.
//
// A thread may be about to take it as its owner while another one becomes that, so each has a word
// of its own in which it says that it is in. A lock has kOwners of them: so many threads can be its
// owner in its life, again and again, and to all others it is a plain mutex. (A thread that has the
// identity of one that ended has its word, too.)
//
// Any thread may lock it, for as long as a Mutex may be held; who waits sleeps. Not fair, not
// recursive: an owner that locks it again ends the process with a message, anybody else waits for
// ever, as with a Mutex. Where the kernel has no barrier, or forbids it, it is a plain mutex.
//
// Who destroys it must know that every Unlock has returned. To have taken it once more does not
// tell that, as it does of a Mutex: an owner can have it while the one before still is in Unlock.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>

#include "base/owner_lock.h"
#include "keel/base/mutex.h"

namespace keel {

class KEEL_CAPABILITY("mutex") BiasedMutex {
 public:
  static constexpr std::uint32_t kStreak = 256;
  static constexpr std::uint32_t kWorth = 256;
  static constexpr std::size_t kOwners = 8;

  BiasedMutex() : BiasedMutex(OwnerLock::OrderOfProcess()) {}
  // kOthers only if it is the process's. kOwner: a plain mutex.
  explicit BiasedMutex(OwnerLock::Order order)
      : can_be_biased_(order == OwnerLock::Order::kOthers) {}
  BiasedMutex(const BiasedMutex&) = delete;
  BiasedMutex& operator=(const BiasedMutex&) = delete;

  void Lock() KEEL_ACQUIRE() {
    if (TryLockAsOwner()) [[likely]] {
      return;
    }
    LockSlow();
  }
  void Unlock() KEEL_RELEASE() KEEL_NO_THREAD_SAFETY_ANALYSIS {
    Owner* const owner = owner_.load(std::memory_order_relaxed);
    if (owner->IsThis()) [[likely]] {
      owner->busy.store(false, std::memory_order_release);
    } else {
      UnlockSlow();
    }
  }
  // Whether the caller has it now, because it is the owner, does not have it yet and nobody else
  // wants it. Never waits.
  bool TryLockAsOwner() KEEL_TRY_ACQUIRE(true) {
    Owner* const owner = owner_.load(std::memory_order_relaxed);
    if (!owner->IsThis() || owner->busy.load(std::memory_order_acquire)) return false;
    owner->busy.store(true, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // the compiler's order; the processor's
                                                          // is the others' barrier
    // It may be another's since the first look, and then nobody looks at this one's word.
    if (!wanted_.load(std::memory_order_acquire) && owner_.load(std::memory_order_relaxed) == owner)
        [[likely]] {
      ++turns_;
      return true;
    }
    owner->busy.store(false, std::memory_order_release);
    return false;
  }

  // For tests.
  bool IsOwner() const { return owner_.load(std::memory_order_relaxed)->IsThis(); }

 private:
  struct Owner {
    // Of this thread, and of no other that lives.
    static const void* Self() { return __builtin_thread_pointer(); }
    bool IsThis() const { return thread.load(std::memory_order_relaxed) == Self(); }

    std::atomic<const void*> thread{nullptr};  // set once
    std::atomic<bool> busy{false};             // it has the lock, or is about to look if it may
  };
  // The word of this thread; null: there is none left.
  Owner* FindOwner();
  void LockSlow() KEEL_ACQUIRE();
  void UnlockSlow() KEEL_RELEASE();

  std::atomic<Owner*> owner_{&nobody_};  // written under others_
  std::atomic<bool> wanted_{false};      // another one wants it, or has it
  std::uint32_t turns_ = 0;              // of the owner; whoever has the lock
  Owner owners_[kOwners];
  Owner nobody_;
  // From here on under others_, which everybody but the owner has while it has the lock.
  alignas(64) Mutex others_;
  const bool can_be_biased_;
  const void* last_ = nullptr;  // who took it last
  std::uint32_t streak_ = 0;    // how often in a row
  std::uint32_t seen_ = 0;      // turns_, when another one took it last
};

class KEEL_SCOPED_CAPABILITY BiasedMutexLock {
 public:
  explicit BiasedMutexLock(BiasedMutex& mutex) KEEL_ACQUIRE(mutex) : mutex_(mutex) {
    mutex_.Lock();
  }
  ~BiasedMutexLock() KEEL_RELEASE() { mutex_.Unlock(); }
  BiasedMutexLock(const BiasedMutexLock&) = delete;
  BiasedMutexLock& operator=(const BiasedMutexLock&) = delete;

 private:
  BiasedMutex& mutex_;
};

// As CondVar.
class BiasedCondVar {
 public:
  void Wait(BiasedMutex& mutex) KEEL_REQUIRES(mutex) {
    Adapter adapter{mutex};
    condition_.wait(adapter);
  }
  // False when `when` has passed.
  bool WaitUntil(BiasedMutex& mutex, std::chrono::steady_clock::time_point when)
      KEEL_REQUIRES(mutex) {
    Adapter adapter{mutex};
    return condition_.wait_until(adapter, when) == std::cv_status::no_timeout;
  }
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  // By the names that the standard library calls.
  struct Adapter {
    BiasedMutex& mutex;
    void lock() KEEL_NO_THREAD_SAFETY_ANALYSIS { mutex.Lock(); }
    void unlock() KEEL_NO_THREAD_SAFETY_ANALYSIS { mutex.Unlock(); }
  };

  std::condition_variable_any condition_;
};

}  // namespace keel
