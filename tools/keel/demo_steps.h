// The steps of `keel demo`: each does something real on a device and checks the result.
//
// A step knows nothing of terminals; demo.cc shows what it returns.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "keel/base/bytes.h"
#include "keel/base/deadline.h"
#include "keel/base/result.h"
#include "keel/hal/instrumented.h"
#include "keel/task/orchestrator.h"

namespace keel::cli {

// What a step showed. That it returned at all says that it was verified.
struct Shown {
  std::vector<std::string> lines;  // for people
  nlohmann::ordered_json details;  // the same for programs
};

// What the user chose, beside the device.
struct DemoOptions {
  task::Transport transport = task::Transport::kThread;  // of the pipeline's workers
  Bytes weights = 4_MiB;                                 // of its layers together
  std::uint32_t sent_along =
      0;  // requests with weights that are sent along; 0: as many as is quick
};

struct StepContext {
  std::shared_ptr<hal::InstrumentedDevice> device;
  DemoOptions options;
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;
};

struct DemoStep {
  std::string_view name;   // one word, stable
  std::string_view title;  // for people
  // Why the device cannot do this; empty when it can.
  std::string (*missing)(const hal::Capabilities& capabilities);
  Result<Shown> (*run)(const StepContext& context);
};

std::span<const DemoStep> DemoSteps();

// For anything that a step waits for.
inline Deadline DemoPatience() { return Deadline::After(std::chrono::seconds(30)); }

// Waits for the device when a step is left early: what is declared before it must not be given
// back while work uses it. The error that ends the step matters; one of this wait does not.
class FinishWork {
 public:
  explicit FinishWork(hal::Device& device) : device_(device) {}
  ~FinishWork() {
    if (const Status status = device_.Synchronize(DemoPatience()); !status.ok()) return;
  }
  FinishWork(const FinishWork&) = delete;
  FinishWork& operator=(const FinishWork&) = delete;

 private:
  hal::Device& device_;
};

}  // namespace keel::cli
