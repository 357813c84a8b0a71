// Handles of tasks that come and go, and what tasks are made of.
#include "task/task_state.h"

#include <atomic>
#include <thread>

#include "task/orchestrator_core_test.h"

namespace keel::task {
namespace {

class TaskStateTest : public OrchestratorCoreTest {};

// What a task was made of is used for the next.
TEST_F(TaskStateTest, ATaskKnowsNothingOfTheOneWhoseMemoryItHas) {
  Start(1);
  std::vector<float> x(4);
  // Until each that was made has been through it.
  for (std::size_t i = 0; i < TaskPool::kAtATime; ++i) {
    const TaskHandle failed = Submit(Arguments().Add(Tag::kOut, On(x)));
    const TaskHandle aborted = Submit(Arguments().Add(Tag::kIn, On(x)));
    fakes_[0]->Answer(Internal("broken"));
    EXPECT_EQ(failed.Wait(Long()).code(), StatusCode::kInternal);
    EXPECT_EQ(aborted.Wait(Long()).code(), StatusCode::kAborted);
    // A third one, so that none has the same part each time.
    const TaskHandle well = Submit();
    fakes_[0]->Answer();
    EXPECT_TRUE(IsOk(well.Wait(Long())));
  }
  const TaskHandle writer = Submit(Arguments().Add(Tag::kOut, On(x)));
  const TaskHandle reader = Submit(Arguments().Add(Tag::kIn, On(x)));
  for (const TaskHandle* task : {&writer, &reader}) {
    EXPECT_FALSE(task->done());
    EXPECT_TRUE(IsOk(task->error()));
  }
  EXPECT_EQ(writer.worker(), WorkerId{0});
  EXPECT_EQ(reader.worker(), std::nullopt) << "it has not started";
  fakes_[0]->Answer();
  EXPECT_TRUE(IsOk(writer.Wait(Long())));
  EXPECT_TRUE(IsOk(writer.error()));
  ASSERT_TRUE(Posted(0, 1));
  fakes_[0]->Answer();
  EXPECT_TRUE(IsOk(reader.Wait(Long())));
}

TEST_F(TaskStateTest, AHandleSaysWhetherItsTaskIsForgotten) {
  EXPECT_TRUE(TaskHandle().forgotten());
  Start(2);
  std::vector<float> x(4);
  std::vector<float> y(4);
  const TaskHandle fails = SubmitTo(0, Arguments().Add(Tag::kOut, On(x)));
  const TaskHandle goes_on = SubmitTo(1, Arguments().Add(Tag::kOut, On(y)));
  const TaskHandle after_both = Submit(Arguments().Add(Tag::kIn, On(x)).Add(Tag::kIn, On(y)));
  EXPECT_FALSE(fails.forgotten());
  fakes_[0]->Answer(Internal("broken"));
  EXPECT_EQ(after_both.Wait(Long()).code(), StatusCode::kAborted);
  EXPECT_TRUE(fails.forgotten());
  EXPECT_FALSE(after_both.forgotten()) << "what comes after it still waits for the other one";
  fakes_[1]->Answer();
  EXPECT_TRUE(IsOk(goes_on.Wait(Long())));
  EXPECT_TRUE(Soon([&] { return after_both.forgotten(); }));
}

// The table has it then, alone or with others, and gives it back.
TEST_F(TaskStateTest, HandlesMayGoBeforeTheTaskIsDone) {
  Start(1);
  std::vector<float> x(4);
  for (std::size_t i = 0; i < 2 * TaskPool::kAtATime; ++i) {
    static_cast<void>(Submit());                                       // ends well
    static_cast<void>(Submit(Arguments().Add(Tag::kOut, On(x))));      // fails
    TaskHandle aborted = Submit(Arguments().Add(Tag::kInOut, On(x)));  // and this because of it
    static_cast<void>(Submit(Arguments().Add(Tag::kInOut, On(x))));    // and this
    TaskHandle copy = aborted;
    aborted = TaskHandle();
    EXPECT_EQ(core_->live_tasks(), 4U);
    fakes_[0]->Answer();
    EXPECT_TRUE(Soon([&] { return core_->live_tasks() == 3; }));
    ASSERT_TRUE(Posted(0, 1));
    fakes_[0]->Answer(Internal("broken"));
    EXPECT_EQ(copy.Wait(Long()).code(), StatusCode::kAborted);
    EXPECT_TRUE(IsOk(core_->WaitAll(Long())));
    EXPECT_EQ(core_->live_tasks(), 0U);
    const TaskHandle next = Submit();
    fakes_[0]->Answer();
    EXPECT_TRUE(IsOk(next.Wait(Long())));
    EXPECT_EQ(copy.error().code(), StatusCode::kAborted) << "no other task has its memory";
  }
}

// At the very moment at which the table lets it go. By the sanitizers, it goes once.
TEST_F(TaskStateTest, AHandleMayGoWhileItsTaskEnds) {
  Start(1);
  fakes_[0]->SetEager(true);
  constexpr int kRounds = 2'000;
  std::vector<TaskHandle> tasks(8);
  for (int round = 0; round < kRounds; ++round) {
    for (TaskHandle& task : tasks) task = Submit();
    const TaskHandle last = tasks.back();
    std::thread drop([&] {
      for (TaskHandle& task : tasks) task = TaskHandle();
    });
    EXPECT_TRUE(IsOk(last.Wait(Long())));
    drop.join();
  }
  EXPECT_EQ(core_->live_tasks(), 0U);
}

// Whoever has the core's lock may have it for long.
TEST_F(TaskStateTest, AHandleThatIsNotTheLastGoesWhoeverHasTheLock) {
  Start(1);
  const TaskHandle running = Submit();
  const TaskHandle waiting = SubmitTo(0);
  fakes_[0]->HoldPost(true);
  std::thread holder([&] { Submit(Arguments(), {.worker = 0, .timeout = {}}); });
  ASSERT_TRUE(Soon([&] { return fakes_[0]->IsHeldInPost(); }));
  std::atomic<bool> gone{false};
  std::thread dropper([&] {
    for (const TaskHandle& task : {running, waiting}) {
      TaskHandle copy = task;
      copy = TaskHandle();
      EXPECT_FALSE(task.done());
    }
    gone = true;
  });
  EXPECT_TRUE(Soon([&] { return gone.load(); }));
  fakes_[0]->HoldPost(false);
  holder.join();
  dropper.join();
  for (int i = 0; i < 3; ++i) fakes_[0]->Answer();
  EXPECT_TRUE(IsOk(running.Wait(Long())));
  EXPECT_TRUE(IsOk(waiting.Wait(Long())));
  EXPECT_TRUE(IsOk(core_->WaitAll(Long())));
  EXPECT_EQ(core_->live_tasks(), 0U);
}

// Each of several threads has one, and the table lets the task go meanwhile. By the sanitizers, it
// goes once, with the last of them.
TEST_F(TaskStateTest, HandlesOfSeveralThreadsMayGoWhileTheirTaskEnds) {
  Start(1);
  fakes_[0]->SetEager(true);
  constexpr int kRounds = 500;
  constexpr std::size_t kTasks = 200;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<TaskHandle> tasks;
    for (std::size_t i = 0; i < kTasks; ++i) tasks.push_back(Submit());
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([copies = tasks]() mutable {
        for (TaskHandle& task : copies) task = TaskHandle();
      });
    }
    tasks.clear();
    ASSERT_TRUE(IsOk(core_->WaitAll(Long())));
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(core_->live_tasks(), 0U);
  // One that got lost would keep it.
  const std::weak_ptr<OrchestratorCore> core = core_;
  core_->Stop();
  core_.reset();
  EXPECT_TRUE(core.expired());
}

// And beyond what is kept for that; handles are dropped by another thread meanwhile. By the
// sanitizers, nothing is lost or used after it has gone.
TEST_F(TaskStateTest, MoreHandlesThanAreKeptAreOfTheirOwnTasks) {
  Start(1);
  fakes_[0]->SetEager(true);
  std::vector<TaskHandle> last;
  for (int round = 0; round < 3; ++round) {
    std::vector<TaskHandle> tasks(TaskPool::kKept + 100);
    std::uint64_t before = core_->last_task();
    std::thread drop([old = std::move(last)]() mutable { old.clear(); });
    for (TaskHandle& task : tasks) {
      task = Submit();
      EXPECT_EQ(task.id(), ++before);
    }
    for (const TaskHandle& task : tasks) EXPECT_TRUE(IsOk(task.Wait(Long())));
    drop.join();
    last = std::move(tasks);
  }
  // Handles outlive the core.
  const TaskHandle one = last.front();
  std::thread drop([old = std::move(last)]() mutable { old.clear(); });
  core_->Stop();
  core_.reset();
  drop.join();
  EXPECT_TRUE(one.done());
}

}  // namespace
}  // namespace keel::task
