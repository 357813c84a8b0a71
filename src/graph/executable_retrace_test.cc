// Policies for what cannot be patched: traced commands that are traced again, and memory that is
// mapped under the slot's address.
#include <gmock/gmock.h>

#include "graph/graph_test.h"
#include "keel/hal/memory.h"

namespace keel::graph {
namespace {

using ::testing::HasSubstr;

class RetraceTest : public GraphTest {
 protected:
  struct Tracing {
    BindingId x, y, sum;
    std::shared_ptr<const Program> program;
  };
  // sum = x + y traced, with nodes before it where `extra` says so; then sum += sum, explicitly.
  Tracing MakeTracing(Policy policy) {
    ProgramBuilder builder("tracing");
    Tracing made;
    made.x = builder.Bind({.name = "x", .size = kSize, .policy = policy});
    made.y = builder.Bind({.name = "y", .size = kSize, .policy = policy});
    made.sum = builder.Bind(
        {.name = "sum", .size = kSize, .access = BindingAccess::kOut, .policy = policy});
    const TraceFunction adds =
        Adds(bench_.Kernel(hal::kernels::kAdd), made.x, made.y, made.sum, &calls_);
    builder.Traced(
        "library", ReadsAndWrites(made.x, made.y, made.sum),
        [this, adds, sum = made.sum](const TraceContext& context) -> Status {
          for (int i = 0; i < extra_; ++i) {
            KEEL_TRY(context.device().EnqueueFill(
                context.stream(),
                {.destination = context.address(sum), .value = 0, .width = 4, .count = kFloats}));
          }
          return adds(context);
        });
    builder.Kernel(bench_.Kernel(hal::kernels::kAxpy), kDims,
                   {Argument::In(made.x), Argument::InOut(made.sum), Argument::Value(1.0F),
                    Argument::Value(std::uint64_t{kFloats})});
    made.program = Need(std::move(builder).Build());
    return made;
  }
  // One step; what it computed is checked.
  ReplayReport Step(Executable& executable, const Tracing& tracing, const Buffer& x,
                    const Buffer& y, const Buffer& sum) {
    ReplayReport report;
    bench_.Write(x, Same(static_cast<float>(++step_)));
    bench_.Write(y, Same(0.5F));
    bench_.Write(sum, Same(-1));
    EXPECT_TRUE(IsOk(RunStep(executable, bench_.stream(),
                             {{tracing.x, x}, {tracing.y, y}, {tracing.sum, sum}}, &report)));
    EXPECT_EQ(bench_.Read(sum), Same(2 * static_cast<float>(step_) + 0.5F));
    return report;
  }

