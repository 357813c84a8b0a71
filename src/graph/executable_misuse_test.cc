// What is not allowed, and what is said about it.
#include <gmock/gmock.h>

#include "base/forked_child_test.h"
#include "graph/graph_test.h"
#include "keel/graph/memory_budget.h"
#include "keel/graph/scratch_arena.h"

namespace keel::graph {
namespace {

using ::testing::HasSubstr;

class MisuseTest : public GraphTest {
 protected:
  static void Expect(const Status& status, StatusCode code, std::string_view message) {
    EXPECT_EQ(status.code(), code) << status.ToString();
    EXPECT_THAT(status.message(), HasSubstr(message));
  }
};

TEST_F(MisuseTest, OptionsThatMakeNoSense) {
  const Adding adding = MakeAdding(Policy::kCopy, Policy::kCopy);
  const auto refused = [&](const ExecutableOptions& options, std::string_view message) {
    Expect(Executable::Create(adding.program, bench_.memory(), options).status(),
           StatusCode::kInvalidArgument, message);
  };
  refused({.slots = 0}, "0 slots: there can be 1 to 64");
  refused({.slots = 65}, "65 slots: there can be 1 to 64");
  refused({.kept_traces = 0}, "kept_traces is 0: at least 1");
  refused({.warm_up = -2}, "warm_up is -2: -1, or a number of steps");
  Expect(Executable::Create(nullptr, bench_.memory()).status(), StatusCode::kInvalidArgument,
         "no program");
  Expect(Executable::Create(adding.program, nullptr).status(), StatusCode::kInvalidArgument,
         "no device memory");
}

TEST_F(MisuseTest, BuffersThatDoNotFit) {
  ProgramBuilder builder("fitting");
  const BindingId x = builder.Bind({.name = "x", .size = kSize});
  const BindingId words = builder.Bind(
      {.name = "words", .size = kSize, .access = BindingAccess::kOut, .policy = Policy::kPatch});
  builder.Fill({words}, 1, 4);
  const auto executable =
      Need(Executable::Create(Need(std::move(builder).Build()), bench_.memory()));
  Lease lease = Need(executable->Acquire(bench_.stream(), Soon()));
  const Buffer buffer = bench_.Allocate();
  const auto refused = [&](BindingId binding, const Buffer& bad, std::string_view message) {
    Expect(executable->Bind(binding, bad), StatusCode::kInvalidArgument, message);
    Expect(lease.Bind(binding, bad), StatusCode::kInvalidArgument, message);
  };
  refused(x, {buffer.address, kSize - 1_B}, "binding 'x' needs 1 KiB; the buffer at");
  refused(x, {{}, kSize}, "binding 'x': a buffer without an address");
  refused(BindingId{9}, buffer, "program 'fitting' has no binding 9: it has 2");
  refused(words, {buffer.address + 2_B, kSize}, "binding 'words' is filled in words of 4 bytes: ");
  EXPECT_TRUE(IsOk(executable->Bind(x, {buffer.address + 2_B, kSize}))) << "nobody asks for more";
}

TEST_F(MisuseTest, AnUnboundBindingIsNamedAndTheSlotIsGivenBack) {
  const Adding adding = MakeAdding(Policy::kPatch, Policy::kPatch);
  const auto executable = Need(Executable::Create(adding.program, bench_.memory(), {.slots = 1}));
  for (int i = 0; i < 3; ++i) {
    Expect(RunStep(*executable, bench_.stream(), {{adding.a, bench_.Filled(0)}}),
           StatusCode::kFailedPrecondition,
           "binding 'b' of program 'adding' is not bound: call Bind before Launch");
  }
  EXPECT_TRUE(IsOk(RunStep(*executable, bench_.stream(),
                           {{adding.a, bench_.Filled(0)},
                            {adding.b, bench_.Filled(0)},
                            {adding.sum, bench_.Filled(0)},
                            {adding.total, bench_.Filled(0)}})));
  EXPECT_EQ(RunStep(*executable, bench_.stream()).code(), StatusCode::kFailedPrecondition)
      << "what a lease bound was for its step alone";
}

TEST_F(MisuseTest, WhatIsWorkedOnInPlaceHasNoBufferOfTheCallers) {
  const Adding adding = MakeAdding(Policy::kInPlace, Policy::kCopy);
  const auto executable = Need(Executable::Create(adding.program, bench_.memory()));
  Expect(executable->Bind(adding.a, bench_.Allocate()), StatusCode::kFailedPrecondition,
         "binding 'a' (in) is in the slot's own memory: use Lease::address");
  Lease lease = Need(executable->Acquire(bench_.stream(), Soon()));
  EXPECT_TRUE(IsOk(lease.address(adding.a)));
  Expect(lease.address(adding.sum).status(), StatusCode::kFailedPrecondition,
         "binding 'sum' (policy copy) is not worked on in place: bind a buffer");
  Expect(lease.address(BindingId{77}).status(), StatusCode::kInvalidArgument, "no binding 77");
}

TEST_F(MisuseTest, AResidentBindingThatMoves) {
  const Adding adding = MakeAdding(Policy::kInPlace, Policy::kInPlace, BindingAccess::kResident);
  const auto executable = Need(Executable::Create(adding.program, bench_.memory(), {.slots = 1}));
  const Buffer total = bench_.Filled(0);
  ASSERT_TRUE(IsOk(executable->Bind(adding.total, total)));
  ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream())));
  const Buffer other = bench_.Filled(0);
  Expect(RunStep(*executable, bench_.stream(), {{adding.total, other}}),
         StatusCode::kFailedPrecondition,
         "binding 'total' was promised not to move: it was at " + ToString(total.address) +
             ", and is at " + ToString(other.address) + "; declare it in-out if it moves");
  EXPECT_TRUE(IsOk(RunStep(*executable, bench_.stream()))) << "back where it was";
}

