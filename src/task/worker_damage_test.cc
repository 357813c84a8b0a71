// Memory between an orchestrator and its worker that somebody writes over: no hang, no crash, no
// wrong result; an error that says so, and a worker that can be started again.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <deque>
#include <random>
#include <thread>

#include "base/soon_test.h"
#include "task/answers.h"
#include "task/damage_test.h"
#include "task/orchestrator_core.h"
#include "task/processes_test.h"
#include "task/serve.h"
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
        Damage(Victim(region, random), static_cast<std::byte>(random()));
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
  std::unique_ptr<Worker> worker;
  int lost = 0;
  std::size_t short_ways = 0;
  // Some damage closes the short ways, and nobody is lost for it: no worker is here for long.
  constexpr int kRoundsOfOne = 8;
  for (int round = 0; round < rounds || (short_ways == 0 && round < 10 * rounds); ++round) {
    SCOPED_TRACE(round);
    if (round % kRoundsOfOne == 0) worker = Start();
    Region& region = PeerOf(*worker).region();
    std::deque<bool> failing;  // of those posted, in that order
    const auto work = [&]() -> Status {
      const Deadline deadline = Deadline::After(milliseconds(300));
      KEEL_ASSIGN(const std::uint64_t noop, worker->Register(NoopImage(), deadline));
      KEEL_ASSIGN(const std::uint64_t fail, worker->Register(FailImage(), deadline));
      for (int i = 0; i < 6; ++i) {
        Damage(Victim(region, random), static_cast<std::byte>(random()));
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

// What answers every task at once, and says that it has read none; or none of their bytes. To
// requests it says that all is well.
class UnreadPeer final : public Peer {
 public:
  UnreadPeer(std::shared_ptr<Doorbell> doorbell, bool counts_messages)
      : Peer(killed_),
        doorbell_(std::move(doorbell)),
        counts_messages_(counts_messages),
        thread_([this] { Main(); }) {}
  ~UnreadPeer() override {
    Kill();
    thread_.join();
  }
  Region& region() override { return *region_; }
  DataArea* data() override { return nullptr; }
  std::string name() const override { return "what reads nothing"; }
  Status Ended() const override { return killed_ ? Unavailable("was killed") : OkStatus(); }
  void Kill() override { killed_ = true; }
  bool WaitEnded(Deadline /*deadline*/) override { return killed_; }
  int process() const override { return 0; }

 private:
  void Main() {
    LaneReader requests(region_->lane(LaneName::kControl));
    LaneWriter replies(region_->lane(LaneName::kControlReplies));
    AnswerWriter answers(*region_);
    LaneState& tasks = *region_->lane(LaneName::kTasks).state;
    EXPECT_TRUE(
        IsOk(replies.Write(Encode(Reply{.number = 0, .value = kProtocolVersion, .device = "x"}))));
    std::vector<std::byte> message;
    for (; !killed_; std::this_thread::yield()) {
      if (Need(requests.Read(message))) {
        const Request request = Need(DecodeRequest(message));
        if (request.kind == RequestKind::kStop) return;
        std::uint64_t number = request.number;
        EXPECT_TRUE(region_->header().ticket.compare_exchange_strong(number, number | kBegun));
        EXPECT_TRUE(IsOk(replies.Write(Encode(Reply{.number = request.number, .value = 1}))));
      }
      const std::uint32_t written = tasks.written.load(std::memory_order_acquire);
      if (counts_messages_) tasks.read.store(written);
      if (answers.next() > written) continue;
      while (answers.next() <= written) EXPECT_TRUE(IsOk(answers.Answer(OkStatus())));
      doorbell_->Ring();
    }
  }

  const std::shared_ptr<Doorbell> doorbell_;
  const bool counts_messages_;
  const std::unique_ptr<Region> region_ = Need(Region::CreatePrivate());
  std::atomic<bool> killed_{false};
  std::thread thread_;
};

StartPeer Unread(const std::shared_ptr<Doorbell>& doorbell, bool counts_messages) {
  return [doorbell, counts_messages]() -> Result<std::unique_ptr<Peer>> {
    return std::unique_ptr<Peer>(std::make_unique<UnreadPeer>(doorbell, counts_messages));
  };
}

// In the end there is no room for the next one, and nothing that would make any.
TEST_F(WorkersTest, AWorkerThatAnswersWhatItHasNotReadIsLost) {
  for (const bool counts_messages : {false, true}) {
    SCOPED_TRACE(counts_messages);
    const auto worker =
        Need(LaneWorker::Create("x", Plan(), Unread(doorbell_, counts_messages), Long()));
    Arguments arguments;
    if (counts_messages) {
      for (std::size_t i = 0; i < Arguments::kMaxScalars; ++i) arguments.AddScalar(i);
    }
    Status status;
    std::uint64_t posted = 0;
    for (; posted < 5000 && (status = worker->Post(posted, 1, arguments, Deadline::Never())).ok();
         ++posted) {
      ASSERT_EQ(Collect(*worker, 1).size(), 1U);
    }
    EXPECT_GE(posted, Worker::kCapacity);
    EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status.ToString();
    EXPECT_NE(status.message().find("answered tasks that it has not read"), std::string_view::npos)
        << status.ToString();
    EXPECT_EQ(worker->Health().message(), status.message());
  }
}

// And what it was not given runs elsewhere, or when it was started again.
TEST_F(WorkersTest, TasksBehindAWorkerThatReadsNothingStillEnd) {
  OrchestratorOptions options;
  options.workers.resize(1);
  const auto core = Need(
      OrchestratorCore::Create(std::move(options), [](const WorkerStart& start, Deadline deadline) {
        return LaneWorker::Create("x", start, Unread(start.doorbell, false), deadline);
      }));
  const Callable noop = Need(core->Register(NoopImage()));
  for (std::size_t i = 0; i < kLaneSlots; ++i) {
    ASSERT_TRUE(IsOk(Need(core->Submit(noop, {}, {})).Wait(Long())));
  }
  const TaskHandle last = Need(core->Submit(noop, {}, {.worker = {}, .timeout = milliseconds(50)}));
  const Status status = last.Wait(Deadline::After(std::chrono::seconds(20)));
  EXPECT_TRUE(last.done()) << status.ToString();
  const WorkerReport report = core->Report().at(0);
  EXPECT_EQ(report.restarts, 1U);
  EXPECT_NE(report.lost.message().find("answered tasks that it has not read"),
            std::string_view::npos)
      << report.lost.ToString();
  core->Stop();
}

}  // namespace
}  // namespace keel::task
