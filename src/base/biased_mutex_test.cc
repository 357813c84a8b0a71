#include "base/biased_mutex.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <latch>
#include <thread>
#include <vector>

#include "base/owner_lock.h"
#include "base/soon_test.h"
#include "base/twins_test.h"

namespace keel {
namespace {

using std::chrono_literals::operator""ms;

class BiasedMutexTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (OwnerLock::OrderOfProcess() != OwnerLock::Order::kOthers) {
      GTEST_SKIP() << "this system has no barrier for a process";
    }
  }
  void Take(std::uint32_t times) {
    for (std::uint32_t i = 0; i < times; ++i) const BiasedMutexLock lock(mutex_);
  }
  // What the analysis of locks does not follow.
  bool Try() KEEL_NO_THREAD_SAFETY_ANALYSIS { return mutex_.TryLockAsOwner(); }
  void Give() KEEL_NO_THREAD_SAFETY_ANALYSIS { mutex_.Unlock(); }
  void TakeElsewhere(std::uint32_t times) {
    std::thread([&] { Take(times); }).join();
  }

  BiasedMutex mutex_;
};

TEST_F(BiasedMutexTest, AStreakMakesAnOwner) {
  Take(BiasedMutex::kStreak - 1);
  EXPECT_FALSE(mutex_.IsOwner());
  EXPECT_FALSE(Try());
  TakeElsewhere(1);
  Take(BiasedMutex::kStreak - 1);
  EXPECT_FALSE(mutex_.IsOwner()) << "the streak was broken";
  Take(1);
  EXPECT_TRUE(mutex_.IsOwner());
}

TEST_F(BiasedMutexTest, WhoIsSeldomThereLosesIt) {
  Take(BiasedMutex::kStreak);
  TakeElsewhere(1);
  EXPECT_TRUE(mutex_.IsOwner()) << "the first one does not end it";
  Take(BiasedMutex::kWorth);
  TakeElsewhere(1);
  EXPECT_TRUE(mutex_.IsOwner()) << "it was worth it";
  Take(BiasedMutex::kWorth - 1);
  TakeElsewhere(1);
  EXPECT_FALSE(mutex_.IsOwner());
  TakeElsewhere(BiasedMutex::kStreak);
  EXPECT_FALSE(mutex_.IsOwner());
  Take(BiasedMutex::kStreak + 2);
  EXPECT_TRUE(mutex_.IsOwner()) << "the one before has ended, and is not heard of again";
}

TEST_F(BiasedMutexTest, ToMoreThreadsThanItHasWordsItIsAPlainMutex) {
  std::vector<std::thread> threads;
  std::latch end(1);  // until all have been there: none has the identity of another
  std::size_t owners = 0;
  for (std::size_t i = 0; i < BiasedMutex::kOwners + 2; ++i) {
    std::latch done(1);
    threads.emplace_back([&] {
      Take(2 * BiasedMutex::kStreak + 2);  // the first of them end what another had
      if (mutex_.IsOwner()) ++owners;
      Take(3);
      done.count_down();
      end.wait();
    });
    done.wait();
  }
  end.count_down();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(owners, BiasedMutex::kOwners);
  Take(2 * BiasedMutex::kStreak + 2);
  EXPECT_FALSE(mutex_.IsOwner());
}

TEST_F(BiasedMutexTest, TryNeverTakesWhatIsTaken) {
  Take(BiasedMutex::kStreak);
  ASSERT_TRUE(Try());
  EXPECT_FALSE(Try());
  std::atomic<bool> inside{false};
  std::latch about_to(1);
  std::thread other([&] {
    EXPECT_FALSE(Try()) << "it is another's";
    about_to.count_down();
    const BiasedMutexLock lock(mutex_);
    inside = true;
  });
  about_to.wait();
  std::this_thread::sleep_for(10ms);  // or it proves less
  EXPECT_FALSE(inside);
  Give();
  other.join();
  EXPECT_TRUE(inside);

  std::latch taken(1);
  std::atomic<bool> leave{false};
  std::thread holder([&] {
    const BiasedMutexLock lock(mutex_);
    taken.count_down();
    while (!leave) std::this_thread::yield();
  });
  taken.wait();
  EXPECT_FALSE(Try());
  leave = true;
  holder.join();
}

