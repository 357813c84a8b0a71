// ContextApi<Form>: a VendorApi over a driver library of the shape in context_abi.h.
//
// What differs between the vendors of such a library is a Form, in the vendor's folder:
//
//   struct Form {
//     static constexpr std::string_view kDriver;        // in KEEL_DRIVER
//     static constexpr std::string_view kLabel;         // the vendor's name for it, in messages
//     static constexpr std::string_view kPrefix;        // before every entry point
//     static std::vector<std::string> Libraries();      // file names, the best first
//     static constexpr std::string_view kArchitecture;  // before the compute capability
//     static constexpr int kNumaAttribute;              // the host node of a device; 0: none
//     static constexpr std::array<int, n> kValueAttributes;  // any one: 64-bit values by streams
//     static std::string_view StandardKernels();        // an image; may be empty
//     static constexpr bool kProbesUpdates;             // see UpdatesWork()
//     static constexpr bool kUploads;                   // see VendorApi::upload
//     static constexpr bool kStreamsKnowTheirContext;   // see VendorApi
//     static constexpr bool kKernelsTellKind;           // see VendorApi
//   };
//
// Entry points are taken by name and version: the versioned names say which layout of a structure
// they take, and stay for ever. Without the first group of names there is no device; each further
// group may be missing, and takes a capability with it.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <variant>
#include <vector>

#include "drivers/shared/context_abi.h"
#include "drivers/shared/context_params.h"
#include "drivers/shared/library.h"
#include "drivers/shared/short_list.h"
#include "drivers/shared/update_reason.h"
#include "drivers/shared/vendor_api.h"
#include "keel/base/result.h"

namespace keel::vendor {

// The entry points whose arguments need translating.
struct ContextEntries {
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
  // One of the two.
  Code (*exec_update)(void* exec, void* graph, abi::UpdateResultInfo* info) = nullptr;
  Code (*exec_update_v1)(void* exec, void* graph, void** node, int* result) = nullptr;
  // Instead of VendorApi::instantiate, in libraries that have no flags.
  Code (*instantiate_v2)(void** exec, void* graph, void** node, char* log,
                         std::size_t size) = nullptr;
};

template <class Form>
class ContextApi {
 public:
  // Opens the library, once. kUnavailable says what is missing.
  static Result<const VendorApi*> Load() {
    KEEL_ASSIGN(Library library, Library::Open(Form::kLabel, Form::Libraries()));
    library.set_prefix(Form::kPrefix);
    FindBasics(library);
    KEEL_TRY(library.Missing());
    FindOptions(library);
    FindGraphs(library);
    Fill();
    return &api_;
  }

