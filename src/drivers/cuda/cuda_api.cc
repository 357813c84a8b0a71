// Fills VendorApi from libcuda.so.1. Entry points are taken by name and version: the versioned
// names say which layout of a structure they take, and stay for ever.

#include "drivers/cuda/cuda_api.h"

#include <fmt/format.h>

#include <iterator>
#include <vector>

#include "drivers/cuda/abi.h"
#include "drivers/cuda/standard_kernels_ptx.h"
#include "drivers/shared/library.h"

namespace keel::cuda {
namespace {

using vendor::AccessPair;
using vendor::Code;
using vendor::kSuccess;
using vendor::NodeSpec;
using vendor::UpdateResult;
using vendor::VendorApi;
using vendor::Verdict;

// The entry points whose arguments need translating.
struct Entries {
  Code (*device_name)(char* name, int size, abi::Device device) = nullptr;
  Code (*device_uuid)(abi::Uuid* uuid, abi::Device device) = nullptr;
  Code (*device_memory)(std::size_t* bytes, abi::Device device) = nullptr;
  Code (*device_attribute)(int* value, int attribute, abi::Device device) = nullptr;
  Code (*granularity)(std::size_t* value, const abi::AllocationProp* prop, int option) = nullptr;
  Code (*create)(abi::MemoryHandle* handle, std::size_t size, const abi::AllocationProp* prop,
                 unsigned long long flags) = nullptr;
  Code (*export_handle)(void* shareable, abi::MemoryHandle handle, int type,
                        unsigned long long flags) = nullptr;
  Code (*import_handle)(abi::MemoryHandle* handle, void* shareable, int type) = nullptr;
  Code (*set_access)(abi::Address address, std::size_t size, const abi::AccessDesc* descs,
                     std::size_t count) = nullptr;
  Code (*get_access)(unsigned long long* flags, const abi::Location* location,
                     abi::Address address) = nullptr;
  Code (*host_allocate)(void** pointer, std::size_t size, unsigned flags) = nullptr;
  Code (*host_register)(void* pointer, std::size_t size, unsigned flags) = nullptr;
  Code (*pointer_attribute)(void* value, int attribute, abi::Address address) = nullptr;
  Code (*stream_create)(void** stream, unsigned flags, int priority) = nullptr;
  Code (*event_create)(void** event, unsigned flags) = nullptr;
  Code (*wait_value)(void* stream, abi::Address address, std::uint64_t value,
                     unsigned flags) = nullptr;
  Code (*capture_info)(void* stream, int* status, std::uint64_t* id, void** graph,
                       void* const** dependencies, std::size_t* count) = nullptr;
  Code (*add_kernel)(void** node, void* graph, void* const* dependencies, std::size_t count,
                     const abi::KernelNodeParams* params) = nullptr;
  Code (*add_copy)(void** node, void* graph, void* const* dependencies, std::size_t count,
                   const abi::Memcpy3D* params, void* context) = nullptr;
  Code (*add_fill)(void** node, void* graph, void* const* dependencies, std::size_t count,
                   const abi::MemsetNodeParams* params, void* context) = nullptr;
  Code (*add_host)(void** node, void* graph, void* const* dependencies, std::size_t count,
                   const abi::HostNodeParams* params) = nullptr;
  Code (*add_child)(void** node, void* graph, void* const* dependencies, std::size_t count,
                    void* child) = nullptr;
  Code (*add_empty)(void** node, void* graph, void* const* dependencies,
                    std::size_t count) = nullptr;
  Code (*add_mem_op)(void** node, void* graph, void* const* dependencies, std::size_t count,
                     const abi::BatchMemOpNodeParams* params) = nullptr;
  Code (*set_kernel)(void* exec, void* node, const abi::KernelNodeParams* params) = nullptr;
  Code (*set_copy)(void* exec, void* node, const abi::Memcpy3D* params, void* context) = nullptr;
  Code (*set_fill)(void* exec, void* node, const abi::MemsetNodeParams* params,
                   void* context) = nullptr;
  Code (*set_host)(void* exec, void* node, const abi::HostNodeParams* params) = nullptr;
  Code (*set_child)(void* exec, void* node, void* child) = nullptr;
  Code (*set_mem_op)(void* exec, void* node, const abi::BatchMemOpNodeParams* params) = nullptr;
  Code (*node_type)(void* node, int* type) = nullptr;
  Code (*get_kernel)(void* node, abi::KernelNodeParams* params) = nullptr;
  Code (*get_mem_op)(void* node, abi::BatchMemOpNodeParams* params) = nullptr;
  Code (*exec_update)(void* exec, void* graph, abi::UpdateResultInfo* info) = nullptr;
};

// Written once, when the library is loaded, before anybody can call through it.
Entries entries;

Verdict Judge(Code code) {
  switch (code) {
    case abi::kIllegalAddress:
    case abi::kLaunchTimeout:
    case abi::kContextIsDestroyed:
    case abi::kAssert:
    case abi::kHardwareStackError:
    case abi::kIllegalInstruction:
    case abi::kMisalignedAddress:
    case abi::kInvalidAddressSpace:
    case abi::kInvalidPc:
    case abi::kLaunchFailed:
    case abi::kEccUncorrectable:
      return {StatusCode::kDeviceLost, true};
    case abi::kInvalidValue:
    case abi::kInvalidDevice:
    case abi::kInvalidImage:
    case abi::kInvalidContext:
    case abi::kNoBinaryForGpu:
    case abi::kInvalidPtx:
    case abi::kUnsupportedPtxVersion:
    case abi::kInvalidSource:
    case abi::kInvalidHandle:
    case abi::kHostMemoryNotRegistered:
      return {StatusCode::kInvalidArgument};
    case abi::kOutOfMemory:
    case abi::kLaunchOutOfResources:
      return {StatusCode::kResourceExhausted};
    case abi::kNotInitialized:
    case abi::kDeinitialized:
    case abi::kStubLibrary:
    case abi::kDeviceUnavailable:
    case abi::kNoDevice:
    case abi::kSystemNotReady:
      return {StatusCode::kUnavailable};
    case abi::kFileNotFound:
    case abi::kNotFound:
      return {StatusCode::kNotFound};
    case abi::kHostMemoryAlreadyRegistered:
      return {StatusCode::kAlreadyExists};
    case abi::kNotSupported:
      return {StatusCode::kUnimplemented};
    case abi::kIllegalState:
    case abi::kNotPermitted:
    case abi::kStreamCaptureUnsupported:
    case abi::kStreamCaptureInvalidated:
    case abi::kStreamCaptureMerge:
    case abi::kStreamCaptureUnmatched:
    case abi::kStreamCaptureUnjoined:
    case abi::kStreamCaptureIsolation:
    case abi::kStreamCaptureImplicit:
    case abi::kCapturedEvent:
    case abi::kStreamCaptureWrongThread:
      return {StatusCode::kFailedPrecondition};
    default:
      return {StatusCode::kInternal};
  }
}

int AttributeOf(abi::Device device, int attribute) {
  int value = 0;
  return entries.device_attribute(&value, attribute, device) == kSuccess ? value : 0;
}

Code Describe(abi::Device device, hal::DeviceInfo* info) {
  char name[256] = {};
  if (const Code code = entries.device_name(name, sizeof(name), device); code != kSuccess) {
    return code;
  }
  info->name = name;
  std::size_t bytes = 0;
  if (const Code code = entries.device_memory(&bytes, device); code != kSuccess) return code;
  info->memory = Bytes(bytes);
  abi::Uuid uuid;
  if (const Code code = entries.device_uuid(&uuid, device); code != kSuccess) return code;
  info->identity = "GPU-";
  for (std::size_t i = 0; i < std::size(uuid.bytes); ++i) {
    const bool dash = i == 4 || i == 6 || i == 8 || i == 10;
    info->identity += fmt::format("{}{:02x}", dash ? "-" : "", uuid.bytes[i]);
  }
  info->architecture = fmt::format("sm_{}{}", AttributeOf(device, abi::kComputeCapabilityMajor),
                                   AttributeOf(device, abi::kComputeCapabilityMinor));
  int node = -1;
  if (entries.device_attribute(&node, abi::kHostNumaId, device) != kSuccess) node = -1;
  info->numa_node = node;
  return kSuccess;
}

Code Capabilities(abi::Device device, hal::Capabilities* capabilities) {
  capabilities->virtual_memory = AttributeOf(device, abi::kVirtualMemoryManagementSupported) != 0;
  if (capabilities->virtual_memory) {
    abi::AllocationProp prop;
    prop.location.id = device;
    std::size_t minimum = 0;
    std::size_t recommended = 0;
    Code code = entries.granularity(&minimum, &prop, abi::kGranularityMinimum);
    if (code == kSuccess) {
      code = entries.granularity(&recommended, &prop, abi::kGranularityRecommended);
    }
    if (code != kSuccess) return code;
    capabilities->granularity = {Bytes(minimum), Bytes(recommended)};
  }
  capabilities->exportable_memory =
      capabilities->virtual_memory && AttributeOf(device, abi::kPosixFileDescriptorSupported) != 0;
  capabilities->rdma_memory = capabilities->virtual_memory &&
                              AttributeOf(device, abi::kRdmaWithVirtualMemorySupported) != 0;
  capabilities->host_registration = AttributeOf(device, abi::kHostRegisterSupported) != 0;
  capabilities->unified_addresses = AttributeOf(device, abi::kUnifiedAddressing) != 0;
  capabilities->kernels = true;
  capabilities->host_calls = true;
  capabilities->value_writes = AttributeOf(device, abi::kCanUse64BitStreamMemOps) != 0;
  capabilities->value_waits = capabilities->value_writes;
  capabilities->event_timing = true;
  capabilities->graphs = true;
  capabilities->graph_update = true;
  capabilities->node_update = true;
  return kSuccess;
}

Code CreateMemory(std::uint64_t* handle, std::size_t size, int device, bool exportable, bool rdma) {
  abi::AllocationProp prop;
  prop.location.id = device;
  if (exportable) prop.requested_handle_types = abi::kHandlePosixDescriptor;
  if (rdma) prop.flags.gpu_direct_rdma_capable = 1;
  return entries.create(handle, size, &prop, 0);
}

Code ExportMemory(int* descriptor, std::uint64_t handle) {
  return entries.export_handle(descriptor, handle, abi::kHandlePosixDescriptor, 0);
}

Code ImportMemory(std::uint64_t* handle, int descriptor) {
  return entries.import_handle(handle,
                               reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor)),
                               abi::kHandlePosixDescriptor);
}

