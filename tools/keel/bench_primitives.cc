// keel bench primitives: what the policies of graphs are made of.
#include <chrono>
#include <cmath>
#include <memory>

#include "keel/graph/primitive_costs.h"
#include "keel/memory/process_memory.h"
#include "measure.h"

namespace keel::cli {
namespace {

Result<std::vector<Measurement>> Measure(const BenchSetting& setting) {
  using Unit = Measurement::Unit;
  KEEL_ASSIGN(const auto memory, memory::DeviceMemory::Create(setting.device, setting.config));
  KEEL_ASSIGN(const graph::PrimitiveCosts costs,
              graph::MeasurePrimitiveCosts(memory, Deadline::After(std::chrono::seconds(60))));
  const auto none = nlohmann::ordered_json::object();
  std::vector<Measurement> measured{
      {"rewrite a command", none, Unit::kNanoseconds, costs.patch_us * 1000},
      {"kernels of a step that copies", none, Unit::kNanoseconds, costs.copy_step_us * 1000},
      {"copy by kernels", none, Unit::kGigabytesPerSecond, costs.copy_bytes_per_us / 1000}};
  if (std::isfinite(costs.remap_us)) {
    measured.push_back({"map other memory", none, Unit::kNanoseconds, costs.remap_us * 1000});
  }
  return measured;
}

}  // namespace

std::vector<BenchCase> PrimitiveCases(const BenchSetting& setting) {
  return {{"what auto reckons with", [setting] { return Measure(setting); }}};
}

}  // namespace keel::cli