  int calls_ = 0;
  int extra_ = 0;
  int step_ = 0;
};

TEST_F(RetraceTest, TracesAgainForNewAddressesAndReusesThoseItHas) {
  const Tracing tracing = MakeTracing(Policy::kRetrace);
  const auto executable = Need(Executable::Create(tracing.program, bench_.memory(), {.slots = 1}));
  const Buffer y = bench_.Allocate();
  const Buffer sum = bench_.Allocate();
  std::vector<Buffer> xs;
  xs.reserve(4);
  for (int i = 0; i < 4; ++i) xs.push_back(bench_.Allocate());
  Step(*executable, tracing, xs[0], y, sum);  // warms up
  Step(*executable, tracing, xs[0], y, sum);  // records
  calls_ = 0;
  for (int i = 1; i < 4; ++i) {
    const ReplayReport report = Step(*executable, tracing, xs[i], y, sum);
    EXPECT_EQ(report.traced, 1u);
    EXPECT_EQ(report.recorded, 0u) << "the child graph is exchanged";
    EXPECT_EQ(report.patched, 1u) << "the explicit command";
    EXPECT_TRUE(Has(report, ActionKind::kTraced, Reason::kMoved));
  }
  EXPECT_EQ(calls_, 3);
  for (int i = 0; i < 4; ++i) {
    const ReplayReport report = Step(*executable, tracing, xs[i], y, sum);
    EXPECT_EQ(report.traced, 0u);
    EXPECT_EQ(report.traces_reused, 1u);
  }
  EXPECT_EQ(Step(*executable, tracing, xs[3], y, sum).actions().size(), 0u);
  EXPECT_EQ(calls_, 3);
  EXPECT_EQ(executable->stats().traces_reused, 4u);
}

TEST_F(RetraceTest, KeepsAsManyTracesAsAskedForAndDropsTheLeastRecent) {
  const Tracing tracing = MakeTracing(Policy::kRetrace);
  const auto executable =
      Need(Executable::Create(tracing.program, bench_.memory(), {.slots = 1, .kept_traces = 2}));
  const Buffer y = bench_.Allocate();
  const Buffer sum = bench_.Allocate();
  std::vector<Buffer> xs;
  xs.reserve(4);
  for (int i = 0; i < 3; ++i) xs.push_back(bench_.Allocate());
  Step(*executable, tracing, xs[0], y, sum);
  Step(*executable, tracing, xs[0], y, sum);
  EXPECT_EQ(Step(*executable, tracing, xs[1], y, sum).traced, 1u);
  EXPECT_EQ(Step(*executable, tracing, xs[0], y, sum).traced, 0u);
  EXPECT_EQ(Step(*executable, tracing, xs[2], y, sum).traced, 1u) << "drops that of xs[1]";
  EXPECT_EQ(Step(*executable, tracing, xs[0], y, sum).traced, 0u);
  EXPECT_EQ(Step(*executable, tracing, xs[1], y, sum).traced, 1u);
  // Graphs that are alive: of the slot, and two traces.
  std::size_t graphs = 0;
  for (const hal::LiveObject& object : bench_.device().Live()) {
    graphs +=
        object.created_by == Primitive::kCreateGraph || object.created_by == Primitive::kEndCapture;
  }
  EXPECT_EQ(graphs, 3u);
}

TEST_F(RetraceTest, G12_TheSameAddressWithAnotherGenerationIsTracedAgain) {
  const Tracing tracing = MakeTracing(Policy::kRetrace);
  const auto executable = Need(Executable::Create(tracing.program, bench_.memory(), {.slots = 1}));
  Buffer x = bench_.Allocate();
  const Buffer y = bench_.Allocate();
  const Buffer sum = bench_.Allocate();
  x.generation = 1;
  Step(*executable, tracing, x, y, sum);
  Step(*executable, tracing, x, y, sum);
  EXPECT_EQ(Step(*executable, tracing, x, y, sum).traced, 0u);
  x.generation = 2;
  const ReplayReport report = Step(*executable, tracing, x, y, sum);
  EXPECT_EQ(report.traced, 1u);
  EXPECT_TRUE(Has(report, ActionKind::kTraced, Reason::kReallocated));
  EXPECT_EQ(report.patched, 0u) << "the address is the same";
  EXPECT_EQ(Step(*executable, tracing, x, y, sum).traced, 0u);
}

TEST_F(RetraceTest, G13_ATraceWithOtherNodesIsInstantiatedAnew) {
  const Tracing tracing = MakeTracing(Policy::kRetrace);
  const auto executable = Need(Executable::Create(tracing.program, bench_.memory(), {.slots = 2}));
  const Buffer y = bench_.Allocate();
  const Buffer sum = bench_.Allocate();
  const Buffer first = bench_.Allocate();
  for (int i = 0; i < 4; ++i) Step(*executable, tracing, first, y, sum);
  extra_ = 2;
  for (int i = 0; i < 2; ++i) {  // in each slot
    const Buffer x = bench_.Allocate();
    const ReplayReport report = Step(*executable, tracing, x, y, sum);
    EXPECT_EQ(report.recorded, 1u);
    EXPECT_TRUE(Has(report, ActionKind::kRecorded, Reason::kTopology));
  }
  // Back to the old nodes, from the cache: again other nodes than the graph has.
  const ReplayReport report = Step(*executable, tracing, first, y, sum);
  EXPECT_EQ(report.traced, 0u);
  EXPECT_TRUE(Has(report, ActionKind::kRecorded, Reason::kTopology));
  EXPECT_EQ(Step(*executable, tracing, bench_.Allocate(), y, sum).recorded, 0u)
      << "a step of the other slot, which has the new nodes";
}

// What is left of a recording that failed is not mixed with the old one.
TEST_F(RetraceTest, G13_AnInstantiationThatFailsLeavesTheOldOneUsable) {
  const Tracing tracing = MakeTracing(Policy::kRetrace);
  const auto executable = Need(Executable::Create(tracing.program, bench_.memory(), {.slots = 1}));
  const Buffer y = bench_.Allocate();
  const Buffer sum = bench_.Allocate();
  const Buffer first = bench_.Allocate();
  for (int i = 0; i < 3; ++i) Step(*executable, tracing, first, y, sum);
  extra_ = 1;
  const Buffer second = bench_.Allocate();
  bench_.device().FailNth(Primitive::kInstantiate, 1, Internal("injected"));
  EXPECT_EQ(RunStep(*executable, bench_.stream(),
                    {{tracing.x, second}, {tracing.y, y}, {tracing.sum, sum}})
                .code(),
            StatusCode::kInternal);
  // The traced command is as before, and the explicit one is patched in the old graph.
  const ReplayReport report = Step(*executable, tracing, first, y, bench_.Allocate());
  EXPECT_EQ(report.patched, 1u);
  Step(*executable, tracing, second, y, sum);
  Step(*executable, tracing, first, y, sum);
}

// --- Remap ---------------------------------------------------------------------------------------

class RemapTest : public RetraceTest {
 protected:
  static constexpr Bytes kPage = 2_MiB;

