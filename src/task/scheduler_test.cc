#include "task/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace keel::task {
namespace {

using std::chrono::milliseconds;

class SchedulerTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kCapacity = 4;

  // Tasks are named by their order.
  struct Started {
    TaskKey task;
    std::vector<WorkerId> workers;
  };
  std::vector<Started> StartAll() {
    std::vector<Started> started;
    while (const auto start = scheduler_.Next(now_)) {
      started.push_back({start->task, {start->workers.begin(), start->workers.end()}});
    }
    return started;
  }
  void Add(TaskKey task, std::optional<WorkerId> worker = std::nullopt) {
    EXPECT_TRUE(scheduler_.Add(task, task, worker));
  }
  bool AddGroup(TaskKey task, std::vector<std::optional<WorkerId>> members) {
    return scheduler_.AddGroup(task, task, members);
  }

  Scheduler scheduler_{3, kCapacity};
  Scheduler::Time now_{milliseconds(1000)};
};

using Workers = std::vector<WorkerId>;

TEST_F(SchedulerTest, FreeTasksFillWhatIsIdleInTheOrderOfSubmit) {
  for (TaskKey task = 1; task <= 5; ++task) Add(task);
  const auto started = StartAll();
  ASSERT_EQ(started.size(), 3U);
  for (TaskKey i = 0; i < 3; ++i) {
    EXPECT_EQ(started[i].task, i + 1);
    EXPECT_EQ(started[i].workers, Workers{static_cast<WorkerId>(i)});
  }
  scheduler_.Ended(1, now_);
  const auto next = StartAll();
  ASSERT_EQ(next.size(), 1U);
  EXPECT_EQ(next[0].task, 4U);
  EXPECT_EQ(next[0].workers, Workers{1});
}

// As Add and Next would: nobody is overtaken, and nobody gets more than it takes.
TEST_F(SchedulerTest, ATaskStartsAtOnceIfNothingElseIsReady) {
  for (WorkerId worker = 0; worker < 3; ++worker) {
    EXPECT_EQ(scheduler_.StartAtOnce(std::nullopt, now_), worker) << "the one that has least";
  }
  EXPECT_EQ(scheduler_.StartAtOnce(std::nullopt, now_), Scheduler::kNobody) << "all have something";
  for (std::size_t i = 1; i < kCapacity; ++i) EXPECT_EQ(scheduler_.StartAtOnce(1, now_), 1U);
  EXPECT_EQ(scheduler_.StartAtOnce(1, now_), Scheduler::kNobody) << "it is full";
  EXPECT_EQ(scheduler_.posted(1), kCapacity);
  EXPECT_EQ(scheduler_.ready(), 0U);
  scheduler_.SetDown(2);
  EXPECT_EQ(scheduler_.StartAtOnce(2, now_), Scheduler::kNobody) << "it is down";
  ASSERT_TRUE(AddGroup(1, {0}));
  EXPECT_EQ(scheduler_.StartAtOnce(0, now_), Scheduler::kNobody) << "a group waits for it";
}

TEST_F(SchedulerTest, TheOrderIsThatOfSubmitAndNotOfGettingReady) {
  Add(7, 0);
  Add(3, 0);
  Add(5, 0);
  const auto started = StartAll();
  ASSERT_EQ(started.size(), 3U);
  EXPECT_EQ(started[0].task, 3U);
  EXPECT_EQ(started[1].task, 5U);
  EXPECT_EQ(started[2].task, 7U);
}

TEST_F(SchedulerTest, T3_ABusyWorkerDelaysOnlyWhatIsBoundToIt) {
  for (TaskKey task = 1; task <= 6; ++task) Add(task, 0);
  EXPECT_EQ(StartAll().size(), kCapacity);
  Add(7);
  Add(8, 1);
  const auto started = StartAll();
  ASSERT_EQ(started.size(), 2U);
  EXPECT_EQ(started[0].task, 8U);
  EXPECT_EQ(started[0].workers, Workers{1});
  EXPECT_EQ(started[1].task, 7U);
  EXPECT_EQ(started[1].workers, Workers{2}) << "the one that has least";
}