Code SetAccess(std::uint64_t address, std::size_t size, const AccessPair* pairs,
               std::size_t count) {
  std::vector<abi::AccessDesc> descs(count);
  for (std::size_t i = 0; i < count; ++i) {
    descs[i].location.id = pairs[i].device;
    descs[i].flags = static_cast<int>(pairs[i].access);  // the same numbers
  }
  return entries.set_access(address, size, descs.data(), count);
}

Code GetAccess(hal::Access* access, std::uint64_t address, int device) {
  abi::Location location;
  location.id = device;
  unsigned long long flags = 0;
  const Code code = entries.get_access(&flags, &location, address);
  *access = static_cast<hal::Access>(flags);
  return code;
}

Code AllocateHost(void** pointer, std::size_t size, bool write_combined) {
  const unsigned flags =
      abi::kHostPortable | abi::kHostDeviceMap | (write_combined ? abi::kHostWriteCombined : 0);
  return entries.host_allocate(pointer, size, flags);
}

Code RegisterHost(void* pointer, std::size_t size) {
  return entries.host_register(pointer, size, abi::kHostPortable | abi::kHostDeviceMap);
}

bool IsPinned(const void* pointer) {
  unsigned type = 0;
  return entries.pointer_attribute(&type, abi::kPointerAttributeMemoryType,
                                   reinterpret_cast<abi::Address>(pointer)) == kSuccess &&
         type == static_cast<unsigned>(abi::kMemoryTypeHost);
}

