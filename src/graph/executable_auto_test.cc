// `auto`: what moves often is copied, what settled is patched, nothing is recorded for it, and
// every change is told.
#include <set>

#include "graph/graph_test.h"
#include "keel/hal/forwarding_device.h"

namespace keel::graph {
namespace {

class AutoTest : public GraphTest {
 protected:
  // Patching a command costs 1 us; copying kSize one way costs `copied_us`.
  static PrimitiveCosts Costs(double copied_us) {
    return {.patch_us = 1, .copy_bytes_per_us = static_cast<double>(kSize.count()) / copied_us};
  }
  std::unique_ptr<Executable> Make(const Adding& adding, double copied_us, int slots = 1) {
    return Need(Executable::Create(adding.program, bench_.memory(),
                                   {.slots = slots, .costs = Costs(copied_us)}));
  }
  // A step whose input `a` is at one of two places, as `moved` says; what it computed is checked.
  ReplayReport Step(Executable& executable, const Adding& adding, bool moved) {
    const auto number = static_cast<float>(++step_);
    if (moved) std::swap(a_, other_a_);
    bench_.Write(a_, Same(number));
    bench_.Write(total_, Same(100));
    ReplayReport report;
    EXPECT_TRUE(IsOk(RunStep(
        executable, bench_.stream(),
        {{adding.a, a_}, {adding.b, b_}, {adding.sum, sum_}, {adding.total, total_}}, &report)));
    EXPECT_EQ(bench_.Read(sum_, 4), Same(number + 10, 4));
    EXPECT_EQ(bench_.Read(total_, 4), Same(100 + 2 * (number + 10), 4));
    EXPECT_EQ(bench_.Read(a_, 4), Same(number, 4));
    return report;
  }