TEST_F(SchedulerTest, BoundTasksComeBeforeFreeOnesOfTheirWorker) {
  for (TaskKey task = 1; task <= 3; ++task) Add(task);
  EXPECT_EQ(StartAll().size(), 3U);
  Add(4);
  for (TaskKey task = 5; task <= 9; ++task) Add(task, 0);
  EXPECT_EQ(StartAll().size(), kCapacity - 1);
  scheduler_.Ended(0, now_);
  const auto started = StartAll();
  ASSERT_EQ(started.size(), 1U) << "4 is older, and 0 has ready work of its own";
  EXPECT_EQ(started[0].task, 8U);
}

TEST_F(SchedulerTest, FreeTasksAreNotPostedBehindALongOne) {
  // Many short ones: worker 0 ends 100 in a slice.
  for (int i = 0; i < 100; ++i) {
    Add(static_cast<TaskKey>(i + 1), 0);
    ASSERT_EQ(StartAll().size(), 1U);
    scheduler_.Ended(0, now_);
    now_ += std::chrono::microseconds(6);
  }
  Add(1001, 0);
  Add(1002, 1);
  Add(1003, 2);
  ASSERT_EQ(StartAll().size(), 3U);
  for (TaskKey task = 2000; task < 2010; ++task) Add(task);
  for (const auto& start : StartAll()) EXPECT_EQ(start.workers, Workers{0});
  EXPECT_EQ(scheduler_.posted(0), kCapacity);
  EXPECT_EQ(scheduler_.posted(1), 1U) << "it has no past";
  for (int i = 0; i < 3; ++i) scheduler_.Ended(0, now_);
  // What it does now takes long.
  now_ += milliseconds(10);
  EXPECT_EQ(StartAll().size(), 0U);
  scheduler_.Ended(0, now_);
  EXPECT_GE(StartAll().size(), 1U);
}

TEST_F(SchedulerTest, FreeTasksArePostedAheadWhereTasksAreShort) {
  Scheduler one(1, 64);
  for (TaskKey task = 1; task <= 1000; ++task) one.Add(task, task, std::nullopt);
  std::size_t most = 0;
  for (int i = 0; i < 1000; ++i) {
    while (one.Next(now_)) {
    }
    most = std::max(most, one.posted(0));
    now_ += std::chrono::microseconds(2);
    one.Ended(0, now_);
  }
  EXPECT_EQ(most, 64U);
  EXPECT_EQ(one.ready(), 0U);
}

TEST_F(SchedulerTest, TheOnlyWorkerNeedNotWaitForMoreToBeReady) {
  Scheduler two(2, 64);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(two.StartAtOnce(0, now_), 0U);
    now_ += std::chrono::microseconds(2);
    two.Ended(0, now_);
  }
  EXPECT_EQ(two.StartAtOnce(std::nullopt, now_), 0U);
  EXPECT_EQ(two.StartAtOnce(std::nullopt, now_), 1U);
  two.SetDown(1);
  EXPECT_EQ(two.StartAtOnce(std::nullopt, now_), Scheduler::kNobody) << "it may soon be up again";
  std::vector<TaskKey> stranded;
  two.GiveUp(1, stranded);
  EXPECT_EQ(two.StartAtOnce(std::nullopt, now_), 0U) << "tasks are short there";
  now_ += milliseconds(1);
  EXPECT_EQ(two.StartAtOnce(std::nullopt, now_), Scheduler::kNobody) << "this one takes long";
}

TEST_F(SchedulerTest, AGroupStartsOnAllOfItsWorkersOrOnNone) {
  Add(1, 1);
  ASSERT_EQ(StartAll().size(), 1U);
  ASSERT_TRUE(AddGroup(2, {WorkerId{0}, WorkerId{1}}));
  EXPECT_EQ(StartAll().size(), 0U);
  scheduler_.Ended(1, now_);
  const auto started = StartAll();
  ASSERT_EQ(started.size(), 1U);
  EXPECT_EQ(started[0].workers, (Workers{0, 1}));
}

