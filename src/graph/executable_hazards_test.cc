// Hazards of graphs that are replayed, each by its number in the tests' names: callers at once on
// one slot (G9), an end that comes while the device uses what is mapped (G10), and work that a
// steady step does not do (G16). Others are beside what they are about.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <set>
#include <thread>

#include "graph/graph_test.h"
#include "keel/base/log.h"
#include "keel/graph/rerecorder.h"
#include "keel/hal/forwarding_device.h"
#include "keel/hal/memory.h"

namespace keel::graph {
namespace {

using std::chrono::milliseconds;

// --- G9 ------------------------------------------------------------------------------------------

class ManyCallersTest : public GraphTest {
 protected:
  ManyCallersTest()
      : GraphTest({.devices = 1, .memory = 1_GiB, .arena = 8_GiB, .seed = 5, .delay_us = 30}) {}

  // Written by the device.
  struct Steps {
    std::atomic<int> running = 0;
    std::atomic<int> most = 0;
    std::atomic<std::uint64_t> ended = 0;
  };
  static void Begins(void* data) {
    Steps& steps = *static_cast<Steps*>(data);
    const int now = ++steps.running;
    int most = steps.most;
    while (now > most && !steps.most.compare_exchange_weak(most, now)) {
    }
  }
  static void Ends(void* data) {
    Steps& steps = *static_cast<Steps*>(data);
    --steps.running;
    ++steps.ended;
  }
};

// A slot's steps end in the order of their marks, whatever streams they come from, or a mark would
// say of a step that it is done because another one is.
TEST_F(ManyCallersTest, G9_AtOnceDoNotMarkTheTimelineOutOfOrder) {
  constexpr int kThreads = 6;
  constexpr int kSteps = 25;
  struct Case {
    int slots;
    Mode mode;
  };
  // A device may see to it by itself that a graph runs once at a time, but not without one.
  for (const auto& [slots, mode] : {Case{1, Mode::kGraph}, Case{3, Mode::kGraph},
                                    Case{1, Mode::kEager}, Case{3, Mode::kEager}}) {
    Steps steps;
    ProgramBuilder builder("counted");
    const BindingId x = builder.Bind({.name = "x", .size = kSize, .policy = Policy::kCopy});
    const BindingId y = builder.Bind(
        {.name = "y", .size = kSize, .access = BindingAccess::kOut, .policy = Policy::kInPlace});
    builder.Call({.function = &Begins, .data = &steps});
    builder.Copy({y}, {x});
    builder.Call({.function = &Ends, .data = &steps});
    const auto executable = Need(Executable::Create(
        Need(std::move(builder).Build()), bench_.memory(), {.slots = slots, .mode = mode}));
    const Buffer from = bench_.Filled(1);
    ASSERT_TRUE(IsOk(executable->Bind(x, from)));
    std::vector<std::thread> threads;
    threads.reserve(kThreads);
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, one = slots == 1] {
        const hal::Stream stream = Need(hal::Stream::Create(bench_.inner()));
        for (int step = 0; step < kSteps; ++step) {
          Lease lease = Need(executable->Acquire(stream.get(), Soon()));
          ASSERT_TRUE(IsOk(lease.Launch(Soon())));
          // Of one slot, the step's number is its place in the timeline.
          const std::uint64_t number = lease.report().step;
          if (step % 2 == 0) lease = Lease();  // the next one finds it running
          if (!lease) continue;
          EXPECT_TRUE(IsOk(lease.Wait(Soon())));
          if (one) {
            EXPECT_GE(steps.ended.load(), number) << "its mark came before its end";
          }
        }
        EXPECT_TRUE(IsOk(stream.Synchronize(Soon())));
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_LE(steps.most.load(), slots) << "two steps of a slot ran at once";
    EXPECT_EQ(steps.ended.load(), static_cast<std::uint64_t>(kThreads * kSteps));
    EXPECT_EQ(executable->stats().steps, static_cast<std::uint64_t>(kThreads * kSteps));
    EXPECT_TRUE(IsOk(executable->Close(Soon())));
  }
}

// --- G10 -----------------------------------------------------------------------------------------

class MappedEndTest : public GraphTest {
 protected:
  static constexpr Bytes kPage = 2_MiB;

