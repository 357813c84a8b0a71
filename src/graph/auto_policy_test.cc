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
    return !policy.Patched(std::array<std::uint32_t, 1>{0}, 2, step).empty();
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

// What a step rewrote that failed, its second try finds rewritten.
TEST_F(AutoPolicyTest, AStepThatIsTriedAgainDoesNotSeemToCostNothing) {
  AutoPolicy policy = Make(0.1);
  ASSERT_EQ(Churn(policy, 1, 7), 0u);
  EXPECT_FALSE(policy.Patched(std::array<std::uint32_t, 1>{0}, 0, 8).empty());
}

// Copying costs 1.5 us: less than rewriting both commands, more than half of that.
TEST_F(AutoPolicyTest, CommandsThatAreSharedCostEachBindingItsPart) {
  Layout layout = MakeLayout();
  layout.bindings.push_back(layout.bindings[0]);
  layout.dynamic = 2;
  const PrimitiveCosts costs{.patch_us = 1, .copy_bytes_per_us = 1000 / 1.5};
  const std::array<std::uint32_t, 2> both{0, 2};
  AutoPolicy shared(layout, costs);
  AutoPolicy apart(layout, costs);
  for (std::uint64_t step = 1; step <= 100; ++step) {
    EXPECT_TRUE(shared.Patched(both, 2, step).empty()) << step;
    (void)apart.Patched(both, 4, step);
  }
  EXPECT_EQ(shared.at(0), Policy::kPatch);
  EXPECT_EQ(apart.at(0), Policy::kCopy);
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
    EXPECT_TRUE(policy.Rebound(std::array<std::uint32_t, 1>{0}, step).empty());
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

// --- What the copies' kernels cost is shared -----------------------------------------------------

// `many` dynamic bindings that a command each reads: patching one costs 1 us, copying it 0.1, and
// the kernels 10.
class SharedCostTest : public ::testing::Test {
 protected:
  static Layout MakeLayout(std::size_t many) {
    Layout layout;
    layout.bindings.resize(many);
    for (BindingLayout& binding : layout.bindings) {
      binding.policy = binding.direct = Policy::kPatch;
      binding.dynamic = true;
      binding.in = true;
      binding.size = Bytes(100);
      binding.explicit_uses = {0};
    }
    layout.dynamic = static_cast<std::uint32_t>(many);
    return layout;
  }
  static constexpr PrimitiveCosts kCosts{
      .patch_us = 1, .copy_bytes_per_us = 1000, .copy_step_us = 10};
  static std::vector<std::uint32_t> First(std::uint32_t count) {
    std::vector<std::uint32_t> bindings(count);
    for (std::uint32_t i = 0; i < count; ++i) bindings[i] = i;
    return bindings;
  }
  static std::vector<std::uint32_t> BindingsOf(const AutoPolicy::Choices& choices) {
    std::vector<std::uint32_t> bindings;
    for (const auto& choice : choices) bindings.push_back(choice.binding);
    return bindings;
  }
};

TEST_F(SharedCostTest, AFewThatChurnAreNotWorthTheKernels) {
  AutoPolicy policy(MakeLayout(32), kCosts);
  for (std::uint64_t step = 1; step < 1000; ++step) {
    EXPECT_TRUE(policy.Patched(First(11), 1000, step).empty());
  }
}

TEST_F(SharedCostTest, ManyThatChurnAreCopiedTogether) {
  AutoPolicy policy(MakeLayout(32), kCosts);
  AutoPolicy::Choices changed;
  std::uint64_t step = 0;
  while (changed.empty() && step < 100) changed = policy.Patched(First(12), 1000, ++step);
  EXPECT_EQ(BindingsOf(changed), First(12));
  EXPECT_EQ(policy.at(0), Policy::kCopy);
  EXPECT_EQ(policy.at(12), Policy::kPatch) << "it never moved";
  // The kernels are there now: one more is judged by itself.
  changed.clear();
  while (changed.empty() && step < 200) {
    changed = policy.Patched(std::array<std::uint32_t, 1>{20}, 1000, ++step);
  }
  EXPECT_EQ(changed, (AutoPolicy::Choices{{20, Reason::kChurns}}));
}

TEST_F(SharedCostTest, TheLastOnesTakeTheKernelsWithThem) {
  AutoPolicy policy(MakeLayout(32), kCosts);
  std::uint64_t step = 0;
  while (policy.at(0) != Policy::kCopy && step < 100) (void)policy.Patched(First(12), 1000, ++step);
  ASSERT_EQ(policy.at(11), Policy::kCopy);
  // Every sixteenth step: 0.06 us to patch or 0.1 to copy one; all of them are not worth 10.
  std::size_t settled = 0;
  for (; step < 10'000 && settled == 0; ++step) {
    if (step % 16 == 0) (void)policy.Rebound(First(12), step);
    if (policy.ShouldSettle(step)) settled = policy.Settle(step).size();
  }
  EXPECT_EQ(settled, 12u);
}

// What goes anyway does not pay for what still moves.
TEST_F(SharedCostTest, WhatMovesStaysCopiedWhenOthersSettle) {
  Layout layout = MakeLayout(12);
  layout.bindings[0].size = Bytes(100'000);  // 100 us to copy, 200 to patch
  layout.bindings[0].explicit_uses.resize(200);
  for (std::size_t i = 1; i < 12; ++i) layout.bindings[i].explicit_uses = {0, 1, 2};
  AutoPolicy policy(layout, {.patch_us = 1, .copy_bytes_per_us = 1000, .copy_step_us = 1});
  std::uint64_t step = 0;
  while (policy.at(0) != Policy::kCopy && step < 100) (void)policy.Patched(First(12), 1000, ++step);
  ASSERT_EQ(policy.at(0), Policy::kCopy);
  ASSERT_EQ(policy.at(11), Policy::kCopy);
  std::vector<std::uint32_t> small = First(12);
  small.erase(small.begin());
  std::vector<std::uint32_t> settled;
  for (; step < 20'000; ++step) {
    (void)policy.Rebound(small, step);  // in every step; the large one stays where it is
    if (!policy.ShouldSettle(step)) continue;
    const std::vector<std::uint32_t> these = BindingsOf(policy.Settle(step));
    settled.insert(settled.end(), these.begin(), these.end());
  }
  EXPECT_EQ(settled, First(1));
}

// --- What a library uses -------------------------------------------------------------------------

class TracedPolicyTest : public ::testing::Test {
 protected:
  // A binding that one traced command reads; copying it costs 1 us, and tracing 50 until that is
  // known better.
  static AutoPolicy Make() {
    Layout layout;
    layout.bindings.resize(1);
    BindingLayout& binding = layout.bindings[0];
    binding.policy = Policy::kCopy;
    binding.direct = Policy::kRetrace;
    binding.dynamic = true;
    binding.in = true;
    binding.size = Bytes(1000);
    binding.traced_uses = {0};
    layout.dynamic = 1;
    return {layout, {.copy_bytes_per_us = 1000, .trace_us = 50}};
  }
  static std::uint64_t Settled(AutoPolicy& policy, std::uint64_t moves_every, std::uint64_t from) {
    for (std::uint64_t step = from; step < from + 5000; ++step) {
      if (moves_every != 0 && step % moves_every == 0) {
        (void)policy.Rebound(std::array<std::uint32_t, 1>{0}, step);
      }
      if (policy.ShouldSettle(step) && !policy.Settle(step).empty()) return step;
    }
    return 0;
  }
};

TEST_F(TracedPolicyTest, BeginsCopiedAndIsTracedOnceItIsSeenToStay) {
  AutoPolicy policy = Make();
  EXPECT_EQ(policy.at(0), Policy::kCopy);
  const std::uint64_t settled = Settled(policy, 0, 1);
  EXPECT_GT(settled, 16u);
  EXPECT_LE(settled, 64u);
  EXPECT_EQ(policy.at(0), Policy::kRetrace);
}

TEST_F(TracedPolicyTest, WhatMovesStaysCopied) {
  AutoPolicy policy = Make();
  EXPECT_EQ(Settled(policy, 20, 1), 0u) << "2.5 us a step to trace, 1 to copy";
}

TEST_F(TracedPolicyTest, ReckonsWithWhatTracingTook) {
  AutoPolicy policy = Make();
  for (int i = 0; i < 50; ++i) policy.TraceTook(2);
  EXPECT_NE(Settled(policy, 20, 1), 0u) << "0.1 us a step to trace";
}

TEST_F(TracedPolicyTest, IsCopiedAgainWhenItMovesAgain) {
  AutoPolicy policy = Make();
  std::uint64_t step = Settled(policy, 0, 1);
  ASSERT_NE(step, 0u);
  bool changed = false;
  for (int i = 0; i < 100 && !changed; ++i) {
    changed = !policy.Patched(std::array<std::uint32_t, 1>{0}, 1000, ++step).empty();
  }
  EXPECT_TRUE(changed);
  EXPECT_EQ(policy.at(0), Policy::kCopy);
}

// --- What brings its memory ----------------------------------------------------------------------

// Patching the binding in every step costs 2 us, copying it 1.9, and mapping it `remapped_us`.
class RemapPolicyTest : public AutoPolicyTest {
 protected:
  static constexpr std::array<std::uint32_t, 1> kFirst{0};
  static AutoPolicy Make(double remapped_us, double copied_us = 1.9) {
    return {MakeLayout(),
            {.patch_us = 1, .copy_bytes_per_us = 1000 / copied_us, .remap_us = remapped_us}};
  }
  static AutoPolicy::Choices UntilChanged(AutoPolicy& policy, std::uint64_t& step) {
    AutoPolicy::Choices changed;
    for (const std::uint64_t end = step + 1000; changed.empty() && step < end;) {
      ++step;
      changed = policy.at(0) == Policy::kPatch ? policy.Patched(kFirst, 2, step)
                                               : policy.Rebound(kFirst, step);
    }
    return changed;
  }
};

TEST_F(RemapPolicyTest, RemapsWhatMovesInEveryStepIfThatIsCheapest) {
  AutoPolicy policy = Make(1.8);
  policy.SetMappable(0, true);
  EXPECT_FALSE(policy.remaps());
  std::uint64_t step = 0;
  EXPECT_EQ(UntilChanged(policy, step), (AutoPolicy::Choices{{0, Reason::kMappable}}));
  EXPECT_EQ(policy.at(0), Policy::kRemap);
  EXPECT_TRUE(policy.remaps());
  // And stays so, whether it moves or not.
  EXPECT_EQ(UntilChanged(policy, step), AutoPolicy::Choices{});
  EXPECT_EQ(Rest(policy, step, step + 10'000), 0U);
}

TEST_F(RemapPolicyTest, CopiesIfThatIsCheaperOrThereIsNoMemory) {
  AutoPolicy dear = Make(1.95);
  dear.SetMappable(0, true);
  AutoPolicy none = Make(0.1);
  for (AutoPolicy* const policy : {&dear, &none}) {
    std::uint64_t step = 0;
    EXPECT_EQ(UntilChanged(*policy, step), (AutoPolicy::Choices{{0, Reason::kChurns}}));
    EXPECT_EQ(policy->at(0), Policy::kCopy);
    EXPECT_FALSE(policy->remaps());
  }
}

// Copying by itself would be cheapest, but not with its kernels.
TEST_F(RemapPolicyTest, RemapsWhatIsNotWorthTheCopiesKernels) {
  const PrimitiveCosts costs{
      .patch_us = 1, .copy_bytes_per_us = 10'000, .copy_step_us = 10, .remap_us = 1};
  Layout alone = MakeLayout();
  alone.bindings.resize(1);
  AutoPolicy with_kernels(MakeLayout(), costs);  // another binding is always copied
  AutoPolicy without(alone, costs);
  for (AutoPolicy* const policy : {&with_kernels, &without}) {
    policy->SetMappable(0, true);
    std::uint64_t step = 0;
    const Reason reason = policy == &without ? Reason::kMappable : Reason::kChurns;
    EXPECT_EQ(UntilChanged(*policy, step), (AutoPolicy::Choices{{0, reason}}));
  }
}

TEST_F(RemapPolicyTest, GivesUpWhatTakesLongerThanItWasWorth) {
  for (const double copied_us : {1.0, 100.0}) {
    AutoPolicy policy = Make(0.5, copied_us);
    policy.SetMappable(0, true);
    std::uint64_t step = 0;
    ASSERT_EQ(UntilChanged(policy, step), (AutoPolicy::Choices{{0, Reason::kMappable}}));
    for (int i = 0; i < 20; ++i) policy.RemapTook(0, 50);  // whoever maps waits
    EXPECT_EQ(UntilChanged(policy, step), (AutoPolicy::Choices{{0, Reason::kMappingDear}}));
    EXPECT_EQ(policy.at(0), copied_us < 2 ? Policy::kCopy : Policy::kPatch);
    EXPECT_FALSE(policy.remaps());
  }
}

TEST_F(RemapPolicyTest, IsPatchedAgainWithoutMemory) {
  AutoPolicy policy = Make(0.5);
  policy.SetMappable(0, true);
  std::uint64_t step = 0;
  ASSERT_EQ(UntilChanged(policy, step), (AutoPolicy::Choices{{0, Reason::kMappable}}));
  policy.SetMappable(0, false);
  EXPECT_EQ(policy.Patched(kFirst, 2, ++step), (AutoPolicy::Choices{{0, Reason::kNoMemory}}));
  EXPECT_EQ(policy.at(0), Policy::kPatch);
}

// Its step had begun before another thread's was judged.
TEST_F(RemapPolicyTest, AStepThatWasPatchedBeforeTheChoiceDoesNotUndoIt) {
  AutoPolicy policy = Make(0.5);
  policy.SetMappable(0, true);
  std::uint64_t step = 0;
  ASSERT_EQ(UntilChanged(policy, step), (AutoPolicy::Choices{{0, Reason::kMappable}}));
  EXPECT_TRUE(policy.Patched(kFirst, 2, ++step).empty());
  EXPECT_EQ(policy.at(0), Policy::kRemap);
}

// It moves in every sixteenth step: 0.125 us a step to patch, 0.03 to map, 0.3 to copy.
TEST_F(RemapPolicyTest, WhatWasCopiedIsRemappedOnceItBringsMemory) {
  AutoPolicy policy = Make(0.5, 0.3);
  std::uint64_t step = 0;
  ASSERT_EQ(UntilChanged(policy, step), (AutoPolicy::Choices{{0, Reason::kChurns}}));
  policy.SetMappable(0, true);
  AutoPolicy::Choices settled;
  for (; settled.empty() && step < 10'000; ++step) {
    if (step % 16 == 0) (void)policy.Rebound(kFirst, step);
    if (policy.ShouldSettle(step)) settled = policy.Settle(step);
  }
  EXPECT_EQ(settled, (AutoPolicy::Choices{{0, Reason::kMappable}}));
  EXPECT_EQ(policy.at(0), Policy::kRemap);
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