 private:
  // Without these there is no device.
  static void FindBasics(Library& library) {
    library.Find(&api_.error_name, {"GetErrorName"});
    library.Find(&api_.error_text, {"GetErrorString"});
    library.Find(&api_.init, {"Init"});
    library.Find(&api_.device_count, {"DeviceGetCount"});
    library.Find(&api_.device_get, {"DeviceGet"});
    library.Find(&api_.context_retain, {"DevicePrimaryCtxRetain"});
    library.Find(&api_.context_release, {"DevicePrimaryCtxRelease_v2"});
    library.Find(&api_.current_get, {"CtxGetCurrent"});
    library.Find(&api_.current_set, {"CtxSetCurrent"});
    library.Find(&api_.priority_range, {"CtxGetStreamPriorityRange"});
    library.Find(&api_.memory_info, {"MemGetInfo_v2"});
    library.Find(&api_.memory_allocate, {"MemAlloc_v2"});
    library.Find(&api_.memory_free, {"MemFree_v2"});
    library.Find(&api_.host_free, {"MemFreeHost"});
    library.Find(&api_.host_address, {"MemHostGetDevicePointer_v2"});
    library.Find(&api_.can_access_peer, {"DeviceCanAccessPeer"});
    library.Find(&api_.enable_peer, {"CtxEnablePeerAccess"});
    library.Find(&api_.disable_peer, {"CtxDisablePeerAccess"});
    library.Find(&api_.stream_destroy, {"StreamDestroy_v2"});
    library.Find(&api_.stream_context, {"StreamGetCtx"});
    library.Find(&api_.stream_query, {"StreamQuery"});
    library.Find(&api_.event_destroy, {"EventDestroy_v2"});
    library.Find(&api_.event_record, {"EventRecord"});
    library.Find(&api_.event_query, {"EventQuery"});
    library.Find(&api_.event_elapsed, {"EventElapsedTime"});
    library.Find(&api_.stream_wait_event, {"StreamWaitEvent"});
    library.Find(&api_.copy_in, {"MemcpyHtoDAsync_v2"});
    library.Find(&api_.copy_out, {"MemcpyDtoHAsync_v2"});
    library.Find(&api_.copy_within, {"MemcpyDtoDAsync_v2"});
    library.Find(&api_.copy_host, {"MemcpyAsync"});
    library.Find(&api_.copy_peer, {"MemcpyPeerAsync"});
    library.Find(&api_.fill8, {"MemsetD8Async"});
    library.Find(&api_.fill16, {"MemsetD16Async"});
    library.Find(&api_.fill32, {"MemsetD32Async"});
    library.Find(&api_.module_load, {"ModuleLoadData"});
    library.Find(&api_.module_unload, {"ModuleUnload"});
    library.Find(&api_.module_kernel, {"ModuleGetFunction"});
    library.Find(&api_.launch, {"LaunchKernel"});
    library.Find(&entries_.device_name, {"DeviceGetName"});
    library.Find(&entries_.device_uuid, {"DeviceGetUuid_v2", "DeviceGetUuid"});
    library.Find(&entries_.device_memory, {"DeviceTotalMem_v2"});
    library.Find(&entries_.device_attribute, {"DeviceGetAttribute"});
    library.Find(&entries_.host_allocate, {"MemHostAlloc"});
    library.Find(&entries_.pointer_attribute, {"PointerGetAttribute"});
    library.Find(&entries_.stream_create, {"StreamCreateWithPriority"});
    library.Find(&entries_.event_create, {"EventCreate"});
  }

  static void FindOptions(Library& library) {
    const auto find = [&library](auto** target, std::initializer_list<const char*> names) {
      library.Find(target, names, /*required=*/false);
    };
    // Virtual memory.
    find(&entries_.granularity, {"MemGetAllocationGranularity"});
    find(&entries_.create, {"MemCreate"});
    find(&api_.memory_release, {"MemRelease"});
    find(&api_.address_reserve, {"MemAddressReserve"});
    find(&api_.address_free, {"MemAddressFree"});
    find(&api_.map, {"MemMap"});
    find(&api_.unmap, {"MemUnmap"});
    find(&api_.set_access, {"MemSetAccess"});
    find(&entries_.get_access, {"MemGetAccess"});
    find(&entries_.export_handle, {"MemExportToShareableHandle"});
    find(&entries_.import_handle, {"MemImportFromShareableHandle"});
    // Host registration, host calls, values.
    find(&entries_.host_register, {"MemHostRegister_v2"});
    find(&api_.host_unregister, {"MemHostUnregister"});
    find(&api_.call_host, {"LaunchHostFunc"});
    // The two versions take the same arguments; the first one needs no switch to be turned on.
    find(&api_.write_value, {"StreamWriteValue64_v2", "StreamWriteValue64"});
    find(&entries_.wait_value, {"StreamWaitValue64_v2", "StreamWaitValue64"});
  }

