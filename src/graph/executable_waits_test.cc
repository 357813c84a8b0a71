// Waits are bounded, burn no core and end when the device is lost; what goes while steps run keeps
// its memory until they are done.
#include <gmock/gmock.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <latch>
#include <thread>

#include "graph/graph_test.h"
#include "keel/hal/event.h"
#include "keel/hal/forwarding_device.h"

namespace keel::graph {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

class WaitsTest : public GraphTest {
 protected:
  // For a wait that ends Shortly.
  static constexpr milliseconds kInTime{500};
  static Deadline Shortly() { return Deadline::After(milliseconds(50)); }
  static std::int64_t UsedUs() {
    rusage usage{};
    EXPECT_EQ(getrusage(RUSAGE_THREAD, &usage), 0);
    const auto us = [](const timeval& time) { return time.tv_sec * 1'000'000 + time.tv_usec; };
    return us(usage.ru_utime) + us(usage.ru_stime);
  }
  // What a deadline error says that comes in time. A machine that is busy may delay a wait, but not
  // each of three.
  static std::string Bounded(const std::function<Status()>& wait) {
    auto best = std::chrono::steady_clock::duration::max();
    Status status;
    for (int i = 0; i < 3 && best >= kInTime; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      status = wait();
      best = std::min(best, std::chrono::steady_clock::now() - begin);
      EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status.ToString();
    }
    EXPECT_LT(best, kInTime);
    return std::string(status.message());
  }
  void Hold(hal::StreamHandle stream) { ASSERT_TRUE(IsOk(bench_.controls().HoldStream(stream))); }
  void Release(hal::StreamHandle stream) {
    ASSERT_TRUE(IsOk(bench_.controls().ReleaseStream(stream)));
  }
  std::unique_ptr<Executable> Make(const Adding& adding, ExecutableOptions options) {
    auto executable = Need(Executable::Create(adding.program, bench_.memory(), std::move(options)));
    for (const auto& [binding, buffer] : Bound{{adding.a, bench_.Filled(1)},
                                               {adding.b, bench_.Filled(2)},
                                               {adding.sum, sum_},
                                               {adding.total, bench_.Filled(0)}}) {
      EXPECT_TRUE(IsOk(executable->Bind(binding, buffer)));
    }
    return executable;
  }
  void LaunchOne(Executable& executable, hal::StreamHandle stream) {
    Lease lease = Need(executable.Acquire(stream, Soon()));
    ASSERT_TRUE(IsOk(lease.Launch(Soon())));
  }

  // What is copied out alone has a table.
  const Adding adding_ = MakeAdding(Policy::kPatch, Policy::kCopy, BindingAccess::kResident);
  const Buffer sum_ = bench_.Filled(-1);
  const hal::Stream other_ = Need(hal::Stream::Create(bench_.inner()));
};

TEST_F(WaitsTest, G6_EveryWaitEndsAtItsDeadlineAndGoesOnAfterwards) {
  const auto executable = Make(adding_, {.slots = 1});
  ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream())));
  Hold(bench_.stream());
  Lease lease = Need(executable->Acquire(bench_.stream(), Soon()));
  ASSERT_TRUE(IsOk(lease.Launch(Soon())));
  EXPECT_FALSE(lease.done());
  Bounded([&] { return lease.Wait(Shortly()); });
  Bounded([&] { return lease.Wait(Deadline::Now()); });
  const std::string leased =
      Bounded([&] { return executable->Acquire(other_.get(), Shortly()).status(); });
  EXPECT_THAT(leased, HasSubstr("no slot of 'adding' became free in time: of 1, 0 run on "
                                "other streams, 1 are leased, 0 hold outputs"));
  EXPECT_EQ(executable->Close(Shortly()).code(), StatusCode::kFailedPrecondition);
  lease = Lease();
  const std::string running =
      Bounded([&] { return executable->Acquire(other_.get(), Shortly()).status(); });
  EXPECT_THAT(running, HasSubstr("of 1, 1 run on other streams"));
  const std::string synchronized = Bounded([&] { return executable->Synchronize(Shortly()); });
  EXPECT_THAT(synchronized, HasSubstr("slot 0 of 'adding' has a step that is not done"));
  Bounded([&] { return executable->Close(Shortly()); });
  {
    // On its own stream a slot need not be waited for, unless its table changes.
    Lease next = Need(executable->Acquire(bench_.stream(), Deadline::Now()));
    ASSERT_TRUE(IsOk(next.Bind(adding_.sum, bench_.Allocate())));
    Bounded([&] { return next.Launch(Shortly()); });
    EXPECT_TRUE(Has(next.report(), ActionKind::kWaited, Reason::kTableInUse));
    EXPECT_GT(next.report().waited_ns, 0);
  }
  Release(bench_.stream());
  EXPECT_TRUE(IsOk(executable->Synchronize(Soon())));
  ASSERT_TRUE(IsOk(RunStep(*executable, other_.get())));
  EXPECT_EQ(bench_.Read(sum_), Same(3));
  EXPECT_GE(executable->stats().waits, 1u);
  EXPECT_TRUE(IsOk(executable->Close(Soon())));
}

