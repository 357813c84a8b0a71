// Workers that are threads and share one memory: the same bytes, and the same callables.
#include <algorithm>
#include <atomic>
#include <future>
#include <thread>

#include "task/orchestrator_test.h"

namespace keel::task {
namespace {

constexpr WorkerId kWorkers = 2;

class SharedMemoryTest : public OrchestratorTest {
 protected:
  void SetUp() override {
    OrchestratorTest::SetUp();
    device_ = hal::Instrumented(Need(driver_->Open(0)));
    memory_ = Need(memory::DeviceMemory::Create(device_, {}));
    Start(Sharing());
  }
  void TearDown() override {
    orchestrator_.reset();
    memories_.clear();
    EXPECT_TRUE(Soon([&] { return memory_.use_count() == 1; })) << "a thread never ended";
    memory_.reset();
    EXPECT_EQ(hal::ToString(device_->Live()), "");
    OrchestratorTest::TearDown();
  }

  OrchestratorOptions Sharing() const {
    OrchestratorOptions options;
    options.workers.assign(kWorkers, {.device = "sim:0", .memory = memory_});
    options.orchestration = Orchestration::kDevice;
    return options;
  }
  std::uint64_t Loads() const { return device_->calls(hal::Primitive::kLoadModule); }
  bool NothingIsStored() const {
    const bool loaded = std::ranges::any_of(device_->Live(), [](const hal::LiveObject& object) {
      return object.created_by == hal::Primitive::kLoadModule;
    });
    return !loaded && memory_->allocator().allocated() == 0_B;
  }
  static std::uint64_t Uploads(const Orchestrator& orchestrator) {
    std::uint64_t uploads = 0;
    for (const WorkerReport& report : orchestrator.Report()) uploads += report.uploads;
    return uploads;
  }
  // Whether it writes there what it is told.
  void ExpectFills(Callable fill, WorkerId worker) {
    std::vector<std::uint32_t> out(16);
    EXPECT_TRUE(IsOk(Submit(fill, Arguments().Add(Tag::kOut, On(out)).AddScalar(5U + worker),
                            {.worker = worker, .timeout = {}})
                         .Wait(Long())));
    EXPECT_EQ(out, std::vector<std::uint32_t>(16, 5 + worker));
  }