Code CreateStream(void** stream, int priority) {
  return entries.stream_create(stream, abi::kStreamNonBlocking, priority);
}

Code CreateEvent(void** event, bool timing) {
  return entries.event_create(event, timing ? 0 : abi::kEventDisableTiming);
}

unsigned WaitFlags(hal::WaitCondition condition) {
  switch (condition) {
    case hal::WaitCondition::kGreaterOrEqual:
      return abi::kWaitGeq;
    case hal::WaitCondition::kEqual:
      return abi::kWaitEq;
    case hal::WaitCondition::kAnd:
      return abi::kWaitAnd;
  }
  return abi::kWaitGeq;
}

Code WaitValue(void* stream, std::uint64_t address, std::uint64_t value,
               hal::WaitCondition condition) {
  return entries.wait_value(stream, address, value, WaitFlags(condition));
}

Code CaptureInfo(void* stream, int* state, void* const** dependencies, std::size_t* count) {
  return entries.capture_info(stream, state, nullptr, nullptr, dependencies, count);
}

// --- Nodes -------------------------------------------------------------------------------------

abi::KernelNodeParams KernelParams(const hal::KernelLaunch& launch, const NodeSpec& spec) {
  abi::KernelNodeParams params;
  params.function = reinterpret_cast<abi::Function>(launch.kernel.value);
  params.grid_x = launch.dims.grid[0];
  params.grid_y = launch.dims.grid[1];
  params.grid_z = launch.dims.grid[2];
  params.block_x = launch.dims.block[0];
  params.block_y = launch.dims.block[1];
  params.block_z = launch.dims.block[2];
  params.shared_memory = static_cast<unsigned>(launch.dims.shared_memory.count());
  params.arguments = spec.arguments;
  return params;
}