  std::shared_ptr<const hal::PhysicalMemory> Physical() {
    return std::make_shared<const hal::PhysicalMemory>(
        Need(hal::PhysicalMemory::Create(bench_.memory()->device(), kPage)));
  }
  // Where the test itself sees the memory.
  DeviceAddress See(const hal::PhysicalMemory& memory) {
    const hal::AddressRange range =
        Need(hal::AddressRange::Create(bench_.memory()->device(), kPage));
    const hal::AccessGrant grant{.device = bench_.device().id(), .access = hal::Access::kReadWrite};
    seen_.push_back(Need(hal::Mapping::Create(range, Offset(0), memory, {&grant, 1})));
    return seen_.back().address();
  }

 private:
  std::vector<hal::Mapping> seen_;
};

TEST_F(RemapTest, TheCallersMemoryIsMappedUnderTheGraphsAddress) {
  const Tracing tracing = MakeTracing(Policy::kRemap);
  const auto executable = Need(Executable::Create(tracing.program, bench_.memory(), {.slots = 2}));
  std::vector<std::shared_ptr<const hal::PhysicalMemory>> memories;
  std::vector<DeviceAddress> seen;
  for (int i = 0; i < 6; ++i) {
    memories.push_back(Physical());
    seen.push_back(See(*memories.back()));
  }
  for (int step = 0; step < 8; ++step) {
    const auto which = [&](int i) { return static_cast<std::size_t>((step / 2 + 2 * i) % 6); };
    const auto at = [&](int i) { return memories[which(i)]; };
    const auto number = static_cast<float>(step);
    bench_.Write(seen[which(0)], Same(number));
    bench_.Write(seen[which(1)], Same(3));
    if (step == 2) bench_.device().ResetCounts();
    ReplayReport report;
    ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream(),
                             {{tracing.x, {.memory = at(0)}},
                              {tracing.y, {.memory = at(1)}},
                              {tracing.sum, {.memory = at(2)}}},
                             &report)));
    EXPECT_EQ(bench_.Read(seen[which(2)]), Same(2 * number + 3));
    if (step >= 2) {
      EXPECT_EQ(report.remapped, 3u) << step;
    }
  }
  EXPECT_EQ(bench_.RecordingCalls(), 0u) << "the address never changes";
  EXPECT_EQ(bench_.device().calls(Primitive::kSetNodeParams), 0u);
}

TEST_F(RemapTest, WhatIsBoundAlreadyIsNotMappedAgain) {
  const Tracing tracing = MakeTracing(Policy::kRemap);
  const auto executable = Need(Executable::Create(tracing.program, bench_.memory(), {.slots = 1}));
  for (const BindingId binding : {tracing.x, tracing.y, tracing.sum}) {
    ASSERT_TRUE(IsOk(executable->Bind(binding, {.memory = Physical()})));
  }
  for (int step = 0; step < 5; ++step) {
    if (step == 2) bench_.device().ResetCounts();
    ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream())));
  }
  EXPECT_EQ(bench_.device().calls(Primitive::kMap), 0u);
  EXPECT_EQ(bench_.device().calls(), 3u);
}

