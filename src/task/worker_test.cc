// What holds for every worker, whatever is behind it.
#include "task/worker_test.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "base/forked_child_test.h"
#include "base/soon_test.h"
#include "task/transports_test.h"

namespace keel::task {
namespace {

class WorkerTest : public WorkersTest, public ::testing::WithParamInterface<Transport> {
 protected:
  bool thread() const { return GetParam() == Transport::kThread; }
  Result<std::unique_ptr<Worker>> TryStart(const WorkerStart& start) {
    if (thread()) return StartThreadWorker(start, Long());
    return GetParam() == Transport::kMpi ? StartMpiWorker(start, Long())
                                         : StartProcessWorker(start, Long());
  }
  std::unique_ptr<Worker> Start(Bytes shared = 64_MiB) { return Need(TryStart(Plan(shared))); }
  // A task that runs until its flag is set.
  DeviceAddress PostSpin(Worker& worker, std::uint64_t task, Deadline deadline,
                         std::chrono::microseconds limit = std::chrono::seconds(60)) {
    const DeviceAddress flag = Need(worker.Allocate(8_B, Long()));
    const std::uint64_t zero = 0;
    EXPECT_TRUE(IsOk(worker.CopyTo(flag, &zero, 8_B, Long())));
    const std::uint64_t spin = Need(worker.Register(SpinImage(), Long()));
    EXPECT_TRUE(IsOk(worker.Post(task, spin, SpinOn(flag, limit), deadline)));
    worker.Wake();
    return flag;
  }
  static Status SetFlag(Worker& worker, DeviceAddress flag) {
    const std::uint64_t ones = ~std::uint64_t{0};
    return worker.CopyTo(flag, &ones, 8_B, Long());
  }
};

INSTANTIATE_TEST_SUITE_P(, WorkerTest, ::testing::ValuesIn(Transports()), TransportName);

TEST_P(WorkerTest, RunsATaskWithTensorsOnTheHost) {
  const auto worker = Start();
  EXPECT_TRUE(IsOk(worker->Health()));
  EXPECT_TRUE(Adds(*worker));
  const EngineStats stats = Need(worker->Stats(Long()));
  EXPECT_EQ(stats.tasks, 1U);
  EXPECT_EQ(stats.bytes_to_device, 800U);
  EXPECT_EQ(stats.bytes_from_device, 400U);
  EXPECT_EQ(stats.callables, 0U);
}

TEST_P(WorkerTest, ResidentTensorsAreWorkedOnWhereTheyAre) {
  const auto worker = Start();
  const std::uint64_t axpy = Need(worker->Register(AxpyImage(), Long()));
  const std::vector<float> x(1000, 2.0F);
  std::vector<float> y(1000, 1.0F);
  const std::array<std::uint32_t, 1> shape{1000};
  const DeviceAddress at = Need(worker->Allocate(4000_B, Long()));
  ASSERT_TRUE(IsOk(worker->CopyTo(at, y.data(), 4000_B, Long())));
  Arguments arguments;
  arguments.Add(Tag::kIn, On(x))
      .Add(Tag::kInOut, Tensor::Resident(at, DataType::kFloat32, shape))
      .AddScalar(3.0F);
  ASSERT_TRUE(IsOk(Run(*worker, axpy, arguments)));
  ASSERT_TRUE(IsOk(worker->CopyFrom(y.data(), at, 4000_B, Long())));
  EXPECT_EQ(y, std::vector<float>(1000, 7.0F));
  EXPECT_TRUE(IsOk(worker->Free(at, Long())));
}

// What there is something to say of is left to Collect, with all that came with it.
TEST_P(WorkerTest, WhatWentWellIsTakenInOneStepAndTheRestIsTold) {
  const auto worker = Start();
  const std::uint64_t noop = Need(worker->Register(NoopImage(), Long()));
  const std::uint64_t fail = Need(worker->Register(FailImage(), Long()));
  const auto answered = [&](std::size_t count) {
    worker->Wake();
    Sign sign = worker->NextAnswer();
    sign.value += static_cast<std::uint32_t>(count) - 1;
    return Soon([&] { return sign.there(); });
  };
  for (std::uint64_t i = 1; i <= 3; ++i)
    ASSERT_TRUE(IsOk(worker->Post(i, noop, {}, Deadline::Never())));
  ASSERT_TRUE(answered(3));
  EXPECT_EQ(worker->TakeDone(), 3U);
  EXPECT_EQ(worker->TakeDone(), 0U);

  ASSERT_TRUE(IsOk(worker->Post(4, noop, {}, Deadline::Never())));
  ASSERT_TRUE(IsOk(worker->Post(5, fail, {}, Deadline::Never())));
  ASSERT_TRUE(answered(2));
  EXPECT_EQ(worker->TakeDone(), 0U);
  std::vector<TaskResult> results = Collect(*worker, 2);
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].task, 4U);
  EXPECT_TRUE(IsOk(results[0].status));
  EXPECT_EQ(results[1].task, 5U);
  EXPECT_FALSE(results[1].status.ok());

