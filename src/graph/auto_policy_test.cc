#include "graph/auto_policy.h"

#include <gtest/gtest.h>

#include <array>

namespace keel::graph {
namespace {

// One dynamic binding of 1000 bytes that two commands read, and one that is always copied. Patching
// it in every step costs 2 us, copying it `copied_us`.
class AutoPolicyTest : public ::testing::Test {
 protected:
  static Layout MakeLayout() {
    Layout layout;
    layout.bindings.resize(2);
    layout.bindings[0].policy = Policy::kPatch;
    layout.bindings[0].direct = Policy::kPatch;
    layout.bindings[0].dynamic = true;
    layout.bindings[0].in = true;
    layout.bindings[0].size = Bytes(1000);
    layout.bindings[0].explicit_uses = {0, 1};
    layout.bindings[1].policy = Policy::kCopy;
    layout.dynamic = 1;
    return layout;
  }
  static AutoPolicy Make(double copied_us) {
    return {MakeLayout(), {.patch_us = 1, .copy_bytes_per_us = 1000 / copied_us}};
  }
  static bool Patched(AutoPolicy& policy, std::uint64_t step) {
    return !policy.Patched(std::array<std::uint32_t, 1>{0}, step).empty();
  }
  // Steps from..to, the binding patched in every one; the step that changed it, or 0.
  static std::uint64_t Churn(AutoPolicy& policy, std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t step = from; step <= to; ++step) {
      if (Patched(policy, step)) return step;
    }
    return 0;
  }
  // Looks as steps do; the step that changed it, or 0.
  static std::uint64_t Rest(AutoPolicy& policy, std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t step = from; step <= to; ++step) {
      if (policy.ShouldSettle(step) && !policy.Settle(step).empty()) return step;
    }
    return 0;
  }
};

TEST_F(AutoPolicyTest, BeginsPatchedAndLeavesOtherBindingsAlone) {
  AutoPolicy policy = Make(0.1);
  EXPECT_EQ(policy.at(0), Policy::kPatch);
  EXPECT_EQ(policy.at(1), Policy::kCopy);
  EXPECT_EQ(Rest(policy, 1, 100'000), 0u);
  EXPECT_EQ(policy.at(1), Policy::kCopy);
}

TEST_F(AutoPolicyTest, CopiesWhatMovesInEveryStepIfThatIsCheaper) {
  AutoPolicy policy = Make(1.9);
  const std::uint64_t changed = Churn(policy, 1, 100);
  EXPECT_GE(changed, 4u) << "on too little evidence";
  EXPECT_LE(changed, 16u);
  EXPECT_EQ(policy.at(0), Policy::kCopy);
}

TEST_F(AutoPolicyTest, PatchesOnIfCopyingIsDearer) {
  AutoPolicy policy = Make(2.1);
  EXPECT_EQ(Churn(policy, 1, 100'000), 0u);
  EXPECT_EQ(policy.at(0), Policy::kPatch);
}

TEST_F(AutoPolicyTest, PatchesOnIfItMovesSeldom) {
  AutoPolicy policy = Make(0.5);
  // Every eighth step: 0.25 us a step, and the copies would be 0.5.
  for (std::uint64_t step = 8; step < 10'000; step += 8) EXPECT_FALSE(Patched(policy, step));
}

TEST_F(AutoPolicyTest, PatchesAgainWhatHasSettled) {
  AutoPolicy policy = Make(0.5);
  const std::uint64_t copied = Churn(policy, 1, 100);
  ASSERT_NE(copied, 0u);
  const std::uint64_t settled = Rest(policy, copied + 1, copied + 10'000);
  EXPECT_NE(settled, 0u);
  EXPECT_EQ(policy.at(0), Policy::kPatch);
}

TEST_F(AutoPolicyTest, DoesNotSettleWhatStillMoves) {
  AutoPolicy policy = Make(0.5);
  const std::uint64_t copied = Churn(policy, 1, 100);
  for (std::uint64_t step = copied + 1; step < 10'000; ++step) {
    policy.Rebound(std::array<std::uint32_t, 1>{0});
    if (policy.ShouldSettle(step)) {
      EXPECT_TRUE(policy.Settle(step).empty());
    }
  }
}

TEST_F(AutoPolicyTest, EachChangeTakesLongerThanTheOneBeforeAndThereIsALast) {
  AutoPolicy policy = Make(0.5);
  std::uint64_t step = 0;
  std::uint64_t last_churn = 0;
  std::uint64_t last_rest = 0;
  int changes = 0;
  while (changes < 20) {
    const std::uint64_t copied = Churn(policy, step + 1, step + 1'000'000);
    if (copied == 0) break;
    EXPECT_GT(copied - step, last_churn);
    last_churn = copied - step;
    step = copied;
    ++changes;
    const std::uint64_t settled = Rest(policy, step + 1, step + 1'000'000);
    if (settled == 0) break;
    EXPECT_GT(settled - step, last_rest);
    last_rest = settled - step;
    step = settled;
    ++changes;
  }
  EXPECT_EQ(changes, 6);
}

// Steps of several threads are judged in any order.
TEST_F(AutoPolicyTest, ALateStepDoesNotUndoWhatALaterOneChose) {
  AutoPolicy policy = Make(0.5);
  for (std::uint64_t step = 505; step <= 512; ++step) (void)Patched(policy, step);
  ASSERT_EQ(policy.at(0), Policy::kPatch) << "eight moves in 512 steps";
  const std::uint64_t copied = Churn(policy, 513, 600);
  ASSERT_NE(copied, 0u);
  EXPECT_TRUE(policy.Settle(512).empty());
  EXPECT_EQ(policy.at(0), Policy::kCopy);
}

}  // namespace
}  // namespace keel::graph
