// Kernels of the simulated device: C++ functions by name, from sets that were registered or from
// shared objects.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "keel/base/result.h"
#include "keel/drivers/sim.h"
#include "keel/hal/module_source.h"
#include "keel/hal/orchestration.h"

namespace keel::sim {

// A kernel that work can be launched with. Keeps the code that it points into loaded, so work
// that is queued survives the unloading of its module.
struct Kernel {
  std::string name;
  KernelFunction function = nullptr;
  std::vector<KernelParameter> parameters;
  std::shared_ptr<void> library;  // null for a registered set
  // Of orchestration code, which the controller runs (controller.h); `function` is null then.
  hal::OrchestrationFunction orchestration = nullptr;
};

using KernelSet = std::vector<std::shared_ptr<const Kernel>>;

// The set under which standard_kernels.cc registers itself.
inline constexpr std::string_view kStandardSet = "keel";
std::span<const KernelDefinition> StandardKernelDefinitions();

// Of any kind but code in device memory, which only its device can read.
Result<KernelSet> LoadKernels(const hal::ModuleSource& source);
// The one kernel of orchestration code, as keel/hal/orchestration.h says.
Result<KernelSet> LoadOrchestration(std::span<const std::byte> code);

// kInvalidArgument names the argument that does not fit.
Status CheckArguments(const Kernel& kernel, const hal::KernelLaunch& launch);

}  // namespace keel::sim
