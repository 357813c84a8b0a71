// Making the slots of an executable, on a device that is not ready with them in time.
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "graph/graph_test.h"
#include "keel/base/mutex.h"
#include "keel/graph/memory_budget.h"
#include "keel/graph/primitive_costs.h"
#include "keel/hal/forwarding_device.h"

namespace keel::graph {
namespace {

using std::chrono::milliseconds;

// Streams that are made begin nothing, as on a device that hangs.
class HoldsNewStreams : public hal::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  Result<hal::StreamHandle> CreateStream(const hal::StreamOptions& options) override {
    KEEL_ASSIGN(const hal::StreamHandle stream, ForwardingDevice::CreateStream(options));
    if (hold) {
      EXPECT_TRUE(IsOk(sim::FindControls(*this)->HoldStream(stream)));
      const MutexLock lock(mutex_);
      held_.push_back(stream);
    }
    return stream;
  }
  // Those that were made so far.
  std::vector<hal::StreamHandle> Release() {
    std::vector<hal::StreamHandle> released;
    {
      const MutexLock lock(mutex_);
      released = std::exchange(held_, {});
    }
    for (const hal::StreamHandle stream : released) {
      EXPECT_TRUE(IsOk(sim::FindControls(*this)->ReleaseStream(stream)));
    }
    return released;
  }
  std::atomic<bool> hold = false;

 private:
  Mutex mutex_;
  std::vector<hal::StreamHandle> held_ KEEL_GUARDED_BY(mutex_);
};

class MakingTest : public GraphTest {
 protected:
  static Deadline Shortly() { return Deadline::After(milliseconds(20)); }
  StatusCode Ask(Executable& executable) {
    return executable.Acquire(bench_.stream(), Shortly()).status().code();
  }

  const Adding adding_ = MakeAdding(Policy::kPatch, Policy::kCopy, BindingAccess::kResident);
  const Buffer sum_ = bench_.Filled(-1);
};

// Also of the first step, which makes the slots, and of another that waits for them.
TEST_F(MakingTest, G6_MakingTheSlotsEndsAtTheDeadlineAndKeepsWhatTheDeviceMayWrite) {
  const auto device = std::make_shared<HoldsNewStreams>(bench_.inner());
  const auto memory = Need(memory::DeviceMemory::Create(device, {}));
  const auto tagged = [&] { return memory->allocator().Stats().tag_bytes["graph:adding"]; };
  const auto executable = Need(Executable::Create(adding_.program, memory, {.slots = 2}));
  device->hold = true;
  const hal::Stream other = Need(hal::Stream::Create(bench_.inner()));
  std::thread another([&] {
    EXPECT_EQ(executable->Acquire(other.get(), Shortly()).status().code(),
              StatusCode::kDeadlineExceeded);
  });
  EXPECT_EQ(Ask(*executable), StatusCode::kDeadlineExceeded);
  another.join();
  EXPECT_GT(tagged(), 0) << "a copy to it is queued";
  device->hold = false;
  device->Release();
  for (const auto& [binding, buffer] : Bound{{adding_.a, bench_.Filled(1)},
                                             {adding_.b, bench_.Filled(2)},
                                             {adding_.sum, sum_},
                                             {adding_.total, bench_.Filled(0)}}) {
    ASSERT_TRUE(IsOk(executable->Bind(binding, buffer)));
  }
  ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream())));
  EXPECT_EQ(bench_.Read(sum_), Same(3));
  ASSERT_TRUE(IsOk(executable->Close(Soon())));
  EXPECT_TRUE(device->retries().empty());
  EXPECT_EQ(tagged(), 0);
}

