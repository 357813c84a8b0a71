// Slots and leases: what each step gets, what is given back, what is counted.
#include <gmock/gmock.h>

#include <set>
#include <thread>

#include "graph/graph_test.h"
#include "keel/hal/graph.h"

namespace keel::graph {
namespace {

class SlotsTest : public GraphTest {
 protected:
  Bytes Tagged(const std::string& name) {
    const auto stats = bench_.memory()->allocator().Stats();
    const auto found = stats.tag_bytes.find("graph:" + name);
    return Bytes(found != stats.tag_bytes.end() ? static_cast<std::uint64_t>(found->second) : 0);
  }
};

TEST_F(SlotsTest, G8_EachSlotHandsOutItsOwnMemory) {
  const Adding adding = MakeAdding(Policy::kInPlace, Policy::kInPlace);
  for (const int slots : {1, 2, 3, 8}) {
    const auto executable =
        Need(Executable::Create(adding.program, bench_.memory(), {.slots = slots}));
    std::vector<Lease> leases;
    std::set<std::uint64_t> addresses;
    for (int i = 0; i < slots; ++i) {
      Lease lease = Need(executable->Acquire(bench_.stream(), Soon()));
      const auto number = static_cast<float>(i);
      bench_.Write(Need(lease.address(adding.a)), Same(number));
      bench_.Write(Need(lease.address(adding.b)), Same(10));
      bench_.Write(Need(lease.address(adding.total)), Same(100));
      ASSERT_TRUE(IsOk(lease.Launch(Soon())));
      addresses.insert(Need(lease.address(adding.sum)).value());
      leases.push_back(std::move(lease));
    }
    EXPECT_EQ(addresses.size(), static_cast<std::size_t>(slots));
    for (int i = 0; i < slots; ++i) {
      ASSERT_TRUE(IsOk(leases[i].Wait(Soon())));
      HeldOutput sum = Need(leases[i].Hold(adding.sum));
      HeldOutput total = Need(leases[i].Hold(adding.total));
      EXPECT_EQ(sum.address(), Need(leases[i].address(adding.sum)));
      EXPECT_EQ(sum.size(), kSize);
      const auto number = static_cast<float>(i);
      EXPECT_EQ(bench_.Read(sum.address()), Same(number + 10));
      EXPECT_EQ(bench_.Read(total.address()), Same(100 + 2 * (number + 10)));
    }
  }
}

// All slots but one have a step that the device has not begun, and the last one's ends.
TEST_F(SlotsTest, StepsOfSeveralSlotsOverlap) {
  for (const Policy policy : {Policy::kCopy, Policy::kPatch, Policy::kInPlace}) {
    const Adding adding = MakeAdding(policy, policy, BindingAccess::kResident);
    for (const int slots : {2, 3, 8}) {
      const auto executable =
          Need(Executable::Create(adding.program, bench_.memory(), {.slots = slots}));
      ASSERT_TRUE(IsOk(executable->Bind(adding.total, bench_.Filled(0))));
      const auto launch = [&](hal::StreamHandle stream) {
        Result<Lease> acquired = executable->Acquire(stream, Soon());
        EXPECT_TRUE(IsOk(acquired)) << slots << " slots, " << PolicyName(policy);
        if (!acquired.ok()) return Lease();
        Lease lease = *std::move(acquired);
        if (policy != Policy::kInPlace) {
          for (const BindingId each : {adding.a, adding.b, adding.sum}) {
            EXPECT_TRUE(IsOk(lease.Bind(each, bench_.Filled(1))));
          }
        }
        EXPECT_TRUE(IsOk(lease.Launch(Soon())));
        return lease;
      };
      EXPECT_TRUE(IsOk(launch(bench_.stream()).Wait(Soon()))) << "which records";
      std::vector<hal::Stream> held;
      std::vector<Lease> waiting;
      for (int i = 1; i < slots; ++i) {
        held.push_back(Need(hal::Stream::Create(bench_.inner())));
        ASSERT_TRUE(IsOk(bench_.controls().HoldStream(held.back().get())));
        waiting.push_back(launch(held.back().get()));
        ASSERT_TRUE(waiting.back());
      }
      const hal::Stream other = Need(hal::Stream::Create(bench_.inner()));
      Lease through = launch(other.get());
      ASSERT_TRUE(through);
      EXPECT_TRUE(IsOk(through.Wait(Soon()))) << slots << " slots, " << PolicyName(policy);
      EXPECT_EQ(through.report().waited_ns, 0);
      EXPECT_TRUE(through.done());
      for (const Lease& lease : waiting) EXPECT_FALSE(lease.done());
      // One after the other: they all add to one total.
      for (std::size_t i = 0; i < held.size(); ++i) {
        ASSERT_TRUE(IsOk(bench_.controls().ReleaseStream(held[i].get())));
        EXPECT_TRUE(IsOk(waiting[i].Wait(Soon())));
      }
    }
  }
}

// What a step copies out is there when its end is seen. So much of it that a mark that came
// before the copy would be seen long before its last byte.
TEST_F(SlotsTest, G7_WhatIsCopiedOutIsThereWhenTheStepIsDone) {
  constexpr Bytes kLarge = 32_MiB;
  ProgramBuilder builder("large");
  const BindingId x = builder.Bind({.name = "x", .size = 4_B, .policy = Policy::kPatch});
  const BindingId y = builder.Bind(
      {.name = "y", .size = kLarge, .access = BindingAccess::kOut, .policy = Policy::kCopy});
  builder.Copy({.binding = y, .offset = kLarge - 4_B}, {x});
  const auto program = Need(std::move(builder).Build());
  for (const Mode mode : {Mode::kGraph, Mode::kEager}) {
    const auto executable =
        Need(Executable::Create(program, bench_.memory(), {.slots = 1, .mode = mode}));
    // Read by the host without any stream: nothing but the mark orders it.
    void* const host = Need(bench_.memory()->host().Allocate(kLarge));
    const float& last = static_cast<const float*>(host)[kLarge.count() / sizeof(float) - 1];
    ASSERT_TRUE(IsOk(executable->Bind(y, {Need(bench_.inner()->GetHostAddress(host)), kLarge})));
    for (int step = 1; step < 6; ++step) {
      Lease lease = Need(executable->Acquire(bench_.stream(), Soon()));
      ASSERT_TRUE(IsOk(lease.Bind(x, bench_.Filled(static_cast<float>(step), 1))));
      ASSERT_TRUE(IsOk(lease.Launch(Soon())));
      while (!lease.done()) std::this_thread::yield();
      ASSERT_EQ(last, static_cast<float>(step));
    }
    ASSERT_TRUE(IsOk(executable->Close(Soon())));
    EXPECT_TRUE(IsOk(bench_.memory()->host().Free(host)));
  }
}

TEST_F(SlotsTest, G9_AStepThatFailsGivesItsSlotBack) {
  const Adding adding = MakeAdding(Policy::kPatch, Policy::kPatch);
  const auto executable = Need(Executable::Create(adding.program, bench_.memory(), {.slots = 1}));
  const auto step = [&](float number) {
    return RunStep(*executable, bench_.stream(),
                   {{adding.a, bench_.Filled(number)},
                    {adding.b, bench_.Filled(1)},
                    {adding.sum, bench_.Filled(0)},
                    {adding.total, bench_.Filled(0)}});
  };
  ASSERT_TRUE(IsOk(step(0)));
  for (const Primitive failing : {Primitive::kSetNodeParams, Primitive::kLaunchGraph}) {
    for (int i = 0; i < 5; ++i) {
      bench_.device().FailNth(failing, 1, Internal("injected"));
      EXPECT_EQ(step(1).code(), StatusCode::kInternal);
    }
    EXPECT_TRUE(IsOk(step(2)));
  }
  EXPECT_EQ(executable->stats().failed_steps, 10u);
  EXPECT_EQ(executable->stats().steps, 3u);
}

// An eager command that fails has queued something, whose end no mark tells.
TEST_F(SlotsTest, G9_AStepThatFailsHalfWayIsWaitedForBeforeItsTableIsRewritten) {
  ProgramBuilder builder("half");
  const BindingId x = builder.Bind({.name = "x", .size = kSize, .policy = Policy::kInPlace});
  const BindingId y = builder.Bind(
      {.name = "y", .size = kSize, .access = BindingAccess::kOut, .policy = Policy::kCopy});
  bool fails = false;
  builder.Copy({y}, {x});
  builder.Eager("unsteady", {{x, hal::Access::kRead}},
                [&](const TraceContext&) { return fails ? Internal("no") : OkStatus(); });
  const auto executable =
      Need(Executable::Create(Need(std::move(builder).Build()), bench_.memory(), {.slots = 1}));
  const Bound bound = {{y, bench_.Filled(0)}};
  ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream(), bound)));
  fails = true;
  ASSERT_TRUE(IsOk(bench_.controls().HoldStream(bench_.stream())));
  EXPECT_EQ(RunStep(*executable, bench_.stream(), bound).code(), StatusCode::kInternal);
  fails = false;
  // Another table while the first half may still read the old one.
  const Bound moved = {{y, bench_.Allocate()}};
  DeviceAddress home;
  {
    Lease lease = Need(executable->Acquire(bench_.stream(), Soon()));
    home = Need(lease.address(x));
    for (const auto& [binding, buffer] : moved) ASSERT_TRUE(IsOk(lease.Bind(binding, buffer)));
    EXPECT_EQ(lease.Launch(Deadline::After(std::chrono::milliseconds(20))).code(),
              StatusCode::kDeadlineExceeded);
    EXPECT_TRUE(Has(lease.report(), ActionKind::kWaited, Reason::kLastStepFailed));
  }
  EXPECT_EQ(executable->Synchronize(Deadline::After(std::chrono::milliseconds(5))).code(),
            StatusCode::kDeadlineExceeded);
  ASSERT_TRUE(IsOk(bench_.controls().ReleaseStream(bench_.stream())));
  bench_.Write(home, Same(7));
  ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream(), moved)));
  EXPECT_EQ(bench_.Read(moved[0].second), Same(7));
}

