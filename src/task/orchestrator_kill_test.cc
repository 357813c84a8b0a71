// Processes that are killed at random instants, workers and orchestrators: no hang, no wrong
// result, no orphan, nothing left.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <thread>

#include "task/damage_test.h"
#include "task/orchestrator_test.h"
#include "task/processes_test.h"

namespace keel::task {
namespace {

constexpr std::uint32_t kFloats = 64;
constexpr std::uint32_t kManyFloats = 100'000;

class KillTest : public ::testing::Test {
 protected:
  static constexpr WorkerId kWorkers = 3;
  static constexpr const char* kMark = "KEEL_TEST_MARK";

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

  void Start(std::chrono::nanoseconds control_timeout = seconds(60)) {
    impatient_ = control_timeout < seconds(60);
    OrchestratorOptions options;
    options.control_timeout = control_timeout;
    options.transport = Transport::kProcess;
    options.worker_program = KEEL_WORKER_PROGRAM;
    options.workers.assign(kWorkers, {.device = "sim:0", .memory = {}});
    orchestrator_ = Need(Orchestrator::Create(std::move(options)));
    fill_ = Need(orchestrator_->Register(FillImage()));
    add_ = Need(orchestrator_->Register(AddImage()));
  }

  // What a call may end with.
  bool MayBe(const Status& status) const {
    return status.ok() || status.code() == StatusCode::kUnavailable ||
           status.code() == StatusCode::kAborted ||
           (impatient_ && status.code() == StatusCode::kDeadlineExceeded);
  }
  // Of the workers that there are, each mapped once more.
  static std::vector<std::unique_ptr<Region>> Regions() {
    std::vector<std::unique_ptr<Region>> regions;
    for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      const std::string target = std::filesystem::read_symlink(file.path(), gone);
      if (gone || !target.starts_with("/memfd:keel-worker")) continue;
      UniqueFd again(fcntl(std::stoi(file.path().filename()), F_DUPFD_CLOEXEC, 3));
      if (!again.valid()) continue;
      // It may be something else by now.
      if (auto region = Region::Open(std::move(again)); region.ok()) {
        regions.push_back(*std::move(region));
      }
    }
    return regions;
  }