TEST_F(WaitsTest, G6_WaitsDoNotBurnACore) {
  const auto executable = Make(adding_, {.slots = 1});
  ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream())));
  Hold(bench_.stream());
  LaunchOne(*executable, bench_.stream());
  constexpr milliseconds kTime{300};
  constexpr std::int64_t kTenthUs = 30'000;
  // Of this thread; what a machine that is busy adds, it does not add each time.
  const auto expect_idle = [&](const std::function<Status()>& wait) {
    std::int64_t least = kTenthUs;
    for (int i = 0; i < 3 && least >= kTenthUs; ++i) {
      const std::int64_t before = UsedUs();
      EXPECT_EQ(wait().code(), StatusCode::kDeadlineExceeded);
      least = std::min(least, UsedUs() - before);
    }
    EXPECT_LT(least, kTenthUs);
  };
  expect_idle([&] { return executable->Acquire(other_.get(), Deadline::After(kTime)).status(); });
  expect_idle([&] { return executable->Synchronize(Deadline::After(kTime)); });
  expect_idle([&] { return executable->Close(Deadline::After(kTime)); });
  expect_idle([&] {
    Lease lease = Need(executable->Acquire(bench_.stream(), Soon()));
    EXPECT_TRUE(IsOk(lease.Bind(adding_.sum, bench_.Allocate())));
    return lease.Launch(Deadline::After(kTime));
  });
  Release(bench_.stream());
}

TEST_F(WaitsTest, AWaitingAcquireGetsTheSlotThatIsGivenBack) {
  const auto executable = Make(adding_, {.slots = 1});
  for (int i = 0; i < 10; ++i) {
    Lease first = Need(executable->Acquire(bench_.stream(), Soon()));
    std::thread waiter([&] { EXPECT_TRUE(IsOk(executable->Acquire(other_.get(), Soon()))); });
    first = Lease();
    waiter.join();
  }
}

// Steps that come all the time do not keep Synchronize from ending. The thread that launches stays
// at most `kAhead` steps ahead of the device: what is queued without a bound grows with every
// Synchronize, because each waits for all that came during the last.
TEST_F(WaitsTest, SynchronizeWaitsForWhatWasLaunchedBeforeIt) {
  constexpr std::size_t kAhead = 8;
  const auto executable = Make(adding_, {.slots = 1});
  ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream())));
  std::array<hal::Event, kAhead> launched;
  for (hal::Event& event : launched) event = Need(hal::Event::Create(bench_.inner()));
  std::atomic<bool> stop = false;
  std::thread busy([&] {
    for (std::size_t i = 0; !stop; ++i) {
      const hal::Event& event = launched[i % kAhead];
      if (i >= kAhead) {
        EXPECT_TRUE(IsOk(event.Synchronize(Soon())));
      }
      LaunchOne(*executable, bench_.stream());
      EXPECT_TRUE(IsOk(event.Record(bench_.stream())));
    }
  });
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(IsOk(executable->Synchronize(Soon())));
  stop = true;
  busy.join();
}