TEST_F(SlotsTest, G11_OnlyWhatTheAccessNeedsIsCopied) {
  const Adding adding = MakeAdding(Policy::kCopy, Policy::kCopy);
  const auto executable = Need(Executable::Create(adding.program, bench_.memory()));
  ReplayReport report;
  ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream(),
                           {{adding.a, bench_.Filled(1)},
                            {adding.b, bench_.Filled(1)},
                            {adding.sum, bench_.Filled(1)},
                            {adding.total, bench_.Filled(1)}},
                           &report)));
  EXPECT_EQ(report.copied_in, 3 * kSize) << "a, b, total";
  EXPECT_EQ(report.copied_out, 2 * kSize) << "sum, total";
  EXPECT_EQ(executable->stats().copied_in, 3 * kSize);
}

TEST_F(SlotsTest, G11_AHeldOutputIsNotOverwritten) {
  const Adding adding = MakeAdding(Policy::kInPlace, Policy::kInPlace, BindingAccess::kResident);
  const auto executable = Need(Executable::Create(adding.program, bench_.memory(), {.slots = 2}));
  ASSERT_TRUE(IsOk(executable->Bind(adding.total, bench_.Filled(0))));
  const auto step = [&](float number) {
    Lease lease = Need(executable->Acquire(bench_.stream(), Soon()));
    bench_.Write(Need(lease.address(adding.a)), Same(number));
    bench_.Write(Need(lease.address(adding.b)), Same(0));
    EXPECT_TRUE(IsOk(lease.Launch(Soon())));
    return Need(lease.Hold(adding.sum));
  };
  HeldOutput kept = step(1);
  for (int i = 2; i < 10; ++i) {
    HeldOutput next = step(static_cast<float>(i));
    EXPECT_NE(next.address(), kept.address());
    EXPECT_EQ(bench_.Read(next.address()), Same(static_cast<float>(i)));
    EXPECT_EQ(bench_.Read(kept.address()), Same(1));
  }
  HeldOutput moved = std::move(kept);
  EXPECT_FALSE(kept);  // NOLINT(bugprone-use-after-move): what the test is about
  EXPECT_EQ(bench_.Read(moved.address()), Same(1));
  EXPECT_TRUE(IsOk(moved.Close()));
  EXPECT_TRUE(IsOk(moved.Close())) << "of nothing";
  EXPECT_EQ(moved.RecordUse(bench_.stream()).code(), StatusCode::kFailedPrecondition);
}