abi::Memcpy3D CopyParams(const hal::Copy& copy, const NodeSpec& spec) {
  abi::Memcpy3D params;
  params.width = copy.size.count();
  if (spec.host_source) {
    params.source_type = abi::kMemoryTypeHost;
    params.source_host = reinterpret_cast<const void*>(copy.source.address);
  } else {
    params.source_type = abi::kMemoryTypeDevice;
    params.source_device = copy.source.address;
  }
  if (spec.host_destination) {
    params.destination_type = abi::kMemoryTypeHost;
    params.destination_host = reinterpret_cast<void*>(copy.destination.address);
  } else {
    params.destination_type = abi::kMemoryTypeDevice;
    params.destination_device = copy.destination.address;
  }
  return params;
}

abi::MemsetNodeParams FillParams(const hal::Fill& fill) {
  abi::MemsetNodeParams params;
  params.destination = fill.destination.value();
  params.value = fill.value;
  params.element_size = fill.width;
  params.width = fill.count;
  return params;
}

abi::MemOp WriteOp(const hal::ValueWrite& write) {
  abi::MemOp op = {};
  op.value = {abi::kMemOpWriteValue64, write.destination.value(), write.value, 0, 0};
  return op;
}

abi::MemOp WaitOp(const hal::ValueWait& wait) {
  abi::MemOp op = {};
  op.value = {abi::kMemOpWaitValue64, wait.source.value(), wait.value, WaitFlags(wait.condition),
              0};
  return op;
}

abi::BatchMemOpNodeParams MemOpParams(abi::MemOp* op, void* context) {
  abi::BatchMemOpNodeParams params;
  params.context = static_cast<abi::Context>(context);
  params.count = 1;
  params.operations = op;
  return params;
}

Code AddNode(void** node, void* graph, void* const* dependencies, std::size_t count,
             const NodeSpec& spec) {
  if (const auto* launch = std::get_if<hal::KernelLaunch>(spec.command)) {
    const abi::KernelNodeParams params = KernelParams(*launch, spec);
    return entries.add_kernel(node, graph, dependencies, count, &params);
  }
  if (const auto* copy = std::get_if<hal::Copy>(spec.command)) {
    const abi::Memcpy3D params = CopyParams(*copy, spec);
    return entries.add_copy(node, graph, dependencies, count, &params, spec.context);
  }
  if (const auto* fill = std::get_if<hal::Fill>(spec.command)) {
    const abi::MemsetNodeParams params = FillParams(*fill);
    return entries.add_fill(node, graph, dependencies, count, &params, spec.context);
  }
  if (std::holds_alternative<hal::HostCall>(*spec.command)) {
    const abi::HostNodeParams params{spec.host_call.function, spec.host_call.data};
    return entries.add_host(node, graph, dependencies, count, &params);
  }
  if (const auto* child = std::get_if<hal::ChildGraph>(spec.command)) {
    return entries.add_child(node, graph, dependencies, count,
                             reinterpret_cast<void*>(child->graph.value));
  }
  if (std::holds_alternative<hal::EmptyNode>(*spec.command)) {
    return entries.add_empty(node, graph, dependencies, count);
  }
  abi::MemOp op = std::holds_alternative<hal::ValueWrite>(*spec.command)
                      ? WriteOp(std::get<hal::ValueWrite>(*spec.command))
                      : WaitOp(std::get<hal::ValueWait>(*spec.command));
  const abi::BatchMemOpNodeParams params = MemOpParams(&op, spec.context);
  return entries.add_mem_op(node, graph, dependencies, count, &params);
}

