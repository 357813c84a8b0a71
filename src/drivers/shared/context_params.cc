#include "drivers/shared/context_params.h"

#include <variant>

namespace keel::vendor {

Verdict JudgeContextResult(Code code) {
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

abi::MemOp ValueOp(const hal::Command& command) {
  abi::MemOp op = {};
  if (const auto* write = std::get_if<hal::ValueWrite>(&command)) {
    op.value = {abi::kMemOpWriteValue64, write->destination.value(), write->value, 0, 0};
  } else {
    const auto& wait = std::get<hal::ValueWait>(command);
    op.value = {abi::kMemOpWaitValue64, wait.source.value(), wait.value, WaitFlags(wait.condition),
                0};
  }
  return op;
}

abi::BatchMemOpNodeParams ValueParams(abi::MemOp* op, void* context) {
  abi::BatchMemOpNodeParams params;
  params.context = static_cast<abi::Context>(context);
  params.count = 1;
  params.operations = op;
  return params;
}

namespace {

template <class Kind>
constexpr std::size_t IndexOf() {
  return hal::Command(Kind{}).index();
}

}  // namespace

std::size_t CommandIndex(int node_type, const abi::BatchMemOpNodeParams& operations) {
  switch (node_type) {
    case abi::kNodeKernel:
      return IndexOf<hal::KernelLaunch>();
    case abi::kNodeMemcpy:
      return IndexOf<hal::Copy>();
    case abi::kNodeMemset:
      return IndexOf<hal::Fill>();
    case abi::kNodeHost:
      return IndexOf<hal::HostCall>();
    case abi::kNodeGraph:
      return IndexOf<hal::ChildGraph>();
    case abi::kNodeBatchMemOp: {
      const bool write = operations.count > 0 && operations.operations != nullptr &&
                         operations.operations[0].value.operation == abi::kMemOpWriteValue64;
      return write ? IndexOf<hal::ValueWrite>() : IndexOf<hal::ValueWait>();
    }
    default:
      return IndexOf<hal::EmptyNode>();
  }
}

}  // namespace keel::vendor