// What reads a held output is in time, on the step's own stream and on another.
TEST_F(SlotsTest, G11_TheNextStepComesAfterWhoReadsTheOutput) {
  const Adding adding = MakeAdding(Policy::kInPlace, Policy::kInPlace, BindingAccess::kResident);
  const auto executable = Need(Executable::Create(adding.program, bench_.memory(), {.slots = 1}));
  ASSERT_TRUE(IsOk(executable->Bind(adding.total, bench_.Filled(0))));
  const hal::Stream other = Need(hal::Stream::Create(bench_.inner()));
  const hal::Stream reader = Need(hal::Stream::Create(bench_.inner()));
  const auto fill = [&](hal::StreamHandle stream, DeviceAddress at, std::uint32_t bits) {
    return bench_.inner()->EnqueueFill(
        stream, {.destination = at, .value = bits, .width = 4, .count = kFloats});
  };
  constexpr std::uint32_t kOne = 0x3f800000;
  constexpr std::uint32_t kTwo = 0x40000000;
  for (const bool own_stream : {true, false}) {
    const hal::StreamHandle reads = own_stream ? bench_.stream() : reader.get();
    const Buffer copy = bench_.Filled(-1);
    HeldOutput held;
    {
      Lease lease = Need(executable->Acquire(bench_.stream(), Soon()));
      ASSERT_TRUE(IsOk(fill(bench_.stream(), Need(lease.address(adding.a)), kOne)));
      ASSERT_TRUE(IsOk(fill(bench_.stream(), Need(lease.address(adding.b)), 0)));
      ASSERT_TRUE(IsOk(lease.Launch(Soon())));
      held = Need(lease.Hold(adding.sum));
      ASSERT_TRUE(IsOk(lease.Wait(Soon())));
    }
    ASSERT_TRUE(IsOk(bench_.controls().HoldStream(reads)));
    ASSERT_TRUE(IsOk(bench_.inner()->EnqueueCopy(
        reads, {.destination = hal::Location::On(bench_.device().id(), copy.address),
                .source = hal::Location::On(bench_.device().id(), held.address()),
                .size = kSize})));
    if (!own_stream) {
      ASSERT_TRUE(IsOk(held.RecordUse(reads)));
    }
    ASSERT_TRUE(IsOk(held.Close()));
    // The slot is idle, and its next step on a stream that nothing holds back.
    Lease lease = Need(executable->Acquire(other.get(), Soon()));
    ASSERT_TRUE(IsOk(lease.Launch(Soon())));
    EXPECT_EQ(lease.Wait(Deadline::After(std::chrono::milliseconds(20))).code(),
              StatusCode::kDeadlineExceeded);
    ASSERT_TRUE(IsOk(fill(other.get(), Need(lease.address(adding.sum)), kTwo)));
    ASSERT_TRUE(IsOk(bench_.controls().ReleaseStream(reads)));
    ASSERT_TRUE(IsOk(lease.Wait(Soon())));
    ASSERT_TRUE(IsOk(bench_.inner()->SynchronizeStream(reads, Soon())));
    ASSERT_TRUE(IsOk(bench_.inner()->SynchronizeStream(other.get(), Soon())));
    EXPECT_EQ(bench_.Read(copy), Same(1));
  }
}