// --- Turns ---------------------------------------------------------------------------------------

// Counts how often somebody looks whether the device is lost.
class CountsLooks : public hal::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  Status Health() const override {
    ++looks;
    return ForwardingDevice::Health();
  }
  mutable std::atomic<int> looks = 0;
};

TEST_F(WaitsTest, AStepSaysWhatKeptItsSlot) {
  const Adding adding = MakeAdding(Policy::kInPlace, Policy::kInPlace, BindingAccess::kResident);
  const auto device = std::make_shared<CountsLooks>(bench_.inner());
  const auto memory = Need(memory::DeviceMemory::Create(device, {}));
  for (const Reason reason : {Reason::kSlotLeased, Reason::kSlotHeld, Reason::kSlotBusy}) {
    const auto executable = Need(Executable::Create(adding.program, memory, {.slots = 1}));
    ASSERT_TRUE(IsOk(executable->Bind(adding.total, bench_.Filled(0))));
    Lease first = Need(executable->Acquire(bench_.stream(), Soon()));
    if (reason == Reason::kSlotBusy) Hold(bench_.stream());
    ASSERT_TRUE(IsOk(first.Launch(Soon())));
    HeldOutput held;
    if (reason == Reason::kSlotHeld) held = Need(first.Hold(adding.sum));
    if (reason != Reason::kSlotLeased) first = Lease();
    EXPECT_EQ(executable->Acquire(other_.get(), Deadline::Now()).status().code(),
              StatusCode::kDeadlineExceeded);
    device->looks = 0;
    ReplayReport report;
    std::thread waiter([&] { EXPECT_TRUE(IsOk(RunStep(*executable, other_.get(), {}, &report))); });
    // Once when it begins, and again when it has found no slot.
    const Deadline looked = Soon();
    while (device->looks < 2 && !looked.Passed()) std::this_thread::yield();
    if (reason == Reason::kSlotLeased) first = Lease();
    if (reason == Reason::kSlotHeld) {
      EXPECT_TRUE(IsOk(held.Close()));
    }
    if (reason == Reason::kSlotBusy) Release(bench_.stream());
    waiter.join();
    EXPECT_TRUE(Has(report, ActionKind::kWaited, reason)) << ReasonText(reason);
    EXPECT_GT(report.waited_ns, 0);
    EXPECT_EQ(report.actions()[0].host_ns, report.waited_ns);
    EXPECT_EQ(executable->stats().waits, 1u);
  }
}

// Two slots of a program whose one command is a function that stays where it is, in the step that
// asks for it, until it is let go on.
class TurnsTest : public WaitsTest {
 protected:
  enum class Kind { kTraced, kEager };
  void Make(Kind kind) {
    ProgramBuilder builder("gated");
    x_ = builder.Bind({.name = "x", .size = kSize, .policy = Policy::kRetrace});
    y_ = builder.Bind({.name = "y", .size = kSize, .policy = Policy::kRetrace});
    out_ = builder.Bind(
        {.name = "out", .size = kSize, .access = BindingAccess::kOut, .policy = Policy::kInPlace});
    const auto function = [this, adds = Adds(bench_.Kernel(hal::kernels::kAdd), x_, y_, out_)](
                              const TraceContext& context) {
      if (stays_.exchange(false)) {
        stayed_.count_down();
        goes_on_.wait();
      }
      return adds(context);
    };
    if (kind == Kind::kTraced) {
      builder.Traced("stays", ReadsAndWrites(x_, y_, out_), function);
    } else {
      builder.Eager("stays", ReadsAndWrites(x_, y_, out_), function);
    }
    executable_ =
        Need(Executable::Create(Need(std::move(builder).Build()),
                                Need(memory::DeviceMemory::Create(device_, {})), {.slots = 2}));
    ASSERT_TRUE(IsOk(executable_->Bind(x_, bench_.Filled(1))));
    ASSERT_TRUE(IsOk(executable_->Bind(y_, bench_.Filled(2))));
    // The first one warms up or records, and after the second there is nothing left to record.
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(IsOk(RunStep(*executable_, bench_.stream())));
  }
  // A thread whose step is in the function when this returns.
  std::thread Stay(const Buffer& x) {
    stays_ = true;
    std::thread thread([this, x] {
      Lease lease = Need(executable_->Acquire(bench_.stream(), Soon()));
      EXPECT_TRUE(IsOk(lease.Bind(x_, x)));
      launched_ = lease.Launch(Soon());
      if (!launched_.ok()) return;
      launched_ = lease.Wait(Soon());
      out_at_ = Need(lease.address(out_));
    });
    stayed_.wait();
    return thread;
  }