  // A deadline is Collect's to look at, and so is what comes back with a task.
  ASSERT_TRUE(IsOk(worker->Post(6, noop, {}, Long())));
  ASSERT_TRUE(answered(1));
  EXPECT_EQ(worker->TakeDone(), 0U);
  results = Collect(*worker, 1);
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].task, 6U);
  EXPECT_TRUE(Adds(*worker));

  worker->Stop(Long());
  EXPECT_EQ(worker->TakeDone(), 0U);
}

TEST_P(WorkerTest, T2_ResidentTensorsDoNotShiftTheOthers) {
  const auto worker = Start();
  const std::uint64_t add = Need(worker->Register(AddImage(), Long()));
  const std::vector<float> a(64, 1.0F);
  const std::vector<float> b(64, 5.0F);
  std::vector<float> c(64);
  const std::array<std::uint32_t, 1> shape{64};
  const DeviceAddress at = Need(worker->Allocate(256_B, Long()));
  ASSERT_TRUE(IsOk(worker->CopyTo(at, a.data(), 256_B, Long())));
  Arguments arguments;
  arguments.Add(Tag::kIn, Tensor::Resident(at, DataType::kFloat32, shape))
      .Add(Tag::kIn, On(b))
      .Add(Tag::kOut, On(c));
  ASSERT_TRUE(IsOk(Run(*worker, add, arguments)));
  EXPECT_EQ(c, std::vector<float>(64, 6.0F));
}

TEST_P(WorkerTest, AFullWorkerRefusesAndItsTasksEndInOrder) {
  const auto worker = Start();
  const std::uint64_t fill = Need(worker->Register(FillImage(), Long()));
  std::vector<std::vector<std::uint32_t>> outs(Worker::kCapacity, std::vector<std::uint32_t>(16));
  const DeviceAddress flag = PostSpin(*worker, 1000, Deadline::Never());
  for (std::uint32_t i = 1; i < Worker::kCapacity; ++i) {
    Arguments arguments;
    arguments.Add(Tag::kOut, On(outs[i])).AddScalar(i);
    ASSERT_TRUE(IsOk(worker->Post(i, fill, arguments, Deadline::Never()))) << i;
  }
  Arguments more;
  more.Add(Tag::kOut, On(outs[0])).AddScalar(std::uint32_t{0});
  EXPECT_EQ(worker->Post(0, fill, more, Deadline::Never()).code(), StatusCode::kResourceExhausted);
  ASSERT_TRUE(IsOk(SetFlag(*worker, flag)));
  const std::vector<TaskResult> results = Collect(*worker, Worker::kCapacity);
  ASSERT_EQ(results.size(), Worker::kCapacity);
  EXPECT_EQ(results[0].task, 1000U);
  for (std::uint32_t i = 1; i < Worker::kCapacity; ++i) {
    EXPECT_EQ(results[i].task, i);
    EXPECT_TRUE(IsOk(results[i].status));
    EXPECT_EQ(outs[i], std::vector<std::uint32_t>(16, i));
  }
  EXPECT_TRUE(IsOk(Run(*worker, fill, more)));
}

