#include "task/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/soon_test.h"
#include "hal/sim_devices_test.h"
#include "keel/hal/stream.h"
#include "memory/every_call_fails_test.h"
#include "task/images_test.h"

namespace keel::task {
namespace {

using hal::IsOk;
using hal::Need;
using hal::Primitive;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr std::uint32_t kCount = 1000;

template <class T>
constexpr DataType TypeOf() {
  if constexpr (std::is_same_v<T, float>) return DataType::kFloat32;
  if constexpr (std::is_same_v<T, std::uint64_t>) return DataType::kUInt64;
  return DataType::kUInt32;
}
template <class T>
Tensor OnHost(const std::vector<T>& values) {
  const std::uint32_t shape[] = {static_cast<std::uint32_t>(values.size())};
  return Tensor::Host(values.data(), TypeOf<T>(), shape);
}
template <class T>
Tensor OnDevice(DeviceAddress address, std::uint32_t count = kCount) {
  const std::uint32_t shape[] = {count};
  return Tensor::Resident(address, TypeOf<T>(), shape);
}

// Values whose sums and products have no short representation.
std::vector<float> Rough(std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values(kCount);
  for (float& value : values) value = static_cast<float>(random()) / 3.7e8F - 5.3F;
  return values;
}

Arguments FillArguments(const Tensor& tensor, std::uint32_t value) {
  return Arguments().Add(Tag::kOut, tensor).AddScalar(value);
}

Status RunOn(Engine& engine, std::uint64_t callable, const Arguments& arguments, Deadline deadline,
             const std::atomic<bool>* killed = nullptr) {
  return engine.Run(callable, arguments.Encode(), deadline, killed);
}

class EngineTest : public hal::SimDevicesTest, public ::testing::WithParamInterface<Orchestration> {
 protected:
  static Orchestration where() { return GetParam(); }
  std::unique_ptr<Engine> Make() { return Need(Engine::Create(memory_, where())); }
  static std::uint64_t Register(Engine& engine, const Image& image) {
    return Need(engine.Register(image, Deadline::Never()));
  }
  template <class T>
  static std::vector<T> Read(Engine& engine, DeviceAddress address, std::size_t count = kCount) {
    std::vector<T> values(count);
    EXPECT_TRUE(
        IsOk(engine.CopyFrom(values.data(), address, Bytes(count * sizeof(T)), Deadline::Never())));
    return values;
  }
  // The streams of the engine, oldest first: its store's, that of control, that of tasks.
  std::vector<hal::StreamHandle> Streams() const {
    std::vector<hal::StreamHandle> streams;
    for (const hal::LiveObject& object : device_->Live()) {
      if (object.created_by == Primitive::kCreateStream) streams.push_back({object.value});
    }
    return streams;
  }
  void ExpectNothingLeftOfMemory() {
    EXPECT_EQ(memory_->allocator().allocated(), 0_B);
    memory_ = nullptr;
    ExpectNothingLeft();
  }