  const std::shared_ptr<CountsLooks> device_ = std::make_shared<CountsLooks>(bench_.inner());
  BindingId x_, y_, out_;
  std::unique_ptr<Executable> executable_;
  std::atomic<bool> stays_ = false;
  std::latch stayed_{1};
  std::latch goes_on_{1};
  // Of the step that stays.
  Status launched_;
  DeviceAddress out_at_;
};

TEST_F(TurnsTest, G6_ALaunchWaitsForAnotherStepsCommandsUntilItsDeadline) {
  Make(Kind::kEager);
  std::thread staying = Stay(bench_.Filled(10));
  Lease lease = Need(executable_->Acquire(other_.get(), Soon()));
  const std::string said = Bounded([&] { return lease.Launch(Shortly()); });
  EXPECT_THAT(said, HasSubstr("another step of 'gated' was not done in time with recording, or "
                              "with calling the functions of its commands"));
  EXPECT_TRUE(Has(lease.report(), ActionKind::kWaited, Reason::kCommandsBusy));
  EXPECT_GE(lease.report().waited_ns, 50'000'000);
  EXPECT_EQ(lease.Launch(Deadline::Now()).code(), StatusCode::kDeadlineExceeded);
  EXPECT_FALSE(lease.done()) << "nothing was launched";
  goes_on_.count_down();
  ASSERT_TRUE(IsOk(lease.Launch(Soon())));
  EXPECT_TRUE(IsOk(lease.Wait(Soon())));
  EXPECT_EQ(bench_.Read(Need(lease.address(out_))), Same(3));
  staying.join();
  EXPECT_TRUE(IsOk(launched_));
  EXPECT_EQ(bench_.Read(out_at_), Same(12)) << "nobody came in between";
  lease = Lease();
  EXPECT_EQ(executable_->stats().waits, 1u);
  EXPECT_EQ(executable_->stats().steps, 4u);
  EXPECT_TRUE(IsOk(executable_->Close(Soon())));
}

// What a steady step launches is recorded: it calls nothing and waits for nobody who does.
TEST_F(TurnsTest, G6_ASteadyStepOfTracedCommandsDoesNotWaitForOneThatRecords) {
  Make(Kind::kTraced);
  std::thread staying = Stay(bench_.Filled(10));  // which is traced for its new address
  Lease lease = Need(executable_->Acquire(other_.get(), Deadline::Now()));
  EXPECT_TRUE(IsOk(lease.Launch(Deadline::Now())));
  EXPECT_TRUE(lease.report().actions().empty());
  EXPECT_TRUE(IsOk(lease.Wait(Soon())));
  EXPECT_EQ(bench_.Read(Need(lease.address(out_))), Same(3));
  goes_on_.count_down();
  staying.join();
  EXPECT_TRUE(IsOk(launched_));
  EXPECT_EQ(bench_.Read(out_at_), Same(12));
}

// But one that records waits for it.
TEST_F(TurnsTest, G6_RecordingIsWaitedForByAnotherThatRecords) {
  Make(Kind::kTraced);
  std::thread staying = Stay(bench_.Filled(10));
  Lease lease = Need(executable_->Acquire(other_.get(), Deadline::Now()));
  ASSERT_TRUE(IsOk(lease.Bind(y_, bench_.Filled(20))));
  Bounded([&] { return lease.Launch(Shortly()); });
  EXPECT_TRUE(Has(lease.report(), ActionKind::kWaited, Reason::kCommandsBusy));
  goes_on_.count_down();
  ASSERT_TRUE(IsOk(lease.Launch(Soon())));
  EXPECT_TRUE(IsOk(lease.Wait(Soon())));
  EXPECT_EQ(bench_.Read(Need(lease.address(out_))), Same(21));
  staying.join();
}

