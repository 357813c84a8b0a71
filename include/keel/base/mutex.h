// Mutex, SharedMutex, CondVar and their scoped locks: the standard library's, with the
// annotations that let clang prove which data each lock guards (the `clang` preset makes a
// violation an error). Use these, never the bare ones, for anything that is shared.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>

#if defined(__clang__)
#define KEEL_THREAD_ANNOTATION_(x) __attribute__((x))
#else
#define KEEL_THREAD_ANNOTATION_(x)
#endif

#define KEEL_CAPABILITY(name) KEEL_THREAD_ANNOTATION_(capability(name))
#define KEEL_SCOPED_CAPABILITY KEEL_THREAD_ANNOTATION_(scoped_lockable)
#define KEEL_GUARDED_BY(mutex) KEEL_THREAD_ANNOTATION_(guarded_by(mutex))
#define KEEL_REQUIRES(...) KEEL_THREAD_ANNOTATION_(requires_capability(__VA_ARGS__))
#define KEEL_REQUIRES_SHARED(...) KEEL_THREAD_ANNOTATION_(requires_shared_capability(__VA_ARGS__))
#define KEEL_EXCLUDES(...) KEEL_THREAD_ANNOTATION_(locks_excluded(__VA_ARGS__))
#define KEEL_ACQUIRE(...) KEEL_THREAD_ANNOTATION_(acquire_capability(__VA_ARGS__))
#define KEEL_ACQUIRE_SHARED(...) KEEL_THREAD_ANNOTATION_(acquire_shared_capability(__VA_ARGS__))
#define KEEL_RELEASE(...) KEEL_THREAD_ANNOTATION_(release_capability(__VA_ARGS__))
#define KEEL_RELEASE_SHARED(...) KEEL_THREAD_ANNOTATION_(release_shared_capability(__VA_ARGS__))
#define KEEL_TRY_ACQUIRE(...) KEEL_THREAD_ANNOTATION_(try_acquire_capability(__VA_ARGS__))
#define KEEL_ACQUIRED_AFTER(...) KEEL_THREAD_ANNOTATION_(acquired_after(__VA_ARGS__))
#define KEEL_NO_THREAD_SAFETY_ANALYSIS KEEL_THREAD_ANNOTATION_(no_thread_safety_analysis)

namespace keel {

class KEEL_CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() KEEL_ACQUIRE() { mutex_.lock(); }
  void Unlock() KEEL_RELEASE() { mutex_.unlock(); }
  bool TryLock() KEEL_TRY_ACQUIRE(true) { return mutex_.try_lock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class KEEL_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) KEEL_ACQUIRE(mutex) : mutex_(mutex) { mutex_.Lock(); }
  ~MutexLock() KEEL_RELEASE() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

class KEEL_CAPABILITY("mutex") SharedMutex {
 public:
  SharedMutex() = default;
  SharedMutex(const SharedMutex&) = delete;
  SharedMutex& operator=(const SharedMutex&) = delete;

  void Lock() KEEL_ACQUIRE() { mutex_.lock(); }
  void Unlock() KEEL_RELEASE() { mutex_.unlock(); }
  void LockShared() KEEL_ACQUIRE_SHARED() { mutex_.lock_shared(); }
  void UnlockShared() KEEL_RELEASE_SHARED() { mutex_.unlock_shared(); }

 private:
  std::shared_mutex mutex_;
};

class KEEL_SCOPED_CAPABILITY WriterLock {
 public:
  explicit WriterLock(SharedMutex& mutex) KEEL_ACQUIRE(mutex) : mutex_(mutex) { mutex_.Lock(); }
  ~WriterLock() KEEL_RELEASE() { mutex_.Unlock(); }
  WriterLock(const WriterLock&) = delete;
  WriterLock& operator=(const WriterLock&) = delete;

 private:
  SharedMutex& mutex_;
};

class KEEL_SCOPED_CAPABILITY ReaderLock {
 public:
  explicit ReaderLock(SharedMutex& mutex) KEEL_ACQUIRE_SHARED(mutex) : mutex_(mutex) {
    mutex_.LockShared();
  }
  ~ReaderLock() KEEL_RELEASE() { mutex_.UnlockShared(); }
  ReaderLock(const ReaderLock&) = delete;
  ReaderLock& operator=(const ReaderLock&) = delete;

 private:
  SharedMutex& mutex_;
};

// Waits may wake for no reason: always wait in a loop over the condition, under the mutex.
class CondVar {
 public:
  void Wait(Mutex& mutex) KEEL_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  // False when `when` has passed.
  bool WaitUntil(Mutex& mutex, std::chrono::steady_clock::time_point when) KEEL_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const bool in_time = condition_.wait_until(lock, when) == std::cv_status::no_timeout;
    lock.release();
    return in_time;
  }
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace keel
