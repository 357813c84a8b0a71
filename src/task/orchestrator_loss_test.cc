// Workers that crash and hang, for real.
#include <csignal>
#include <optional>
#include <random>

#include "task/blocked_memory_test.h"
#include "task/orchestrator_test.h"
#include "task/processes_test.h"

namespace keel::task {
namespace {

class OrchestratorLossTest : public OrchestratorTest {
 protected:
  void ExpectAdds(WorkerId worker) {
    const std::vector<float> a(100, 1.5F);
    const std::vector<float> b(100, 2.0F);
    std::vector<float> c(100);
    const Callable add = Registered(AddImage());
    EXPECT_TRUE(IsOk(
        Submit(add, Arguments().Add(Tag::kIn, On(a)).Add(Tag::kIn, On(b)).Add(Tag::kOut, On(c)),
               {.worker = worker, .timeout = {}})
            .Wait(Long())));
    EXPECT_EQ(c, std::vector<float>(100, 3.5F));
    EXPECT_TRUE(IsOk(orchestrator_->Unregister(add)));
  }
};

INSTANTIATE_TEST_SUITE_P(, OrchestratorLossTest, ::testing::ValuesIn(Transports()), TransportName);

TEST_P(OrchestratorLossTest, ACrashEndsOneTaskAndTheWorkerComesBack) {
  if (GetParam() == Transport::kThread) GTEST_SKIP() << "a crash takes the whole process with it";
  Start(2);
  const Callable crash = Registered(CrashImage());
  const Callable noop = Registered(NoopImage());
  const DeviceAddress lost = Upload(0, std::vector<float>(64));
  const DeviceAddress kept = Upload(1, std::vector<float>(64, 4.0F));
  const TaskHandle task = Submit(crash, {}, {.worker = 0, .timeout = {}});
  const TaskHandle behind = Submit(noop, {}, {.worker = 0, .timeout = {}});
  EXPECT_EQ(task.Wait(Long()).code(), StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(task.error()), HasSubstr("SIGSEGV"));
  EXPECT_TRUE(IsOk(behind.Wait(Long()))) << "it had not begun";
  // Before anything is allocated there, perhaps at the same address.
  const Status use = orchestrator_
                         ->Submit(noop, Arguments().Add(Tag::kIn, At<float>(lost, 64)),
                                  {.worker = 0, .timeout = {}})
                         .status();
  EXPECT_EQ(use.code(), StatusCode::kUnavailable) << MessageOf(use);
  ExpectAdds(0);
  EXPECT_EQ(Download<float>(1, kept, 64), std::vector<float>(64, 4.0F));
  const std::vector<WorkerReport> reports = orchestrator_->Report();
  EXPECT_EQ(reports[0].restarts, 1U);
  EXPECT_TRUE(reports[0].up);
  EXPECT_THAT(MessageOf(reports[0].lost), HasSubstr("SIGSEGV"));
  EXPECT_EQ(reports[1].restarts, 0U);
}

// A fault is the end of all that was on the device, whoever's it was. Two threads have one device,
// which is opened anew when both have let go of it; two processes have one each.
TEST_P(OrchestratorLossTest, AFaultTakesTheDeviceAndItComesBackWithAllItsWorkers) {
  OrchestratorOptions options = Options(2);
  const bool shared = GetParam() == Transport::kThread;
  if (shared) options.workers.assign(2, {.device = "sim:0", .memory = nullptr});
  Start(std::move(options));
  const Callable fill = Registered(FillImage());
  const DeviceAddress kept = Upload(1, std::vector<float>(64, 4.0F));
  constexpr DeviceAddress kNowhere(0x1000);
  ASSERT_TRUE(IsOk(orchestrator_->RegisterMemory(0, kNowhere, 64_B)));
  const TaskHandle task =
      Submit(fill, Arguments().Add(Tag::kOut, At<std::uint32_t>(kNowhere, 16)).AddScalar(7U),
             {.worker = 0, .timeout = {}});
  EXPECT_EQ(task.Wait(Long()).code(), StatusCode::kDeviceLost) << MessageOf(task.error());
  ASSERT_TRUE(Soon([&] {
    const std::vector<WorkerReport> now = orchestrator_->Report();
    return now[0].up && now[0].restarts == 1 && now[1].up && now[1].restarts == (shared ? 1 : 0);
  }));
  ExpectAdds(0);
  ExpectAdds(1);
  if (shared) {
    std::vector<float> lost(64);
    const Status copied = orchestrator_->CopyFrom(1, lost.data(), kept, Bytes(64 * sizeof(float)));
    EXPECT_EQ(copied.code(), StatusCode::kUnavailable) << MessageOf(copied);
  } else {
    EXPECT_EQ(Download<float>(1, kept, 64), std::vector<float>(64, 4.0F));
  }
  orchestrator_.reset();
  if (shared) {
    // Nobody joins the threads of a device of the process's otherwise.
    EXPECT_TRUE(IsOk(memory::ProcessMemory::Global().Forget({.driver = "sim", .ordinal = 0})));
  }
}

TEST_P(OrchestratorLossTest, AScopeDoesNotFreeWhatHasTheAddressOfALostBlock) {
  if (GetParam() == Transport::kThread) GTEST_SKIP() << "a crash takes the whole process with it";
  std::optional<ScopedSteadyAddresses> steady;
  if (GetParam() == Transport::kProcess) steady.emplace();
  Start(1);
  const Callable crash = Registered(CrashImage());
  // The first worker of all may have other addresses than those that are started again.
  EXPECT_EQ(Submit(crash, {}).Wait(Long()).code(), StatusCode::kUnavailable);
  Orchestrator::Scope scope(*orchestrator_);
  const DeviceAddress lost = Need(scope.Malloc(0, 1_KiB));
  EXPECT_EQ(Submit(crash, {}).Wait(Long()).code(), StatusCode::kUnavailable);
  const DeviceAddress other = Need(orchestrator_->Malloc(0, 1_KiB));
  if (AddressesAreSteady()) {
    ASSERT_EQ(lost, other) << "the premise";
  }
  EXPECT_EQ(scope.Close().code(), StatusCode::kUnavailable);
  EXPECT_TRUE(IsOk(orchestrator_->Free(0, other)));
  if (lost != other) GTEST_SKIP() << kAddressesVary;
}

TEST_P(OrchestratorLossTest, ATaskThatHangsEndsAtItsTimeAndTheWorkerComesBack) {
  Start(2);
  const Callable spin = Registered(SpinImage());
  std::vector<std::uint64_t> gate(1);
  const TaskHandle task =
      Submit(spin, Arguments().Add(Tag::kInOut, On(gate)).AddScalar(std::uint64_t{1'000'000}),
             {.worker = 0, .timeout = milliseconds(50)});
  ExpectAdds(1);
  EXPECT_EQ(task.Wait(Long()).code(), StatusCode::kDeadlineExceeded);
  ExpectAdds(0);
  EXPECT_EQ(orchestrator_->Report()[0].restarts, 1U);
  EXPECT_EQ(orchestrator_->Report()[1].restarts, 0U);
}

// It is the only task that the worker has, and would be the one that it was running.
TEST_P(OrchestratorLossTest, ATaskWhoseTensorsWereOnTheirWayRunsAgain) {
  if (GetParam() != Transport::kProcess) GTEST_SKIP() << "needs a process that can be killed";
  Start(1);
  const Callable add = Registered(AddImage());
  BlockedMemory blocked((1_MiB).count());
  const auto zeros = blocked.As<float>();
  const std::vector<float> twos(zeros.size(), 2.0F);
  std::vector<float> sums(zeros.size());
  const TaskHandle task = Submit(
      add, Arguments().Add(Tag::kIn, On(zeros)).Add(Tag::kIn, On(twos)).Add(Tag::kOut, On(sums)));
  ASSERT_TRUE(blocked.AwaitTouched());
  const std::vector<pid_t> workers = ChildrenOf(getpid());
  ASSERT_EQ(workers.size(), 1U);
  const UniqueFd worker = OpenProcess(workers[0]);
  ASSERT_EQ(kill(workers[0], SIGKILL), 0);
  ASSERT_TRUE(EndsWithin(worker, 30'000));
  blocked.Release();
  EXPECT_TRUE(IsOk(task.Wait(Long())));
  EXPECT_EQ(sums, twos);
  EXPECT_EQ(orchestrator_->Report()[0].restarts, 1U);
}

// Crashes all over a program: each ends itself, what depends on it, and what had its memory there.
TEST_P(OrchestratorLossTest, ManyCrashesEndTheirOwnTasksOnly) {
  if (GetParam() == Transport::kThread) GTEST_SKIP() << "a crash takes the whole process with it";
  Start(3);
  const Callable crash = Registered(CrashImage());
  const Callable fill = Registered(FillImage());
  std::mt19937 random(7);
  std::vector<std::vector<std::uint32_t>> outs(120, std::vector<std::uint32_t>(8));
  std::vector<TaskHandle> fills;
  std::vector<TaskHandle> crashes;
  for (std::uint32_t i = 0; i < outs.size(); ++i) {
    SubmitOptions options;
    if (random() % 2 == 0) options.worker = static_cast<WorkerId>(random() % 3);
    fills.push_back(Submit(fill, Arguments().Add(Tag::kOut, On(outs[i])).AddScalar(i), options));
    if (i % 15 == 7) crashes.push_back(Submit(crash, {}, options));
  }
  EXPECT_TRUE(IsOk(orchestrator_->WaitAll(Long())));
  for (std::uint32_t i = 0; i < outs.size(); ++i) {
    EXPECT_TRUE(IsOk(fills[i].error())) << i;
    EXPECT_EQ(outs[i], std::vector<std::uint32_t>(8, i));
  }
  for (const TaskHandle& task : crashes) {
    EXPECT_EQ(task.error().code(), StatusCode::kUnavailable);
  }
  std::uint64_t restarts = 0;
  EXPECT_TRUE(Soon([&] {
    restarts = 0;
    bool up = true;
    for (const WorkerReport& report : orchestrator_->Report()) {
      restarts += report.restarts;
      up &= report.up;
    }
    return up;
  }));
  EXPECT_EQ(restarts, crashes.size());
}

}  // namespace
}  // namespace keel::task