TEST_F(TurnsTest, G6_ALostDeviceEndsAWaitForAnotherStepsCommands) {
  Make(Kind::kEager);
  std::thread staying = Stay(bench_.Filled(10));
  Lease lease = Need(executable_->Acquire(other_.get(), Soon()));
  device_->looks = 0;
  std::thread waiter([&] { EXPECT_EQ(lease.Launch(Soon()).code(), StatusCode::kDeviceLost); });
  const Deadline waits = Soon();
  while (device_->looks == 0 && !waits.Passed()) std::this_thread::yield();
  bench_.controls().Lose("a fault");
  waiter.join();  // though the other one is still in its function
  goes_on_.count_down();
  staying.join();
  EXPECT_EQ(launched_.code(), StatusCode::kDeviceLost);
}

// --- The end -------------------------------------------------------------------------------------

TEST_F(WaitsTest, G10_AnExecutableThatGoesWaitsForItsSteps) {
  auto executable = Make(adding_, {.slots = 2});
  ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream())));
  Hold(bench_.stream());
  for (int i = 0; i < 4; ++i) LaunchOne(*executable, bench_.stream());
  std::thread later([&] { Release(bench_.stream()); });
  executable.reset();
  later.join();
  EXPECT_TRUE(bench_.device().retries().empty());
  EXPECT_EQ(bench_.Read(sum_), Same(3));
}

TEST_F(WaitsTest, G10_WhatStillRunsAfterPatienceKeepsItsMemoryUntilItIsDone) {
  const auto tagged = [&] {
    return bench_.memory()->allocator().Stats().tag_bytes["graph:adding"];
  };
  auto executable = Make(adding_, {.slots = 2, .patience = milliseconds(20)});
  ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream())));
  bench_.Write(sum_, Same(-1));
  Hold(bench_.stream());
  LaunchOne(*executable, bench_.stream());
  const std::int64_t before = tagged();
  EXPECT_GT(before, 0);
  executable.reset();
  ASSERT_EQ(bench_.device().retries().size(), 1u);
  EXPECT_THAT(bench_.device().retries().List()[0], HasSubstr("memory of graph 'adding'"));
  EXPECT_EQ(tagged(), before) << "the step will write there";
  EXPECT_FALSE(bench_.device().retries().Drain().ok());
  EXPECT_EQ(tagged(), before);
  Release(bench_.stream());
  EXPECT_EQ(bench_.Read(sum_), Same(3)) << "the step ran";
  EXPECT_TRUE(IsOk(bench_.device().retries().Drain()));
  EXPECT_EQ(tagged(), 0);
  EXPECT_TRUE(IsOk(bench_.device().Health()));
}

TEST_F(WaitsTest, LeasesAndHeldOutputsOutliveTheExecutable) {
  const Adding adding = MakeAdding(Policy::kInPlace, Policy::kInPlace, BindingAccess::kResident);
  auto executable = Need(Executable::Create(adding.program, bench_.memory(), {.slots = 2}));
  ASSERT_TRUE(IsOk(executable->Bind(adding.total, bench_.Filled(0))));
  Lease lease = Need(executable->Acquire(bench_.stream(), Soon()));
  bench_.Write(Need(lease.address(adding.a)), Same(3));
  bench_.Write(Need(lease.address(adding.b)), Same(4));
  executable.reset();
  ASSERT_TRUE(IsOk(lease.Launch(Soon())));
  HeldOutput held = Need(lease.Hold(adding.sum));
  lease = Lease();
  EXPECT_EQ(bench_.Read(held.address()), Same(7));
  held = HeldOutput();
  EXPECT_EQ(bench_.memory()->allocator().Stats().tag_bytes["graph:adding"], 0);
}

