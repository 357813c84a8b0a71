// The part of the CUDA driver's binary interface that Keel uses, as it has been since CUDA 12.0:
// the shape in shared/context_abi.h, and what only this library has. Where the toolkit is
// installed, abi_test.cc compiles both side by side.
#pragma once

#include "drivers/shared/context_abi.h"

namespace keel::cuda::abi {

using namespace vendor::abi;  // NOLINT(google-build-using-namespace): the same interface

// Attributes of a device.
inline constexpr int kCanUse64BitStreamMemOps = 122;
inline constexpr int kHostNumaId = 134;

}  // namespace keel::cuda::abi