// Who waits in slices of its time, to be interrupted for example, asks again after each.
TEST_F(MakingTest, G1_SlotsThatAreNotMadeInTimeTakeTheirMemoryOnceHoweverOftenTheyAreAskedFor) {
  const auto device = std::make_shared<HoldsNewStreams>(bench_.inner());
  const auto counted = hal::Instrumented(device);
  const auto memory = Need(memory::DeviceMemory::Create(counted, {}));
  const auto tagged = [&] { return memory->allocator().Stats().tag_bytes["graph:adding"]; };
  const auto budget = std::make_shared<MemoryBudget>(64_KiB);
  const ExecutableOptions options{.slots = 3, .budget = budget};
  const auto executable = Need(Executable::Create(adding_.program, memory, options));
  device->hold = true;
  ASSERT_EQ(Ask(*executable), StatusCode::kDeadlineExceeded);
  const std::int64_t taken = tagged();
  const Bytes charged = budget->used();
  EXPECT_GT(taken, 0);
  EXPECT_GT(charged, 0_B);
  const Bytes used = bench_.controls().used();
  const auto copies = counted->calls(Primitive::kCopy);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Ask(*executable), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(tagged(), taken);
  EXPECT_EQ(bench_.controls().used(), used);
  EXPECT_EQ(budget->used(), charged) << "as long as the memory is there";
  EXPECT_EQ(counted->calls(Primitive::kCreateStream), 2u);
  EXPECT_EQ(counted->calls(Primitive::kCopy), copies) << "nothing is queued again";
  EXPECT_GT(executable->stats().slot_bytes, 0_B);
  EXPECT_TRUE(counted->retries().empty());
  EXPECT_EQ(executable->Close(Shortly()).code(), StatusCode::kDeadlineExceeded);
  device->hold = false;
  device->Release();
  // What was begun is what is used.
  ASSERT_TRUE(IsOk(executable->Acquire(bench_.stream(), Soon())));
  EXPECT_EQ(counted->calls(Primitive::kCreateStream), 2u);
  EXPECT_EQ(tagged(), taken);
  EXPECT_EQ(budget->used(), charged);
  ASSERT_TRUE(IsOk(executable->Close(Soon())));
  EXPECT_EQ(tagged(), 0);
  EXPECT_EQ(budget->used(), 0_B);
}

