// What a program can be made of: every kind of command, in graphs and between them, beside the same
// program without any graph.
#include <gmock/gmock.h>

#include "graph/graph_test.h"
#include "graph/layout.h"
#include "keel/hal/graph.h"

namespace keel::graph {
namespace {

using ::testing::HasSubstr;

class ExecutableProgramTest : public GraphTest {
 protected:
  // sum = a + b, and result = sum + b, the second as the last of `kinds` says.
  enum class Kind { kKernel, kTraced, kEager };
  struct Chain {
    BindingId a, b, middle, result;
    std::shared_ptr<const Program> program;
  };
  Chain MakeChain(const std::vector<Kind>& kinds, Policy policy = Policy::kAuto) {
    ProgramBuilder builder("chain");
    Chain made;
    made.a = builder.Bind({.name = "a", .size = kSize, .policy = policy});
    made.b = builder.Bind({.name = "b", .size = kSize, .policy = policy});
    made.middle =
        builder.Bind({.name = "middle", .size = kSize, .access = BindingAccess::kScratch});
    made.result = builder.Bind(
        {.name = "result", .size = kSize, .access = BindingAccess::kOut, .policy = policy});
    const hal::KernelHandle add = bench_.Kernel(hal::kernels::kAdd);
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      const BindingId from = i == 0 ? made.a : made.middle;
      const BindingId to = i + 1 == kinds.size() ? made.result : made.middle;
      switch (kinds[i]) {
        case Kind::kKernel:
          builder.Kernel(add, kDims,
                         {Argument::In(from), Argument::In(made.b), Argument::Out(to),
                          Argument::Value(std::uint64_t{kFloats})});
          break;
        case Kind::kTraced:
          builder.Traced("traced", ReadsAndWrites(from, made.b, to),
                         Adds(add, from, made.b, to, &traced_));
          break;
        case Kind::kEager:
          builder.Eager("eager", ReadsAndWrites(from, made.b, to),
                        Adds(add, from, made.b, to, &eager_));
          break;
      }
    }
    made.program = Need(std::move(builder).Build());
    return made;
  }

  int traced_ = 0;
  int eager_ = 0;
};

struct Shape {
  const char* name;
  std::vector<int> kinds;
  std::uint32_t graphs;  // of a step
};

class IslandsTest : public ExecutableProgramTest, public ::testing::WithParamInterface<Shape> {};

// And nothing is recorded from the third step on: but by `auto`, which may trace again on purpose.
TEST_P(IslandsTest, CommandsOfEveryKindRunInOrderWithBuffersThatMove) {
  std::vector<Kind> kinds;
  for (const int kind : GetParam().kinds) kinds.push_back(static_cast<Kind>(kind));
  for (const Policy policy : {Policy::kAuto, Policy::kCopy}) {
    const Chain chain = MakeChain(kinds, policy);
    const auto executable = Need(Executable::Create(chain.program, bench_.memory(), {.slots = 2}));
    for (int step = 0; step < 6; ++step) {
      const auto number = static_cast<float>(step);
      const Buffer a = bench_.Filled(number);
      const Buffer b = bench_.Filled(10);
      const Buffer result = bench_.Filled(-1);
      ReplayReport report;
      bench_.device().ResetCounts();
      ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream(),
                               {{chain.a, a}, {chain.b, b}, {chain.result, result}}, &report)));
      if (step >= 2 && policy == Policy::kCopy) {
        EXPECT_EQ(bench_.RecordingCalls(), 0u) << "in step " << step;
      }
      EXPECT_EQ(bench_.Read(result), Same(number + 10 * static_cast<float>(kinds.size())));
      if (!report.eager && policy == Policy::kAuto) {
        EXPECT_EQ(report.graphs, GetParam().graphs);
      }
      if (step % 2 == 0) bench_.Free(a);
    }
    EXPECT_TRUE(IsOk(executable->Close(Soon())));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, IslandsTest,
    ::testing::Values(Shape{"kernels", {0, 0, 0}, 1}, Shape{"traced", {1, 1}, 1},
                      Shape{"eager_first", {2, 0}, 2}, Shape{"eager_middle", {0, 2, 0}, 2},
                      Shape{"eager_last", {0, 2}, 2}, Shape{"eager_only", {2}, 2},
                      Shape{"eager_twice", {0, 2, 2, 0}, 2}, Shape{"mixed", {1, 2, 0, 1}, 2}),
    [](const auto& shape) { return std::string(shape.param.name); });