  Buffer a_ = bench_.Filled(0);
  Buffer other_a_ = bench_.Filled(0);
  Buffer b_ = bench_.Filled(10);
  Buffer sum_ = bench_.Filled(0);
  Buffer total_ = bench_.Filled(0);
  int step_ = 0;
};

TEST_F(AutoTest, CopiesWhatChurnsPatchesWhatSettledAndRecordsNothing) {
  const Adding adding = MakeAdding(Policy::kAuto, Policy::kAuto);
  const auto executable = Make(adding, 0.25);
  EXPECT_EQ(executable->policy(adding.a), Policy::kPatch);
  Step(*executable, adding, false);
  bench_.device().ResetCounts();

  int churned = 0;
  while (executable->policy(adding.a) == Policy::kPatch && churned < 100) {
    const ReplayReport report = Step(*executable, adding, true);
    ++churned;
    EXPECT_EQ(Has(report, ActionKind::kChose, Reason::kChurns),
              executable->policy(adding.a) == Policy::kCopy);
  }
  EXPECT_LE(churned, 16);
  EXPECT_EQ(executable->policy(adding.b), Policy::kPatch) << "it never moved";
  EXPECT_EQ(executable->stats().policy_changes, 1u);

  // The first step afterwards aims the commands at the slot; then a move costs a row.
  ReplayReport report = Step(*executable, adding, true);
  EXPECT_EQ(report.copied_in, kSize);
  report = Step(*executable, adding, true);
  EXPECT_EQ(report.patched, 0u);
  EXPECT_EQ(report.rebound, 1u);
  EXPECT_EQ(report.copied_in, kSize);
  EXPECT_EQ(report.copied_out, 0_B) << "an input is not written back";

  int rested = 0;
  bool told = false;
  while (executable->policy(adding.a) == Policy::kCopy && rested < 3000) {
    told = Has(Step(*executable, adding, false), ActionKind::kChose, Reason::kSettled);
    ++rested;
  }
  EXPECT_LT(rested, 3000);
  EXPECT_TRUE(told);
  EXPECT_EQ(executable->stats().policy_changes, 2u);
  report = Step(*executable, adding, false);
  EXPECT_EQ(report.copied_in, 0_B);
  EXPECT_EQ(report.patched, 1u) << "back to the caller's address";
  EXPECT_EQ(Step(*executable, adding, false).actions().size(), 0u);
  EXPECT_EQ(bench_.RecordingCalls(), 0u);
}

TEST_F(AutoTest, PatchesOnWhereCopyingIsDearer) {
  const Adding adding = MakeAdding(Policy::kAuto, Policy::kAuto);
  const auto executable = Make(adding, 50);
  for (int i = 0; i < 100; ++i) {
    const ReplayReport report = Step(*executable, adding, true);
    EXPECT_EQ(report.chosen, 0u);
    EXPECT_EQ(report.copied_in, 0_B);
  }
  EXPECT_EQ(executable->policy(adding.a), Policy::kPatch);
}

TEST_F(AutoTest, AChangeReachesEverySlot) {
  const Adding adding = MakeAdding(Policy::kAuto, Policy::kAuto);
  const auto executable = Make(adding, 0.25, 3);
  for (int i = 0; i < 60; ++i) Step(*executable, adding, true);
  EXPECT_EQ(executable->policy(adding.a), Policy::kCopy);
  for (int i = 0; i < 3; ++i) {
    const ReplayReport report = Step(*executable, adding, true);
    EXPECT_EQ(report.patched, 0u);
    EXPECT_EQ(report.copied_in, kSize);
  }
  EXPECT_EQ(executable->stats().policy_changes, 1u);
}

// Never silently, however much else there is to tell in the step.
TEST_F(AutoTest, AChoiceIsToldAmongManyMoves) {
  constexpr int kMany = 20;
  ProgramBuilder builder("many");
  std::vector<BindingId> in;
  const BindingId out = builder.Bind(
      {.name = "out", .size = kSize, .access = BindingAccess::kOut, .policy = Policy::kInPlace});
  for (int i = 0; i < kMany; ++i) {
    in.push_back(builder.Bind({.name = "in" + std::to_string(i),
                               .size = kSize,
                               .policy = i == 0 ? Policy::kAuto : Policy::kCopy}));
    builder.Copy({out}, {in.back()});
  }
  const auto executable = Need(Executable::Create(Need(std::move(builder).Build()), bench_.memory(),
                                                  {.slots = 1, .costs = Costs(0.25)}));
  const Buffer places[] = {bench_.Filled(1), bench_.Filled(2)};
  int told = 0;
  for (int step = 0; step < 40; ++step) {
    Bound bound;
    for (const BindingId binding : in) bound.emplace_back(binding, places[step % 2]);
    ReplayReport report;
    ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream(), bound, &report)));
    told += Has(report, ActionKind::kChose, Reason::kChurns) ? 1 : 0;
  }
  EXPECT_EQ(told, 1);
  EXPECT_EQ(executable->stats().policy_changes, 1u);
  EXPECT_EQ(executable->policy(in[0]), Policy::kCopy);
}

// All that churn are judged in one step.
TEST_F(AutoTest, EveryChoiceIsToldHoweverManyThereAreInAStep) {
  constexpr std::uint32_t kMany = 20;
  ProgramBuilder builder("many");
  std::vector<BindingId> in;
  const BindingId out = builder.Bind(
      {.name = "out", .size = kSize, .access = BindingAccess::kOut, .policy = Policy::kInPlace});
  for (std::uint32_t i = 0; i < kMany; ++i) {
    in.push_back(builder.Bind({.name = "in" + std::to_string(i), .size = kSize}));
    builder.Copy({out}, {in.back()});
  }
  const auto executable = Need(Executable::Create(Need(std::move(builder).Build()), bench_.memory(),
                                                  {.slots = 1, .costs = Costs(0.25)}));
  const Buffer places[] = {bench_.Filled(1), bench_.Filled(2)};
  std::set<std::uint32_t> told;
  std::uint32_t most = 0;
  for (int step = 0; step < 40; ++step) {
    Bound bound;
    for (const BindingId binding : in) bound.emplace_back(binding, places[step % 2]);
    ReplayReport report;
    ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream(), bound, &report)));
    std::uint32_t choices = 0;
    for (const Action& action : report.actions()) {
      if (action.kind != ActionKind::kChose) continue;
      EXPECT_EQ(action.reason, Reason::kChurns);
      EXPECT_TRUE(told.insert(action.binding).second) << action.binding;
      ++choices;
    }
    EXPECT_EQ(choices, report.chosen);
    most = std::max(most, choices);
  }
  EXPECT_EQ(told.size(), kMany);
  EXPECT_EQ(most, kMany) << "of one step";
  EXPECT_EQ(executable->stats().policy_changes, kMany);
}

