#include "drivers/shared/pinned_ranges.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <thread>

namespace keel::vendor {
namespace {

constexpr hal::DeviceId kOne{1};
constexpr hal::DeviceId kTwo{2};

class PinnedRangesTest : public ::testing::Test {
 protected:
  std::byte* At(std::size_t offset) { return bytes_.data() + offset; }

  std::array<std::byte, 256> bytes_{};
  PinnedRanges ranges_;
};

TEST_F(PinnedRangesTest, HasWhatLiesInOneRange) {
  EXPECT_FALSE(ranges_.Has(At(0), Bytes(1)));
  ranges_.Add(kOne, At(64), Bytes(64));
  ranges_.Add(kOne, At(128), Bytes(32));  // a neighbour
  EXPECT_TRUE(ranges_.Has(At(64), Bytes(64)));
  EXPECT_TRUE(ranges_.Has(At(100), Bytes(28)));
  EXPECT_TRUE(ranges_.Has(At(159), Bytes(1)));
  EXPECT_FALSE(ranges_.Has(At(63), Bytes(2)));
  EXPECT_FALSE(ranges_.Has(At(100), Bytes(29))) << "over the border of two";
  EXPECT_FALSE(ranges_.Has(At(159), Bytes(2)));
  EXPECT_FALSE(ranges_.Has(At(100), Bytes(~std::uint64_t{0}))) << "over the end of all addresses";
}

TEST_F(PinnedRangesTest, WhatAThreadRemembersGoesWithTheRange) {
  ranges_.Add(kOne, At(64), Bytes(64));
  ASSERT_TRUE(ranges_.Has(At(64), Bytes(8)));
  std::thread other([&] {
    const PinnedRanges::Range taken = ranges_.Take(At(64));
    EXPECT_EQ(taken.size, Bytes(64));
    EXPECT_EQ(taken.owner, kOne);
  });
  other.join();
  EXPECT_FALSE(ranges_.Has(At(64), Bytes(8)));
  EXPECT_EQ(ranges_.Take(At(64)).size, Bytes(0));
}

TEST_F(PinnedRangesTest, ADevicesRangesGoWithIt) {
  ranges_.Add(kOne, At(0), Bytes(64));
  ranges_.Add(kTwo, At(64), Bytes(64));
  ASSERT_TRUE(ranges_.Has(At(0), Bytes(64)));
  ranges_.Forget(kOne);
  EXPECT_FALSE(ranges_.Has(At(0), Bytes(64)));
  EXPECT_TRUE(ranges_.Has(At(64), Bytes(64)));
}

TEST_F(PinnedRangesTest, OneDoesNotAnswerForAnother) {
  ranges_.Add(kOne, At(0), Bytes(64));
  ASSERT_TRUE(ranges_.Has(At(0), Bytes(64)));
  // Also not for one that comes to lie where another was.
  std::optional<PinnedRanges> next(std::in_place);
  next->Add(kOne, At(0), Bytes(64));
  ASSERT_TRUE(next->Has(At(0), Bytes(64)));
  next.emplace();
  EXPECT_FALSE(next->Has(At(0), Bytes(64)));
}

}  // namespace
}  // namespace keel::vendor