TEST_F(ExecutableProgramTest, G4_AnEmptyProgramIsAStepThatEnds) {
  const auto program = Need(ProgramBuilder("empty").Build());
  for (const Mode mode : {Mode::kGraph, Mode::kEager}) {
    const auto executable =
        Need(Executable::Create(program, bench_.memory(), {.slots = 2, .mode = mode}));
    for (int step = 0; step < 5; ++step) {
      ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream())));
    }
    EXPECT_EQ(executable->stats().steps, 5u);
  }
}

TEST_F(ExecutableProgramTest, G4_ATracedCommandThatDoesNothingIsFine) {
  ProgramBuilder builder("nothing");
  builder.Traced("nothing", {}, [](const TraceContext&) { return OkStatus(); });
  const auto executable =
      Need(Executable::Create(Need(std::move(builder).Build()), bench_.memory()));
  for (int step = 0; step < 5; ++step) ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream())));
}

TEST_F(ExecutableProgramTest, CopiesFillsAndHostCallsAreCommands) {
  for (const Mode mode : {Mode::kGraph, Mode::kEager}) {
    for (const Policy policy : {Policy::kPatch, Policy::kCopy, Policy::kAuto}) {
      ProgramBuilder builder("mixed");
      const BindingId x = builder.Bind({.name = "x", .size = kSize, .policy = policy});
      const BindingId y = builder.Bind(
          {.name = "y", .size = kSize, .access = BindingAccess::kOut, .policy = policy});
      std::atomic<int> called = 0;
      builder.Copy({.binding = y, .extent = 512_B}, {.binding = x, .extent = 512_B});
      builder.Fill({.binding = y, .offset = 512_B}, 0x40000000, 4);  // 2.0
      builder.Call({.function = [](void* data) { ++*static_cast<std::atomic<int>*>(data); },
                    .data = &called});
      const auto executable = Need(Executable::Create(Need(std::move(builder).Build()),
                                                      bench_.memory(), {.slots = 2, .mode = mode}));
      for (int step = 0; step < 4; ++step) {
        const auto number = static_cast<float>(step);
        const Buffer from = bench_.Filled(number);
        const Buffer to = bench_.Filled(-1);
        ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream(), {{x, from}, {y, to}})));
        std::vector<float> expected = Same(number);
        std::fill(expected.begin() + 128, expected.end(), 2.0F);
        EXPECT_EQ(bench_.Read(to), expected);
        if (step % 2 == 0) bench_.Free(from);
      }
      EXPECT_EQ(called, 4);
    }
  }
}

TEST_F(ExecutableProgramTest, PartsOfABindingAreReachedAtTheirOffsets) {
  for (const Policy policy : {Policy::kPatch, Policy::kCopy}) {
    ProgramBuilder builder("parts");
    const BindingId x = builder.Bind({.name = "x", .size = 2 * kSize, .policy = policy});
    const BindingId y =
        builder.Bind({.name = "y", .size = kSize, .access = BindingAccess::kOut, .policy = policy});
    builder.Kernel(bench_.Kernel(hal::kernels::kAdd), kDims,
                   {Argument::In(x, 0_B, kSize), Argument::In(x, kSize), Argument::Out(y),
                    Argument::Value(std::uint64_t{kFloats})});
    const auto executable =
        Need(Executable::Create(Need(std::move(builder).Build()), bench_.memory()));
    for (int step = 0; step < 4; ++step) {
      const Buffer from = bench_.Filled(1, 2 * kFloats);
      bench_.Write(from.address + kSize, Same(static_cast<float>(step)));
      const Buffer to = bench_.Allocate();
      ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream(), {{x, from}, {y, to}})));
      EXPECT_EQ(bench_.Read(to), Same(1 + static_cast<float>(step)));
    }
  }
}