TEST_F(AutoTest, OutputsThatAreNotBoundStayInTheSlotAndCanBeHeld) {
  const Adding adding = MakeAdding(Policy::kAuto, Policy::kAuto);
  const auto executable = Make(adding, 0.25, 2);
  for (int step = 0; step < 6; ++step) {
    const auto number = static_cast<float>(step);
    bench_.Write(a_, Same(number));
    Lease lease = Need(executable->Acquire(bench_.stream(), Soon()));
    for (const auto& [binding, buffer] :
         Bound{{adding.a, a_}, {adding.b, b_}, {adding.total, total_}}) {
      ASSERT_TRUE(IsOk(lease.Bind(binding, buffer)));
    }
    const bool bound = step % 3 == 2;
    if (bound) {
      ASSERT_TRUE(IsOk(lease.Bind(adding.sum, sum_)));
    }
    ASSERT_TRUE(IsOk(lease.Launch(Soon())));
    EXPECT_EQ(lease.report().copied_out, 0_B);
    Result<HeldOutput> held = lease.Hold(adding.sum);
    EXPECT_EQ(held.status().code(), bound ? StatusCode::kFailedPrecondition : StatusCode::kOk);
    ASSERT_TRUE(IsOk(lease.Wait(Soon())));
    EXPECT_EQ(bench_.Read(bound ? sum_.address : held->address()), Same(number + 10));
  }
}

// Notes which graphs are launched.
class LaunchNoting : public hal::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  Status LaunchGraph(hal::ExecHandle exec, hal::StreamHandle stream) override {
    launched.insert(exec.value);
    return ForwardingDevice::LaunchGraph(exec, stream);
  }
  std::set<std::uint64_t> launched;
};

// A step that copies nothing runs no kernel that would: it has a graph of its own.
TEST_F(AutoTest, StepsThatCopyNothingHaveAGraphWithoutCopies) {
  const auto device = std::make_shared<LaunchNoting>(bench_.inner());
  const auto memory = Need(memory::DeviceMemory::Create(device, {}));
  const Adding adding = MakeAdding(Policy::kAuto, Policy::kAuto);
  const auto executable =
      Need(Executable::Create(adding.program, memory, {.slots = 1, .costs = Costs(0.25)}));
  const auto graphs_of = [&](int steps, bool moving) {
    device->launched.clear();
    for (int i = 0; i < steps; ++i) Step(*executable, adding, moving);
    return device->launched;
  };
  const std::set<std::uint64_t> resting = graphs_of(4, false);
  EXPECT_EQ(resting.size(), 1u);
  EXPECT_EQ(graphs_of(4, true), resting) << "moves are patched";
  graphs_of(30, true);
  ASSERT_EQ(executable->policy(adding.a), Policy::kCopy);
  const std::set<std::uint64_t> copying = graphs_of(4, true);
  EXPECT_EQ(copying.size(), 1u);
  EXPECT_NE(copying, resting);
  int rested = 0;
  while (executable->policy(adding.a) == Policy::kCopy && rested++ < 3000) {
    Step(*executable, adding, false);
  }
  // What moved meanwhile is patched in the graph that was not used.
  EXPECT_EQ(graphs_of(4, false), resting);
}

// --- What brings its memory
// ------------------------------------------------------------------------

// Two places for the input, of which each brings its memory. Rewriting and copying are dear, and
// mapping is taken to cost `remap_us`, until that is known better.
class RemapAutoTest : public AutoTest {
 protected:
  // So that each finds the input elsewhere when its turn comes.
  static constexpr int kSlots = 3;
  std::unique_ptr<Executable> MakeMapping(const Adding& adding, double others_us, double remap_us) {
    PrimitiveCosts costs = Costs(others_us);
    costs.patch_us = others_us;
    costs.remap_us = remap_us;
    return Need(
        Executable::Create(adding.program, bench_.memory(), {.slots = kSlots, .costs = costs}));
  }
  void PlaceInputs() {
    a_ = one_.buffer;
    other_a_ = other_.buffer;
  }
  Bench::Place one_ = bench_.MakePlace(0);
  Bench::Place other_ = bench_.MakePlace(0);
};

