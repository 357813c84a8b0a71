// Fills VendorApi from libamdhip64.so. Where HIP differs from the libraries of contexts:
//
//  - a thread has a current device, not a context (runtime.h);
//  - the legacy default stream is null, and there is a last error to clear (runtime.h);
//  - a stream that does not exist is "context is destroyed": no loss, as elsewhere, but a wrong
//    argument (Judge);
//  - handles of physical memory are pointers, and a descriptor to import is passed by its address
//    before 7.1 (hip_calls.cc);
//  - peers are enabled by their number, and copies between devices name numbers (hip_calls.cc);
//  - a wait for a value takes a mask. Where the runtime is told to wait in the command processor
//    (GPU_STREAMOPS_CP_WAIT) it takes signal memory only, which is neither plain nor virtual
//    memory: such waits are refused, and Keel does not hide that;
//  - numbers changed: those of memory types with 6.0, those of nodes with 5.3 (hip_graph.cc);
//  - nodes of memory operations came with 6.4: before, a value write or wait cannot be a node;
//  - the architecture's name is only in a structure that changed with 6.0 (Describe);
//  - code objects are for one architecture, so that Keel brings no image of the standard kernels.
//    KEEL_HIP_KERNELS names a file with one.

#include "drivers/hip/hip_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <string>

#include "drivers/hip/runtime.h"
#include "drivers/shared/context_params.h"
#include "drivers/shared/kernel_file.h"
#include "drivers/shared/library.h"

namespace keel::hip {

Runtime runtime;

namespace {

using vendor::VendorApi;
using vendor::Verdict;

Verdict Judge(Code code) {
  switch (code) {
    case abi::kInvalidConfiguration:
    case abi::kInvalidSymbol:
    case abi::kInvalidDevicePointer:
    case abi::kInvalidMemcpyDirection:
    case abi::kInvalidDeviceFunction:
    case abi::kInvalidKernelFile:
    case abi::kContextIsDestroyed:
      return {StatusCode::kInvalidArgument};
    case abi::kInsufficientDriver:
      return {StatusCode::kUnavailable};
    case abi::kPeerAccessUnsupported:
      return {StatusCode::kFailedPrecondition};
    default:
      return vendor::JudgeContextResult(code);
  }
}

Code ErrorName(Code code, const char** name) {
  *name = runtime.entries.error_name(code);
  return kSuccess;
}

Code ErrorText(Code code, const char** text) {
  *text = runtime.entries.error_text(code);
  return kSuccess;
}

int AttributeOf(int device, int attribute) {
  int value = 0;
  return Settle(runtime.entries.device_attribute(&value, attribute, device)) == kSuccess ? value
                                                                                         : 0;
}

// Without the features after the colon ("gfx90a:sramecc+:xnack-"), which a module need not name.
Code Architecture(int device, std::string* architecture) {
  const auto take = [&](const auto& properties) {
    const char* end = std::end(properties.architecture);
    architecture->assign(
        properties.architecture,
        std::find_if(properties.architecture, end, [](char c) { return c == '\0' || c == ':'; }));
  };
  if (runtime.entries.properties != nullptr) {
    abi::Properties properties;
    const Code code = Settle(runtime.entries.properties(&properties, device));
    if (code == kSuccess) take(properties);
    return code;
  }
  abi::PropertiesBefore6 properties;
  const Code code = Settle(runtime.entries.properties_before_6(&properties, device));
  if (code == kSuccess) take(properties);
  return code;
}

// HIP's UUID is text, the unique number of the board; boards without one have none, or zeros.
std::string Identity(int device, const std::string& bus) {
  abi::Uuid uuid;
  if (runtime.entries.device_uuid != nullptr &&
      Settle(runtime.entries.device_uuid(&uuid, device)) == kSuccess) {
    const std::string text(uuid.bytes, std::find(std::begin(uuid.bytes), std::end(uuid.bytes), 0));
    const bool printable =
        std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isgraph(c) != 0; });
    if (printable && text.find_first_not_of('0') != std::string::npos) return "GPU-" + text;
  }
  return bus;
}

// The library has no word for it; the system does.
int NumaNode(const std::string& bus) {
  std::string lower = bus;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  int node = -1;
  std::ifstream("/sys/bus/pci/devices/" + lower + "/numa_node") >> node;
  return node;
}

