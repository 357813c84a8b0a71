// The loaded HIP runtime, and what stands between its notions and VendorApi's.
#pragma once

#include <cstdint>

#include "drivers/hip/entries.h"
#include "drivers/shared/vendor_api.h"

namespace keel::hip {

using vendor::Code;
using vendor::kSuccess;

struct Runtime {
  Entries entries;
  int version = 0;  // as hipRuntimeGetVersion says it
};

// Written once, when the library is loaded, before anybody can call through it.
extern Runtime runtime;

// A thread of HIP has a current device and no context: the value of VendorApi's context is the
// device's number, plus one so that none is null. Nothing is retained, nothing released.
inline void* ContextOf(int device) { return reinterpret_cast<void*>(std::intptr_t{device} + 1); }
inline int DeviceOf(void* context) {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(context) - 1);
}

// The legacy default stream is null to HIP (a constant for it came with 6.2), and null is no handle
// here.
inline abi::Stream StreamOf(void* stream) {
  return reinterpret_cast<std::uintptr_t>(stream) == abi::kStreamLegacy
             ? nullptr
             : static_cast<abi::Stream>(stream);
}

inline void* PointerOf(std::uint64_t address) { return reinterpret_cast<void*>(address); }

// HIP keeps a thread's last error until somebody asks for it; a program that checks after its own
// launches would find Keel's, even a query's "not ready". Every call's result passes through here.
inline Code Settle(Code code) {
  if (code != kSuccess) runtime.entries.last_error();
  return code;
}

unsigned WaitFlags(hal::WaitCondition condition);

// What hip_calls.cc and hip_graph.cc put into the table.
void FillCalls(vendor::VendorApi& api);
void FillGraphs(vendor::VendorApi& api);
// Whether the library has what each needs.
bool HasGraphs();
bool HasNodeUpdate();

}  // namespace keel::hip