// No event of ours becomes a part of somebody's capture, and no step comes before what was queued
// ahead of it.
TEST_F(SlotsTest, AnOutputMayBeLetGoWhileItsStreamIsCaptured) {
  const Adding adding = MakeAdding(Policy::kInPlace, Policy::kInPlace, BindingAccess::kResident);
  const auto executable = Need(Executable::Create(adding.program, bench_.memory(), {.slots = 1}));
  ASSERT_TRUE(IsOk(executable->Bind(adding.total, bench_.Filled(0))));
  const hal::Stream other = Need(hal::Stream::Create(bench_.inner()));
  const hal::Stream reader = Need(hal::Stream::Create(bench_.inner()));
  for (const bool own : {true, false}) {
    const hal::StreamHandle captured = own ? bench_.stream() : reader.get();
    HeldOutput held;
    {
      Lease lease = Need(executable->Acquire(bench_.stream(), Soon()));
      ASSERT_TRUE(IsOk(lease.Launch(Soon())));
      held = Need(lease.Hold(adding.sum));
      ASSERT_TRUE(IsOk(lease.Wait(Soon())));
    }
    ASSERT_TRUE(IsOk(held.RecordUse(captured)));
    hal::Capture capture = Need(hal::Capture::Begin(bench_.inner(), captured));
    ASSERT_TRUE(IsOk(held.Close()));
    {
      Lease lease = Need(executable->Acquire(other.get(), Soon()));
      const Status status = lease.Launch(Soon());
      EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
      EXPECT_THAT(status.ToString(), ::testing::HasSubstr("end the capture first"));
    }
    EXPECT_EQ(executable->Close(Deadline::Now()).code(), StatusCode::kDeadlineExceeded);
    const hal::Graph graph = Need(capture.End());
    EXPECT_TRUE(Need(bench_.inner()->GetNodes(graph.get())).empty()) << "nothing of ours is in it";
    EXPECT_TRUE(IsOk(RunStep(*executable, other.get())));
  }
  EXPECT_TRUE(IsOk(executable->Close(Soon())));
}

