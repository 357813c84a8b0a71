// What holds for workers that are threads, on a device whose calls a test can delay and count.
#include <gtest/gtest.h>

#include <ctime>
#include <thread>

#include "task/worker_test.h"

namespace keel::task {
namespace {

class WorkerThreadTest : public hal::SimDevicesTest {
 protected:
  std::unique_ptr<Worker> Start() {
    return Need(StartThreadWorker(
        {.options = {.device = "sim:0", .memory = memory_}, .doorbell = doorbell_}, Long()));
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
  for (const auto primitive : {hal::Primitive::kCreateMemory, hal::Primitive::kAllocatePlain}) {
    device_->DelayNth(primitive, 1, milliseconds(200));
  }
  const Status late = worker->Allocate(64_MiB, Deadline::After(milliseconds(20))).status();
  EXPECT_EQ(late.code(), StatusCode::kDeadlineExceeded) << late.ToString();
  EXPECT_TRUE(IsOk(worker->Stats(Long())));
  EXPECT_EQ(allocated(), before);
  EXPECT_TRUE(IsOk(worker->Health()));
}

// A thread works in the caller's memory: the call must not return while it does.
TEST_F(WorkerThreadTest, ACopyThatWasBegunIsWaitedFor) {
  const auto worker = Start();
  const DeviceAddress block = Need(worker->Allocate(1_MiB, Long()));
  device_->DelayNth(hal::Primitive::kCopy, 1, milliseconds(200));
  const auto begin = std::chrono::steady_clock::now();
  {
    const std::vector<std::byte> source((1_MiB).count());
    (void)worker->CopyTo(block, source.data(), 1_MiB, Deadline::After(milliseconds(20)));
  }
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(200));
  EXPECT_TRUE(IsOk(worker->Stats(Long())));
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
  bool idle = false;
  for (int second = 0; second < 10 && !idle; ++second) {
    const auto before = used();
    std::this_thread::sleep_for(std::chrono::seconds(1));
    idle = used() - before < milliseconds(10);
  }
  EXPECT_TRUE(idle);
}

}  // namespace
}  // namespace keel::task
