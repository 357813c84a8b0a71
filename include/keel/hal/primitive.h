// The list of the device layer's primitives, as values: to count calls by kind, to fail the n-th
// of a kind, and to name one in a message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "keel/base/export.h"

namespace keel::hal {

enum class Primitive : std::uint8_t {
  kGetMemoryInfo,
  kAllocatePlain,
  kFreePlain,
  kCreateMemory,
  kReleaseMemory,
  kExportMemory,
  kImportMemory,
  kReserveAddress,
  kFreeAddress,
  kMap,
  kUnmap,
  kSetAccess,
  kGetAccess,
  kAllocateHost,
  kFreeHost,
  kRegisterHost,
  kUnregisterHost,
  kGetHostAddress,
  kCanAccessPeer,
  kEnablePeerAccess,
  kDisablePeerAccess,
  kCreateStream,
  kDestroyStream,
  kGetDefaultStream,
  kBorrowStream,
  kQueryStream,
  kSynchronizeStream,
  kSynchronize,
  kCreateEvent,
  kDestroyEvent,
  kRecordEvent,
  kWaitEvent,
  kQueryEvent,
  kSynchronizeEvent,
  kElapsedMilliseconds,
  kCopy,
  kFill,
  kWriteValue,
  kWaitValue,
  kCallHost,
  kLoadModule,
  kUnloadModule,
  kFindKernel,
  kLaunchKernel,
  kBeginCapture,
  kEndCapture,
  kGetCaptureState,
  kGetCaptureFrontier,
  kCreateGraph,
  kDestroyGraph,
  kAddNode,
  kGetNodes,
  kInstantiate,
  kDestroyExec,
  kUpdateExec,
  kSetNodeParams,
  kLaunchGraph,
  kCount,
};

inline constexpr std::size_t kPrimitiveCount = static_cast<std::size_t>(Primitive::kCount);

// "CreateMemory".
KEEL_EXPORT std::string_view PrimitiveName(Primitive primitive);

}  // namespace keel::hal
