// A module for the simulated device, as a user would build one: a shared object.

#include <cstdint>

#include "keel/drivers/sim.h"

namespace {

void Double(keel::sim::KernelContext& context) {
  for (std::uint64_t& value : context.Buffer<std::uint64_t>(0)) value *= 2;
}

constexpr keel::sim::KernelParameter kParameters[] = {keel::sim::KernelParameter::InOut()};
constexpr keel::sim::KernelDefinition kKernels[] = {{"double", Double, kParameters}};

}  // namespace

extern "C" [[gnu::visibility("default")]] const keel::sim::ModuleKernels* keel_sim_module() {
  static constexpr keel::sim::ModuleKernels kModule{kKernels, 1};
  return &kModule;
}
