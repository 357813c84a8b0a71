#include "keel/graph/executable.h"

#include <gmock/gmock.h>

#include "graph/graph_test.h"

namespace keel::graph {
namespace {

using ::testing::HasSubstr;

// Every policy for bindings that move, over explicit commands.
class MovingTest : public GraphTest, public ::testing::WithParamInterface<Policy> {};

TEST_P(MovingTest, BuffersMayMoveInEveryStepAndNothingIsRecordedAgain) {
  const Adding adding = MakeAdding(GetParam(), GetParam());
  const auto executable = Need(Executable::Create(adding.program, bench_.memory(), {.slots = 2}));
  for (int step = 0; step < 12; ++step) {
    const auto number = static_cast<float>(step);
    const Buffer a = bench_.Filled(number);
    const Buffer b = bench_.Filled(10);
    const Buffer sum = bench_.Filled(-1);
    const Buffer total = bench_.Filled(100);
    if (step == 2) bench_.device().ResetCounts();
    {
      Lease lease = Need(executable->Acquire(bench_.stream(), Soon()));
      ASSERT_TRUE(IsOk(lease.Bind(adding.a, a)));
      ASSERT_TRUE(IsOk(lease.Bind(adding.b, b)));
      ASSERT_TRUE(IsOk(lease.Bind(adding.sum, sum)));
      ASSERT_TRUE(IsOk(lease.Bind(adding.total, total)));
      ASSERT_TRUE(IsOk(lease.Launch(Soon())));
      ASSERT_TRUE(IsOk(lease.Wait(Soon())));
    }
    EXPECT_EQ(bench_.Read(sum), Same(number + 10));
    EXPECT_EQ(bench_.Read(total), Same(100 + 2 * (number + 10)));
    EXPECT_EQ(bench_.Read(a), Same(number)) << "an input was written";
    // The next step's are elsewhere.
    if (step % 2 == 0) {
      for (const Buffer& buffer : {a, b, sum, total}) bench_.Free(buffer);
    }
  }
  EXPECT_EQ(bench_.RecordingCalls(), 0u);
  EXPECT_EQ(bench_.device().calls(Primitive::kLaunchGraph), 10u);
}

INSTANTIATE_TEST_SUITE_P(Policies, MovingTest,
                         ::testing::Values(Policy::kCopy, Policy::kPatch, Policy::kAuto),
                         [](const auto& policy) { return std::string(PolicyName(policy.param)); });

TEST_F(GraphTest, AStepInSteadyStateIsOneDriverCall) {
  const Adding adding = MakeAdding(Policy::kInPlace, Policy::kInPlace, BindingAccess::kResident);
  const auto executable = Need(Executable::Create(adding.program, bench_.memory(), {.slots = 2}));
  const Buffer total = bench_.Filled(0);
  ASSERT_TRUE(IsOk(executable->Bind(adding.total, total)));
  for (int step = 0; step < 50; ++step) {
    if (step == 1) bench_.device().ResetCounts();
    Lease lease = Need(executable->Acquire(bench_.stream(), Soon()));
    ASSERT_TRUE(IsOk(lease.Launch(Soon())));
    EXPECT_EQ(lease.report().actions().empty(), step != 0);
  }
  EXPECT_EQ(bench_.device().calls(), 49u);
  EXPECT_EQ(bench_.device().calls(Primitive::kLaunchGraph), 49u);
  ASSERT_TRUE(IsOk(executable->Synchronize(Soon())));
}

TEST_F(GraphTest, WhatIsNotBoundIsNamed) {
  const Adding adding = MakeAdding(Policy::kCopy, Policy::kCopy);
  const auto executable = Need(Executable::Create(adding.program, bench_.memory()));
  ASSERT_TRUE(IsOk(executable->Bind(adding.a, bench_.Filled(1))));
  Lease lease = Need(executable->Acquire(bench_.stream(), Soon()));
  const Status status = lease.Launch(Soon());
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.ToString(), HasSubstr("binding 'b' of program 'adding' is not bound"));
}

}  // namespace
}  // namespace keel::graph
