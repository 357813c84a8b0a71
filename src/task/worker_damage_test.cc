// Memory between an orchestrator and its worker that somebody writes over: no hang, no crash, no
// wrong result; an error that says so, and a worker that can be started again.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <deque>
#include <random>

#include "base/soon_test.h"
#include "task/damage_test.h"
#include "task/processes_test.h"
#include "task/worker_test.h"

namespace keel::task {
namespace {

class WorkerDamageTest : public WorkersTest, public ::testing::WithParamInterface<Transport> {
 protected:
  void SetUp() override {
    WorkersTest::SetUp();
    Start()->Stop(Long());  // whatever the first one of all opens for good
    EXPECT_TRUE(IsOk(memory::ProcessMemory::Global().Shutdown()));
    descriptors_ = OpenDescriptors();
    mappings_ = SharedMappings();
  }
  // Nothing is left of those that were lost.
  void TearDown() override {
    WorkersTest::TearDown();
    EXPECT_TRUE(Soon([&] { return OpenDescriptors() == descriptors_; })) << OpenDescriptors();
    EXPECT_EQ(SharedMappings(), mappings_);
    EXPECT_FALSE(HasChildren());
  }
  std::unique_ptr<Worker> Start() {
    return Need(GetParam() == Transport::kProcess ? StartProcessWorker(Plan(), Long())
                                                  : StartThreadWorker(Plan(), Long()));
  }
  static int Rounds() {
    const char* const soak = std::getenv("KEEL_SOAK");
    return soak != nullptr && *soak != '\0' ? 2000 : 40;
  }
  // Soon: until then it could begin a task without another look.
  static bool Sleeps(Worker& worker) {
    const FutexWord& bell = PeerOf(worker).region().lane(LaneName::kTasks).state->bell;
    return Soon([&] { return bell.sleepers.load() != 0; });
  }

 private:
  std::size_t descriptors_ = 0;
  std::size_t mappings_ = 0;
};

INSTANTIATE_TEST_SUITE_P(, WorkerDamageTest,
                         ::testing::Values(Transport::kThread, Transport::kProcess),
                         [](const auto& instance) {
                           return instance.param == Transport::kThread ? "Thread" : "Process";
                         });

TEST_P(WorkerDamageTest, DamagedLanesNeverGiveAWrongResult) {
#if defined(__SANITIZE_THREAD__)
  if (GetParam() == Transport::kThread)
    GTEST_SKIP() << "what it does is a race, and is meant to be";
#endif
  const int rounds = Rounds();
  std::mt19937 random(11);
  const auto worker = Start();
  int lost = 0;
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE(round);
    Region& region = PeerOf(*worker).region();
    std::vector<std::vector<std::uint32_t>> outs(6, std::vector<std::uint32_t>(64, ~0U));
    std::vector<TaskResult> results;
    std::uint32_t posted = 0;
    const auto work = [&]() -> Status {
      const Deadline deadline = Deadline::After(milliseconds(300));
      KEEL_ASSIGN(const std::uint64_t fill, worker->Register(FillImage(), deadline));
      for (; posted < outs.size(); ++posted) {
        *Victim(region, random) = static_cast<std::byte>(random());
        Arguments arguments;
        arguments.Add(Tag::kOut, On(outs[posted])).AddScalar(posted);
        KEEL_TRY(worker->Post(posted, fill, arguments, deadline));
        worker->Wake();
      }
      KEEL_ASSIGN(const DeviceAddress block, worker->Allocate(256_B, deadline));
      const std::vector<std::uint32_t> sent(64, 5);
      std::vector<std::uint32_t> got(64);
      KEEL_TRY(worker->CopyTo(block, sent.data(), 256_B, deadline));
      KEEL_TRY(worker->CopyFrom(got.data(), block, 256_B, deadline));
      EXPECT_EQ(got, sent);
      return OkStatus();
    };
    const Status status = work();
    EXPECT_TRUE(status.ok() || status.code() == StatusCode::kUnavailable ||
                status.code() == StatusCode::kDeadlineExceeded)
        << status.ToString();
    results = Collect(*worker, posted);
    ASSERT_EQ(results.size(), posted);
    for (const TaskResult& result : results) {
      if (result.status.ok()) {
        const auto value = static_cast<std::uint32_t>(result.task);
        EXPECT_EQ(outs.at(result.task), std::vector<std::uint32_t>(64, value));
      } else {
        EXPECT_TRUE(result.status.code() == StatusCode::kUnavailable ||
                    result.status.code() == StatusCode::kDeadlineExceeded)
            << result.status.ToString();
      }
    }
    if (worker->Health().ok()) continue;
    ++lost;
    ASSERT_TRUE(IsOk(worker->Restart(Long())));
    EXPECT_TRUE(Adds(*worker));
  }
  EXPECT_GT(lost, 5);
}

// By the short ways as well, of tasks without arguments: what failed is never counted as done.
TEST_P(WorkerDamageTest, DamageMakesNoFailureASuccess) {
#if defined(__SANITIZE_THREAD__)
  if (GetParam() == Transport::kThread)
    GTEST_SKIP() << "what it does is a race, and is meant to be";
#endif
  const int rounds = Rounds();
  std::mt19937 random(12);
  const auto worker = Start();
  int lost = 0;
  std::size_t short_ways = 0;
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE(round);
    Region& region = PeerOf(*worker).region();
    std::deque<bool> failing;  // of those posted, in that order
    const auto work = [&]() -> Status {
      const Deadline deadline = Deadline::After(milliseconds(300));
      KEEL_ASSIGN(const std::uint64_t noop, worker->Register(NoopImage(), deadline));
      KEEL_ASSIGN(const std::uint64_t fail, worker->Register(FailImage(), deadline));
      for (int i = 0; i < 6; ++i) {
        *Victim(region, random) = static_cast<std::byte>(random());
        const bool fails = random() % 8 == 0;
        KEEL_TRY(worker->Post(1, fails ? fail : noop, {}, Deadline::Never()));
        failing.push_back(fails);
        worker->Wake();
      }
      return OkStatus();
    };
    const Status status = work();
    EXPECT_TRUE(status.ok() || status.code() == StatusCode::kUnavailable ||
                status.code() == StatusCode::kDeadlineExceeded)
        << status.ToString();
    const auto ended = [&] {
      const std::size_t done = worker->TakeDone();
      short_ways += done;
      for (std::size_t i = 0; i < done; ++i) {
        EXPECT_FALSE(failing.front());
        failing.pop_front();
      }
      std::vector<TaskResult> results;
      worker->Collect(results);
      for (const TaskResult& result : results) {
        EXPECT_FALSE(result.status.ok() && failing.front());
        failing.pop_front();
      }
      return failing.empty();
    };
    ASSERT_TRUE(Soon(ended));
    if (worker->Health().ok()) continue;
    ++lost;
    ASSERT_TRUE(IsOk(worker->Restart(Long())));
  }
  EXPECT_GT(lost, 5);
  EXPECT_GT(short_ways, 0U);
}