// The largest arguments that there are, as many as a worker takes: as many each time, wherever what
// they lie in was left.
TEST_P(WorkerTest, T6_AsManyOfTheLargestTasksAsItTakes) {
  const auto worker = Start();
  const std::uint64_t noop = Need(worker->Register(NoopImage(), Long()));
  const std::vector<float> one(1);
  Arguments arguments;
  for (std::size_t i = 0; i < Arguments::kMaxTensors; ++i) arguments.Add(Tag::kIn, On(one));
  for (std::size_t i = 0; i < Arguments::kMaxScalars; ++i) arguments.AddScalar(i);
  constexpr std::size_t kAtLeast = 80;
  for (int round = 0; round < 3; ++round) {
    const DeviceAddress flag = PostSpin(*worker, 1000, Deadline::Never());
    std::size_t posted = 1;
    Status status;
    while ((status = worker->Post(posted, noop, arguments, Deadline::Never())).ok()) ++posted;
    EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
    EXPECT_GE(posted, kAtLeast);
    // Of what needs no room there it takes more.
    for (; posted < Worker::kCapacity; ++posted) {
      ASSERT_TRUE(IsOk(worker->Post(posted, noop, {}, Deadline::Never()))) << posted;
    }
    EXPECT_EQ(worker->Post(posted, noop, {}, Deadline::Never()).code(),
              StatusCode::kResourceExhausted);
    ASSERT_TRUE(IsOk(SetFlag(*worker, flag)));
    const std::vector<TaskResult> results = Collect(*worker, Worker::kCapacity);
    ASSERT_EQ(results.size(), Worker::kCapacity);
    for (const TaskResult& result : results) EXPECT_TRUE(IsOk(result.status));
  }
}

// What they took of the lane is free again, by whichever way they were collected.
TEST_P(WorkerTest, TasksThatWereTakenInOneStepLeaveTheirRoom) {
  const auto worker = Start();
  const std::uint64_t noop = Need(worker->Register(NoopImage(), Long()));
  Arguments arguments;
  for (std::size_t i = 0; i < Arguments::kMaxScalars; ++i) arguments.AddScalar(i);
  const std::size_t ring = PeerOf(*worker).region().lane(LaneName::kTasks).ring.size();
  std::uint64_t posted = 0;
  // More than the scalars alone would fill, and one more.
  for (; posted * Arguments::kMaxScalars * sizeof(std::uint64_t) <= ring; ++posted) {
    ASSERT_TRUE(IsOk(worker->Post(posted, noop, arguments, Deadline::Never()))) << posted;
    worker->Wake();
    ASSERT_TRUE(Soon([&] { return worker->TakeDone() == 1; })) << posted;
  }
  EXPECT_TRUE(IsOk(worker->Post(posted, noop, arguments, Deadline::Never())));
  EXPECT_EQ(Collect(*worker, 1).size(), 1U);
}

// Only a control call can end the task.
TEST_P(WorkerTest, T4_ControlWorksWhileATaskRuns) {
  const auto worker = Start();
  const DeviceAddress flag = PostSpin(*worker, 1, Deadline::Never());
  const std::uint64_t noop = Need(worker->Register(NoopImage(), Long()));
  EXPECT_TRUE(IsOk(worker->Unregister(noop, Long())));
  const DeviceAddress block = Need(worker->Allocate(1_MiB, Long()));
  EXPECT_TRUE(IsOk(worker->Free(block, Long())));
  EXPECT_TRUE(IsOk(worker->Stats(Long())));
  std::vector<TaskResult> results;
  worker->Collect(results);
  EXPECT_TRUE(results.empty());
  ASSERT_TRUE(IsOk(SetFlag(*worker, flag)));
  results = Collect(*worker, 1);
  ASSERT_EQ(results.size(), 1U);
  EXPECT_TRUE(IsOk(results[0].status));
}

