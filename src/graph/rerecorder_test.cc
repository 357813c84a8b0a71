#include "keel/graph/rerecorder.h"

#include <gmock/gmock.h>

#include <array>

#include "graph/graph_test.h"

namespace keel::graph {
namespace {

using ::testing::HasSubstr;

std::string_view Name(Rerecording how) {
  return how == Rerecording::kUpdate ? "update" : "instantiate";
}

class RerecorderTest : public GraphTest {
 protected:
  std::unique_ptr<Rerecorder> Make(std::shared_ptr<const Program> program, Rerecording how) {
    return Need(Rerecorder::Create(std::move(program), bench_.memory(), how));
  }
  void Finish() { ASSERT_TRUE(IsOk(bench_.device().SynchronizeStream(bench_.stream(), Soon()))); }
  std::uint64_t Calls(Primitive primitive) { return bench_.device().calls(primitive); }
};

class BothWaysTest : public RerecorderTest, public ::testing::WithParamInterface<Rerecording> {};

TEST_P(BothWaysTest, ResultsAreThoseOfAnExecutable) {
  const Adding adding = MakeAdding(Policy::kCopy, Policy::kCopy);
  const auto executable = Need(Executable::Create(adding.program, bench_.memory()));
  const auto rerecorder = Make(adding.program, GetParam());
  for (int step = 0; step < 6; ++step) {
    const auto number = static_cast<float>(step) / 3;
    const Buffer a = bench_.Filled(number);
    const Buffer b = bench_.Filled(0.1F);
    const std::array sums = {bench_.Filled(-1), bench_.Filled(-1)};
    const std::array totals = {bench_.Filled(7), bench_.Filled(7)};
    {
      Lease lease = Need(executable->Acquire(bench_.stream(), Soon()));
      ASSERT_TRUE(IsOk(lease.Bind(adding.a, a)));
      ASSERT_TRUE(IsOk(lease.Bind(adding.b, b)));
      ASSERT_TRUE(IsOk(lease.Bind(adding.sum, sums[0])));
      ASSERT_TRUE(IsOk(lease.Bind(adding.total, totals[0])));
      ASSERT_TRUE(IsOk(lease.Launch(Soon())));
    }
    const std::array addresses = {a.address, b.address, sums[1].address, totals[1].address};
    ASSERT_TRUE(IsOk(rerecorder->Run(bench_.stream(), addresses)));
    EXPECT_EQ(bench_.Read(sums[1]), bench_.Read(sums[0]));
    EXPECT_EQ(bench_.Read(totals[1]), bench_.Read(totals[0]));
    EXPECT_EQ(bench_.Read(sums[1]), Same(number + 0.1F));
  }
  EXPECT_EQ(rerecorder->stats().steps, 6u);
  EXPECT_EQ(rerecorder->stats().captured, 6u);
}

TEST_P(BothWaysTest, AStepMakesTheCallsOfItsCommandsAndOfARecording) {
  constexpr std::uint64_t kSteps = 5;
  const Adding adding = MakeAdding(Policy::kCopy, Policy::kCopy);
  const auto rerecorder = Make(adding.program, GetParam());
  std::vector<DeviceAddress> addresses;
  for (int i = 0; i < 4; ++i) addresses.push_back(bench_.Filled(1).address);
  ASSERT_TRUE(IsOk(rerecorder->Run(bench_.stream(), addresses)));
  bench_.device().ResetCounts();
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    ASSERT_TRUE(IsOk(rerecorder->Run(bench_.stream(), addresses)));
  }
  const bool updates = GetParam() == Rerecording::kUpdate;
  EXPECT_EQ(Calls(Primitive::kBeginCapture), kSteps);
  EXPECT_EQ(Calls(Primitive::kLaunchKernel), 2 * kSteps);
  EXPECT_EQ(Calls(Primitive::kEndCapture), kSteps);
  EXPECT_EQ(Calls(Primitive::kDestroyGraph), kSteps);
  EXPECT_EQ(Calls(Primitive::kLaunchGraph), kSteps);
  EXPECT_EQ(Calls(Primitive::kUpdateExec), updates ? kSteps : 0);
  EXPECT_EQ(Calls(Primitive::kInstantiate), updates ? 0 : kSteps);
  EXPECT_EQ(Calls(Primitive::kDestroyExec), updates ? 0 : kSteps);
  EXPECT_EQ(bench_.device().calls(), (updates ? 7 : 8) * kSteps) << "and nothing else";
  Finish();
}

// A scratch binding, a traced command and, between two graphs, an eager one.
TEST_P(BothWaysTest, EveryKindOfCommandRuns) {
  ProgramBuilder builder("mixed");
  const BindingId x = builder.Bind({.name = "x", .size = kSize});
  const BindingId y = builder.Bind({.name = "y", .size = kSize, .access = BindingAccess::kInOut});
  const BindingId first =
      builder.Bind({.name = "first", .size = 4_B, .access = BindingAccess::kScratch});
  const BindingId twice =
      builder.Bind({.name = "twice", .size = kSize, .access = BindingAccess::kScratch});
  const auto add = [&](BindingId a, BindingId b, BindingId c) {
    return [=, this](const TraceContext& context) {
      const std::array arguments = {hal::KernelArg::In(context.address(a), kSize),
                                    hal::KernelArg::In(context.address(b), kSize),
                                    hal::KernelArg::Out(context.address(c), kSize),
                                    hal::KernelArg::Value(std::uint64_t{kFloats})};
      return context.device().LaunchKernel(
          context.stream(),
          {.kernel = bench_.Kernel(hal::kernels::kAdd), .dims = kDims, .args = arguments});
    };
  };
  builder.Fill({.binding = first}, 0, 4);
  builder.Traced("twice", {{x}, {twice, hal::Access::kWrite}}, add(x, x, twice));
  builder.Eager("plus", {{twice}, {y, hal::Access::kReadWrite}}, add(twice, y, y));
  builder.Kernel(bench_.Kernel(hal::kernels::kAxpy), kDims,
                 {Argument::In(twice), Argument::InOut(y), Argument::Value(10.0F),
                  Argument::Value(std::uint64_t{kFloats})});
  const auto rerecorder = Make(Need(std::move(builder).Build()), GetParam());
  for (int step = 0; step < 4; ++step) {
    const Buffer in = bench_.Filled(static_cast<float>(step));
    const Buffer out = bench_.Filled(1);
    const std::array addresses = {in.address, out.address, DeviceAddress(), DeviceAddress()};
    ASSERT_TRUE(IsOk(rerecorder->Run(bench_.stream(), addresses)));
    EXPECT_EQ(bench_.Read(out), Same(1 + 22 * static_cast<float>(step)));
  }
  EXPECT_EQ(rerecorder->stats().captured, 2u * 3) << "the first step runs without graphs";
}

TEST_P(BothWaysTest, GoesWhileItsStepsWaitAndItsScratchIsKeptForThem) {
  ProgramBuilder builder("waiting");
  const BindingId x = builder.Bind({.name = "x", .size = kSize});
  const BindingId y = builder.Bind({.name = "y", .size = kSize, .access = BindingAccess::kOut});
  const BindingId between =
      builder.Bind({.name = "between", .size = kSize, .access = BindingAccess::kScratch});
  builder.Copy({.binding = between}, {.binding = x});
  builder.Copy({.binding = y}, {.binding = between});
  auto rerecorder = Make(Need(std::move(builder).Build()), GetParam());
  const Buffer in = bench_.Filled(5);
  const Buffer out = bench_.Filled(0);
  const std::array addresses = {in.address, out.address, DeviceAddress()};
  ASSERT_TRUE(IsOk(bench_.controls().HoldStream(bench_.stream())));
  for (int step = 0; step < 3; ++step) {
    ASSERT_TRUE(IsOk(rerecorder->Run(bench_.stream(), addresses)));
  }
  rerecorder.reset();
  EXPECT_EQ(bench_.memory()->allocator().Stats().pending_frees.current, 1);
  ASSERT_TRUE(IsOk(bench_.controls().ReleaseStream(bench_.stream())));
  EXPECT_EQ(bench_.Read(out), Same(5));
}

TEST_P(BothWaysTest, EveryCallMayFailAndTheNextStepIsRight) {
  const Adding adding = MakeAdding(Policy::kCopy, Policy::kCopy);
  const auto rerecorder = Make(adding.program, GetParam());
  const Buffer a = bench_.Filled(1);
  const Buffer b = bench_.Filled(2);
  const Buffer sum = bench_.Filled(0);
  const Buffer total = bench_.Filled(0);
  const std::array addresses = {a.address, b.address, sum.address, total.address};
  ASSERT_TRUE(IsOk(rerecorder->Run(bench_.stream(), addresses)));
  std::uint64_t call = 0;
  int failures = 0;
  while (true) {
    bench_.device().FailNth(++call, Internal("on purpose"));
    const Status status = rerecorder->Run(bench_.stream(), addresses);
    const bool reached = bench_.device().failed().has_value();
    bench_.device().ClearRules();
    if (!reached) break;
    failures += status.ok() ? 0 : 1;
    bench_.Write(sum, Same(0));
    bench_.Write(total, Same(100));
    ASSERT_TRUE(IsOk(rerecorder->Run(bench_.stream(), addresses)));
    EXPECT_EQ(bench_.Read(sum), Same(3));
    EXPECT_EQ(bench_.Read(total), Same(106));
    // Give-backs that failed are tried again.
    ASSERT_TRUE(IsOk(bench_.device().retries().Drain()));
  }
  EXPECT_GE(failures, 6);
  Finish();
}

INSTANTIATE_TEST_SUITE_P(Ways, BothWaysTest,
                         ::testing::Values(Rerecording::kInstantiate, Rerecording::kUpdate),
                         [](const auto& how) { return std::string(Name(how.param)); });

TEST_F(RerecorderTest, AGraphThatCannotBeUpdatedIsMadeAnew) {
  ProgramBuilder builder("growing");
  const BindingId y = builder.Bind({.name = "y", .size = kSize, .access = BindingAccess::kOut});
  int fills = 1;
  builder.Traced("fills", {{y, hal::Access::kWrite}}, [&](const TraceContext& context) -> Status {
    for (int i = 0; i < fills; ++i) {
      KEEL_TRY(context.device().EnqueueFill(
          context.stream(),
          {.destination = context.address(y) + Bytes(4) * static_cast<unsigned>(i),
           .value = 0x3f800000,
           .width = 4,
           .count = 1}));
    }
    return OkStatus();
  });
  const auto rerecorder = Make(Need(std::move(builder).Build()), Rerecording::kUpdate);
  const Buffer out = bench_.Filled(0);
  for (fills = 1; fills <= 3; ++fills) {
    for (int step = 0; step < 3; ++step) {
      ASSERT_TRUE(IsOk(rerecorder->Run(bench_.stream(), {&out.address, 1})));
    }
  }
  EXPECT_EQ(rerecorder->stats().steps, 9u);
  EXPECT_EQ(rerecorder->stats().instantiated, 3u);
  EXPECT_EQ(rerecorder->stats().updated, 5u);
  std::vector<float> expected = Same(0);
  for (std::size_t i = 0; i < 3; ++i) expected[i] = 1;
  EXPECT_EQ(bench_.Read(out), expected);
}

TEST_F(RerecorderTest, WhatHasNoAddressIsNamed) {
  const Adding adding = MakeAdding(Policy::kCopy, Policy::kCopy);
  const auto rerecorder = Make(adding.program, Rerecording::kUpdate);
  std::vector<DeviceAddress> addresses(4, bench_.Filled(0).address);
  addresses[1] = {};
  const Status status = rerecorder->Run(bench_.stream(), addresses);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.ToString(), HasSubstr("binding 'b' of program 'adding' has no address"));
  EXPECT_THAT(rerecorder->Run(bench_.stream(), {addresses.data(), 3}).ToString(),
              HasSubstr("3 addresses for the 4 bindings"));
}

}  // namespace
}  // namespace keel::graph
