// What the tests of the orchestrator share: orchestrators of both transports on simulated devices,
// and short ways to use them.
#pragma once

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/soon_test.h"
#include "hal/sim_devices_test.h"
#include "keel/base/unique_fd.h"
#include "keel/hal/stream.h"
#include "keel/memory/process_memory.h"
#include "keel/task/orchestrator.h"
#include "task/images_test.h"
#include "task/transports_test.h"

namespace keel::task {

using hal::IsOk;
using hal::Need;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

// Longer than anything takes.
inline Deadline Long() { return Deadline::After(seconds(60)); }

// Whether the long version was asked for (./dev soak).
inline bool Soaking() {
  const char* const soak = std::getenv("KEEL_SOAK");
  return soak != nullptr && *soak != '\0';
}

inline std::string MessageOf(const Status& status) { return std::string(status.message()); }

template <class T>
constexpr DataType TypeOf() {
  if constexpr (std::is_same_v<T, float>) return DataType::kFloat32;
  if constexpr (std::is_same_v<T, std::uint32_t>) return DataType::kUInt32;
  return DataType::kUInt64;
}
template <class T>
Tensor On(std::span<T> values) {
  const std::array<std::uint32_t, 1> shape{static_cast<std::uint32_t>(values.size())};
  return Tensor::Host(values.data(), TypeOf<T>(), shape);
}
template <class T>
Tensor On(const std::vector<T>& values) {
  const std::array<std::uint32_t, 1> shape{static_cast<std::uint32_t>(values.size())};
  return Tensor::Host(values.data(), TypeOf<T>(), shape);
}
template <class T>
Tensor At(DeviceAddress address, std::size_t count) {
  const std::array<std::uint32_t, 1> shape{static_cast<std::uint32_t>(count)};
  return Tensor::Resident(address, TypeOf<T>(), shape);
}

// One memory of its own for each of `config.devices` devices.
inline std::vector<WorkerOptions> ThreadsOn(const sim::SimConfig& config) {
  auto driver = Need(sim::CreateSimDriver(config));
  std::vector<WorkerOptions> workers;
  for (int i = 0; i < config.devices; ++i) {
    WorkerOptions& worker = workers.emplace_back();
    worker.device = "sim:" + std::to_string(i);
    worker.memory = Need(memory::DeviceMemory::Create(Need(driver->Open(i)), {}));
  }
  return workers;
}

class OrchestratorTest : public ::testing::TestWithParam<Transport> {
 protected:
  void SetUp() override { SetLogLevel(LogLevel::kOff); }
  void TearDown() override { SetLogLevel(LogLevel::kWarn); }

  OrchestratorOptions Options(int workers) const {
    OrchestratorOptions options;
    options.transport = GetParam();
    options.worker_program = KEEL_WORKER_PROGRAM;
    if (GetParam() == Transport::kThread) {
      options.workers =
          ThreadsOn({.devices = workers, .memory = 1_GiB, .granularity = 2_MiB, .arena = 8_GiB});
    } else {
      options.workers.assign(static_cast<std::size_t>(workers), {.device = "sim:0", .memory = {}});
    }
    return options;
  }
  void Start(OrchestratorOptions options) {
    for (const WorkerOptions& worker : options.workers) memories_.push_back(worker.memory);
    orchestrator_ = Need(Orchestrator::Create(std::move(options)));
  }
  void Start(int workers) { Start(Options(workers)); }

  Callable Registered(const Image& image) { return Need(orchestrator_->Register(image)); }
  template <class T>
  DeviceAddress Upload(WorkerId worker, const std::vector<T>& values) {
    const Bytes size(values.size() * sizeof(T));
    const DeviceAddress address = Need(orchestrator_->Malloc(worker, size));
    EXPECT_TRUE(IsOk(orchestrator_->CopyTo(worker, address, values.data(), size)));
    return address;
  }
  template <class T>
  std::vector<T> Download(WorkerId worker, DeviceAddress address, std::size_t count) {
    std::vector<T> values(count);
    EXPECT_TRUE(
        IsOk(orchestrator_->CopyFrom(worker, values.data(), address, Bytes(count * sizeof(T)))));
    return values;
  }
  TaskHandle Submit(Callable callable, const Arguments& arguments,
                    const SubmitOptions& options = {}) {
    return Need(orchestrator_->Submit(callable, arguments, options));
  }

  // A task that keeps a worker busy until Release, or the end of the test: a kernel in a thread's
  // device, orchestration code in a process.
  class Held {
   public:
    Held(OrchestratorTest& test, WorkerId worker)
        : memory_(test.memories_.at(worker)), task(Begin(test, worker)) {}
    ~Held() { Release(); }
    void Release() {
      if (memory_ == nullptr) {
        descriptor_.Reset(-1);
        return;
      }
      // Behind the orchestrator's back, which would wait for the task. Not a copy: the kernel reads
      // the word meanwhile.
      const hal::Stream stream = Need(hal::Stream::Create(memory_->device()));
      EXPECT_TRUE(IsOk(memory_->device()->WriteValue(
          stream.get(), {.destination = flag_, .value = ~std::uint64_t{0}})));
      EXPECT_TRUE(IsOk(stream.Synchronize(Deadline::Never())));
    }

   private:
    TaskHandle Begin(OrchestratorTest& test, WorkerId worker) {
      if (memory_ != nullptr) {
        flag_ = test.Upload(worker, std::vector<std::uint64_t>{0});
        return test.Submit(test.Registered(SpinImage()),
                           Arguments()
                               .Add(Tag::kInOut, At<std::uint64_t>(flag_, 1))
                               .AddScalar(std::uint64_t{60'000'000}),
                           {.worker = worker, .timeout = {}});
      }
      // Nobody else takes a number that high, so that it is gone with the descriptor.
      constexpr int kHigh = 900;
      const UniqueFd none(open("/dev/null", O_RDONLY | O_CLOEXEC));
      descriptor_.Reset(fcntl(none.get(), F_DUPFD_CLOEXEC, kHigh));
      EXPECT_TRUE(descriptor_.valid());
      return test.Submit(test.Registered(HoldImage()),
                         Arguments().AddScalar(getpid()).AddScalar(descriptor_.get()),
                         {.worker = worker, .timeout = {}});
    }

    const std::shared_ptr<memory::DeviceMemory> memory_;  // of a thread
    DeviceAddress flag_;
    UniqueFd descriptor_;  // of this process, while it is held

   public:
    const TaskHandle task;
  };

  std::vector<std::shared_ptr<memory::DeviceMemory>> memories_;
  std::unique_ptr<Orchestrator> orchestrator_;
};

}  // namespace keel::task