TEST_F(SlotsTest, WhoReadsTheOutputIsNotForgottenWhenTheNextLaunchFails) {
  const Adding adding = MakeAdding(Policy::kInPlace, Policy::kInPlace, BindingAccess::kResident);
  const auto executable = Need(Executable::Create(adding.program, bench_.memory(), {.slots = 1}));
  ASSERT_TRUE(IsOk(executable->Bind(adding.total, bench_.Filled(0))));
  const hal::Stream reader = Need(hal::Stream::Create(bench_.inner()));
  const hal::Stream third = Need(hal::Stream::Create(bench_.inner()));
  {
    Lease lease = Need(executable->Acquire(bench_.stream(), Soon()));
    ASSERT_TRUE(IsOk(lease.Launch(Soon())));
    HeldOutput held = Need(lease.Hold(adding.sum));
    ASSERT_TRUE(IsOk(lease.Wait(Soon())));
    ASSERT_TRUE(IsOk(bench_.controls().HoldStream(reader.get())));
    ASSERT_TRUE(IsOk(bench_.inner()->EnqueueFill(
        reader.get(), {.destination = held.address(), .value = 0, .width = 4, .count = 1})));
    ASSERT_TRUE(IsOk(held.RecordUse(reader.get())));
    ASSERT_TRUE(IsOk(held.Close()));
  }
  bench_.device().FailNth(Primitive::kLaunchGraph, 1, Internal("injected"));
  EXPECT_EQ(RunStep(*executable, third.get()).code(), StatusCode::kInternal);
  // The slot is not free for everybody, and a step on another stream comes after the reader.
  EXPECT_EQ(executable->Close(Deadline::Now()).code(), StatusCode::kDeadlineExceeded);
  Lease lease = Need(executable->Acquire(bench_.stream(), Soon()));
  ASSERT_TRUE(IsOk(lease.Launch(Soon())));
  EXPECT_EQ(lease.Wait(Deadline::After(std::chrono::milliseconds(20))).code(),
            StatusCode::kDeadlineExceeded);
  ASSERT_TRUE(IsOk(bench_.controls().ReleaseStream(reader.get())));
  EXPECT_TRUE(IsOk(lease.Wait(Soon())));
}

TEST_F(SlotsTest, AGenerationThatIsNotKnownSaysNothing) {
  const Adding adding = MakeAdding(Policy::kInPlace, Policy::kInPlace, BindingAccess::kResident);
  const auto executable = Need(Executable::Create(adding.program, bench_.memory(), {.slots = 1}));
  Buffer total = bench_.Filled(0);
  for (const std::uint64_t generation : {0, 7, 0, 7}) {
    total.generation = generation;
    ASSERT_TRUE(IsOk(executable->Bind(adding.total, total)));
    EXPECT_TRUE(IsOk(RunStep(*executable, bench_.stream()))) << generation;
  }
}

TEST_F(SlotsTest, G12_MemoryThatWasReallocatedAtItsAddressBreaksThePromiseNotToMove) {
  const Adding adding = MakeAdding(Policy::kCopy, Policy::kCopy, BindingAccess::kResident);
  const auto executable = Need(Executable::Create(adding.program, bench_.memory(), {.slots = 1}));
  Buffer total = bench_.Filled(0);
  total.generation = 4;
  const Bound rest = {
      {adding.a, bench_.Filled(1)}, {adding.b, bench_.Filled(1)}, {adding.sum, bench_.Filled(1)}};
  ASSERT_TRUE(IsOk(executable->Bind(adding.total, total)));
  ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream(), rest)));
  total.generation = 5;
  ASSERT_TRUE(IsOk(executable->Bind(adding.total, total)));
  const Status status = RunStep(*executable, bench_.stream(), rest);
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.ToString(), ::testing::HasSubstr("'total' was promised not to move"));
  EXPECT_THAT(status.ToString(), ::testing::HasSubstr("(generation 4)"));
  total.generation = 4;
  ASSERT_TRUE(IsOk(executable->Bind(adding.total, total)));
  EXPECT_TRUE(IsOk(RunStep(*executable, bench_.stream(), rest)));
}

