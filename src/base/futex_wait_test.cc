#include "base/futex_wait.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
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

TEST(FutexWaitTest, ALongWaitTakesNoProcessorTime) {
  FutexWord word{};
  rusage before{};
  rusage after{};
  getrusage(RUSAGE_THREAD, &before);
  EXPECT_FALSE(WaitWhile(word, 0, Deadline::After(milliseconds(300))));
  getrusage(RUSAGE_THREAD, &after);
  const auto micros = [](const rusage& use) {
    return (use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1'000'000 + use.ru_utime.tv_usec +
           use.ru_stime.tv_usec;
  };
  EXPECT_LT(micros(after) - micros(before), 3'000);
}

}  // namespace
}  // namespace keel