TEST_F(SchedulerTest, AGroupIsNotStarvedByTasksThatComeLater) {
  Add(1, 0);
  Add(2, 1);
  ASSERT_EQ(StartAll().size(), 2U);
  ASSERT_TRUE(AddGroup(3, {WorkerId{0}, WorkerId{1}}));
  Add(4, 0);
  Add(5, 1);
  Add(6);
  Add(7);
  const auto other = StartAll();
  ASSERT_EQ(other.size(), 1U) << "only worker 2 is not reserved";
  EXPECT_EQ(other[0].workers, Workers{2});
  scheduler_.Ended(0, now_);
  EXPECT_EQ(StartAll().size(), 0U);
  scheduler_.Ended(1, now_);
  const auto started = StartAll();
  ASSERT_GE(started.size(), 1U);
  EXPECT_EQ(started[0].task, 3U);
}

TEST_F(SchedulerTest, GroupsThatShareWorkersDoNotBlockEachOther) {
  ASSERT_TRUE(AddGroup(1, {WorkerId{0}, WorkerId{1}}));
  ASSERT_TRUE(AddGroup(2, {WorkerId{1}, WorkerId{2}}));
  ASSERT_TRUE(AddGroup(3, {WorkerId{2}, WorkerId{0}}));
  for (TaskKey task = 1; task <= 3; ++task) {
    const auto started = StartAll();
    ASSERT_EQ(started.size(), 1U);
    EXPECT_EQ(started[0].task, task);
    for (const WorkerId worker : started[0].workers) scheduler_.Ended(worker, now_);
  }
}

// Two groups are always ready, so that every worker always has bound work.
TEST_F(SchedulerTest, AFreeTaskIsNotStarvedByGroupsThatNameNoWorker) {
  for (const bool partly : {false, true}) {
    Scheduler scheduler(3, kCapacity);
    TaskKey last = 0;
    const auto add_group = [&] {
      const std::vector<std::optional<WorkerId>> members{
          partly ? std::optional<WorkerId>(0) : std::nullopt, std::nullopt, std::nullopt};
      ++last;
      ASSERT_TRUE(scheduler.AddGroup(last, last, members));
    };
    for (int i = 0; i < 3; ++i) add_group();
    ++last;
    const TaskKey free_task = last;
    ASSERT_TRUE(scheduler.Add(free_task, free_task, std::nullopt));
    std::vector<TaskKey> started;
    for (int i = 0; i < 4; ++i) {
      const auto start = scheduler.Next(now_);
      ASSERT_TRUE(start.has_value());
      started.push_back(start->task);
      for (const WorkerId worker : start->workers) scheduler.Ended(worker, now_);
      add_group();
    }
    EXPECT_EQ(started, (std::vector<TaskKey>{1, 2, 3, free_task}));
  }
}

TEST_F(SchedulerTest, AGroupThatNamesItsWorkersComesBeforeAnOlderFreeTask) {
  for (TaskKey task = 1; task <= 3; ++task) Add(task, static_cast<WorkerId>(task - 1));
  ASSERT_EQ(StartAll().size(), 3U);
  Add(4);
  ASSERT_TRUE(AddGroup(5, {0, 1, 2}));
  for (WorkerId worker = 0; worker < 3; ++worker) scheduler_.Ended(worker, now_);
  const auto started = StartAll();
  ASSERT_EQ(started.size(), 1U);
  EXPECT_EQ(started[0].task, 5U);
}

