// Callables through the orchestrator: stored once for each device, counted, and gone with the last
// use, whatever runs meanwhile and whatever fails.
#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "task/orchestrator_test.h"

namespace keel::task {
namespace {

constexpr unsigned kContents = 100;
constexpr unsigned kRegistrations = 1000;
constexpr int kWorkers = 2;

class OrchestratorCallablesTest : public OrchestratorTest {
 protected:
  void SetUp() override {
    OrchestratorTest::SetUp();
    OrchestratorOptions options = Options(kWorkers);
    if (GetParam() == Transport::kThread) {
      const auto driver = hal::SimDriver(kWorkers);
      for (int i = 0; i < kWorkers; ++i) {
        devices_.push_back(hal::Instrumented(Need(driver->Open(i))));
        options.workers[static_cast<std::size_t>(i)].memory =
            Need(memory::DeviceMemory::Create(devices_.back(), {}));
      }
    }
    options.orchestration = Orchestration::kDevice;
    Start(std::move(options));
    for (unsigned i = 0; i < kContents; ++i) images_.push_back(NoopImage(i));
  }
  void TearDown() override {
    orchestrator_.reset();
    memories_.clear();
    for (const auto& device : devices_) EXPECT_EQ(hal::ToString(device->Live()), "");
    OrchestratorTest::TearDown();
  }

  // Every content so often.
  std::vector<Callable> RegisterAll() {
    std::vector<Callable> callables;
    callables.reserve(kRegistrations);
    for (unsigned i = 0; i < kRegistrations; ++i) {
      callables.push_back(Registered(images_[i % kContents]));
    }
    return callables;
  }
  void ExpectUploads(std::uint64_t count) {
    for (const WorkerReport& report : orchestrator_->Report()) {
      EXPECT_EQ(report.uploads, count) << report.worker;
    }
  }
  std::size_t Modules(std::size_t device) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(devices_[device]->Live(), [](const hal::LiveObject& object) {
          return object.created_by == hal::Primitive::kLoadModule;
        }));
  }
  void ExpectStored(std::uint64_t count) {
    for (const WorkerReport& report : orchestrator_->Report()) {
      EXPECT_EQ(report.callables, count) << report.worker;
    }
  }
  // The devices of processes are theirs: what is on these, they say themselves.
  bool NothingIsLeft() const {
    for (const WorkerReport& report : orchestrator_->Report()) {
      if (report.callables != 0) return false;
    }
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      if (Modules(i) != 0 || memories_[i]->allocator().allocated() != 0_B) return false;
    }
    return true;
  }

  // A task that writes 1, 2, and so on into as many tensors.
  static constexpr std::uint32_t kElements = 8;
  struct Use {
    std::vector<std::vector<std::uint32_t>> written;
    TaskHandle task;
  };
  Use UseOf(Callable callable, std::size_t tensors, WorkerId worker) {
    Use use;
    use.written.assign(tensors, std::vector<std::uint32_t>(kElements));
    Arguments arguments;
    for (const auto& each : use.written) arguments.Add(Tag::kOut, On(each));
    if (tensors == 1) arguments.AddScalar(1U);  // who writes three knows it
    use.task = Submit(callable, arguments, {.worker = worker, .timeout = {}});
    return use;
  }

  std::vector<std::shared_ptr<hal::InstrumentedDevice>> devices_;  // of threads
  std::vector<Image> images_;
};

INSTANTIATE_TEST_SUITE_P(, OrchestratorCallablesTest, ::testing::ValuesIn(Transports()),
                         TransportName);

TEST_P(OrchestratorCallablesTest, T8_AThousandRegistrationsOfAHundredContentsAreAHundredUploads) {
  const std::vector<Callable> callables = RegisterAll();
  ExpectUploads(kContents);
  ExpectStored(kContents);
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    EXPECT_EQ(Modules(i), kContents);
    EXPECT_GT(memories_[i]->allocator().allocated(), 0_B);
  }
  // The last one of a content keeps it.
  for (std::size_t i = 0; i + kContents < callables.size(); ++i) {
    ASSERT_TRUE(IsOk(orchestrator_->Unregister(callables[i])));
  }
  for (std::size_t i = 0; i < devices_.size(); ++i) EXPECT_EQ(Modules(i), kContents);
  ExpectStored(kContents);
  EXPECT_TRUE(IsOk(Submit(callables.back(), {}).Wait(Long())));
  for (std::size_t i = callables.size() - kContents; i < callables.size(); ++i) {
    ASSERT_TRUE(IsOk(orchestrator_->Unregister(callables[i])));
  }
  EXPECT_TRUE(Soon([&] { return NothingIsLeft(); }));
  ExpectUploads(kContents);
  EXPECT_EQ(orchestrator_->Submit(callables[0], {}).status().code(), StatusCode::kNotFound);
  // Gone, and not only forgotten: the next one is uploaded.
  EXPECT_TRUE(IsOk(orchestrator_->Unregister(Registered(images_[0]))));
  ExpectUploads(kContents + 1);
}