  std::shared_ptr<memory::DeviceMemory> memory_ = Need(memory::DeviceMemory::Create(device_, {}));
};

TEST_P(EngineTest, RunsOnTensorsOfTheHostAndOfTheDevice) {
  auto engine = Make();
  const std::uint64_t add = Register(*engine, AddImage());
  const std::vector<float> a = Rough(1);
  const std::vector<float> b = Rough(2);
  std::vector<float> c(kCount);
  std::vector<float> want(kCount);
  for (std::size_t i = 0; i < kCount; ++i) want[i] = a[i] + b[i];
  Arguments on_host;
  on_host.Add(Tag::kIn, OnHost(a)).Add(Tag::kIn, OnHost(b)).Add(Tag::kOut, OnHost(c));
  ASSERT_TRUE(IsOk(RunOn(*engine, add, on_host, Deadline::Never())));
  EXPECT_EQ(c, want);

  const DeviceAddress resident = Need(engine->Allocate(Bytes(kCount * 4)));
  const DeviceAddress sum = Need(engine->Allocate(Bytes(kCount * 4)));
  ASSERT_TRUE(IsOk(engine->CopyTo(resident, b.data(), Bytes(kCount * 4), Deadline::Never())));
  const EngineStats before = engine->Stats();
  Arguments mixed;
  mixed.Add(Tag::kIn, OnHost(a))
      .Add(Tag::kIn, OnDevice<float>(resident))
      .Add(Tag::kOut, OnDevice<float>(sum));
  ASSERT_TRUE(IsOk(RunOn(*engine, add, mixed, Deadline::Never())));
  const EngineStats after = engine->Stats();
  EXPECT_EQ(after.bytes_to_device - before.bytes_to_device, kCount * 4);  // a, and nothing else
  EXPECT_EQ(after.bytes_from_device, before.bytes_from_device);
  EXPECT_EQ(after.tasks, 2u);
  EXPECT_EQ(Read<float>(*engine, sum), want);
  EXPECT_EQ(Read<float>(*engine, resident), b);
  // The blocks were not freed, nor the callable unregistered.
  engine = nullptr;
  ExpectNothingLeftOfMemory();
}

TEST_P(EngineTest, T2_AResidentTensorBetweenTwoOutputsShiftsNothing) {
  const auto engine = Make();
  const std::uint64_t three = Register(*engine, ThreeImage());
  const DeviceAddress middle = Need(engine->Allocate(Bytes(kCount * 4)));
  std::vector<std::uint32_t> x(kCount);
  std::vector<std::uint32_t> z(kCount);
  Arguments arguments;
  arguments.Add(Tag::kOut, OnHost(x))
      .Add(Tag::kOut, OnDevice<std::uint32_t>(middle))
      .Add(Tag::kOut, OnHost(z));
  ASSERT_TRUE(IsOk(RunOn(*engine, three, arguments, Deadline::Never())));
  EXPECT_THAT(x, Each(1u));
  EXPECT_THAT(Read<std::uint32_t>(*engine, middle), Each(2u));
  EXPECT_THAT(z, Each(3u));

  // And one of the host between two that are resident.
  const DeviceAddress last = Need(engine->Allocate(Bytes(kCount * 4)));
  Arguments other;
  other.Add(Tag::kOut, OnDevice<std::uint32_t>(last))
      .Add(Tag::kOut, OnHost(z))
      .Add(Tag::kOut, OnDevice<std::uint32_t>(middle));
  ASSERT_TRUE(IsOk(RunOn(*engine, three, other, Deadline::Never())));
  EXPECT_THAT(Read<std::uint32_t>(*engine, last), Each(1u));
  EXPECT_THAT(z, Each(2u));
  EXPECT_THAT(Read<std::uint32_t>(*engine, middle), Each(3u));
  ASSERT_TRUE(IsOk(engine->Free(middle)));
  ASSERT_TRUE(IsOk(engine->Free(last)));
}

TEST_P(EngineTest, TensorsWithoutElementsAndScalarsAreFine) {
  const auto engine = Make();
  const std::uint64_t noop = Register(*engine, NoopImage());
  const std::vector<float> nothing;
  EXPECT_TRUE(IsOk(RunOn(*engine, noop, {}, Deadline::Never())));
  EXPECT_TRUE(IsOk(RunOn(
      *engine, noop,
      Arguments().Add(Tag::kIn, OnHost(nothing)).Add(Tag::kInOut, OnHost(nothing)).AddScalar(1),
      Deadline::Never())));
  EXPECT_EQ(engine->Stats().bytes_to_device, 0u);
  Arguments most;
  for (std::size_t i = 0; i < Arguments::kMaxTensors; ++i) most.Add(Tag::kIn, OnHost(nothing));
  for (std::size_t i = 0; i < Arguments::kMaxScalars; ++i) most.AddScalar(i);
  EXPECT_TRUE(IsOk(RunOn(*engine, noop, most, Deadline::Never())));
}

TEST_P(EngineTest, ErrorsOfTheCodeSayWhatItSaid) {
  const auto engine = Make();
  const std::uint64_t fail = Register(*engine, FailImage());
  const std::uint64_t careless = Register(*engine, CarelessImage());
  const std::uint64_t add = Register(*engine, AddImage());
  std::vector<std::uint32_t> x(kCount, 5);
  Status status = RunOn(*engine, fail, FillArguments(OnHost(x), 1), Deadline::Never());
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "told to fail");
  // A code that is no StatusCode.
  status = RunOn(*engine, careless, {}, Deadline::Never());
  EXPECT_EQ(status.code(), StatusCode::kUnknown);
  EXPECT_THAT(status.ToString(), HasSubstr("careless takes kernels"));
  // Launches that are refused, although the code does not care, and goes on.
  status = RunOn(*engine, careless, FillArguments(OnHost(x), 1), Deadline::Never());
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.ToString(), HasSubstr("kernel 1: kernel 'keel_add' takes 4 arguments"));
  status = RunOn(*engine, careless, FillArguments(OnHost(x), 9).AddScalar(0), Deadline::Never());
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.ToString(), HasSubstr("it launches kernel 9, and has 2"));
  status = RunOn(*engine, add, FillArguments(OnHost(x), 1), Deadline::Never());
  EXPECT_THAT(status.ToString(), HasSubstr("add takes a, b and c"));
  EXPECT_THAT(x, Each(5u));
  // T10: none of it harmed the engine.
  ASSERT_TRUE(IsOk(RunOn(*engine, careless, FillArguments(OnHost(x), 0), Deadline::Never())));
  EXPECT_THAT(x, Each(7u));
  EXPECT_EQ(memory_->allocator().allocated() == 0_B, where() == Orchestration::kHost);
}