// It was submitted earlier and got ready later than everything else.
TEST_F(SchedulerTest, AFreeTaskThatIsReadyLateGoesBeforeAYoungerGroup) {
  Add(1, 0);
  ASSERT_EQ(StartAll().size(), 1U);
  ASSERT_TRUE(AddGroup(5, {std::nullopt, std::nullopt, std::nullopt}));
  for (TaskKey task = 10; task < 20; ++task) Add(task);
  EXPECT_EQ(StartAll().size(), 0U) << "all are reserved for the group";
  Add(4);
  const auto started = StartAll();
  ASSERT_EQ(started.size(), 1U);
  EXPECT_EQ(started[0].task, 4U);
  scheduler_.Ended(0, now_);
  EXPECT_EQ(StartAll().size(), 0U) << "the group waits for 4 now";
  scheduler_.Ended(started[0].workers[0], now_);
  ASSERT_TRUE(scheduler_.Next(now_).has_value());
  for (WorkerId worker = 0; worker < 3; ++worker) EXPECT_EQ(scheduler_.posted(worker), 1U);
}

// Work comes as fast as it ends, so that there is never an end of it. Nobody names worker 2.
TEST_F(SchedulerTest, NobodyIsOvertakenWithoutEndWhileWorkKeepsComing) {
  constexpr std::size_t kReady = 12;
  for (unsigned seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    Scheduler scheduler(3, kCapacity);
    struct Work {
      std::vector<std::optional<WorkerId>> members;
      bool group = false;
      bool open = false;
      std::size_t overtaken = 0;  // by later ones of its kind
    };
    std::map<TaskKey, Work> ready;
    std::size_t most = 0;
    const auto check = [&](TaskKey task, const Work& work, std::span<const WorkerId> workers) {
      for (auto& [older, other] : ready) {
        if (older >= task) break;
        const bool free = !other.group && other.open;
        if (other.group == work.group && other.open == work.open) {
          most = std::max(most, ++other.overtaken);
        }
        ASSERT_FALSE(free && work.open) << "seed " << seed << ": " << task << " before " << older;
        // What names a worker is first there.
        for (const std::optional<WorkerId>& member : other.members) {
          ASSERT_FALSE(member.has_value() &&
                       std::find(workers.begin(), workers.end(), *member) != workers.end())
              << "seed " << seed << ": " << task << " before " << older;
        }
      }
    };
    for (TaskKey task = 1; task <= 3000;) {
      for (; ready.size() < kReady; ++task) {
        Work work;
        work.group = random() % 3 == 0;
        const std::size_t members = work.group ? 1 + random() % 3 : 1;
        const auto first = static_cast<WorkerId>(random() % 2);
        for (std::size_t i = 0; i < members; ++i) {
          const bool names = i < 2 && random() % 2 == 0;
          work.members.push_back(names ? std::optional<WorkerId>((first + i) % 2) : std::nullopt);
          work.open |= !names;
        }
        ASSERT_TRUE(work.group ? scheduler.AddGroup(task, task, work.members)
                               : scheduler.Add(task, task, work.members[0]));
        ready[task] = work;
      }
      while (const auto start = scheduler.Next(now_)) {
        const Work work = ready.at(start->task);
        ready.erase(start->task);
        ASSERT_NO_FATAL_FAILURE(check(start->task, work, start->workers));
      }
      now_ += std::chrono::microseconds(random() % 300);
      for (WorkerId worker = 0; worker < 3; ++worker) {
        if (scheduler.posted(worker) > 0) scheduler.Ended(worker, now_);
      }
    }
    // What is before it on its workers ends in so many rounds, in each of which a worker starts
    // one.
    EXPECT_LE(most, 3 * kReady * (kCapacity + 1)) << "seed " << seed;
  }
}

TEST_F(SchedulerTest, MembersWithoutAWorkerGetTheOnesThatHaveLeast) {
  Add(1, 0);
  Add(2, 0);
  Add(3, 2);
  ASSERT_EQ(StartAll().size(), 3U);
  ASSERT_TRUE(AddGroup(4, {std::nullopt, WorkerId{2}}));
  scheduler_.Ended(2, now_);
  const auto started = StartAll();
  ASSERT_EQ(started.size(), 1U);
  EXPECT_EQ(started[0].workers, (Workers{1, 2}));
  EXPECT_FALSE(AddGroup(5, {std::nullopt, std::nullopt, std::nullopt, std::nullopt}));
}

