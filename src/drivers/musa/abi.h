// The part of the MUSA driver's binary interface that Keel uses: the shape in
// shared/context_abi.h, and what only this library has. Its numbers and structures are those of the
// MUSA 3.1 header; abi_test.cc compares them with musa.h where that is installed.
#pragma once

#include "drivers/shared/context_abi.h"

namespace keel::musa::abi {

using namespace vendor::abi;  // NOLINT(google-build-using-namespace): the same interface

// Attributes of a device. A driver may know the older of the two only.
inline constexpr int kCanUse64BitStreamMemOps = 122;
inline constexpr int kCanUse64BitStreamMemOpsV1 = 93;

// The first version of a kernel's parameters, which every entry point of this library takes. It is
// the beginning of vendor::abi::KernelNodeParams, and that is what is passed.
struct KernelNodeParamsV1 {
  Function function = nullptr;
  unsigned grid_x = 1, grid_y = 1, grid_z = 1;
  unsigned block_x = 1, block_y = 1, block_z = 1;
  unsigned shared_memory = 0;
  void** arguments = nullptr;
  void** extra = nullptr;
};
static_assert(offsetof(KernelNodeParams, kernel) == sizeof(KernelNodeParamsV1));

}  // namespace keel::musa::abi
