// Compares abi.h and entries.h with HIP's headers, of whichever version is installed. Built only
// where they are; what is wrong does not compile.

#include "drivers/hip/abi.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <hip/hip_runtime_api.h>

#include <cstddef>

#include "drivers/hip/entries.h"
#include "drivers/hip/hip_api.h"
#include "drivers/shared/abi_shape_test.h"
#include "keel/hal/types.h"

namespace keel::hip {
namespace {

// A header is compared by its names, and a pointer's size is what is wanted.
// NOLINTBEGIN(cppcoreguidelines-macro-usage, bugprone-sizeof-expression)
#define SAME(ours, theirs) \
  static_assert(static_cast<long long>(ours) == static_cast<long long>(theirs))
#define SIZE(ours, theirs) static_assert(sizeof(ours) == sizeof(theirs))
#define FIELD(ours, our_field, theirs, their_field)                           \
  static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field) && \
                sizeof(ours::our_field) == sizeof(theirs::their_field))
#define ENTRY(member, name) static_assert(IsEntry<decltype(Entries::member)>(&name))

template <class Ours, class R, class... A>
constexpr bool IsEntry(R (*)(A...)) {
  return vendor::SameShape<Ours, R(A...)>;
}

// Results.
SAME(abi::kInvalidValue, hipErrorInvalidValue);
SAME(abi::kOutOfMemory, hipErrorOutOfMemory);
SAME(abi::kNotInitialized, hipErrorNotInitialized);
SAME(abi::kDeinitialized, hipErrorDeinitialized);
SAME(abi::kInvalidConfiguration, hipErrorInvalidConfiguration);
SAME(abi::kInvalidSymbol, hipErrorInvalidSymbol);
SAME(abi::kInvalidDevicePointer, hipErrorInvalidDevicePointer);
SAME(abi::kInvalidMemcpyDirection, hipErrorInvalidMemcpyDirection);
SAME(abi::kInsufficientDriver, hipErrorInsufficientDriver);
SAME(abi::kInvalidDeviceFunction, hipErrorInvalidDeviceFunction);
SAME(abi::kNoDevice, hipErrorNoDevice);
SAME(abi::kInvalidDevice, hipErrorInvalidDevice);
SAME(abi::kInvalidImage, hipErrorInvalidImage);
SAME(abi::kInvalidContext, hipErrorInvalidContext);
SAME(abi::kNoBinaryForGpu, hipErrorNoBinaryForGpu);
SAME(abi::kEccUncorrectable, hipErrorECCNotCorrectable);
SAME(abi::kPeerAccessUnsupported, hipErrorPeerAccessUnsupported);
SAME(abi::kInvalidKernelFile, hipErrorInvalidKernelFile);
SAME(abi::kInvalidSource, hipErrorInvalidSource);
SAME(abi::kFileNotFound, hipErrorFileNotFound);
SAME(abi::kInvalidHandle, hipErrorInvalidHandle);
SAME(abi::kIllegalState, hipErrorIllegalState);
SAME(abi::kNotFound, hipErrorNotFound);
SAME(abi::kNotReady, hipErrorNotReady);
SAME(abi::kIllegalAddress, hipErrorIllegalAddress);
SAME(abi::kLaunchOutOfResources, hipErrorLaunchOutOfResources);
SAME(abi::kLaunchTimeout, hipErrorLaunchTimeOut);
SAME(abi::kPeerAccessAlreadyEnabled, hipErrorPeerAccessAlreadyEnabled);
SAME(abi::kPeerAccessNotEnabled, hipErrorPeerAccessNotEnabled);
SAME(abi::kContextIsDestroyed, hipErrorContextIsDestroyed);
SAME(abi::kAssert, hipErrorAssert);
SAME(abi::kHostMemoryAlreadyRegistered, hipErrorHostMemoryAlreadyRegistered);
SAME(abi::kHostMemoryNotRegistered, hipErrorHostMemoryNotRegistered);
SAME(abi::kLaunchFailed, hipErrorLaunchFailure);
SAME(abi::kNotSupported, hipErrorNotSupported);
SAME(abi::kStreamCaptureUnsupported, hipErrorStreamCaptureUnsupported);
SAME(abi::kStreamCaptureInvalidated, hipErrorStreamCaptureInvalidated);
SAME(abi::kStreamCaptureMerge, hipErrorStreamCaptureMerge);
SAME(abi::kStreamCaptureUnmatched, hipErrorStreamCaptureUnmatched);
SAME(abi::kStreamCaptureUnjoined, hipErrorStreamCaptureUnjoined);
SAME(abi::kStreamCaptureIsolation, hipErrorStreamCaptureIsolation);
SAME(abi::kStreamCaptureImplicit, hipErrorStreamCaptureImplicit);
SAME(abi::kCapturedEvent, hipErrorCapturedEvent);
SAME(abi::kStreamCaptureWrongThread, hipErrorStreamCaptureWrongThread);
SAME(abi::kGraphExecUpdateFailure, hipErrorGraphExecUpdateFailure);
SAME(abi::kUnknown, hipErrorUnknown);