// Memory is not given back under somebody who reads what was held there.
TEST_F(WaitsTest, G10_G11_MemoryThatIsStillReadIsNotGivenBack) {
  const Adding adding = MakeAdding(Policy::kInPlace, Policy::kInPlace, BindingAccess::kResident);
  auto executable = Need(Executable::Create(adding.program, bench_.memory(),
                                            {.slots = 1, .patience = milliseconds(20)}));
  ASSERT_TRUE(IsOk(executable->Bind(adding.total, bench_.Filled(0))));
  HeldOutput held;
  {
    Lease lease = Need(executable->Acquire(bench_.stream(), Soon()));
    ASSERT_TRUE(IsOk(lease.Launch(Soon())));
    ASSERT_TRUE(IsOk(lease.Wait(Soon())));
    held = Need(lease.Hold(adding.sum));
  }
  EXPECT_EQ(executable->Close(Shortly()).code(), StatusCode::kFailedPrecondition);
  Hold(other_.get());
  ASSERT_TRUE(IsOk(bench_.inner()->EnqueueFill(
      other_.get(), {.destination = held.address(), .value = 0, .width = 4, .count = 1})));
  ASSERT_TRUE(IsOk(held.RecordUse(other_.get())));
  ASSERT_TRUE(IsOk(held.Close()));
  EXPECT_EQ(executable->Close(Shortly()).code(), StatusCode::kDeadlineExceeded);
  executable.reset();
  EXPECT_EQ(bench_.device().retries().size(), 1u);
  Release(other_.get());
  ASSERT_TRUE(IsOk(other_.Synchronize(Soon())));
  EXPECT_TRUE(IsOk(bench_.device().retries().Drain()));
  EXPECT_EQ(bench_.memory()->allocator().Stats().tag_bytes["graph:adding"], 0);
}

// --- Loss ----------------------------------------------------------------------------------------

TEST_F(WaitsTest, ALostDeviceEndsEverything) {
  for (const Mode mode : {Mode::kGraph, Mode::kEager}) {
    const auto driver = Need(sim::CreateSimDriver({.devices = 1, .memory = 1_GiB, .arena = 8_GiB}));
    Bench bench(Need(driver->Open(0)));
    const hal::Stream other = Need(hal::Stream::Create(bench.inner()));
    ProgramBuilder builder("losing");
    const BindingId x = builder.Bind({.name = "x", .size = kSize, .policy = Policy::kCopy});
    const BindingId y = builder.Bind(
        {.name = "y", .size = kSize, .access = BindingAccess::kOut, .policy = Policy::kInPlace});
    builder.Copy({y}, {x});
    const auto program = Need(std::move(builder).Build());
    auto executable = Need(Executable::Create(program, bench.memory(), {.slots = 2, .mode = mode}));
    ASSERT_TRUE(IsOk(executable->Bind(x, bench.Filled(1))));
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(IsOk(RunStep(*executable, bench.stream())));
    ASSERT_TRUE(IsOk(bench.controls().HoldStream(bench.stream())));
    Lease running = Need(executable->Acquire(bench.stream(), Soon()));
    ASSERT_TRUE(IsOk(running.Launch(Soon())));
    HeldOutput held = Need(running.Hold(y));
    Lease unlaunched = Need(executable->Acquire(bench.stream(), Soon()));
    std::thread waiter([&] { EXPECT_EQ(running.Wait(Soon()).code(), StatusCode::kDeviceLost); });
    std::thread acquirer([&] {
      EXPECT_EQ(executable->Acquire(other.get(), Soon()).status().code(), StatusCode::kDeviceLost);
    });
    std::thread synchronizer(
        [&] { EXPECT_EQ(executable->Synchronize(Soon()).code(), StatusCode::kDeviceLost); });
    bench.controls().Lose("a fault");
    for (std::thread* thread : {&waiter, &acquirer, &synchronizer}) thread->join();
    EXPECT_EQ(unlaunched.Launch(Soon()).code(), StatusCode::kDeviceLost);
    unlaunched = Lease();
    EXPECT_EQ(executable->Acquire(bench.stream(), Soon()).status().code(), StatusCode::kDeviceLost)
        << "also with a slot that is idle";
    running = Lease();
    EXPECT_EQ(held.Close().code(), StatusCode::kDeviceLost);
    EXPECT_EQ(executable->Close(Soon()).code(), StatusCode::kDeviceLost);
    EXPECT_EQ(executable->stats().slot_bytes, 0_B);
    EXPECT_TRUE(IsOk(executable->Close(Soon()))) << "nothing is left";
    executable.reset();
    EXPECT_TRUE(bench.device().retries().empty());
    EXPECT_EQ(bench.memory()->allocator().Stats().tag_bytes["graph:losing"], 0);
  }
}

