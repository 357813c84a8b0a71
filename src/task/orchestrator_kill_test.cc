// Processes that are killed at random instants, workers and orchestrators: no hang, no wrong
// result, no orphan, nothing left.
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <csignal>
#include <cstdlib>
#include <random>
#include <thread>

#include "task/orchestrator_test.h"
#include "task/processes_test.h"

namespace keel::task {
namespace {

constexpr std::size_t kFloats = 64;

bool MayBe(const Status& status) {
  return status.ok() || status.code() == StatusCode::kUnavailable ||
         status.code() == StatusCode::kAborted;
}

class KillTest : public ::testing::Test {
 protected:
  static constexpr WorkerId kWorkers = 3;

  void SetUp() override {
    SetLogLevel(LogLevel::kOff);
    Start();
    orchestrator_.reset();  // whatever the first one of all opens for good
    descriptors_ = OpenDescriptors();
    mappings_ = SharedMappings();
  }
  void TearDown() override {
    orchestrator_.reset();
    EXPECT_EQ(OpenDescriptors(), descriptors_);
    EXPECT_EQ(SharedMappings(), mappings_);
    EXPECT_FALSE(HasChildren());
    SetLogLevel(LogLevel::kWarn);
  }

  void Start() {
    OrchestratorOptions options;
    options.transport = Transport::kProcess;
    options.worker_program = KEEL_WORKER_PROGRAM;
    options.workers.assign(kWorkers, {.device = "sim:0", .memory = {}});
    orchestrator_ = Need(Orchestrator::Create(std::move(options)));
    fill_ = Need(orchestrator_->Register(FillImage()));
    add_ = Need(orchestrator_->Register(AddImage()));
  }

  // A chain of three tasks over tensors on the host, anywhere: what is right, or an error of the
  // task that failed first and of those behind it. `right` counts.
  Status RunChain(std::mt19937& random, std::atomic<int>& right) {
    const auto value = static_cast<float>(random() % 1000);
    std::vector<float> a(kFloats);
    std::vector<float> b(kFloats);
    std::vector<float> c(kFloats);
    const std::array<std::uint32_t, 1> shape{kFloats};
    const auto options = [&] {
      SubmitOptions chosen;
      if (random() % 2 == 0) chosen.worker = static_cast<WorkerId>(random() % kWorkers);
      return chosen;
    };
    // Only this one may be refused: a worker that was given up.
    std::vector<TaskHandle> tasks;
    std::vector<bool> depends;  // all before it were under way when it was submitted
    const auto submit = [&](Callable callable, const Arguments& arguments) -> Status {
      KEEL_ASSIGN(TaskHandle task, orchestrator_->Submit(callable, arguments, options()));
      depends.push_back(std::ranges::none_of(tasks, &TaskHandle::done));
      tasks.push_back(std::move(task));
      return OkStatus();
    };
    const auto all = [&]() -> Status {
      KEEL_TRY(submit(fill_, Arguments()
                                 .Add(Tag::kOut, Tensor::Host(a.data(), DataType::kUInt32, shape))
                                 .AddScalar(std::bit_cast<std::uint32_t>(value))));
      KEEL_TRY(submit(add_,
                      Arguments().Add(Tag::kIn, On(a)).Add(Tag::kIn, On(a)).Add(Tag::kOut, On(b))));
      return submit(add_,
                    Arguments().Add(Tag::kIn, On(a)).Add(Tag::kIn, On(b)).Add(Tag::kOut, On(c)));
    };
    const Status submitted = all();
    // The tensors stay where they are until the last of them is done.
    Status first;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const Status outcome = tasks[i].Wait(Long());
      EXPECT_TRUE(MayBe(outcome)) << outcome.ToString();
      EXPECT_TRUE(tasks[i].done());
      if (first.ok()) {
        first = outcome;
      } else if (depends[i]) {
        EXPECT_EQ(outcome.code(), StatusCode::kAborted) << outcome.ToString();
      }
    }
    KEEL_TRY(submitted);
    const std::vector<float>* const made[] = {&a, &b, &c};
    for (std::size_t i = 0; i < tasks.size() && tasks[i].error().ok(); ++i) {
      EXPECT_EQ(*made[i], std::vector<float>(kFloats, value * static_cast<float>(i + 1)));
      ++right;
    }
    return first;
  }

