#include "drivers/sim/interval_allocator.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace keel::sim {
namespace {

TEST(IntervalAllocatorTest, TakesTheSmallestIntervalThatFits) {
  IntervalAllocator free(0, 1000);
  ASSERT_EQ(free.Allocate(1000, 1), 0u);
  free.Free(100, 300);
  free.Free(600, 50);
  EXPECT_EQ(free.Allocate(40, 1), 600u);
  EXPECT_EQ(free.Allocate(40, 1), 100u);
}

TEST(IntervalAllocatorTest, AlignsAndKeepsWhatLiesBefore) {
  IntervalAllocator free(100, 1000);
  EXPECT_EQ(free.Allocate(64, 256), 256u);
  EXPECT_EQ(free.Allocate(156, 1), 100u);
  EXPECT_EQ(free.Allocate(1000, 1), std::nullopt);
}

TEST(IntervalAllocatorTest, AllocateAtTakesExactlyThatOrNothing) {
  IntervalAllocator free(0, 100);
  EXPECT_TRUE(free.AllocateAt(40, 20));
  EXPECT_FALSE(free.AllocateAt(50, 5));
  EXPECT_FALSE(free.AllocateAt(30, 20));
  EXPECT_FALSE(free.AllocateAt(90, 20));
  EXPECT_TRUE(free.AllocateAt(30, 10));
  EXPECT_TRUE(free.AllocateAt(60, 40));
}

TEST(IntervalAllocatorTest, AgreesWithAByteMapOverRandomOperations) {
  constexpr std::uint64_t kSize = 512;
  IntervalAllocator free(0, kSize);
  std::vector<bool> taken(kSize);
  std::map<std::uint64_t, std::uint64_t> live;
  std::mt19937 random(7);
  for (int step = 0; step < 20'000; ++step) {
    if (!live.empty() && random() % 2 == 0) {
      auto victim = std::next(live.begin(), static_cast<long>(random() % live.size()));
      free.Free(victim->first, victim->second);
      for (std::uint64_t i = 0; i < victim->second; ++i) taken[victim->first + i] = false;
      live.erase(victim);
      continue;
    }
    const std::uint64_t size = 1 + random() % 64;
    const auto at = free.Allocate(size, 1);
    std::uint64_t longest = 0, run = 0;
    for (const bool used : taken) longest = std::max(longest, run = used ? 0 : run + 1);
    ASSERT_EQ(at.has_value(), longest >= size) << "step " << step;
    if (!at) continue;
    for (std::uint64_t i = 0; i < size; ++i) {
      ASSERT_FALSE(taken[*at + i]) << "step " << step;
      taken[*at + i] = true;
    }
    live.emplace(*at, size);
  }
  for (const auto& [start, size] : live) free.Free(start, size);
  EXPECT_EQ(free.Allocate(kSize, 1), 0u) << "free intervals were not merged";
}

}  // namespace
}  // namespace keel::sim
