// What the orchestrator promises, with every transport.
#include "task/orchestrator_test.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <latch>
#include <thread>

#include "base/forked_child_test.h"
#include "task/blocked_memory_test.h"
#include "task/processes_test.h"

namespace keel::task {
namespace {

INSTANTIATE_TEST_SUITE_P(, OrchestratorTest, ::testing::ValuesIn(Transports()), TransportName);

TEST_P(OrchestratorTest, RunsATaskWithTensorsOnTheHost) {
  Start(2);
  const Callable add = Registered(AddImage());
  const std::vector<float> a(1000, 1.5F);
  const std::vector<float> b(1000, 2.0F);
  std::vector<float> c(1000);
  const TaskHandle task =
      Submit(add, Arguments().Add(Tag::kIn, On(a)).Add(Tag::kIn, On(b)).Add(Tag::kOut, On(c)));
  EXPECT_TRUE(IsOk(task.Wait(Long())));
  EXPECT_EQ(c, std::vector<float>(1000, 3.5F));
  EXPECT_TRUE(task.done());
  EXPECT_TRUE(task.error().ok());
  EXPECT_TRUE(task.worker().has_value());
  EXPECT_EQ(orchestrator_->live_tasks(), 0U);
}

TEST_P(OrchestratorTest, NobodyNeedsToWaitForAChainToRun) {
  Start(2);
  const Callable axpy = Registered(AxpyImage());
  const std::vector<float> x(100, 1.0F);
  std::vector<float> y(100, 0.0F);
  TaskHandle last;
  for (int i = 0; i < 50; ++i) {
    last = Submit(axpy, Arguments().Add(Tag::kIn, On(x)).Add(Tag::kInOut, On(y)).AddScalar(1.0F));
  }
  EXPECT_TRUE(Soon([&] { return last.done(); }));
  EXPECT_EQ(y, std::vector<float>(100, 50.0F));
}

TEST_P(OrchestratorTest, T2_ResidentTensorsBetweenOutputsDoNotShiftThem) {
  Start(2);
  const Callable add = Registered(AddImage());
  const std::vector<float> a(64, 1.0F);
  const DeviceAddress b = Upload(1, std::vector<float>(64, 5.0F));
  std::vector<float> c(64);
  const TaskHandle task = Submit(
      add, Arguments().Add(Tag::kIn, On(a)).Add(Tag::kIn, At<float>(b, 64)).Add(Tag::kOut, On(c)));
  EXPECT_TRUE(IsOk(task.Wait(Long())));
  EXPECT_EQ(c, std::vector<float>(64, 6.0F));
  EXPECT_EQ(task.worker(), WorkerId{1}) << "where its tensor is";

  // A resident output between a host input and a host output's worth of work.
  const DeviceAddress sum = Need(orchestrator_->Malloc(1, 256_B));
  EXPECT_TRUE(IsOk(Submit(add, Arguments()
                                   .Add(Tag::kIn, At<float>(b, 64))
                                   .Add(Tag::kIn, On(a))
                                   .Add(Tag::kOut, At<float>(sum, 64)))
                       .Wait(Long())));
  EXPECT_EQ(Download<float>(1, sum, 64), std::vector<float>(64, 6.0F));
  EXPECT_EQ(Download<float>(1, b, 64), std::vector<float>(64, 5.0F));

  // One that is written between two outputs on the host.
  std::vector<std::uint32_t> first(64);
  std::vector<std::uint32_t> last(64);
  const DeviceAddress middle = Upload(1, std::vector<std::uint32_t>(64, 9));
  EXPECT_TRUE(
      IsOk(Submit(Registered(ThreeImage()), Arguments()
                                                .Add(Tag::kOut, On(first))
                                                .Add(Tag::kOut, At<std::uint32_t>(middle, 64))
                                                .Add(Tag::kOut, On(last)))
               .Wait(Long())));
  EXPECT_EQ(first, std::vector<std::uint32_t>(64, 1));
  EXPECT_EQ(Download<std::uint32_t>(1, middle, 64), std::vector<std::uint32_t>(64, 2));
  EXPECT_EQ(last, std::vector<std::uint32_t>(64, 3));
}

TEST_P(OrchestratorTest, T7_InteriorViewsOfABlockAreOrdered) {
  Start(1);
  const Callable fill = Registered(FillImage());
  const Callable axpy = Registered(AxpyImage());
  const DeviceAddress block = Upload(0, std::vector<float>(1000, 1.0F));
  const std::vector<float> x(100, 2.0F);
  // Zeros in the middle, then an addition to a view that overlaps them by half.
  Submit(fill, Arguments()
                   .Add(Tag::kOut, At<std::uint32_t>(block + 2000_B, 100))
                   .AddScalar(std::uint32_t{0}));
  Submit(axpy, Arguments()
                   .Add(Tag::kIn, On(x))
                   .Add(Tag::kInOut, At<float>(block + 2200_B, 100))
                   .AddScalar(1.0F));
  std::vector<float> expected(1000, 1.0F);
  for (std::size_t i = 500; i < 600; ++i) expected[i] = 0.0F;
  for (std::size_t i = 550; i < 650; ++i) expected[i] += 2.0F;
  // CopyFrom waits for those that write.
  EXPECT_EQ(Download<float>(0, block, 1000), expected);
}

TEST_P(OrchestratorTest, T1_EqualAddressesOfTwoWorkersAreDifferentMemory) {
  OrchestratorOptions options = Options(2);
  if (GetParam() == Transport::kThread) {
    options.workers = ThreadsOn(
        {.devices = 2, .memory = 1_GiB, .granularity = 2_MiB, .unified = false, .arena = 8_GiB});
  }
  std::optional<ScopedSteadyAddresses> steady;  // of ranks, by whoever has started them
  if (GetParam() == Transport::kProcess) steady.emplace();
  Start(std::move(options));
  const Callable fill = Registered(FillImage());
  const DeviceAddress one = Upload(0, std::vector<std::uint32_t>(64, 1));
  const DeviceAddress two = Upload(1, std::vector<std::uint32_t>(64, 2));
  if (GetParam() == Transport::kThread || AddressesAreSteady()) {
    ASSERT_EQ(one, two) << "the premise";
  }
  const Arguments arguments =
      Arguments().Add(Tag::kOut, At<std::uint32_t>(two, 64)).AddScalar(std::uint32_t{7});
  if (one == two) {
    const auto unclear = orchestrator_->Submit(fill, arguments);
    EXPECT_EQ(unclear.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(MessageOf(unclear.status()), HasSubstr("worker 0 and of worker 1"));
  }
  const TaskHandle task = Submit(fill, arguments, {.worker = 1, .timeout = {}});
  EXPECT_TRUE(IsOk(task.Wait(Long())));
  EXPECT_EQ(task.worker(), WorkerId{1});
  EXPECT_EQ(Download<std::uint32_t>(0, one, 64), std::vector<std::uint32_t>(64, 1));
  EXPECT_EQ(Download<std::uint32_t>(1, two, 64), std::vector<std::uint32_t>(64, 7));
  EXPECT_TRUE(IsOk(orchestrator_->Free(0, one)));
  EXPECT_EQ(Download<std::uint32_t>(1, two, 64), std::vector<std::uint32_t>(64, 7));
  if (one != two) GTEST_SKIP() << kAddressesVary;
}

TEST_P(OrchestratorTest, ArgumentsThatDoNotCheckAreAnErrorAtSubmit) {
  Start(2);
  const Callable noop = Registered(NoopImage());
  Arguments wrong;
  wrong.Add(Tag::kIn, Tensor{.rank = 9});
  const Status alone = orchestrator_->Submit(noop, wrong).status();
  EXPECT_EQ(alone.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(alone), HasSubstr("tensor 0"));
  const Status member =
      orchestrator_->SubmitGroup(noop, std::vector<Arguments>{Arguments(), wrong}).status();
  EXPECT_EQ(member.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(member), HasSubstr("member 1: tensor 0"));
  EXPECT_TRUE(IsOk(Submit(noop, {}).Wait(Long())));
}

TEST_P(OrchestratorTest, T3_AWorkerThatIsNotThereIsAnErrorAtSubmit) {
  Start(2);
  const Callable noop = Registered(NoopImage());
  const Status unknown = orchestrator_->Submit(noop, {}, {.worker = 2, .timeout = {}}).status();
  EXPECT_EQ(unknown.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(unknown), HasSubstr("no worker 2: they are numbered from 0 to 1"));
  const std::vector<Arguments> members(2);
  const std::vector<WorkerId> twice{1, 1};
  const Status duplicate = orchestrator_->SubmitGroup(noop, members, twice).status();
  EXPECT_EQ(duplicate.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(duplicate), HasSubstr("worker 1 has a member of the group already"));
  const std::vector<WorkerId> missing{0, 7};
  const Status wrong = orchestrator_->SubmitGroup(noop, members, missing).status();
  EXPECT_EQ(wrong.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(wrong), HasSubstr("member 1: there is no worker 7"));
  const std::vector<WorkerId> open{kAnyWorker, 2};
  EXPECT_THAT(MessageOf(orchestrator_->SubmitGroup(noop, members, open).status()),
              HasSubstr("member 1: there is no worker 2"));
  EXPECT_THAT(MessageOf(orchestrator_->SubmitGroup(noop, members, {open.data(), 1}).status()),
              HasSubstr("1 workers are named for 2 members"));
  const std::vector<Arguments> many(3);
  EXPECT_THAT(MessageOf(orchestrator_->SubmitGroup(noop, many).status()),
              HasSubstr("needs as many workers; there are 2"));
  EXPECT_EQ(orchestrator_->SubmitGroup(noop, {}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(orchestrator_->Malloc(9, 1_KiB).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(orchestrator_->live_tasks(), 0U) << "nothing was submitted";
}

TEST_P(OrchestratorTest, T3_ATaskForABusyWorkerDelaysNobodyElse) {
  Start(2);
  const Callable noop = Registered(NoopImage());
  Held held(*this, 0);
  const TaskHandle pinned = Submit(noop, {}, {.worker = 0, .timeout = {}});
  for (int i = 0; i < 20; ++i) {
    const TaskHandle other = Submit(noop, {});
    EXPECT_TRUE(IsOk(other.Wait(Long())));
    EXPECT_EQ(other.worker(), WorkerId{1});
  }
  EXPECT_FALSE(pinned.done());
  EXPECT_FALSE(held.task.done());
  held.Release();
  EXPECT_TRUE(IsOk(pinned.Wait(Long())));
  EXPECT_EQ(pinned.worker(), WorkerId{0});
}

TEST_P(OrchestratorTest, T3_ATensorThatTakesLongToCopyDelaysItsOwnWorkerOnly) {
  Start(2);
  const Callable add = Registered(AddImage());
  const Callable fill = Registered(FillImage());
  const Callable noop = Registered(NoopImage());
  BlockedMemory blocked((1_MiB).count());
  const auto zeros = blocked.As<float>();
  const std::vector<float> twos(zeros.size(), 2.0F);
  std::vector<float> sums(zeros.size());
  std::vector<std::uint32_t> few(8);
  const TaskHandle slow = Submit(
      add, Arguments().Add(Tag::kIn, On(zeros)).Add(Tag::kIn, On(twos)).Add(Tag::kOut, On(sums)),
      {.worker = 0, .timeout = {}});
  ASSERT_TRUE(blocked.AwaitTouched());
  const TaskHandle behind =
      Submit(fill, Arguments().Add(Tag::kOut, On(few)).AddScalar(9U), {.worker = 0, .timeout = {}});
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(IsOk(Submit(noop, {}, {.worker = 1, .timeout = {}}).Wait(Long())));
  }
  const DeviceAddress block = Upload(0, std::vector<float>(8, 3.0F));
  EXPECT_EQ(Download<float>(0, block, 8), std::vector<float>(8, 3.0F));
  EXPECT_EQ(slow.Wait(Deadline::After(milliseconds(1))).code(), StatusCode::kDeadlineExceeded);
  EXPECT_FALSE(behind.done());
  blocked.Release();
  EXPECT_TRUE(IsOk(slow.Wait(Long())));
  EXPECT_TRUE(IsOk(behind.Wait(Long())));
  EXPECT_EQ(sums, twos);
  EXPECT_EQ(few, std::vector<std::uint32_t>(8, 9));
}

TEST_P(OrchestratorTest, T3_ResultsThatTakeLongToCopyDelayTheirOwnTaskOnly) {
  Start(2);
  const Callable fill = Registered(FillImage());
  const Callable noop = Registered(NoopImage());
  BlockedMemory blocked((1_MiB).count());
  const auto values = blocked.As<std::uint32_t>();
  const TaskHandle slow = Submit(fill, Arguments().Add(Tag::kOut, On(values)).AddScalar(5U),
                                 {.worker = 0, .timeout = {}});
  // Somebody has to collect it first.
  EXPECT_EQ(slow.Wait(Deadline::After(milliseconds(1))).code(), StatusCode::kDeadlineExceeded);
  ASSERT_TRUE(blocked.AwaitTouched());
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(IsOk(Submit(noop, {}, {.worker = 1, .timeout = {}}).Wait(Long())));
    // A thread copies by itself; of a process somebody else does, and it goes on.
    if (GetParam() == Transport::kThread) continue;
    EXPECT_TRUE(IsOk(Submit(noop, {}, {.worker = 0, .timeout = {}}).Wait(Long())));
  }
  EXPECT_FALSE(slow.done());
  blocked.Release();
  EXPECT_TRUE(IsOk(slow.Wait(Long())));
  EXPECT_TRUE(std::ranges::all_of(values, [](std::uint32_t value) { return value == 5; }));
}

TEST_P(OrchestratorTest, ResidentTensorsMustBeInBlocksOfOneWorker) {
  Start(2);
  const Callable noop = Registered(NoopImage());
  const DeviceAddress zero = Upload(0, std::vector<float>(64));
  const Status nowhere =
      orchestrator_->Submit(noop, Arguments().Add(Tag::kIn, At<float>(DeviceAddress(0x123000), 4)))
          .status();
  EXPECT_EQ(nowhere.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(nowhere), HasSubstr("argument 0: the 16 B at 0x123000 are resident in no"));
  const Status beyond =
      orchestrator_->Submit(noop, Arguments().Add(Tag::kIn, At<float>(zero, 65))).status();
  EXPECT_EQ(beyond.code(), StatusCode::kInvalidArgument);
  if (GetParam() == Transport::kThread) {
    const DeviceAddress one = Upload(1, std::vector<float>(64));
    const Status both =
        orchestrator_
            ->Submit(
                noop,
                Arguments().Add(Tag::kIn, At<float>(zero, 64)).Add(Tag::kIn, At<float>(one, 64)))
            .status();
    EXPECT_EQ(both.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(MessageOf(both), HasSubstr("argument 0 on worker 0, argument 1 on worker 1"));
    const Status other = orchestrator_
                             ->Submit(noop, Arguments().Add(Tag::kIn, At<float>(one, 64)),
                                      {.worker = 0, .timeout = {}})
                             .status();
    EXPECT_THAT(MessageOf(other), HasSubstr("resident on worker 1, and the task names worker 0"));
  }
}

TEST_P(OrchestratorTest, T5_ErrorsOfFreesAndCopiesAreReturned) {
  Start(1);
  const DeviceAddress block = Need(orchestrator_->Malloc(0, 1_KiB));
  std::array<std::byte, 2048> bytes{};
  EXPECT_EQ(orchestrator_->CopyTo(0, block, bytes.data(), 1025_B).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(orchestrator_->CopyFrom(0, bytes.data(), block + 1_B, 1_KiB).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(orchestrator_->Free(0, block + 256_B).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(IsOk(orchestrator_->Free(0, block)));
  const Status twice = orchestrator_->Free(0, block);
  EXPECT_EQ(twice.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(twice), HasSubstr("is not what Malloc returned, or was freed before"));
  EXPECT_EQ(orchestrator_->CopyFrom(0, bytes.data(), block, 1_B).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(orchestrator_->Malloc(0, 1_TiB).status().code(), StatusCode::kResourceExhausted);
}

TEST_P(OrchestratorTest, CopiesComeAfterTheTasksThatTouchTheirBytesOnTheHost) {
  Start(2);
  const Callable fill = Registered(FillImage());
  const DeviceAddress block = Upload(1, std::vector<std::uint32_t>(64, 1));
  std::vector<std::uint32_t> written(64);
  std::vector<std::uint32_t> read(64, 7);
  Held held(*this, 0);
  // On a worker that is busy, and so not done.
  const TaskHandle writer =
      Submit(fill, Arguments().Add(Tag::kOut, On(written)).AddScalar(std::uint32_t{5}),
             {.worker = 0, .timeout = {}});
  const TaskHandle reader = Submit(Registered(NoopImage()), Arguments().Add(Tag::kIn, On(read)),
                                   {.worker = 0, .timeout = {}});
  std::atomic<int> copied{0};
  std::latch begun(2);
  std::thread from([&] {
    begun.count_down();
    EXPECT_TRUE(IsOk(orchestrator_->CopyFrom(1, read.data(), block, 256_B)));
    EXPECT_TRUE(reader.done());
    ++copied;
  });
  std::thread to([&] {
    begun.count_down();
    EXPECT_TRUE(IsOk(orchestrator_->CopyTo(1, block, written.data(), 256_B)));
    EXPECT_TRUE(writer.done());
    ++copied;
  });
  begun.wait();
  // What they do not touch need not wait. So often that the two would be over, if they could be.
  for (std::uint32_t i = 0; i < 50; ++i) {
    EXPECT_EQ(Download<std::uint32_t>(1, Upload(1, std::vector<std::uint32_t>(64, i)), 64),
              std::vector<std::uint32_t>(64, i));
  }
  EXPECT_EQ(copied, 0);
  held.Release();
  from.join();
  to.join();
  EXPECT_EQ(Download<std::uint32_t>(1, block, 64), std::vector<std::uint32_t>(64, 5));
}

TEST_P(OrchestratorTest, MemoryThatIsInUseGoesWhenItsTasksAreDone) {
  Start(1);
  const Callable axpy = Registered(AxpyImage());
  const DeviceAddress y = Upload(0, std::vector<float>(64, 1.0F));
  const std::vector<float> x(64, 1.0F);
  const Arguments arguments =
      Arguments().Add(Tag::kIn, On(x)).Add(Tag::kInOut, At<float>(y, 64)).AddScalar(2.0F);
  Held held(*this, 0);
  const TaskHandle task = Submit(axpy, arguments);
  // What the device has, of a thread.
  const auto allocated = [&] {
    return memories_[0] != nullptr ? memories_[0]->allocator().allocated() : Bytes();
  };
  const Bytes used = allocated();
  EXPECT_TRUE(IsOk(orchestrator_->Free(0, y)));
  const Status after = orchestrator_->Submit(axpy, arguments).status();
  EXPECT_EQ(after.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(after), HasSubstr("were freed"));
  EXPECT_FALSE(task.done());
  EXPECT_EQ(allocated(), used);
  held.Release();
  EXPECT_TRUE(IsOk(task.Wait(Long())));
  EXPECT_TRUE(used.empty() || Soon([&] { return allocated() < used; }));
  EXPECT_EQ(orchestrator_->Free(0, y).code(), StatusCode::kInvalidArgument);
}

TEST_P(OrchestratorTest, AScopeFreesWhatWasAllocatedThroughIt) {
  Start(2);
  DeviceAddress kept;
  {
    Orchestrator::Scope scope(*orchestrator_);
    kept = Need(scope.Malloc(1, 1_KiB));
    EXPECT_TRUE(scope.Malloc(0, 1_KiB).ok());
    EXPECT_TRUE(IsOk(scope.Close()));
    EXPECT_EQ(orchestrator_->Free(1, kept).code(), StatusCode::kInvalidArgument) << "freed";
    const DeviceAddress again = Need(scope.Malloc(1, 1_KiB));
    EXPECT_TRUE(IsOk(orchestrator_->Free(1, again)));
    EXPECT_EQ(scope.Close().code(), StatusCode::kUnavailable) << "T5: with the error";
    BlockId block = 0;
    kept = Need(scope.Malloc(1, 1_KiB, &block));
    EXPECT_NE(block, 0U);
    std::byte byte{};
    EXPECT_TRUE(IsOk(orchestrator_->CopyTo(1, kept, &byte, 1_B, block)));
    EXPECT_EQ(orchestrator_->CopyTo(1, kept, &byte, 1_B, block + 1).code(),
              StatusCode::kUnavailable);
  }
  EXPECT_EQ(orchestrator_->Free(1, kept).code(), StatusCode::kInvalidArgument);
}

TEST_P(OrchestratorTest, SomebodyElsesMemoryIsUsedAndNeverFreed) {
  if (GetParam() != Transport::kThread) {
    GTEST_SKIP()
        << "OrchestratorReferenceTest has it: code of the worker's process must allocate it";
  }
  Start(1);
  memory::DeviceMemory& memory = *memories_[0];
  const hal::Stream stream = Need(hal::Stream::Create(memory.device()));
  const DeviceAddress theirs = Need(memory.allocator().Allocate(4_KiB, stream.get()));
  EXPECT_TRUE(IsOk(orchestrator_->RegisterMemory(0, theirs, 4_KiB)));
  EXPECT_EQ(orchestrator_->RegisterMemory(0, theirs + 1_KiB, 8_KiB).code(),
            StatusCode::kAlreadyExists);
  const Callable fill = Registered(FillImage());
  Submit(fill, Arguments()
                   .Add(Tag::kOut, At<std::uint32_t>(theirs + 1_KiB, 16))
                   .AddScalar(std::uint32_t{9}));
  EXPECT_EQ(Download<std::uint32_t>(0, theirs + 1_KiB, 16), std::vector<std::uint32_t>(16, 9));
  EXPECT_EQ(orchestrator_->Free(0, theirs).code(), StatusCode::kInvalidArgument);
  {
    Held held(*this, 0);
    const TaskHandle user = Submit(
        fill,
        Arguments().Add(Tag::kOut, At<std::uint32_t>(theirs, 16)).AddScalar(std::uint32_t{1}));
    const Status busy = orchestrator_->UnregisterMemory(0, theirs);
    EXPECT_EQ(busy.code(), StatusCode::kFailedPrecondition);
    held.Release();
    EXPECT_TRUE(IsOk(user.Wait(Long())));
  }
  EXPECT_TRUE(IsOk(orchestrator_->UnregisterMemory(0, theirs)));
  EXPECT_EQ(orchestrator_->UnregisterMemory(0, theirs).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(IsOk(memory.allocator().Free(theirs)));
}

TEST_P(OrchestratorTest, EqualImagesAreStoredOnceAndUnregisteredTasksStillRun) {
  OrchestratorOptions options = Options(1);
  options.orchestration = Orchestration::kDevice;
  Start(std::move(options));
  const Callable first = Registered(FillImage());
  const Callable second = Registered(FillImage());
  EXPECT_NE(first, second);
  std::vector<std::uint32_t> x(64);
  const Arguments arguments = Arguments().Add(Tag::kOut, On(x)).AddScalar(std::uint32_t{3});
  const TaskHandle task = Submit(first, arguments);
  EXPECT_TRUE(IsOk(orchestrator_->Unregister(first)));
  EXPECT_TRUE(IsOk(task.Wait(Long())));
  EXPECT_EQ(x, std::vector<std::uint32_t>(64, 3));
  const Status gone = orchestrator_->Submit(first, arguments).status();
  EXPECT_EQ(gone.code(), StatusCode::kNotFound);
  EXPECT_EQ(orchestrator_->Unregister(first).code(), StatusCode::kNotFound);
  EXPECT_TRUE(IsOk(Submit(second, arguments).Wait(Long()))) << "the other is still there";
  EXPECT_EQ(orchestrator_->Report()[0].uploads, 1U);
  EXPECT_TRUE(IsOk(orchestrator_->Unregister(second)));
}

TEST_P(OrchestratorTest, UnregisterWhileATaskWaitsLetsItRun) {
  Start(1);
  const Callable fill = Registered(FillImage());
  std::vector<std::uint32_t> x(64);
  Held held(*this, 0);
  const TaskHandle task =
      Submit(fill, Arguments().Add(Tag::kOut, On(x)).AddScalar(std::uint32_t{3}));
  EXPECT_TRUE(IsOk(orchestrator_->Unregister(fill)));
  EXPECT_FALSE(task.done());
  held.Release();
  EXPECT_TRUE(IsOk(task.Wait(Long())));
  EXPECT_EQ(x, std::vector<std::uint32_t>(64, 3));
}

TEST_P(OrchestratorTest, WaitHasADeadlineAndTheTaskGoesOn) {
  Start(1);
  Held held(*this, 0);
  EXPECT_EQ(held.task.Wait(Deadline::Now()).code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(held.task.Wait(Deadline::After(milliseconds(20))).code(),
            StatusCode::kDeadlineExceeded);
  EXPECT_EQ(orchestrator_->WaitAll(Deadline::After(milliseconds(20))).code(),
            StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(held.task.error().ok());
  held.Release();
  EXPECT_TRUE(IsOk(orchestrator_->WaitAll(Long())));
  EXPECT_TRUE(held.task.done());
}

TEST_P(OrchestratorTest, ManyThreadsMayWaitForTheSameAndForOtherTasks) {
  Start(2);
  const Callable noop = Registered(NoopImage());
  Held held(*this, 0);
  const TaskHandle behind = Submit(noop, {}, {.worker = 0, .timeout = {}});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { EXPECT_TRUE(IsOk(behind.Wait(Long()))); });
    threads.emplace_back([&] { EXPECT_TRUE(IsOk(orchestrator_->WaitAll(Long()))); });
    threads.emplace_back([&] {
      for (int j = 0; j < 50; ++j) EXPECT_TRUE(IsOk(Submit(noop, {}).Wait(Long())));
    });
  }
  for (std::size_t i = 2; i < threads.size(); i += 3) threads[i].join();
  EXPECT_FALSE(behind.done());
  held.Release();
  for (std::thread& thread : threads) {
    if (thread.joinable()) thread.join();
  }
}

TEST_P(OrchestratorTest, AFailedTaskEndsWhatDependsOnItAndNothingElse) {
  Start(2);
  const Callable fail = Registered(FailImage());
  const Callable fill = Registered(FillImage());
  const Callable axpy = Registered(AxpyImage());
  const Callable spin = Registered(SpinImage());
  std::vector<std::uint64_t> gate(1);
  std::vector<float> x(16, 1.0F);
  std::vector<float> y(16, 1.0F);
  std::vector<std::uint32_t> other(16);
  TaskHandle slow;
  TaskHandle failed;
  TaskHandle next;
  TaskHandle last;
  // All of it is to be submitted before the first one fails: they wait for a task of some time, of
  // more if that was not enough.
  for (std::uint64_t time = 50'000; time < 30'000'000; time *= 4) {
    x.assign(16, 1.0F);
    y.assign(16, 1.0F);
    slow = Submit(spin, Arguments().Add(Tag::kInOut, On(gate)).AddScalar(time));
    failed = Submit(fail, Arguments().Add(Tag::kIn, On(gate)).Add(Tag::kInOut, On(x)));
    next = Submit(axpy, Arguments().Add(Tag::kIn, On(x)).Add(Tag::kInOut, On(y)).AddScalar(1.0F));
    last = Submit(axpy, Arguments().Add(Tag::kIn, On(y)).Add(Tag::kInOut, On(x)).AddScalar(1.0F));
    if (!slow.done()) break;
    EXPECT_TRUE(IsOk(orchestrator_->WaitAll(Long())));
  }
  const TaskHandle apart =
      Submit(fill, Arguments().Add(Tag::kOut, On(other)).AddScalar(std::uint32_t{5}));
  EXPECT_TRUE(IsOk(orchestrator_->WaitAll(Long())));
  EXPECT_TRUE(IsOk(slow.error()));
  EXPECT_THAT(MessageOf(failed.error()), HasSubstr("told to fail"));
  for (const TaskHandle& aborted : {next, last}) {
    EXPECT_EQ(aborted.error().code(), StatusCode::kAborted);
    EXPECT_THAT(MessageOf(aborted.error()),
                HasSubstr("task " + std::to_string(aborted.id()) + " was not run: task " +
                          std::to_string(failed.id()) + ", which it depends on, failed: "));
    EXPECT_THAT(MessageOf(aborted.error()), HasSubstr("told to fail"));
  }
  EXPECT_EQ(y, std::vector<float>(16, 1.0F));
  EXPECT_TRUE(IsOk(apart.error()));
  EXPECT_EQ(other, std::vector<std::uint32_t>(16, 5));
  // T10: nobody is disabled by it.
  for (WorkerId worker = 0; worker < 2; ++worker) {
    EXPECT_TRUE(
        IsOk(Submit(axpy, Arguments().Add(Tag::kIn, On(x)).Add(Tag::kInOut, On(y)).AddScalar(1.0F),
                    {.worker = worker, .timeout = {}})
                 .Wait(Long())));
  }
  EXPECT_EQ(y, std::vector<float>(16, 3.0F));
}

TEST_P(OrchestratorTest, AGroupRunsOnDifferentWorkersAndFailsWithTheFirstError) {
  Start(3);
  const Callable fill = Registered(FillImage());
  std::vector<std::vector<std::uint32_t>> outs(3, std::vector<std::uint32_t>(16));
  std::vector<Arguments> members(3);
  for (std::uint32_t i = 0; i < 3; ++i) {
    members[i]
        .Add(Tag::kOut, On(outs[i]))
        .AddScalar(std::bit_cast<std::uint32_t>(static_cast<float>(i + 1)));
  }
  const TaskHandle group = Need(orchestrator_->SubmitGroup(fill, members));
  // A task that reads what two members write waits for the group.
  const std::array<std::uint32_t, 1> shape{16};
  const auto floats = [&](std::size_t i) {
    return Tensor::Host(outs[i].data(), DataType::kFloat32, shape);
  };
  std::vector<float> sum(16);
  const TaskHandle after =
      Submit(Registered(AddImage()),
             Arguments().Add(Tag::kIn, floats(1)).Add(Tag::kIn, floats(2)).Add(Tag::kOut, On(sum)));
  EXPECT_TRUE(IsOk(after.Wait(Long())));
  EXPECT_TRUE(group.done());
  EXPECT_EQ(sum, std::vector<float>(16, 2.0F + 3.0F));
  EXPECT_TRUE(IsOk(group.Wait(Long())));
  std::uint64_t tasks = 0;
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(outs[i], std::vector<std::uint32_t>(
                           16, std::bit_cast<std::uint32_t>(static_cast<float>(i + 1))));
    const WorkerReport report = orchestrator_->Report()[i];
    EXPECT_GE(report.tasks, 1U);
    tasks += report.tasks;
  }
  EXPECT_EQ(tasks, 4U);

  members[1] = Arguments();
  const TaskHandle bad = Need(orchestrator_->SubmitGroup(fill, members));
  EXPECT_FALSE(bad.Wait(Long()).ok()) << "fill without a tensor";
  EXPECT_TRUE(
      IsOk(Need(orchestrator_->SubmitGroup(Registered(NoopImage()), members)).Wait(Long())));

  members[1] = members[2];
  const Status conflict = orchestrator_->SubmitGroup(fill, members).status();
  EXPECT_EQ(conflict.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(conflict), HasSubstr("member 2: argument 0: the "));
  EXPECT_THAT(MessageOf(conflict), HasSubstr("overlap those of another member"));
}

TEST_P(OrchestratorTest, GroupsOfManyThreadsDoNotBlockEachOther) {
  Start(3);
  const Callable noop = Registered(NoopImage());
  std::vector<std::thread> threads;
  for (WorkerId first = 0; first < 3; ++first) {
    threads.emplace_back([&, first] {
      const std::vector<Arguments> members(2);
      const std::vector<WorkerId> workers{first, (first + 1) % 3};
      for (int i = 0; i < 30; ++i) {
        EXPECT_TRUE(IsOk(Need(orchestrator_->SubmitGroup(noop, members, workers)).Wait(Long())));
        EXPECT_TRUE(IsOk(Submit(noop, {}, {.worker = first, .timeout = {}}).Wait(Long())));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(OrchestratorTest, DestructionCancelsWhatHasNotStarted) {
  OrchestratorOptions options = Options(1);
  options.stop_timeout = milliseconds(100);
  Start(std::move(options));
  const DeviceAddress flag = Upload(0, std::vector<std::uint64_t>{0});
  const Callable spin = Registered(SpinImage());
  const Arguments arguments =
      Arguments().Add(Tag::kInOut, At<std::uint64_t>(flag, 1)).AddScalar(std::uint64_t{60'000'000});
  const TaskHandle running = Submit(spin, arguments);
  const TaskHandle waiting = Submit(spin, arguments);
  std::thread waiter([&] { EXPECT_FALSE(waiting.Wait(Long()).ok()); });
  const auto before = std::chrono::steady_clock::now();
  orchestrator_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - before, seconds(30));
  waiter.join();
  EXPECT_TRUE(running.done());
  EXPECT_FALSE(running.error().ok());
  EXPECT_EQ(waiting.error().code(), StatusCode::kCancelled);
  EXPECT_THAT(MessageOf(waiting.error()), HasSubstr("its orchestrator was destroyed"));
  EXPECT_EQ(waiting.Wait(Deadline::Never()).code(), StatusCode::kCancelled) << "handles stay valid";
  if (GetParam() == Transport::kThread) {
    // A thread cannot be ended: it was left behind.
    const std::uint64_t ones = ~std::uint64_t{0};
    const hal::Stream stream = Need(hal::Stream::Create(memories_[0]->device()));
    EXPECT_TRUE(IsOk(memories_[0]->CopyToDevice(stream.get(), flag, &ones, 8_B)));
  }
}

TEST_P(OrchestratorTest, DestructionLetsWhatRunsEnd) {
  Start(1);
  std::vector<std::uint64_t> gate(1);
  const TaskHandle running =
      Submit(Registered(SpinImage()),
             Arguments().Add(Tag::kInOut, On(gate)).AddScalar(std::uint64_t{50'000}));
  EXPECT_TRUE(Soon([&] { return running.worker().has_value(); }));
  orchestrator_.reset();
  EXPECT_TRUE(IsOk(running.error()));
}

TEST_P(OrchestratorTest, CreateNamesTheWorkerThatIsWrong) {
  OrchestratorOptions none = Options(1);
  none.workers.clear();
  EXPECT_EQ(Orchestrator::Create(none).status().code(), StatusCode::kInvalidArgument);
  OrchestratorOptions wrong = Options(1);
  wrong.workers.push_back({.device = "sim:77", .memory = {}});
  const Status status = Orchestrator::Create(wrong).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(MessageOf(status), HasSubstr("worker 1 (sim:77)"));
}

TEST_P(OrchestratorTest, TheReportNamesADeviceThatAWorkerChoseItself) {
  setenv("KEEL_DRIVER", "sim", 1);  // NOLINT(concurrency-mt-unsafe): for processes
  OrchestratorOptions options = Options(2);
  options.workers[1].device.clear();
  Start(std::move(options));
  const std::vector<WorkerReport> reports = orchestrator_->Report();
  EXPECT_EQ(reports[0].device, "sim:0");
  EXPECT_EQ(reports[1].device, GetParam() == Transport::kThread ? "sim:1" : "sim:0");
}

TEST_P(OrchestratorTest, AHandleOfNoTaskSaysSo) {
  const TaskHandle none;
  EXPECT_EQ(none.Wait(Deadline::Never()).code(), StatusCode::kFailedPrecondition);
  EXPECT_FALSE(none.done());
  EXPECT_EQ(none.worker(), std::nullopt);
}

TEST_P(OrchestratorTest, AForkedChildLeavesItAlone) {
  Start(1);
  const Callable noop = Registered(NoopImage());
  const TaskHandle task = Submit(noop, {});
  EXPECT_TRUE(IsOk(task.Wait(Long())));
  const int status = InForkedChild([&] {
    EXPECT_EQ(orchestrator_->Submit(noop, {}).status().code(), StatusCode::kFailedPrecondition);
    EXPECT_EQ(orchestrator_->WaitAll(Long()).code(), StatusCode::kFailedPrecondition);
    EXPECT_EQ(orchestrator_->Malloc(0, 1_KiB).status().code(), StatusCode::kFailedPrecondition);
    EXPECT_TRUE(IsOk(task.Wait(Long()))) << "what was done is done";
    orchestrator_.reset();
  });
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(IsOk(Submit(noop, {}).Wait(Long())));
}

}  // namespace
}  // namespace keel::task