// Who makes the slots may have all the time there is, and who closes has not.
TEST_F(MakingTest, G6_ClosingEndsAtItsDeadlineWhileTheSlotsAreBeingMade) {
  const auto device = std::make_shared<HoldsNewStreams>(bench_.inner());
  const auto counted = hal::Instrumented(device);
  const auto memory = Need(memory::DeviceMemory::Create(counted, {}));
  const auto executable = Need(Executable::Create(adding_.program, memory, {.slots = 2}));
  device->hold = true;
  counted->ResetCounts();
  std::thread maker([&] { EXPECT_TRUE(IsOk(executable->Acquire(bench_.stream(), Soon()))); });
  const Deadline makes = Soon();
  while (counted->calls(Primitive::kSynchronizeStream) == 0 && !makes.Passed()) {
    std::this_thread::yield();
  }
  const Status closed = executable->Close(Shortly());
  EXPECT_EQ(closed.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(closed.ToString(), ::testing::HasSubstr("'adding' are being made by a step"));
  device->Release();
  maker.join();
  EXPECT_TRUE(IsOk(executable->Close(Soon())));
  EXPECT_EQ(memory->allocator().Stats().tag_bytes["graph:adding"], 0);
}

// Measuring a device that hangs keeps nobody from another device, who needs the same.
TEST(CostsTest, AreMeasuredOfEachDeviceByItself) {
  const auto driver = Need(sim::CreateSimDriver({.devices = 2, .memory = 256_MiB, .arena = 4_GiB}));
  const auto hanging = std::make_shared<HoldsNewStreams>(Need(driver->Open(0)));
  const auto counted = hal::Instrumented(hanging);
  const auto hangs = Need(memory::DeviceMemory::Create(counted, {}));
  const auto healthy = Need(memory::DeviceMemory::Create(Need(driver->Open(1)), {}));
  hanging->hold = true;
  counted->ResetCounts();
  std::thread first([&] { EXPECT_TRUE(IsOk(CostsOf(hangs, Soon()))); });
  const Deadline measures = Soon();
  // Which comes after its stream.
  while (counted->calls(Primitive::kLoadModule) == 0 && !measures.Passed()) {
    std::this_thread::yield();
  }
  std::atomic<bool> measured = false;
  std::thread second([&] {
    EXPECT_TRUE(IsOk(CostsOf(healthy, Soon())));
    measured = true;
  });
  // A machine that is busy needs its time.
  const Deadline in_time = Deadline::After(std::chrono::seconds(20));
  while (!measured && !in_time.Passed()) std::this_thread::yield();
  EXPECT_TRUE(measured) << "while the other device hangs";
  hanging->hold = false;
  hanging->Release();
  first.join();
  second.join();
}

// However many wait for each other: each until its own deadline. And what the device may still
// write to is nobody else's, until it is done.
TEST(CostsTest, G6_MeasuringADeviceThatHangsEndsAtTheDeadline) {
  SetLogLevel(LogLevel::kOff);
  const auto driver = Need(sim::CreateSimDriver({.memory = 256_MiB, .arena = 4_GiB}));
  const auto device = std::make_shared<HoldsNewStreams>(Need(driver->Open(0)));
  const auto counted = hal::Instrumented(device);
  const auto memory = Need(memory::DeviceMemory::Create(counted, {}));
  device->hold = true;
  const auto begin = Deadline::Clock::now();
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i) {
    callers.emplace_back([&] {
      EXPECT_EQ(CostsOf(memory, Deadline::After(milliseconds(50))).status().code(),
                StatusCode::kDeadlineExceeded);
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_LT(Deadline::Clock::now() - begin, std::chrono::seconds(30));
  device->hold = false;
  EXPECT_FALSE(counted->retries().empty());
  EXPECT_FALSE(counted->retries().Drain().ok()) << "while the device is not done";
  EXPECT_GT(memory->allocator().allocated(), 0_B);
  device->Release();
  // What failed is not kept; what was measured is.
  EXPECT_TRUE(IsOk(CostsOf(memory, Soon())));
  EXPECT_TRUE(IsOk(counted->Synchronize(Soon())));
  EXPECT_TRUE(IsOk(counted->retries().Drain()));
  EXPECT_EQ(memory->allocator().allocated(), 0_B);
  counted->ResetCounts();
  EXPECT_TRUE(IsOk(CostsOf(memory, Deadline::Now())));
  EXPECT_EQ(counted->calls(), 0u);
  SetLogLevel(LogLevel::kWarn);
}

// What waits for it gives up at once, and remembers how long it might have waited.
class IsNeverInTime : public hal::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  Status SynchronizeStream(hal::StreamHandle stream, Deadline deadline) override {
    return hangs ? Late(deadline) : ForwardingDevice::SynchronizeStream(stream, deadline);
  }
  Status SynchronizeEvent(hal::EventHandle event, Deadline deadline) override {
    return hangs ? Late(deadline) : ForwardingDevice::SynchronizeEvent(event, deadline);
  }
  bool hangs = true;
  Deadline::Clock::time_point longest;

 private:
  Status Late(Deadline deadline) {
    longest = std::max(longest, deadline.when());
    return DeadlineExceeded("it hangs");
  }
};

TEST_F(MakingTest, AnExecutableForAutoIsMadeOnADeviceThatCannotBeMeasured) {
  const Adding adding = MakeAdding(Policy::kAuto, Policy::kAuto);
  const auto driver = Need(sim::CreateSimDriver({.memory = 256_MiB, .arena = 4_GiB}));
  const auto device = std::make_shared<IsNeverInTime>(Need(driver->Open(0)));
  const auto memory = Need(memory::DeviceMemory::Create(device, {}));
  const auto create = [&] {
    SetLogLevel(LogLevel::kWarn);
    testing::internal::CaptureStderr();
    EXPECT_TRUE(IsOk(Executable::Create(adding.program, memory).status()));
    SetLogLevel(LogLevel::kOff);
    return testing::internal::GetCapturedStderr();
  };
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(create(), ::testing::HasSubstr("`auto` reckons in 'adding' with what devices cost "
                                               "in general, because sim:0 could not be measured"));
    EXPECT_NE(device->longest, Deadline::Clock::time_point());
    EXPECT_LT(device->longest, Deadline::Clock::now() + std::chrono::seconds(4))
        << "3 are promised";
  }
  device->hangs = false;
  EXPECT_TRUE(IsOk(device->Synchronize(Soon())));
  EXPECT_TRUE(IsOk(device->retries().Drain()));
  EXPECT_EQ(create(), "") << "it is measured now";
}

// Half-made slots are closed and given up to others as others are, once the device is done.
TEST_F(MakingTest, G10_G14_HalfMadeSlotsAreOnTheBudgetUntilTheyAreFreed) {
  const auto device = std::make_shared<HoldsNewStreams>(bench_.inner());
  const auto memory = Need(memory::DeviceMemory::Create(device, {}));
  const auto tagged = [&] { return memory->allocator().Stats().tag_bytes["graph:adding"]; };
  enum class End { kClosed, kTaken, kGone, kGoneAndTaken };
  for (const End end : {End::kClosed, End::kTaken, End::kGone, End::kGoneAndTaken}) {
    const auto budget = std::make_shared<MemoryBudget>(8_KiB);  // of one
    const auto make = [&] {
      auto made = Need(Executable::Create(
          adding_.program, memory, {.slots = 3, .patience = milliseconds(5), .budget = budget}));
      for (const BindingId each : {adding_.a, adding_.b, adding_.sum, adding_.total}) {
        EXPECT_TRUE(IsOk(made->Bind(each, sum_)));
      }
      return made;
    };
    auto executable = make();
    const auto other = make();
    device->hold = true;
    EXPECT_EQ(executable->Acquire(bench_.stream(), Shortly()).status().code(),
              StatusCode::kDeadlineExceeded);
    device->hold = false;
    const std::int64_t taken = tagged();
    const auto expect_in_use = [&] {
      EXPECT_EQ(RunStep(*other, bench_.stream()).code(), StatusCode::kResourceExhausted);
      EXPECT_EQ(tagged(), taken);
      EXPECT_GT(budget->used(), 0_B);
    };
    expect_in_use();
    if (end == End::kGone || end == End::kGoneAndTaken) {
      executable.reset();
      EXPECT_EQ(device->retries().size(), 1u);
      expect_in_use();
    }
    for (const hal::StreamHandle stream : device->Release()) {
      ASSERT_TRUE(IsOk(bench_.inner()->SynchronizeStream(stream, Soon())));
    }
    if (end == End::kClosed) {
      EXPECT_TRUE(IsOk(executable->Close(Soon())));
    }
    if (end == End::kGone) {
      EXPECT_TRUE(IsOk(device->retries().Drain()));
    }
    if (end == End::kClosed || end == End::kGone) {
      EXPECT_EQ(tagged(), 0);
      EXPECT_EQ(budget->used(), 0_B);
    }
    EXPECT_TRUE(IsOk(RunStep(*other, bench_.stream())));
    EXPECT_EQ(tagged(), taken) << "of the other one alone";
    if (end == End::kTaken) {
      EXPECT_EQ(executable->stats().evictions, 1u);
      EXPECT_EQ(executable->stats().slot_bytes, 0_B);
    }
    ASSERT_TRUE(IsOk(other->Close(Soon())));
    EXPECT_EQ(budget->used(), 0_B);
    EXPECT_TRUE(IsOk(device->retries().Drain()));
  }
}

}  // namespace
}  // namespace keel::graph
