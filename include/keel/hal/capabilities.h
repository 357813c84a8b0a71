// What a device is and what it can do.
//
// A capability that is false means that its primitives return kUnimplemented, and that the
// device's entry in the conformance suite lists the cases with a reason.
#pragma once

#include <cstdint>
#include <string>

#include "keel/hal/types.h"

namespace keel::hal {

// Known without opening the device.
struct DeviceInfo {
  std::string driver;        // "sim"
  int ordinal = 0;           // among the driver's devices
  std::string name;          // for people
  std::string identity;      // stable over processes: a UUID or a bus address
  std::string architecture;  // what a module must be built for
  Bytes memory;              // capacity
  int numa_node = -1;        // of the host memory nearest to it; -1: not known
  bool simulated = false;
};

struct Capabilities {
  // Memory
  bool virtual_memory = false;     // CreateMemory, ReserveAddress, Map, SetAccess, Unmap, ...
  Granularity granularity{};       // of virtual memory; zero without it
  bool exportable_memory = false;  // MemoryOptions::exportable, ExportMemory, ImportMemory
  bool rdma_memory = false;        // MemoryOptions::rdma
  bool host_registration = false;  // RegisterHost
  bool unified_addresses = false;  // an address means the same on every device of the driver
  // Work
  bool kernels = false;        // LoadModule, FindKernel, LaunchKernel
  bool orchestration = false;  // ModuleSource::Device: a controller launches kernels by itself
  bool host_calls = false;     // CallHost
  bool value_writes = false;   // WriteValue
  bool value_waits = false;    // WaitValue
  bool event_timing = false;   // EventOptions::timing, ElapsedMilliseconds
  // Graphs
  bool graphs = false;        // capture, instantiate, launch
  bool graph_update = false;  // UpdateExec
  bool node_update = false;   // SetNodeParams
};

}  // namespace keel::hal