Code Describe(int device, hal::DeviceInfo* info) {
  char name[256] = {};
  if (const Code code = Settle(runtime.entries.device_name(name, sizeof(name), device));
      code != kSuccess) {
    return code;
  }
  info->name = name;
  std::size_t bytes = 0;
  if (const Code code = Settle(runtime.entries.device_memory(&bytes, device)); code != kSuccess) {
    return code;
  }
  info->memory = Bytes(bytes);
  char bus[32] = {};
  if (const Code code = Settle(runtime.entries.device_bus(bus, sizeof(bus), device));
      code != kSuccess) {
    return code;
  }
  info->identity = Identity(device, bus);
  info->numa_node = NumaNode(bus);
  return Architecture(device, &info->architecture);
}

bool HasVirtualMemory() {
  const Entries& e = runtime.entries;
  return e.granularity != nullptr && e.create != nullptr && e.release != nullptr &&
         e.reserve != nullptr && e.address_free != nullptr && e.map != nullptr &&
         e.unmap != nullptr && e.set_access != nullptr && e.get_access != nullptr;
}

Code Capabilities(int device, hal::Capabilities* capabilities) {
  const Entries& e = runtime.entries;
  capabilities->virtual_memory =
      HasVirtualMemory() && AttributeOf(device, abi::kVirtualMemoryManagementSupported) != 0;
  if (capabilities->virtual_memory) {
    abi::AllocationProp prop;
    prop.location.id = device;
    std::size_t minimum = 0;
    std::size_t recommended = 0;
    Code code = Settle(e.granularity(&minimum, &prop, abi::kGranularityMinimum));
    if (code == kSuccess) {
      code = Settle(e.granularity(&recommended, &prop, abi::kGranularityRecommended));
    }
    if (code != kSuccess) return code;
    capabilities->granularity = {Bytes(minimum), Bytes(recommended)};
  }
  // No attribute says more: on Linux a descriptor can always be had.
  capabilities->exportable_memory =
      capabilities->virtual_memory && e.export_handle != nullptr && e.import_handle != nullptr;
  // Nothing says whether a network card could use it.
  capabilities->rdma_memory = false;
  capabilities->host_registration =
      runtime.version < abi::kVersion6_0 || AttributeOf(device, abi::kHostRegisterSupported) != 0;
  capabilities->unified_addresses = AttributeOf(device, abi::kUnifiedAddressing) != 0;
  capabilities->kernels = true;
  capabilities->host_calls = e.call_host != nullptr;
  // The attribute is about waits; every device writes.
  capabilities->value_writes = e.write_value != nullptr;
  capabilities->value_waits =
      e.wait_value != nullptr && AttributeOf(device, abi::kCanUseStreamWaitValue) != 0;
  capabilities->event_timing = true;
  capabilities->graphs = HasGraphs();
  capabilities->graph_update = capabilities->graphs && e.exec_update != nullptr;
  capabilities->node_update = capabilities->graphs && HasNodeUpdate();
  return kSuccess;
}

Code Init(unsigned flags) { return Settle(runtime.entries.init(flags)); }
Code CountDevices(int* count) { return Settle(runtime.entries.device_count(count)); }
Code GetDevice(int* device, int ordinal) {
  return Settle(runtime.entries.device_get(device, ordinal));
}

// There is nothing to retain, and so nothing that would say that the device was lost before. Asking
// for its memory does.
Code RetainContext(void** context, int device) {
  const Entries& e = runtime.entries;
  int before = 0;
  Code code = Settle(e.get_device(&before));
  if (code == kSuccess) code = Settle(e.set_device(device));
  if (code != kSuccess) return code;
  std::size_t free = 0;
  std::size_t total = 0;
  code = Settle(e.memory_info(&free, &total));
  Settle(e.set_device(before));
  *context = ContextOf(device);
  return code;
}

Code ReleaseContext(int) { return kSuccess; }

Code GetCurrent(void** context) {
  int device = 0;
  const Code code = Settle(runtime.entries.get_device(&device));
  *context = ContextOf(device);
  return code;
}

Code SetCurrent(void* context) { return Settle(runtime.entries.set_device(DeviceOf(context))); }
Code PriorityRange(int* least, int* greatest) {
  return Settle(runtime.entries.priority_range(least, greatest));
}