  std::unique_ptr<hal::Driver> driver_ = hal::SimDriver(1);
  std::shared_ptr<hal::InstrumentedDevice> device_;
  std::shared_ptr<memory::DeviceMemory> memory_;
};
INSTANTIATE_TEST_SUITE_P(, SharedMemoryTest, ::testing::Values(Transport::kThread), TransportName);

TEST_P(SharedMemoryTest, T8_AnImageIsLoadedAndUploadedOnceForAllOfThem) {
  device_->ResetCounts();
  const Callable noop = Registered(NoopImage());
  EXPECT_EQ(Loads(), 1U);
  EXPECT_EQ(device_->calls(hal::Primitive::kCopy), 1U);
  EXPECT_EQ(Uploads(*orchestrator_), 1U) << "counted once";
  for (WorkerId worker = 0; worker < kWorkers; ++worker) {
    EXPECT_EQ(Need(orchestrator_->Report(worker)).callables, 1U);
    EXPECT_TRUE(IsOk(Submit(noop, {}, {.worker = worker, .timeout = {}}).Wait(Long())));
  }
  // Another orchestrator on the same memory has it, too, and keeps it.
  const auto other = Need(Orchestrator::Create(Sharing()));
  const Callable theirs = Need(other->Register(NoopImage()));
  EXPECT_TRUE(IsOk(orchestrator_->Unregister(noop)));
  EXPECT_EQ(Need(orchestrator_->Report(0)).callables, 0U);
  EXPECT_TRUE(IsOk(Need(other->Submit(theirs, {})).Wait(Long())));
  EXPECT_EQ(Loads(), 1U);
  EXPECT_EQ(Uploads(*other), 0U);
  EXPECT_FALSE(NothingIsStored());
  EXPECT_TRUE(IsOk(other->Unregister(theirs)));
  EXPECT_TRUE(Soon([&] { return NothingIsStored(); }));
}

TEST_P(SharedMemoryTest, T8_AlsoWhileAnotherThreadRegistersTheSame) {
  const std::array images{NoopImage(0), NoopImage(1)};
  const auto other = Need(Orchestrator::Create(Sharing()));
  device_->ResetCounts();
  std::vector<std::thread> threads;
  for (Orchestrator* const orchestrator : {orchestrator_.get(), other.get(), orchestrator_.get()}) {
    threads.emplace_back([&images, orchestrator] {
      for (std::size_t i = 0; i < 100; ++i) {
        const Callable callable = Need(orchestrator->Register(images[i % 2]));
        EXPECT_TRUE(IsOk(Need(orchestrator->Submit(callable, {})).Wait(Long())));
        EXPECT_TRUE(IsOk(orchestrator->Unregister(callable)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(Soon([&] { return NothingIsStored(); }));
  // What was made was counted, by one.
  EXPECT_EQ(Uploads(*orchestrator_) + Uploads(*other), Loads());
}

// The thread that hangs keeps its share, until it ends; the others keep theirs.
TEST_P(SharedMemoryTest, AWorkerThatHangsTakesNoCallableWithIt) {
  const Callable fill = Registered(FillImage());
  std::promise<void> release;
  const Callable hangs =
      Need(orchestrator_->Register([released = release.get_future().share()](HostCall&) -> Status {
        released.wait();
        return OkStatus();
      }));
  const TaskHandle hung = Submit(hangs, {}, {.worker = 0, .timeout = milliseconds(20)});
  EXPECT_EQ(hung.Wait(Long()).code(), StatusCode::kDeadlineExceeded);
  ExpectFills(fill, 1);
  EXPECT_TRUE(Soon([&] { return Need(orchestrator_->Report(0)).up; }));
  EXPECT_EQ(Need(orchestrator_->Report(0)).restarts, 1U);
  ExpectFills(fill, 0);
  EXPECT_TRUE(IsOk(orchestrator_->Unregister(fill)));
  EXPECT_TRUE(IsOk(orchestrator_->Unregister(hangs)));
  EXPECT_FALSE(NothingIsStored()) << "the thread may go on with it";
  release.set_value();
  EXPECT_TRUE(Soon([&] { return NothingIsStored(); }));
}

// One was given the process's memory, the other has found it.
TEST(ProcessMemoryTest, T1_TheProcessesMemoryIsTheSameByAnyName) {
  OrchestratorOptions options;
  options.workers = {
      {.device = "sim:0",
       .memory = Need(memory::ProcessMemory::Global().For({.driver = "sim", .ordinal = 0}))},
      {.device = "sim:0", .memory = nullptr}};
  auto orchestrator = Need(Orchestrator::Create(std::move(options)));
  const DeviceAddress block = Need(orchestrator->Malloc(0, 1_KiB));
  EXPECT_TRUE(IsOk(orchestrator->RegisterMemory(1, block, 1_KiB)));
  std::promise<void> release;
  std::atomic<bool> written = false;
  const Callable write = Need(orchestrator->Register([&](HostCall&) -> Status {
    release.get_future().wait();
    written = true;
    return OkStatus();
  }));
  const Callable read = Need(orchestrator->Register(
      [&](HostCall&) -> Status { return written ? OkStatus() : Internal("too soon"); }));
  const Callable noop = Need(orchestrator->Register([](HostCall&) { return OkStatus(); }));
  const TaskHandle writer = Need(orchestrator->Submit(
      write, Arguments().Add(Tag::kOut, At<float>(block, 8)), {.worker = 0, .timeout = {}}));
  const TaskHandle reader = Need(orchestrator->Submit(
      read, Arguments().Add(Tag::kIn, At<float>(block, 8)), {.worker = 1, .timeout = {}}));
  // It would have run before this one.
  EXPECT_TRUE(
      IsOk(Need(orchestrator->Submit(noop, {}, {.worker = 1, .timeout = {}})).Wait(Long())));
  EXPECT_FALSE(reader.done());
  release.set_value();
  EXPECT_TRUE(IsOk(writer.Wait(Long())));
  EXPECT_TRUE(IsOk(reader.Wait(Long())));
  orchestrator.reset();
  EXPECT_TRUE(IsOk(memory::ProcessMemory::Global().Shutdown()));
}

}  // namespace
}  // namespace keel::task