// A code that says so must not look like a device that is lost, or a wait that was given up.
TEST_P(EngineTest, WhatOnlyTheEngineMaySayIsUnknownFromTheCode) {
  const auto engine = Make();
  const std::uint64_t code = Register(*engine, ReturnImage());
  const std::pair<int, StatusCode> cases[] = {
      {0, StatusCode::kOk},
      {1, StatusCode::kCancelled},
      {4, StatusCode::kUnknown},
      {10, StatusCode::kAborted},
      {14, StatusCode::kUnknown},
      {15, StatusCode::kUnknown},
      {16, StatusCode::kUnauthenticated},
      {17, StatusCode::kUnknown},
      {-1, StatusCode::kUnknown},
  };
  for (const auto& [returned, want] : cases) {
    const Status status = RunOn(*engine, code, Arguments().AddScalar(returned), Deadline::Never());
    EXPECT_EQ(status.code(), want) << returned;
    if (returned != 0) {
      EXPECT_THAT(status.ToString(), HasSubstr("returned " + std::to_string(returned)));
    }
  }
}

TEST_P(EngineTest, WhatIsNotThereIsNamed) {
  const auto engine = Make();
  EXPECT_EQ(RunOn(*engine, 1, {}, Deadline::Never()).code(), StatusCode::kNotFound);
  const std::uint64_t noop = Register(*engine, NoopImage());
  const std::uint64_t again = Register(*engine, NoopImage());
  EXPECT_NE(noop, again);
  EXPECT_EQ(engine->Stats().callables, 1u);
  ASSERT_TRUE(IsOk(engine->Unregister(noop)));
  EXPECT_EQ(engine->Unregister(noop).code(), StatusCode::kNotFound);
  EXPECT_THAT(RunOn(*engine, noop, {}, Deadline::Never()).ToString(),
              HasSubstr("NOT_FOUND: callable 1 is not registered"));
  EXPECT_TRUE(IsOk(RunOn(*engine, again, {}, Deadline::Never())));
  ASSERT_TRUE(IsOk(engine->Unregister(again)));
  EXPECT_EQ(engine->Stats().callables, 0u);
  EXPECT_EQ(engine->Stats().uploads, where() == Orchestration::kDevice ? 1u : 0u);

  const DeviceAddress block = Need(engine->Allocate(4_KiB));
  EXPECT_EQ(engine->Free(block + 512_B).code(), StatusCode::kInvalidArgument);
  ASSERT_TRUE(IsOk(engine->Free(block)));
  const Status twice = engine->Free(block);
  EXPECT_EQ(twice.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(twice.ToString(), HasSubstr(ToString(block)));
  std::uint32_t word = 0;
  EXPECT_EQ(engine->CopyTo(DeviceAddress(0x1000), &word, 4_B, Deadline::Never()).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(engine->CopyFrom(&word, DeviceAddress(0x1000), 4_B, Deadline::Never()).code(),
            StatusCode::kInvalidArgument);
}

// Somebody else's block is not the engine's to free.
TEST_P(EngineTest, OnlyItsOwnBlocksAreFreed) {
  const auto engine = Make();
  const auto stream = Need(hal::Stream::Create(device_));
  const DeviceAddress other = Need(memory_->allocator().Allocate(4_KiB, stream.get()));
  EXPECT_EQ(engine->Free(other).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(memory_->allocator().FindBlock(other).has_value());
  ASSERT_TRUE(IsOk(memory_->allocator().Free(other)));
  ASSERT_TRUE(IsOk(memory_->allocator().ForgetStream(stream.get())));
}

TEST_P(EngineTest, ATaskThatTakesTooLongIsGivenUpAndTheEngineThrownAway) {
  auto engine = Make();
  const std::uint64_t add = Register(*engine, AddImage());
  const std::vector<float> a = Rough(1);
  const std::vector<float> b = Rough(2);
  std::vector<float> c(kCount, 9.0F);
  Arguments arguments;
  arguments.Add(Tag::kIn, OnHost(a)).Add(Tag::kIn, OnHost(b)).Add(Tag::kOut, OnHost(c));
  ASSERT_EQ(Streams().size(), 3u);
  const hal::StreamHandle tasks = Streams()[2];
  ASSERT_TRUE(IsOk(controls().HoldStream(tasks)));
  const Status status =
      RunOn(*engine, add, arguments, Deadline::After(std::chrono::milliseconds(20)));
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status.ToString();
  EXPECT_THAT(c, Each(9.0F));
  // The callable's modules and the memory stay until the device is done with them.
  ASSERT_TRUE(IsOk(engine->Unregister(add)));
  std::thread end([&engine] { engine = nullptr; });
  ASSERT_TRUE(IsOk(controls().ReleaseStream(tasks)));
  end.join();
  EXPECT_TRUE(IsOk(device_->Health()));
  EXPECT_THAT(c, Each(9.0F));
  ExpectNothingLeftOfMemory();
}

// The device works in the caller's memory: the copy must not return while it does.
TEST_P(EngineTest, ACopyOfPinnedMemoryThatIsLateIsOverWhenItReturns) {
  const auto engine = Make();
  const DeviceAddress block = Need(engine->Allocate(4_KiB));
  void* const pinned = Need(memory_->host().Allocate(4_KiB));
  const hal::StreamHandle control = Streams()[1];
  for (const bool to_device : {true, false}) {
    ASSERT_TRUE(IsOk(controls().HoldStream(control)));
    std::atomic<bool> released = false;
    std::atomic<bool> returned = false;
    const std::uint64_t waits = device_->calls(Primitive::kSynchronizeStream);
    std::thread releaser([&] {
      // The wait that is late, and the one after it.
      EXPECT_TRUE(Soon(
          [&] { return returned || device_->calls(Primitive::kSynchronizeStream) >= waits + 2; }));
      released = true;
      EXPECT_TRUE(IsOk(controls().ReleaseStream(control)));
    });
    const Deadline deadline = Deadline::After(std::chrono::milliseconds(10));
    const Status status = to_device ? engine->CopyTo(block, pinned, 4_KiB, deadline)
                                    : engine->CopyFrom(pinned, block, 4_KiB, deadline);
    EXPECT_TRUE(released);
    returned = true;
    EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status.ToString();
    releaser.join();
  }
  ASSERT_TRUE(IsOk(memory_->host().Free(pinned)));
}

TEST_P(EngineTest, ATaskThatWasKilledTouchesNoTensorOfTheHost) {
  const auto engine = Make();
  const std::uint64_t fill = Register(*engine, FillImage());
  std::vector<std::uint32_t> x(kCount, 5);
  std::atomic<bool> killed = true;
  EXPECT_EQ(RunOn(*engine, fill, FillArguments(OnHost(x), 3), Deadline::Never(), &killed).code(),
            StatusCode::kCancelled);
  EXPECT_THAT(x, Each(5u));
  killed = false;
  ASSERT_TRUE(IsOk(RunOn(*engine, fill, FillArguments(OnHost(x), 3), Deadline::Never(), &killed)));
  EXPECT_THAT(x, Each(3u));
}

TEST_P(EngineTest, ControlGoesOnWhileATaskRuns) {
  const auto engine = Make();
  const std::uint64_t fill = Register(*engine, FillImage());
  std::vector<std::uint32_t> x(kCount);
  const hal::StreamHandle tasks = Streams()[2];
  ASSERT_TRUE(IsOk(controls().HoldStream(tasks)));
  Status ran;
  std::thread task(
      [&] { ran = RunOn(*engine, fill, FillArguments(OnHost(x), 3), Deadline::Never()); });
  const DeviceAddress block = Need(engine->Allocate(Bytes(kCount * 4)));
  const std::vector<std::uint32_t> values(kCount, 8);
  EXPECT_TRUE(IsOk(engine->CopyTo(block, values.data(), Bytes(kCount * 4), Deadline::Never())));
  EXPECT_EQ(Read<std::uint32_t>(*engine, block), values);
  const std::uint64_t other = Register(*engine, AddImage());
  EXPECT_TRUE(IsOk(engine->Unregister(other)));
  EXPECT_TRUE(IsOk(engine->Unregister(fill)));  // the task still has it
  EXPECT_TRUE(IsOk(engine->Free(block)));
  EXPECT_EQ(engine->Stats().tasks, 0u);
  ASSERT_TRUE(IsOk(controls().ReleaseStream(tasks)));
  task.join();
  // The thread may have found the callable before or after it was unregistered.
  if (ran.ok()) {
    EXPECT_THAT(x, Each(3u));
  } else {
    EXPECT_EQ(ran.code(), StatusCode::kNotFound);
  }
}

// Also one whose end nobody could wait for.
TEST_P(EngineTest, AFunctionThatIsUnregisteredStaysUntilItsTaskIsOver) {
  auto engine = Make();
  const hal::StreamHandle tasks = Streams()[2];
  std::weak_ptr<int> left;
  for (const bool late : {false, true}) {
    std::uint64_t number = 0;
    {
      auto held = std::make_shared<int>(7);
      left = held;
      HostFunction function = [&engine, &number, &left, held = std::move(held)](HostCall& call) {
        EXPECT_TRUE(IsOk(engine->Unregister(number)));
        EXPECT_FALSE(left.expired());
        return call.memory()->device()->CallHost(call.stream(), {[](void*) {}, nullptr});
      };
      const HostCode code{std::make_shared<const HostFunction>(std::move(function)),
                          Need(ImageBuilder().BuildKernels())};
      number = Need(engine->RegisterFunction(code, Deadline::Never()));
    }
    if (late) {
      ASSERT_TRUE(IsOk(controls().HoldStream(tasks)));
    }
    const Deadline deadline =
        late ? Deadline::After(std::chrono::milliseconds(20)) : Deadline::Never();
    const Status status = RunOn(*engine, number, {}, deadline);
    EXPECT_EQ(status.code(), late ? StatusCode::kDeadlineExceeded : StatusCode::kOk)
        << status.ToString();
    EXPECT_EQ(left.expired(), !late);
  }
  ASSERT_TRUE(IsOk(controls().ReleaseStream(tasks)));
  engine = nullptr;
  EXPECT_TRUE(left.expired());
  ExpectNothingLeftOfMemory();
}

TEST_P(EngineTest, AFaultLosesTheDeviceAndNothingElse) {
  auto engine = Make();
  const std::uint64_t fill = Register(*engine, FillImage());
  std::vector<std::uint32_t> x(kCount, 5);
  const DeviceAddress block = Need(engine->Allocate(4_KiB));
  const Status status =
      RunOn(*engine, fill, FillArguments(OnDevice<std::uint32_t>(DeviceAddress(0x1000)), 1),
            Deadline::Never());
  EXPECT_EQ(status.code(), StatusCode::kDeviceLost);
  EXPECT_THAT(status.ToString(), HasSubstr("0x1000"));
  EXPECT_EQ(RunOn(*engine, fill, FillArguments(OnHost(x), 1), Deadline::Never()).code(),
            StatusCode::kDeviceLost);
  EXPECT_THAT(x, Each(5u));
  std::uint32_t word = 0;
  EXPECT_EQ(engine->CopyFrom(&word, block, 4_B, Deadline::Never()).code(), StatusCode::kDeviceLost);
  EXPECT_EQ(engine->Register(AddImage(), Deadline::Never()).status().code(),
            StatusCode::kDeviceLost);
  EXPECT_TRUE(IsOk(engine->Unregister(fill)));
  engine = nullptr;
  EXPECT_EQ(memory_->allocator().allocated(), 0_B);
}

TEST_P(EngineTest, MemoryThatIsNotThereIsSaidSo) {
  const auto engine = Make();
  const std::uint64_t noop = Register(*engine, NoopImage());
  const std::vector<float> some(1);
  Tensor huge = OnHost(some);
  huge.rank = 2;
  huge.shape[0] = 1u << 20;
  huge.shape[1] = 1u << 20;
  // Not read: the address would not bear it.
  const Status status = RunOn(*engine, noop, Arguments().Add(Tag::kOut, huge), Deadline::Never());
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(status.ToString(), HasSubstr("memory for the tensors on the host"));
  Tensor largest = huge;
  largest.type = DataType::kUInt8;
  largest.shape[0] = 1u << 31;
  largest.shape[1] = 1u << 31;
  Arguments many;
  for (int i = 0; i < 5; ++i) {
    many.Add(Tag::kIn, largest);  // together more than 2^64
  }
  EXPECT_EQ(RunOn(*engine, noop, many, Deadline::Never()).code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(IsOk(RunOn(*engine, noop, {}, Deadline::Never())));
}

TEST_P(EngineTest, AFailureAtEveryCallLeavesNothing) {
  memory_ = nullptr;
  const Image image = AxpyImage();
  const std::vector<float> x = Rough(3);
  const std::vector<float> y = Rough(4);
  std::vector<float> want(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    const volatile float product = 0.5F * x[i];
    want[i] = y[i] + product;
  }
  const std::uint64_t calls = memory::SweepCalls(
      *device_,
      [&]() -> Status {
        KEEL_ASSIGN(auto memory, memory::DeviceMemory::Create(device_, {}));
        KEEL_ASSIGN(auto engine, Engine::Create(memory, where()));
        KEEL_ASSIGN(const std::uint64_t axpy, engine->Register(image, Deadline::Never()));
        KEEL_ASSIGN(const DeviceAddress block, engine->Allocate(Bytes(kCount * 4)));
        KEEL_TRY(engine->CopyTo(block, x.data(), Bytes(kCount * 4), Deadline::Never()));
        std::vector<float> result(y.begin(), y.end());
        Arguments arguments;
        arguments.Add(Tag::kIn, OnDevice<float>(block))
            .Add(Tag::kInOut, OnHost(result))
            .AddScalar(0.5F);
        Status ran = RunOn(*engine, axpy, arguments, Deadline::Never());
        EXPECT_EQ(result, ran.ok() ? want : y) << ran.ToString();
        if (!ran.ok()) {
          // The engine goes on after it.
          EXPECT_TRUE(IsOk(RunOn(*engine, axpy, arguments, Deadline::Never())));
          EXPECT_EQ(result, want);
          return ran;
        }
        KEEL_TRY(engine->Free(block));
        return engine->Unregister(axpy);
      },
      [&] { ExpectNothingLeft(); });
  EXPECT_GT(calls, 20u);
}

INSTANTIATE_TEST_SUITE_P(Both, EngineTest,
                         ::testing::Values(Orchestration::kHost, Orchestration::kDevice),
                         [](const auto& instance) {
                           return instance.param == Orchestration::kHost ? "Host" : "Device";
                         });

class EnginesTest : public hal::SimDevicesTest {
 protected:
  std::shared_ptr<memory::DeviceMemory> memory_ = Need(memory::DeviceMemory::Create(device_, {}));
};

TEST_F(EnginesTest, HostAndDeviceOrchestrationGiveTheSameBits) {
  const std::vector<float> x = Rough(5);
  std::vector<std::vector<float>> results;
  for (const Orchestration where : {Orchestration::kHost, Orchestration::kDevice}) {
    const auto engine = Need(Engine::Create(memory_, where));
    const std::uint64_t axpy = Need(engine->Register(AxpyImage(), Deadline::Never()));
    std::vector<float> y = Rough(6);
    Arguments arguments;
    arguments.Add(Tag::kIn, OnHost(x)).Add(Tag::kInOut, OnHost(y)).AddScalar(1.1F);
    for (int i = 0; i < 10; ++i) {
      ASSERT_TRUE(IsOk(RunOn(*engine, axpy, arguments, Deadline::Never())));
    }
    EXPECT_EQ(engine->Stats().uploads, where == Orchestration::kDevice ? 1u : 0u);
    results.push_back(std::move(y));
  }
  EXPECT_NE(results[0], Rough(6));
  const auto bits = [](float value) { return std::bit_cast<std::uint32_t>(value); };
  EXPECT_TRUE(std::ranges::equal(results[0], results[1], {}, bits, bits));
}

TEST_F(EnginesTest, AutoIsTheDeviceWhereItCan) {
  const auto engine = Need(Engine::Create(memory_, Orchestration::kAuto));
  (void)Need(engine->Register(NoopImage(), Deadline::Never()));
  EXPECT_EQ(engine->Stats().uploads, 1u);
}

// What is the steady state of a task on resident tensors: no memory, no copy.
TEST_F(EnginesTest, ATaskOnResidentTensorsCopiesNothing) {
  for (const Orchestration where : {Orchestration::kHost, Orchestration::kDevice}) {
    const auto engine = Need(Engine::Create(memory_, where));
    const std::uint64_t fill = Need(engine->Register(FillImage(), Deadline::Never()));
    const DeviceAddress block = Need(engine->Allocate(Bytes(kCount * 4)));
    const Arguments arguments = FillArguments(OnDevice<std::uint32_t>(block), 4);
    ASSERT_TRUE(IsOk(RunOn(*engine, fill, arguments, Deadline::Never())));
    device_->ResetCounts();
    for (int i = 0; i < 10; ++i) {
      ASSERT_TRUE(IsOk(RunOn(*engine, fill, arguments, Deadline::Never())));
    }
    EXPECT_EQ(device_->calls(Primitive::kCopy), 0u);
    EXPECT_EQ(device_->calls(Primitive::kLaunchKernel), 10u);
    EXPECT_LE(device_->calls(), 30u);  // a launch and a wait each, and an address on the device
  }
}

}  // namespace
}  // namespace keel::task