TEST_P(WorkerTest, ControlCallsOfManyThreadsTakeTurns) {
  const auto worker = Start();
  std::vector<std::thread> threads;
  std::atomic<int> failed{0};
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::vector<std::uint32_t> values(3000);
      for (unsigned i = 0; i < 25; ++i) {
        std::iota(values.begin(), values.end(), t * 1000 + i);
        const std::vector<std::uint32_t> sent = values;
        const auto block = worker->Allocate(12000_B, Long());
        if (!block.ok() || !worker->CopyTo(*block, values.data(), 12000_B, Long()).ok()) ++failed;
        values.assign(values.size(), 0);
        if (!worker->CopyFrom(values.data(), *block, 12000_B, Long()).ok()) ++failed;
        if (values != sent) ++failed;
        if (!worker->Free(*block, Long()).ok()) ++failed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed.load(), 0);
}

TEST_P(WorkerTest, T4_T5_AFailedCallSaysSoAndTheNextOneWorks) {
  const auto worker = Start();
  EXPECT_EQ(worker->Allocate(512_TiB, Long()).status().code(), StatusCode::kResourceExhausted);
  const Status freed = worker->Free(DeviceAddress(12345), Long());
  EXPECT_EQ(freed.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(freed.message().find("0x3039"), std::string_view::npos) << freed.ToString();
  std::uint64_t value = 1;
  EXPECT_FALSE(worker->CopyTo(DeviceAddress(12345), &value, 8_B, Long()).ok());
  EXPECT_FALSE(worker->CopyFrom(&value, DeviceAddress(12345), 8_B, Long()).ok());
  EXPECT_EQ(worker->Unregister(99, Long()).code(), StatusCode::kNotFound);
  EXPECT_EQ(Run(*worker, 99, {}).code(), StatusCode::kNotFound);
  EXPECT_TRUE(IsOk(worker->Health()));
  EXPECT_TRUE(Adds(*worker));
}

TEST_P(WorkerTest, T10_ATaskThatFailsHarmsNoOther) {
  const auto worker = Start();
  const std::uint64_t fail = Need(worker->Register(FailImage(), Long()));
  std::vector<std::uint32_t> untouched(4, 9);
  Arguments arguments;
  arguments.Add(Tag::kOut, On(untouched));
  const Status status = Run(*worker, fail, arguments);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("told to fail"), std::string_view::npos) << status.ToString();
  EXPECT_EQ(untouched, std::vector<std::uint32_t>(4, 9));
  EXPECT_TRUE(Adds(*worker));
}

TEST_P(WorkerTest, ACopyMayBeLargerThanAllThatIsShared) {
  const auto worker = Start(1_MiB);
  constexpr Bytes kSize = 300_MiB;
  std::vector<std::uint32_t> sent(kSize.count() / 4);
  for (std::size_t i = 0; i < sent.size(); ++i)
    sent[i] = static_cast<std::uint32_t>(i * 2654435761);
  std::vector<std::uint32_t> got(sent.size());
  const DeviceAddress block = Need(worker->Allocate(kSize, Long()));
  ASSERT_TRUE(IsOk(worker->CopyTo(block, sent.data(), kSize, Long())));
  ASSERT_TRUE(IsOk(worker->CopyFrom(got.data(), block, kSize, Long())));
  EXPECT_TRUE(got == sent);
}