TEST_F(RemapAutoTest, MapsWhatChurnsIfThatIsCheapestAndRecordsNothing) {
  const Adding adding = MakeAdding(Policy::kAuto, Policy::kAuto);
  const auto executable = MakeMapping(adding, 1e6, 1);
  PlaceInputs();
  Step(*executable, adding, false);
  bench_.device().ResetCounts();
  int churned = 0;
  bool told = false;
  while (executable->policy(adding.a) == Policy::kPatch && churned++ < 100) {
    told = Has(Step(*executable, adding, true), ActionKind::kChose, Reason::kMappable);
  }
  EXPECT_LE(churned, 16);
  EXPECT_TRUE(told);
  ASSERT_EQ(executable->policy(adding.a), Policy::kRemap);
  EXPECT_EQ(executable->policy(adding.b), Policy::kPatch) << "it never moved";
  // The commands are aimed at each slot's window once; then a move is a mapping.
  for (int i = 0; i < kSlots; ++i) {
    const ReplayReport report = Step(*executable, adding, true);
    EXPECT_EQ(report.patched, 1U);
    EXPECT_TRUE(Has(report, ActionKind::kPatched, Reason::kMappable));
  }
  for (int i = 0; i < 20; ++i) {
    const ReplayReport report = Step(*executable, adding, true);
    EXPECT_EQ(report.patched, 0U);
    EXPECT_EQ(report.copied_in, 0_B);
    EXPECT_EQ(report.remapped, 1U);
  }
  EXPECT_EQ(bench_.RecordingCalls(), 0U);
}

TEST_F(RemapAutoTest, WithoutMemoryItIsReachedAnotherWayAndTheMemoryIsLetGo) {
  const Adding adding = MakeAdding(Policy::kAuto, Policy::kAuto);
  const auto executable = MakeMapping(adding, 1e6, 1);
  PlaceInputs();
  for (int i = 0; i < 30; ++i) Step(*executable, adding, true);
  ASSERT_EQ(executable->policy(adding.a), Policy::kRemap);
  // Where the memory is seen is an address like any other.
  a_.memory.reset();
  const std::weak_ptr<const hal::PhysicalMemory> other = other_a_.memory;
  const ReplayReport report = Step(*executable, adding, false);
  EXPECT_TRUE(Has(report, ActionKind::kChose, Reason::kNoMemory));
  EXPECT_TRUE(Has(report, ActionKind::kPatched, Reason::kNoMemory));
  EXPECT_EQ(executable->policy(adding.a), Policy::kPatch);
  for (int i = 1; i < kSlots; ++i) Step(*executable, adding, false);
  other_a_ = {};
  one_.buffer.memory.reset();
  other_.buffer.memory.reset();
  EXPECT_TRUE(other.expired());
}

TEST_F(RemapAutoTest, WhatCannotBeMappedFailsOneStepAndIsReachedAnotherWay) {
  const Adding adding = MakeAdding(Policy::kAuto, Policy::kAuto);
  const auto executable = MakeMapping(adding, 1e6, 1);
  PlaceInputs();
  for (int i = 0; i < 30; ++i) Step(*executable, adding, true);
  ASSERT_EQ(executable->policy(adding.a), Policy::kRemap);
  bench_.device().FailNth(hal::Primitive::kMap, 1, InvalidArgument("not this one"));
  std::swap(a_, other_a_);
  ReplayReport report;
  const Status status = RunStep(
      *executable, bench_.stream(),
      {{adding.a, a_}, {adding.b, b_}, {adding.sum, sum_}, {adding.total, total_}}, &report);
  bench_.device().ClearRules();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(Has(report, ActionKind::kChose, Reason::kMappingFailed));
  EXPECT_EQ(executable->policy(adding.a), Policy::kPatch);
  for (int i = 0; i < kSlots; ++i) EXPECT_EQ(Step(*executable, adding, true).remapped, 0U);
}

