#include "memory/garbage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace keel::memory {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(GarbageTest, WhatIsAtLeastAsOldAsTheAverageGoesFirst) {
  const Garbage all[] = {{10, 1}, {10, 9}, {10, 2}, {10, 8}};  // on average 5
  EXPECT_THAT(ChooseGarbage(all, 1), ElementsAre(1, 3));
  EXPECT_THAT(ChooseGarbage(all, 20), ElementsAre(1, 3));
  // And again, by the average of the rest.
  EXPECT_THAT(ChooseGarbage(all, 21), ElementsAre(1, 2, 3));
  EXPECT_THAT(ChooseGarbage(all, 31), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(ChooseGarbage(all, 1000), ElementsAre(0, 1, 2, 3));
}

TEST(GarbageTest, NothingGoesThatNeedNot) {
  const Garbage all[] = {{10, 5}, {10, 5}};
  EXPECT_THAT(ChooseGarbage(all, 0), IsEmpty());
  EXPECT_THAT(ChooseGarbage({}, 100), IsEmpty());
  EXPECT_THAT(ChooseGarbage(all, 1), ElementsAre(0, 1));
}

TEST(GarbageTest, AgesMayBeAsLargeAsTheyGet) {
  constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max();
  const Garbage all[] = {{10, kMost}, {10, kMost - 1}, {10, kMost}, {10, 0}};
  EXPECT_THAT(ChooseGarbage(all, 1), ElementsAre(0, 1, 2));
}

}  // namespace
}  // namespace keel::memory