TEST_F(MisuseTest, ALeaseIsForOneStep) {
  const auto program = Need(ProgramBuilder("empty").Build());
  const auto executable = Need(Executable::Create(program, bench_.memory(), {.slots = 2}));
  Expect(executable->Acquire({}, Soon()).status(), StatusCode::kInvalidArgument, "no stream");
  Lease lease = Need(executable->Acquire(bench_.stream(), Soon()));
  Expect(lease.Wait(Soon()), StatusCode::kFailedPrecondition,
         "nothing was launched with this lease");
  EXPECT_FALSE(lease.done());
  ASSERT_TRUE(IsOk(lease.Launch(Soon())));
  Expect(lease.Launch(Soon()), StatusCode::kFailedPrecondition,
         "the lease's step was launched already: acquire another");
  Expect(lease.Bind(BindingId{0}, bench_.Allocate()), StatusCode::kFailedPrecondition,
         "the lease's step was launched already");
  EXPECT_EQ(executable->stats().steps, 0u) << "counted when the lease goes";

  Lease moved = std::move(lease);
  // NOLINTBEGIN(bugprone-use-after-move)
  EXPECT_FALSE(lease);
  EXPECT_TRUE(moved);
  constexpr std::string_view kNone = "this lease has no slot: it was moved from";
  for (const Status& status :
       {lease.Launch(Soon()), lease.Wait(Soon()), lease.Bind(BindingId{0}, bench_.Allocate()),
        lease.address(BindingId{0}).status(), lease.Hold(BindingId{0}).status()}) {
    Expect(status, StatusCode::kFailedPrecondition, kNone);
  }
  EXPECT_FALSE(lease.done());
  EXPECT_TRUE(lease.report().actions().empty());
  // NOLINTEND(bugprone-use-after-move)
  EXPECT_TRUE(IsOk(moved.Wait(Soon())));
  // Assigned over, a lease gives its slot back: two slots suffice for any number.
  for (int i = 0; i < 5; ++i) {
    moved = Need(executable->Acquire(bench_.stream(), Deadline::After(std::chrono::seconds(5))));
  }
}

TEST_F(MisuseTest, OnlyAnOutputInTheSlotCanBeHeld) {
  const Adding adding = MakeAdding(Policy::kInPlace, Policy::kCopy);
  const auto executable = Need(Executable::Create(adding.program, bench_.memory()));
  ASSERT_TRUE(IsOk(executable->Bind(adding.sum, bench_.Filled(0))));
  ASSERT_TRUE(IsOk(executable->Bind(adding.total, bench_.Filled(0))));
  Lease lease = Need(executable->Acquire(bench_.stream(), Soon()));
  Expect(lease.Hold(adding.sum).status(), StatusCode::kFailedPrecondition,
         "nothing was launched with this lease");
  ASSERT_TRUE(IsOk(lease.Launch(Soon())));
  Expect(lease.Hold(adding.a).status(), StatusCode::kFailedPrecondition,
         "'a' is no output in the slot's own memory (access in, policy in-place)");
  Expect(lease.Hold(adding.sum).status(), StatusCode::kFailedPrecondition,
         "'sum' is no output in the slot's own memory (access out, policy copy)");
  Expect(lease.Hold(BindingId{8}).status(), StatusCode::kInvalidArgument, "no binding 8");
}

