// Running a part of a test in a forked child.
//
// With a sanitizer of gcc 12 a child can hang through no fault of the program: the table in which
// the runtime keeps stacks has a lock that it does not take over a fork, as it does its others. If
// another thread of the parent was inside malloc or new just then, the child finds that lock held
// by a thread that it does not have, and waits for ever in its own first allocation. So with a
// sanitizer the other threads rest while a test forks (WorkingThread), a child starts no threads,
// and one that hangs all the same, because a thread that the test does not know of was allocating,
// is tried again.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define KEEL_TEST_THREADS_AFTER_FORK 0
#else
#define KEEL_TEST_THREADS_AFTER_FORK 1
#endif

namespace keel {

inline constexpr bool kForksAmongBusyThreads = KEEL_TEST_THREADS_AFTER_FORK != 0;
// How often a test forks beside a WorkingThread: a child rarely meets what it is there for.
inline constexpr int kForks = kForksAmongBusyThreads ? 200 : 5;

// A thread that does `work` again and again until it is destroyed, so that a fork finds it in the
// middle of it. With a sanitizer it does so a few times and rests from then on.
class WorkingThread {
 public:
  explicit WorkingThread(std::function<void()> work)
      : work_(std::move(work)), thread_([this] { Main(); }) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ready_; });
  }
  ~WorkingThread() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  WorkingThread(const WorkingThread&) = delete;
  WorkingThread& operator=(const WorkingThread&) = delete;

 private:
  bool ended() {
    const std::lock_guard lock(mutex_);
    return ended_;
  }
  void Main() {
    constexpr int kFirst = 20;
    for (int i = 0; i < kFirst; ++i) work_();
    std::unique_lock lock(mutex_);
    ready_ = true;
    changed_.notify_all();
    if (kForksAmongBusyThreads) {
      lock.unlock();
      while (!ended()) work_();
    } else {
      changed_.wait(lock, [this] { return ended_; });
    }
  }

  const std::function<void()> work_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ready_ = false;
  bool ended_ = false;
  std::thread thread_;
};

// The exit status of a child that runs `body`; a child that hangs is ended by a signal.
template <class Body>
int InForkedChild(Body body) {
  constexpr int kChildren = kForksAmongBusyThreads ? 1 : 3;
  constexpr unsigned kSeconds = kForksAmongBusyThreads ? 60 : 20;
  int status = 0;
  for (int i = 0; i < kChildren; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(kSeconds);
      body();
      // Not exit(): the child must not run the parent's gtest and static objects.
      _exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    waitpid(child, &status, 0);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGALRM) break;
  }
  return status;
}

}  // namespace keel