TEST_F(SchedulerTest, AGroupWithAWorkerThatIsDownReservesNobody) {
  scheduler_.SetDown(1);
  ASSERT_TRUE(AddGroup(1, {WorkerId{0}, WorkerId{1}}));
  Add(2, 0);
  const auto started = StartAll();
  ASSERT_EQ(started.size(), 1U);
  EXPECT_EQ(started[0].task, 2U);
  scheduler_.SetUp(1);
  EXPECT_EQ(StartAll().size(), 0U);
  scheduler_.Ended(0, now_);
  EXPECT_EQ(StartAll().size(), 1U);
}

TEST_F(SchedulerTest, AGroupThatNamesNobodyLeavesAWorkerThatGoesDown) {
  Add(1, 2);
  ASSERT_EQ(StartAll().size(), 1U);
  ASSERT_TRUE(AddGroup(2, {std::nullopt, WorkerId{2}}));
  scheduler_.SetDown(0);
  scheduler_.Ended(2, now_);
  const auto started = StartAll();
  ASSERT_EQ(started.size(), 1U);
  EXPECT_EQ(started[0].workers, (Workers{1, 2}));
}

TEST_F(SchedulerTest, AWorkerThatIsDownGetsNothingAndItsWorkWaits) {
  scheduler_.SetDown(0);
  Add(1, 0);
  Add(2);
  const auto started = StartAll();
  ASSERT_EQ(started.size(), 1U);
  EXPECT_EQ(started[0].workers, Workers{1});
  scheduler_.SetUp(0);
  EXPECT_EQ(StartAll().size(), 1U);
}

TEST_F(SchedulerTest, GivingUpAWorkerStrandsWhatIsBoundToIt) {
  for (WorkerId worker = 0; worker < 3; ++worker) scheduler_.SetDown(worker);
  Add(1, 0);
  Add(2);
  ASSERT_TRUE(AddGroup(3, {WorkerId{0}, WorkerId{1}}));
  ASSERT_TRUE(AddGroup(4, {std::nullopt, std::nullopt, std::nullopt}));
  ASSERT_TRUE(AddGroup(5, {std::nullopt, std::nullopt}));
  std::vector<TaskKey> stranded;
  scheduler_.GiveUp(0, stranded);
  std::sort(stranded.begin(), stranded.end());
  EXPECT_EQ(stranded, (std::vector<TaskKey>{1, 3, 4}));
  EXPECT_FALSE(scheduler_.Add(6, 6, 0));
  EXPECT_TRUE(scheduler_.Add(7, 7, std::nullopt));
  EXPECT_EQ(scheduler_.ready(), 3U);
  stranded.clear();
  scheduler_.GiveUp(1, stranded);
  EXPECT_EQ(stranded, std::vector<TaskKey>{5});
  stranded.clear();
  scheduler_.GiveUp(2, stranded);
  EXPECT_EQ(stranded.size(), 2U) << "there is nobody left";
  EXPECT_FALSE(scheduler_.Add(8, 8, std::nullopt));
  EXPECT_EQ(scheduler_.ready(), 0U);
}

TEST_F(SchedulerTest, AWorkerThatRefusedTakesNothingUntilSomethingEnded) {
  Add(1, 0);
  Add(2, 0);
  ASSERT_TRUE(scheduler_.Next(now_).has_value());
  ASSERT_TRUE(scheduler_.Next(now_).has_value());
  scheduler_.Refused(0);
  Add(2, 0);
  EXPECT_EQ(StartAll().size(), 0U);
  EXPECT_FALSE(scheduler_.NeedsRetry());
  scheduler_.Ended(0, now_);
  EXPECT_EQ(StartAll().size(), 1U);
  scheduler_.Refused(0);
  Add(2, 0);
  EXPECT_TRUE(scheduler_.NeedsRetry());
  scheduler_.Retry();
  EXPECT_EQ(StartAll().size(), 1U);
}