// Without these there is no device.
void FindBasics(vendor::Library& library) {
  Entries& e = runtime.entries;
  library.Find(&e.init, {"hipInit"});
  library.Find(&e.runtime_version, {"hipRuntimeGetVersion"});
  library.Find(&e.error_name, {"hipGetErrorName"});
  library.Find(&e.error_text, {"hipGetErrorString"});
  library.Find(&e.last_error, {"hipGetLastError"});
  library.Find(&e.device_count, {"hipGetDeviceCount"});
  library.Find(&e.device_get, {"hipDeviceGet"});
  library.Find(&e.device_name, {"hipDeviceGetName"});
  library.Find(&e.device_bus, {"hipDeviceGetPCIBusId"});
  library.Find(&e.device_memory, {"hipDeviceTotalMem"});
  library.Find(&e.device_attribute, {"hipDeviceGetAttribute"});
  library.Find(&e.properties_before_6, {"hipGetDeviceProperties"});
  library.Find(&e.get_device, {"hipGetDevice"});
  library.Find(&e.set_device, {"hipSetDevice"});
  library.Find(&e.priority_range, {"hipDeviceGetStreamPriorityRange"});
  library.Find(&e.memory_info, {"hipMemGetInfo"});
  library.Find(&e.allocate, {"hipMalloc"});
  library.Find(&e.free, {"hipFree"});
  library.Find(&e.host_allocate, {"hipHostMalloc"});
  library.Find(&e.host_free, {"hipHostFree"});
  library.Find(&e.host_register, {"hipHostRegister"});
  library.Find(&e.host_unregister, {"hipHostUnregister"});
  library.Find(&e.host_address, {"hipHostGetDevicePointer"});
  library.Find(&e.pointer_attribute, {"hipPointerGetAttribute"});
  library.Find(&e.can_access_peer, {"hipDeviceCanAccessPeer"});
  library.Find(&e.enable_peer, {"hipDeviceEnablePeerAccess"});
  library.Find(&e.disable_peer, {"hipDeviceDisablePeerAccess"});
  library.Find(&e.stream_create, {"hipStreamCreateWithPriority"});
  library.Find(&e.stream_destroy, {"hipStreamDestroy"});
  library.Find(&e.stream_query, {"hipStreamQuery"});
  library.Find(&e.event_create, {"hipEventCreateWithFlags"});
  library.Find(&e.event_destroy, {"hipEventDestroy"});
  library.Find(&e.event_record, {"hipEventRecord"});
  library.Find(&e.event_query, {"hipEventQuery"});
  library.Find(&e.event_elapsed, {"hipEventElapsedTime"});
  library.Find(&e.stream_wait_event, {"hipStreamWaitEvent"});
  library.Find(&e.copy_in, {"hipMemcpyHtoDAsync"});
  library.Find(&e.copy_out, {"hipMemcpyDtoHAsync"});
  library.Find(&e.copy_within, {"hipMemcpyDtoDAsync"});
  library.Find(&e.copy, {"hipMemcpyAsync"});
  library.Find(&e.copy_peer, {"hipMemcpyPeerAsync"});
  library.Find(&e.fill8, {"hipMemsetD8Async"});
  library.Find(&e.fill16, {"hipMemsetD16Async"});
  library.Find(&e.fill32, {"hipMemsetD32Async"});
  library.Find(&e.module_load, {"hipModuleLoadData"});
  library.Find(&e.module_unload, {"hipModuleUnload"});
  library.Find(&e.module_kernel, {"hipModuleGetFunction"});
  library.Find(&e.launch, {"hipModuleLaunchKernel"});
}