TEST_F(MisuseTest, AHeldOutputWhoseSlotIsNeededIsNamedInTheError) {
  const Adding adding = MakeAdding(Policy::kInPlace, Policy::kInPlace);
  const auto executable = Need(Executable::Create(adding.program, bench_.memory(), {.slots = 2}));
  std::vector<HeldOutput> held;
  for (int i = 0; i < 2; ++i) {
    Lease lease = Need(executable->Acquire(bench_.stream(), Soon()));
    ASSERT_TRUE(IsOk(lease.Launch(Soon())));
    held.push_back(Need(lease.Hold(adding.sum)));
    held.push_back(Need(lease.Hold(adding.total)));
  }
  const Deadline shortly = Deadline::After(std::chrono::milliseconds(10));
  Expect(executable->Acquire(bench_.stream(), shortly).status(), StatusCode::kDeadlineExceeded,
         "of 2, 0 run on other streams, 0 are leased, 2 hold outputs that were not let go");
  Expect(executable->Close(Soon()), StatusCode::kFailedPrecondition,
         "'adding' is in use: a lease or a held output was not let go");
  held.pop_back();
  EXPECT_FALSE(IsOk(executable->Acquire(bench_.stream(), Deadline::Now()))) << "one still holds it";
  held.pop_back();
  EXPECT_TRUE(IsOk(executable->Acquire(bench_.stream(), Soon())));
}

// Freed, and allocated again at the same address.
TEST_F(MisuseTest, G12_AReallocatedInputIsReadAnew) {
  for (const Policy policy : {Policy::kCopy, Policy::kPatch, Policy::kAuto}) {
    const Adding adding = MakeAdding(policy, policy);
    const auto executable = Need(Executable::Create(adding.program, bench_.memory()));
    const Buffer sum = bench_.Filled(0);
    Buffer a = bench_.Filled(1);
    const DeviceAddress before = a.address;
    for (int step = 0; step < 4; ++step) {
      const auto number = static_cast<float>(step);
      bench_.Free(a);
      a = bench_.Filled(number);
      ASSERT_EQ(a.address, before) << "as the allocator does it now";
      a.generation = static_cast<std::uint64_t>(step);
      ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream(),
                               {{adding.a, a},
                                {adding.b, bench_.Filled(1)},
                                {adding.sum, sum},
                                {adding.total, bench_.Filled(0)}})));
      EXPECT_EQ(bench_.Read(sum), Same(number + 1));
    }
    bench_.Free(a);
  }
}

TEST_F(MisuseTest, ACommandThatLaunchesItsOwnExecutable) {
  std::unique_ptr<Executable> executable;
  std::unique_ptr<Executable> other;
  ProgramBuilder nothing("nothing");
  nothing.Eager("nothing", {}, [](const TraceContext&) { return OkStatus(); });
  other = Need(Executable::Create(Need(std::move(nothing).Build()), bench_.memory()));
  ProgramBuilder builder("nested");
  Status inner;
  builder.Eager("again", {}, [&](const TraceContext& context) -> Status {
    EXPECT_TRUE(IsOk(RunStep(*other, context.stream(), {}))) << "another one may be launched";
    inner = RunStep(*executable, context.stream(), {});
    return OkStatus();
  });
  executable = Need(Executable::Create(Need(std::move(builder).Build()), bench_.memory()));
  EXPECT_TRUE(IsOk(RunStep(*executable, bench_.stream(), {})));
  Expect(inner, StatusCode::kFailedPrecondition, "a command of 'nested' launches a step of");
  EXPECT_TRUE(IsOk(RunStep(*executable, bench_.stream(), {}))) << "and it works on";
}