  static void FindGraphs(Library& library) {
    const auto find = [&library](auto** target, std::initializer_list<const char*> names) {
      library.Find(target, names, /*required=*/false);
    };
    find(&api_.exchange_capture_mode, {"ThreadExchangeStreamCaptureMode"});
    find(&api_.capture_begin, {"StreamBeginCapture_v2"});
    find(&api_.capture_end, {"StreamEndCapture"});
    find(&entries_.capture_info, {"StreamGetCaptureInfo_v2"});
    find(&api_.graph_create, {"GraphCreate"});
    find(&api_.graph_destroy, {"GraphDestroy"});
    find(&api_.graph_nodes, {"GraphGetNodes"});
    find(&api_.node_dependencies, {"GraphNodeGetDependencies"});
    find(&api_.instantiate, {"GraphInstantiateWithFlags"});
    find(&entries_.instantiate_v2, {"GraphInstantiate_v2"});
    if (Form::kUploads) find(&api_.upload, {"GraphUpload"});
    find(&api_.exec_destroy, {"GraphExecDestroy"});
    find(&api_.graph_launch, {"GraphLaunch"});
    find(&entries_.node_type, {"GraphNodeGetType"});
    // The first version of a kernel's parameters is the beginning of the second.
    find(&entries_.add_kernel, {"GraphAddKernelNode_v2", "GraphAddKernelNode"});
    find(&entries_.add_copy, {"GraphAddMemcpyNode"});
    find(&entries_.add_fill, {"GraphAddMemsetNode"});
    find(&entries_.add_host, {"GraphAddHostNode"});
    find(&entries_.add_child, {"GraphAddChildGraphNode"});
    find(&entries_.add_empty, {"GraphAddEmptyNode"});
    find(&entries_.add_mem_op, {"GraphAddBatchMemOpNode"});
    find(&entries_.get_kernel, {"GraphKernelNodeGetParams_v2", "GraphKernelNodeGetParams"});
    find(&entries_.get_mem_op, {"GraphBatchMemOpNodeGetParams"});
    find(&entries_.set_kernel, {"GraphExecKernelNodeSetParams_v2", "GraphExecKernelNodeSetParams"});
    find(&entries_.set_copy, {"GraphExecMemcpyNodeSetParams"});
    find(&entries_.set_fill, {"GraphExecMemsetNodeSetParams"});
    find(&entries_.set_host, {"GraphExecHostNodeSetParams"});
    find(&entries_.set_child, {"GraphExecChildGraphNodeSetParams"});
    find(&entries_.set_mem_op, {"GraphExecBatchMemOpNodeSetParams"});
    find(&entries_.exec_update, {"GraphExecUpdate_v2"});
    find(&entries_.exec_update_v1, {"GraphExecUpdate"});
  }

  static void Fill() {
    api_.driver = Form::kDriver;
    api_.not_ready = abi::kNotReady;
    api_.update_refused = abi::kGraphExecUpdateFailure;
    api_.already_enabled = abi::kPeerAccessAlreadyEnabled;
    api_.not_enabled = abi::kPeerAccessNotEnabled;
    api_.judge = JudgeContextResult;
    api_.legacy_stream = abi::kStreamLegacy;
    api_.per_thread_stream = abi::kStreamPerThread;
    api_.streams_know_their_context = Form::kStreamsKnowTheirContext;
    api_.describe = Describe;
    api_.capabilities = Capabilities;
    api_.memory_create = CreateMemory;
    api_.memory_export = ExportMemory;
    api_.memory_import = ImportMemory;
    api_.get_access = GetAccess;
    api_.host_allocate = AllocateHost;
    api_.host_register = RegisterHost;
    api_.is_pinned = IsPinned;
    api_.stream_create = CreateStream;
    api_.event_create = CreateEvent;
    api_.wait_value = WaitValue;
    api_.capture_info = CaptureInfo;
    api_.add_node = AddNode;
    api_.set_node = SetNode;
    api_.node_kind = NodeKind;
    api_.node_kernel = NodeKernel;
    api_.kernels_tell_kind = Form::kKernelsTellKind;
    api_.exec_update = UpdateExec;
    if (api_.instantiate == nullptr) api_.instantiate = InstantiateWithLog;
    api_.standard_kernels = Form::StandardKernels();
  }

  static int AttributeOf(abi::Device device, int attribute) {
    int value = 0;
    return entries_.device_attribute(&value, attribute, device) == kSuccess ? value : 0;
  }

  static Code Describe(abi::Device device, hal::DeviceInfo* info) {
    char name[256] = {};
    if (const Code code = entries_.device_name(name, sizeof(name), device); code != kSuccess) {
      return code;
    }
    info->name = name;
    std::size_t bytes = 0;
    if (const Code code = entries_.device_memory(&bytes, device); code != kSuccess) return code;
    info->memory = Bytes(bytes);
    abi::Uuid uuid;
    if (const Code code = entries_.device_uuid(&uuid, device); code != kSuccess) return code;
    info->identity = "GPU-";
    for (std::size_t i = 0; i < std::size(uuid.bytes); ++i) {
      const bool dash = i == 4 || i == 6 || i == 8 || i == 10;
      info->identity += fmt::format("{}{:02x}", dash ? "-" : "", uuid.bytes[i]);
    }
    info->architecture = fmt::format("{}{}{}", Form::kArchitecture,
                                     AttributeOf(device, abi::kComputeCapabilityMajor),
                                     AttributeOf(device, abi::kComputeCapabilityMinor));
    if constexpr (Form::kNumaAttribute != 0) {
      int node = -1;
      if (entries_.device_attribute(&node, Form::kNumaAttribute, device) != kSuccess) node = -1;
      info->numa_node = node;
    }
    return kSuccess;
  }