  // A chain of three tasks over tensors on the host, anywhere: what is right, or an error of the
  // task that failed first and of those behind it. `right` counts.
  Status RunChain(std::mt19937& random, std::atomic<int>& right) {
    const auto value = static_cast<float>(random() % 1000);
    // Some are so large that a thread copies them.
    const std::uint32_t count = random() % 4 == 0 ? kManyFloats : kFloats;
    std::vector<float> a(count);
    std::vector<float> b(count);
    std::vector<float> c(count);
    const std::array<std::uint32_t, 1> shape{count};
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
      EXPECT_EQ(*made[i], std::vector<float>(count, value * static_cast<float>(i + 1)));
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

  // A group on two or three workers, named or not, of a callable that is registered for it and is
  // unregistered while it runs: all of its members are right, or it ends with an error.
  Status RunGroup(std::mt19937& random, std::atomic<int>& right) {
    KEEL_ASSIGN(const Callable fill, orchestrator_->Register(FillImage()));
    const std::size_t count = 2 + random() % (kWorkers - 1);
    const std::size_t first = random() % kWorkers;
    const auto value = static_cast<std::uint32_t>(random() % 1000);
    std::vector<std::vector<std::uint32_t>> outs(count, std::vector<std::uint32_t>(kFloats));
    std::vector<Arguments> members;
    std::vector<WorkerId> workers;
    for (std::size_t i = 0; i < count; ++i) {
      members.push_back(Arguments().Add(Tag::kOut, On(outs[i])).AddScalar(value));
      workers.push_back(static_cast<WorkerId>((first + i) % kWorkers));
    }
    if (random() % 2 == 0) workers.clear();
    const Result<TaskHandle> group =
        orchestrator_->SubmitGroup(fill, members, workers, {.worker = {}, .timeout = seconds(60)});
    const Status unregistered = orchestrator_->Unregister(fill);
    EXPECT_TRUE(MayBe(unregistered)) << unregistered.ToString();
    KEEL_TRY(group.status());
    KEEL_TRY(group->Wait(Long()));
    for (const std::vector<std::uint32_t>& out : outs) {
      EXPECT_EQ(out, std::vector<std::uint32_t>(kFloats, value));
    }
    ++right;
    return OkStatus();
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
  bool impatient_ = false;
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
  std::atomic<int> groups{0};  // that went well
  std::atomic<int> wrong{0};
  std::vector<std::thread> users;
  for (unsigned user = 0; user < 2; ++user) {
    users.emplace_back([&, user] {
      std::mt19937 random(seed + 100 * (user + 1));
      while (!stop && !HasFailure()) {
        const unsigned kind = random() % 4;
        const Status status = kind == 0   ? UseMemory(random, right)
                              : kind == 1 ? RunGroup(random, groups)
                                          : RunChain(random, right);
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
  EXPECT_GT(groups, kills / 4);
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

// The memory between it and its workers is written over, a byte at a time.
TEST_F(KillTest, MailboxesDamagedAtRandomInstants) {
  const int bytes = Soaking() ? 2000 : 60;
  const unsigned seed = 7;
  SCOPED_TRACE("seed " + std::to_string(seed));
  // A control call whose message is gone is not answered.
  Start(milliseconds(500));
  std::atomic<bool> stop{false};
  std::atomic<int> right{0};
  std::vector<std::thread> users;
  for (unsigned user = 0; user < 2; ++user) {
    users.emplace_back([&, user] {
      std::mt19937 random(seed + 100 * (user + 1));
      while (!stop && !HasFailure()) {
        const Status status =
            random() % 3 == 0 ? UseMemory(random, right) : RunChain(random, right);
        EXPECT_TRUE(MayBe(status)) << status.ToString();
      }
    });
  }
  std::mt19937 random(seed);
  for (int written = 0; written < bytes && !HasFailure();) {
    // Who is lost three times right after its start is given up.
    const std::vector<WorkerReport> before = orchestrator_->Report();
    EXPECT_TRUE(Soon([&] {
      std::this_thread::sleep_for(milliseconds(1));
      return AllHaveWorked(before);
    })) << "after "
        << written;
    std::this_thread::sleep_for(microseconds(random() % 3000));
    const std::vector<std::unique_ptr<Region>> regions = Regions();
    if (regions.empty()) continue;
    Damage(Victim(*regions[random() % regions.size()], random), static_cast<std::byte>(random()));
    ++written;
  }
  stop = true;
  for (std::thread& user : users) user.join();
  EXPECT_TRUE(IsOk(orchestrator_->WaitAll(Long())));
  EXPECT_EQ(orchestrator_->live_tasks(), 0U);
  EXPECT_GT(right, bytes);
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
  EXPECT_GT(restarts, static_cast<std::uint64_t>(bytes / 20)) << "nobody noticed";
  // What was damaged may be noticed by the next only, and then no more.
  for (int i = 0; i < 10; ++i) {
    const Status status = RunChain(random, right);
    EXPECT_TRUE(MayBe(status)) << status.ToString();
  }
  for (WorkerId worker = 0; worker < kWorkers; ++worker) {
    std::vector<std::uint32_t> out(8);
    const Arguments arguments = Arguments().Add(Tag::kOut, On(out)).AddScalar(worker);
    const SubmitOptions there{.worker = worker, .timeout = {}};
    EXPECT_TRUE(Soon([&] {
      const auto task = orchestrator_->Submit(fill_, arguments, there);
      return task.ok() && task->Wait(Long()).ok();
    })) << worker;
    EXPECT_EQ(out, std::vector<std::uint32_t>(8, worker));
  }
}

// A program with an orchestrator of its own and tasks under way, killed at any instant: none of its
// workers goes on, and nothing that they have started.
TEST_F(KillTest, T9_AnOrchestratorKilledAtARandomInstantLeavesNoWorker) {
  const int kills = Soaking() ? 200 : 10;
  std::mt19937 random(9);
  std::vector<std::chrono::nanoseconds> times;
  for (int i = 0; i < kills && !HasFailure(); ++i) {
    SCOPED_TRACE("kill " + std::to_string(i));
    std::string program = KEEL_WORKER_HOLDER;
    std::string worker_program = KEEL_WORKER_PROGRAM;
    std::string doing = "tasks";
    char* const argv[] = {program.data(), worker_program.data(), doing.data(), nullptr};
    // By which its processes are found: who is an orphan has another parent.
    const std::string mark = std::to_string(getpid()) + "." + std::to_string(i);
    pid_t parent = 0;
    {
      const ScopedVariable marked(kMark, mark);
      ASSERT_EQ(posix_spawn(&parent, program.c_str(), nullptr, nullptr, argv, environ), 0);
    }
    if (i % 2 == 0) {
      // Being started, at work, or in between.
      EXPECT_TRUE(Soon([&] { return ChildrenOf(parent).size() == 2; }));
      EXPECT_EQ(ProcessesWith(kMark, mark).size(), 3U);
      std::this_thread::sleep_for(microseconds(random() % 100'000));
    } else {
      // One that is being started has its parent's name for a while.
      if (i % 4 == 1) {
        EXPECT_TRUE(Soon([&] { return ProcessesWith(kMark, mark).size() > 1; }));
      }
      std::this_thread::sleep_for(microseconds(random() % 20'000));
    }
    const auto before = std::chrono::steady_clock::now();
    kill(parent, SIGKILL);
    waitpid(parent, nullptr, 0);
    EXPECT_TRUE(Soon([&] {
      std::this_thread::sleep_for(milliseconds(1));
      return ProcessesWith(kMark, mark).empty();
    }));
    times.emplace_back(std::chrono::steady_clock::now() - before);
    for (const pid_t left : ProcessesWith(kMark, mark)) kill(left, SIGKILL);
  }
  ASSERT_GT(times.size(), 1U);
  EXPECT_LE(LongestButFew(times), kOrphanEnds);
}

}  // namespace
}  // namespace keel::task
