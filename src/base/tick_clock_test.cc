#include "base/tick_clock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace keel {
namespace {

constexpr std::int64_t kMicrosecond = 1000;

TEST(TickClockTest, TicksAreTimesOfTheMonotonicClock) {
  const TickClock clock;
  std::vector<std::int64_t> before;
  std::vector<std::int64_t> ticks;
  std::vector<std::int64_t> after;
  for (int i = 0; i < 1000; ++i) {
    before.push_back(MonotonicNs());
    ticks.push_back(clock.Ticks());
    after.push_back(MonotonicNs());
  }
  const TickClock::Scale scale = clock.ScaleNow();
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    ASSERT_GE(scale.ToNs(ticks[i]), before[i] - kMicrosecond);
    ASSERT_LE(scale.ToNs(ticks[i]), after[i] + kMicrosecond);
  }
}

TEST(TickClockTest, WhatAnotherThreadReadBeforeIsEarlier) {
  const TickClock clock;
  constexpr int kTurns = 20'000;
  std::atomic<std::int64_t> newest{clock.Ticks()};
  std::atomic<int> backwards{0};
  const auto read = [&] {
    for (int i = 0; i < kTurns; ++i) {
      const std::int64_t seen = newest.load(std::memory_order_acquire);
      const std::int64_t mine = clock.Ticks();
      if (mine < seen) backwards.fetch_add(1);
      newest.store(mine, std::memory_order_release);
    }
  };
  std::thread other(read);
  read();
  other.join();
  EXPECT_EQ(backwards.load(), 0);
}

}  // namespace
}  // namespace keel
