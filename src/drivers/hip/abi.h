// The part of the HIP runtime's binary interface that Keel uses, of HIP 5, 6 and 7.
//
// Declared here so that building Keel needs no ROCm. Numbers and structures are the same in all
// three unless it says otherwise; where they changed, both are here and hip_api.cc chooses by the
// version that the library reports. Where the headers are installed, abi_test.cc compiles both side
// by side.
#pragma once

#include <cstddef>
#include <cstdint>

#include "drivers/shared/context_abi.h"

namespace keel::hip::abi {

// Handles: as the context libraries have them, but for memory.
using vendor::abi::Device;
using vendor::abi::Event;
using vendor::abi::Function;
using vendor::abi::Graph;
using vendor::abi::GraphExec;
using vendor::abi::GraphNode;
using vendor::abi::HostFunction;
using vendor::abi::Module;
using vendor::abi::Result;
using vendor::abi::Stream;
using MemoryHandle = struct MemoryObject*;  // a pointer, not a number

// What the library reports: major * 10,000,000 + minor * 100,000 + patch.
inline constexpr int kVersion5_3 = 50'300'000;
inline constexpr int kVersion6_0 = 60'000'000;
inline constexpr int kVersion7_1 = 70'100'000;

// Results: those of the context libraries, and some of its own.
using vendor::abi::kAssert;
using vendor::abi::kCapturedEvent;
using vendor::abi::kContextIsDestroyed;
using vendor::abi::kDeinitialized;
using vendor::abi::kEccUncorrectable;
using vendor::abi::kFileNotFound;
using vendor::abi::kGraphExecUpdateFailure;
using vendor::abi::kHostMemoryAlreadyRegistered;
using vendor::abi::kHostMemoryNotRegistered;
using vendor::abi::kIllegalAddress;
using vendor::abi::kIllegalState;
using vendor::abi::kInvalidContext;
using vendor::abi::kInvalidDevice;
using vendor::abi::kInvalidHandle;
using vendor::abi::kInvalidImage;
using vendor::abi::kInvalidSource;
using vendor::abi::kInvalidValue;
using vendor::abi::kLaunchFailed;
using vendor::abi::kLaunchOutOfResources;
using vendor::abi::kLaunchTimeout;
using vendor::abi::kNoBinaryForGpu;
using vendor::abi::kNoDevice;
using vendor::abi::kNotFound;
using vendor::abi::kNotInitialized;
using vendor::abi::kNotReady;
using vendor::abi::kNotSupported;
using vendor::abi::kOutOfMemory;
using vendor::abi::kPeerAccessAlreadyEnabled;
using vendor::abi::kPeerAccessNotEnabled;
using vendor::abi::kStreamCaptureImplicit;
using vendor::abi::kStreamCaptureInvalidated;
using vendor::abi::kStreamCaptureIsolation;
using vendor::abi::kStreamCaptureMerge;
using vendor::abi::kStreamCaptureUnjoined;
using vendor::abi::kStreamCaptureUnmatched;
using vendor::abi::kStreamCaptureUnsupported;
using vendor::abi::kStreamCaptureWrongThread;
enum : Result {
  kInvalidConfiguration = 9,
  kInvalidSymbol = 13,
  kInvalidDevicePointer = 17,
  kInvalidMemcpyDirection = 21,
  kInsufficientDriver = 35,
  kInvalidDeviceFunction = 98,
  kPeerAccessUnsupported = 217,
  kInvalidKernelFile = 218,
  kUnknown = 999,
};

// Attributes of a device. A library that does not know one calls it an invalid value.
enum Attribute : int {
  kUnifiedAddressing = 85,
  kVirtualMemoryManagementSupported = 89,  // since 5.3
  kHostRegisterSupported = 90,             // since 6.0; every device could before
  kCanUseStreamWaitValue = 10013,
};

// Flags and small enumerations.
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDisableTiming = 2;
inline constexpr unsigned kHostPortable = 1;
inline constexpr unsigned kHostMapped = 2;
inline constexpr unsigned kHostWriteCombined = 4;
inline constexpr std::uint64_t kStreamLegacy = 1;  // as a constant since 6.2; null means the same
inline constexpr std::uint64_t kStreamPerThread = 2;
inline constexpr int kPointerAttributeMemoryType = 2;
inline constexpr int kMemoryTypeHostBefore6 = 0;
inline constexpr int kMemoryTypeDeviceBefore6 = 1;
inline constexpr int kMemoryTypeHost = 1;  // 0 is memory that the library does not know
inline constexpr int kMemoryTypeDevice = 2;
inline constexpr int kCopyHostToHost = 0, kCopyHostToDevice = 1, kCopyDeviceToHost = 2,
                     kCopyDeviceToDevice = 3;
inline constexpr int kLocationDevice = 1;
inline constexpr int kAllocationPinned = 1;
inline constexpr int kHandlePosixDescriptor = 1;
inline constexpr int kGranularityMinimum = 0;
inline constexpr int kGranularityRecommended = 1;
inline constexpr unsigned kWaitGeq = 0, kWaitEq = 1, kWaitAnd = 2;
inline constexpr int kMemOpWaitValue64 = 4, kMemOpWriteValue64 = 5;

enum NodeType : int {
  kNodeKernel = 0,
  kNodeMemcpy = 1,
  kNodeMemset = 2,
  kNodeHost = 3,
  kNodeGraph = 4,
  kNodeEmpty = 5,
  kNodeBatchMemOp = 14,  // since 6.4
};
// Before 5.3 the numbers began at 1, and a copy of one dimension had its own.
inline constexpr int kNodeFirstBefore5_3 = 1;
inline constexpr int kNodeMemcpy1DBefore5_3 = 9;

using vendor::abi::AccessDesc;
using vendor::abi::HostNodeParams;
using vendor::abi::Location;

struct AllocationProp {  // since 5.3
  int type = kAllocationPinned;
  int requested_handle_type = 0;
  Location location;
  void* win32_metadata = nullptr;
  struct {
    unsigned char compression_type = 0;
    unsigned char gpu_direct_rdma_capable = 0;
    unsigned short usage = 0;
  } flags;
};

struct Uuid {
  char bytes[16] = {};
};

// Of a device's properties only the architecture's name is wanted, which nothing else tells. The
// structure changed with HIP 6, and the entry point's name with it.
struct Properties {  // hipGetDevicePropertiesR0600
  char before[1160] = {};
  char architecture[256] = {};
  char after[56] = {};
};
struct PropertiesBefore6 {  // hipGetDeviceProperties
  char before[396] = {};
  char architecture[256] = {};
  char after[140] = {};
};

struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;
};

struct KernelNodeParams {
  Dim3 block;
  void** extra = nullptr;
  void* function = nullptr;
  Dim3 grid;
  void** arguments = nullptr;
  unsigned shared_memory = 0;
};

struct MemsetParams {
  void* destination = nullptr;
  unsigned element_size = 1;
  std::size_t height = 1;
  std::size_t pitch = 0;
  unsigned value = 0;
  std::size_t width = 0;
};

union MemOp {  // since 6.4
  struct {
    int operation;
    void* address;
    std::uint64_t value;
    unsigned flags;
    void* alias;
  } value;
  std::uint64_t pad[6];
};

struct BatchMemOpNodeParams {  // since 6.4
  void* context = nullptr;
  unsigned count = 0;
  MemOp* operations = nullptr;
  unsigned flags = 0;
};

}  // namespace keel::hip::abi