// What a step does for its bindings goes with those that moved, not with all of them.
TEST_F(SlotsTest, G16_AStepLooksOnlyAtWhatMoved) {
  constexpr int kMany = 64;
  for (const Policy policy : {Policy::kCopy, Policy::kPatch}) {
    ProgramBuilder builder("many");
    std::vector<BindingId> in;
    const BindingId out = builder.Bind(
        {.name = "out", .size = kSize, .access = BindingAccess::kOut, .policy = Policy::kInPlace});
    for (int i = 0; i < kMany; ++i) {
      in.push_back(
          builder.Bind({.name = "in" + std::to_string(i), .size = 16_B, .policy = policy}));
      builder.Copy({.binding = out, .offset = Bytes(16 * i), .extent = 16_B}, {in.back()});
    }
    const auto executable =
        Need(Executable::Create(Need(std::move(builder).Build()), bench_.memory(), {.slots = 1}));
    std::vector<Buffer> places;
    for (int i = 0; i < kMany; ++i) {
      places.push_back(bench_.Filled(static_cast<float>(i), 4));
      ASSERT_TRUE(IsOk(executable->Bind(in[i], places.back())));
    }
    ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream())));
    std::vector<float> expected(kFloats);
    for (int i = 0; i < kMany; ++i) {
      std::fill_n(expected.begin() + 4 * i, 4, static_cast<float>(i));
    }
    for (const int moving : {0, 1, 3, kMany}) {
      for (int i = 0; i < moving; ++i) {
        const float value = static_cast<float>(1000 * moving + i);
        ASSERT_TRUE(IsOk(executable->Bind(in[i], bench_.Filled(value, 4))));
        std::fill_n(expected.begin() + 4 * i, 4, value);
      }
      bench_.device().ResetCounts();
      Lease lease = Need(executable->Acquire(bench_.stream(), Soon()));
      ASSERT_TRUE(IsOk(lease.Launch(Soon())));
      const auto moved = static_cast<std::uint32_t>(moving);
      // When it takes what was bound, and when it works that off.
      EXPECT_EQ(LeaseTestPeer::Looks(lease), 2 * moved);
      EXPECT_EQ(lease.report().rebound, policy == Policy::kCopy ? moved : 0);
      EXPECT_EQ(lease.report().patched, policy == Policy::kPatch ? moved : 0);
      // All rows are one call.
      EXPECT_EQ(bench_.device().calls(),
                1 + (policy == Policy::kPatch ? moved : std::min(moved, 1u)));
      ASSERT_TRUE(IsOk(lease.Wait(Soon())));
      EXPECT_EQ(bench_.Read(Need(lease.address(out))), expected);
    }
  }
}

// However often it is bound, also past what the list of changes keeps.
TEST_F(SlotsTest, G16_BindingAgainAndAgainKeepsTheLastOne) {
  const Adding adding = MakeAdding(Policy::kCopy, Policy::kCopy);
  const auto executable = Need(Executable::Create(adding.program, bench_.memory(), {.slots = 3}));
  const Buffer sum = bench_.Filled(0);
  const Buffer places[] = {bench_.Filled(1), bench_.Filled(2), bench_.Filled(3)};
  for (const auto& [binding, buffer] : Bound{{adding.a, places[0]},
                                             {adding.b, bench_.Filled(0)},
                                             {adding.sum, sum},
                                             {adding.total, bench_.Filled(0)}}) {
    ASSERT_TRUE(IsOk(executable->Bind(binding, buffer)));
  }
  for (int step = 0; step < 40; ++step) {
    for (int i = 0; i < 1 + step % 7 * 30; ++i) {
      ASSERT_TRUE(IsOk(executable->Bind(adding.a, places[(step + i) % 3])));
    }
    const int last = (step + step % 7 * 30) % 3;
    ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream())));
    EXPECT_EQ(bench_.Read(sum), Same(static_cast<float>(last + 1))) << step;
  }
}