  static bool HasVirtualMemory() {
    return entries_.granularity != nullptr && entries_.create != nullptr &&
           api_.set_access != nullptr && entries_.get_access != nullptr &&
           api_.memory_release != nullptr && api_.address_reserve != nullptr &&
           api_.address_free != nullptr && api_.map != nullptr && api_.unmap != nullptr;
  }

  // Everything but value nodes, which a library may be too old for.
  static bool HasGraphs() {
    return api_.exchange_capture_mode != nullptr && api_.capture_begin != nullptr &&
           api_.capture_end != nullptr && entries_.capture_info != nullptr &&
           api_.graph_create != nullptr && api_.graph_destroy != nullptr &&
           api_.graph_nodes != nullptr && api_.node_dependencies != nullptr &&
           (api_.instantiate != InstantiateWithLog || entries_.instantiate_v2 != nullptr) &&
           api_.exec_destroy != nullptr && api_.graph_launch != nullptr &&
           entries_.node_type != nullptr && entries_.add_kernel != nullptr &&
           entries_.add_copy != nullptr && entries_.add_fill != nullptr &&
           entries_.add_host != nullptr && entries_.add_child != nullptr &&
           entries_.add_empty != nullptr;
  }

  static bool HasNodeUpdate() {
    return entries_.set_kernel != nullptr && entries_.set_copy != nullptr &&
           entries_.set_fill != nullptr && entries_.set_host != nullptr &&
           entries_.set_child != nullptr;
  }

  // Some libraries have the entry points and say "not supported" from all of them; then the
  // capability must be false. A graph without effects finds out. The device's context is current.
  static bool UpdatesWork() {
    void* graph = nullptr;
    if (api_.graph_create(&graph, 0) != kSuccess) return false;
    void* node = nullptr;
    void* exec = nullptr;
    bool works = false;
    if (entries_.add_empty(&node, graph, nullptr, 0) == kSuccess &&
        api_.instantiate(&exec, graph, 0) == kSuccess) {
      UpdateResult result;
      works = UpdateExec(exec, graph, &result) == kSuccess;
      api_.exec_destroy(exec);
    }
    api_.graph_destroy(graph);
    return works;
  }

  static Code Capabilities(abi::Device device, hal::Capabilities* capabilities) {
    capabilities->virtual_memory =
        HasVirtualMemory() && AttributeOf(device, abi::kVirtualMemoryManagementSupported) != 0;
    if (capabilities->virtual_memory) {
      abi::AllocationProp prop;
      prop.location.id = device;
      std::size_t minimum = 0;
      std::size_t recommended = 0;
      Code code = entries_.granularity(&minimum, &prop, abi::kGranularityMinimum);
      if (code == kSuccess) {
        code = entries_.granularity(&recommended, &prop, abi::kGranularityRecommended);
      }
      if (code != kSuccess) return code;
      capabilities->granularity = {Bytes(minimum), Bytes(recommended)};
    }
    capabilities->exportable_memory = capabilities->virtual_memory &&
                                      entries_.export_handle != nullptr &&
                                      entries_.import_handle != nullptr &&
                                      AttributeOf(device, abi::kPosixFileDescriptorSupported) != 0;
    capabilities->rdma_memory = capabilities->virtual_memory &&
                                AttributeOf(device, abi::kRdmaWithVirtualMemorySupported) != 0;
    capabilities->host_registration = entries_.host_register != nullptr &&
                                      api_.host_unregister != nullptr &&
                                      AttributeOf(device, abi::kHostRegisterSupported) != 0;
    capabilities->unified_addresses = AttributeOf(device, abi::kUnifiedAddressing) != 0;
    capabilities->kernels = true;
    capabilities->host_calls = api_.call_host != nullptr;
    const bool values =
        std::any_of(Form::kValueAttributes.begin(), Form::kValueAttributes.end(),
                    [device](int attribute) { return AttributeOf(device, attribute) != 0; });
    capabilities->value_writes = values && api_.write_value != nullptr;
    capabilities->value_waits = values && entries_.wait_value != nullptr;
    capabilities->event_timing = true;
    capabilities->graphs = HasGraphs();
    const bool updates = capabilities->graphs &&
                         (entries_.exec_update != nullptr || entries_.exec_update_v1 != nullptr);
    if constexpr (Form::kProbesUpdates) {
      capabilities->graph_update = updates && UpdatesWork();
      capabilities->node_update = capabilities->graph_update && HasNodeUpdate();
    } else {
      capabilities->graph_update = updates;
      capabilities->node_update = capabilities->graphs && HasNodeUpdate();
    }
    return kSuccess;
  }

