#include "base/short_lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace keel {
namespace {

TEST(ShortLockTest, OneThreadAtATime) {
  constexpr int kThreads = 4;
  constexpr int kTurns = 20'000;
  ShortLock lock;
  std::int64_t sum = 0;  // plain: a race would lose some of it, and ThreadSanitizer would see it
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kTurns; ++i) {
        const ShortLockGuard guard(lock);
        sum += 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum, kThreads * kTurns);
}

// Longer than anybody spins or yields: the waiting thread sleeps, and still gets it.
TEST(ShortLockTest, AWaitingThreadGetsItAfterALongTime) {
  ShortLock lock;
  std::atomic<int> tries{0};
  std::atomic<bool> inside{false};
  lock.Lock();
  std::thread waiting([&] {
    tries = 1;
    const ShortLockGuard guard(lock);
    inside = true;
  });
  while (tries == 0) std::this_thread::yield();
  for (int i = 0; i < 2000; ++i) std::this_thread::yield();
  EXPECT_FALSE(inside);
  lock.Unlock();
  waiting.join();
  EXPECT_TRUE(inside);
}

}  // namespace
}  // namespace keel