TEST_F(SlotsTest, WhatALeaseBindsIsForItsStepAlone) {
  const Adding adding = MakeAdding(Policy::kPatch, Policy::kPatch);
  const auto executable = Need(Executable::Create(adding.program, bench_.memory(), {.slots = 1}));
  const Buffer sum = bench_.Filled(0);
  for (const auto& [binding, buffer] : Bound{{adding.a, bench_.Filled(1)},
                                             {adding.b, bench_.Filled(0)},
                                             {adding.sum, sum},
                                             {adding.total, bench_.Filled(0)}}) {
    ASSERT_TRUE(IsOk(executable->Bind(binding, buffer)));
  }
  const Buffer own = bench_.Filled(5);
  for (int step = 0; step < 6; ++step) {
    const bool special = step % 2 == 1;
    ASSERT_TRUE(
        IsOk(RunStep(*executable, bench_.stream(), special ? Bound{{adding.a, own}} : Bound{})));
    EXPECT_EQ(bench_.Read(sum), Same(special ? 5 : 1));
  }
}

TEST_F(SlotsTest, G1_TheSlotsMemoryIsSeenByItsTagAndIsGoneAfterClose) {
  const Adding adding = MakeAdding(Policy::kCopy, Policy::kInPlace);
  const auto executable = Need(Executable::Create(adding.program, bench_.memory(), {.slots = 3}));
  EXPECT_EQ(Tagged("adding"), 0_B) << "taken with the first step";
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream(),
                             {{adding.a, bench_.Filled(1)}, {adding.b, bench_.Filled(1)}})));
    EXPECT_GE(Tagged("adding"), 3 * 4 * kSize);
    EXPECT_GE(Tagged("adding"), executable->stats().slot_bytes);
    ASSERT_TRUE(IsOk(executable->Close(Soon())));
    EXPECT_EQ(Tagged("adding"), 0_B);
    EXPECT_EQ(executable->stats().slot_bytes, 0_B);
    EXPECT_EQ(executable->stats().evictions, 0u) << "closing is none";
  }
}

TEST_F(SlotsTest, NothingOfTheDeviceIsLeftAfterClose) {
  const Adding adding = MakeAdding(Policy::kCopy, Policy::kPatch);
  const auto live = [&] {
    std::size_t count = 0;
    for (const hal::LiveObject& object : bench_.device().Live()) {
      switch (object.created_by) {
        case Primitive::kCreateGraph:
        case Primitive::kInstantiate:
        case Primitive::kEndCapture:
        case Primitive::kCreateStream:
        case Primitive::kLoadModule:
          ++count;
          break;
        default:
          break;
      }
    }
    return count;
  };
  const Bound bound = {{adding.a, bench_.Filled(1)},
                       {adding.b, bench_.Filled(1)},
                       {adding.sum, bench_.Filled(1)},
                       {adding.total, bench_.Filled(1)}};
  const std::size_t before = live();
  const auto executable = Need(Executable::Create(adding.program, bench_.memory(), {.slots = 4}));
  ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream(), bound)));
  EXPECT_GT(live(), before);
  ASSERT_TRUE(IsOk(executable->Close(Soon())));
  EXPECT_TRUE(bench_.device().retries().empty());
  EXPECT_EQ(live(), before);
}

// Creation races creation, once.
TEST_F(SlotsTest, G3_ManyThreadsMakeTheSlotsOnce) {
  const Adding adding = MakeAdding(Policy::kInPlace, Policy::kInPlace);
  for (int round = 0; round < 5; ++round) {
    const auto executable = Need(Executable::Create(adding.program, bench_.memory(), {.slots = 4}));
    bench_.device().ResetCounts();
    std::vector<std::thread> threads;
    threads.reserve(8);
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        const hal::Stream stream = Need(hal::Stream::Create(bench_.inner()));
        EXPECT_TRUE(IsOk(RunStep(*executable, stream.get())));
        EXPECT_TRUE(IsOk(stream.Synchronize(Soon())));
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(bench_.device().calls(Primitive::kCreateStream), 2u)
        << "one set of slots, with two streams";
    EXPECT_EQ(bench_.device().calls(Primitive::kInstantiate), 4u) << "one for each slot";
    EXPECT_EQ(executable->stats().steps, 8u);
    ASSERT_TRUE(IsOk(executable->Close(Soon())));
  }
}