  // Memory on a worker, written, worked on there, and read: what is right, or kUnavailable.
  Status UseMemory(std::mt19937& random, std::atomic<int>& right) {
    const auto worker = static_cast<WorkerId>(random() % kWorkers);
    constexpr Bytes kSize(kFloats * sizeof(float));
    // Named by its number in all that follows: after a restart the address may be another user's.
    BlockId id = 0;
    KEEL_ASSIGN(const DeviceAddress block, orchestrator_->Malloc(worker, kSize * 2, &id));
    const std::array<BlockId, 3> ids{id, id, id};
    const auto use = [&]() -> Status {
      const std::vector<float> sent(kFloats, static_cast<float>(random() % 1000));
      std::vector<float> got(kFloats);
      KEEL_TRY(orchestrator_->CopyTo(worker, block, sent.data(), kSize, id));
      const Tensor low = At<float>(block, kFloats);
      const Tensor high = At<float>(block + kSize, kFloats);
      // Named: each process has a space of its own, and they overlap.
      KEEL_ASSIGN(const TaskHandle task,
                  orchestrator_->Submit(
                      add_, Arguments().Add(Tag::kIn, low).Add(Tag::kIn, low).Add(Tag::kOut, high),
                      {.worker = worker, .timeout = {}, .blocks = ids}));
      KEEL_TRY(orchestrator_->CopyFrom(worker, got.data(), block + kSize, kSize, id));
      // That it was copied says that the task is done, and not that it went well.
      KEEL_TRY(task.Wait(Long()));
      EXPECT_EQ(got, std::vector<float>(kFloats, 2 * sent[0]));
      ++right;
      return OkStatus();
    };
    const Status used = use();
    const Status freed = orchestrator_->Free(worker, block, id);
    EXPECT_TRUE(MayBe(freed)) << freed.ToString();
    return used;
  }

  // A block on each worker, and how often that had been started again.
  struct Kept {
    WorkerId worker = 0;
    DeviceAddress block;
    BlockId id = 0;
    std::uint64_t restarts = 0;
  };
  static constexpr Bytes kKept{kFloats * sizeof(float)};
  // Those that can be had: one that was killed may not be known to be.
  std::vector<Kept> Keep(const std::vector<float>& content) {
    std::vector<Kept> kept;
    for (WorkerId worker = 0; worker < kWorkers; ++worker) {
      BlockId id = 0;
      const Result<DeviceAddress> block = orchestrator_->Malloc(worker, kKept, &id);
      if (!block.ok()) continue;
      // Who answers was not killed, and nobody else kills.
      if (orchestrator_->CopyTo(worker, *block, content.data(), kKept, id).ok()) {
        kept.push_back({worker, *block, id, orchestrator_->Report()[worker].restarts});
      }
    }
    return kept;
  }
  // What was kept is there as it was, or was lost with its worker. How many were.
  int Look(const std::vector<Kept>& kept, const std::vector<float>& content) {
    int lost = 0;
    for (const Kept& each : kept) {
      std::vector<float> got(kFloats);
      const Status status =
          orchestrator_->CopyFrom(each.worker, got.data(), each.block, kKept, each.id);
      if (status.ok()) {
        EXPECT_EQ(got, content);
        EXPECT_EQ(orchestrator_->Report()[each.worker].restarts, each.restarts)
            << "memory of a worker that is gone";
      } else {
        EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status.ToString();
        ++lost;
      }
      EXPECT_TRUE(MayBe(orchestrator_->Free(each.worker, each.block, each.id)));
    }
    return lost;
  }

  // Whether all workers are up and have run something since `before`.
  bool AllHaveWorked(const std::vector<WorkerReport>& before) {
    const std::vector<WorkerReport> now = orchestrator_->Report();
    for (std::size_t i = 0; i < now.size(); ++i) {
      if (!now[i].up || now[i].tasks <= before[i].tasks) return false;
    }
    return true;
  }