void FindOptions(vendor::Library& library) {
  Entries& e = runtime.entries;
  const auto find = [&library](auto** target, const char* name) {
    library.Find(target, {name}, /*required=*/false);
  };
  find(&e.device_uuid, "hipDeviceGetUuid");
  find(&e.properties, "hipGetDevicePropertiesR0600");
  find(&e.stream_device, "hipStreamGetDevice");
  find(&e.granularity, "hipMemGetAllocationGranularity");
  find(&e.create, "hipMemCreate");
  find(&e.release, "hipMemRelease");
  find(&e.export_handle, "hipMemExportToShareableHandle");
  find(&e.import_handle, "hipMemImportFromShareableHandle");
  find(&e.reserve, "hipMemAddressReserve");
  find(&e.address_free, "hipMemAddressFree");
  find(&e.map, "hipMemMap");
  find(&e.unmap, "hipMemUnmap");
  find(&e.set_access, "hipMemSetAccess");
  find(&e.get_access, "hipMemGetAccess");
  find(&e.write_value, "hipStreamWriteValue64");
  find(&e.wait_value, "hipStreamWaitValue64");
  find(&e.call_host, "hipLaunchHostFunc");
  find(&e.exchange_capture_mode, "hipThreadExchangeStreamCaptureMode");
  find(&e.capture_begin, "hipStreamBeginCapture");
  find(&e.capture_end, "hipStreamEndCapture");
  find(&e.capture_info, "hipStreamGetCaptureInfo_v2");
  find(&e.graph_create, "hipGraphCreate");
  find(&e.graph_destroy, "hipGraphDestroy");
  find(&e.graph_nodes, "hipGraphGetNodes");
  find(&e.node_dependencies, "hipGraphNodeGetDependencies");
  find(&e.node_type, "hipGraphNodeGetType");
  find(&e.instantiate, "hipGraphInstantiate");
  find(&e.exec_destroy, "hipGraphExecDestroy");
  find(&e.exec_update, "hipGraphExecUpdate");
  find(&e.graph_launch, "hipGraphLaunch");
  find(&e.add_kernel, "hipGraphAddKernelNode");
  find(&e.add_copy, "hipGraphAddMemcpyNode1D");
  find(&e.add_fill, "hipGraphAddMemsetNode");
  find(&e.add_host, "hipGraphAddHostNode");
  find(&e.add_child, "hipGraphAddChildGraphNode");
  find(&e.add_empty, "hipGraphAddEmptyNode");
  find(&e.add_mem_op, "hipGraphAddBatchMemOpNode");
  find(&e.get_kernel, "hipGraphKernelNodeGetParams");
  find(&e.get_mem_op, "hipGraphBatchMemOpNodeGetParams");
  find(&e.set_kernel, "hipGraphExecKernelNodeSetParams");
  find(&e.set_copy, "hipGraphExecMemcpyNodeSetParams1D");
  find(&e.set_fill, "hipGraphExecMemsetNodeSetParams");
  find(&e.set_host, "hipGraphExecHostNodeSetParams");
  find(&e.set_child, "hipGraphExecChildGraphNodeSetParams");
  find(&e.set_mem_op, "hipGraphExecBatchMemOpNodeSetParams");
}

}  // namespace

Result<const VendorApi*> LoadApi() {
  KEEL_ASSIGN(vendor::Library library,
              vendor::Library::Open("HIP", {"libamdhip64.so.7", "libamdhip64.so.6",
                                            "libamdhip64.so.5", "libamdhip64.so"}));
  FindBasics(library);
  KEEL_TRY(library.Missing());
  FindOptions(library);
  if (Settle(runtime.entries.runtime_version(&runtime.version)) != kSuccess) {
    return Unavailable(fmt::format("{} does not say which version it is", library.name()));
  }
  // Lives as long as the library, which is never closed.
  static VendorApi api;
  api.driver = "hip";
  api.not_ready = abi::kNotReady;
  api.update_refused = abi::kGraphExecUpdateFailure;
  api.already_enabled = abi::kPeerAccessAlreadyEnabled;
  api.not_enabled = abi::kPeerAccessNotEnabled;
  api.judge = Judge;
  api.error_name = ErrorName;
  api.error_text = ErrorText;
  api.init = Init;
  api.device_count = CountDevices;
  api.device_get = GetDevice;
  api.describe = Describe;
  api.capabilities = Capabilities;
  api.context_retain = RetainContext;
  api.context_release = ReleaseContext;
  api.current_get = GetCurrent;
  api.current_set = SetCurrent;
  api.priority_range = PriorityRange;
  // A launch looks at the current device too, whatever the stream's is.
  api.streams_know_their_context = false;
  api.legacy_stream = abi::kStreamLegacy;
  api.per_thread_stream = abi::kStreamPerThread;
  // Never destroyed: a device gives it to whoever asks, as long as the process lives.
  static const auto& kernels = *new std::string(vendor::KernelsFromFile("KEEL_HIP_KERNELS"));
  api.standard_kernels = kernels;
  FillCalls(api);
  FillGraphs(api);
  return &api;
}

}  // namespace keel::hip