Code SetNode(void* exec, void* node, const NodeSpec& spec) {
  if (const auto* launch = std::get_if<hal::KernelLaunch>(spec.command)) {
    const abi::KernelNodeParams params = KernelParams(*launch, spec);
    return entries.set_kernel(exec, node, &params);
  }
  if (const auto* copy = std::get_if<hal::Copy>(spec.command)) {
    const abi::Memcpy3D params = CopyParams(*copy, spec);
    return entries.set_copy(exec, node, &params, spec.context);
  }
  if (const auto* fill = std::get_if<hal::Fill>(spec.command)) {
    const abi::MemsetNodeParams params = FillParams(*fill);
    return entries.set_fill(exec, node, &params, spec.context);
  }
  if (std::holds_alternative<hal::HostCall>(*spec.command)) {
    const abi::HostNodeParams params{spec.host_call.function, spec.host_call.data};
    return entries.set_host(exec, node, &params);
  }
  if (const auto* child = std::get_if<hal::ChildGraph>(spec.command)) {
    return entries.set_child(exec, node, reinterpret_cast<void*>(child->graph.value));
  }
  if (std::holds_alternative<hal::EmptyNode>(*spec.command)) return kSuccess;
  abi::MemOp op = std::holds_alternative<hal::ValueWrite>(*spec.command)
                      ? WriteOp(std::get<hal::ValueWrite>(*spec.command))
                      : WaitOp(std::get<hal::ValueWait>(*spec.command));
  const abi::BatchMemOpNodeParams params = MemOpParams(&op, spec.context);
  return entries.set_mem_op(exec, node, &params);
}

template <class Kind>
constexpr std::size_t IndexOf() {
  return hal::Command(Kind{}).index();
}

Code NodeKind(void* node, std::size_t* index) {
  int type = 0;
  if (const Code code = entries.node_type(node, &type); code != kSuccess) return code;
  switch (type) {
    case abi::kNodeKernel:
      *index = IndexOf<hal::KernelLaunch>();
      return kSuccess;
    case abi::kNodeMemcpy:
      *index = IndexOf<hal::Copy>();
      return kSuccess;
    case abi::kNodeMemset:
      *index = IndexOf<hal::Fill>();
      return kSuccess;
    case abi::kNodeHost:
      *index = IndexOf<hal::HostCall>();
      return kSuccess;
    case abi::kNodeGraph:
      *index = IndexOf<hal::ChildGraph>();
      return kSuccess;
    case abi::kNodeBatchMemOp: {
      abi::BatchMemOpNodeParams params;
      if (const Code code = entries.get_mem_op(node, &params); code != kSuccess) return code;
      const bool write = params.count > 0 && params.operations != nullptr &&
                         params.operations[0].value.operation == abi::kMemOpWriteValue64;
      *index = write ? IndexOf<hal::ValueWrite>() : IndexOf<hal::ValueWait>();
      return kSuccess;
    }
    default:
      // Kinds that only a foreign capture can contain do nothing that the layer could change.
      *index = IndexOf<hal::EmptyNode>();
      return kSuccess;
  }
}

Code NodeKernel(void* node, void** kernel) {
  abi::KernelNodeParams params;
  const Code code = entries.get_kernel(node, &params);
  *kernel = params.function;
  return code;
}

Code UpdateExec(void* exec, void* graph, UpdateResult* result) {
  constexpr const char* kReasons[] = {
      "",
      "an unexpected error",
      "topology changed",
      "the kind of a node changed",
      "the function of a kernel changed",
      "parameters changed in a way that is not supported",
      "something about a node is not supported",
      "the function of a kernel changed in a way that is not supported",
      "the attributes of a node changed in a way that is not supported",
  };
  abi::UpdateResultInfo info;
  const Code code = entries.exec_update(exec, graph, &info);
  result->updated = code == kSuccess;
  if (code == abi::kGraphExecUpdateFailure) {
    const auto index = static_cast<std::size_t>(info.result);
    result->reason = index < std::size(kReasons) ? kReasons[index] : "an unknown reason";
    result->node = info.error_node;
  }
  return code;
}

}  // namespace