// Stores that are late make a missing barrier show.
TEST_F(BiasedMutexTest, OwnerAndOthersNeverMeetInside) {
  constexpr std::uint64_t kTurns = 100'000;
  constexpr std::uint64_t kApart = BiasedMutex::kWorth + BiasedMutex::kWorth / 4;
  Twins twins;
  std::atomic<std::uint64_t> turns{0};
  std::uint64_t others = 0;
  bool alone = true;
  std::thread other([&] {
    for (std::uint64_t next = kApart; next < kTurns; next += kApart) {
      while (turns.load(std::memory_order_relaxed) < next) std::this_thread::yield();
      const BiasedMutexLock lock(mutex_);
      alone = twins.Increase() && alone;
      ++others;
    }
  });
  SlowStores slow;
  std::uint64_t as_owner = 0;
  for (std::uint64_t i = 0; i < kTurns; ++i) {
    slow.Store();
    const BiasedMutexLock lock(mutex_);
    alone = twins.Increase() && alone;
    if (mutex_.IsOwner()) ++as_owner;
    turns.store(i + 1, std::memory_order_relaxed);
  }
  other.join();
  EXPECT_TRUE(alone);
  EXPECT_TRUE(twins.Are(kTurns + others));
  EXPECT_GT(as_owner, kTurns / 4) << "it was about the owner";
}

// Owners come and go.
TEST_F(BiasedMutexTest, NobodyMeetsInside) {
  constexpr std::uint64_t kRounds = 40;
  constexpr int kThreads = 3;
  Twins twins;
  std::atomic<std::uint64_t> times{0};
  std::uint64_t as_owner = 0;  // by whoever has the mutex
  std::atomic<bool> alone{true};
  std::barrier begin(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      SlowStores slow;
      for (std::uint64_t round = 0; round < kRounds; ++round) {
        begin.arrive_and_wait();
        // Long turns make owners, short ones end them. One thread at a time has a long one.
        const std::uint64_t turns = (round + static_cast<std::uint64_t>(t)) % kThreads == 0
                                        ? std::uint64_t{4} * BiasedMutex::kStreak
                                        : std::uint64_t{3};
        for (std::uint64_t i = 0; i < turns; ++i) {
          slow.Store();
          if (i % 2 == 0 && mutex_.TryLockAsOwner()) {
            if (!twins.Increase()) alone = false;
            mutex_.Unlock();
          } else {
            const BiasedMutexLock lock(mutex_);
            if (!twins.Increase()) alone = false;
            if (mutex_.IsOwner()) ++as_owner;
          }
        }
        times += turns;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(alone);
  EXPECT_TRUE(twins.Are(times));
  EXPECT_GT(as_owner, kRounds * BiasedMutex::kStreak / 4) << "it was about owners";
}

using BiasedMutexDeathTest = BiasedMutexTest;

TEST_F(BiasedMutexDeathTest, AnOwnerThatLocksItAgainIsTold) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto again = [this]() KEEL_NO_THREAD_SAFETY_ANALYSIS {
    mutex_.Lock();
    mutex_.Lock();
  };
  Take(BiasedMutex::kStreak - 1);
  EXPECT_FALSE(mutex_.IsOwner());
  EXPECT_DEATH(again(), "has a BiasedMutex locks it again") << "with the lock that makes it one";
  Take(BiasedMutex::kStreak);
  EXPECT_TRUE(mutex_.IsOwner());
  EXPECT_DEATH(again(), "has a BiasedMutex locks it again");
}

TEST_F(BiasedMutexTest, AnOwnerCanWaitForACondition) {
  BiasedCondVar changed;
  bool ready = false;
  bool waits = false;
  Take(BiasedMutex::kStreak);
  std::thread other([&] {
    EXPECT_TRUE(Soon([&] {
      const BiasedMutexLock lock(mutex_);
      return waits;
    }));
    const BiasedMutexLock lock(mutex_);
    ready = true;
    changed.NotifyOne();
  });
  {
    const BiasedMutexLock lock(mutex_);
    waits = true;
    while (!ready) changed.Wait(mutex_);
    EXPECT_FALSE(changed.WaitUntil(mutex_, std::chrono::steady_clock::now() + 1ms));
  }
  other.join();
  const BiasedMutexLock lock(mutex_);
  EXPECT_TRUE(ready);
}

}  // namespace
}  // namespace keel