// Slots that are made again are recorded together, by one step, for what was chosen before.
TEST_F(RemapAutoTest, AChoiceThatAnotherSlotsRecordingLedToIsToldByTheStepThatRecords) {
  const Adding adding = MakeAdding(Policy::kAuto, Policy::kAuto);
  const auto executable = MakeMapping(adding, 1e6, 1);
  PlaceInputs();
  for (int i = 0; i < 30; ++i) Step(*executable, adding, true);
  ASSERT_EQ(executable->policy(adding.a), Policy::kRemap);
  ASSERT_TRUE(IsOk(executable->Close(Soon())));
  bench_.device().ResetCounts();
  EXPECT_EQ(Step(*executable, adding, true).remapped, static_cast<std::uint32_t>(kSlots));
  const std::uint64_t maps = bench_.device().calls(hal::Primitive::kMap);
  ASSERT_TRUE(IsOk(executable->Close(Soon())));
  const std::uint64_t before = executable->stats().policy_changes;
  // The last one, which is another slot's.
  bench_.device().FailNth(hal::Primitive::kMap, maps, InvalidArgument("not this one"));
  const ReplayReport report = Step(*executable, adding, true);
  bench_.device().ClearRules();
  EXPECT_EQ(report.chosen, 1u);
  EXPECT_TRUE(Has(report, ActionKind::kChose, Reason::kMappingFailed));
  EXPECT_EQ(executable->stats().policy_changes, before + 1);
  EXPECT_EQ(executable->policy(adding.a), Policy::kPatch);
}

// As of a peer: an address like any other.
TEST_F(RemapAutoTest, MemoryOfAnotherDeviceIsNotMapped) {
  const auto other_driver = Need(sim::CreateSimDriver({.devices = 1, .memory = 64_MiB}));
  const auto other = Need(other_driver->Open(0));
  const auto memory = std::make_shared<const hal::PhysicalMemory>(
      Need(hal::PhysicalMemory::Create(other, one_.buffer.memory->size())));
  const Adding adding = MakeAdding(Policy::kAuto, Policy::kAuto);
  const auto executable = MakeMapping(adding, 1e6, 1);
  PlaceInputs();
  a_.memory = other_a_.memory = memory;
  for (int i = 0; i < 30; ++i) EXPECT_EQ(Step(*executable, adding, true).remapped, 0U);
  EXPECT_EQ(executable->policy(adding.a), Policy::kPatch);
}

TEST_F(RemapAutoTest, WhatTakesLongerThanItWasWorthIsGivenUp) {
  const Adding adding = MakeAdding(Policy::kAuto, Policy::kAuto);
  const auto executable = MakeMapping(adding, 1e-6, 1e-7);
  PlaceInputs();
  bool told = false;
  for (int i = 0; i < 200 && !told; ++i) {
    told = Has(Step(*executable, adding, true), ActionKind::kChose, Reason::kMappingDear);
  }
  EXPECT_TRUE(told);
  EXPECT_NE(executable->policy(adding.a), Policy::kRemap);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(Step(*executable, adding, true).remapped, 0U);
}

// Also where only a row was rewritten for the buffer that brought it.
TEST_F(RemapAutoTest, WhatIsCopiedIsMappedOnceItsBuffersBringMemory) {
  const Adding adding = MakeAdding(Policy::kAuto, Policy::kAuto);
  PrimitiveCosts costs = Costs(0.25);
  costs.patch_us = 1e3;
  costs.remap_us = 1e-3;
  const auto executable =
      Need(Executable::Create(adding.program, bench_.memory(), {.slots = 1, .costs = costs}));
  for (int i = 0; i < 30; ++i) Step(*executable, adding, true);
  ASSERT_EQ(executable->policy(adding.a), Policy::kCopy);
  PlaceInputs();
  bool told = false;
  for (int i = 0; i < 3000 && !told; ++i) {
    told = Has(Step(*executable, adding, true), ActionKind::kChose, Reason::kMappable);
  }
  EXPECT_TRUE(told);
  // Each step is checked for what it read.
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Step(*executable, adding, true).remapped, 1U);
}

// --- Under a library -----------------------------------------------------------------------------

