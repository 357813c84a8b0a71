#include "drivers/standin/context_translation.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "keel/base/mutex.h"

namespace keel::standin {
namespace {

// Codes that Keel has no use for.
constexpr abi::Result kSuccess = 0;
constexpr abi::Result kPeerAccessUnsupported = 217;
constexpr abi::Result kUnknown = 999;

struct NamedCode {
  abi::Result code;
  const char* name;
  const char* text;
};
constexpr NamedCode kCodes[] = {
    {kSuccess, "SUCCESS", "no error"},
    {abi::kInvalidValue, "INVALID_VALUE", "invalid argument"},
    {abi::kOutOfMemory, "OUT_OF_MEMORY", "out of memory"},
    {abi::kNotInitialized, "NOT_INITIALIZED", "not initialized"},
    {abi::kNoDevice, "NO_DEVICE", "no device"},
    {abi::kInvalidDevice, "INVALID_DEVICE", "invalid device ordinal"},
    {abi::kInvalidImage, "INVALID_IMAGE", "the image is invalid"},
    {abi::kInvalidContext, "INVALID_CONTEXT", "invalid device context"},
    {kPeerAccessUnsupported, "PEER_ACCESS_UNSUPPORTED", "no access to the peer"},
    {abi::kInvalidPtx, "INVALID_PTX", "the text could not be compiled"},
    {abi::kInvalidHandle, "INVALID_HANDLE", "invalid resource handle"},
    {abi::kIllegalState, "ILLEGAL_STATE", "not in a state to do that"},
    {abi::kNotFound, "NOT_FOUND", "named symbol not found"},
    {abi::kNotReady, "NOT_READY", "not ready yet"},
    {abi::kIllegalAddress, "ILLEGAL_ADDRESS", "an illegal address was used"},
    {abi::kPeerAccessAlreadyEnabled, "PEER_ACCESS_ALREADY_ENABLED",
     "access to the peer is enabled already"},
    {abi::kPeerAccessNotEnabled, "PEER_ACCESS_NOT_ENABLED", "access to the peer is not enabled"},
    {abi::kContextIsDestroyed, "CONTEXT_IS_DESTROYED", "the context is gone"},
    {abi::kHostMemoryAlreadyRegistered, "HOST_MEMORY_ALREADY_REGISTERED",
     "the host memory is registered already"},
    {abi::kHostMemoryNotRegistered, "HOST_MEMORY_NOT_REGISTERED",
     "the host memory is not registered"},
    {abi::kLaunchFailed, "LAUNCH_FAILED", "a launch failed"},
    {abi::kNotPermitted, "NOT_PERMITTED", "not permitted"},
    {abi::kNotSupported, "NOT_SUPPORTED", "not supported"},
    {abi::kSystemNotReady, "SYSTEM_NOT_READY", "the system is not ready"},
    {abi::kStreamCaptureUnsupported, "STREAM_CAPTURE_UNSUPPORTED",
     "not permitted while a stream captures"},
    {abi::kStreamCaptureInvalidated, "STREAM_CAPTURE_INVALIDATED",
     "the capture was invalidated by an earlier error"},
    {abi::kStreamCaptureMerge, "STREAM_CAPTURE_MERGE", "two captures would become one"},
    {abi::kStreamCaptureUnmatched, "STREAM_CAPTURE_UNMATCHED",
     "the capture did not begin on this stream"},
    {abi::kStreamCaptureUnjoined, "STREAM_CAPTURE_UNJOINED", "a forked stream was not joined"},
    {abi::kStreamCaptureIsolation, "STREAM_CAPTURE_ISOLATION",
     "the capture would depend on work outside"},
    {abi::kStreamCaptureImplicit, "STREAM_CAPTURE_IMPLICIT",
     "the legacy stream would depend on a capture"},
    {abi::kCapturedEvent, "CAPTURED_EVENT", "the event was last recorded in a capture"},
    {abi::kStreamCaptureWrongThread, "STREAM_CAPTURE_WRONG_THREAD",
     "another thread began the capture"},
    {abi::kGraphExecUpdateFailure, "GRAPH_EXEC_UPDATE_FAILURE", "the graph could not be updated"},
    {kUnknown, "UNKNOWN", "unknown error"},
};

const NamedCode* FindCode(abi::Result code) {
  const auto* found = std::find_if(std::begin(kCodes), std::end(kCodes),
                                   [code](const NamedCode& one) { return one.code == code; });
  return found == std::end(kCodes) ? nullptr : found;
}

// One side of a copy node, by its type; nullopt for what has no address.
std::optional<Place> SideOf(int type, const void* host, abi::Address device) {
  switch (type) {
    case abi::kMemoryTypeHost:
      return Host(host);
    case abi::kMemoryTypeDevice:
      return OnDevice(device);
    case abi::kMemoryTypeUnified:
      return Place{Place::Side::kAny, device, nullptr};
    default:
      return std::nullopt;
  }
}

}  // namespace

abi::Result CodeOf(Cause cause) {
  switch (cause) {
    case Cause::kOk:
      return kSuccess;
    case Cause::kInvalidValue:
      return abi::kInvalidValue;
    case Cause::kOutOfMemory:
      return abi::kOutOfMemory;
    case Cause::kNotInitialized:
      return abi::kNotInitialized;
    case Cause::kNoDevice:
      return abi::kNoDevice;
    case Cause::kInvalidDevice:
      return abi::kInvalidDevice;
    case Cause::kInvalidImage:
      return abi::kInvalidImage;
    case Cause::kInvalidContext:
      return abi::kInvalidContext;
    case Cause::kContextDestroyed:
      return abi::kContextIsDestroyed;
    case Cause::kInvalidHandle:
      return abi::kInvalidHandle;
    case Cause::kIllegalState:
      return abi::kIllegalState;
    case Cause::kNotFound:
      return abi::kNotFound;
    case Cause::kNotReady:
      return abi::kNotReady;
    case Cause::kLost:
      return abi::kIllegalAddress;
    case Cause::kPeerAlreadyEnabled:
      return abi::kPeerAccessAlreadyEnabled;
    case Cause::kPeerNotEnabled:
      return abi::kPeerAccessNotEnabled;
    case Cause::kPeerUnsupported:
      return kPeerAccessUnsupported;
    case Cause::kHostAlreadyRegistered:
      return abi::kHostMemoryAlreadyRegistered;
    case Cause::kHostNotRegistered:
      return abi::kHostMemoryNotRegistered;
    case Cause::kNotPermitted:
      return abi::kNotPermitted;
    case Cause::kNotSupported:
      return abi::kNotSupported;
    case Cause::kCaptureUnsupported:
      return abi::kStreamCaptureUnsupported;
    case Cause::kCaptureInvalidated:
      return abi::kStreamCaptureInvalidated;
    case Cause::kCaptureMerge:
      return abi::kStreamCaptureMerge;
    case Cause::kCaptureUnmatched:
      return abi::kStreamCaptureUnmatched;
    case Cause::kCaptureUnjoined:
      return abi::kStreamCaptureUnjoined;
    case Cause::kCaptureIsolation:
      return abi::kStreamCaptureIsolation;
    case Cause::kCaptureImplicit:
      return abi::kStreamCaptureImplicit;
    case Cause::kCapturedEvent:
      return abi::kCapturedEvent;
    case Cause::kCaptureWrongThread:
      return abi::kStreamCaptureWrongThread;
    case Cause::kUpdateRefused:
      return abi::kGraphExecUpdateFailure;
    case Cause::kUnknown:
      return kUnknown;
  }
  return kUnknown;
}

const char* CodeName(abi::Result code, std::string_view vendor) {
  static Mutex mutex;
  static auto* const names = new std::map<abi::Result, std::string>();
  const NamedCode* found = FindCode(code);
  if (found == nullptr) return nullptr;
  MutexLock lock(mutex);
  std::string& name = (*names)[code];
  if (name.empty()) {
    name = std::string(vendor) + (code == kSuccess ? "_" : "_ERROR_") + found->name;
  }
  return name.c_str();
}

const char* CodeText(abi::Result code) {
  const NamedCode* found = FindCode(code);
  return found == nullptr ? nullptr : found->text;
}

hal::LaunchDims Dims(unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                     unsigned block_y, unsigned block_z, unsigned shared) {
  return {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, Bytes(shared)};
}

std::optional<hal::WaitCondition> ConditionOf(unsigned flags) {
  switch (flags) {
    case abi::kWaitGeq:
      return hal::WaitCondition::kGreaterOrEqual;
    case abi::kWaitEq:
      return hal::WaitCondition::kEqual;
    case abi::kWaitAnd:
      return hal::WaitCondition::kAnd;
    default:
      return std::nullopt;
  }
}

Cause WorkOf(const abi::KernelNodeParams& params, Work* work) {
  if (params.extra != nullptr) return Cause::kNotSupported;
  *work = Launch{params.function,
                 Dims(params.grid_x, params.grid_y, params.grid_z, params.block_x, params.block_y,
                      params.block_z, params.shared_memory),
                 params.arguments};
  return Cause::kOk;
}
Cause WorkOf(const abi::Memcpy3D& params, Work* work) {
  const bool plain = params.height == 1 && params.depth == 1 && params.source_x == 0 &&
                     params.source_y == 0 && params.source_z == 0 && params.destination_x == 0 &&
                     params.destination_y == 0 && params.destination_z == 0;
  if (!plain) return Cause::kNotSupported;
  const auto to =
      SideOf(params.destination_type, params.destination_host, params.destination_device);
  const auto from = SideOf(params.source_type, params.source_host, params.source_device);
  if (!to || !from) return Cause::kInvalidValue;
  *work = Transfer{*to, *from, params.width};
  return Cause::kOk;
}
Cause WorkOf(const abi::MemsetNodeParams& params, Work* work) {
  if (params.height != 1) return Cause::kNotSupported;
  *work =
      hal::Fill{DeviceAddress(params.destination), params.value, params.element_size, params.width};
  return Cause::kOk;
}
Cause WorkOf(const abi::HostNodeParams& params, Work* work) {
  *work = hal::HostCall{params.function, params.data};
  return Cause::kOk;
}

Cause WorkOf(const abi::BatchMemOpNodeParams& params, Work* work) {
  if (params.operations == nullptr || params.count == 0) return Cause::kInvalidValue;
  if (params.count > 1) return Cause::kNotSupported;
  const auto& operation = params.operations->value;
  if (operation.operation == abi::kMemOpWriteValue64) {
    *work = hal::ValueWrite{DeviceAddress(operation.address), operation.value};
    return operation.flags == 0 ? Cause::kOk : Cause::kNotSupported;
  }
  const auto condition = ConditionOf(operation.flags);
  if (operation.operation != abi::kMemOpWaitValue64 || !condition) return Cause::kNotSupported;
  *work = hal::ValueWait{DeviceAddress(operation.address), operation.value, *condition};
  return Cause::kOk;
}

Cause ParamsOf(void* node, abi::KernelNodeParams* params) {
  Work work;
  if (const Cause cause = GetNodeWork(node, &work); cause != Cause::kOk) return cause;
  const auto* launch = std::get_if<Launch>(&work);
  if (launch == nullptr) return Cause::kInvalidValue;
  *params = {};
  params->function = static_cast<abi::Function>(launch->kernel);
  params->grid_x = launch->dims.grid[0];
  params->grid_y = launch->dims.grid[1];
  params->grid_z = launch->dims.grid[2];
  params->block_x = launch->dims.block[0];
  params->block_y = launch->dims.block[1];
  params->block_z = launch->dims.block[2];
  params->shared_memory = static_cast<unsigned>(launch->dims.shared_memory.count());
  return Cause::kOk;
}

abi::MemOp OperationOf(const Work& work) {
  abi::MemOp operation = {};
  if (const auto* write = std::get_if<hal::ValueWrite>(&work)) {
    operation.value = {abi::kMemOpWriteValue64, write->destination.value(), write->value, 0, 0};
  }
  if (const auto* wait = std::get_if<hal::ValueWait>(&work)) {
    operation.value = {abi::kMemOpWaitValue64, wait->source.value(), wait->value,
                       static_cast<unsigned>(wait->condition), 0};
  }
  return operation;
}

// The protocol of lists: without a place for them, how many; else as many as fit.
Cause List(const std::vector<void*>& have, void** list, std::size_t* count) {
  if (list == nullptr) {
    *count = have.size();
    return Cause::kOk;
  }
  const std::size_t fit = std::min(*count, have.size());
  std::copy_n(have.begin(), fit, list);
  std::fill(list + fit, list + *count, nullptr);
  *count = fit;
  return Cause::kOk;
}

Cause Update(void* exec, void* graph, abi::UpdateResultInfo* info) {
  enum : int { kUpdated = 0, kFailed = 1, kTopologyChanged = 2, kKindChanged = 3 };
  UpdateOutcome outcome;
  const Cause cause = UpdateExec(exec, graph, &outcome);
  info->result = cause == Cause::kOk ? kUpdated : kFailed;
  if (outcome.why == UpdateOutcome::Why::kTopologyChanged) {
    info->result = kTopologyChanged;
  } else if (outcome.why == UpdateOutcome::Why::kKindChanged) {
    info->result = kKindChanged;
  }
  info->error_node = static_cast<abi::GraphNode>(outcome.node);
  return cause;
}

}  // namespace keel::standin