  // A step that writes both a window and an aliased output is on the stream, which is held.
  struct Running {
    std::unique_ptr<Executable> executable;
    std::weak_ptr<const hal::PhysicalMemory> memory;  // that only the slot keeps
    hal::Mapping seen;                                // of it, by the test
  };
  Running MakeRunning(milliseconds patience) {
    Running running;
    ProgramBuilder builder("mapped");
    const BindingId x = builder.Bind(
        {.name = "x", .size = kSize, .access = BindingAccess::kOut, .policy = Policy::kRemap});
    const BindingId y = builder.Bind(
        {.name = "y", .size = kSize, .access = BindingAccess::kOut, .policy = Policy::kInPlace});
    builder.Fill({y, hal::Access::kWrite}, 0x3f800000, 4);
    builder.Copy({x}, {y});
    running.executable =
        Need(Executable::Create(Need(std::move(builder).Build()), bench_.memory(),
                                {.slots = 1, .patience = patience, .alias_outputs = true}));
    auto memory = std::make_shared<const hal::PhysicalMemory>(
        Need(hal::PhysicalMemory::Create(bench_.inner(), kPage)));
    running.memory = memory;
    const hal::AddressRange range = Need(hal::AddressRange::Create(bench_.inner(), kPage));
    const hal::AccessGrant grant{.device = bench_.device().id(), .access = hal::Access::kReadWrite};
    running.seen = Need(hal::Mapping::Create(range, Offset(0), *memory, {&grant, 1}));
    bench_.Write(running.seen.address(), Same(-1));
    EXPECT_TRUE(IsOk(bench_.controls().HoldStream(bench_.stream())));
    Lease lease = Need(running.executable->Acquire(bench_.stream(), Soon()));
    EXPECT_TRUE(IsOk(lease.Bind(x, {.memory = std::move(memory)})));
    EXPECT_TRUE(IsOk(lease.Launch(Soon())));
    return running;
  }
  void Release() { ASSERT_TRUE(IsOk(bench_.controls().ReleaseStream(bench_.stream()))); }
  std::uint64_t Unmaps() { return bench_.device().calls(Primitive::kUnmap); }
};

TEST_F(MappedEndTest, G10_WaitsForTheDeviceBeforeAnythingIsUnmapped) {
  Running running = MakeRunning(milliseconds(60'000));
  bench_.device().ResetCounts();
  std::atomic<bool> gone = false;
  std::thread end([&] {
    running.executable.reset();
    gone = true;
  });
  // The end has begun when it asks the device how far it is.
  const Deadline asked = Soon();
  while (bench_.device().calls(Primitive::kQueryStream) == 0 && !asked.Passed()) {
    std::this_thread::yield();
  }
  EXPECT_FALSE(gone);
  EXPECT_EQ(Unmaps(), 0u);
  EXPECT_FALSE(running.memory.expired());
  Release();
  end.join();
  EXPECT_TRUE(running.memory.expired());
  EXPECT_GE(Unmaps(), 3u) << "the window, the output and its alias";
  EXPECT_EQ(bench_.Read(running.seen.address()), Same(1)) << "the step ran";
  EXPECT_TRUE(bench_.device().retries().empty());
  EXPECT_TRUE(IsOk(bench_.device().Health()));
}

TEST_F(MappedEndTest, G10_LeavesWhatIsMappedUntilTheDeviceIsDoneWhenPatienceEnds) {
  Running running = MakeRunning(milliseconds(20));
  bench_.device().ResetCounts();
  running.executable.reset();
  EXPECT_EQ(bench_.device().retries().size(), 1u);
  EXPECT_EQ(Unmaps(), 0u);
  EXPECT_FALSE(running.memory.expired());
  EXPECT_FALSE(bench_.device().retries().Drain().ok());
  EXPECT_EQ(Unmaps(), 0u);
  Release();
  EXPECT_EQ(bench_.Read(running.seen.address()), Same(1)) << "the step ran";
  EXPECT_TRUE(IsOk(bench_.device().retries().Drain()));
  EXPECT_GE(Unmaps(), 3u);
  EXPECT_TRUE(running.memory.expired());
  EXPECT_TRUE(IsOk(bench_.device().Health()));
}

// --- G16 -----------------------------------------------------------------------------------------

// Who reads it is not known to be done when neither an event nor waiting tells.
TEST_F(GraphTest, G5_AnOutputThatIsLetGoWhileItMayBeReadIsInTheLogWhereNobodyIsTold) {
  const Adding adding = MakeAdding(Policy::kInPlace, Policy::kInPlace);
  const auto executable = Need(Executable::Create(adding.program, bench_.memory(), {.slots = 2}));
  enum class End { kGone, kReplaced, kClosed };
  for (const End end : {End::kGone, End::kReplaced, End::kClosed}) {
    const auto hold = [&] {
      Lease lease = Need(executable->Acquire(bench_.stream(), Soon()));
      EXPECT_TRUE(IsOk(lease.Launch(Soon())));
      return Need(lease.Hold(adding.sum));
    };
    HeldOutput next = hold();
    std::optional<HeldOutput> held = hold();
    bench_.device().FailNth(Primitive::kRecordEvent, 1, Internal("no event"));
    bench_.device().FailNth(Primitive::kSynchronizeStream, 1, Internal("no end"));
    SetLogLevel(LogLevel::kWarn);
    testing::internal::CaptureStderr();
    switch (end) {
      case End::kGone:
        held.reset();
        break;
      case End::kReplaced:
        *held = std::move(next);
        break;
      case End::kClosed:
        EXPECT_EQ(held->Close().code(), StatusCode::kInternal);
        break;
    }
    const std::string logged = testing::internal::GetCapturedStderr();
    SetLogLevel(LogLevel::kOff);
    if (end == End::kClosed) {
      EXPECT_EQ(logged, "") << "the caller is told";
    } else {
      EXPECT_THAT(logged,
                  ::testing::HasSubstr("an output was let go while it may be read: INTERNAL"));
    }
    bench_.device().ClearRules();
  }
  EXPECT_TRUE(IsOk(executable->Close(Soon())));
}

class SteadyWorkTest : public GraphTest {};

TEST_F(SteadyWorkTest, G16_NothingIsLoggedWhateverMoves) {
  const Adding adding = MakeAdding(Policy::kCopy, Policy::kPatch);
  const auto executable = Need(Executable::Create(adding.program, bench_.memory(), {.slots = 2}));
  const std::array places = {bench_.Filled(1), bench_.Filled(2)};
  const auto step = [&](std::size_t i) {
    return RunStep(*executable, bench_.stream(),
                   {{adding.a, places[i % 2]},
                    {adding.b, places[(i + 1) % 2]},
                    {adding.sum, places[i / 2 % 2]},
                    {adding.total, places[i / 3 % 2]}});
  };
  for (std::size_t i = 0; i < 2; ++i) ASSERT_TRUE(IsOk(step(i)));
  SetLogLevel(LogLevel::kDebug);
  testing::internal::CaptureStderr();
  Log(LogLevel::kDebug, "the only line");
  for (std::size_t i = 0; i < 50; ++i) ASSERT_TRUE(IsOk(step(i)));
  const std::string logged = testing::internal::GetCapturedStderr();
  SetLogLevel(LogLevel::kOff);
  EXPECT_THAT(logged, ::testing::HasSubstr("the only line"));
  EXPECT_EQ(std::count(logged.begin(), logged.end(), '\n'), 1) << logged;
}

// Among a thousand bindings, a step does for the few that moved what it does for them among as
// many: looks at bindings, driver calls, rows, commands, and nothing that it would have to tell.
TEST_F(SteadyWorkTest, G16_IsOfThoseThatMovedHoweverManyThereAre) {
  struct Done {
    std::uint64_t looks = 0;
    std::uint64_t calls = 0;
    std::uint32_t rebound = 0;
    std::uint32_t patched = 0;
    std::size_t actions = 0;
    bool operator==(const Done&) const = default;
  };
  const auto done = [&](Policy policy, int bindings, int moving) {
    ProgramBuilder builder("many");
    const BindingId out = builder.Bind(
        {.name = "out", .size = kSize, .access = BindingAccess::kOut, .policy = Policy::kInPlace});
    std::vector<BindingId> in;
    for (int i = 0; i < bindings; ++i) {
      in.push_back(
          builder.Bind({.name = "in" + std::to_string(i), .size = 16_B, .policy = policy}));
      builder.Copy({.binding = out, .extent = 16_B}, {in.back()});
    }
    const auto executable =
        Need(Executable::Create(Need(std::move(builder).Build()), bench_.memory(), {.slots = 1}));
    const Buffer here = bench_.Filled(1, 4);
    const Buffer there = bench_.Filled(2, 4);
    for (const BindingId binding : in) EXPECT_TRUE(IsOk(executable->Bind(binding, here)));
    EXPECT_TRUE(IsOk(RunStep(*executable, bench_.stream())));
    for (int i = 0; i < moving; ++i) EXPECT_TRUE(IsOk(executable->Bind(in[i], there)));
    bench_.device().ResetCounts();
    Lease lease = Need(executable->Acquire(bench_.stream(), Soon()));
    EXPECT_TRUE(IsOk(lease.Launch(Soon())));
    const Done result{.looks = LeaseTestPeer::Looks(lease),
                      .calls = bench_.device().calls(),
                      .rebound = lease.report().rebound,
                      .patched = lease.report().patched,
                      .actions = lease.report().actions().size()};
    EXPECT_TRUE(IsOk(lease.Wait(Soon())));
    return result;
  };
  for (const int moving : {0, 1, 5}) {
    EXPECT_EQ(done(Policy::kPatch, 1000, moving), done(Policy::kPatch, 5, moving));
    // So many rows are in a table: not even a call.
    const Done copied = done(Policy::kCopy, 1000, moving);
    EXPECT_EQ(copied.looks, done(Policy::kCopy, 5, moving).looks);
    EXPECT_EQ(copied.calls, 1u);
    EXPECT_EQ(copied.rebound, static_cast<std::uint32_t>(moving));
    EXPECT_EQ(copied.actions, static_cast<std::size_t>(moving));
  }
}

// Likewise of what the lease binds itself, and of what is bound by default again in the next step.
TEST_F(SteadyWorkTest, G16_ALeaseLooksOnlyAtWhatItBindsAndAtWhatTheLastOneBound) {
  constexpr int kMany = 64;
  for (const Policy policy : {Policy::kCopy, Policy::kPatch}) {
    ProgramBuilder builder("many");
    std::vector<BindingId> in;
    const BindingId out = builder.Bind(
        {.name = "out", .size = kSize, .access = BindingAccess::kOut, .policy = Policy::kInPlace});
    const Buffer here = bench_.Filled(1, 4);
    const Buffer there = bench_.Filled(2, 4);
    for (int i = 0; i < kMany; ++i) {
      in.push_back(
          builder.Bind({.name = "in" + std::to_string(i), .size = 16_B, .policy = policy}));
      builder.Copy({.binding = out, .offset = Bytes(16 * i), .extent = 16_B}, {in.back()});
    }
    const auto executable =
        Need(Executable::Create(Need(std::move(builder).Build()), bench_.memory(), {.slots = 1}));
    for (const BindingId binding : in) ASSERT_TRUE(IsOk(executable->Bind(binding, here)));
    ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream())));
    const auto looks = [&](int binding) {
      Lease lease = Need(executable->Acquire(bench_.stream(), Soon()));
      for (int i = 0; i < binding; ++i) EXPECT_TRUE(IsOk(lease.Bind(in[i], there)));
      EXPECT_TRUE(IsOk(lease.Launch(Soon())));
      EXPECT_TRUE(IsOk(lease.Wait(Soon())));
      return LeaseTestPeer::Looks(lease);
    };
    // What is copied is worked off at once, by who binds it, if its rows are free: not in a table.
    const std::uint64_t each = policy == Policy::kCopy ? 1 : 2;
    EXPECT_EQ(looks(0), 0u);
    EXPECT_EQ(looks(3), 3 * each);
    EXPECT_EQ(looks(3), 2 * 3u) << "they were bound so before: taken, and not gone back from";
    EXPECT_EQ(looks(0), 2 * 3u) << "they go back";
    EXPECT_EQ(looks(0), 0u);
  }
}

// --- A19 -----------------------------------------------------------------------------------------

// Which streams are captured, and which have an event on them.
class NotesStreams : public hal::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  Status BeginCapture(hal::StreamHandle stream, hal::CaptureMode mode) override {
    captured.insert(stream.value);
    return ForwardingDevice::BeginCapture(stream, mode);
  }
  Status RecordEvent(hal::EventHandle event, hal::StreamHandle stream) override {
    marked.insert(stream.value);
    return ForwardingDevice::RecordEvent(event, stream);
  }
  std::set<std::uint64_t> captured;
  std::set<std::uint64_t> marked;
};