class TracedAutoTest : public AutoTest {
 protected:
  Adding MakeTraced() {
    ProgramBuilder builder("traced");
    Adding made;
    made.a = builder.Bind({.name = "a", .size = kSize});
    made.b = builder.Bind({.name = "b", .size = kSize});
    made.sum = builder.Bind({.name = "sum", .size = kSize, .access = BindingAccess::kOut});
    made.total = builder.Bind({.name = "total", .size = kSize, .access = BindingAccess::kInOut});
    builder.Traced("library", ReadsAndWrites(made.a, made.b, made.sum),
                   Adds(bench_.Kernel(hal::kernels::kAdd), made.a, made.b, made.sum, &calls_));
    builder.Kernel(bench_.Kernel(hal::kernels::kAxpy), kDims,
                   {Argument::In(made.sum), Argument::InOut(made.total), Argument::Value(2.0F),
                    Argument::Value(std::uint64_t{kFloats})});
    made.program = Need(std::move(builder).Build());
    return made;
  }
  int calls_ = 0;
};

TEST_F(TracedAutoTest, WhatStaysIsTracedWhereItIsAndWhatMovesIsCopied) {
  const Adding adding = MakeTraced();
  const auto executable = Make(adding, 0.25);
  EXPECT_EQ(executable->policy(adding.a), Policy::kCopy);
  for (int i = 0; i < 4; ++i) Step(*executable, adding, true);
  const int calls = calls_;
  // It moves: the library is not called, however often.
  for (int i = 0; i < 60; ++i) Step(*executable, adding, true);
  EXPECT_EQ(executable->policy(adding.a), Policy::kCopy);
  EXPECT_EQ(executable->policy(adding.b), Policy::kRetrace) << "it never moved";
  const int after_b = calls_;
  EXPECT_LE(after_b - calls, 2);
  // It stays: told, traced once, and then nothing is copied and nothing left to do.
  bool told = false;
  int rested = 0;
  while (executable->policy(adding.a) == Policy::kCopy && rested++ < 2000) {
    told = Has(Step(*executable, adding, false), ActionKind::kChose, Reason::kSettled);
  }
  EXPECT_TRUE(told);
  ReplayReport report = Step(*executable, adding, false);
  EXPECT_EQ(report.traced, 1u);
  EXPECT_EQ(report.copied_in, 0_B);
  EXPECT_EQ(report.copied_out, 0_B);
  EXPECT_EQ(Step(*executable, adding, false).actions().size(), 0u);
  // And when it moves again, it is copied again soon, which is told as well.
  told = false;
  int churned = 0;
  while (executable->policy(adding.a) == Policy::kRetrace && churned++ < 200) {
    told = Has(Step(*executable, adding, true), ActionKind::kChose, Reason::kChurns);
  }
  EXPECT_TRUE(told);
  Step(*executable, adding, true);
  const int settled = calls_;
  for (int i = 0; i < 8; ++i) EXPECT_EQ(Step(*executable, adding, true).traced, 0u);
  EXPECT_EQ(calls_, settled);
}

// What was chosen outlives slots that are given up.
TEST_F(AutoTest, ChoicesOutliveTheSlots) {
  const Adding adding = MakeAdding(Policy::kAuto, Policy::kAuto);
  const auto executable = Make(adding, 0.25);
  for (int i = 0; i < 30; ++i) Step(*executable, adding, true);
  ASSERT_EQ(executable->policy(adding.a), Policy::kCopy);
  ASSERT_TRUE(IsOk(executable->Close(Soon())));
  const ReplayReport report = Step(*executable, adding, true);
  EXPECT_EQ(report.copied_in, kSize);
  EXPECT_TRUE(Has(report, ActionKind::kRecorded, Reason::kFirstStep));
}

TEST_F(AutoTest, MeasuresTheDeviceWhenNobodySaysWhatThingsCost) {
  const PrimitiveCosts costs = Need(MeasurePrimitiveCosts(bench_.memory(), Soon()));
  EXPECT_GT(costs.patch_us, 0);
  EXPECT_GT(costs.copy_bytes_per_us, 0);
  EXPECT_EQ(Need(CostsOf(bench_.memory(), Soon())).patch_us,
            Need(CostsOf(bench_.memory(), Soon())).patch_us);
}

}  // namespace
}  // namespace keel::graph