// Copies are cut in pieces: every byte of a large one, and of an odd one, arrives.
TEST_F(ExecutableProgramTest, CopiesOfEverySizeAreWhole) {
  for (const std::size_t floats : {1u, 3u, 8191u, 8192u, 8193u, 5'000'001u}) {
    const Bytes size(floats * sizeof(float));
    ProgramBuilder builder("sizes");
    const BindingId x = builder.Bind({.name = "x", .size = size, .policy = Policy::kCopy});
    const BindingId y = builder.Bind(
        {.name = "y", .size = size, .access = BindingAccess::kOut, .policy = Policy::kCopy});
    builder.Copy({y}, {x});
    const auto executable =
        Need(Executable::Create(Need(std::move(builder).Build()), bench_.memory(), {.slots = 1}));
    std::vector<float> values(floats);
    for (std::size_t i = 0; i < floats; ++i) values[i] = static_cast<float>(i % 65'521);
    const Buffer from = bench_.Allocate(size);
    const Buffer to = bench_.Filled(-1, floats);
    bench_.Write(from, values);
    ReplayReport report;
    ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream(), {{x, from}, {y, to}}, &report)));
    EXPECT_TRUE(bench_.Read(to, floats) == values) << floats;
    EXPECT_EQ(report.copied_in, size);
    EXPECT_EQ(report.copied_out, size);
    ASSERT_TRUE(IsOk(executable->Close(Soon())));
    bench_.Free(from);
    bench_.Free(to);
  }
}

TEST_F(ExecutableProgramTest, G15_TracedCommandsRunOnceBeforeTheyAreCaptured) {
  ProgramBuilder builder("library");
  std::vector<bool> capturing;
  builder.Traced("library", {}, [&](const TraceContext& context) {
    capturing.push_back(context.capturing());
    return OkStatus();
  });
  const auto program = Need(std::move(builder).Build());
  const auto executable = Need(Executable::Create(program, bench_.memory(), {.slots = 2}));
  ReplayReport report;
  ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream(), {}, &report)));
  EXPECT_TRUE(report.eager);
  EXPECT_TRUE(Has(report, ActionKind::kRanEagerly, Reason::kWarmUp));
  ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream(), {}, &report)));
  EXPECT_FALSE(report.eager);
  EXPECT_TRUE(Has(report, ActionKind::kRecorded, Reason::kFirstStep));
  EXPECT_EQ(capturing, (std::vector<bool>{false, true, true})) << "once for each slot";
  for (int step = 0; step < 5; ++step) ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream())));
  EXPECT_EQ(capturing.size(), 3u);
  EXPECT_EQ(executable->stats().commands_traced, 2u);

  // As many as were asked for, also with none.
  capturing.clear();
  const auto cold = Need(Executable::Create(program, bench_.memory(), {.slots = 1, .warm_up = 0}));
  ASSERT_TRUE(IsOk(RunStep(*cold, bench_.stream())));
  EXPECT_EQ(capturing, (std::vector<bool>{true}));
  capturing.clear();
  const auto hot = Need(Executable::Create(program, bench_.memory(), {.slots = 1, .warm_up = 3}));
  for (int step = 0; step < 5; ++step) ASSERT_TRUE(IsOk(RunStep(*hot, bench_.stream())));
  EXPECT_EQ(capturing, (std::vector<bool>{false, false, false, true}));
}

TEST_F(ExecutableProgramTest, G15_G2_AWarmUpThatFailedIsDoneAgain) {
  ProgramBuilder builder("library");
  int calls = 0;
  builder.Traced("library", {}, [&](const TraceContext& context) {
    EXPECT_EQ(context.capturing(), calls >= 2);
    return ++calls == 1 ? Internal("not yet") : OkStatus();
  });
  const auto executable =
      Need(Executable::Create(Need(std::move(builder).Build()), bench_.memory(), {.slots = 1}));
  const Status status = RunStep(*executable, bench_.stream());
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_THAT(status.ToString(), HasSubstr("'library'"));
  for (int step = 0; step < 3; ++step) ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream())));
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(executable->stats().failed_steps, 1u);
}