// Whoever looks for memory, in any thread and at any time, may put an event on a stream that some
// was freed on, and breaks the capture that the stream is in.
TEST_F(GraphTest, A19_NoMemoryIsOfAStreamThatIsCaptured) {
  const auto device = std::make_shared<NotesStreams>(bench_.inner());
  const auto memory = Need(memory::DeviceMemory::Create(device, {}));
  ProgramBuilder builder("traced");
  const BindingId a = builder.Bind({.name = "a", .size = kSize});
  const BindingId b = builder.Bind({.name = "b", .size = kSize, .policy = Policy::kCopy});
  const BindingId scratch =
      builder.Bind({.name = "scratch", .size = kSize, .access = BindingAccess::kScratch});
  builder.Traced("adds", ReadsAndWrites(a, b, scratch),
                 Adds(bench_.Kernel(hal::kernels::kAdd), a, b, scratch));
  const auto program = Need(std::move(builder).Build());
  const Buffer buffer = bench_.Filled(1);
  {
    const auto executable = Need(Executable::Create(program, memory, {.costs = PrimitiveCosts{}}));
    const auto rerecorder = Need(Rerecorder::Create(program, memory, Rerecording::kInstantiate));
    const std::array addresses = {buffer.address, buffer.address, DeviceAddress()};
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream(), {{a, buffer}, {b, buffer}})));
      ASSERT_TRUE(IsOk(rerecorder->Run(bench_.stream(), addresses)));
    }
  }
  // What was freed is looked at now at the latest.
  EXPECT_TRUE(IsOk(memory->allocator().EmptyCache()));
  EXPECT_GE(device->captured.size(), 2u);
  EXPECT_GE(device->marked.size(), 2u);
  for (const std::uint64_t stream : device->captured) {
    EXPECT_EQ(device->marked.count(stream), 0u);
  }
}

}  // namespace
}  // namespace keel::graph
