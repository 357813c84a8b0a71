// Joins a vendor's driver to the conformance suite, on the machine's own devices or on those of a
// stand-in (KEEL_<VENDOR>_LIBRARY). What is optional is whatever the first device says it can do.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "hal/conformance/conformance.h"

namespace keel::vendor {

struct VendorJoin {
  const char* driver = nullptr;
  // Names an image of the standard kernels, which Keel does not bring for this vendor.
  const char* kernels_variable = nullptr;
};

// Whether a value write can be a node of a graph: older libraries have no such nodes.
inline bool HasValueNodes(hal::Device& device) {
  if (!device.capabilities().graphs || !device.capabilities().value_writes) return false;
  const auto graph = device.CreateGraph();
  const auto memory = device.AllocatePlain(Bytes(8));
  if (!graph.ok() || !memory.ok()) return false;
  const auto node = device.AddNode(*graph, {}, hal::ValueWrite{*memory, 1});
  static_cast<void>(device.DestroyGraph(*graph));
  static_cast<void>(device.FreePlain(*memory));
  return node.ok();
}

// main() of the joining program: its exit status. 77, which ctest takes for "skipped", where there
// is no device or no image.
inline int RunConformance(int argc, char** argv, const VendorJoin& join) {
  using hal::conformance::Listed;
  constexpr int kSkipped = 77;
  const auto driver = hal::Registry::Global().Find(join.driver);
  if (!driver.ok()) {
    std::fprintf(stderr, "%s\n", driver.status().ToString().c_str());
    return 1;
  }
  const auto devices = (*driver)->Enumerate();
  if (!devices.ok() || devices->empty()) {
    std::fprintf(stderr, "no %s device: %s\n", join.driver, devices.status().ToString().c_str());
    return kSkipped;
  }
  if (std::getenv(join.kernels_variable) == nullptr) {
    std::fprintf(stderr, "%s does not say where the standard kernels are\n", join.kernels_variable);
    return kSkipped;
  }
  hal::Capabilities expect;
  bool value_nodes = false;
  {
    // Closed again: the cases open their own.
    const auto first = (*driver)->Open(0);
    if (!first.ok()) {
      std::fprintf(stderr, "%s\n", first.status().ToString().c_str());
      return 1;
    }
    expect = (*first)->capabilities();
    value_nodes = HasValueNodes(**first);
  }
  expect.kernels = expect.event_timing = true;
  std::vector<Listed> unsupported;
  if (!expect.rdma_memory) {
    unsupported.push_back({"Capabilities.RdmaMemoryIsMemory", "the system has no RDMA support"});
  }
  for (const char* name :
       {"Orchestration.ARefusedLaunchFailsTheCall",
        "Orchestration.CodeMustBeInMemoryThatTheDeviceCanRead",
        "Orchestration.LaunchesKernelsInOrder", "Orchestration.SaysWhatTheCodeReturned"}) {
    unsupported.push_back({name, "the device has no controller that runs code of others"});
  }
  std::vector<Listed> expected_failures;
  if (expect.graphs && !value_nodes) {
    for (const char* name :
         {"Capture.RecordsEveryKindOfCommand", "Graphs.RunEveryKindOfNode",
          "Graphs.AWaitNodeHoldsTheRestOfTheGraph", "Graphs.EventsAfterALaunchStandForAllOfIt",
          "Graphs.DifferentExecsRunSideBySide", "NodeUpdate.OfAValueWrite",
          "NodeUpdate.OfAValueWait"}) {
      expected_failures.push_back({name, "the library has no nodes that write or await values"});
    }
  }
  return hal::conformance::Main(argc, argv,
                                {.driver = join.driver,
                                 .devices = static_cast<int>(devices->size()),
                                 .open = hal::conformance::OpenFrom(**driver),
                                 .expect = expect,
                                 .unsupported = unsupported,
                                 .expected_failures = expected_failures});
}

}  // namespace keel::vendor