// Before it runs the next task, whose answer would be written over the damage.
TEST_P(WorkerDamageTest, AWorkerThatSleptLooksAtItsAnswers) {
  const auto worker = Start();
  const std::uint64_t noop = Need(worker->Register(NoopImage(), Long()));
  ASSERT_TRUE(Sleeps(*worker));
  std::atomic_ref(PeerOf(*worker).region().header().answered).store(4);
  ASSERT_TRUE(IsOk(worker->Post(1, noop, {}, Deadline::Never())));
  worker->Wake();
  EXPECT_TRUE(Soon([&] { return !worker->Health().ok(); }));
  EXPECT_NE(worker->Health().message().find("damaged"), std::string_view::npos)
      << worker->Health().ToString();
}

TEST_P(WorkerDamageTest, TheErrorSaysSo) {
  const auto worker = Start();
  const std::uint64_t noop = Need(worker->Register(NoopImage(), Long()));
  ASSERT_TRUE(Sleeps(*worker));
  std::atomic_ref(PeerOf(*worker).region().header().answered).store(4);
  ASSERT_TRUE(IsOk(worker->Post(1, noop, {}, Deadline::Never())));
  const std::vector<TaskResult> results = Collect(*worker, 1);
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].status.code(), StatusCode::kUnavailable);
  EXPECT_NE(results[0].status.message().find("damaged"), std::string_view::npos)
      << results[0].status.ToString();
}

// A task that the worker never sees is noticed, also without a deadline.
TEST_F(WorkersTest, ATaskThatIsTakenBackIsNoticed) {
  const auto worker = Need(StartProcessWorker(Plan(), Long()));
  const std::uint64_t noop = Need(worker->Register(NoopImage(), Long()));
  const Lane lane = PeerOf(*worker).region().lane(LaneName::kTasks);
  ASSERT_TRUE(Freeze(*worker));
  ASSERT_TRUE(IsOk(worker->Post(1, noop, {}, Deadline::Never())));
  lane.slots[0].sequence = 0;
  ASSERT_TRUE(Thaw(*worker));
  const std::vector<TaskResult> results = Collect(*worker, 1);
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].status.code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace keel::task
