// The simulated driver in the conformance suite.
//
//   sim_conformance [--sim=devices:8,memory:4GiB] [--gtest_...]
//
// The flag takes what KEEL_SIM takes.

#include <cstddef>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hal/conformance/conformance.h"
#include "keel/drivers/sim.h"

namespace keel::sim {
namespace {

constexpr std::string_view kFlag = "--sim=";

std::vector<hal::conformance::Listed> Unsupported(const SimConfig& config) {
  std::vector<hal::conformance::Listed> list = {
      {"Capabilities.RdmaMemoryIsMemory", "no other hardware is simulated that could use it"}};
  if (!config.unified) {
    const std::string reason = "this configuration gives every device addresses of its own";
    for (const char* name :
         {"Loss.APeersPageWithoutAccessLosesTheOneThatTouchesIt",
          "Loss.APeersPlainMemoryWithoutAccessIsAFault",
          "Peers.AddressesOfUnifiedDevicesAreDisjoint", "Peers.EnabledOnesUsePlainMemory",
          "Peers.GetExactlyTheAccessTheyAreGiven", "Peers.MemoryOfOneIsMappedOnAnother"}) {
      list.push_back({name, reason});
    }
  }
  return list;
}

std::vector<std::byte> ReadFile(const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

int Run(int argc, char** argv) {
  std::string text = "memory:4GiB";
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with(kFlag)) text = argument.substr(kFlag.size());
  }
  const Result<SimConfig> config = ParseSimConfig("--sim", text);
  if (!config.ok()) {
    std::fprintf(stderr, "%s\n", config.status().ToString().c_str());
    return 2;
  }
  const Result<std::unique_ptr<hal::Driver>> driver = CreateSimDriver(*config);
  if (!driver.ok()) {
    std::fprintf(stderr, "%s\n", driver.status().ToString().c_str());
    return 2;
  }
  return hal::conformance::Main(
      argc, argv,
      {.driver = "sim",
       .flag = std::string(kFlag),
       .devices = config->devices,
       .open = hal::conformance::OpenFrom(**driver),
       .expect = {.virtual_memory = true,
                  .granularity = {config->granularity, config->granularity},
                  .exportable_memory = true,
                  .host_registration = true,
                  .unified_addresses = config->unified,
                  .kernels = true,
                  .orchestration = true,
                  .host_calls = true,
                  .value_writes = true,
                  .value_waits = true,
                  .event_timing = true,
                  .graphs = true,
                  .graph_update = true,
                  .node_update = true},
       .detects_stale_handles = true,
       .checks_kernel_arguments = true,
       .names_fault_address = true,
       .names_arguments = true,
       .checks_fills = true,
       .checks_import_size = true,
       .loss_stops_running_work = true,
       .reopens_after_loss = true,
       .names_breaking_call = true,
       .orchestration = ReadFile(KEEL_ORCHESTRATION_CODE),
       .unsupported = Unsupported(*config)});
}

}  // namespace
}  // namespace keel::sim

int main(int argc, char** argv) { return keel::sim::Run(argc, argv); }
