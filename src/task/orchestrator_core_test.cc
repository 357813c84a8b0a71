// Order, failure and groups, with workers that do what the test says.
#include "task/orchestrator_core_test.h"

#include <atomic>
#include <cstdlib>
#include <random>
#include <thread>

namespace keel::task {
namespace {

TEST_F(OrchestratorCoreTest, ReadyTasksArePostedBySubmitItself) {
  Start(2);
  const TaskHandle one = Submit();
  EXPECT_EQ(fakes_[0]->posted() + fakes_[1]->posted(), 1U);
  Submit();
  EXPECT_EQ(fakes_[0]->posted(), 1U);
  EXPECT_EQ(fakes_[1]->posted(), 1U);
  EXPECT_EQ(one.worker(), WorkerId{0});
}

TEST_F(OrchestratorCoreTest, ADependentIsPostedWhenWhatItWaitsForIsDone) {
  Start(2);
  std::vector<float> x(4);
  const TaskHandle writer = Submit(Arguments().Add(Tag::kOut, On(x)));
  const TaskHandle reader = Submit(Arguments().Add(Tag::kIn, On(x)));
  const TaskHandle second = Submit(Arguments().Add(Tag::kIn, On(x)));
  EXPECT_EQ(fakes_[0]->ever_posted() + fakes_[1]->ever_posted(), 1U);
  fakes_[0]->Answer();
  // Nobody waits: the keeper goes on.
  EXPECT_TRUE(Soon([&] { return fakes_[0]->ever_posted() + fakes_[1]->ever_posted() == 3; }));
  EXPECT_TRUE(writer.done());
  EXPECT_FALSE(reader.done());
  EXPECT_FALSE(second.done());
}

TEST_F(OrchestratorCoreTest, ADependentIsPostedAlsoAfterALongRest) {
  Start(1);
  // Long enough for the keeper to sleep until it is woken.
  std::this_thread::sleep_for(10 * OrchestratorCore::kIdleTicks * OrchestratorCore::kTick);
  std::vector<float> x(4);
  Submit(Arguments().Add(Tag::kOut, On(x)));
  const TaskHandle reader = Submit(Arguments().Add(Tag::kIn, On(x)));
  fakes_[0]->Answer();
  ASSERT_TRUE(Posted(0, 1));
  // And if it went to sleep while somebody waited.
  EXPECT_EQ(
      reader.Wait(Deadline::After(10 * OrchestratorCore::kIdleTicks * OrchestratorCore::kTick))
          .code(),
      StatusCode::kDeadlineExceeded);
  fakes_[0]->Answer();
  EXPECT_TRUE(Soon([&] { return reader.done(); }));
}

TEST_F(OrchestratorCoreTest, WhoeverWaitsForOthersATaskEndsAtItsTime) {
  Start(2);
  fakes_[1]->SetQuiet();
  const TaskHandle hangs = SubmitTo(0, {}, milliseconds(5));
  // A thread that waits like this looks for answers, and never for time that has passed.
  const Deadline late = Deadline::After(seconds(20));
  while (!hangs.done() && !late.Passed()) ASSERT_TRUE(IsOk(SubmitTo(1).Wait(Long())));
  EXPECT_EQ(hangs.error().code(), StatusCode::kDeadlineExceeded);
}

TEST_F(OrchestratorCoreTest, T1_EqualAddressesOfTwoWorkersOrderNothing) {
  Start(2);
  const DeviceAddress one = Need(core_->Malloc(0, 1_KiB));
  const DeviceAddress two = Need(core_->Malloc(1, 1_KiB));
  ASSERT_EQ(one, two) << "the premise";
  const Arguments arguments = Arguments().Add(Tag::kInOut, At<float>(one, 16));
  SubmitTo(0, arguments);
  SubmitTo(1, arguments);
  EXPECT_EQ(fakes_[0]->posted(), 1U);
  EXPECT_EQ(fakes_[1]->posted(), 1U) << "it does not wait for the other's";
  // Nor is a host tensor at the same address the same.
  const std::array<std::uint32_t, 1> shape{16};
  SubmitTo(1, Arguments().Add(Tag::kInOut, Tensor::Host(reinterpret_cast<const void*>(one.value()),
                                                        DataType::kFloat32, shape)));
  EXPECT_EQ(fakes_[1]->posted(), 2U);
  SubmitTo(1, arguments);
  EXPECT_EQ(fakes_[1]->posted(), 2U) << "this one does";
}

std::uint64_t Many() {
  const char* const soak = std::getenv("KEEL_SOAK");
  return soak != nullptr && *soak != '\0' ? 1'000'000 : 100'000;
}

// Far deeper than a stack, also with a sanitizer, which takes its time.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::uint64_t kLinks = 100'000;
#else
constexpr std::uint64_t kLinks = 1'000'000;
#endif

TEST_F(OrchestratorCoreTest, T10_AFailureEndsAChainOfAMillionWithoutRecursion) {
  Start(1);
  std::vector<float> x(4);
  const Arguments arguments = Arguments().Add(Tag::kInOut, On(x));
  const TaskHandle first = Submit(arguments);
  TaskHandle last;
  for (std::uint64_t i = 0; i < kLinks; ++i) last = Submit(arguments);
  EXPECT_EQ(core_->live_tasks(), kLinks + 1);
  fakes_[0]->Answer(Internal("broken"));
  EXPECT_EQ(last.Wait(Long()).code(), StatusCode::kAborted);
  EXPECT_EQ(MessageOf(last.error()), "task " + std::to_string(last.id()) +
                                         " was not run: task 1, which it depends on, failed: "
                                         "broken");
  EXPECT_EQ(core_->live_tasks(), 0U);
  EXPECT_EQ(fakes_[0]->ever_posted(), 1U);
}

TEST_F(OrchestratorCoreTest, ManyTasksHoldConstantMemory) {
  Start(2);
  for (FakeWorker* fake : fakes_) fake->SetEager(true);
  std::vector<float> x(1000);
  TaskHandle last;
  std::size_t most = 0;
  std::size_t segments = 0;
  for (std::uint64_t i = 0; i < Many(); ++i) {
    const std::array<std::uint32_t, 1> one{1};
    last = Submit(
        Arguments().Add(Tag::kInOut, Tensor::Host(&x[i % x.size()], DataType::kFloat32, one)));
    if (i % 64 == 0) {
      most = std::max(most, core_->live_tasks());
      segments = std::max(segments, core_->segments());
      EXPECT_TRUE(IsOk(last.Wait(Long())));
    }
  }
  EXPECT_TRUE(IsOk(core_->WaitAll(Long())));
  EXPECT_EQ(core_->live_tasks(), 0U);
  EXPECT_LE(most, 256U);
  EXPECT_LE(segments, 512U);
}

// D runs, and touches z. B, which would have come after it, ends early because A fails. What is
// submitted then still comes after D.
TEST_F(OrchestratorCoreTest, ATaskThatEndedEarlyStillStandsForWhatItWaitedFor) {
  Start(3);
  std::vector<float> x(4);
  const DeviceAddress z = Need(core_->Malloc(0, 1_KiB));
  const TaskHandle d = SubmitTo(0, Arguments().Add(Tag::kInOut, At<float>(z, 4)));
  const TaskHandle a = SubmitTo(1, Arguments().Add(Tag::kOut, On(x)));
  const TaskHandle b =
      SubmitTo(0, Arguments().Add(Tag::kIn, On(x)).Add(Tag::kOut, At<float>(z, 4)));
  const TaskHandle c = SubmitTo(0, Arguments().Add(Tag::kIn, At<float>(z, 4)));
  fakes_[1]->Answer(Internal("broken"));
  EXPECT_EQ(a.Wait(Long()).code(), StatusCode::kInternal);
  EXPECT_EQ(MessageOf(a.error()), "task 2: broken");
  EXPECT_EQ(b.Wait(Long()).code(), StatusCode::kAborted) << "at once";
  EXPECT_EQ(c.Wait(Long()).code(), StatusCode::kAborted);
  EXPECT_FALSE(d.done());
  const TaskHandle e = SubmitTo(0, Arguments().Add(Tag::kInOut, At<float>(z, 4)));
  EXPECT_EQ(fakes_[0]->ever_posted(), 1U) << "beside D";
  std::atomic<bool> copied{false};
  std::array<float, 4> values{};
  std::thread copier([&] {
    EXPECT_TRUE(IsOk(core_->CopyTo(0, z, values.data(), 16_B)));
    copied = true;
  });
  EXPECT_EQ(core_->WaitAll(Deadline::After(milliseconds(20))).code(),
            StatusCode::kDeadlineExceeded);
  EXPECT_FALSE(copied);
  fakes_[0]->Answer();
  EXPECT_TRUE(IsOk(d.Wait(Long())));
  ASSERT_TRUE(Posted(0, 1));
  EXPECT_EQ(fakes_[0]->ever_posted(), 2U);
  fakes_[0]->Answer();
  EXPECT_TRUE(IsOk(e.Wait(Long())));
  copier.join();
  EXPECT_EQ(core_->live_tasks(), 0U);
}

// The same, with only a ghost in the way of a copy, and one that waits for nobody else.
TEST_F(OrchestratorCoreTest, WaitAllDoesNotWaitForGhostsAndCopiesDo) {
  Start(2, {.workers = {}, .control_timeout = milliseconds(30)});
  std::vector<float> x(4);
  const DeviceAddress z = Need(core_->Malloc(0, 1_KiB));
  const TaskHandle d = SubmitTo(0, Arguments().Add(Tag::kIn, At<float>(z, 4)));
  SubmitTo(1, Arguments().Add(Tag::kOut, On(x)));
  const TaskHandle b =
      SubmitTo(0, Arguments().Add(Tag::kIn, On(x)).Add(Tag::kOut, At<float>(z, 4)));
  fakes_[1]->Answer(Internal("broken"));
  EXPECT_EQ(b.Wait(Long()).code(), StatusCode::kAborted);
  EXPECT_EQ(core_->live_tasks(), 2U) << "D, and the ghost of B";
  std::array<float, 4> values{};
  EXPECT_EQ(core_->CopyTo(0, z, values.data(), 16_B).code(), StatusCode::kDeadlineExceeded);
  fakes_[0]->Answer();
  EXPECT_TRUE(IsOk(core_->WaitAll(Long())));
  EXPECT_TRUE(IsOk(d.error()));
  EXPECT_EQ(core_->live_tasks(), 0U);
  EXPECT_TRUE(IsOk(core_->CopyTo(0, z, values.data(), 16_B)));
}

TEST_F(OrchestratorCoreTest, AGroupFailsWithAMemberWhoseWorkerIsLostAndOthersGoOn) {
  Start(3);
  const TaskHandle group = SubmitGroup({0, 1});
  const TaskHandle other = SubmitTo(2);
  ASSERT_EQ(fakes_[0]->posted(), 1U);
  ASSERT_EQ(fakes_[1]->posted(), 1U);
  fakes_[1]->Lose(Unavailable("it died"));
  EXPECT_EQ(group.Wait(Deadline::After(milliseconds(20))).code(), StatusCode::kDeadlineExceeded)
      << "its other member still runs";
  fakes_[0]->Answer();
  EXPECT_EQ(group.Wait(Long()).code(), StatusCode::kUnavailable);
  fakes_[2]->Answer();
  EXPECT_TRUE(IsOk(other.Wait(Long())));
}

// Whichever member ends first, and by which way.
TEST_F(OrchestratorCoreTest, AGroupEndsOnceWithTheErrorOfItsMember) {
  Start(2);
  for (const WorkerId failing : {WorkerId{0}, WorkerId{1}}) {
    const TaskHandle group = SubmitGroup({0, 1});
    ASSERT_TRUE(Posted(0, 1) && Posted(1, 1));
    fakes_[0]->Answer(failing == 0 ? Internal("broken") : OkStatus());
    EXPECT_EQ(group.Wait(Deadline::After(milliseconds(20))).code(), StatusCode::kDeadlineExceeded);
    EXPECT_TRUE(IsOk(group.error())) << "it is not done";
    fakes_[1]->Answer(failing == 1 ? Internal("broken") : OkStatus());
    EXPECT_EQ(group.Wait(Long()).code(), StatusCode::kInternal);
    EXPECT_EQ(MessageOf(group.error()), "task " + std::to_string(group.id()) + ": member " +
                                            std::to_string(failing) + ": broken");
    EXPECT_EQ(core_->live_tasks(), 0U);
  }
  const TaskHandle group = SubmitGroup({0, 1});
  fakes_[0]->Answer();
  fakes_[1]->Answer();
  EXPECT_TRUE(IsOk(group.Wait(Long()))) << "nothing is left of the ones before";
}

TEST_F(OrchestratorCoreTest, AGroupOneOfWhoseMembersNeverFitsStartsNone) {
  Start(3);
  fakes_[1]->FailFits(OutOfRange("never any room"));
  const TaskHandle group = SubmitGroup({0, 1, 2});
  EXPECT_EQ(group.Wait(Long()).code(), StatusCode::kOutOfRange);
  EXPECT_EQ(MessageOf(group.error()), "task 1: member 1: never any room");
  EXPECT_FALSE(group.worker().has_value());
  for (FakeWorker* fake : fakes_) EXPECT_EQ(fake->ever_posted(), 0U);
  SubmitTo(0);
  EXPECT_EQ(fakes_[0]->posted(), 1U) << "nobody is left reserved";
}

TEST_F(OrchestratorCoreTest, AGroupOneOfWhoseWorkersIsFoundLostStartsLaterAsAWhole) {
  Start(2);
  fakes_[1]->HoldRestart(true);
  fakes_[1]->Lose(Unavailable("it died"));
  const TaskHandle group = SubmitGroup({0, 1});
  EXPECT_EQ(fakes_[0]->ever_posted(), 0U);
  EXPECT_FALSE(group.done());
  fakes_[1]->HoldRestart(false);
  ASSERT_TRUE(Posted(0, 1));
  ASSERT_TRUE(Posted(1, 1));
  fakes_[0]->Answer();
  fakes_[1]->Answer();
  EXPECT_TRUE(IsOk(group.Wait(Long())));
}

TEST_F(OrchestratorCoreTest, AMemberThatNamesNobodyRunsWhereNoOtherMemberDoes) {
  Start(3);
  const TaskHandle busy = SubmitTo(0);
  const TaskHandle group = SubmitGroup({kAnyWorker, 2});
  EXPECT_EQ(group.worker(), WorkerId{1}) << "which has nothing to do";
  ASSERT_TRUE(fakes_[1]->posted() == 1 && fakes_[2]->posted() == 1);
  for (const WorkerId worker : {0, 1, 2}) fakes_[worker]->Answer();
  EXPECT_TRUE(IsOk(group.Wait(Long())));

  // Its tensors name one, which is no other member's then.
  const DeviceAddress block = Need(core_->Malloc(1, 1_KiB));
  const std::vector<Arguments> members{Arguments(), Arguments().Add(Tag::kIn, At<float>(block, 1))};
  const std::vector<WorkerId> twice{1, kAnyWorker};
  const Status wrong = core_->SubmitGroup(callable_, members, twice, {}).status();
  EXPECT_EQ(wrong.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(MessageOf(wrong), "member 1: worker 1 has a member of the group already");
  const std::vector<WorkerId> open{2, kAnyWorker};
  const TaskHandle placed = Need(core_->SubmitGroup(callable_, members, open, {}));
  ASSERT_TRUE(fakes_[1]->posted() == 1 && fakes_[2]->posted() == 1);
  for (const WorkerId worker : {1, 2}) fakes_[worker]->Answer();
  EXPECT_TRUE(IsOk(placed.Wait(Long())));
}

TEST_F(OrchestratorCoreTest, AGroupNamesTheWorkerThatWasGivenUp) {
  Start(2);
  std::vector<float> x(4);
  SubmitTo(0, Arguments().Add(Tag::kOut, On(x)));
  const std::vector<Arguments> members{Arguments().Add(Tag::kIn, On(x)), Arguments()};
  const std::vector<WorkerId> workers{0, 1};
  const TaskHandle group = Need(core_->SubmitGroup(callable_, members, workers, {}));
  fakes_[1]->FailRestart(NotFound("no such device"));
  fakes_[1]->Lose(Unavailable("it died"));
  EXPECT_FALSE(ReportOf(1).up);
  EXPECT_EQ(core_->Malloc(1, 1_KiB).status().code(), StatusCode::kUnavailable) << "given up";
  fakes_[0]->Answer();
  EXPECT_EQ(group.Wait(Long()).code(), StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(group.error()), HasSubstr("worker 1 (default) was given up"));
}

TEST_F(OrchestratorCoreTest, AGroupOneOfWhoseMembersCannotBePostedStartsNoMore) {
  Start(3);
  fakes_[1]->FailPost(OutOfRange("never any room"));
  const TaskHandle group = SubmitGroup({0, 1, 2});
  EXPECT_EQ(fakes_[0]->posted(), 1U);
  EXPECT_EQ(fakes_[2]->posted(), 0U);
  EXPECT_FALSE(group.done());
  fakes_[0]->Answer();
  EXPECT_EQ(group.Wait(Long()).code(), StatusCode::kOutOfRange);
  const TaskHandle after = SubmitTo(2);
  fakes_[2]->Answer();
  EXPECT_TRUE(IsOk(after.Wait(Long())));
}

TEST_F(OrchestratorCoreTest, AGroupStartsWhenAllOfItsWorkersAreIdle) {
  Start(2);
  const TaskHandle before = SubmitTo(1);
  const TaskHandle group = SubmitGroup({0, 1});
  const TaskHandle after = SubmitTo(0);
  EXPECT_EQ(fakes_[0]->ever_posted(), 0U) << "reserved for the group";
  fakes_[1]->Answer();
  EXPECT_TRUE(IsOk(before.Wait(Long())));
  EXPECT_TRUE(Posted(0, 2)) << "the group's member, and the one behind it";
  EXPECT_TRUE(Posted(1, 1));
  fakes_[0]->Answer();
  fakes_[1]->Answer();
  EXPECT_TRUE(IsOk(group.Wait(Long())));
  fakes_[0]->Answer();
  EXPECT_TRUE(IsOk(after.Wait(Long())));
}

TEST_F(OrchestratorCoreTest, ATaskThatIsTooSlowIsFoundOutWhoeverSleeps) {
  Start(2);
  const TaskHandle endless = SubmitTo(1);
  std::thread waiter([&] { EXPECT_TRUE(IsOk(endless.Wait(Long()))); });
  const TaskHandle slow = SubmitTo(0, {}, milliseconds(30));
  EXPECT_TRUE(Soon([&] { return slow.done(); }));
  EXPECT_EQ(slow.error().code(), StatusCode::kDeadlineExceeded);
  fakes_[1]->Answer();
  waiter.join();
}

TEST_F(OrchestratorCoreTest, TheTimeOfATaskBeginsWhenTheOnesBeforeItHaveEnded) {
  Start(1);
  const TaskHandle endless = SubmitTo(0);
  const TaskHandle timed = SubmitTo(0, {}, seconds(30));
  EXPECT_EQ(fakes_[0]->posted(), 1U) << "its time could not be told behind one without";
  fakes_[0]->Answer();
  EXPECT_TRUE(IsOk(endless.Wait(Long())));
  ASSERT_TRUE(Posted(0, 1));
  // However many there were, the time is that of those which are there.
  for (int i = 0; i < 20; ++i) {
    SubmitTo(0, {}, seconds(30));
    EXPECT_EQ(fakes_[0]->posted(), 2U);
    fakes_[0]->Answer();
    ASSERT_TRUE(Posted(0, 1));
    EXPECT_TRUE(Soon([&] { return core_->live_tasks() == 1; }));
  }
  const auto now = std::chrono::steady_clock::now();
  EXPECT_GT(fakes_[0]->NextDeadline().when(), now + seconds(20));
  EXPECT_LT(fakes_[0]->NextDeadline().when(), now + seconds(61));
  for (int i = 0; i < 20; ++i) SubmitTo(0, {}, seconds(30));
  EXPECT_EQ(fakes_[0]->posted(), OrchestratorCore::kTimedAhead);
}

TEST_F(OrchestratorCoreTest, ATimedTaskThatWentWellLeavesNoTimeBehind) {
  Start(1);
  for (int i = 0; i < 3; ++i) {
    const TaskHandle task = SubmitTo(0, {}, seconds(30));
    ASSERT_TRUE(Posted(0, 1)) << i;
    fakes_[0]->Answer();
    EXPECT_TRUE(IsOk(task.Wait(Long())));
  }
}

// Together they are as good as for ever, each alone is not.
TEST_F(OrchestratorCoreTest, TimeoutsOfYearsAddUpAndAreTakenBack) {
  constexpr std::chrono::hours kYears{24 * 365 * 6};
  Start(1);
  const TaskHandle first = SubmitTo(0, {}, kYears);
  const TaskHandle second = SubmitTo(0, {}, kYears);
  ASSERT_TRUE(Posted(0, 2));
  fakes_[0]->Answer();
  EXPECT_TRUE(IsOk(first.Wait(Long())));
  fakes_[0]->Answer();
  EXPECT_TRUE(IsOk(second.Wait(Long())));
  const TaskHandle third = SubmitTo(0, {}, seconds(30));
  ASSERT_TRUE(Posted(0, 1));
  fakes_[0]->Answer();
  EXPECT_TRUE(IsOk(third.Wait(Long())));
}

TEST_F(OrchestratorCoreTest, ACallableIsGoneWhoeverUsedItLast) {
  Start(1);
  fakes_[0]->SetEager(true);
  const Callable other = Need(core_->Register(NoopImage(1)));
  const Arguments none;
  const auto submit = [&](Callable callable) {
    const Result<TaskHandle> task = core_->Submit(callable, none, {});
    return task.ok() ? task->Wait(Long()) : task.status();
  };
  EXPECT_TRUE(IsOk(submit(callable_)));
  EXPECT_TRUE(IsOk(submit(other)));
  ASSERT_TRUE(IsOk(core_->Unregister(callable_)));
  EXPECT_TRUE(IsOk(submit(other)));
  EXPECT_EQ(submit(callable_).code(), StatusCode::kNotFound);
  EXPECT_TRUE(IsOk(submit(other)));
  // Also while a task still has it.
  fakes_[0]->SetEager(false);
  const TaskHandle running = Need(core_->Submit(other, none, {}));
  ASSERT_TRUE(IsOk(core_->Unregister(other)));
  EXPECT_EQ(submit(other).code(), StatusCode::kNotFound);
  fakes_[0]->Answer();
  EXPECT_TRUE(IsOk(running.Wait(Long())));
}

TEST_F(OrchestratorCoreTest, ARefusedTaskIsPostedLater) {
  Start(1);
  fakes_[0]->FailPost(ResourceExhausted("no room now"));
  const TaskHandle task = Submit();
  EXPECT_FALSE(task.worker().has_value());
  fakes_[0]->FailPost(OkStatus());
  ASSERT_TRUE(Posted(0, 1));
  fakes_[0]->Answer();
  EXPECT_TRUE(IsOk(task.Wait(Long())));
  fakes_[0]->FailPost(OutOfRange("never any room"));
  EXPECT_EQ(Submit().Wait(Long()).code(), StatusCode::kOutOfRange);
  fakes_[0]->FailPost(OkStatus());
}

// Whatever the worker says, it has forgotten it.
TEST_F(OrchestratorCoreTest, T5_AFreeThatFailsIsReturnedAndTheBlockIsGone) {
  Start(1);
  const DeviceAddress block = Need(core_->Malloc(0, 1_KiB));
  fakes_[0]->FailFree(Internal("damaged"));
  const Status status = core_->Free(0, block);
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_THAT(MessageOf(status), HasSubstr("worker 0 (default): damaged"));
  fakes_[0]->FailFree(OkStatus());
  const Arguments arguments = Arguments().Add(Tag::kIn, At<float>(block, 1));
  EXPECT_EQ(core_->Submit(callable_, arguments, {}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(core_->Free(0, block).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(fakes_[0]->freed().empty());
}

TEST_F(OrchestratorCoreTest, T5_AFreeThatMayHappenYetCountsAsFreed) {
  Start(1);
  const DeviceAddress block = Need(core_->Malloc(0, 1_KiB));
  fakes_[0]->FailFree(DeadlineExceeded("no answer"));
  EXPECT_EQ(core_->Free(0, block).code(), StatusCode::kDeadlineExceeded);
  fakes_[0]->FailFree(OkStatus());
  const Arguments arguments = Arguments().Add(Tag::kIn, At<float>(block, 1));
  EXPECT_EQ(core_->Submit(callable_, arguments, {}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(core_->Free(0, block).code(), StatusCode::kInvalidArgument);
}

// The worker is busy with another call for longer than anybody waits.
TEST_F(OrchestratorCoreTest, T5_AFreeThatWasNotBegunIsTriedAgain) {
  Start(1);
  const DeviceAddress block = Need(core_->Malloc(0, 1_KiB));
  fakes_[0]->FailFree(ResourceExhausted("busy"));
  EXPECT_TRUE(IsOk(core_->Free(0, block)));
  EXPECT_EQ(core_->Free(0, block).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(fakes_[0]->freed().empty());
  fakes_[0]->FailFree(OkStatus());
  EXPECT_TRUE(Soon([&] { return fakes_[0]->freed() == std::vector{block}; }));
}

TEST_F(OrchestratorCoreTest, T5_WhatTheWorkerDoesNotKnowIsGone) {
  Start(1);
  const DeviceAddress block = Need(core_->Malloc(0, 1_KiB));
  fakes_[0]->FailFree(InvalidArgument("it was freed before"));
  EXPECT_THAT(MessageOf(core_->Free(0, block)), HasSubstr("worker 0 (default): it was freed"));
  fakes_[0]->FailFree(OkStatus());
  EXPECT_THAT(MessageOf(core_->Free(0, block)), HasSubstr("is not what Malloc returned"));
  EXPECT_TRUE(fakes_[0]->freed().empty());
}

TEST_F(OrchestratorCoreTest, T5_AScopeFreesAllWhateverFails) {
  Start(1);
  FakeWorker& worker = *fakes_[0];
  const auto orchestrator = OrchestratorOf(std::exchange(core_, nullptr));
  Orchestrator::Scope scope(*orchestrator);
  std::vector<DeviceAddress> blocks{Need(scope.Malloc(0, 1_KiB)), Need(scope.Malloc(0, 1_KiB))};
  EXPECT_TRUE(IsOk(orchestrator->Free(0, blocks[0])));
  EXPECT_EQ(scope.Close().code(), StatusCode::kUnavailable) << "the first is gone";
  EXPECT_EQ(worker.freed(), blocks);
  for (const Status& gone :
       {Internal("damaged"), DeadlineExceeded("no answer"), InvalidArgument("no block")}) {
    EXPECT_TRUE(scope.Malloc(0, 1_KiB).ok());
    worker.FailFree(gone);
    EXPECT_EQ(scope.Close().code(), gone.code());
    EXPECT_TRUE(IsOk(scope.Close()));
    worker.FailFree(OkStatus());
  }
  EXPECT_TRUE(scope.Malloc(0, 1_KiB).ok());
  worker.Lose(Unavailable("it died"));
  EXPECT_FALSE(orchestrator->Report()[0].up);
  EXPECT_EQ(scope.Close().code(), StatusCode::kUnavailable);
  EXPECT_TRUE(IsOk(scope.Close()));
  EXPECT_EQ(worker.freed(), blocks);
}

TEST_F(OrchestratorCoreTest, AStartThatFailedAtACallableLeavesNothingBehind) {
  Start(1);
  Need(core_->Register(NoopImage(2)));
  fakes_[0]->FailRegisterAfter(1);
  fakes_[0]->Lose(Unavailable("it died"));
  EXPECT_FALSE(ReportOf(0).up);
  ASSERT_TRUE(Up(0));
  EXPECT_EQ(fakes_[0]->restarts(), 1);
  EXPECT_EQ(fakes_[0]->callables(), 2U);
}

TEST_F(OrchestratorCoreTest, FreeAndUnregisterWaitForTheTasksAndNotTheCaller) {
  Start(1);
  const DeviceAddress block = Need(core_->Malloc(0, 1_KiB));
  const TaskHandle task = Submit(Arguments().Add(Tag::kIn, At<float>(block, 1)));
  EXPECT_TRUE(IsOk(core_->Free(0, block)));
  EXPECT_TRUE(IsOk(core_->Unregister(callable_)));
  EXPECT_TRUE(fakes_[0]->freed().empty());
  EXPECT_EQ(fakes_[0]->callables(), 1U);
  fakes_[0]->Answer();
  EXPECT_TRUE(IsOk(task.Wait(Long())));
  EXPECT_TRUE(Soon([&] { return fakes_[0]->freed() == std::vector{block}; }));
  EXPECT_TRUE(Soon([&] { return fakes_[0]->callables() == 0; }));
}

TEST_F(OrchestratorCoreTest, AWorkerThatIsBusyForgetsACallableLater) {
  Start(2);
  fakes_[0]->FailUnregister(ResourceExhausted("busy"));
  EXPECT_TRUE(IsOk(core_->Unregister(callable_)));
  EXPECT_EQ(fakes_[0]->callables(), 1U);
  EXPECT_EQ(fakes_[1]->callables(), 0U);
  // Meanwhile nothing else waits for it.
  fakes_[1]->Lose(Unavailable("it died"));
  EXPECT_FALSE(ReportOf(1).up);
  ASSERT_TRUE(Up(1));
  EXPECT_EQ(fakes_[0]->callables(), 1U);
  fakes_[0]->FailUnregister(OkStatus());
  EXPECT_TRUE(Soon([&] { return fakes_[0]->callables() == 0; }));
}

TEST_F(OrchestratorCoreTest, AReportDoesNotWaitLongForAWorkerThatIsBusy) {
  Start(1);
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(ReportOf(0).bytes_to_device, 100U);
  EXPECT_LE(fakes_[0]->stats_deadline().when() - before, seconds(2));
}

// Both fakes have equal addresses; as threads of one device these are the same memory.
TEST_F(OrchestratorCoreTest, WorkersThatShareAMemoryWaitForEachOther) {
  transport_ = Transport::kThread;
  Start(2);
  const DeviceAddress here = Need(core_->Malloc(0, 1_KiB));
  ASSERT_EQ(Need(core_->Malloc(1, 1_KiB)), here);
  const Arguments writes = Arguments().Add(Tag::kOut, At<float>(here, 4));
  const Arguments reads = Arguments().Add(Tag::kIn, At<float>(here, 4));
  const TaskHandle writer = SubmitTo(1, writes);
  const TaskHandle reader = SubmitTo(0, reads);
  EXPECT_TRUE(Posted(1, 1));
  EXPECT_EQ(fakes_[0]->ever_posted(), 0U);
  fakes_[1]->Answer();
  EXPECT_TRUE(IsOk(writer.Wait(Long())));
  ASSERT_TRUE(Posted(0, 1));

  // A worker that is lost takes nothing of that with it.
  const TaskHandle again = SubmitTo(1, writes);
  fakes_[0]->Answer();
  EXPECT_TRUE(IsOk(reader.Wait(Long())));
  ASSERT_TRUE(Posted(1, 1));
  fakes_[0]->Lose(Unavailable("it died"));
  EXPECT_FALSE(ReportOf(0).up);
  ASSERT_TRUE(Up(0));
  ASSERT_EQ(Need(core_->Malloc(0, 1_KiB)), here);
  const TaskHandle last = SubmitTo(0, reads);
  EXPECT_EQ(fakes_[0]->posted(), 0U);
  fakes_[1]->Answer();
  EXPECT_TRUE(IsOk(again.Wait(Long())));
  ASSERT_TRUE(Posted(0, 1));
  fakes_[0]->Answer();
  EXPECT_TRUE(IsOk(last.Wait(Long())));
}

TEST_F(OrchestratorCoreTest, ARegistrationThatFailsOnOneWorkerLeavesNothingOnTheOthers) {
  Start(3);
  fakes_[2]->FailRegister(ResourceExhausted("no room"));
  const Status status = core_->Register(NoopImage(5)).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(MessageOf(status), HasSubstr("worker 2"));
  for (FakeWorker* fake : fakes_) EXPECT_EQ(fake->callables(), 1U);
}

TEST_F(OrchestratorCoreTest, AWorkerThatIsStartedAgainHasTheCallables) {
  Start(1);
  const Callable second = Need(core_->Register(NoopImage(2)));
  EXPECT_EQ(ReportOf(0).bytes_to_device, 100U);
  fakes_[0]->Lose(Unavailable("it died"));
  EXPECT_FALSE(ReportOf(0).up);
  ASSERT_TRUE(Up(0));
  EXPECT_EQ(fakes_[0]->callables(), 2U);
  fakes_[0]->SetEager(true);
  EXPECT_TRUE(IsOk(Submit().Wait(Long())));
  EXPECT_TRUE(IsOk(core_->Unregister(second)));
  EXPECT_EQ(fakes_[0]->callables(), 1U);
  EXPECT_EQ(ReportOf(0).bytes_to_device, 100U + 100U) << "of both lives";
}

TEST_F(OrchestratorCoreTest, CopiesWaitForTheTasksThatAreInTheirWay) {
  Start(1);
  const DeviceAddress block = Need(core_->Malloc(0, 1_KiB));
  const TaskHandle reader = Submit(Arguments().Add(Tag::kIn, At<float>(block, 4)));
  std::array<float, 4> values{};
  EXPECT_TRUE(IsOk(core_->CopyFrom(0, values.data(), block, 16_B))) << "it only reads";
  EXPECT_TRUE(IsOk(core_->CopyTo(0, block + 16_B, values.data(), 16_B))) << "beside it";
  EXPECT_FALSE(reader.done());
  std::thread copier([&] {
    EXPECT_TRUE(IsOk(core_->CopyTo(0, block, values.data(), 16_B)));
    EXPECT_TRUE(reader.done());
  });
  fakes_[0]->Answer();
  copier.join();
}

TEST_F(OrchestratorCoreTest, ACopyDoesNotWaitForEver) {
  Start(1, {.workers = {}, .control_timeout = milliseconds(30)});
  const DeviceAddress block = Need(core_->Malloc(0, 1_KiB));
  const TaskHandle writer = Submit(Arguments().Add(Tag::kOut, At<float>(block, 4)));
  std::array<float, 4> values{};
  const Status status = core_->CopyFrom(0, values.data(), block, 16_B);
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(MessageOf(status), HasSubstr("task 1 uses the memory and is not done"));
  EXPECT_FALSE(writer.done());
}

// Everything at once, beside workers that are lost again and again.
TEST_F(OrchestratorCoreTest, ManyThreadsAreServedWhateverIsLost) {
  Start(3);
  for (FakeWorker* fake : fakes_) fake->SetEager(true);
  std::atomic<bool> over{false};
  std::thread storm([&] {
    std::vector<std::size_t> seen(fakes_.size(), 0);
    for (std::size_t i = 0; !over; i = (i + 1) % fakes_.size()) {
      // Only one that has had a task: it is not given up.
      if (fakes_[i]->ever_posted() != seen[i] && fakes_[i]->Health().ok()) {
        seen[i] = fakes_[i]->ever_posted();
        fakes_[i]->Lose(Unavailable("it died"));
      }
      std::this_thread::sleep_for(microseconds(300));
    }
  });
  std::vector<std::thread> threads;
  std::atomic<int> served{0};
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      std::vector<float> x(16);
      const auto one = [&] {
        const std::array<std::uint32_t, 1> shape{4};
        return Tensor::Host(&x[random() % 13], DataType::kFloat32, shape);
      };
      for (int i = 0; i < 300; ++i) {
        const auto worker = static_cast<WorkerId>(random() % fakes_.size());
        const Result<DeviceAddress> block = core_->Malloc(worker, 1_KiB);
        Arguments arguments;
        arguments.Add(Tag::kInOut, one());
        if (block.ok()) arguments.Add(Tag::kInOut, At<float>(*block, 16));
        SubmitOptions options;
        if (block.ok()) options.worker = worker;
        const auto task = core_->Submit(callable_, arguments, options);
        const auto free = Submit(Arguments().Add(Tag::kIn, one()));
        if (block.ok()) static_cast<void>(core_->Free(worker, *block).ok());
        if (random() % 4 == 0) SubmitGroup({worker, static_cast<WorkerId>((worker + 1) % 3)});
        if (random() % 16 == 0) {
          EXPECT_TRUE(IsOk(core_->WaitAll(Long())));
        }
        const Status status = free.Wait(Long());
        EXPECT_NE(status.code(), StatusCode::kDeadlineExceeded);
        served += status.ok() ? 1 : 0;
        if (task.ok()) {
          EXPECT_NE(task->Wait(Long()).code(), StatusCode::kDeadlineExceeded);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  over = true;
  storm.join();
  EXPECT_TRUE(IsOk(core_->WaitAll(Long())));
  EXPECT_EQ(core_->live_tasks(), 0U);
  EXPECT_GT(served.load(), 0);
  for (WorkerId worker = 0; worker < fakes_.size(); ++worker) {
    ASSERT_TRUE(Up(worker));
    EXPECT_TRUE(IsOk(SubmitTo(worker).Wait(Long())));
  }
}

}  // namespace
}  // namespace keel::task
