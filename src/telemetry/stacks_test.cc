#include "keel/telemetry/stacks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace keel::telemetry {

// Visible from outside, so that its name is known.
[[gnu::noinline]] StackId CaptureInAFunctionWithAName(std::size_t skip) {
  const StackId id = CaptureStack(skip);
  asm volatile("");  // no tail call
  return id;
}

namespace {

using ::testing::HasSubstr;

TEST(StacksTest, TheInnermostFrameIsTheCaller) {
  const std::vector<Frame> frames = ReadStack(CaptureInAFunctionWithAName(0));
  ASSERT_GT(frames.size(), 1U);
  EXPECT_THAT(frames[0].function,
              HasSubstr("keel::telemetry::CaptureInAFunctionWithAName(unsigned long)"));
  EXPECT_THAT(frames[0].object, HasSubstr("telemetry_test"));
  EXPECT_NE(frames[0].offset, 0U);
  const std::vector<Frame> without = ReadStack(CaptureInAFunctionWithAName(1));
  ASSERT_FALSE(without.empty());
  EXPECT_THAT(without[0].function, ::testing::Not(HasSubstr("CaptureInAFunctionWithAName")));
}

TEST(StacksTest, EqualStacksShareAnId) {
  std::vector<StackId> ids(3);
  for (StackId& id : ids) id = CaptureInAFunctionWithAName(0);
  EXPECT_EQ(ids[0], ids[1]);
  EXPECT_EQ(ids[1], ids[2]);
  const StackId elsewhere = CaptureInAFunctionWithAName(0);
  EXPECT_NE(elsewhere, ids[0]);
}

TEST(StacksTest, NoStackIsEmpty) {
  EXPECT_TRUE(ReadStack(StackId::kNone).empty());
  EXPECT_TRUE(ReadStack(static_cast<StackId>(4'000'000'000U)).empty());
  EXPECT_EQ(CaptureStack(1000), StackId::kNone);
}

[[gnu::noinline]] StackId CaptureDeep(int depth) {
  const StackId id = depth == 0 ? CaptureStack() : CaptureDeep(depth - 1);
  asm volatile("");
  return id;
}

TEST(StacksTest, AThreadCanNameTheStackItself) {
  EXPECT_EQ(CurrentStack(), StackId::kNone);
  {
    const ScopedStack outer(ForeignStack(7));
    {
      const ScopedStack inner(ForeignStack(8));
      EXPECT_EQ(ForeignNumber(CurrentStack()), 8U);
    }
    EXPECT_EQ(CurrentStack(), ForeignStack(7));
    EXPECT_TRUE(IsForeign(CurrentStack()));
    EXPECT_TRUE(ReadStack(CurrentStack()).empty());
  }
  EXPECT_EQ(CurrentStack(), StackId::kNone);
  EXPECT_FALSE(IsForeign(CaptureStack()));
}

TEST(StacksTest, DeepStacksAreCut) {
  const std::vector<Frame> frames = ReadStack(CaptureDeep(200));
  EXPECT_EQ(frames.size(), kMaxFrames);
}

}  // namespace
}  // namespace keel::telemetry
