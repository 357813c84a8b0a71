// A core with workers that do what the test says.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "task/fake_worker_test.h"
#include "task/orchestrator_core.h"
#include "task/orchestrator_test.h"

namespace keel::task {

class OrchestratorCoreTest : public ::testing::Test {
 protected:
  void SetUp() override { SetLogLevel(LogLevel::kOff); }
  void TearDown() override {
    if (core_ != nullptr) core_->Stop();
    SetLogLevel(LogLevel::kWarn);
  }

  void Start(std::size_t workers, OrchestratorOptions options = {}) {
    options.workers.resize(workers);
    options.stop_timeout = milliseconds(1);
    options.transport = transport_;
    fakes_.resize(workers);
    core_ = Need(OrchestratorCore::Create(
        std::move(options),
        [this](const WorkerStart& start, Deadline) -> Result<std::unique_ptr<Worker>> {
          auto worker = std::make_unique<FakeWorker>(start.doorbell);
          fakes_[start.index] = worker.get();
          return std::unique_ptr<Worker>(std::move(worker));
        }));
    callable_ = Need(core_->Register(NoopImage()));
  }
  TaskHandle Submit(const Arguments& arguments = {}, const SubmitOptions& options = {}) {
    return Need(core_->Submit(callable_, arguments, options));
  }
  TaskHandle SubmitTo(WorkerId worker, const Arguments& arguments = {},
                      std::optional<std::chrono::nanoseconds> timeout = {}) {
    return Submit(arguments, {.worker = worker, .timeout = timeout});
  }
  TaskHandle SubmitGroup(std::vector<WorkerId> workers) {
    const std::vector<Arguments> members(workers.size());
    return Need(core_->SubmitGroup(callable_, members, workers, {}));
  }
  bool Posted(WorkerId worker, std::size_t count) {
    return Soon([&] { return fakes_[worker]->posted() == count; });
  }
  WorkerReport ReportOf(WorkerId worker) { return core_->Report()[worker]; }
  bool Up(WorkerId worker) {
    return Soon([&] { return ReportOf(worker).up; });
  }

  // What the core may assume about a worker that is lost.
  Transport transport_ = Transport::kProcess;
  std::vector<FakeWorker*> fakes_;
  std::shared_ptr<OrchestratorCore> core_;
  Callable callable_;
};

}  // namespace keel::task