TEST_F(SchedulerTest, RemovedWorkIsGone) {
  Add(1, 0);
  Add(2);
  ASSERT_TRUE(AddGroup(3, {WorkerId{1}, std::nullopt}));
  Add(4, 1);
  scheduler_.RemoveIf([](TaskKey task) { return task <= 3; });
  const auto started = StartAll();
  ASSERT_EQ(started.size(), 1U);
  EXPECT_EQ(started[0].task, 4U);
  EXPECT_EQ(scheduler_.ready(), 0U);
}

// Random work, workers that come and go, tasks that end in any order.
TEST_F(SchedulerTest, EverythingStartsOnceWhereItMayAndGroupsAreWhole) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const std::size_t workers = 1 + random() % 5;
    Scheduler scheduler(workers, 1 + random() % 8);
    struct Work {
      std::vector<std::optional<WorkerId>> members;
      bool group = false;
      int started = 0;
    };
    std::map<TaskKey, Work> work;
    std::vector<std::size_t> posted(workers, 0);
    std::vector<bool> up(workers, true);
    std::vector<TaskKey> last_bound(workers, 0);  // since the last time somebody was down
    TaskKey last = 0;
    std::size_t left = 0;
    const auto step = [&](bool add) {
      if (add && random() % 2 == 0) {
        Work item;
        item.group = random() % 4 == 0;
        const std::size_t members = item.group ? 1 + random() % workers : 1;
        std::set<WorkerId> named;
        for (std::size_t i = 0; i < members; ++i) {
          const auto worker = static_cast<WorkerId>(random() % workers);
          const bool names = random() % 2 == 0 && named.insert(worker).second;
          item.members.push_back(names ? std::optional(worker) : std::nullopt);
        }
        ++last;
        ASSERT_TRUE(item.group ? scheduler.AddGroup(last, last, item.members)
                               : scheduler.Add(last, last, item.members[0]));
        work[last] = item;
        ++left;
      }
      if (random() % 16 == 0) {
        const auto worker = static_cast<WorkerId>(random() % workers);
        up[worker] = !up[worker] || !add;
        up[worker] ? scheduler.SetUp(worker) : scheduler.SetDown(worker);
        std::fill(last_bound.begin(), last_bound.end(), 0);
      }
      while (const auto start = scheduler.Next(now_)) {
        Work& item = work.at(start->task);
        ASSERT_EQ(++item.started, 1) << "seed " << seed;
        --left;
        ASSERT_EQ(start->workers.size(), item.members.size());
        std::set<WorkerId> different(start->workers.begin(), start->workers.end());
        ASSERT_EQ(different.size(), item.members.size());
        for (std::size_t i = 0; i < item.members.size(); ++i) {
          const WorkerId worker = start->workers[i];
          ASSERT_TRUE(up[worker]);
          ASSERT_EQ(item.members[i].value_or(worker), worker);
          if (item.group) {
            ASSERT_EQ(posted[worker], 0U) << "a group starts on idle workers";
          }
          // All of what is bound to a worker starts in the order of Submit.
          if (item.group || item.members[i].has_value()) {
            ASSERT_GT(start->task, last_bound[worker]) << "seed " << seed;
            last_bound[worker] = start->task;
          }
          ++posted[worker];
          ASSERT_EQ(scheduler.posted(worker), posted[worker]);
        }
      }
      const auto worker = random() % workers;
      if (posted[worker] > 0) {
        --posted[worker];
        now_ += std::chrono::microseconds(random() % 300);
        scheduler.Ended(static_cast<WorkerId>(worker), now_);
      }
    };
    for (int i = 0; i < 300; ++i) step(true);
    for (std::size_t worker = 0; worker < workers; ++worker) {
      up[worker] = true;
      scheduler.SetUp(static_cast<WorkerId>(worker));
    }
    std::fill(last_bound.begin(), last_bound.end(), 0);
    for (int i = 0; i < 20'000 && left > 0; ++i) step(false);
    EXPECT_EQ(left, 0U) << "seed " << seed << ": something never starts";
    EXPECT_EQ(scheduler.ready(), 0U);
  }
}

}  // namespace
}  // namespace keel::task
