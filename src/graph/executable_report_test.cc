// What steps report: each thing that was done with its reason and what it took, and nothing that
// was not.
#include <gmock/gmock.h>

#include <algorithm>

#include "graph/graph_test.h"
#include "keel/hal/memory.h"

namespace keel::graph {
namespace {

class ReportTest : public GraphTest {
 protected:
  static const Action* Find(const ReplayReport& report, ActionKind kind, Reason reason) {
    for (const Action& action : report.actions()) {
      if (action.kind == kind && action.reason == reason) return &action;
    }
    return nullptr;
  }
  // That was measured.
  static void ExpectCost(const ReplayReport& report, ActionKind kind, Reason reason,
                         std::uint32_t count = 1) {
    const Action* const action = Find(report, kind, reason);
    ASSERT_NE(action, nullptr) << report.ToString({});
    EXPECT_GT(action->host_ns, 0);
    EXPECT_GE(report.host_ns(kind), action->host_ns);
    EXPECT_EQ(action->count, count);
  }
  Bound Places(const Adding& adding) {
    return {{adding.a, bench_.Filled(1)},
            {adding.b, bench_.Filled(2)},
            {adding.sum, bench_.Filled(0)},
            {adding.total, bench_.Filled(0)}};
  }
  ReplayReport Step(Executable& executable, const Bound& bound) {
    ReplayReport report;
    EXPECT_TRUE(IsOk(RunStep(executable, bench_.stream(), bound, &report)));
    return report;
  }
};

TEST_F(ReportTest, TheStepThatRecordsForOtherSlotsReportsIt) {
  const Adding adding = MakeAdding(Policy::kPatch, Policy::kPatch);
  const auto executable = Need(Executable::Create(adding.program, bench_.memory(), {.slots = 3}));
  const Bound bound = Places(adding);
  const ReplayReport first = Step(*executable, bound);
  EXPECT_EQ(first.recorded, 3u);
  ExpectCost(first, ActionKind::kRecorded, Reason::kFirstStep);
  ExpectCost(first, ActionKind::kRecorded, Reason::kAhead, 2);
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(Step(*executable, bound).actions().empty()) << "nothing to do, nothing told";
  }
  const ExecutableStats stats = executable->stats();
  EXPECT_EQ(stats.graphs_recorded, 3u);
  EXPECT_EQ(stats.host_ns, first.host_ns()) << "the totals";
}

TEST_F(ReportTest, RowsThatMoveCostTheOneCallThatGivesThemToTheGraph) {
  const Adding adding = MakeAdding(Policy::kCopy, Policy::kCopy);
  const auto executable = Need(Executable::Create(adding.program, bench_.memory(), {.slots = 1}));
  Bound bound = Places(adding);
  Step(*executable, bound);
  bound[0].second = bench_.Filled(3);
  bound[1].second = bench_.Filled(4);
  const ReplayReport moved = Step(*executable, bound);
  EXPECT_EQ(moved.rebound, 2u);
  ASSERT_EQ(moved.actions().size(), 2u);
  EXPECT_EQ(moved.actions()[0].host_ns, 0) << "a few stores";
  EXPECT_GT(moved.actions()[1].host_ns, 0);
  for (const Action& action : moved.actions()) {
    EXPECT_EQ(action.kind, ActionKind::kRebound);
    EXPECT_EQ(action.reason, Reason::kMoved);
  }
}

// What a lease left that launched nothing.
TEST_F(ReportTest, RowsOfALeaseThatLaunchedNothingAreToldByTheNextStep) {
  const Adding adding = MakeAdding(Policy::kCopy, Policy::kCopy);
  const auto executable = Need(Executable::Create(adding.program, bench_.memory(), {.slots = 1}));
  const Bound bound = Places(adding);
  for (const auto& [binding, buffer] : bound) ASSERT_TRUE(IsOk(executable->Bind(binding, buffer)));
  Step(*executable, {});
  {
    Lease lease = Need(executable->Acquire(bench_.stream(), Soon()));
    ASSERT_TRUE(IsOk(lease.Bind(adding.a, bench_.Filled(7))));
  }
  const ReplayReport next = Step(*executable, {});
  ExpectCost(next, ActionKind::kRebound, Reason::kMoved);
  EXPECT_EQ(bench_.Read(bound[2].second), Same(3)) << "where it was";
}

TEST_F(ReportTest, PatchesSayWhetherTheBindingMovedOrWasChosenOtherwise) {
  const Adding adding = MakeAdding(Policy::kAuto, Policy::kAuto);
  const PrimitiveCosts costs{.patch_us = 1, .copy_bytes_per_us = 1e6};
  const auto executable =
      Need(Executable::Create(adding.program, bench_.memory(), {.slots = 1, .costs = costs}));
  Bound bound = Places(adding);
  const Buffer places[] = {bench_.Filled(1), bench_.Filled(1)};
  Step(*executable, bound);
  int step = 0;
  while (executable->policy(adding.a) == Policy::kPatch && step < 100) {
    bound[0].second = places[++step % 2];
    ExpectCost(Step(*executable, bound), ActionKind::kPatched, Reason::kMoved);
  }
  // Copied from now on: the command is aimed at the slot, once. `total` moves in the same step.
  bound[0].second = places[++step % 2];
  bound[3].second = bench_.Filled(0);
  const ReplayReport churned = Step(*executable, bound);
  ExpectCost(churned, ActionKind::kPatched, Reason::kChurns);
  ExpectCost(churned, ActionKind::kPatched, Reason::kMoved);
  EXPECT_EQ(churned.patched, 2u);
  int rested = 0;
  while (executable->policy(adding.a) == Policy::kCopy && ++rested < 3000) {
    Step(*executable, bound);
  }
  const ReplayReport settled = Step(*executable, bound);
  ExpectCost(settled, ActionKind::kPatched, Reason::kSettled);
  const ExecutableStats stats = executable->stats();
  EXPECT_GT(stats.host_ns[static_cast<std::size_t>(ActionKind::kPatched)], 0);
}

TEST_F(ReportTest, WarmUpTracesAndTracesThatAreReusedHaveTheirCost) {
  ProgramBuilder builder("tracing");
  const BindingId x = builder.Bind({.name = "x", .size = kSize, .policy = Policy::kRetrace});
  const BindingId y = builder.Bind(
      {.name = "y", .size = kSize, .access = BindingAccess::kOut, .policy = Policy::kInPlace});
  builder.Traced("library", {{x, hal::Access::kRead}, {y, hal::Access::kWrite}},
                 Adds(bench_.Kernel(hal::kernels::kAdd), x, x, y));
  const auto executable =
      Need(Executable::Create(Need(std::move(builder).Build()), bench_.memory(), {.slots = 1}));
  const Buffer places[] = {bench_.Filled(1), bench_.Filled(2)};
  ExpectCost(Step(*executable, {{x, places[0]}}), ActionKind::kRanEagerly, Reason::kWarmUp);
  const ReplayReport recorded = Step(*executable, {{x, places[0]}});
  ExpectCost(recorded, ActionKind::kTraced, Reason::kFirstStep);
  ExpectCost(recorded, ActionKind::kRecorded, Reason::kFirstStep);
  ExpectCost(Step(*executable, {{x, places[1]}}), ActionKind::kTraced, Reason::kMoved);
  const ReplayReport reused = Step(*executable, {{x, places[0]}});
  ExpectCost(reused, ActionKind::kTraceReused, Reason::kMoved);
  EXPECT_EQ(reused.host_ns(ActionKind::kTraced), 0);
  const HostNs& spent = executable->stats().host_ns;
  for (const ActionKind kind : {ActionKind::kRanEagerly, ActionKind::kTraced,
                                ActionKind::kTraceReused, ActionKind::kRecorded}) {
    EXPECT_GT(spent[static_cast<std::size_t>(kind)], 0) << ActionName(kind);
  }
}

TEST_F(ReportTest, EagerStepsAndMappingsHaveTheirCost) {
  const Adding adding = MakeAdding(Policy::kPatch, Policy::kPatch);
  const auto eager =
      Need(Executable::Create(adding.program, bench_.memory(), {.slots = 1, .mode = Mode::kEager}));
  ExpectCost(Step(*eager, Places(adding)), ActionKind::kRanEagerly, Reason::kEagerMode);

  ProgramBuilder builder("mapping");
  const BindingId x = builder.Bind(
      {.name = "x", .size = kSize, .access = BindingAccess::kOut, .policy = Policy::kRemap});
  builder.Fill({x, hal::Access::kWrite}, 1, 4);
  const auto mapping =
      Need(Executable::Create(Need(std::move(builder).Build()), bench_.memory(), {.slots = 1}));
  const auto physical = [&] {
    return Buffer{.memory = std::make_shared<const hal::PhysicalMemory>(
                      Need(hal::PhysicalMemory::Create(bench_.memory()->device(), 2_MiB)))};
  };
  ExpectCost(Step(*mapping, {{x, physical()}}), ActionKind::kRemapped, Reason::kFirstStep);
  ExpectCost(Step(*mapping, {{x, physical()}}), ActionKind::kRemapped, Reason::kMoved);
}

// What is mapped in other slots, so that they can be recorded, is this step's too.
TEST_F(ReportTest, TheStepThatRecordsForOtherSlotsReportsWhatItMappedThere) {
  ProgramBuilder builder("mapping");
  const BindingId x = builder.Bind(
      {.name = "x", .size = kSize, .access = BindingAccess::kOut, .policy = Policy::kRemap});
  builder.Fill({x, hal::Access::kWrite}, 1, 4);
  const auto executable =
      Need(Executable::Create(Need(std::move(builder).Build()), bench_.memory(), {.slots = 3}));
  const Bench::Place place = bench_.MakePlace(0);
  ASSERT_TRUE(IsOk(executable->Bind(x, place.buffer)));
  const ReplayReport report = Step(*executable, {});
  EXPECT_EQ(report.remapped, 3u);
  EXPECT_EQ(std::count_if(report.actions().begin(), report.actions().end(),
                          [](const Action& action) {
                            return action.kind == ActionKind::kRemapped && action.host_ns > 0;
                          }),
            3);
  ExpectCost(report, ActionKind::kRecorded, Reason::kAhead, 2);
  const ExecutableStats stats = executable->stats();
  EXPECT_EQ(stats.bindings_remapped, 3u);
  EXPECT_EQ(stats.host_ns, report.host_ns());
}

}  // namespace
}  // namespace keel::graph