// As on a device whose driver tells of a loss only who calls it.
class TellsWhenAsked : public hal::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  Status Health() const override { return told_ ? ForwardingDevice::Health() : OkStatus(); }
  Result<hal::CaptureState> GetCaptureState(hal::StreamHandle stream) override {
    return Told(ForwardingDevice::GetCaptureState(stream));
  }
  Result<hal::Completion> QueryStream(hal::StreamHandle stream) override {
    return Told(ForwardingDevice::QueryStream(stream));
  }

 private:
  template <class T>
  Result<T> Told(Result<T> result) {
    if (result.status().code() == StatusCode::kDeviceLost) told_ = true;
    return result;
  }
  std::atomic<bool> told_ = false;
};

TEST_F(WaitsTest, ALostDeviceEndsTheStepOfWhoAsksWhetherItIsDone) {
  const auto device = std::make_shared<TellsWhenAsked>(bench_.inner());
  const auto executable = Need(Executable::Create(
      adding_.program, Need(memory::DeviceMemory::Create(device, {})), {.slots = 2}));
  const Bound bound = {{adding_.a, bench_.Filled(1)},
                       {adding_.b, bench_.Filled(2)},
                       {adding_.sum, sum_},
                       {adding_.total, bench_.Filled(0)}};
  for (const auto& [binding, buffer] : bound) {
    ASSERT_TRUE(IsOk(executable->Bind(binding, buffer)));
  }
  Lease first = Need(executable->Acquire(bench_.stream(), Soon()));
  EXPECT_FALSE(first.done()) << "nothing was launched";
  ASSERT_TRUE(IsOk(first.Launch(Soon())));
  ASSERT_TRUE(IsOk(first.Wait(Soon())));
  Hold(bench_.stream());
  Lease lost = Need(executable->Acquire(bench_.stream(), Soon()));
  ASSERT_TRUE(IsOk(lost.Launch(Soon())));
  EXPECT_FALSE(lost.done());
  bench_.controls().Lose("a fault");
  const Deadline ends = Soon();
  while (!lost.done() && !ends.Passed()) std::this_thread::yield();
  EXPECT_TRUE(lost.done());
  EXPECT_EQ(lost.Wait(Deadline::Now()).code(), StatusCode::kDeviceLost);
  EXPECT_TRUE(first.done());
  EXPECT_TRUE(IsOk(first.Wait(Deadline::Now()))) << "it had ended before";
}

// What goes wrong where nobody can be told is kept and tried again.
TEST_F(WaitsTest, G5_WhatCannotBeGivenBackAtTheEndIsTriedAgain) {
  for (const Primitive failing : {Primitive::kDestroyExec, Primitive::kDestroyGraph,
                                  Primitive::kDestroyStream, Primitive::kUnloadModule}) {
    auto executable = Make(adding_, {.slots = 1});
    ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream())));
    bench_.device().FailNth(failing, 1, Internal("injected"));
    executable.reset();
    EXPECT_EQ(bench_.device().retries().size(), 1u) << hal::PrimitiveName(failing);
    EXPECT_TRUE(IsOk(bench_.device().retries().Drain()));
  }
}

}  // namespace
}  // namespace keel::graph
