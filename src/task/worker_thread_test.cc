// What holds for workers that are threads, on a device whose calls a test can delay and count.
#include <gtest/gtest.h>

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
  std::vector<TaskResult> results;
  while (results.empty()) {
    const std::uint32_t seen = doorbell_->value();
    worker->Collect(results);
    if (results.empty()) doorbell_->WaitWhile(seen, worker->NextDeadline());
  }
  EXPECT_EQ(results[0].status.code(), StatusCode::kDeadlineExceeded);
  // Said by this side, and not by the thread when its call returned.
  EXPECT_NE(results[0].status.message().find("had not done task 1"), std::string_view::npos)
      << results[0].status.ToString();
  ASSERT_TRUE(IsOk(worker->Restart(Long())));
  EXPECT_EQ(Need(worker->Stats(Long())).callables, 0U);
  const std::uint64_t again = Need(worker->Register(FillImage(), Long()));
  ASSERT_TRUE(IsOk(worker->Post(2, again, arguments, Deadline::Never())));
  EXPECT_TRUE(keel::Soon([&] {
    worker->Collect(results);
    return results.size() == 2;
  }));
  EXPECT_TRUE(IsOk(results[1].status));
  EXPECT_EQ(out, std::vector<std::uint32_t>(16, 3));
  worker.reset();
  EXPECT_TRUE(keel::Soon([&] { return memory_.use_count() == 1; })) << "the thread never ended";
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