// Attributes, flags and small enumerations.
SAME(abi::kUnifiedAddressing, hipDeviceAttributeUnifiedAddressing);
SAME(abi::kCanUseStreamWaitValue, hipDeviceAttributeCanUseStreamWaitValue);
SAME(abi::kStreamNonBlocking, hipStreamNonBlocking);
SAME(abi::kEventDisableTiming, hipEventDisableTiming);
SAME(abi::kHostPortable, hipHostMallocPortable);
SAME(abi::kHostMapped, hipHostMallocMapped);
SAME(abi::kHostWriteCombined, hipHostMallocWriteCombined);
SAME(abi::kHostPortable, hipHostRegisterPortable);
SAME(abi::kHostMapped, hipHostRegisterMapped);
SAME(abi::kPointerAttributeMemoryType, HIP_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME(abi::kCopyHostToHost, hipMemcpyHostToHost);
SAME(abi::kCopyHostToDevice, hipMemcpyHostToDevice);
SAME(abi::kCopyDeviceToHost, hipMemcpyDeviceToHost);
SAME(abi::kCopyDeviceToDevice, hipMemcpyDeviceToDevice);
SAME(abi::kLocationDevice, hipMemLocationTypeDevice);
SAME(abi::kAllocationPinned, hipMemAllocationTypePinned);
SAME(abi::kHandlePosixDescriptor, hipMemHandleTypePosixFileDescriptor);
SAME(abi::kGranularityMinimum, hipMemAllocationGranularityMinimum);
SAME(abi::kGranularityRecommended, hipMemAllocationGranularityRecommended);
SAME(abi::kWaitGeq, hipStreamWaitValueGte);
SAME(abi::kWaitEq, hipStreamWaitValueEq);
SAME(abi::kWaitAnd, hipStreamWaitValueAnd);
SAME(hal::Access::kNone, hipMemAccessFlagsProtNone);
SAME(hal::Access::kRead, hipMemAccessFlagsProtRead);
SAME(hal::Access::kReadWrite, hipMemAccessFlagsProtReadWrite);
SAME(hal::CaptureMode::kGlobal, hipStreamCaptureModeGlobal);
SAME(hal::CaptureMode::kThreadLocal, hipStreamCaptureModeThreadLocal);
SAME(hal::CaptureMode::kRelaxed, hipStreamCaptureModeRelaxed);
SAME(hal::CaptureState::kNone, hipStreamCaptureStatusNone);
SAME(hal::CaptureState::kActive, hipStreamCaptureStatusActive);
SAME(hal::CaptureState::kInvalidated, hipStreamCaptureStatusInvalidated);

// Structures.
SIZE(abi::Device, hipDevice_t);
SIZE(abi::MemoryHandle, hipMemGenericAllocationHandle_t);
SIZE(abi::Uuid, hipUUID);
SIZE(abi::Location, hipMemLocation);
FIELD(abi::Location, type, hipMemLocation, type);
FIELD(abi::Location, id, hipMemLocation, id);
SIZE(abi::AccessDesc, hipMemAccessDesc);
FIELD(abi::AccessDesc, location, hipMemAccessDesc, location);
FIELD(abi::AccessDesc, flags, hipMemAccessDesc, flags);
SIZE(abi::KernelNodeParams, hipKernelNodeParams);
FIELD(abi::KernelNodeParams, block, hipKernelNodeParams, blockDim);
FIELD(abi::KernelNodeParams, extra, hipKernelNodeParams, extra);
FIELD(abi::KernelNodeParams, function, hipKernelNodeParams, func);
FIELD(abi::KernelNodeParams, grid, hipKernelNodeParams, gridDim);
FIELD(abi::KernelNodeParams, arguments, hipKernelNodeParams, kernelParams);
FIELD(abi::KernelNodeParams, shared_memory, hipKernelNodeParams, sharedMemBytes);
SIZE(abi::MemsetParams, hipMemsetParams);
FIELD(abi::MemsetParams, destination, hipMemsetParams, dst);
FIELD(abi::MemsetParams, element_size, hipMemsetParams, elementSize);
FIELD(abi::MemsetParams, height, hipMemsetParams, height);
FIELD(abi::MemsetParams, pitch, hipMemsetParams, pitch);
FIELD(abi::MemsetParams, value, hipMemsetParams, value);
FIELD(abi::MemsetParams, width, hipMemsetParams, width);
SIZE(abi::HostNodeParams, hipHostNodeParams);
FIELD(abi::HostNodeParams, function, hipHostNodeParams, fn);
FIELD(abi::HostNodeParams, data, hipHostNodeParams, userData);

// What changed with 5.3 and with 6.0.
#if HIP_VERSION >= 50300000
SAME(abi::kVirtualMemoryManagementSupported, hipDeviceAttributeVirtualMemoryManagementSupported);
SAME(abi::kNodeKernel, hipGraphNodeTypeKernel);
SAME(abi::kNodeMemcpy, hipGraphNodeTypeMemcpy);
SAME(abi::kNodeMemset, hipGraphNodeTypeMemset);
SAME(abi::kNodeHost, hipGraphNodeTypeHost);
SAME(abi::kNodeGraph, hipGraphNodeTypeGraph);
SAME(abi::kNodeEmpty, hipGraphNodeTypeEmpty);
SIZE(abi::AllocationProp, hipMemAllocationProp);
FIELD(abi::AllocationProp, type, hipMemAllocationProp, type);
FIELD(abi::AllocationProp, location, hipMemAllocationProp, location);
FIELD(abi::AllocationProp, flags, hipMemAllocationProp, allocFlags);
#if HIP_VERSION < 70000000  // a union with another name from then on
FIELD(abi::AllocationProp, requested_handle_type, hipMemAllocationProp, requestedHandleType);
#endif
#else
SAME(abi::kNodeKernel + abi::kNodeFirstBefore5_3, hipGraphNodeTypeKernel);
SAME(abi::kNodeMemcpy + abi::kNodeFirstBefore5_3, hipGraphNodeTypeMemcpy);
SAME(abi::kNodeMemset + abi::kNodeFirstBefore5_3, hipGraphNodeTypeMemset);
SAME(abi::kNodeHost + abi::kNodeFirstBefore5_3, hipGraphNodeTypeHost);
SAME(abi::kNodeGraph + abi::kNodeFirstBefore5_3, hipGraphNodeTypeGraph);
SAME(abi::kNodeEmpty + abi::kNodeFirstBefore5_3, hipGraphNodeTypeEmpty);
SAME(abi::kNodeMemcpy1DBefore5_3, hipGraphNodeTypeMemcpy1D);
#endif
#if HIP_VERSION >= 60000000
SAME(abi::kHostRegisterSupported, hipDeviceAttributeHostRegisterSupported);
SAME(abi::kMemoryTypeHost, hipMemoryTypeHost);
SAME(abi::kMemoryTypeDevice, hipMemoryTypeDevice);
SIZE(abi::Properties, hipDeviceProp_tR0600);
FIELD(abi::Properties, architecture, hipDeviceProp_tR0600, gcnArchName);
ENTRY(properties, hipGetDevicePropertiesR0600);
#else
SAME(abi::kMemoryTypeHostBefore6, hipMemoryTypeHost);
SAME(abi::kMemoryTypeDeviceBefore6, hipMemoryTypeDevice);
SIZE(abi::PropertiesBefore6, hipDeviceProp_t);
FIELD(abi::PropertiesBefore6, architecture, hipDeviceProp_t, gcnArchName);
ENTRY(properties_before_6, hipGetDeviceProperties);
#endif
#if HIP_VERSION >= 50600000
ENTRY(stream_device, hipStreamGetDevice);
#endif
#if HIP_VERSION >= 60400000
SAME(abi::kNodeBatchMemOp, hipGraphNodeTypeBatchMemOp);
SAME(abi::kMemOpWaitValue64, hipStreamMemOpWaitValue64);
SAME(abi::kMemOpWriteValue64, hipStreamMemOpWriteValue64);
SIZE(abi::MemOp, hipStreamBatchMemOpParams);
SIZE(abi::BatchMemOpNodeParams, hipBatchMemOpNodeParams);
FIELD(abi::BatchMemOpNodeParams, count, hipBatchMemOpNodeParams, count);
FIELD(abi::BatchMemOpNodeParams, operations, hipBatchMemOpNodeParams, paramArray);
ENTRY(add_mem_op, hipGraphAddBatchMemOpNode);
ENTRY(get_mem_op, hipGraphBatchMemOpNodeGetParams);
ENTRY(set_mem_op, hipGraphExecBatchMemOpNodeSetParams);
#endif

// Entry points.
ENTRY(init, hipInit);
ENTRY(runtime_version, hipRuntimeGetVersion);
ENTRY(error_name, hipGetErrorName);
ENTRY(error_text, hipGetErrorString);
ENTRY(last_error, hipGetLastError);
ENTRY(device_count, hipGetDeviceCount);
ENTRY(device_get, hipDeviceGet);
ENTRY(device_name, hipDeviceGetName);
ENTRY(device_bus, hipDeviceGetPCIBusId);
ENTRY(device_memory, hipDeviceTotalMem);
ENTRY(device_attribute, hipDeviceGetAttribute);
ENTRY(get_device, hipGetDevice);
ENTRY(set_device, hipSetDevice);
ENTRY(priority_range, hipDeviceGetStreamPriorityRange);
ENTRY(memory_info, hipMemGetInfo);
ENTRY(free, hipFree);
ENTRY(host_free, hipHostFree);
ENTRY(host_register, hipHostRegister);
ENTRY(host_unregister, hipHostUnregister);
ENTRY(host_address, hipHostGetDevicePointer);
ENTRY(pointer_attribute, hipPointerGetAttribute);
ENTRY(can_access_peer, hipDeviceCanAccessPeer);
ENTRY(enable_peer, hipDeviceEnablePeerAccess);
ENTRY(disable_peer, hipDeviceDisablePeerAccess);
ENTRY(stream_create, hipStreamCreateWithPriority);
ENTRY(stream_destroy, hipStreamDestroy);
ENTRY(stream_query, hipStreamQuery);
ENTRY(event_create, hipEventCreateWithFlags);
ENTRY(event_destroy, hipEventDestroy);
ENTRY(event_record, hipEventRecord);
ENTRY(event_query, hipEventQuery);
ENTRY(event_elapsed, hipEventElapsedTime);
ENTRY(stream_wait_event, hipStreamWaitEvent);
ENTRY(copy_in, hipMemcpyHtoDAsync);
ENTRY(copy_out, hipMemcpyDtoHAsync);
ENTRY(copy_within, hipMemcpyDtoDAsync);
ENTRY(copy, hipMemcpyAsync);
ENTRY(copy_peer, hipMemcpyPeerAsync);
ENTRY(fill8, hipMemsetD8Async);
ENTRY(fill16, hipMemsetD16Async);
ENTRY(fill32, hipMemsetD32Async);
ENTRY(module_load, hipModuleLoadData);
ENTRY(module_unload, hipModuleUnload);
ENTRY(module_kernel, hipModuleGetFunction);
ENTRY(launch, hipModuleLaunchKernel);
ENTRY(device_uuid, hipDeviceGetUuid);
ENTRY(granularity, hipMemGetAllocationGranularity);
ENTRY(create, hipMemCreate);
ENTRY(release, hipMemRelease);
ENTRY(export_handle, hipMemExportToShareableHandle);
ENTRY(import_handle, hipMemImportFromShareableHandle);
ENTRY(reserve, hipMemAddressReserve);
ENTRY(address_free, hipMemAddressFree);
ENTRY(map, hipMemMap);
ENTRY(unmap, hipMemUnmap);
ENTRY(set_access, hipMemSetAccess);
ENTRY(get_access, hipMemGetAccess);
ENTRY(write_value, hipStreamWriteValue64);
ENTRY(wait_value, hipStreamWaitValue64);
ENTRY(call_host, hipLaunchHostFunc);
ENTRY(exchange_capture_mode, hipThreadExchangeStreamCaptureMode);
ENTRY(capture_begin, hipStreamBeginCapture);
ENTRY(capture_end, hipStreamEndCapture);
ENTRY(capture_info, hipStreamGetCaptureInfo_v2);
ENTRY(graph_create, hipGraphCreate);
ENTRY(graph_destroy, hipGraphDestroy);
ENTRY(graph_nodes, hipGraphGetNodes);
ENTRY(node_dependencies, hipGraphNodeGetDependencies);
ENTRY(node_type, hipGraphNodeGetType);
ENTRY(instantiate, hipGraphInstantiate);
ENTRY(exec_destroy, hipGraphExecDestroy);
ENTRY(exec_update, hipGraphExecUpdate);
ENTRY(graph_launch, hipGraphLaunch);
ENTRY(add_kernel, hipGraphAddKernelNode);
ENTRY(add_copy, hipGraphAddMemcpyNode1D);
ENTRY(add_fill, hipGraphAddMemsetNode);
ENTRY(add_host, hipGraphAddHostNode);
ENTRY(add_child, hipGraphAddChildGraphNode);
ENTRY(add_empty, hipGraphAddEmptyNode);
ENTRY(get_kernel, hipGraphKernelNodeGetParams);
ENTRY(set_kernel, hipGraphExecKernelNodeSetParams);
ENTRY(set_copy, hipGraphExecMemcpyNodeSetParams1D);
ENTRY(set_fill, hipGraphExecMemsetNodeSetParams);
ENTRY(set_host, hipGraphExecHostNodeSetParams);
ENTRY(set_child, hipGraphExecChildGraphNodeSetParams);

// These have templates of the same name beside them.
static_assert(IsEntry<decltype(Entries::allocate)>(
    static_cast<hipError_t (*)(void**, std::size_t)>(&hipMalloc)));
static_assert(IsEntry<decltype(Entries::host_allocate)>(
    static_cast<hipError_t (*)(void**, std::size_t, unsigned)>(&hipHostMalloc)));
// NOLINTEND(cppcoreguidelines-macro-usage, bugprone-sizeof-expression)

TEST(HipAbiTest, IsThatOfTheHeaders) {
  EXPECT_EQ(reinterpret_cast<hipStream_t>(abi::kStreamPerThread), hipStreamPerThread);
}

// The headers come with the library: it must have what Keel needs of it.
TEST(HipAbiTest, TheInstalledLibraryLoads) {
  // Headers without a library are somebody's choice; one that is there must do.
  const auto opens = [](const char* name) { return dlopen(name, RTLD_LAZY) != nullptr; };
  if (!opens("libamdhip64.so.7") && !opens("libamdhip64.so.6") && !opens("libamdhip64.so.5") &&
      !opens("libamdhip64.so")) {
    GTEST_SKIP() << "the library is not installed";
  }
  const auto api = LoadApi();
  ASSERT_TRUE(api.ok()) << api.status().ToString();
  EXPECT_EQ((*api)->driver, "hip");
  const char* name = nullptr;
  ASSERT_EQ((*api)->error_name(abi::kIllegalAddress, &name), 0);
  EXPECT_STREQ(name, "hipErrorIllegalAddress");
}

}  // namespace
}  // namespace keel::hip
