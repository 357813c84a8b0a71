#include "keel/base/mutex.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "keel/base/deadline.h"

namespace keel {
namespace {

TEST(MutexTest, GuardsACounter) {
  Mutex mutex;
  int counter = 0;
  constexpr int kThreads = 4;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1'000; ++i) {
        MutexLock lock(mutex);
        ++counter;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  MutexLock lock(mutex);
  EXPECT_EQ(counter, kThreads * 1'000);
}

TEST(MutexTest, ReadersShareAndAWriterExcludes) {
  SharedMutex mutex;
  int value = 0;
  {
    ReaderLock first(mutex);
    // Would wait for ever if readers excluded each other.
    std::thread reader([&] {
      ReaderLock second(mutex);
      EXPECT_EQ(value, 0);
    });
    reader.join();
  }
  std::thread writer([&] {
    WriterLock lock(mutex);
    value = 1;
  });
  writer.join();
  ReaderLock lock(mutex);
  EXPECT_EQ(value, 1);
}

TEST(CondVarTest, WakesWhoWaits) {
  Mutex mutex;
  CondVar changed;
  bool ready = false;
  std::thread other([&] {
    MutexLock lock(mutex);
    ready = true;
    changed.NotifyAll();
  });
  {
    MutexLock lock(mutex);
    while (!ready) changed.Wait(mutex);
  }
  other.join();
}

TEST(CondVarTest, AWaitEndsAtItsDeadlineWithTheLockHeld) {
  Mutex mutex;
  CondVar never;
  MutexLock lock(mutex);
  EXPECT_FALSE(never.WaitUntil(mutex, Deadline::Now().when()));
  EXPECT_FALSE(never.WaitUntil(mutex, Deadline::After(std::chrono::milliseconds(2)).when()));
  std::thread other([&] {
    const bool locked = mutex.TryLock();
    EXPECT_FALSE(locked);
    if (locked) mutex.Unlock();
  });
  other.join();
}

}  // namespace
}  // namespace keel