TEST_F(ExecutableProgramTest, EagerModeMakesTheSameWithoutAnyGraph) {
  const Chain chain = MakeChain({Kind::kKernel, Kind::kTraced, Kind::kEager}, Policy::kCopy);
  const auto executable =
      Need(Executable::Create(chain.program, bench_.memory(), {.slots = 2, .mode = Mode::kEager}));
  bench_.device().ResetCounts();
  for (int step = 0; step < 5; ++step) {
    const Buffer result = bench_.Allocate();
    ReplayReport report;
    ASSERT_TRUE(IsOk(
        RunStep(*executable, bench_.stream(),
                {{chain.a, bench_.Filled(1)}, {chain.b, bench_.Filled(2)}, {chain.result, result}},
                &report)));
    EXPECT_TRUE(Has(report, ActionKind::kRanEagerly, Reason::kEagerMode));
    EXPECT_EQ(bench_.Read(result), Same(7));
  }
  EXPECT_EQ(bench_.RecordingCalls(), 0u);
  EXPECT_EQ(bench_.device().calls(Primitive::kLaunchGraph), 0u);
  EXPECT_EQ(executable->stats().eager_steps, 5u);
}

// --- What a device lacks -------------------------------------------------------------------------

TEST_F(ExecutableProgramTest, APolicyThatTheDeviceLacksIsNamed) {
  const auto lacks = [](Policy policy, const hal::Capabilities& capabilities) {
    ProgramBuilder builder("lacking");
    builder.Bind({.name = "x", .size = kSize, .policy = policy});
    const Status status =
        Layout::Of(*Need(std::move(builder).Build()), capabilities, false).status();
    EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
    return std::string(status.message());
  };
  hal::Capabilities can = bench_.inner()->capabilities();
  can.node_update = can.virtual_memory = can.kernels = false;
  EXPECT_THAT(lacks(Policy::kPatch, can), HasSubstr("'x': policy 'patch' needs updates of graph"));
  EXPECT_THAT(lacks(Policy::kRemap, can), HasSubstr("'x': policy 'remap' needs virtual memory"));
  EXPECT_THAT(lacks(Policy::kCopy, can), HasSubstr("'x': policy 'copy' needs kernels"));
}

TEST_F(ExecutableProgramTest, AutoCopiesWhereNodesCannotBeUpdated) {
  hal::Capabilities can = bench_.inner()->capabilities();
  can.node_update = false;
  ProgramBuilder builder("plain");
  builder.Bind({.name = "x", .size = kSize});
  const Layout layout = Need(Layout::Of(*Need(std::move(builder).Build()), can, false));
  EXPECT_EQ(layout.bindings[0].policy, Policy::kCopy);
  EXPECT_FALSE(layout.bindings[0].dynamic);
}