// Memory is not unmapped under a step that runs.
TEST_F(RemapTest, G10_WaitsForTheStepThatUsesTheOldMemory) {
  const Tracing tracing = MakeTracing(Policy::kRemap);
  const auto executable = Need(Executable::Create(tracing.program, bench_.memory(), {.slots = 1}));
  for (const BindingId binding : {tracing.x, tracing.y, tracing.sum}) {
    ASSERT_TRUE(IsOk(executable->Bind(binding, {.memory = Physical()})));
  }
  for (int step = 0; step < 2; ++step) ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream())));
  ASSERT_TRUE(IsOk(bench_.controls().HoldStream(bench_.stream())));
  {
    Lease lease = Need(executable->Acquire(bench_.stream(), Soon()));
    ASSERT_TRUE(IsOk(lease.Launch(Soon())));
  }
  {
    Lease lease = Need(executable->Acquire(bench_.stream(), Soon()));
    ASSERT_TRUE(IsOk(lease.Bind(tracing.x, {.memory = Physical()})));
    EXPECT_EQ(lease.Launch(Deadline::After(std::chrono::milliseconds(20))).code(),
              StatusCode::kDeadlineExceeded);
    EXPECT_TRUE(Has(lease.report(), ActionKind::kWaited, Reason::kTableInUse));
    ASSERT_TRUE(IsOk(bench_.controls().ReleaseStream(bench_.stream())));
    EXPECT_TRUE(IsOk(lease.Launch(Soon()))) << "tried again";
    EXPECT_TRUE(IsOk(lease.Wait(Soon())));
  }
  EXPECT_TRUE(IsOk(bench_.device().Health()));
}

// Nor under the half of one that failed, though the lease found the slot idle before.
TEST_F(RemapTest, G10_WaitsForWhatAFailedLaunchLeft) {
  bool fails = false;
  ProgramBuilder builder("halves");
  const BindingId x = builder.Bind(
      {.name = "x", .size = kSize, .access = BindingAccess::kOut, .policy = Policy::kRemap});
  builder.Fill({x, hal::Access::kWrite}, 1, 4);
  builder.Eager("fails", {}, [&](const TraceContext&) -> Status {
    return fails ? Internal("injected") : OkStatus();
  });
  const auto executable =
      Need(Executable::Create(Need(std::move(builder).Build()), bench_.memory(), {.slots = 1}));
  for (int step = 0; step < 2; ++step) {
    ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream(), {{x, {.memory = Physical()}}})));
  }
  Lease lease = Need(executable->Acquire(bench_.stream(), Soon()));
  ASSERT_TRUE(IsOk(lease.Bind(x, {.memory = Physical()})));
  ASSERT_TRUE(IsOk(bench_.controls().HoldStream(bench_.stream())));
  fails = true;
  EXPECT_EQ(lease.Launch(Soon()).code(), StatusCode::kInternal);
  fails = false;
  ASSERT_TRUE(IsOk(lease.Bind(x, {.memory = Physical()})));
  EXPECT_EQ(lease.Launch(Deadline::After(std::chrono::milliseconds(20))).code(),
            StatusCode::kDeadlineExceeded)
      << "the fill is queued";
  ASSERT_TRUE(IsOk(bench_.controls().ReleaseStream(bench_.stream())));
  EXPECT_TRUE(IsOk(lease.Launch(Soon())));
  EXPECT_TRUE(IsOk(lease.Wait(Soon())));
  EXPECT_TRUE(IsOk(bench_.device().Health()));
}

TEST_F(RemapTest, TheMemoryIsKeptUntilAnotherIsMappedInItsPlace) {
  const Tracing tracing = MakeTracing(Policy::kRemap);
  const auto executable = Need(Executable::Create(tracing.program, bench_.memory(), {.slots = 1}));
  std::shared_ptr<const hal::PhysicalMemory> mine = Physical();
  const std::weak_ptr<const hal::PhysicalMemory> watched = mine;
  const Bound rest = {{tracing.y, {.memory = Physical()}}, {tracing.sum, {.memory = Physical()}}};
  for (int step = 0; step < 2; ++step) {
    Bound bound = rest;
    bound.emplace_back(tracing.x, Buffer{.memory = mine});
    ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream(), bound)));
  }
  mine.reset();
  EXPECT_FALSE(watched.expired());
  Bound bound = rest;
  bound.emplace_back(tracing.x, Buffer{.memory = Physical()});
  ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream(), bound)));
  EXPECT_TRUE(watched.expired());
}

TEST_F(RemapTest, MemoryThatDoesNotFitIsRefused) {
  const Tracing tracing = MakeTracing(Policy::kRemap);
  const auto executable = Need(Executable::Create(tracing.program, bench_.memory()));
  const Status none = executable->Bind(tracing.x, bench_.Allocate());
  EXPECT_EQ(none.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(none.message(), HasSubstr("'x' is remapped: the buffer must bring its physical"));
  const auto large = std::make_shared<const hal::PhysicalMemory>(
      Need(hal::PhysicalMemory::Create(bench_.memory()->device(), 2 * kPage)));
  const Status size = executable->Bind(tracing.x, {.memory = large});
  EXPECT_EQ(size.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(size.message(), HasSubstr("'x' is remapped: its memory must have 2 MiB, not 4 MiB"));
}

}  // namespace
}  // namespace keel::graph
