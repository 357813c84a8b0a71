// Steps on a stream that somebody else is capturing: none of them, and the capture is theirs.
#include <gmock/gmock.h>

#include "graph/graph_test.h"
#include "keel/hal/graph.h"

namespace keel::graph {
namespace {

using ::testing::HasSubstr;

class CapturedStreamTest : public GraphTest {
 protected:
  enum class Kind { kKernel, kTraced, kEager };
  // sum = a + b.
  struct Sum {
    BindingId a, b, sum;
    std::unique_ptr<Executable> executable;
  };
  Sum Make(Kind kind, const ExecutableOptions& options) {
    ProgramBuilder builder("captured");
    Sum made;
    made.a = builder.Bind({.name = "a", .size = kSize, .policy = Policy::kCopy});
    made.b = builder.Bind({.name = "b", .size = kSize, .policy = Policy::kCopy});
    made.sum = builder.Bind(
        {.name = "sum", .size = kSize, .access = BindingAccess::kOut, .policy = Policy::kInPlace});
    const hal::KernelHandle add = bench_.Kernel(hal::kernels::kAdd);
    std::vector<Operand> uses = ReadsAndWrites(made.a, made.b, made.sum);
    TraceFunction adds = Adds(add, made.a, made.b, made.sum, &called_);
    switch (kind) {
      case Kind::kKernel:
        builder.Kernel(add, kDims,
                       {Argument::In(made.a), Argument::In(made.b), Argument::Out(made.sum),
                        Argument::Value(std::uint64_t{kFloats})});
        break;
      case Kind::kTraced:
        builder.Traced("adds", std::move(uses), std::move(adds));
        break;
      case Kind::kEager:
        builder.Eager("adds", std::move(uses), std::move(adds));
        break;
    }
    made.executable =
        Need(Executable::Create(Need(std::move(builder).Build()), bench_.memory(), options));
    EXPECT_TRUE(IsOk(made.executable->Bind(made.a, a_)));
    EXPECT_TRUE(IsOk(made.executable->Bind(made.b, b_)));
    return made;
  }

  // A whole step, with the right result; what holds it is let go only when `reader` has read it.
  void ExpectStep(const Sum& sum, hal::StreamHandle reader) {
    Lease lease = Need(sum.executable->Acquire(bench_.stream(), Soon()));
    ASSERT_TRUE(IsOk(lease.Launch(Soon())));
    ASSERT_TRUE(IsOk(lease.Wait(Soon())));
    HeldOutput held = Need(lease.Hold(sum.sum));
    EXPECT_EQ(bench_.Read(held.address()), Same(3));
    ASSERT_TRUE(IsOk(held.RecordUse(reader)));
    ASSERT_TRUE(IsOk(held.Close()));
  }

  const Buffer a_ = bench_.Filled(1);
  const Buffer b_ = bench_.Filled(2);
  const hal::Stream reader_ = Need(hal::Stream::Create(bench_.inner()));
  int called_ = 0;
};

struct Refused {
  const char* name;
  int kind;
  int steps_before;
  Mode mode = Mode::kGraph;
  int warm_up = -1;
};

class RefusedStepTest : public CapturedStreamTest, public ::testing::WithParamInterface<Refused> {};

// Nothing of the step is queued, also not what it would wait for: the capture ends as it would have
// without it, and the slot takes the next step.
TEST_P(RefusedStepTest, LeavesTheCaptureAsItWas) {
  const auto [name, kind, steps_before, mode, warm_up] = GetParam();
  const Sum sum = Make(static_cast<Kind>(kind), {.slots = 1, .mode = mode, .warm_up = warm_up});
  for (int i = 0; i < steps_before; ++i) ExpectStep(sum, reader_.get());
  // Makes the slots, which is not what this is about.
  ASSERT_TRUE(IsOk(sum.executable->Acquire(bench_.stream(), Soon()).status()));
  hal::Capture capture = Need(hal::Capture::Begin(bench_.inner(), bench_.stream()));
  {
    Lease lease = Need(sum.executable->Acquire(bench_.stream(), Soon()));
    called_ = 0;
    bench_.device().ResetCounts();
    const Status status = lease.Launch(Soon());
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(status.message(), HasSubstr("'captured' is being captured: end the capture first"));
    EXPECT_EQ(bench_.device().calls(), bench_.device().calls(Primitive::kGetCaptureState));
    EXPECT_EQ(called_, 0);
  }
  Result<hal::Graph> graph = capture.End();
  ASSERT_TRUE(IsOk(graph)) << "the capture is broken";
  EXPECT_TRUE(Need(bench_.inner()->GetNodes(graph->get())).empty()) << "something of ours is in it";
  EXPECT_EQ(sum.executable->stats().failed_steps, 1u);
  if (HasFailure()) return;  // what follows would wait for a step that never ends
  for (int i = 0; i < 3; ++i) ExpectStep(sum, reader_.get());
  EXPECT_TRUE(IsOk(sum.executable->Close(Soon())));
}

INSTANTIATE_TEST_SUITE_P(
    All, RefusedStepTest,
    ::testing::Values(
        Refused{.name = "eager_mode_first", .kind = 0, .steps_before = 0, .mode = Mode::kEager},
        Refused{.name = "eager_mode", .kind = 0, .steps_before = 2, .mode = Mode::kEager},
        Refused{.name = "eager_mode_traced", .kind = 1, .steps_before = 2, .mode = Mode::kEager},
        Refused{.name = "warm_up", .kind = 1, .steps_before = 0},
        Refused{.name = "second_warm_up", .kind = 0, .steps_before = 1, .warm_up = 2},
        Refused{.name = "records", .kind = 0, .steps_before = 0},
        Refused{.name = "records_traced", .kind = 1, .steps_before = 1},
        Refused{.name = "eager_command", .kind = 2, .steps_before = 3}),
    [](const auto& refused) { return std::string(refused.param.name); });

// A step that is a launch and no more asks nobody: the driver refuses it, which is the capture's
// end, and not the slot's.
TEST_F(CapturedStreamTest, ASteadyStepIsRefusedByTheDriver) {
  const Sum sum = Make(Kind::kKernel, {.slots = 1});
  for (int i = 0; i < 2; ++i) ExpectStep(sum, bench_.stream());
  hal::Capture capture = Need(hal::Capture::Begin(bench_.inner(), bench_.stream()));
  {
    Lease lease = Need(sum.executable->Acquire(bench_.stream(), Soon()));
    bench_.device().ResetCounts();
    EXPECT_EQ(lease.Launch(Soon()).code(), StatusCode::kFailedPrecondition);
    EXPECT_EQ(bench_.device().calls(), bench_.device().calls(Primitive::kLaunchGraph));
  }
  EXPECT_EQ(capture.End().status().code(), StatusCode::kFailedPrecondition);
  for (int i = 0; i < 3; ++i) ExpectStep(sum, bench_.stream());
  EXPECT_TRUE(IsOk(sum.executable->Close(Soon())));
}

}  // namespace
}  // namespace keel::graph
