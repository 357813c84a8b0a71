// The part of the HIP runtime's binary interface that Keel uses, of HIP 5, 6 and 7.
//
// Declared here so that building Keel needs no ROCm. Numbers and structures are the same in all
// three unless it says otherwise; where they changed, both are here and hip_api.cc chooses by the
// version that the library reports. Where the headers are installed, abi_test.cc compiles both side
// by side.
#pragma once

#include <cstddef>
#include <cstdint>

namespace keel::hip::abi {

using Result = int;
using Device = int;
using MemoryHandle = struct MemoryObject*;  // a pointer, not a number
using Stream = struct StreamObject*;
using Event = struct EventObject*;
using Module = struct ModuleObject*;
using Function = struct FunctionObject*;
using Graph = struct GraphObject*;
using GraphNode = struct GraphNodeObject*;
using GraphExec = struct GraphExecObject*;
using HostFunction = void (*)(void* data);

// What the library reports: major * 10,000,000 + minor * 100,000 + patch.
inline constexpr int kVersion5_3 = 50'300'000;
inline constexpr int kVersion6_0 = 60'000'000;
inline constexpr int kVersion7_1 = 70'100'000;

// Results.
enum : Result {
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kDeinitialized = 4,
  kInvalidConfiguration = 9,
  kInvalidSymbol = 13,
  kInvalidDevicePointer = 17,
  kInvalidMemcpyDirection = 21,
  kInsufficientDriver = 35,
  kInvalidDeviceFunction = 98,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNoBinaryForGpu = 209,
  kEccUncorrectable = 214,
  kPeerAccessUnsupported = 217,
  kInvalidKernelFile = 218,
  kInvalidSource = 300,
  kFileNotFound = 301,
  kInvalidHandle = 400,
  kIllegalState = 401,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kLaunchOutOfResources = 701,
  kLaunchTimeout = 702,
  kPeerAccessAlreadyEnabled = 704,
  kPeerAccessNotEnabled = 705,
  kContextIsDestroyed = 709,
  kAssert = 710,
  kHostMemoryAlreadyRegistered = 712,
  kHostMemoryNotRegistered = 713,
  kLaunchFailed = 719,
  kNotSupported = 801,
  kStreamCaptureUnsupported = 900,
  kStreamCaptureInvalidated = 901,
  kStreamCaptureMerge = 902,
  kStreamCaptureUnmatched = 903,
  kStreamCaptureUnjoined = 904,
  kStreamCaptureIsolation = 905,
  kStreamCaptureImplicit = 906,
  kCapturedEvent = 907,
  kStreamCaptureWrongThread = 908,
  kGraphExecUpdateFailure = 910,
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

struct Location {
  int type = kLocationDevice;
  int id = 0;
};

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

struct AccessDesc {
  Location location;
  int flags = 0;
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

struct HostNodeParams {
  HostFunction function = nullptr;
  void* data = nullptr;
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
