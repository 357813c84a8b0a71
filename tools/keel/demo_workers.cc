#include "demo_workers.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "choice.h"
#include "keel/drivers/sim.h"
#include "keel/hal/driver.h"
#include "keel/memory/process_memory.h"

namespace keel::cli {
namespace {

// Simulated devices as KEEL_SIM wants them, but four.
Result<std::unique_ptr<hal::Driver>> CreateSimulated() {
  const char* const text = std::getenv("KEEL_SIM");
  KEEL_ASSIGN(sim::SimConfig config, sim::ParseSimConfig("KEEL_SIM", text == nullptr ? "" : text));
  config.devices = DemoWorkers::kCount;
  config.unified = false;
  config.peers = false;
  return sim::CreateSimDriver(config);
}

// The driver's devices, the chosen one first.
Result<std::vector<int>> Ordinals(const hal::DeviceInfo& chosen) {
  KEEL_ASSIGN(hal::Driver* const driver, FindDriver(chosen.driver));
  KEEL_ASSIGN(const std::vector<hal::DeviceInfo> infos, driver->Enumerate());
  std::vector<int> ordinals{chosen.ordinal};
  for (const hal::DeviceInfo& info : infos) {
    if (info.ordinal != chosen.ordinal) ordinals.push_back(info.ordinal);
  }
  return ordinals;
}

}  // namespace

Result<DemoWorkers> DemoWorkers::Create(const StepContext& context) {
  DemoWorkers workers;
  task::OrchestratorOptions options;
  options.transport = context.options.transport;
  options.task_timeout = std::chrono::seconds(60);
  KEEL_TRY(options.transport == task::Transport::kThread ? workers.AddThreads(context, options)
                                                         : workers.AddProcesses(context, options));
  KEEL_ASSIGN(workers.orchestrator_, task::Orchestrator::Create(std::move(options)));
  return workers;
}

Status DemoWorkers::AddThreads(const StepContext& context, task::OrchestratorOptions& options) {
  const hal::DeviceInfo& chosen = context.device->info();
  std::vector<std::shared_ptr<memory::DeviceMemory>> memories;
  const auto add = [&](const std::shared_ptr<hal::Device>& device) -> Status {
    KEEL_ASSIGN(memories.emplace_back(), memory::DeviceMemory::Create(device, {}));
    return OkStatus();
  };
  if (chosen.simulated) {
    KEEL_ASSIGN(const std::unique_ptr<hal::Driver> driver, CreateSimulated());
    for (std::size_t i = 0; i < kCount; ++i) {
      KEEL_ASSIGN(std::shared_ptr<hal::Device> device, driver->Open(static_cast<int>(i)));
      devices_.push_back(hal::Instrumented(std::move(device)));
      KEEL_TRY(add(devices_.back()));
    }
    description_ = fmt::format("{} threads, each with a simulated device", kCount);
  } else {
    KEEL_TRY(add(context.device));
    KEEL_ASSIGN(const std::vector<int> ordinals, Ordinals(chosen));
    KEEL_ASSIGN(hal::Driver* const driver, FindDriver(chosen.driver));
    for (std::size_t i = 1; i < kCount && i < ordinals.size(); ++i) {
      KEEL_ASSIGN(std::shared_ptr<hal::Device> device, driver->Open(ordinals[i]));
      devices_.push_back(hal::Instrumented(std::move(device)));
      KEEL_TRY(add(devices_.back()));
    }
    description_ = fmt::format("{} threads on {} device{}", kCount, memories.size(),
                               memories.size() == 1 ? "" : "s");
  }
  device_count_ = memories.size();
  for (std::size_t i = 0; i < kCount; ++i) {
    const std::shared_ptr<memory::DeviceMemory>& memory = memories[i % memories.size()];
    options.workers.push_back({.device = memory->name().ToString(), .memory = memory});
  }
  return OkStatus();
}

Status DemoWorkers::AddProcesses(const StepContext& context, task::OrchestratorOptions& options) {
  const hal::DeviceInfo& chosen = context.device->info();
  KEEL_ASSIGN(std::vector<int> ordinals, Ordinals(chosen));
  // Each process has simulated devices of its own: the chosen one, in each of them.
  if (chosen.simulated) ordinals.resize(1);
  for (std::size_t i = 0; i < kCount; ++i) {
    const hal::DeviceName name{.driver = std::string(chosen.driver),
                               .ordinal = ordinals[i % ordinals.size()]};
    options.workers.push_back({.device = name.ToString(), .memory = nullptr});
  }
  device_count_ = chosen.simulated ? kCount : std::min(kCount, ordinals.size());
  const char* const what = options.transport == task::Transport::kMpi ? "ranks" : "processes";
  description_ = chosen.simulated ? fmt::format("{} {}, each with a simulated device", kCount, what)
                                  : fmt::format("{} {} on {} device{}", kCount, what, device_count_,
                                                device_count_ == 1 ? "" : "s");
  return OkStatus();
}

Status DemoWorkers::Close() {
  orchestrator_.reset();
  for (const std::shared_ptr<hal::InstrumentedDevice>& device : devices_) {
    for (const hal::LiveObject& object : device->Live()) {
      return Internal(fmt::format("the workers left {} on {} device {}", object.ToString(),
                                  device->info().driver, device->info().ordinal));
    }
  }
  return OkStatus();
}

}  // namespace keel::cli
