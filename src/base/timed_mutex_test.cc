#include "keel/base/timed_mutex.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

namespace keel {
namespace {

using std::chrono::milliseconds;

Deadline Soon() { return Deadline::After(std::chrono::seconds(60)); }

TEST(TimedMutexTest, GuardsACounter) {
  TimedMutex mutex;
  int counter = 0;
  constexpr int kThreads = 4;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, timed = t % 2 == 0] {
      for (int i = 0; i < 1'000; ++i) {
        if (!mutex.LockBefore(timed ? Soon() : Deadline::Never())) return;
        const TimedMutexUnlocker unlocker(mutex);
        ++counter;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter, kThreads * 1'000);
}

TEST(TimedMutexTest, WhatIsHeldIsWaitedForUntilTheDeadline) {
  TimedMutex mutex;
  mutex.Lock();
  std::thread other([&] {
    EXPECT_FALSE(mutex.TryLock());
    EXPECT_FALSE(mutex.LockBefore(Deadline::Now()));
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_FALSE(mutex.LockBefore(Deadline::After(milliseconds(30))));
    EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(30));
  });
  other.join();
  mutex.Unlock();
}

TEST(TimedMutexTest, WhatIsFreeIsTakenEvenIfTheDeadlineHasPassed) {
  TimedMutex mutex;
  int taken = 0;
  if (mutex.LockBefore(Deadline::Now())) {
    const TimedMutexUnlocker unlocker(mutex);
    ++taken;
  }
  if (mutex.TryLock()) {
    const TimedMutexUnlocker unlocker(mutex);
    ++taken;
  }
  EXPECT_EQ(taken, 2);
}

TEST(TimedMutexTest, AllWhoWaitGetIt) {
  TimedMutex mutex;
  mutex.Lock();
  int taken = 0;
  std::vector<std::thread> threads;
  for (const Deadline deadline : {Soon(), Deadline::Never(), Soon()}) {
    threads.emplace_back([&, deadline] {
      if (!mutex.LockBefore(deadline)) return;
      const TimedMutexUnlocker unlocker(mutex);
      ++taken;
    });
  }
  mutex.Unlock();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken, 3);
}

}  // namespace
}  // namespace keel
