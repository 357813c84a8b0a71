// Loss and the end, with workers that do what the test says.
#include "task/orchestrator_core_test.h"

namespace keel::task {
namespace {

using OrchestratorCoreLossTest = OrchestratorCoreTest;

TEST_F(OrchestratorCoreLossTest, ATaskThatIsLostWithItsWorkerEndsAndTheOnesBehindItRunAgain) {
  Start(2);
  const TaskHandle begun = SubmitTo(0);
  const TaskHandle behind = SubmitTo(0);
  const TaskHandle third = SubmitTo(0);
  ASSERT_EQ(fakes_[0]->posted(), 3U);
  fakes_[0]->Lose(Unavailable("killed by signal 9"));
  EXPECT_EQ(begun.Wait(Long()).code(), StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(begun.error()), HasSubstr("signal 9"));
  ASSERT_TRUE(Posted(0, 2)) << "on the worker that was started again";
  fakes_[0]->Answer();
  fakes_[0]->Answer();
  EXPECT_TRUE(IsOk(behind.Wait(Long())));
  EXPECT_TRUE(IsOk(third.Wait(Long())));
  const WorkerReport report = ReportOf(0);
  EXPECT_TRUE(report.up);
  EXPECT_EQ(report.restarts, 1U);
  EXPECT_EQ(report.tasks, 3U);
  EXPECT_THAT(MessageOf(report.lost), HasSubstr("signal 9"));
}

// Each time while its tensors were on their way: nothing says that the task is to blame.
TEST_F(OrchestratorCoreLossTest, AWorkerThatEndsBeforeItIsSentAnythingIsGivenUp) {
  Start(1);
  fakes_[0]->SendNothing();
  const TaskHandle task = Submit();
  for (int start = 0; start < OrchestratorCore::kMaxStarts; ++start) {
    ASSERT_TRUE(Posted(0, 1));
    fakes_[0]->Lose(Unavailable("it died"));
    ASSERT_TRUE(Soon([&] { return fakes_[0]->restarts() > start || task.done(); }));
  }
  EXPECT_EQ(task.Wait(Long()).code(), StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(task.error()), HasSubstr("was given up"));
  EXPECT_LT(fakes_[0]->restarts(), OrchestratorCore::kMaxStarts);
}

// Whose results arrive only then, was answered before.
TEST_F(OrchestratorCoreLossTest, AfterAnAnswerThatEndsTheWorkerNothingIsBegun) {
  Start(1);
  const TaskHandle fatal = SubmitTo(0);
  const TaskHandle slow = SubmitTo(0);
  const TaskHandle behind = SubmitTo(0);
  ASSERT_TRUE(Posted(0, 3));
  fakes_[0]->Answer(DeviceLost("a fault"));
  EXPECT_EQ(fatal.Wait(Long()).code(), StatusCode::kDeviceLost);
  fakes_[0]->Answer(OkStatus(), /*late=*/true);
  EXPECT_TRUE(IsOk(slow.Wait(Long())));
  fakes_[0]->Lose(Unavailable("it ended"));
  ASSERT_TRUE(Soon([&] { return fakes_[0]->restarts() == 1; }));
  ASSERT_TRUE(Soon([&] { return fakes_[0]->posted() == 1 || behind.done(); }));
  ASSERT_FALSE(behind.done()) << "it runs again";
  fakes_[0]->Answer();
  EXPECT_TRUE(IsOk(behind.Wait(Long())));
}

TEST_F(OrchestratorCoreLossTest, WhatWasHandedToALostThreadIsNotRunAgain) {
  transport_ = Transport::kThread;
  Start(1);
  const TaskHandle begun = SubmitTo(0);
  const TaskHandle behind = SubmitTo(0);
  fakes_[0]->Lose(Unavailable("it hangs"));
  EXPECT_EQ(begun.Wait(Long()).code(), StatusCode::kUnavailable);
  EXPECT_EQ(MessageOf(begun.error()), "task 1: it hangs");
  EXPECT_EQ(behind.Wait(Long()).code(), StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(behind.error()), HasSubstr("task 2: it was posted to a thread that was "));
  ASSERT_TRUE(Up(0));
  EXPECT_EQ(fakes_[0]->ever_posted(), 2U);
  // It ended with an answer: then nothing was begun after it.
  const TaskHandle last = SubmitTo(0);
  const TaskHandle again = SubmitTo(0);
  fakes_[0]->AnswerAndLose(Status(StatusCode::kDeviceLost, "the device is lost"));
  EXPECT_EQ(last.Wait(Long()).code(), StatusCode::kDeviceLost);
  ASSERT_TRUE(Posted(0, 1));
  fakes_[0]->Answer();
  EXPECT_TRUE(IsOk(again.Wait(Long())));
}

TEST_F(OrchestratorCoreLossTest, ABlockThatWasFreedInUseAndLostIsForgotten) {
  Start(1);
  const DeviceAddress block = Need(core_->Malloc(0, 1_KiB));
  const TaskHandle task = Submit(Arguments().Add(Tag::kIn, At<float>(block, 1)));
  EXPECT_TRUE(IsOk(core_->Free(0, block)));
  fakes_[0]->Lose(Unavailable("it died"));
  EXPECT_EQ(task.Wait(Long()).code(), StatusCode::kUnavailable);
  ASSERT_TRUE(Up(0));
  EXPECT_EQ(core_->Free(0, block).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(fakes_[0]->freed().empty());
}

TEST_F(OrchestratorCoreLossTest, ABlockThatWasLostIsNotTheOneThatHasItsAddressNow) {
  Start(1);
  BlockId old = 0;
  const DeviceAddress address = Need(core_->Malloc(0, 1_KiB, &old));
  fakes_[0]->Lose(Unavailable("it died"));
  EXPECT_FALSE(ReportOf(0).up);
  ASSERT_TRUE(Up(0));
  BlockId fresh = 0;
  ASSERT_EQ(Need(core_->Malloc(0, 1_KiB, &fresh)), address);
  EXPECT_NE(fresh, old);
  char byte = 0;
  const Status stale = core_->Free(0, address, old);
  EXPECT_EQ(stale.code(), StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(stale), HasSubstr("another one is there now"));
  EXPECT_EQ(core_->CopyTo(0, address, &byte, 1_B, old).code(), StatusCode::kUnavailable);
  EXPECT_EQ(core_->CopyFrom(0, &byte, address, 1_B, old).code(), StatusCode::kUnavailable);
  EXPECT_TRUE(fakes_[0]->freed().empty());
  const Arguments arguments = Arguments().Add(Tag::kIn, At<float>(address, 1));
  const auto submit = [&](std::span<const BlockId> blocks) {
    return core_->Submit(callable_, arguments, {.worker = {}, .timeout = {}, .blocks = blocks})
        .status()
        .code();
  };
  EXPECT_EQ(submit({&old, 1}), StatusCode::kUnavailable);
  const BlockId two[] = {fresh, fresh};
  EXPECT_EQ(submit(two), StatusCode::kInvalidArgument);
  EXPECT_EQ(submit({&fresh, 1}), StatusCode::kOk);
  fakes_[0]->Answer();
  EXPECT_TRUE(IsOk(core_->WaitAll(Long())));
  EXPECT_TRUE(IsOk(core_->Free(0, address, fresh)));
  EXPECT_EQ(fakes_[0]->freed(), std::vector<DeviceAddress>{address});
}

// What is at its address now may be shorter, or nothing, or another worker's.
TEST_F(OrchestratorCoreLossTest, TheNumberOfABlockDecidesAndNotItsAddress) {
  Start(2);
  BlockId old = 0;
  BlockId other = 0;
  const DeviceAddress address = Need(core_->Malloc(0, 8_KiB, &old));
  ASSERT_EQ(Need(core_->Malloc(1, 8_KiB, &other)), address);
  const Arguments arguments = Arguments().Add(Tag::kIn, At<float>(address, 2048));
  const auto submit = [&](BlockId block) {
    return core_->Submit(callable_, arguments,
                         {.worker = {}, .timeout = {}, .blocks = {&block, 1}});
  };
  EXPECT_EQ(submit(0).status().code(), StatusCode::kInvalidArgument) << "one of two workers";
  for (FakeWorker* fake : fakes_) fake->SetEager(true);
  const TaskHandle there = Need(submit(other));
  EXPECT_TRUE(IsOk(there.Wait(Long())));
  EXPECT_EQ(there.worker(), 1U);
  EXPECT_EQ(Need(submit(old)).worker(), 0U);
  EXPECT_TRUE(IsOk(core_->WaitAll(Long())));

  fakes_[0]->Lose(Unavailable("it died"));
  EXPECT_FALSE(ReportOf(0).up);
  ASSERT_TRUE(Up(0));
  const Status lost = submit(old).status();
  EXPECT_EQ(lost.code(), StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(lost), HasSubstr("were lost with it"));
  ASSERT_EQ(Need(core_->Malloc(0, 4_KiB)), address);
  const Status shorter = submit(old).status();
  EXPECT_EQ(shorter.code(), StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(shorter), HasSubstr("argument 0: the block of number"));
  EXPECT_TRUE(IsOk(core_->Free(0, address)));
  EXPECT_EQ(submit(old).status().code(), StatusCode::kUnavailable);
}

TEST_F(OrchestratorCoreLossTest, NoBlockIsEmpty) {
  Start(1);
  EXPECT_EQ(core_->Malloc(0, Bytes(0)).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(OrchestratorCoreLossTest, StopDoesNotWaitForAWorkerThatIsBeingStarted) {
  Start(2);
  fakes_[0]->HoldRestart(true);
  fakes_[0]->Lose(Unavailable("it died"));
  EXPECT_FALSE(ReportOf(0).up);
  EXPECT_TRUE(Soon([&] { return fakes_[0]->restarts() == 1; }));
  TaskHandle pinned = SubmitTo(0);
  core_->Stop();
  EXPECT_EQ(pinned.error().code(), StatusCode::kCancelled);
  EXPECT_EQ(MessageOf(pinned.error()), "task 1: it was not run: its orchestrator was destroyed");
  // The thread that is left behind has the core, and lets it go.
  const std::weak_ptr<OrchestratorCore> core = core_;
  FakeWorker* const fake = fakes_[0];
  core_.reset();
  pinned = TaskHandle();
  ASSERT_FALSE(core.expired());
  fake->HoldRestart(false);
  EXPECT_TRUE(Soon([&] { return core.expired(); }));
}

TEST_F(OrchestratorCoreLossTest, StopSaysWhatWasNotBegun) {
  Start(1);
  const TaskHandle begun = SubmitTo(0);
  const TaskHandle behind = SubmitTo(0);
  ASSERT_EQ(fakes_[0]->posted(), 2U);
  core_->Stop();
  EXPECT_EQ(begun.error().code(), StatusCode::kUnavailable);
  EXPECT_EQ(behind.error().code(), StatusCode::kCancelled);
  EXPECT_EQ(MessageOf(behind.error()), "task 2: it was not run: its orchestrator was destroyed");
  core_.reset();
}

TEST_F(OrchestratorCoreLossTest, WhatWasOnALostWorkerIsUnavailable) {
  Start(2);
  const DeviceAddress block = Need(core_->Malloc(0, 1_KiB));
  const Arguments arguments = Arguments().Add(Tag::kInOut, At<float>(block, 16));
  const TaskHandle running = Submit(arguments);
  const TaskHandle waiting = Submit(arguments);
  const TaskHandle elsewhere = SubmitTo(1);
  fakes_[0]->Lose(Unavailable("it died"));
  EXPECT_EQ(running.Wait(Long()).code(), StatusCode::kUnavailable);
  EXPECT_EQ(waiting.Wait(Long()).code(), StatusCode::kAborted) << "it depends on the other";
  EXPECT_FALSE(elsewhere.done());
  ASSERT_TRUE(Up(0));
  const Status use = core_->Submit(callable_, arguments, {}).status();
  EXPECT_EQ(use.code(), StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(use), HasSubstr("argument 0: the 1 KiB at"));
  EXPECT_THAT(MessageOf(use), HasSubstr("were lost with it"));
  float value = 0;
  EXPECT_EQ(core_->CopyTo(0, block, &value, 4_B).code(), StatusCode::kUnavailable);
  EXPECT_EQ(core_->Free(0, block).code(), StatusCode::kUnavailable);
  EXPECT_EQ(core_->Free(0, block).code(), StatusCode::kInvalidArgument) << "now it is forgotten";
  // The worker itself is as good as new.
  const DeviceAddress fresh = Need(core_->Malloc(0, 1_KiB));
  const TaskHandle again = Submit(Arguments().Add(Tag::kInOut, At<float>(fresh, 16)));
  ASSERT_TRUE(Posted(0, 1));
  fakes_[0]->Answer();
  EXPECT_TRUE(IsOk(again.Wait(Long())));
  fakes_[1]->Answer();
  EXPECT_TRUE(IsOk(elsewhere.Wait(Long())));
}

TEST_F(OrchestratorCoreLossTest, ATaskThatWaitsForAnotherAndHasItsMemoryOnALostWorkerEnds) {
  Start(2);
  std::vector<float> x(4);
  const DeviceAddress block = Need(core_->Malloc(0, 1_KiB));
  const TaskHandle writer = SubmitTo(1, Arguments().Add(Tag::kOut, On(x)));
  const TaskHandle waiting =
      Submit(Arguments().Add(Tag::kIn, On(x)).Add(Tag::kInOut, At<float>(block, 16)));
  fakes_[0]->Lose(Unavailable("it died"));
  EXPECT_FALSE(core_->Report()[0].up && core_->Report()[0].restarts == 0);
  EXPECT_EQ(waiting.Wait(Long()).code(), StatusCode::kUnavailable);
  EXPECT_FALSE(writer.done());
}

TEST_F(OrchestratorCoreLossTest, TasksThatNeedNoWorkerOfTheirOwnGoToTheOthers) {
  Start(2);
  fakes_[0]->FailRestart(Unavailable("no such device"));
  fakes_[0]->Lose(Unavailable("it died"));
  fakes_[1]->SetEager(true);
  for (int i = 0; i < 10; ++i) {
    const TaskHandle task = Submit();
    EXPECT_TRUE(IsOk(task.Wait(Long())));
    EXPECT_EQ(task.worker(), WorkerId{1});
  }
}

TEST_F(OrchestratorCoreLossTest, AWorkerThatDoesNotStartIsGivenUp) {
  Start(2);
  std::vector<float> x(4);
  const TaskHandle other = SubmitTo(1, Arguments().Add(Tag::kOut, On(x)));
  const TaskHandle later = SubmitTo(0, Arguments().Add(Tag::kIn, On(x)));
  fakes_[0]->FailRestart(NotFound("no such device"));
  fakes_[0]->Lose(Unavailable("it died"));
  const TaskHandle pinned = SubmitTo(0);
  EXPECT_EQ(pinned.Wait(Long()).code(), StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(pinned.error()), HasSubstr("worker 0 (default) was given up"));
  EXPECT_THAT(MessageOf(pinned.error()), HasSubstr("no such device"));
  EXPECT_LE(fakes_[0]->restarts(), OrchestratorCore::kMaxStarts);
  const Arguments none;
  EXPECT_EQ(core_->Submit(callable_, none, {.worker = 0, .timeout = {}}).status().code(),
            StatusCode::kUnavailable);
  EXPECT_EQ(core_->Malloc(0, 1_KiB).status().code(), StatusCode::kUnavailable);
  fakes_[1]->Answer();
  EXPECT_TRUE(IsOk(other.Wait(Long())));
  EXPECT_EQ(later.Wait(Long()).code(), StatusCode::kUnavailable) << "it got ready too late";
  EXPECT_FALSE(ReportOf(0).up);
  EXPECT_TRUE(Need(core_->Register(NoopImage(7))).id != 0) << "the other worker can run it";
  // With the last one goes everything.
  const TaskHandle anywhere = Submit();
  const TaskHandle behind = Submit();
  fakes_[1]->FailRestart(NotFound("no such device"));
  fakes_[1]->Lose(Unavailable("it died"));
  EXPECT_EQ(anywhere.Wait(Long()).code(), StatusCode::kUnavailable);
  EXPECT_EQ(behind.Wait(Long()).code(), StatusCode::kUnavailable);
  EXPECT_EQ(Submit().Wait(Long()).code(), StatusCode::kUnavailable);
  EXPECT_EQ(core_->live_tasks(), 0U);
}

// The end of a task makes others ready that can run nowhere, and ends with them what comes after.
TEST_F(OrchestratorCoreLossTest, WhatGetsReadyForAWorkerThatWasGivenUpEndsWithAllThatFollows) {
  Start(2);
  std::vector<float> x(4);
  std::vector<float> y(4);
  const TaskHandle first = SubmitTo(0, Arguments().Add(Tag::kOut, On(x)));
  const TaskHandle second = SubmitTo(1, Arguments().Add(Tag::kIn, On(x)).Add(Tag::kOut, On(y)));
  const TaskHandle third = SubmitTo(1, Arguments().Add(Tag::kIn, On(x)).Add(Tag::kInOut, On(y)));
  fakes_[1]->FailRestart(NotFound("no such device"));
  fakes_[1]->Lose(Unavailable("it died"));
  EXPECT_FALSE(ReportOf(1).up);
  EXPECT_EQ(core_->Malloc(1, 1_KiB).status().code(), StatusCode::kUnavailable) << "given up";
  fakes_[0]->Answer();
  EXPECT_TRUE(IsOk(first.Wait(Long())));
  EXPECT_EQ(second.Wait(Long()).code(), StatusCode::kUnavailable);
  EXPECT_EQ(third.Wait(Long()).code(), StatusCode::kAborted);
  EXPECT_EQ(core_->live_tasks(), 0U);
}

TEST_F(OrchestratorCoreLossTest, AWorkerThatIsLostRightAfterItWasStartedIsGivenUp) {
  Start(2);
  for (int i = 0; i < OrchestratorCore::kMaxStarts; ++i) {
    ASSERT_TRUE(Up(0)) << i;
    fakes_[0]->Lose(Unavailable("it died"));
    EXPECT_FALSE(ReportOf(0).up);
  }
  EXPECT_EQ(core_->Malloc(0, 1_KiB).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(fakes_[0]->restarts(), OrchestratorCore::kMaxStarts - 1);
}

TEST_F(OrchestratorCoreLossTest, T10_TasksThatCrashAWorkerDoNotMakeItGivenUp) {
  Start(1);
  for (int i = 0; i < 2 * OrchestratorCore::kMaxStarts; ++i) {
    const TaskHandle task = Submit();
    ASSERT_TRUE(Posted(0, 1));
    fakes_[0]->Lose(Unavailable("it died"));
    EXPECT_EQ(task.Wait(Long()).code(), StatusCode::kUnavailable);
    ASSERT_TRUE(Up(0));
  }
  EXPECT_EQ(ReportOf(0).restarts, 2U * OrchestratorCore::kMaxStarts);
}

}  // namespace
}  // namespace keel::task
