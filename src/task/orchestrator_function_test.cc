// Functions of this process, and of the workers' program, as callables.
#include <pthread.h>

#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>

#include "keel/hal/standard_kernels.h"
#include "task/orchestrator_test.h"

namespace keel::task {
namespace {

class OrchestratorFunctionTest : public OrchestratorTest {
 protected:
  Callable Registered(HostFunction function, const std::optional<Image>& kernels = {}) {
    return Need(orchestrator_->Register(std::move(function), kernels));
  }
};
INSTANTIATE_TEST_SUITE_P(, OrchestratorFunctionTest, ::testing::Values(Transport::kThread),
                         TransportName);

Image KernelsOf(std::initializer_list<std::string_view> kernels) {
  ImageBuilder builder;
  const std::uint32_t part = builder.AddRegisteredPart("keel");
  for (const std::string_view kernel : kernels) builder.AddKernel(part, std::string(kernel));
  return Need(builder.BuildKernels());
}

hal::KernelArg ArgOf(const ArgumentsView& arguments, std::size_t i) {
  const Tensor tensor = arguments.tensor(i);
  const DeviceAddress address(tensor.address);
  if (!Writes(arguments.tag(i))) return hal::KernelArg::In(address, tensor.size());
  return Reads(arguments.tag(i)) ? hal::KernelArg::InOut(address, tensor.size())
                                 : hal::KernelArg::Out(address, tensor.size());
}

// (in f32 a, in f32 b, out f32 c), by kernel `kernel`, which adds.
Status Add(HostCall& call, std::uint32_t kernel) {
  const ArgumentsView& arguments = call.arguments();
  const hal::KernelArg args[] = {ArgOf(arguments, 0), ArgOf(arguments, 1), ArgOf(arguments, 2),
                                 hal::KernelArg::Value(arguments.tensor(0).elements())};
  hal::LaunchDims dims;
  dims.block = {64, 1, 1};
  dims.grid = {static_cast<std::uint32_t>((arguments.tensor(0).elements() + 63) / 64), 1, 1};
  return call.Launch(kernel, dims, args);
}

TEST_P(OrchestratorFunctionTest, LaunchesTheKernelsOfItsImage) {
  OrchestratorOptions options = Options(2);
  options.orchestration = Orchestration::kDevice;  // of images; a function runs on the host
  Start(std::move(options));
  std::atomic<int> calls = 0;
  const auto function = [&calls](HostCall& call) {
    EXPECT_EQ(call.kernel_count(), 2U);
    EXPECT_EQ(call.arguments().scalar<float>(0), 0.25F);
    EXPECT_TRUE(call.deadline().never());
    ++calls;
    return Add(call, 1);
  };
  const Callable add = Registered(function, KernelsOf({hal::kernels::kFill, hal::kernels::kAdd}));
  const std::vector<float> a(1000, 1.5F);
  const DeviceAddress b = Upload(1, std::vector<float>(1000, 2.0F));
  std::vector<float> c(1000);
  const TaskHandle task = Submit(add, Arguments()
                                          .Add(Tag::kIn, On(a))
                                          .Add(Tag::kIn, At<float>(b, 1000))
                                          .Add(Tag::kOut, On(c))
                                          .AddScalar(0.25F));
  EXPECT_TRUE(IsOk(task.Wait(Long())));
  EXPECT_EQ(c, std::vector<float>(1000, 3.5F));
  EXPECT_EQ(task.worker(), WorkerId{1});
  EXPECT_EQ(calls, 1);
}

TEST_P(OrchestratorFunctionTest, H3_NothingIsUploadedForAFunction) {
  OrchestratorOptions options = Options(1);
  options.orchestration = Orchestration::kDevice;
  Start(std::move(options));
  const Bytes before = memories_[0]->allocator().allocated();
  // The image's own code is left out.
  const Callable add = Registered([](HostCall& call) { return Add(call, 0); }, AddImage());
  EXPECT_EQ(memories_[0]->allocator().allocated(), before);
  const std::vector<float> a(10, 1.0F);
  std::vector<float> c(10);
  EXPECT_TRUE(
      IsOk(Submit(add, Arguments().Add(Tag::kIn, On(a)).Add(Tag::kIn, On(a)).Add(Tag::kOut, On(c)))
               .Wait(Long())));
  EXPECT_EQ(c, std::vector<float>(10, 2.0F));
  EXPECT_EQ(orchestrator_->Report()[0].uploads, 0U);
  static_cast<void>(OrchestratorTest::Registered(AddImage()));
  EXPECT_EQ(orchestrator_->Report()[0].uploads, 1U) << "an image is";
}

TEST_P(OrchestratorFunctionTest, PutsWorkOnTheStreamWithoutKernels) {
  Start(1);
  const Callable fill = Registered([](HostCall& call) -> Status {
    EXPECT_EQ(call.kernel_count(), 0U);
    const Tensor tensor = call.arguments().tensor(0);
    return call.memory()->device()->EnqueueFill(call.stream(),
                                                {.destination = DeviceAddress(tensor.address),
                                                 .value = 7,
                                                 .width = 4,
                                                 .count = tensor.elements()});
  });
  std::vector<std::uint32_t> x(500);
  EXPECT_TRUE(IsOk(Submit(fill, Arguments().Add(Tag::kOut, On(x))).Wait(Long())));
  EXPECT_EQ(x, std::vector<std::uint32_t>(500, 7));
}

// Each waits for all.
TEST_P(OrchestratorFunctionTest, MembersOfAGroupRunAtTheSameTime) {
  constexpr int kMembers = 3;
  Start(kMembers);
  std::atomic<int> arrived = 0;
  const Callable meets = Registered([&](HostCall&) -> Status {
    ++arrived;
    return Soon([&] { return arrived == kMembers; }) ? OkStatus() : Internal("it is alone");
  });
  const std::vector<Arguments> members(kMembers);
  for (int round = 0; round < 20; ++round) {
    arrived = 0;
    ASSERT_TRUE(IsOk(Need(orchestrator_->SubmitGroup(meets, members)).Wait(Long())));
    EXPECT_EQ(arrived, kMembers);
  }
}

TEST_P(OrchestratorFunctionTest, T5_AFreeThatFindsDamageFreesAllTheSame) {
  OrchestratorOptions options = Options(1);
  memory::AllocatorConfig config;
  config.debug = memory::AllocatorConfig::Debug::kGuards;
  options.workers[0].memory =
      Need(memory::DeviceMemory::Create(options.workers[0].memory->device(), config));
  Start(std::move(options));
  const Callable overflows = Registered([](HostCall& call) -> Status {
    const Tensor tensor = call.arguments().tensor(0);
    return call.memory()->device()->EnqueueFill(
        call.stream(),
        {.destination = DeviceAddress(tensor.address) + tensor.size(), .value = 7, .count = 1});
  });
  BlockId id = 0;
  const DeviceAddress block = Need(orchestrator_->Malloc(0, 1_KiB, &id));
  // The guards are written on the stream of copies, which this waits for.
  float value = 0;
  EXPECT_TRUE(IsOk(orchestrator_->CopyTo(0, block, &value, 4_B)));
  const Arguments arguments = Arguments().Add(Tag::kOut, At<float>(block, 256));
  EXPECT_TRUE(IsOk(Submit(overflows, arguments).Wait(Long())));
  const Status damaged = orchestrator_->Free(0, block);
  EXPECT_EQ(damaged.code(), StatusCode::kOutOfRange);
  EXPECT_THAT(MessageOf(damaged), HasSubstr("was freed, with an error"));
  // Nobody takes it for a block, which would be somebody else's.
  EXPECT_EQ(orchestrator_->Submit(overflows, arguments).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(orchestrator_->CopyFrom(0, &value, block, 4_B).code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(orchestrator_->Free(0, block)), HasSubstr("is not what Malloc returned"));
  EXPECT_EQ(orchestrator_->Free(0, block, id).code(), StatusCode::kUnavailable);
}

TEST_P(OrchestratorFunctionTest, WhatItReturnsIsTheOutcome) {
  Start(1);
  std::vector<std::uint32_t> x(4, 1);
  const Arguments arguments = Arguments().Add(Tag::kInOut, On(x));
  // Not before the other is submitted, which would start afresh.
  std::promise<void> both;
  const Callable fails = Registered([&](HostCall&) -> Status {
    both.get_future().wait();
    return Status(StatusCode::kAlreadyExists, "not today");
  });
  const TaskHandle task = Submit(fails, arguments);
  const TaskHandle after = Submit(Registered([](HostCall&) { return OkStatus(); }), arguments);
  both.set_value();
  const Status error = task.Wait(Long());
  EXPECT_EQ(error.code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(MessageOf(error), "task 1: not today");
  EXPECT_EQ(after.Wait(Long()).code(), StatusCode::kAborted);

  // A worker that said these would be given up.
  const Callable lies = Registered([](HostCall&) -> Status { return Unavailable("so it says"); });
  const Status lie = Submit(lies, {}).Wait(Long());
  EXPECT_EQ(lie.code(), StatusCode::kUnknown);
  EXPECT_THAT(MessageOf(lie), HasSubstr("so it says"));
  const Callable throws =
      Registered([](HostCall&) -> Status { throw std::runtime_error("thrown away"); });
  const Status thrown = Submit(throws, {}).Wait(Long());
  EXPECT_EQ(thrown.code(), StatusCode::kUnknown);
  EXPECT_THAT(MessageOf(thrown), HasSubstr("it threw: thrown away"));

  const WorkerReport report = orchestrator_->Report()[0];
  EXPECT_TRUE(report.up);
  EXPECT_EQ(report.restarts, 0U);
  EXPECT_EQ(report.tasks, 3U);
}

TEST_P(OrchestratorFunctionTest, ALaunchThatWasRefusedFailsTheTaskThatIgnoresIt) {
  Start(1);
  const Callable careless = Registered(
      [](HostCall& call) {
        const Status status = call.Launch(3, {}, {});
        EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
        return OkStatus();
      },
      KernelsOf({hal::kernels::kAdd}));
  const Status error = Submit(careless, {}).Wait(Long());
  EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(error), HasSubstr("it launches kernel 3, and has 1"));
}

// Says when it goes, and asks the orchestrator something then, which waits if its lock is held.
struct Witness {
  Orchestrator* orchestrator = nullptr;
  std::atomic<bool>* gone = nullptr;
  ~Witness() {
    static_cast<void>(orchestrator->live_tasks());
    gone->store(true);
  }
};

TEST_P(OrchestratorFunctionTest, LivesUntilItsLastTaskHasEnded) {
  Start(1);
  std::atomic<bool> gone = false;
  std::promise<void> begun;
  std::promise<void> release;
  std::shared_future<void> released = release.get_future().share();
  std::atomic<int> calls = 0;
  Callable callable;
  {
    auto witness = std::make_shared<Witness>(orchestrator_.get(), &gone);
    callable = Registered([witness, released, &begun, &calls](HostCall&) {
      if (++calls == 1) begun.set_value();
      released.wait();
      return OkStatus();
    });
  }
  const TaskHandle first = Submit(callable, {});
  const TaskHandle second = Submit(callable, {});
  begun.get_future().wait();
  EXPECT_TRUE(IsOk(orchestrator_->Unregister(callable)));
  EXPECT_EQ(orchestrator_->Submit(callable, {}).status().code(), StatusCode::kNotFound);
  EXPECT_FALSE(gone);
  release.set_value();
  EXPECT_TRUE(IsOk(first.Wait(Long())));
  EXPECT_TRUE(IsOk(second.Wait(Long())));
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(Soon([&] { return gone.load(); }));
}

TEST_P(OrchestratorFunctionTest, GoesWithItsOrchestratorWhoeverHasHandles) {
  Start(2);
  std::atomic<bool> gone = false;
  Callable callable;
  {
    auto witness = std::make_shared<Witness>(orchestrator_.get(), &gone);
    callable = Registered([witness](HostCall&) { return OkStatus(); });
  }
  const TaskHandle task = Submit(callable, {});
  EXPECT_TRUE(IsOk(task.Wait(Long())));
  EXPECT_FALSE(gone);
  orchestrator_->Close();
  EXPECT_TRUE(gone);
  EXPECT_TRUE(task.error().ok());
  orchestrator_->Close();
  EXPECT_EQ(orchestrator_->Submit(callable, {}).status().code(), StatusCode::kCancelled);
  EXPECT_EQ(orchestrator_->Malloc(0, 1_KiB).status().code(), StatusCode::kCancelled);
  EXPECT_EQ(orchestrator_->Unregister(callable).code(), StatusCode::kNotFound);
}

TEST_P(OrchestratorFunctionTest, AWorkerThatIsStartedAgainHasIt) {
  Start(1);
  struct Shared {
    std::promise<void> release;
    std::shared_future<void> released = release.get_future().share();
    std::atomic<int> inside = 0;
    std::atomic<StatusCode> launched = StatusCode::kOk;
    std::atomic<int> calls = 0;
  };
  auto shared = std::make_shared<Shared>();
  // Hangs if it has a scalar.
  const Callable hangs = Registered([shared](HostCall& call) {
    ++shared->inside;
    if (call.arguments().scalar_count() == 1) {
      shared->released.wait();
      shared->launched = call.Launch(0, {}, {}).code();
    }
    ++shared->calls;
    --shared->inside;
    return OkStatus();
  });
  const TaskHandle hung = Submit(hangs, Arguments().AddScalar(1),
                                 {.worker = {}, .timeout = std::chrono::milliseconds(20)});
  EXPECT_EQ(hung.Wait(Long()).code(), StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(IsOk(Submit(hangs, {}).Wait(Long())));
  EXPECT_EQ(shared->calls, 1);
  EXPECT_EQ(orchestrator_->Report()[0].restarts, 1U);
  // The thread that was left behind ends with the function.
  shared->release.set_value();
  EXPECT_TRUE(Soon([&] { return shared->inside == 0; }));
  EXPECT_EQ(shared->launched, StatusCode::kCancelled) << "the task is over";
}

TEST_P(OrchestratorFunctionTest, AFunctionThatEndsItsThreadLosesTheWorker) {
  Start(1);
  std::atomic<int> calls = 0;
  const Callable leaves = Registered([&calls](HostCall&) -> Status {
    if (++calls == 1) pthread_exit(nullptr);
    return OkStatus();
  });
  std::vector<float> x(100);
  const Arguments arguments = Arguments().Add(Tag::kIn, On(x));
  const Status left = Submit(leaves, arguments).Wait(Long());
  EXPECT_EQ(left.code(), StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(left), HasSubstr("ended the thread"));
  EXPECT_TRUE(IsOk(Submit(leaves, arguments).Wait(Long())));
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(orchestrator_->Report()[0].restarts, 1U);
}

TEST_P(OrchestratorFunctionTest, ClosingWhileAnotherThreadRegisters) {
  for (int round = 0; round < 30; ++round) {
    Start(2);
    std::promise<void> begun;
    Status last;
    std::thread registers([&] {
      for (int i = 0;; ++i) {
        const Result<Callable> callable =
            orchestrator_->Register([](HostCall&) { return OkStatus(); });
        if (i == 0) begun.set_value();
        if (callable.ok()) continue;
        last = callable.status();
        return;
      }
    });
    begun.get_future().wait();
    orchestrator_->Close();
    registers.join();
    EXPECT_TRUE(last.code() == StatusCode::kCancelled || last.code() == StatusCode::kUnavailable)
        << last.ToString();
    orchestrator_.reset();
    memories_.clear();
  }
}

TEST_P(OrchestratorFunctionTest, WaitingForTasksUpToOneIsNotForLaterOnes) {
  Start(1);
  std::promise<void> release;
  const Callable waits = Registered([&release](HostCall&) {
    release.get_future().wait();
    return OkStatus();
  });
  EXPECT_EQ(orchestrator_->last_task(), 0U);
  const TaskHandle first = Submit(Registered([](HostCall&) { return OkStatus(); }), {});
  const std::uint64_t last = orchestrator_->last_task();
  EXPECT_EQ(last, first.id());
  const TaskHandle second = Submit(waits, {});
  EXPECT_TRUE(IsOk(orchestrator_->WaitUpTo(last, Long())));
  EXPECT_TRUE(first.done());
  EXPECT_EQ(orchestrator_->WaitUpTo(second.id(), Deadline::Now()).code(),
            StatusCode::kDeadlineExceeded);
  EXPECT_FALSE(second.done());
  release.set_value();
  EXPECT_TRUE(IsOk(orchestrator_->WaitUpTo(second.id(), Long())));
  EXPECT_TRUE(second.done());
}

TEST_P(OrchestratorFunctionTest, MayUseTheOrchestrator) {
  Start(2);
  const Callable inner = OrchestratorTest::Registered(FillImage());
  std::vector<std::uint32_t> x(16);
  const Callable outer = Registered([&](HostCall& call) -> Status {
    KEEL_ASSIGN(
        const TaskHandle task,
        orchestrator_->Submit(inner, Arguments().Add(Tag::kOut, On(x)).AddScalar(std::uint32_t{9}),
                              {.worker = 1, .timeout = {}}));
    EXPECT_EQ(call.arguments().tensor_count(), 0U);
    return task.Wait(Long());
  });
  EXPECT_TRUE(IsOk(Submit(outer, {}, {.worker = 0, .timeout = {}}).Wait(Long())));
  EXPECT_EQ(x, std::vector<std::uint32_t>(16, 9));
}

TEST_P(OrchestratorFunctionTest, WhatIsNoneIsRefused) {
  Start(1);
  EXPECT_EQ(orchestrator_->Register(HostFunction()).status().code(), StatusCode::kInvalidArgument);
  const auto kernels = orchestrator_->Register(KernelsOf({hal::kernels::kAdd}));
  EXPECT_EQ(kernels.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(kernels.status()), HasSubstr("register it with a function"));
  const auto unknown =
      orchestrator_->Register([](HostCall&) { return OkStatus(); }, KernelsOf({"keel_no_such"}));
  EXPECT_EQ(unknown.status().code(), StatusCode::kNotFound);
}

TEST(OrchestratorFunctionProcessTest, NeedsThreads) {
  OrchestratorOptions options;
  options.transport = Transport::kProcess;
  options.worker_program = KEEL_WORKER_PROGRAM;
  options.workers = {{.device = "sim:0", .memory = {}}};
  const auto orchestrator = Need(Orchestrator::Create(std::move(options)));
  const auto refused = orchestrator->Register([](HostCall&) { return OkStatus(); });
  EXPECT_EQ(refused.status().code(), StatusCode::kUnimplemented);
  EXPECT_THAT(MessageOf(refused.status()), HasSubstr("register an image"));
  // A kernels-only image does not get further there either.
  EXPECT_EQ(orchestrator->Register(KernelsOf({})).status().code(), StatusCode::kInvalidArgument);
}

// --- Functions of the workers' program ----------------------------------------------------------

class OrchestratorReferenceTest : public ::testing::Test {
 protected:
  void SetUp() override { SetLogLevel(LogLevel::kOff); }
  void TearDown() override { SetLogLevel(LogLevel::kWarn); }

  void Start(int workers) {
    OrchestratorOptions options;
    options.transport = Transport::kProcess;
    options.worker_program = KEEL_FUNCTION_WORKER;
    options.worker_arguments = {"serve"};
    options.workers.assign(static_cast<std::size_t>(workers), {.device = "sim:0", .memory = {}});
    orchestrator_ = Need(Orchestrator::Create(std::move(options)));
  }
  Result<Callable> Register(std::string_view name, const std::optional<Image>& kernels = {}) {
    return orchestrator_->RegisterReference(std::as_bytes(std::span(name)), kernels);
  }
  TaskHandle Submit(Callable callable, const Arguments& arguments, WorkerId worker) {
    SubmitOptions options;
    options.worker = worker;
    return Need(orchestrator_->Submit(callable, arguments, options));
  }

  // What "count" or "take" said.
  static std::uint64_t NumberOf(const Status& status) {
    EXPECT_EQ(status.code(), StatusCode::kOutOfRange) << status.ToString();
    const std::string message = MessageOf(status);
    return std::strtoull(message.c_str() + message.rfind(' ') + 1, nullptr, 10);
  }
  static int CallsOf(const Status& status) { return static_cast<int>(NumberOf(status)); }

  std::unique_ptr<Orchestrator> orchestrator_;
};

TEST_F(OrchestratorReferenceTest, EveryWorkerRunsItsOwn) {
  Start(2);
  const Callable twice = Need(Register("twice", KernelsOf({hal::kernels::kAdd})));
  const std::vector<float> x{1, 2, 3};
  for (const WorkerId worker : {0U, 1U}) {
    std::vector<float> sum(3, 0);
    const TaskHandle task =
        Submit(twice, Arguments().Add(Tag::kIn, On(x)).Add(Tag::kOut, On(sum)), worker);
    EXPECT_TRUE(IsOk(task.Wait(Long())));
    EXPECT_EQ(sum, (std::vector<float>{2, 4, 6}));
  }
  // Each registration is a function of its own, in each worker.
  const Callable count = Need(Register("count"));
  const Callable again = Need(Register("count"));
  EXPECT_EQ(CallsOf(Submit(count, {}, 0).Wait(Long())), 1);
  EXPECT_EQ(CallsOf(Submit(count, {}, 0).Wait(Long())), 2);
  EXPECT_EQ(CallsOf(Submit(count, {}, 1).Wait(Long())), 1);
  EXPECT_EQ(CallsOf(Submit(again, {}, 0).Wait(Long())), 1);
  EXPECT_TRUE(IsOk(orchestrator_->Unregister(count)));
  EXPECT_EQ(orchestrator_->Submit(count, {}).status().code(), StatusCode::kNotFound);
}

TEST_F(OrchestratorReferenceTest, WhatTheProgramDoesNotFindIsNotRegistered) {
  Start(1);
  const Status status = Register("thrice").status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(MessageOf(status), HasSubstr("there is no function 'thrice'"));
  EXPECT_EQ(Register("").status().code(), StatusCode::kInvalidArgument);
  // Longer than what fits into one message of the control.
  const std::string large((5U << 20U) + 3, 'x');
  EXPECT_THAT(MessageOf(Register(large).status()), HasSubstr("there is no function 'xxx"));
  EXPECT_TRUE(Register("count").ok()) << "the worker goes on";
  EXPECT_EQ(orchestrator_->Report()[0].restarts, 0U);
}

TEST_F(OrchestratorReferenceTest, AProgramThatThrowsGoesOn) {
  Start(2);
  const Status status = Register("throw").status();
  EXPECT_EQ(status.code(), StatusCode::kUnknown);
  EXPECT_THAT(MessageOf(status), HasSubstr("no luck"));
  const Status tossed = Register("toss").status();
  EXPECT_EQ(tossed.code(), StatusCode::kUnknown) << MessageOf(tossed);
  EXPECT_THAT(MessageOf(tossed), HasSubstr("threw something looking for it"));
  EXPECT_TRUE(Register("count").ok());
  EXPECT_EQ(orchestrator_->Report()[0].restarts, 0U);
}

// A callable that ends each worker that takes it must not cost the workers.
TEST_F(OrchestratorReferenceTest, AProgramThatEndsLookingForItCostsNoWorker) {
  Start(2);
  const Callable count = Need(Register("count"));
  const Status status = Register("crash").status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(status), HasSubstr("lost 2 times while it took the callable"));
  EXPECT_THAT(MessageOf(status), HasSubstr("SIGKILL"));
  for (const WorkerId worker : {0U, 1U}) {
    EXPECT_EQ(CallsOf(Submit(count, {}, worker).Wait(Long())), 1);
  }
  EXPECT_EQ(orchestrator_->Report()[0].restarts, 2U);
  EXPECT_EQ(orchestrator_->Report()[1].restarts, 0U) << "it was not asked";
}

TEST_F(OrchestratorReferenceTest, AWorkerThatIsStartedAgainHasIt) {
  Start(1);
  const Callable count = Need(Register("count"));
  EXPECT_EQ(CallsOf(Submit(count, {}, 0).Wait(Long())), 1);
  EXPECT_EQ(Submit(Need(orchestrator_->Register(CrashImage())), {}, 0).Wait(Long()).code(),
            StatusCode::kUnavailable);
  EXPECT_EQ(CallsOf(Submit(count, {}, 0).Wait(Long())), 1) << "a new one";
  EXPECT_EQ(orchestrator_->Report()[0].restarts, 1U);
}

// What OrchestratorTest.SomebodyElsesMemoryIsUsedAndNeverFreed says of threads.
TEST_F(OrchestratorReferenceTest, MemoryThatTheWorkersOwnCodeAllocatedIsUsedAndNeverFreed) {
  Start(2);
  const Callable take = Need(Register("take"));
  const DeviceAddress theirs(NumberOf(Submit(take, {}, 1).Wait(Long())));
  EXPECT_TRUE(IsOk(orchestrator_->RegisterMemory(1, theirs, 4_KiB)));
  EXPECT_EQ(orchestrator_->RegisterMemory(1, theirs + 1_KiB, 8_KiB).code(),
            StatusCode::kAlreadyExists);
  const Callable fill = Need(orchestrator_->Register(FillImage()));
  const auto fill_with = [&](std::uint32_t value) {
    return Need(orchestrator_->Submit(
        fill, Arguments().Add(Tag::kOut, At<std::uint32_t>(theirs + 1_KiB, 16)).AddScalar(value)));
  };
  const TaskHandle first = fill_with(9);
  std::vector<std::uint32_t> got(16);
  EXPECT_TRUE(IsOk(orchestrator_->CopyFrom(1, got.data(), theirs + 1_KiB, 64_B)));
  EXPECT_EQ(got, std::vector<std::uint32_t>(16, 9));
  EXPECT_EQ(first.worker(), WorkerId{1}) << "where it is";
  EXPECT_EQ(orchestrator_->Free(1, theirs).code(), StatusCode::kInvalidArgument);

  // In use: behind a task that takes long enough for what follows, or longer if it was not.
  const Callable spin = Need(orchestrator_->Register(SpinImage()));
  std::vector<std::uint64_t> gate(1);
  Status busy;
  for (std::uint64_t time = 50'000; busy.ok() && time < 30'000'000; time *= 4) {
    const TaskHandle slow = Submit(spin, Arguments().Add(Tag::kInOut, On(gate)).AddScalar(time), 1);
    const TaskHandle user = fill_with(1);
    busy = orchestrator_->UnregisterMemory(1, theirs);
    EXPECT_TRUE(IsOk(user.Wait(Long())));
    if (busy.ok()) {
      EXPECT_TRUE(IsOk(orchestrator_->RegisterMemory(1, theirs, 4_KiB)));
    }
  }
  EXPECT_EQ(busy.code(), StatusCode::kFailedPrecondition) << busy.ToString();
  EXPECT_TRUE(IsOk(orchestrator_->UnregisterMemory(1, theirs)));
  EXPECT_EQ(orchestrator_->UnregisterMemory(1, theirs).code(), StatusCode::kInvalidArgument);
  // It is still theirs.
  EXPECT_TRUE(IsOk(Submit(Need(Register("give")), {}, 1).Wait(Long())));
}

TEST_F(OrchestratorReferenceTest, NeedsAProgramThatHasFunctions) {
  OrchestratorOptions options;
  options.transport = Transport::kProcess;
  options.worker_program = KEEL_WORKER_PROGRAM;
  options.workers.assign(1, {.device = "sim:0", .memory = {}});
  orchestrator_ = Need(Orchestrator::Create(options));
  Status status = Register("twice").status();
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_THAT(MessageOf(status), HasSubstr("worker_program"));
  orchestrator_.reset();

  options.transport = Transport::kThread;
  options.workers = ThreadsOn({.devices = 1, .memory = 1_GiB, .arena = 8_GiB});
  orchestrator_ = Need(Orchestrator::Create(options));
  status = Register("twice").status();
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_THAT(MessageOf(status), HasSubstr("register the function itself"));
}

// A thread that waits for one worker must notice the answers of another that had nothing to do when
// it began to wait, because it is the one who looks for all.
TEST_P(OrchestratorFunctionTest, AnswersAreNoticedByWhoeverWaitsForAnotherWorker) {
  Start(Options(2));
  std::promise<void> go;
  const Callable waits = Registered([done = go.get_future().share()](HostCall&) {
    done.wait();
    return OkStatus();
  });
  const Callable noop = Registered([](HostCall&) { return OkStatus(); });
  const TaskHandle held = Submit(waits, {}, {.worker = 0});
  std::thread leader([&] { EXPECT_TRUE(IsOk(held.Wait(Long()))); });
  int late = 0;
  for (int i = 0; i < 3000; ++i) {
    const TaskHandle task = Submit(noop, {}, {.worker = 1});
    // Without a ring the leader would sleep for a second.
    late += task.Wait(Deadline::After(std::chrono::milliseconds(400))).ok() ? 0 : 1;
  }
  go.set_value();
  leader.join();
  EXPECT_EQ(late, 0);
}

}  // namespace
}  // namespace keel::task
