#include "base/futex_wait.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <thread>
#include <vector>

#include "base/soon_test.h"

namespace keel {
namespace {

using std::chrono::milliseconds;

TEST(FutexWaitTest, AnotherValueReturnsAtOnce) {
  FutexWord word{};
  EXPECT_TRUE(WaitWhile(word, 1, Deadline::Never()));
  EXPECT_FALSE(WaitWhile(word, 0, Deadline::Now()));
}

TEST(FutexWaitTest, TheDeadlineEndsAWait) {
  FutexWord word{};
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(WaitWhile(word, 0, Deadline::After(milliseconds(20))));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(20));
  EXPECT_EQ(word.sleepers.load(), 0U);
}

TEST(FutexWaitTest, ARingWakesEverySleeper) {
  FutexWord word{};
  std::vector<std::thread> threads;
  std::atomic<int> woken{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { woken += WaitWhile(word, 0, Deadline::Never()) ? 1 : 0; });
  }
  EXPECT_TRUE(Soon([&] { return word.sleepers.load() == 4; }));
  Ring(word);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(woken.load(), 4);
  EXPECT_EQ(word.sleepers.load(), 0U);
}

TEST(FutexWaitTest, NoRingIsLost) {
  FutexWord there{};
  FutexWord back{};
  constexpr std::uint32_t kRounds = 20'000;
  std::thread peer([&] {
    for (std::uint32_t i = 0; i < kRounds; ++i) {
      if (!WaitWhile(there, i, Deadline::After(std::chrono::seconds(60)))) return;
      Ring(back);
    }
  });
  for (std::uint32_t i = 0; i < kRounds; ++i) {
    Ring(there);
    ASSERT_TRUE(WaitWhile(back, i, Deadline::After(std::chrono::seconds(60)))) << i;
  }
  peer.join();
}

TEST(FutexWaitTest, SleepersWaitForSomethingElseToo) {
  FutexWord word{};
  std::atomic<int> changed{0};
  const auto ready = [&] { return changed.load(std::memory_order_acquire) != 0; };
  EXPECT_FALSE(WaitUntil(word, ready, Deadline::After(milliseconds(5))));
  RingSleepers(word);
  EXPECT_EQ(word.value.load(), 0U) << "nobody sleeps";
  std::thread sleeper([&] { EXPECT_TRUE(WaitUntil(word, ready, Deadline::Never())); });
  EXPECT_TRUE(Soon([&] { return word.sleepers.load() == 1; }));
  Ring(word);  // not what it waits for
  changed.store(1, std::memory_order_release);
  RingSleepers(word);
  sleeper.join();
  EXPECT_GE(word.value.load(), 2U);
  EXPECT_EQ(word.sleepers.load(), 0U);
}

TEST(FutexWaitTest, NoChangeIsLost) {
  FutexWord word{};
  std::atomic<std::uint32_t> there{0};
  std::atomic<std::uint32_t> back{0};
  constexpr std::uint32_t kRounds = 20'000;
  const auto wait = [&](const std::atomic<std::uint32_t>& value, std::uint32_t round) {
    return WaitUntil(
        word, [&] { return value.load(std::memory_order_acquire) == round; },
        Deadline::After(std::chrono::seconds(60)));
  };
  std::thread peer([&] {
    for (std::uint32_t i = 1; i <= kRounds; ++i) {
      if (!wait(there, i)) return;
      back.store(i, std::memory_order_release);
      RingSleepers(word);
    }
  });
  for (std::uint32_t i = 1; i <= kRounds; ++i) {
    there.store(i, std::memory_order_release);
    RingSleepers(word);
    ASSERT_TRUE(wait(back, i)) << i;
  }
  peer.join();
}

// Who rings does not fence: who goes to sleep makes it do so.
TEST(FutexWaitTest, NoRingForSleepersIsLost) {
  RingWithoutFence();
  FutexWord bell{};
  std::atomic<std::uint32_t> there{0};
  std::atomic<std::uint32_t> back{0};
  constexpr std::uint32_t kRounds = 3'000;
  // Asleep each time, and as near to a message as can be: no time to spin.
  const auto wait = [&](const std::atomic<std::uint32_t>& message, std::uint32_t value) {
    futex_wait::Enter(bell);
    bool is_there = false;
    for (const Deadline deadline = Deadline::After(std::chrono::seconds(60));;) {
      const std::uint32_t seen = bell.value.load();
      is_there = message.load() == value;
      if (is_there || deadline.Passed()) break;
      futex_wait::Sleep(bell, seen, deadline);
    }
    futex_wait::Leave(bell);
    return is_there;
  };
  std::thread peer([&] {
    for (std::uint32_t i = 1; i <= kRounds; ++i) {
      if (!wait(there, i)) return;
      back.store(i, std::memory_order_release);
      RingSleepers(bell);
    }
  });
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint32_t i = 1; i <= kRounds; ++i) {
    there.store(i, std::memory_order_release);
    RingSleepers(bell);
    ASSERT_TRUE(wait(back, i)) << "a ring was lost";
  }
  peer.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(50));
}

// In microseconds, of this thread.
std::int64_t ProcessorTime() {
  rusage use{};
  getrusage(RUSAGE_THREAD, &use);
  return (use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1'000'000 + use.ru_utime.tv_usec +
         use.ru_stime.tv_usec;
}

TEST(FutexWaitTest, ALongWaitTakesNoProcessorTime) {
  // What a machine that others share takes from a thread may be counted as the thread's: not each
  // time.
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < 5 && least >= 3'000; ++i) {
    FutexWord word{};
    const std::int64_t before = ProcessorTime();
    EXPECT_FALSE(WaitWhile(word, 0, Deadline::After(milliseconds(300))));
    least = std::min(least, ProcessorTime() - before);
  }
  EXPECT_LT(least, 3'000);
}

}  // namespace
}  // namespace keel
