// The binary interface of driver libraries that are made of contexts: <prefix>Init,
// <prefix>CtxSetCurrent, <prefix>MemAlloc_v2 and so on.
//
// Several vendors ship a library of this shape, with the same structures and the same numbers under
// names of their own. Declared here so that building Keel needs nobody's toolkit. Only what is
// stable is used: enumerators keep their values, and structures that are passed are those of the
// versioned entry points named in context_api.h. What one vendor has and another has not is in that
// vendor's abi.h, and its abi_test.cc compares everything with the real header where that is
// installed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace keel::vendor::abi {

using Result = int;
using Device = int;
using Address = std::uint64_t;
using MemoryHandle = std::uint64_t;
using Context = struct ContextObject*;
using Stream = struct StreamObject*;
using Event = struct EventObject*;
using Module = struct ModuleObject*;
using Function = struct FunctionObject*;
using Graph = struct GraphObject*;
using GraphNode = struct GraphNodeObject*;
using GraphExec = struct GraphExecObject*;
using HostFunction = void (*)(void* data);

// Results.
enum : Result {
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kDeinitialized = 4,
  kStubLibrary = 34,
  kDeviceUnavailable = 46,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNoBinaryForGpu = 209,
  kEccUncorrectable = 214,
  kInvalidPtx = 218,
  kUnsupportedPtxVersion = 222,
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
  kHardwareStackError = 714,
  kIllegalInstruction = 715,
  kMisalignedAddress = 716,
  kInvalidAddressSpace = 717,
  kInvalidPc = 718,
  kLaunchFailed = 719,
  kNotPermitted = 800,
  kNotSupported = 801,
  kSystemNotReady = 802,
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
};

// Attributes of a device.
enum Attribute : int {
  kUnifiedAddressing = 41,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kHostRegisterSupported = 99,
  kVirtualMemoryManagementSupported = 102,
  kPosixFileDescriptorSupported = 103,
  kRdmaWithVirtualMemorySupported = 110,
};

// Flags and small enumerations.
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDisableTiming = 2;
inline constexpr unsigned kHostPortable = 1;
inline constexpr unsigned kHostDeviceMap = 2;
inline constexpr unsigned kHostWriteCombined = 4;
inline constexpr std::uint64_t kStreamLegacy = 1;
inline constexpr std::uint64_t kStreamPerThread = 2;
inline constexpr int kPointerAttributeMemoryType = 2;
inline constexpr int kMemoryTypeHost = 1;
inline constexpr int kMemoryTypeDevice = 2;
inline constexpr int kMemoryTypeUnified = 4;
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
  kNodeBatchMemOp = 12,
};

struct Location {
  int type = kLocationDevice;
  int id = 0;
};

struct AllocationProp {
  int type = kAllocationPinned;
  int requested_handle_types = 0;
  Location location;
  void* win32_metadata = nullptr;
  struct {
    unsigned char compression_type = 0;
    unsigned char gpu_direct_rdma_capable = 0;
    unsigned short usage = 0;
    unsigned char reserved[4] = {};
  } flags;
};

struct AccessDesc {
  Location location;
  int flags = 0;
};

struct Uuid {
  unsigned char bytes[16] = {};
};

struct KernelNodeParams {  // v2
  Function function = nullptr;
  unsigned grid_x = 1, grid_y = 1, grid_z = 1;
  unsigned block_x = 1, block_y = 1, block_z = 1;
  unsigned shared_memory = 0;
  void** arguments = nullptr;
  void** extra = nullptr;
  void* kernel = nullptr;
  Context context = nullptr;
};

struct Memcpy3D {  // v2
  std::size_t source_x = 0, source_y = 0, source_z = 0, source_lod = 0;
  int source_type = 0;
  const void* source_host = nullptr;
  Address source_device = 0;
  void* source_array = nullptr;
  void* reserved0 = nullptr;
  std::size_t source_pitch = 0, source_height = 0;
  std::size_t destination_x = 0, destination_y = 0, destination_z = 0, destination_lod = 0;
  int destination_type = 0;
  void* destination_host = nullptr;
  Address destination_device = 0;
  void* destination_array = nullptr;
  void* reserved1 = nullptr;
  std::size_t destination_pitch = 0, destination_height = 0;
  std::size_t width = 0, height = 1, depth = 1;
};

struct MemsetNodeParams {  // v1
  Address destination = 0;
  std::size_t pitch = 0;
  unsigned value = 0;
  unsigned element_size = 1;
  std::size_t width = 0;
  std::size_t height = 1;
};

struct HostNodeParams {  // v1
  HostFunction function = nullptr;
  void* data = nullptr;
};

union MemOp {  // v1
  struct {
    int operation;
    Address address;
    std::uint64_t value;
    unsigned flags;
    Address alias;
  } value;
  std::uint64_t pad[6];
};

struct BatchMemOpNodeParams {  // v1
  Context context = nullptr;
  unsigned count = 0;
  MemOp* operations = nullptr;
  unsigned flags = 0;
};

struct UpdateResultInfo {  // v1
  int result = 0;
  GraphNode error_node = nullptr;
  GraphNode error_from_node = nullptr;
};

}  // namespace keel::vendor::abi
