// The workers of keel demo's pipeline: who runs them, and on which devices.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "demo_steps.h"
#include "keel/base/result.h"
#include "keel/hal/instrumented.h"
#include "keel/task/orchestrator.h"

namespace keel::cli {

// Four workers of one transport. A thread has a device of its own if the driver has so many, and
// shares one if not; of the simulated driver there are always four, in separate spaces with equal
// addresses. A process opens its device itself; a simulated one is then its own, too.
class DemoWorkers {
 public:
  static constexpr std::size_t kCount = 4;

  static Result<DemoWorkers> Create(const StepContext& context);

  task::Orchestrator& orchestrator() { return *orchestrator_; }
  // "4 threads, each with a simulated device", for people.
  const std::string& description() const { return description_; }
  // How many devices they have together.
  std::size_t device_count() const { return device_count_; }
  // Ends them. kInternal: something was left on a device, as far as it can be seen from here.
  Status Close();

 private:
  Status AddThreads(const StepContext& context, task::OrchestratorOptions& options);
  Status AddProcesses(const StepContext& context, task::OrchestratorOptions& options);

  std::vector<std::shared_ptr<hal::InstrumentedDevice>> devices_;  // of threads; not the demo's own
  std::unique_ptr<task::Orchestrator> orchestrator_;
  std::string description_;
  std::size_t device_count_ = 0;
};

}  // namespace keel::cli