TEST_F(MisuseTest, AForkedChildIsNoReasonToComplain) {
  ProgramBuilder builder("forked");
  const BindingId y = builder.Bind(
      {.name = "y", .size = kSize, .access = BindingAccess::kOut, .policy = Policy::kInPlace});
  const BindingId s = builder.Bind({.name = "s", .size = kSize, .access = BindingAccess::kScratch});
  builder.Fill({s}, 0, 1);
  builder.Copy({y}, {s});
  auto arena = Need(ScratchArena::Create(bench_.memory(), kSize));
  auto budget = std::make_shared<MemoryBudget>(64_MiB);
  auto executable = Need(Executable::Create(Need(std::move(builder).Build()), bench_.memory(),
                                            {.slots = 2, .scratch = arena, .budget = budget}));
  HeldOutput output;
  {
    Lease lease = Need(executable->Acquire(bench_.stream(), Soon()));
    ASSERT_TRUE(IsOk(lease.Launch()));
    output = Need(lease.Hold(y));
  }
  Lease held = Need(executable->Acquire(bench_.stream(), Soon()));
  SetLogLevel(LogLevel::kWarn);
  // Others take and give back slots of theirs, memory and the budget's room meanwhile.
  const WorkingThread busy([&] {
    ProgramBuilder little("little");
    const BindingId z =
        little.Bind({.name = "z", .size = kSize, .access = BindingAccess::kScratch});
    little.Fill({z}, 0, 1);
    const auto other = Need(Executable::Create(Need(std::move(little).Build()), bench_.memory(),
                                               {.scratch = arena, .budget = budget}));
    EXPECT_TRUE(IsOk(RunStep(*other, bench_.stream(), {})));
    static_cast<void>(executable->stats());
    static_cast<void>(budget->used());
  });
  for (int round = 0; round < kForks; ++round) {
    const int status = InForkedChild([&] {
      ::testing::internal::CaptureStderr();
      EXPECT_EQ(RunStep(*executable, bench_.stream(), {}).code(), StatusCode::kFailedPrecondition);
      EXPECT_EQ(held.Launch().code(), StatusCode::kFailedPrecondition);
      EXPECT_EQ(executable->Synchronize(Soon()).code(), StatusCode::kFailedPrecondition);
      EXPECT_EQ(executable->Close(Soon()).code(), StatusCode::kFailedPrecondition);
      EXPECT_EQ(executable->stats().steps, 0U);
      EXPECT_EQ(budget->used(), 0_B);
      executable.reset();
      arena.reset();
      {
        const HeldOutput gone = std::move(output);
        const Lease ended = std::move(held);
      }
      budget.reset();
      EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
    });
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status << " in " << round;
  }
}

// --- Bindings that share memory ------------------------------------------------------------------

// y = x + b; z = x + y.
class SharedMemoryTest : public GraphTest {
 protected:
  struct Sharing {
    BindingId x, b, y, z;
    std::shared_ptr<const Program> program;
  };
  Sharing MakeSharing(Policy policy) {
    ProgramBuilder builder("sharing");
    Sharing made;
    const auto bind = [&](const char* name, BindingAccess access) {
      return builder.Bind({.name = name, .size = kSize, .access = access, .policy = policy});
    };
    made.x = bind("x", BindingAccess::kIn);
    made.b = bind("b", BindingAccess::kIn);
    made.y = bind("y", BindingAccess::kOut);
    made.z = bind("z", BindingAccess::kOut);
    const hal::KernelHandle add = bench_.Kernel(hal::kernels::kAdd);
    for (const auto& [other, sum] : {std::pair(made.b, made.y), std::pair(made.y, made.z)}) {
      builder.Kernel(add, kDims,
                     {Argument::In(made.x), Argument::In(other), Argument::Out(sum),
                      Argument::Value(std::uint64_t{kFloats})});
    }
    made.program = Need(std::move(builder).Build());
    return made;
  }
  // What a first step and some more leave in z and in the log, with x and y, or x and b, at one
  // place.
  std::pair<float, std::string> Run(Policy policy, bool written) {
    const Sharing sharing = MakeSharing(policy);
    const auto executable = Need(Executable::Create(sharing.program, bench_.memory(),
                                                    {.slots = 2, .costs = PrimitiveCosts{}}));
    const Buffer z = bench_.Filled(0);
    SetLogLevel(LogLevel::kWarn);
    testing::internal::CaptureStderr();
    for (int step = 0; step < 3; ++step) {
      const Buffer one = bench_.Filled(1);
      const Buffer other = bench_.Filled(1);
      EXPECT_TRUE(IsOk(RunStep(*executable, bench_.stream(),
                               {{sharing.x, one},
                                {sharing.b, written ? other : one},
                                {sharing.y, written ? one : other},
                                {sharing.z, z}})));
    }
    SetLogLevel(LogLevel::kOff);
    return {bench_.Read(z)[0], testing::internal::GetCapturedStderr()};
  }
};

TEST_F(SharedMemoryTest, WhatBindingsSeeOfEachOtherDependsOnThePolicy) {
  EXPECT_EQ(Run(Policy::kCopy, true), std::pair(3.0F, std::string())) << "x + (x + b)";
  EXPECT_EQ(Run(Policy::kPatch, true), std::pair(4.0F, std::string())) << "(x + b) + (x + b)";
}

TEST_F(SharedMemoryTest, AutoWarnsOnceOfMemoryThatIsSharedAndWritten) {
  const std::string said = Run(Policy::kAuto, true).second;
  EXPECT_THAT(said, HasSubstr("bindings 'x' and 'y' of 'sharing' share memory"));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_EQ(Run(Policy::kAuto, false).second, "") << "which nobody writes";
}

}  // namespace
}  // namespace keel::graph
