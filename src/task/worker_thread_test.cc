// What holds for workers that are threads, on a device whose calls a test can delay and count.
#include <gtest/gtest.h>

#include <atomic>
#include <ctime>
#include <thread>

#include "base/soon_test.h"
#include "task/worker_test.h"

namespace keel::task {
namespace {

class WorkerThreadTest : public hal::SimDevicesTest {
 protected:
  std::unique_ptr<Worker> Start() {
    return Need(StartThreadWorker(
        {.options = {.device = "sim:0", .memory = memory_}, .doorbell = doorbell_}, Long()));
  }
  // An allocation whose caller no longer waits for it; when this returns it was begun.
  void AllocateLate(Worker& worker) {
    constexpr std::array kBegin{hal::Primitive::kCreateMemory, hal::Primitive::kAllocatePlain};
    const auto begun = [&] { return device_->calls(kBegin[0]) + device_->calls(kBegin[1]); };
    const std::uint64_t before = begun();
    for (const auto primitive : kBegin) device_->DelayNth(primitive, 1, milliseconds(200));
    // A machine that is busy may not have begun in time: then nothing was done.
    ASSERT_TRUE(keel::Soon([&] {
      const Status late = worker.Allocate(64_MiB, Deadline::After(milliseconds(20))).status();
      EXPECT_EQ(late.code(), StatusCode::kDeadlineExceeded) << late.ToString();
      return begun() > before;
    }));
    device_->ClearRules();
  }
  std::shared_ptr<Doorbell> doorbell_ = Need(Doorbell::Create());
  std::shared_ptr<memory::DeviceMemory> memory_ = Need(memory::DeviceMemory::Create(device_, {}));
};

TEST_F(WorkerThreadTest, NothingIsLeftOfAWorker) {
  {
    const auto worker = Start();
    (void)Need(worker->Allocate(1_MiB, Long()));
    (void)Need(worker->Register(FillImage(), Long()));
  }
  memory_.reset();
  ExpectNothingLeft();
}

// The worker has begun: its answer comes late, and what it allocated must not stay for ever.
TEST_F(WorkerThreadTest, T4_WhatALateCallDidIsUndone) {
  const auto worker = Start();
  const auto allocated = [&] { return memory_->allocator().Stats().allocated_bytes.all.current; };
  const auto before = allocated();
  AllocateLate(*worker);
  EXPECT_TRUE(IsOk(worker->Stats(Long())));
  EXPECT_EQ(allocated(), before);
  EXPECT_TRUE(IsOk(worker->Health()));
}

// Also if the next calls have no time for it.
TEST_F(WorkerThreadTest, T4_WhatIsToBeUndoneIsNotForgotten) {
  const auto worker = Start();
  const auto allocated = [&] { return memory_->allocator().Stats().allocated_bytes.all.current; };
  const auto before = allocated();
  AllocateLate(*worker);
  ASSERT_TRUE(keel::Soon([&] { return allocated() > before; }));
  for (int call = 0; call < 500; ++call) {
    EXPECT_NE(worker->Stats(Deadline::Now()).status().code(), StatusCode::kUnavailable);
    if (call % 10 == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  EXPECT_TRUE(keel::Soon([&] { return worker->Stats(Long()).ok(); }));
  EXPECT_EQ(allocated(), before);
}

// A thread works in the caller's memory: the call must not return while it does.
TEST_F(WorkerThreadTest, ACopyThatWasBegunIsWaitedFor) {
  const auto worker = Start();
  const DeviceAddress block = Need(worker->Allocate(1_MiB, Long()));
  device_->DelayNth(hal::Primitive::kCopy, 1, milliseconds(200));
  const std::vector<std::byte> source((1_MiB).count());
  const std::uint64_t before = device_->calls(hal::Primitive::kCopy);
  auto begin = std::chrono::steady_clock::now();
  // A machine that is busy may not have begun in time: then nothing was done.
  EXPECT_TRUE(keel::Soon([&] {
    begin = std::chrono::steady_clock::now();
    (void)worker->CopyTo(block, source.data(), 1_MiB, Deadline::After(milliseconds(20)));
    return device_->calls(hal::Primitive::kCopy) > before;
  }));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(200));
  EXPECT_TRUE(IsOk(worker->Stats(Long())));
}

// Also if the worker is lost meanwhile: its thread goes on.
TEST_F(WorkerThreadTest, ACopyThatWasBegunIsWaitedForBeyondTheLossOfTheWorker) {
  const auto worker = Start();
  const DeviceAddress block = Need(worker->Allocate(1_MiB, Long()));
  const std::uint64_t before = device_->calls(hal::Primitive::kCopy);
  device_->DelayNth(hal::Primitive::kCopy, 1, milliseconds(400));
  const auto begin = std::chrono::steady_clock::now();
  std::chrono::steady_clock::duration took{};
  std::thread caller([&] {
    std::vector<std::byte> target((1_MiB).count());
    (void)worker->CopyFrom(target.data(), block, 1_MiB, Long());
    took = std::chrono::steady_clock::now() - begin;
  });
  EXPECT_TRUE(keel::Soon([&] { return device_->calls(hal::Primitive::kCopy) > before; }));
  worker->Stop(Deadline::Now());
  EXPECT_FALSE(worker->Health().ok());
  caller.join();
  EXPECT_GE(took, milliseconds(400));
}

TEST_F(WorkerThreadTest, ADeviceThatIsLostInAControlCallLosesTheWorker) {
  const auto worker = Start();
  const DeviceAddress block = Need(worker->Allocate(4_KiB, Long()));
  {
    const auto other = Need(Engine::Create(memory_, Orchestration::kHost));
    const std::uint64_t fill = Need(other->Register(FillImage(), Long()));
    const std::array<std::uint32_t, 1> shape{16};
    Arguments arguments;
    arguments.Add(Tag::kOut, Tensor::Resident(DeviceAddress(0x1000), DataType::kUInt32, shape))
        .AddScalar(std::uint32_t{1});
    ASSERT_EQ(other->Run(fill, arguments.Encode(), Deadline::Never()).code(),
              StatusCode::kDeviceLost);
  }
  EXPECT_TRUE(IsOk(worker->Health()));
  std::uint32_t word = 0;
  EXPECT_EQ(worker->CopyFrom(&word, block, 4_B, Long()).code(), StatusCode::kDeviceLost);
  EXPECT_TRUE(keel::Soon([&] { return !worker->Health().ok(); }));
  EXPECT_NE(worker->Health().message().find("gave up"), std::string_view::npos)
      << worker->Health().ToString();
}

// In a call that does not return: the worker is given up, and a new one works meanwhile.
TEST_F(WorkerThreadTest, AThreadThatHangsIsLeftBehind) {
  auto worker = Start();
  std::vector<std::uint32_t> out(16);
  Arguments arguments;
  arguments.Add(Tag::kOut, On(out)).AddScalar(std::uint32_t{3});
  const std::uint64_t fill = Need(worker->Register(FillImage(), Long()));
  device_->DelayNth(hal::Primitive::kLaunchKernel, 1, std::chrono::seconds(2));
  const Deadline deadline = Deadline::After(milliseconds(20));
  ASSERT_TRUE(IsOk(worker->Post(1, fill, arguments, deadline)));
  worker->Wake();
  std::vector<TaskResult> results;
  while (results.empty()) {
    const std::uint32_t seen = doorbell_->value();
    worker->Collect(results);
    if (results.empty()) {
      const std::array answer{worker->NextAnswer()};
      doorbell_->WaitWhile(seen, answer, worker->NextDeadline());
    }
  }
  EXPECT_EQ(results[0].status.code(), StatusCode::kDeadlineExceeded);
  // Said by this side, and not by the thread when its call returned.
  EXPECT_NE(results[0].status.message().find("had not done it"), std::string_view::npos)
      << results[0].status.ToString();
  ASSERT_TRUE(IsOk(worker->Restart(Long())));
  EXPECT_EQ(Need(worker->Stats(Long())).callables, 0U);
  const std::uint64_t again = Need(worker->Register(FillImage(), Long()));
  ASSERT_TRUE(IsOk(worker->Post(2, again, arguments, Deadline::Never())));
  worker->Wake();
  EXPECT_TRUE(keel::Soon([&] {
    worker->Collect(results);
    return results.size() == 2;
  }));
  EXPECT_TRUE(IsOk(results[1].status));
  EXPECT_EQ(out, std::vector<std::uint32_t>(16, 3));
  worker.reset();
  EXPECT_TRUE(keel::Soon([&] { return memory_.use_count() == 1; })) << "the thread never ended";
}

// Its owner was told that the task is over, and has perhaps freed them.
TEST_F(WorkerThreadTest, AThreadThatWasLeftBehindTouchesNoTensors) {
  auto worker = Start();
  std::vector<std::uint32_t> out(16, 9);
  Arguments arguments;
  arguments.Add(Tag::kOut, On(out)).AddScalar(std::uint32_t{3});
  const std::uint64_t fill = Need(worker->Register(FillImage(), Long()));
  device_->DelayNth(hal::Primitive::kLaunchKernel, 1, std::chrono::seconds(2));
  // The second is too late, and the first, which hangs, goes with it.
  ASSERT_TRUE(IsOk(worker->Post(1, fill, arguments, Deadline::Never())));
  ASSERT_TRUE(IsOk(worker->Post(2, fill, {}, Deadline::After(milliseconds(20)))));
  worker->Wake();
  std::vector<TaskResult> results;
  while (results.empty()) {
    const std::uint32_t seen = doorbell_->value();
    worker->Collect(results);
    if (results.empty()) {
      const std::array answer{worker->NextAnswer()};
      doorbell_->WaitWhile(seen, answer, worker->NextDeadline());
    }
  }
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].status.code(), StatusCode::kUnavailable) << results[0].status.ToString();
  worker.reset();
  EXPECT_TRUE(keel::Soon([&] { return memory_.use_count() == 1; })) << "the thread never ended";
  EXPECT_EQ(out, std::vector<std::uint32_t>(16, 9));
}

TEST_F(WorkerThreadTest, T9_AnIdleWorkerTakesNoProcessorTime) {
  const auto worker = Start();
  ASSERT_TRUE(IsOk(worker->Stats(Long())));
  const auto used = [] {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  };
  // Others of this process may still be ending.
  int idle = 0;  // seconds in a row
  for (int second = 0; second < 10 && idle < 2; ++second) {
    const auto before = used();
    std::this_thread::sleep_for(std::chrono::seconds(1));
    idle = used() - before < milliseconds(10) ? idle + 1 : 0;
  }
  EXPECT_EQ(idle, 2);
}

}  // namespace
}  // namespace keel::task