// A library that makes graphs by itself: its own stream, its own capture.
class RecordedCommandTest : public GraphTest {
 protected:
  Status Record(const TraceContext& context) {
    if (!context.capturing()) {
      ++eager_;
      EXPECT_FALSE(context.takes_graph());
      return adds_(context);
    }
    EXPECT_TRUE(context.takes_graph());
    KEEL_TRY(fails_);
    if (gives_none_) return OkStatus();
    KEEL_ASSIGN(hal::Capture capture, hal::Capture::Begin(bench_.inner(), library_.get()));
    KEEL_TRY(adds_(TraceContext(context.device(), library_.get(), addresses(context), true)));
    KEEL_ASSIGN(hal::Graph graph, capture.End());
    graphs_.push_back(std::move(graph));
    context.Give(graphs_.back().get());
    return OkStatus();
  }
  std::vector<DeviceAddress> addresses(const TraceContext& context) const {
    return {context.address(a_), context.address(b_), context.address(sum_)};
  }
  std::unique_ptr<Executable> Make(int slots) {
    ProgramBuilder builder("library");
    a_ = builder.Bind({.name = "a", .size = kSize, .policy = Policy::kCopy});
    b_ = builder.Bind({.name = "b", .size = kSize, .policy = Policy::kCopy});
    sum_ = builder.Bind(
        {.name = "sum", .size = kSize, .access = BindingAccess::kOut, .policy = Policy::kInPlace});
    adds_ = Adds(bench_.Kernel(hal::kernels::kAdd), a_, b_, sum_);
    builder.Recorded("adds", ReadsAndWrites(a_, b_, sum_),
                     [this](const TraceContext& context) { return Record(context); });
    return Need(
        Executable::Create(Need(std::move(builder).Build()), bench_.memory(), {.slots = slots}));
  }
  Status Step(Executable& executable, float value) {
    const Buffer a = bench_.Allocate();  // elsewhere in every step
    const Buffer b = bench_.Allocate();
    bench_.Write(a, Same(value));
    bench_.Write(b, Same(0.5F));
    KEEL_ASSIGN(Lease lease, executable.Acquire(bench_.stream(), Soon()));
    KEEL_TRY(lease.Bind(a_, a));
    KEEL_TRY(lease.Bind(b_, b));
    KEEL_TRY(lease.Launch(Soon()));
    KEEL_TRY(lease.Wait(Soon()));
    KEEL_ASSIGN(const DeviceAddress sum, lease.address(sum_));
    EXPECT_EQ(bench_.Read({.address = sum, .size = kSize}), Same(value + 0.5F));
    return OkStatus();
  }

  hal::Stream library_ = Need(hal::Stream::Create(bench_.inner()));
  BindingId a_, b_, sum_;
  TraceFunction adds_;
  std::vector<hal::Graph> graphs_;
  int eager_ = 0;
  bool gives_none_ = false;
  Status fails_;
};

TEST_F(RecordedCommandTest, ItsGraphIsPartOfTheSlots) {
  const auto executable = Make(2);
  ASSERT_TRUE(IsOk(Step(*executable, 1)));
  EXPECT_EQ(eager_, 1) << "the first step warms up";
  ASSERT_TRUE(IsOk(Step(*executable, 2)));
  EXPECT_EQ(graphs_.size(), 2u) << "one for each slot";
  graphs_.clear();  // they were copied
  bench_.device().ResetCounts();
  for (int i = 3; i < 10; ++i) ASSERT_TRUE(IsOk(Step(*executable, static_cast<float>(i))));
  EXPECT_EQ(bench_.device().calls(Primitive::kLaunchGraph), 7u);
  EXPECT_EQ(bench_.device().calls(Primitive::kLaunchKernel), 0u);
  EXPECT_EQ(bench_.device().calls(Primitive::kInstantiate), 0u);
  EXPECT_TRUE(graphs_.empty());
  EXPECT_EQ(eager_, 1);
}

TEST_F(RecordedCommandTest, OneThatGivesNothingIsNamedAndMayTryAgain) {
  const auto executable = Make(1);
  ASSERT_TRUE(IsOk(Step(*executable, 1)));
  gives_none_ = true;
  const Status none = Step(*executable, 2);
  EXPECT_EQ(none.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(none.message(), HasSubstr("'adds': it gave no graph"));
  gives_none_ = false;
  fails_ = Internal("the library is upset");
  EXPECT_THAT(Step(*executable, 3).message(), HasSubstr("'adds': the library is upset"));
  fails_ = OkStatus();
  EXPECT_TRUE(IsOk(Step(*executable, 4)));
  EXPECT_EQ(graphs_.size(), 1u);
}

TEST_F(RecordedCommandTest, OneWithoutAFunctionIsRefused) {
  ProgramBuilder builder("nothing");
  builder.Recorded("adds", {}, {});
  const Status built = std::move(builder).Build().status();
  EXPECT_EQ(built.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(built.message(), HasSubstr("'adds': no function"));
}

}  // namespace
}  // namespace keel::graph