TEST_P(OrchestratorCallablesTest, T8_AlsoWhileTasksRun) {
  const Callable fill = Registered(FillImage());
  std::atomic<bool> stop{false};
  std::thread submitter([&] {
    for (std::uint32_t i = 0; !stop; ++i) {
      std::vector<std::uint32_t> out(32);
      EXPECT_TRUE(
          IsOk(Submit(fill, Arguments().Add(Tag::kOut, On(out)).AddScalar(i)).Wait(Long())));
      EXPECT_EQ(out, std::vector<std::uint32_t>(32, i));
    }
  });
  const std::vector<Callable> callables = RegisterAll();
  ExpectUploads(kContents + 1);
  // Each with a task that may be under way when it is unregistered.
  std::vector<TaskHandle> tasks;
  tasks.reserve(callables.size());
  for (const Callable callable : callables) {
    tasks.push_back(Submit(callable, {}));
    ASSERT_TRUE(IsOk(orchestrator_->Unregister(callable)));
  }
  for (const TaskHandle& task : tasks) EXPECT_TRUE(IsOk(task.Wait(Long())));
  stop = true;
  submitter.join();
  EXPECT_TRUE(IsOk(orchestrator_->Unregister(fill)));
  EXPECT_TRUE(Soon([&] { return NothingIsLeft(); }));
}

// Whichever call of whichever device fails while several contents are registered several times,
// run there, and are unregistered, and tasks run on the other: nothing of what failed is left on
// any device, what a task that went well has written is right, the other callables run, and the
// next try works.
TEST_P(OrchestratorCallablesTest, T8_AFailureAtEveryDriverCallLeavesNothing) {
  if (GetParam() != Transport::kThread) GTEST_SKIP() << "nobody can fail the calls of a process";
  const Callable other = Registered(AddImage());
  std::atomic<std::uint64_t> called{0};
  const Callable function = Need(orchestrator_->Register([&](HostCall&) -> Status {
    ++called;
    return OkStatus();
  }));
  std::uint64_t submitted = 0;
  const std::size_t modules = Modules(0);
  const Bytes allocated = memories_[0]->allocator().allocated();
  const std::uint64_t stored = orchestrator_->Report()[0].callables;
  const std::array<Image, 3> images{FillImage(), NoopImage(1), ThreeImage()};
  constexpr std::array<std::size_t, 3> kWritten{1, 0, 3};  // by each of them
  int failures = 0;
  int task_failures = 0;
  for (WorkerId worker = 0; worker < kWorkers; ++worker) {
    hal::InstrumentedDevice* const device = devices_[worker].get();
    std::atomic<bool> stop{false};
    std::thread submitter([&] {
      const SubmitOptions elsewhere{.worker = (worker + 1) % kWorkers, .timeout = {}};
      for (; !stop; ++submitted) {
        EXPECT_TRUE(IsOk(Submit(function, {}, elsewhere).Wait(Long())));
      }
    });
    bool reached = true;
    for (std::uint64_t k = 1; reached && !HasFailure(); ++k) {
      SCOPED_TRACE("call " + std::to_string(k));
      device->FailNth(k, Internal("injected"));
      std::vector<Status> statuses;
      std::vector<Callable> callables;
      std::vector<Use> uses;
      for (int round = 0; round < 2; ++round) {
        for (std::size_t i = 0; i < images.size(); ++i) {
          const Result<Callable> callable = orchestrator_->Register(images[i]);
          statuses.push_back(callable.status());
          if (!callable.ok()) continue;
          callables.push_back(*callable);
          uses.push_back(UseOf(*callable, kWritten[i], worker));
        }
      }
      EXPECT_GE(callables.size(), 2 * images.size() - 1) << "one call fails";
      // Some of their tasks are under way.
      for (const Callable callable : callables) {
        statuses.push_back(orchestrator_->Unregister(callable));
      }
      for (const Use& use : uses) {
        const Status status = use.task.Wait(Long());
        EXPECT_TRUE(use.task.done());
        statuses.push_back(status);
        task_failures += status.ok() ? 0 : 1;
        if (!status.ok()) continue;
        for (std::size_t i = 0; i < use.written.size(); ++i) {
          EXPECT_EQ(use.written[i],
                    std::vector<std::uint32_t>(kElements, static_cast<std::uint32_t>(i + 1)));
        }
      }
      reached = device->failed().has_value();
      device->ClearRules();
      for (const Status& status : statuses) {
        if (status.ok()) continue;
        EXPECT_THAT(MessageOf(status), HasSubstr("injected"));
        ++failures;
      }
      const Callable fill = Registered(FillImage());
      std::vector<std::uint32_t> out(8);
      for (WorkerId each = 0; each < kWorkers; ++each) {
        EXPECT_TRUE(IsOk(Submit(fill, Arguments().Add(Tag::kOut, On(out)).AddScalar(9U + each),
                                {.worker = each, .timeout = {}})
                             .Wait(Long())));
        EXPECT_EQ(out, std::vector<std::uint32_t>(8, 9 + each));
      }
      EXPECT_TRUE(IsOk(orchestrator_->Unregister(fill)));
      // A task whose end could not be waited for keeps what it has until the next one's begin.
      EXPECT_TRUE(IsOk(device->retries().Drain()));
      for (std::size_t i = 0; i < devices_.size(); ++i) {
        EXPECT_TRUE(Soon([&] {
          return Modules(i) == modules && memories_[i]->allocator().allocated() == allocated;
        })) << i;
      }
      ExpectStored(stored);
    }
    stop = true;
    submitter.join();
  }
  EXPECT_EQ(called, submitted);
  EXPECT_GT(failures - task_failures, 2 * kWorkers);
  EXPECT_GT(task_failures, 2 * kWorkers);
  EXPECT_EQ(orchestrator_->Report()[0].restarts, 0U);
  EXPECT_TRUE(IsOk(orchestrator_->Unregister(other)));
  EXPECT_TRUE(IsOk(orchestrator_->Unregister(function)));
  EXPECT_TRUE(Soon([&] { return NothingIsLeft(); }));
}

}  // namespace
}  // namespace keel::task
