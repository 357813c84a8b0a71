// The CUDA driver in the conformance suite, on the machine's own devices or on those of a stand-in
// (KEEL_CUDA_LIBRARY). Where there are none the program says why and ends with 77, which ctest
// takes for "skipped".

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "hal/conformance/conformance.h"

namespace {

using keel::hal::conformance::Listed;

constexpr int kSkipped = 77;

int Run(int argc, char** argv) {
  const auto driver = keel::hal::Registry::Global().Find("cuda");
  if (!driver.ok()) {
    std::fprintf(stderr, "%s\n", driver.status().ToString().c_str());
    return 1;
  }
  const auto devices = (*driver)->Enumerate();
  if (!devices.ok() || devices->empty()) {
    std::fprintf(stderr, "no CUDA device: %s\n", devices.status().ToString().c_str());
    return kSkipped;
  }
  // What is optional in CUDA is whatever this device says; the rest is expected of every one.
  keel::hal::Capabilities expect;
  {
    // Closed again: the cases open their own.
    const auto first = (*driver)->Open(0);
    if (!first.ok()) {
      std::fprintf(stderr, "%s\n", first.status().ToString().c_str());
      return 1;
    }
    expect = (*first)->capabilities();
  }
  expect.kernels = expect.host_calls = expect.event_timing = true;
  expect.graphs = expect.graph_update = expect.node_update = true;
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
  return keel::hal::conformance::Main(argc, argv,
                                      {.driver = "cuda",
                                       .devices = static_cast<int>(devices->size()),
                                       .open = keel::hal::conformance::OpenFrom(**driver),
                                       .expect = expect,
                                       .checks_fills = true,
                                       .unsupported = unsupported});
}

}  // namespace

int main(int argc, char** argv) { return Run(argc, argv); }