  static Code CreateMemory(std::uint64_t* handle, std::size_t size, int device, bool exportable,
                           bool rdma) {
    abi::AllocationProp prop;
    prop.location.id = device;
    if (exportable) prop.requested_handle_types = abi::kHandlePosixDescriptor;
    if (rdma) prop.flags.gpu_direct_rdma_capable = 1;
    return entries_.create(handle, size, &prop, 0);
  }

  static Code ExportMemory(int* descriptor, std::uint64_t handle) {
    return entries_.export_handle(descriptor, handle, abi::kHandlePosixDescriptor, 0);
  }

  static Code ImportMemory(std::uint64_t* handle, int descriptor) {
    return entries_.import_handle(handle,
                                  reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor)),
                                  abi::kHandlePosixDescriptor);
  }

  static Code GetAccess(hal::Access* access, std::uint64_t address, int device) {
    abi::Location location;
    location.id = device;
    unsigned long long flags = 0;
    const Code code = entries_.get_access(&flags, &location, address);
    *access = static_cast<hal::Access>(flags);
    return code;
  }

  static Code AllocateHost(void** pointer, std::size_t size, bool write_combined) {
    const unsigned flags =
        abi::kHostPortable | abi::kHostDeviceMap | (write_combined ? abi::kHostWriteCombined : 0);
    return entries_.host_allocate(pointer, size, flags);
  }

  static Code RegisterHost(void* pointer, std::size_t size) {
    return entries_.host_register(pointer, size, abi::kHostPortable | abi::kHostDeviceMap);
  }

  static bool IsPinned(const void* pointer) {
    unsigned type = 0;
    return entries_.pointer_attribute(&type, abi::kPointerAttributeMemoryType,
                                      reinterpret_cast<abi::Address>(pointer)) == kSuccess &&
           type == static_cast<unsigned>(abi::kMemoryTypeHost);
  }

  static Code CreateStream(void** stream, int priority) {
    return entries_.stream_create(stream, abi::kStreamNonBlocking, priority);
  }

  static Code CreateEvent(void** event, bool timing) {
    return entries_.event_create(event, timing ? 0 : abi::kEventDisableTiming);
  }

  static Code WaitValue(void* stream, std::uint64_t address, std::uint64_t value,
                        hal::WaitCondition condition) {
    return entries_.wait_value(stream, address, value, WaitFlags(condition));
  }

  static Code CaptureInfo(void* stream, int* state, void* const** dependencies,
                          std::size_t* count) {
    return entries_.capture_info(stream, state, nullptr, nullptr, dependencies, count);
  }

  static Code AddNode(void** node, void* graph, void* const* dependencies, std::size_t count,
                      const NodeSpec& spec) {
    if (const auto* launch = std::get_if<hal::KernelLaunch>(spec.command)) {
      const abi::KernelNodeParams params = KernelParams(*launch, spec);
      return entries_.add_kernel(node, graph, dependencies, count, &params);
    }
    if (const auto* copy = std::get_if<hal::Copy>(spec.command)) {
      const abi::Memcpy3D params = CopyParams(*copy, spec);
      return entries_.add_copy(node, graph, dependencies, count, &params, spec.context);
    }
    if (const auto* fill = std::get_if<hal::Fill>(spec.command)) {
      const abi::MemsetNodeParams params = FillParams(*fill);
      return entries_.add_fill(node, graph, dependencies, count, &params, spec.context);
    }
    if (std::holds_alternative<hal::HostCall>(*spec.command)) {
      const abi::HostNodeParams params{spec.host_call.function, spec.host_call.data};
      return entries_.add_host(node, graph, dependencies, count, &params);
    }
    if (const auto* child = std::get_if<hal::ChildGraph>(spec.command)) {
      return entries_.add_child(node, graph, dependencies, count,
                                reinterpret_cast<void*>(child->graph.value));
    }
    if (std::holds_alternative<hal::EmptyNode>(*spec.command)) {
      return entries_.add_empty(node, graph, dependencies, count);
    }
    if (entries_.add_mem_op == nullptr) return abi::kNotSupported;
    abi::MemOp op = ValueOp(*spec.command);
    const abi::BatchMemOpNodeParams params = ValueParams(&op, spec.context);
    return entries_.add_mem_op(node, graph, dependencies, count, &params);
  }

  static Code SetNode(void* exec, void* node, const NodeSpec& spec) {
    if (const auto* launch = std::get_if<hal::KernelLaunch>(spec.command)) {
      const abi::KernelNodeParams params = KernelParams(*launch, spec);
      return entries_.set_kernel(exec, node, &params);
    }
    if (const auto* copy = std::get_if<hal::Copy>(spec.command)) {
      const abi::Memcpy3D params = CopyParams(*copy, spec);
      return entries_.set_copy(exec, node, &params, spec.context);
    }
    if (const auto* fill = std::get_if<hal::Fill>(spec.command)) {
      const abi::MemsetNodeParams params = FillParams(*fill);
      return entries_.set_fill(exec, node, &params, spec.context);
    }
    if (std::holds_alternative<hal::HostCall>(*spec.command)) {
      const abi::HostNodeParams params{spec.host_call.function, spec.host_call.data};
      return entries_.set_host(exec, node, &params);
    }
    if (const auto* child = std::get_if<hal::ChildGraph>(spec.command)) {
      return entries_.set_child(exec, node, reinterpret_cast<void*>(child->graph.value));
    }
    if (std::holds_alternative<hal::EmptyNode>(*spec.command)) return kSuccess;
    if (entries_.set_mem_op == nullptr) return abi::kNotSupported;
    abi::MemOp op = ValueOp(*spec.command);
    const abi::BatchMemOpNodeParams params = ValueParams(&op, spec.context);
    return entries_.set_mem_op(exec, node, &params);
  }

  static Code NodeKind(void* node, std::size_t* index) {
    int type = 0;
    if (const Code code = entries_.node_type(node, &type); code != kSuccess) return code;
    abi::BatchMemOpNodeParams operations;
    if (type == abi::kNodeBatchMemOp && entries_.get_mem_op != nullptr) {
      if (const Code code = entries_.get_mem_op(node, &operations); code != kSuccess) return code;
    }
    *index = CommandIndex(type, operations);
    return kSuccess;
  }

  static Code NodeKernel(void* node, void** kernel) {
    abi::KernelNodeParams params;
    const Code code =
        entries_.get_kernel == nullptr ? kSuccess : entries_.get_kernel(node, &params);
    *kernel = params.function;
    return code;
  }

  static Code InstantiateWithLog(void** exec, void* graph, unsigned long long) {
    return entries_.instantiate_v2(exec, graph, nullptr, nullptr, 0);
  }

  static Code UpdateExec(void* exec, void* graph, UpdateResult* result) {
    abi::UpdateResultInfo info;
    Code code = kSuccess;
    if (entries_.exec_update != nullptr) {
      code = entries_.exec_update(exec, graph, &info);
    } else {
      void* node = nullptr;
      code = entries_.exec_update_v1(exec, graph, &node, &info.result);
      info.error_node = static_cast<abi::GraphNode>(node);
    }
    result->updated = code == kSuccess;
    if (code == abi::kGraphExecUpdateFailure) {
      result->reason = UpdateReason(info.result);
      result->node = info.error_node;
    }
    return code;
  }

  // Both are written once, when the library is loaded, before anybody can call through them, and
  // live as long as the library, which is never closed.
  inline static VendorApi api_;
  inline static ContextEntries entries_;
};

}  // namespace keel::vendor
