#include "memory/copy_choice.h"

#include <gtest/gtest.h>

namespace keel::memory {
namespace {

using Way = CopyChoice::Way;
using std::chrono::nanoseconds;

// Copies of this size until none is measured any more; how many were.
int Try(CopyChoice& choice, Bytes size, nanoseconds driver, nanoseconds staged) {
  for (int copies = 0; copies < 1000; ++copies) {
    const CopyChoice::Plan plan = choice.For(size);
    if (!plan.measure) return copies;
    // Every third is disturbed.
    const nanoseconds noise(copies % 3 == 0 ? 1'000'000 : 0);
    choice.Measured(size, plan.way, noise + (plan.way == Way::kDriver ? driver : staged));
  }
  return 1000;
}

TEST(CopyChoiceTest, TheFasterWayIsKept) {
  CopyChoice choice(512_KiB, true);
  EXPECT_EQ(choice.For(256_KiB).way, Way::kDriver) << "at first as the threshold says";
  EXPECT_EQ(choice.For(1_MiB).way, Way::kStaged);
  EXPECT_EQ(Try(choice, 512_KiB, nanoseconds(30000), nanoseconds(25000)), 10);
  EXPECT_EQ(choice.For(512_KiB).way, Way::kStaged);
  EXPECT_EQ(choice.For(1023_KiB).way, Way::kStaged) << "of the same power of two";
  EXPECT_TRUE(choice.For(1_MiB).measure) << "and no other";
  EXPECT_EQ(Try(choice, 1_MiB, nanoseconds(80000), nanoseconds(90000)), 10);
  EXPECT_EQ(choice.For(1_MiB).way, Way::kDriver);
  EXPECT_EQ(Try(choice, 2_MiB, nanoseconds(160000), nanoseconds(90000)), 10);
  EXPECT_EQ(choice.For(2_MiB).way, Way::kStaged);
  EXPECT_EQ(choice.measured(), 30U);
  EXPECT_EQ(choice.overruled(), 1U);
}

TEST(CopyChoiceTest, ACopyThatWasNotTimedDoesNotCount) {
  CopyChoice choice(512_KiB, true);
  for (int copies = 0; copies < 100; ++copies) {
    EXPECT_TRUE(choice.For(1_MiB).measure);
    EXPECT_EQ(choice.For(1_MiB).way, Way::kStaged);
  }
  EXPECT_EQ(choice.measured(), 0U);
}

TEST(CopyChoiceTest, BelowTheThresholdAndFarAboveItNothingIsMeasured) {
  CopyChoice choice(512_KiB, true);
  for (const Bytes size : {0_B, 4_KiB, 512_KiB - 1_B}) {
    EXPECT_FALSE(choice.For(size).measure);
    EXPECT_EQ(choice.For(size).way, Way::kDriver);
  }
  for (const Bytes size : {CopyChoice::kMost, 256_MiB}) {
    EXPECT_FALSE(choice.For(size).measure);
    EXPECT_EQ(choice.For(size).way, Way::kStaged);
  }
  for (const Bytes size : {512_KiB, CopyChoice::kMost - 1_B}) {
    EXPECT_TRUE(choice.For(size).measure);
  }
}

TEST(CopyChoiceTest, OneThatDoesNotMeasureGoesByTheThreshold) {
  CopyChoice choice(512_KiB, false);
  EXPECT_EQ(choice.For(512_KiB - 1_B).way, Way::kDriver);
  EXPECT_EQ(choice.For(512_KiB).way, Way::kStaged);
  EXPECT_FALSE(choice.For(512_KiB).measure);
}

}  // namespace
}  // namespace keel::memory
