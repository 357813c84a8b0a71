// What the tests of workers share: workers of both transports on the process's simulated device,
// and short ways to run tasks on them.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/soon_test.h"
#include "hal/sim_devices_test.h"
#include "keel/memory/process_memory.h"
#include "task/images_test.h"
#include "task/lane_worker.h"
#include "task/worker.h"

namespace keel::task {

using hal::IsOk;
using hal::Need;
using std::chrono::milliseconds;

inline Deadline Long() { return Deadline::After(std::chrono::seconds(60)); }

template <class T>
Tensor On(const std::vector<T>& values, DataType type) {
  const std::array<std::uint32_t, 1> shape{static_cast<std::uint32_t>(values.size())};
  return Tensor::Host(values.data(), type, shape);
}
inline Tensor On(const std::vector<float>& values) { return On(values, DataType::kFloat32); }
inline Tensor On(const std::vector<std::uint32_t>& values) { return On(values, DataType::kUInt32); }

// A flag on the device for SpinImage, which ends when it is all ones.
inline Arguments SpinOn(DeviceAddress flag, std::chrono::microseconds limit) {
  const std::array<std::uint32_t, 1> one{1};
  Arguments arguments;
  arguments.Add(Tag::kInOut, Tensor::Resident(flag, DataType::kUInt64, one))
      .AddScalar(static_cast<std::uint64_t>(limit.count()));
  return arguments;
}

class WorkersTest : public ::testing::Test {
 protected:
  void SetUp() override { SetLogLevel(LogLevel::kOff); }
  // Closes the device, whose threads end with it; also when a thread that was left behind is done.
  void TearDown() override {
    std::vector<std::weak_ptr<memory::DeviceMemory>> open;
    for (const auto& memory : Need(memory::ProcessMemory::Global().List())) open.push_back(memory);
    EXPECT_TRUE(IsOk(memory::ProcessMemory::Global().Shutdown()));
    for (const auto& memory : open) {
      EXPECT_TRUE(Soon([&] { return memory.expired(); })) << "somebody still has the device";
    }
    SetLogLevel(LogLevel::kWarn);
  }

  WorkerStart Plan(Bytes shared = 64_MiB) const {
    return {.options = {.device = "sim:0", .memory = nullptr},
            .shared_memory = shared,
            .program = KEEL_WORKER_PROGRAM,
            .doorbell = doorbell_};
  }
  static Peer& PeerOf(Worker& worker) { return dynamic_cast<LaneWorker&>(worker).peer(); }
  // Returns when none of its threads runs any more.
  static bool Freeze(Worker& worker) {
    siginfo_t info{};
    return kill(ProcessOf(worker), SIGSTOP) == 0 &&
           waitid(P_PID, static_cast<id_t>(ProcessOf(worker)), &info, WSTOPPED) == 0;
  }
  static bool Thaw(Worker& worker) { return kill(ProcessOf(worker), SIGCONT) == 0; }
  static pid_t ProcessOf(Worker& worker) { return PeerOf(worker).process(); }

  // Until so many have ended, or far too much time has gone by.
  std::vector<TaskResult> Collect(Worker& worker, std::size_t count) {
    std::vector<TaskResult> results;
    const Deadline deadline = Long();
    worker.Wake();
    for (;;) {
      const std::uint32_t seen = doorbell_->value();
      worker.Collect(results);
      if (results.size() >= count || deadline.Passed()) return results;
      const Deadline next = worker.NextDeadline();
      const std::array answer{worker.NextAnswer()};
      doorbell_->WaitWhile(seen, answer, next.when() < deadline.when() ? next : deadline);
    }
  }
  // The outcome of one task.
  Status Run(Worker& worker, std::uint64_t callable, const Arguments& arguments,
             Deadline deadline = Deadline::Never()) {
    KEEL_TRY(worker.Post(77, callable, arguments, deadline));
    const std::vector<TaskResult> results = Collect(worker, 1);
    if (results.size() != 1 || results[0].task != 77) return Internal("the task did not come back");
    return results[0].status;
  }
  // Whether a task gets its tensors and gives its results.
  ::testing::AssertionResult Adds(Worker& worker) {
    const Result<std::uint64_t> add = worker.Register(AddImage(), Long());
    if (!add.ok()) return IsOk(add);
    const std::vector<float> a(100, 1.5F);
    const std::vector<float> b(100, 2.0F);
    std::vector<float> c(100);
    Arguments arguments;
    arguments.Add(Tag::kIn, On(a)).Add(Tag::kIn, On(b)).Add(Tag::kOut, On(c));
    const Status status = Run(worker, *add, arguments);
    if (!status.ok()) return IsOk(status);
    if (c != std::vector<float>(100, 3.5F)) return ::testing::AssertionFailure() << "wrong sums";
    return IsOk(worker.Unregister(*add, Long()));
  }

  std::shared_ptr<Doorbell> doorbell_ = Need(Doorbell::Create());
};

}  // namespace keel::task