// What a recording has beside the program's own commands: the end's mark, or two kernels where
// something is copied both ways, of which the second one marks.
TEST_F(SlotsTest, AStepHasFewNodesOfItsOwn) {
  struct Case {
    Policy in, out;
    std::uint64_t nodes;
  };
  for (const Case& each :
       {Case{Policy::kInPlace, Policy::kInPlace, 1}, Case{Policy::kPatch, Policy::kPatch, 1},
        Case{Policy::kCopy, Policy::kCopy, 2}, Case{Policy::kCopy, Policy::kPatch, 2},
        Case{Policy::kPatch, Policy::kCopy, 1},
        // With the copies, and without.
        Case{Policy::kAuto, Policy::kAuto, 2 + 1}}) {
    const Adding adding = MakeAdding(each.in, each.out, BindingAccess::kResident);
    const auto executable = Need(Executable::Create(adding.program, bench_.memory(),
                                                    {.slots = 1, .costs = PrimitiveCosts{}}));
    Bound bound = {{adding.total, bench_.Filled(0)}};
    if (each.in != Policy::kInPlace) {
      bound.insert(bound.end(), {{adding.a, bench_.Filled(1)}, {adding.b, bench_.Filled(1)}});
    }
    if (each.out != Policy::kInPlace) bound.emplace_back(adding.sum, bench_.Filled(1));
    bench_.device().ResetCounts();
    ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream(), bound)));
    const std::uint64_t graphs = bench_.device().calls(Primitive::kInstantiate);
    EXPECT_EQ(graphs, each.in == Policy::kAuto ? 2u : 1u);
    EXPECT_EQ(bench_.device().calls(Primitive::kAddNode) - 2 * graphs, each.nodes)
        << PolicyName(each.in) << ", " << PolicyName(each.out);
  }
}

// So many pieces that their rows are fetched by a kernel of its own.
TEST_F(SlotsTest, ManyPiecesAreCopiedAsFewAre) {
  constexpr std::size_t kMany = 5 << 20;  // floats
  const Bytes size(kMany * sizeof(float));
  for (const bool in : {true, false}) {
    ProgramBuilder builder("large");
    const BindingId x =
        builder.Bind({.name = "x", .size = size, .policy = in ? Policy::kCopy : Policy::kPatch});
    const BindingId y = builder.Bind({.name = "y",
                                      .size = size,
                                      .access = BindingAccess::kOut,
                                      .policy = in ? Policy::kPatch : Policy::kCopy});
    builder.Copy({y}, {x});
    const auto executable =
        Need(Executable::Create(Need(std::move(builder).Build()), bench_.memory(), {.slots = 1}));
    for (int step = 0; step < 3; ++step) {
      std::vector<float> values(kMany);
      for (std::size_t i = 0; i < kMany; ++i) values[i] = static_cast<float>(i % 1000 + step);
      const Buffer from = bench_.Allocate(size);
      const Buffer to = bench_.Allocate(size);
      bench_.Write(from, values);
      ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream(), {{x, from}, {y, to}})));
      EXPECT_EQ(bench_.Read(to, kMany), values);
    }
  }
}

// What a first step could not make, the next one makes.
TEST_F(SlotsTest, G2_ARecordingThatFailedIsMadeByTheNextStep) {
  const Adding adding = MakeAdding(Policy::kInPlace, Policy::kInPlace, BindingAccess::kResident);
  const auto executable = Need(Executable::Create(adding.program, bench_.memory(), {.slots = 2}));
  ASSERT_TRUE(IsOk(executable->Bind(adding.total, bench_.Filled(0))));
  for (int i = 1; i <= 3; ++i) {
    bench_.device().FailNth(Primitive::kAddNode, static_cast<std::uint64_t>(i),
                            Internal("injected"));
    EXPECT_EQ(RunStep(*executable, bench_.stream()).code(), StatusCode::kInternal);
  }
  ReplayReport report;
  EXPECT_TRUE(IsOk(RunStep(*executable, bench_.stream(), {}, &report)));
  EXPECT_TRUE(Has(report, ActionKind::kRecorded, Reason::kFirstStep));
}

}  // namespace
}  // namespace keel::graph