Result<const VendorApi*> LoadApi() {
  KEEL_ASSIGN(vendor::Library library, vendor::Library::Open("CUDA", {"libcuda.so.1"}));
  // Lives as long as the library, which is never closed.
  static VendorApi api;
  api.driver = "cuda";
  api.not_ready = abi::kNotReady;
  api.update_refused = abi::kGraphExecUpdateFailure;
  api.already_enabled = abi::kPeerAccessAlreadyEnabled;
  api.not_enabled = abi::kPeerAccessNotEnabled;
  api.judge = Judge;
  api.legacy_stream = abi::kStreamLegacy;
  api.per_thread_stream = abi::kStreamPerThread;
  api.streams_know_their_context = true;
  api.describe = Describe;
  api.capabilities = Capabilities;
  api.memory_create = CreateMemory;
  api.memory_export = ExportMemory;
  api.memory_import = ImportMemory;
  api.set_access = SetAccess;
  api.get_access = GetAccess;
  api.host_allocate = AllocateHost;
  api.host_register = RegisterHost;
  api.is_pinned = IsPinned;
  api.stream_create = CreateStream;
  api.event_create = CreateEvent;
  api.wait_value = WaitValue;
  api.capture_info = CaptureInfo;
  api.add_node = AddNode;
  api.set_node = SetNode;
  api.node_kind = NodeKind;
  api.node_kernel = NodeKernel;
  api.exec_update = UpdateExec;
  api.standard_kernels = kStandardKernelsPtx;

  library.Find(&api.error_name, {"cuGetErrorName"});
  library.Find(&api.error_text, {"cuGetErrorString"});
  library.Find(&api.init, {"cuInit"});
  library.Find(&api.device_count, {"cuDeviceGetCount"});
  library.Find(&api.device_get, {"cuDeviceGet"});
  library.Find(&api.context_retain, {"cuDevicePrimaryCtxRetain"});
  library.Find(&api.context_release, {"cuDevicePrimaryCtxRelease_v2"});
  library.Find(&api.current_get, {"cuCtxGetCurrent"});
  library.Find(&api.current_set, {"cuCtxSetCurrent"});
  library.Find(&api.priority_range, {"cuCtxGetStreamPriorityRange"});
  library.Find(&api.memory_info, {"cuMemGetInfo_v2"});
  library.Find(&api.memory_allocate, {"cuMemAlloc_v2"});
  library.Find(&api.memory_free, {"cuMemFree_v2"});
  library.Find(&api.memory_release, {"cuMemRelease"});
  library.Find(&api.address_reserve, {"cuMemAddressReserve"});
  library.Find(&api.address_free, {"cuMemAddressFree"});
  library.Find(&api.map, {"cuMemMap"});
  library.Find(&api.unmap, {"cuMemUnmap"});
  library.Find(&api.host_free, {"cuMemFreeHost"});
  library.Find(&api.host_unregister, {"cuMemHostUnregister"});
  library.Find(&api.host_address, {"cuMemHostGetDevicePointer_v2"});
  library.Find(&api.can_access_peer, {"cuDeviceCanAccessPeer"});
  library.Find(&api.enable_peer, {"cuCtxEnablePeerAccess"});
  library.Find(&api.disable_peer, {"cuCtxDisablePeerAccess"});
  library.Find(&api.stream_destroy, {"cuStreamDestroy_v2"});
  library.Find(&api.stream_context, {"cuStreamGetCtx"});
  library.Find(&api.stream_query, {"cuStreamQuery"});
  library.Find(&api.event_destroy, {"cuEventDestroy_v2"});
  library.Find(&api.event_record, {"cuEventRecord"});
  library.Find(&api.event_query, {"cuEventQuery"});
  library.Find(&api.event_elapsed, {"cuEventElapsedTime"});
  library.Find(&api.stream_wait_event, {"cuStreamWaitEvent"});
  library.Find(&api.copy_in, {"cuMemcpyHtoDAsync_v2"});
  library.Find(&api.copy_out, {"cuMemcpyDtoHAsync_v2"});
  library.Find(&api.copy_within, {"cuMemcpyDtoDAsync_v2"});
  library.Find(&api.copy_host, {"cuMemcpyAsync"});
  library.Find(&api.copy_peer, {"cuMemcpyPeerAsync"});
  library.Find(&api.fill8, {"cuMemsetD8Async"});
  library.Find(&api.fill16, {"cuMemsetD16Async"});
  library.Find(&api.fill32, {"cuMemsetD32Async"});
  library.Find(&api.write_value, {"cuStreamWriteValue64_v2"});
  library.Find(&api.call_host, {"cuLaunchHostFunc"});
  library.Find(&api.module_load, {"cuModuleLoadData"});
  library.Find(&api.module_unload, {"cuModuleUnload"});
  library.Find(&api.module_kernel, {"cuModuleGetFunction"});
  library.Find(&api.launch, {"cuLaunchKernel"});
  library.Find(&api.exchange_capture_mode, {"cuThreadExchangeStreamCaptureMode"});
  library.Find(&api.capture_begin, {"cuStreamBeginCapture_v2"});
  library.Find(&api.capture_end, {"cuStreamEndCapture"});
  library.Find(&api.graph_create, {"cuGraphCreate"});
  library.Find(&api.graph_destroy, {"cuGraphDestroy"});
  library.Find(&api.graph_nodes, {"cuGraphGetNodes"});
  library.Find(&api.node_dependencies, {"cuGraphNodeGetDependencies"});
  library.Find(&api.instantiate, {"cuGraphInstantiateWithFlags"});
  library.Find(&api.exec_destroy, {"cuGraphExecDestroy"});
  library.Find(&api.graph_launch, {"cuGraphLaunch"});

  library.Find(&entries.device_name, {"cuDeviceGetName"});
  library.Find(&entries.device_uuid, {"cuDeviceGetUuid_v2", "cuDeviceGetUuid"});
  library.Find(&entries.device_memory, {"cuDeviceTotalMem_v2"});
  library.Find(&entries.device_attribute, {"cuDeviceGetAttribute"});
  library.Find(&entries.granularity, {"cuMemGetAllocationGranularity"});
  library.Find(&entries.create, {"cuMemCreate"});
  library.Find(&entries.export_handle, {"cuMemExportToShareableHandle"});
  library.Find(&entries.import_handle, {"cuMemImportFromShareableHandle"});
  library.Find(&entries.set_access, {"cuMemSetAccess"});
  library.Find(&entries.get_access, {"cuMemGetAccess"});
  library.Find(&entries.host_allocate, {"cuMemHostAlloc"});
  library.Find(&entries.host_register, {"cuMemHostRegister_v2"});
  library.Find(&entries.pointer_attribute, {"cuPointerGetAttribute"});
  library.Find(&entries.stream_create, {"cuStreamCreateWithPriority"});
  library.Find(&entries.event_create, {"cuEventCreate"});
  library.Find(&entries.wait_value, {"cuStreamWaitValue64_v2"});
  library.Find(&entries.capture_info, {"cuStreamGetCaptureInfo_v2"});
  library.Find(&entries.add_kernel, {"cuGraphAddKernelNode_v2"});
  library.Find(&entries.add_copy, {"cuGraphAddMemcpyNode"});
  library.Find(&entries.add_fill, {"cuGraphAddMemsetNode"});
  library.Find(&entries.add_host, {"cuGraphAddHostNode"});
  library.Find(&entries.add_child, {"cuGraphAddChildGraphNode"});
  library.Find(&entries.add_empty, {"cuGraphAddEmptyNode"});
  library.Find(&entries.add_mem_op, {"cuGraphAddBatchMemOpNode"});
  library.Find(&entries.set_kernel, {"cuGraphExecKernelNodeSetParams_v2"});
  library.Find(&entries.set_copy, {"cuGraphExecMemcpyNodeSetParams"});
  library.Find(&entries.set_fill, {"cuGraphExecMemsetNodeSetParams"});
  library.Find(&entries.set_host, {"cuGraphExecHostNodeSetParams"});
  library.Find(&entries.set_child, {"cuGraphExecChildGraphNodeSetParams"});
  library.Find(&entries.set_mem_op, {"cuGraphExecBatchMemOpNodeSetParams"});
  library.Find(&entries.node_type, {"cuGraphNodeGetType"});
  library.Find(&entries.get_kernel, {"cuGraphKernelNodeGetParams_v2"});
  library.Find(&entries.get_mem_op, {"cuGraphBatchMemOpNodeGetParams"});
  library.Find(&entries.exec_update, {"cuGraphExecUpdate_v2"});
  KEEL_TRY(library.Missing());
  return &api;
}

}  // namespace keel::cuda