TEST_P(WorkerTest, AnImageMayBeLargerThanTheWindow) {
  const auto worker = Start(1_MiB);
  std::vector<std::byte> code = OrchestrationCode("Fill");
  code.resize(code.size() + (10 << 20), std::byte{7});
  const std::uint64_t fill =
      Need(worker->Register(BuildImage(code, {hal::kernels::kFill}), Long()));
  std::vector<std::uint32_t> out(16);
  Arguments arguments;
  arguments.Add(Tag::kOut, On(out)).AddScalar(std::uint32_t{5});
  EXPECT_TRUE(IsOk(Run(*worker, fill, arguments)));
  EXPECT_EQ(out, std::vector<std::uint32_t>(16, 5));
}

TEST_P(WorkerTest, EmptyTensorsAndCopiesAreFine) {
  const auto worker = Start();
  const std::uint64_t noop = Need(worker->Register(NoopImage(), Long()));
  const std::vector<float> none;
  Arguments arguments;
  arguments.Add(Tag::kIn, On(none)).Add(Tag::kOut, On(none));
  EXPECT_TRUE(IsOk(Run(*worker, noop, arguments)));
  const DeviceAddress block = Need(worker->Allocate(16_B, Long()));
  EXPECT_TRUE(IsOk(worker->CopyTo(block, nullptr, 0_B, Long())));
  EXPECT_TRUE(IsOk(worker->CopyFrom(nullptr, block, 0_B, Long())));
}

TEST_P(WorkerTest, ATaskThatIsTooSlowLosesTheWorkerAndARestartedOneIsEmpty) {
  const auto worker = Start();
  const std::uint64_t noop = Need(worker->Register(NoopImage(), Long()));
  const DeviceAddress flag = PostSpin(*worker, 1, Deadline::After(milliseconds(50)));
  ASSERT_TRUE(IsOk(worker->Post(2, noop, {}, Deadline::Never())));
  worker->Wake();
  EXPECT_FALSE(worker->NextDeadline().never());
  const std::vector<TaskResult> results = Collect(*worker, 2);
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].task, 1U);
  EXPECT_EQ(results[0].status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(results[1].task, 2U);
  EXPECT_EQ(results[1].status.code(), StatusCode::kUnavailable) << results[1].status.ToString();
  EXPECT_NE(results[1].status.message().find("deadline"), std::string_view::npos)
      << results[1].status.ToString();

  EXPECT_EQ(worker->Health().code(), StatusCode::kUnavailable);
  EXPECT_EQ(worker->Post(3, noop, {}, Deadline::Never()).code(), StatusCode::kUnavailable);
  EXPECT_EQ(worker->Allocate(1_MiB, Long()).status().code(), StatusCode::kUnavailable);
  EXPECT_TRUE(worker->NextDeadline().never());

  ASSERT_TRUE(IsOk(worker->Restart(Long())));
  EXPECT_TRUE(IsOk(worker->Health()));
  EXPECT_EQ(Need(worker->Stats(Long())).callables, 0U);
  EXPECT_EQ(Run(*worker, noop, {}).code(), StatusCode::kNotFound);
  EXPECT_EQ(worker->Free(flag, Long()).code(), StatusCode::kInvalidArgument);
  // The device of a thread still works on it.
  if (thread()) {
    EXPECT_TRUE(IsOk(SetFlag(*worker, flag)));
  }
  EXPECT_TRUE(Adds(*worker));
}

TEST_P(WorkerTest, OnlyALostWorkerIsRestarted) {
  const auto worker = Start();
  EXPECT_EQ(worker->Restart(Long()).code(), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Adds(*worker));
}

