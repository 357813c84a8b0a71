#include "keel/graph/scratch_arena.h"

#include <gmock/gmock.h>

#include <latch>
#include <thread>

#include "graph/graph_test.h"
#include "keel/hal/graph.h"

namespace keel::graph {
namespace {

using ::testing::HasSubstr;

class ScratchArenaTest : public GraphTest {
 protected:
  explicit ScratchArenaTest()
      : GraphTest({.devices = 2, .memory = 1_GiB, .arena = 8_GiB, .seed = 3, .delay_us = 10}) {}

  // y = x, by way of scratch of `floats`, a part at a time.
  struct Relay {
    BindingId x, y;
    std::unique_ptr<Executable> executable;
  };
  Relay MakeRelay(const std::string& name, std::size_t floats, std::shared_ptr<ScratchArena> arena,
                  std::chrono::milliseconds patience = std::chrono::seconds(10)) {
    Relay relay;
    ProgramBuilder builder(name);
    const Bytes size(floats * sizeof(float));
    relay.x = builder.Bind({.name = "x", .size = size, .policy = Policy::kPatch});
    relay.y = builder.Bind(
        {.name = "y", .size = size, .access = BindingAccess::kOut, .policy = Policy::kPatch});
    const BindingId one =
        builder.Bind({.name = "one", .size = size, .access = BindingAccess::kScratch});
    const BindingId two =
        builder.Bind({.name = "two", .size = size, .access = BindingAccess::kScratch});
    builder.Copy({one}, {relay.x});
    builder.Copy({two}, {one});
    builder.Copy({relay.y}, {two});
    relay.executable =
        Need(Executable::Create(Need(std::move(builder).Build()), bench_.memory(),
                                {.slots = 2, .patience = patience, .scratch = std::move(arena)}));
    return relay;
  }
};

TEST_F(ScratchArenaTest, ExecutablesOfTwoShapesOnTwoStreamsShareIt) {
  const std::size_t sizes[] = {256, 16'384};
  const hal::Stream streams[] = {Need(hal::Stream::Create(bench_.inner())),
                                 Need(hal::Stream::Create(bench_.inner()))};
  const auto arena = Need(ScratchArena::Create(bench_.memory(), 2 * 64_KiB));
  std::vector<std::thread> threads;
  threads.reserve(2);
  for (std::size_t i = 0; i < 2; ++i) {
    threads.emplace_back([&, floats = sizes[i], stream = streams[i].get()] {
      const Relay relay = MakeRelay("relay" + std::to_string(floats), floats, arena);
      const Buffer x = bench_.Allocate(Bytes(floats * sizeof(float)));
      const Buffer y = bench_.Allocate(Bytes(floats * sizeof(float)));
      for (int step = 0; step < 30; ++step) {
        const std::vector<float> values(floats, static_cast<float>(step) + 0.5F);
        EXPECT_TRUE(
            IsOk(bench_.memory()->CopyToDevice(stream, x.address, values.data(), x.size, Soon())));
        EXPECT_TRUE(IsOk(RunStep(*relay.executable, stream, {{relay.x, x}, {relay.y, y}})));
        std::vector<float> result(floats);
        EXPECT_TRUE(
            IsOk(bench_.memory()->CopyToHost(stream, result.data(), y.address, y.size, Soon())));
        ASSERT_EQ(result, values) << step;
      }
      EXPECT_TRUE(IsOk(relay.executable->Close(Soon())));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ScratchArenaTest, AStepOnAnotherStreamComesAfterTheLast) {
  const hal::Stream other = Need(hal::Stream::Create(bench_.inner()));
  const auto arena = Need(ScratchArena::Create(bench_.memory(), 8_KiB));
  const Relay first = MakeRelay("first", kFloats, arena);
  const Relay second = MakeRelay("second", kFloats, arena);
  const Bound to_first = {{first.x, bench_.Filled(1)}, {first.y, bench_.Filled(0)}};
  const Bound to_second = {{second.x, bench_.Filled(2)}, {second.y, bench_.Filled(0)}};
  ASSERT_TRUE(IsOk(bench_.controls().HoldStream(bench_.stream())));
  const auto launch = [](const Relay& relay, const Bound& bound, hal::StreamHandle stream) {
    Lease lease = Need(relay.executable->Acquire(stream, Soon()));
    for (const auto& [binding, buffer] : bound) EXPECT_TRUE(IsOk(lease.Bind(binding, buffer)));
    EXPECT_TRUE(IsOk(lease.Launch(Soon())));
    return lease;
  };
  const Lease held_back = launch(first, to_first, bench_.stream());
  Lease after = launch(second, to_second, other.get());
  EXPECT_EQ(after.Wait(Deadline::After(std::chrono::milliseconds(20))).code(),
            StatusCode::kDeadlineExceeded);
  ASSERT_TRUE(IsOk(bench_.controls().ReleaseStream(bench_.stream())));
  ASSERT_TRUE(IsOk(after.Wait(Soon())));
  EXPECT_EQ(bench_.Read(to_first[1].second), Same(1));
  EXPECT_EQ(bench_.Read(to_second[1].second), Same(2));
}

// Waiting for a slot's own last step keeps nobody else from the arena.
TEST_F(ScratchArenaTest, AStepThatWaitsForItsTableHoldsUpNobody) {
  const hal::Stream other = Need(hal::Stream::Create(bench_.inner()));
  const auto arena = Need(ScratchArena::Create(bench_.memory(), 8_KiB));
  ProgramBuilder builder("copier");
  const BindingId x = builder.Bind({.name = "x", .size = kSize, .policy = Policy::kCopy});
  const BindingId scratch =
      builder.Bind({.name = "scratch", .size = kSize, .access = BindingAccess::kScratch});
  builder.Copy({scratch}, {x});
  const auto copier = Need(Executable::Create(Need(std::move(builder).Build()), bench_.memory(),
                                              {.slots = 1, .scratch = arena}));
  const Relay relay = MakeRelay("relay", kFloats, arena);
  ASSERT_TRUE(IsOk(RunStep(*copier, bench_.stream(), {{x, bench_.Filled(0)}})));
  ASSERT_TRUE(IsOk(bench_.controls().HoldStream(bench_.stream())));
  {
    Lease lease = Need(copier->Acquire(bench_.stream(), Soon()));
    ASSERT_TRUE(IsOk(lease.Bind(x, bench_.Allocate())));
    ASSERT_TRUE(IsOk(lease.Launch(Soon())));
  }
  Lease waiting = Need(copier->Acquire(bench_.stream(), Soon()));
  ASSERT_TRUE(IsOk(waiting.Bind(x, bench_.Allocate())));
  std::thread waiter([&] { EXPECT_TRUE(IsOk(waiting.Launch(Soon()))); });
  {
    // Launched while the other waits, whichever comes first; only running has to wait.
    const Buffer from = bench_.Allocate();
    const Buffer to = bench_.Allocate();
    Lease lease = Need(relay.executable->Acquire(other.get(), Soon()));
    ASSERT_TRUE(IsOk(lease.Bind(relay.x, from)));
    ASSERT_TRUE(IsOk(lease.Bind(relay.y, to)));
    EXPECT_TRUE(IsOk(lease.Launch(Deadline::After(std::chrono::seconds(1)))));
    ASSERT_TRUE(IsOk(bench_.controls().ReleaseStream(bench_.stream())));
    EXPECT_TRUE(IsOk(lease.Wait(Soon())));
  }
  waiter.join();
  EXPECT_TRUE(IsOk(waiting.Wait(Soon())));
}

// The arena is one step's while its commands are called.
TEST_F(ScratchArenaTest, G6_AnotherStepWithTheSameScratchIsWaitedForUntilTheDeadline) {
  const hal::Stream other = Need(hal::Stream::Create(bench_.inner()));
  const auto arena = Need(ScratchArena::Create(bench_.memory(), 8_KiB));
  const Relay relay = MakeRelay("relay", kFloats, arena);
  const Bound bound = {{relay.x, bench_.Filled(3)}, {relay.y, bench_.Filled(0)}};
  ASSERT_TRUE(IsOk(RunStep(*relay.executable, other.get(), bound)));
  ProgramBuilder builder("staying");
  const BindingId scratch =
      builder.Bind({.name = "scratch", .size = kSize, .access = BindingAccess::kScratch});
  std::latch stayed(1);
  std::latch goes_on(1);
  builder.Eager("stays", {{scratch, hal::Access::kWrite}}, [&](const TraceContext&) {
    stayed.count_down();
    goes_on.wait();
    return OkStatus();
  });
  const auto staying = Need(Executable::Create(Need(std::move(builder).Build()), bench_.memory(),
                                               {.slots = 1, .scratch = arena}));
  std::thread thread([&] { EXPECT_TRUE(IsOk(RunStep(*staying, bench_.stream()))); });
  stayed.wait();
  Lease lease = Need(relay.executable->Acquire(other.get(), Soon()));
  for (const auto& [binding, buffer] : bound) EXPECT_TRUE(IsOk(lease.Bind(binding, buffer)));
  const Status late = lease.Launch(Deadline::After(std::chrono::milliseconds(20)));
  EXPECT_EQ(late.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(late.message(),
              HasSubstr("another step with the same scratch arena was not queued in time"));
  EXPECT_TRUE(Has(lease.report(), ActionKind::kWaited, Reason::kScratchBusy));
  EXPECT_GE(lease.report().waited_ns, 20'000'000);
  goes_on.count_down();
  EXPECT_TRUE(IsOk(lease.Launch(Soon())));
  EXPECT_TRUE(IsOk(lease.Wait(Soon())));
  thread.join();
}

// An executable that gave up waiting is gone, and so is its arena; the step still writes there.
TEST_F(ScratchArenaTest, UnderAStepThatHangsTheMemoryStaysUntilItIsDone) {
  const auto tagged = [&] {
    return bench_.memory()->allocator().Stats().tag_bytes["graph:scratch"];
  };
  const Buffer x = bench_.Filled(3);
  const Buffer y = bench_.Filled(0);
  {
    auto arena = Need(ScratchArena::Create(bench_.memory(), 8_KiB, std::chrono::milliseconds(20)));
    Relay relay = MakeRelay("relay", kFloats, arena, std::chrono::milliseconds(20));
    ASSERT_TRUE(IsOk(RunStep(*relay.executable, bench_.stream(), {{relay.x, x}, {relay.y, y}})));
    bench_.Write(y, Same(0));
    ASSERT_TRUE(IsOk(bench_.controls().HoldStream(bench_.stream())));
    Lease lease = Need(relay.executable->Acquire(bench_.stream(), Soon()));
    ASSERT_TRUE(IsOk(lease.Bind(relay.x, x)));
    ASSERT_TRUE(IsOk(lease.Bind(relay.y, y)));
    ASSERT_TRUE(IsOk(lease.Launch(Soon())));
  }
  EXPECT_EQ(tagged(), 8'192) << "the step will write there";
  std::vector<std::string> left = bench_.device().retries().List();
  EXPECT_THAT(left, ::testing::Contains(HasSubstr("scratch of 8 KiB, which a step still uses")));
  EXPECT_FALSE(bench_.device().retries().Drain().ok());
  EXPECT_EQ(tagged(), 8'192);
  ASSERT_TRUE(IsOk(bench_.controls().ReleaseStream(bench_.stream())));
  EXPECT_EQ(bench_.Read(y), Same(3)) << "the step ran, in memory that was its own";
  EXPECT_TRUE(IsOk(bench_.device().retries().Drain()));
  EXPECT_EQ(tagged(), 0);
}

TEST_F(ScratchArenaTest, ACommandCannotLaunchAStepThatHasTheSameScratch) {
  const auto arena = Need(ScratchArena::Create(bench_.memory(), 8_KiB));
  const Relay relay = MakeRelay("relay", kFloats, arena);
  const Bound bound = {{relay.x, bench_.Filled(3)}, {relay.y, bench_.Filled(0)}};
  ProgramBuilder builder("outer");
  const BindingId scratch =
      builder.Bind({.name = "scratch", .size = kSize, .access = BindingAccess::kScratch});
  Status inner;
  builder.Eager("again", {{scratch, hal::Access::kWrite}}, [&](const TraceContext& context) {
    inner = RunStep(*relay.executable, context.stream(), bound);
    return OkStatus();
  });
  const auto outer = Need(Executable::Create(Need(std::move(builder).Build()), bench_.memory(),
                                             {.slots = 1, .scratch = arena}));
  EXPECT_TRUE(IsOk(RunStep(*outer, bench_.stream())));
  EXPECT_EQ(inner.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(inner.message(), HasSubstr("'outer' launches a step of 'relay', which has the same"));
  EXPECT_TRUE(IsOk(RunStep(*relay.executable, bench_.stream(), bound)));
}

TEST_F(ScratchArenaTest, AStepLeavesACaptureOfTheLastOnesStreamAlone) {
  const hal::Stream other = Need(hal::Stream::Create(bench_.inner()));
  const auto arena = Need(ScratchArena::Create(bench_.memory(), 8_KiB));
  const Relay relay = MakeRelay("relay", kFloats, arena);
  const Bound bound = {{relay.x, bench_.Filled(3)}, {relay.y, bench_.Filled(0)}};
  ASSERT_TRUE(IsOk(RunStep(*relay.executable, bench_.stream(), bound)));
  hal::Capture capture = Need(hal::Capture::Begin(bench_.inner(), bench_.stream()));
  const Status status = RunStep(*relay.executable, other.get(), bound);
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("end the capture first"));
  EXPECT_TRUE(IsOk(capture.End().status()));
  EXPECT_TRUE(IsOk(RunStep(*relay.executable, other.get(), bound)));
}

// Nothing can be known of a stream that is being captured, and asking it would break the capture.
TEST_F(ScratchArenaTest, ItsEndLeavesACaptureAlone) {
  auto arena = Need(ScratchArena::Create(bench_.memory(), 8_KiB));
  {
    Relay relay = MakeRelay("relay", kFloats, arena);
    ASSERT_TRUE(IsOk(RunStep(*relay.executable, bench_.stream(),
                             {{relay.x, bench_.Filled(3)}, {relay.y, bench_.Filled(0)}})));
  }
  hal::Capture capture = Need(hal::Capture::Begin(bench_.inner(), bench_.stream()));
  arena.reset();
  EXPECT_TRUE(IsOk(capture.End().status()));
}

TEST_F(ScratchArenaTest, OneThatIsTooSmallOrElsewhereIsRefused) {
  ProgramBuilder builder("needy");
  builder.Bind({.name = "scratch", .size = 5_KiB, .access = BindingAccess::kScratch});
  const auto program = Need(std::move(builder).Build());
  EXPECT_EQ(program->scratch_bytes(), 5_KiB);
  const Status small =
      Executable::Create(program, bench_.memory(),
                         {.scratch = Need(ScratchArena::Create(bench_.memory(), 4_KiB))})
          .status();
  EXPECT_EQ(small.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(small.message(),
              HasSubstr("program 'needy' needs 5 KiB of scratch; the arena has 4 KiB"));
  Bench other(Need(driver_->Open(1)));
  const Status elsewhere =
      Executable::Create(program, bench_.memory(),
                         {.scratch = Need(ScratchArena::Create(other.memory(), 8_KiB))})
          .status();
  EXPECT_EQ(elsewhere.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(elsewhere.message(), HasSubstr("the scratch arena is on sim:1, and program 'needy' "
                                             "on sim:0"));
  EXPECT_EQ(ScratchArena::Create(bench_.memory(), 0_B).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(ScratchArena::Create(nullptr, 1_KiB).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(ScratchArenaTest, ScratchInTheArenaTakesNothingOfTheSlots) {
  const auto arena = Need(ScratchArena::Create(bench_.memory(), 2 * 64_KiB));
  const Relay relay = MakeRelay("relay", 16'384, arena);
  const Relay own = MakeRelay("own", 16'384, nullptr);
  for (const Relay* each : {&relay, &own}) {
    ASSERT_TRUE(
        IsOk(RunStep(*each->executable, bench_.stream(),
                     {{each->x, bench_.Filled(1, 16'384)}, {each->y, bench_.Filled(1, 16'384)}})));
  }
  EXPECT_LT(relay.executable->stats().slot_bytes, 16_KiB);
  EXPECT_GE(own.executable->stats().slot_bytes, 2 * 2 * 64_KiB);
  EXPECT_EQ(bench_.memory()->allocator().Stats().tag_bytes["graph:scratch"], 2 * 65'536);
}

}  // namespace
}  // namespace keel::graph