  std::unique_ptr<Orchestrator> orchestrator_;
  Callable fill_, add_;
  std::size_t descriptors_ = 0;
  std::size_t mappings_ = 0;
};

TEST_F(KillTest, WorkersKilledAtRandomInstants) {
  const int kills = Soaking() ? 1000 : 50;
  const unsigned seed = 5;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Start();
  std::atomic<bool> stop{false};
  std::atomic<int> right{0};
  std::atomic<int> wrong{0};
  std::vector<std::thread> users;
  for (unsigned user = 0; user < 2; ++user) {
    users.emplace_back([&, user] {
      std::mt19937 random(seed + 100 * (user + 1));
      while (!stop && !HasFailure()) {
        const Status status =
            random() % 3 == 0 ? UseMemory(random, right) : RunChain(random, right);
        EXPECT_TRUE(MayBe(status)) << status.ToString();
        if (!status.ok()) ++wrong;
      }
    });
  }
  std::mt19937 random(seed);
  int killed = 0;
  int lost = 0;
  std::vector<float> content(kFloats);
  std::vector<Kept> kept;
  while (killed < kills && !HasFailure()) {
    // Every second one comes when it comes, perhaps to a worker that is being started. Not more of
    // them: who cannot be started three times in a row is given up.
    if (killed % 2 == 0) {
      const std::vector<WorkerReport> before = orchestrator_->Report();
      EXPECT_TRUE(Soon([&] {
        std::this_thread::sleep_for(milliseconds(1));
        return AllHaveWorked(before);
      })) << "after "
          << killed;
      lost += Look(kept, content);
      std::fill(content.begin(), content.end(), static_cast<float>(killed));
      kept = Keep(content);
    }
    std::this_thread::sleep_for(microseconds(random() % 20'000));
    const std::vector<pid_t> workers = ChildrenOf(getpid());
    if (workers.empty()) continue;
    if (kill(workers[random() % workers.size()], SIGKILL) == 0) ++killed;
  }
  stop = true;
  for (std::thread& user : users) user.join();
  EXPECT_TRUE(IsOk(orchestrator_->WaitAll(Long())));
  EXPECT_EQ(orchestrator_->live_tasks(), 0U);
  EXPECT_GT(right, kills);
  EXPECT_GT(wrong, 0);
  EXPECT_GT(lost, kills / 4);
  // The next ones work, everywhere.
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
  EXPECT_GE(restarts, static_cast<std::uint64_t>(kills / 2));
  EXPECT_LE(restarts, static_cast<std::uint64_t>(kills));
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(IsOk(RunChain(random, right)));
}

// A program with an orchestrator of its own and tasks under way, killed at any instant: none of its
// workers goes on.
TEST_F(KillTest, T9_AnOrchestratorKilledAtARandomInstantLeavesNoWorker) {
  const int kills = Soaking() ? 100 : 5;
  std::mt19937 random(9);
  for (int i = 0; i < kills && !HasFailure(); ++i) {
    SCOPED_TRACE("kill " + std::to_string(i));
    std::string program = KEEL_WORKER_HOLDER;
    std::string worker_program = KEEL_WORKER_PROGRAM;
    std::string image = std::string(KEEL_TASK_MODULES) + "/task_test_Noop.so";
    char* const argv[] = {program.data(), worker_program.data(), image.data(), nullptr};
    pid_t parent = 0;
    ASSERT_EQ(posix_spawn(&parent, program.c_str(), nullptr, nullptr, argv, environ), 0);
    std::vector<pid_t> workers;
    EXPECT_TRUE(Soon([&] {
      workers = ChildrenOf(parent);
      return workers.size() == 2;
    }));
    std::vector<UniqueFd> open;
    for (const pid_t worker : workers) open.push_back(OpenProcess(worker));
    // Being started, at work, or in between.
    std::this_thread::sleep_for(microseconds(random() % 100'000));
    kill(parent, SIGKILL);
    waitpid(parent, nullptr, 0);
    for (const UniqueFd& worker : open) {
      ASSERT_TRUE(worker.valid());
      EXPECT_TRUE(EndsWithin(worker, 5000));
    }
    EXPECT_TRUE(ChildrenOf(parent).empty());
  }
}

}  // namespace
}  // namespace keel::task
