#include "task/porter.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <numeric>
#include <random>

#include "base/soon_test.h"
#include "task/blocked_memory_test.h"

namespace keel::task {
namespace {

std::vector<std::byte> Bytes(std::size_t size, unsigned seed) {
  std::vector<std::byte> bytes(size);
  std::mt19937 random(seed);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

TEST(PorterTest, BringsEverythingInOrderAndTellsOfEach) {
  std::atomic<int> told{0};
  Porter porter([&] { ++told; });
  const std::size_t sizes[] = {1, 100, Porter::kPiece, Porter::kPiece + 1, 3 * Porter::kPiece - 1};
  std::vector<std::vector<std::byte>> from;
  std::vector<std::vector<std::byte>> to;
  for (unsigned i = 0; i < std::size(sizes); ++i) {
    from.push_back(Bytes(sizes[i], i));
    to.emplace_back(sizes[i]);
  }
  // Each delivery has two loads: one of these, and a byte.
  std::vector<std::byte> last(std::size(sizes));
  const std::byte one{1};
  std::uint64_t number = 0;
  for (unsigned i = 0; i < std::size(sizes); ++i) {
    number = porter.Carry({{to[i].data(), from[i].data(), sizes[i]}, {&last[i], &one, 1}});
    EXPECT_EQ(number, i + 1);
  }
  ASSERT_TRUE(Soon([&] { return porter.Arrived(number); }));
  EXPECT_EQ(to, from);
  EXPECT_EQ(last, std::vector<std::byte>(std::size(sizes), one));
  EXPECT_TRUE(Soon([&] { return told == static_cast<int>(std::size(sizes)); }));
}

TEST(PorterTest, WhatIsOnItsWayHasNotArrived) {
  Porter porter([] {});
  BlockedMemory source(2 * Porter::kPiece);
  std::vector<std::byte> to(2 * Porter::kPiece);
  const std::uint64_t number =
      porter.Carry({{to.data(), source.As<std::byte>().data(), to.size()}});
  ASSERT_TRUE(source.AwaitTouched());
  EXPECT_FALSE(porter.Arrived(number));
  source.Release();
  porter.Finish();
  EXPECT_TRUE(porter.Arrived(number));
}

// Both sides are unmapped as soon as it says that nobody touches them.
TEST(PorterTest, WhatIsDroppedIsTouchedNoMore) {
  Porter porter([] {});
  std::mt19937 random(5);
  constexpr std::size_t kSize = 16 * Porter::kPiece;
  for (int round = 0; round < 50; ++round) {
    const auto map = [] {
      return static_cast<std::byte*>(mmap(nullptr, kSize, PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    };
    std::byte* const from = map();
    std::byte* const to = map();
    for (int i = 0; i < 3; ++i) porter.Carry({{to, from, kSize}});
    // For some time, and no two rounds alike.
    for (auto spins = random() % 20'000; spins > 0; --spins) {
      std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    porter.Drop();
    munmap(from, kSize);
    munmap(to, kSize);
  }
  const std::byte one{1};
  std::byte to{0};
  const std::uint64_t number = porter.Carry({{&to, &one, 1}});
  EXPECT_EQ(number, 151U);
  porter.Finish();
  EXPECT_TRUE(porter.Arrived(number));
  EXPECT_EQ(to, one);
}

TEST(PorterTest, ItsEndBringsWhatIsLeft) {
  const std::vector<std::byte> from = Bytes(4 * Porter::kPiece, 9);
  std::vector<std::byte> to(from.size());
  {
    Porter porter([] {});
    porter.Carry({{to.data(), from.data(), from.size()}});
  }
  EXPECT_EQ(to, from);
}

}  // namespace
}  // namespace keel::task