TEST_P(WorkerTest, StopLetsTheTaskEndThatRuns) {
  const auto worker = Start();
  const std::uint64_t noop = Need(worker->Register(NoopImage(), Long()));
  const std::uint64_t spin = Need(worker->Register(SpinImage(), Long()));
  const std::vector<std::uint64_t> flag(1);
  Arguments arguments;
  arguments.Add(Tag::kInOut, On(flag, DataType::kUInt64)).AddScalar(std::uint64_t{1'000'000});
  ASSERT_TRUE(IsOk(worker->Post(1, spin, arguments, Deadline::Never())));
  ASSERT_TRUE(IsOk(worker->Post(2, noop, {}, Deadline::Never())));
  worker->Wake();
  // It has begun when its tensor was copied.
  ASSERT_TRUE(Soon([&] { return Need(worker->Stats(Long())).bytes_to_device == 8; }));
  worker->Stop(Long());
  const std::vector<TaskResult> results = Collect(*worker, 2);
  ASSERT_EQ(results.size(), 2U);
  EXPECT_TRUE(IsOk(results[0].status));
  EXPECT_EQ(results[1].status.code(), StatusCode::kUnavailable);
  EXPECT_NE(worker->Health().message().find("stopped"), std::string_view::npos);
  worker->Stop(Long());  // again is fine
}

TEST_P(WorkerTest, StopDoesNotWaitBeyondItsDeadline) {
  const auto worker = Start();
  const DeviceAddress flag = PostSpin(*worker, 1, Deadline::Never());
  worker->Stop(Deadline::After(milliseconds(50)));
  EXPECT_EQ(Collect(*worker, 1).at(0).status.code(), StatusCode::kUnavailable);
  // The device of a thread still works on it.
  if (thread()) {
    EXPECT_TRUE(IsOk(SetFlag(*Start(), flag)));
  }
}

TEST_P(WorkerTest, ADeviceThatIsNotThereIsNamed) {
  WorkerStart start = Plan();
  start.options.device = "sim:123";
  const auto worker = TryStart(start);
  ASSERT_FALSE(worker.ok());
  EXPECT_EQ(worker.status().code(), StatusCode::kNotFound) << worker.status().ToString();
  EXPECT_NE(worker.status().message().find("sim:123"), std::string_view::npos);
}

// A kernel that faults takes the device with it: the worker says so, and a new one has a new
// device.
TEST_P(WorkerTest, ALostDeviceLosesTheWorkerAndARestartOpensItAnew) {
  const auto worker = Start();
  const std::uint64_t fill = Need(worker->Register(FillImage(), Long()));
  const std::array<std::uint32_t, 1> shape{16};
  Arguments arguments;
  arguments.Add(Tag::kOut, Tensor::Resident(DeviceAddress(0x1000), DataType::kUInt32, shape))
      .AddScalar(std::uint32_t{1});
  const Status status = Run(*worker, fill, arguments);
  ASSERT_EQ(status.code(), StatusCode::kDeviceLost) << status.ToString();
  EXPECT_TRUE(Soon([&] { return !worker->Health().ok(); }));
  EXPECT_EQ(worker->Health().code(), StatusCode::kUnavailable);
  EXPECT_NE(worker->Health().message().find("gave up"), std::string_view::npos);
  ASSERT_TRUE(IsOk(worker->Restart(Long())));
  EXPECT_TRUE(Adds(*worker));
}

TEST_P(WorkerTest, AForkedChildHasNoWorker) {
  auto worker = Start();
  const std::uint64_t noop = Need(worker->Register(NoopImage(), Long()));
  const int status = InForkedChild([&] {
    constexpr auto kRefused = StatusCode::kFailedPrecondition;
    EXPECT_EQ(worker->Health().code(), kRefused);
    EXPECT_EQ(worker->Post(1, noop, {}, Deadline::Never()).code(), kRefused);
    EXPECT_EQ(worker->Allocate(1_MiB, Deadline::Never()).status().code(), kRefused);
    EXPECT_EQ(worker->Restart(Deadline::Never()).code(), kRefused);
    std::vector<TaskResult> results;
    worker->Collect(results);
    EXPECT_TRUE(results.empty());
    worker->Stop(Deadline::Never());
    worker.reset();
  });
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(Adds(*worker));
}

}  // namespace
}  // namespace keel::task
