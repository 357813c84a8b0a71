// VendorDevice: capture and graphs.

#include <fmt/format.h>

#include <thread>

#include "drivers/shared/current_scope.h"
#include "drivers/shared/short_list.h"
#include "drivers/shared/vendor_device.h"
#include "hal/check_command.h"

namespace keel::vendor {

using hal::Primitive;

Result<bool> VendorDevice::IsCapturing(hal::StreamHandle stream) {
  // It never captures, and asking is itself forbidden while another stream does.
  if (stream.value == api_.legacy_stream) return false;
  CurrentScope current(api_, context_, NeedsCurrent(stream));
  hal::CaptureState state{};
  KEEL_TRY(Check(Primitive::kGetCaptureState, LookAtCapture(Pointer(stream.value), &state)));
  return state != hal::CaptureState::kNone;
}

Code VendorDevice::LookAtCapture(void* stream, hal::CaptureState* state) {
  *state = hal::CaptureState::kNone;
  if (!capabilities_.graphs) return kSuccess;
  int number = 0;
  const Code code = api_.capture_info(stream, &number, nullptr, nullptr);
  *state = static_cast<hal::CaptureState>(number);
  return code;
}

Status VendorDevice::BeginCapture(hal::StreamHandle stream, hal::CaptureMode mode) {
  KEEL_TRY(Enter(Primitive::kBeginCapture, capabilities_.graphs));
  KEEL_TRY(CheckStream(stream));
  if (stream.value == api_.legacy_stream) {
    return InvalidArgument("the legacy default stream cannot capture; use a stream of your own");
  }
  CurrentScope current(api_, context_, NeedsCurrent(stream));
  KEEL_TRY(Check(Primitive::kBeginCapture,
                 api_.capture_begin(Pointer(stream.value), static_cast<int>(mode))));
  MutexLock lock(streams_mutex_);
  captures_[stream.value] = {std::this_thread::get_id(), mode};
  return OkStatus();
}

Result<hal::GraphHandle> VendorDevice::EndCapture(hal::StreamHandle stream) {
  KEEL_TRY(Enter(Primitive::kEndCapture, capabilities_.graphs));
  KEEL_TRY(CheckStream(stream));
  KEEL_ASSIGN(const bool capturing, IsCapturing(stream));
  if (!capturing) return FailedPrecondition("the stream captures nothing");
  Begun record;
  {
    // The library would break or end the capture for these; here nothing changes.
    MutexLock lock(streams_mutex_);
    const auto begun = captures_.find(stream.value);
    if (begun == captures_.end()) {
      return FailedPrecondition(
          "the capture was not begun on this stream of this device; end it where it began");
    }
    if (begun->second.mode != hal::CaptureMode::kRelaxed &&
        begun->second.thread != std::this_thread::get_id()) {
      return FailedPrecondition(
          "the capture was begun by another thread; only a relaxed one may be ended here");
    }
    record = begun->second;
    captures_.erase(begun);
  }
  CurrentScope current(api_, context_, NeedsCurrent(stream));
  void* graph = nullptr;
  Status status = Check(Primitive::kEndCapture, api_.capture_end(Pointer(stream.value), &graph));
  if (status.ok()) return hal::GraphHandle{Value(graph)};
  // A capture that was broken is over now. One that the library merely failed to end is not.
  hal::CaptureState state{};
  if (LookAtCapture(Pointer(stream.value), &state) == kSuccess &&
      state != hal::CaptureState::kNone) {
    MutexLock lock(streams_mutex_);
    captures_.emplace(stream.value, record);
  }
  return status;
}

Result<hal::CaptureState> VendorDevice::GetCaptureState(hal::StreamHandle stream) {
  KEEL_TRY(Enter(Primitive::kGetCaptureState, capabilities_.graphs));
  KEEL_TRY(CheckStream(stream));
  // It never captures, and asking is itself forbidden while another stream does.
  if (stream.value == api_.legacy_stream) return hal::CaptureState::kNone;
  CurrentScope current(api_, context_, NeedsCurrent(stream));
  hal::CaptureState state{};
  KEEL_TRY(Check(Primitive::kGetCaptureState, LookAtCapture(Pointer(stream.value), &state)));
  return state;
}

Result<std::vector<hal::NodeHandle>> VendorDevice::GetCaptureFrontier(hal::StreamHandle stream) {
  KEEL_TRY(Enter(Primitive::kGetCaptureFrontier, capabilities_.graphs));
  KEEL_TRY(CheckStream(stream));
  CurrentScope current(api_, context_, NeedsCurrent(stream));
  int state = 0;
  void* const* nodes = nullptr;
  std::size_t count = 0;
  KEEL_TRY(Check(Primitive::kGetCaptureFrontier,
                 api_.capture_info(Pointer(stream.value), &state, &nodes, &count)));
  if (static_cast<hal::CaptureState>(state) != hal::CaptureState::kActive) {
    return FailedPrecondition("the stream captures nothing, or its capture was invalidated");
  }
  std::vector<hal::NodeHandle> frontier(count);
  for (std::size_t i = 0; i < count; ++i) frontier[i] = {Value(nodes[i])};
  return frontier;
}

Result<hal::GraphHandle> VendorDevice::CreateGraph() {
  KEEL_TRY(Enter(Primitive::kCreateGraph, capabilities_.graphs));
  void* graph = nullptr;
  KEEL_TRY(Check(Primitive::kCreateGraph, api_.graph_create(&graph, 0)));
  return hal::GraphHandle{Value(graph)};
}

Status VendorDevice::DestroyGraph(hal::GraphHandle graph) {
  KEEL_TRY(Enter(Primitive::kDestroyGraph, capabilities_.graphs));
  if (!graph) return InvalidArgument("a null handle is not a graph");
  return Check(Primitive::kDestroyGraph, api_.graph_destroy(Pointer(graph.value)));
}

namespace {

std::span<const hal::KernelArg> ArgumentsOf(const hal::Command& command) {
  const auto* launch = std::get_if<hal::KernelLaunch>(&command);
  return launch == nullptr ? std::span<const hal::KernelArg>() : launch->args;
}

void* AddressOfValue(const hal::KernelArg& argument) { return const_cast<void*>(argument.data()); }

}  // namespace

Status VendorDevice::Resolve(const hal::Command& command, NodeSpec& spec) {
  spec.command = &command;
  spec.context = context_;
  if (const auto* launch = std::get_if<hal::KernelLaunch>(&command)) {
    if (!launch->kernel) return InvalidArgument("a null handle is not a kernel");
    return hal::CheckArguments(launch->args);
  }
  if (const auto* fill = std::get_if<hal::Fill>(&command)) KEEL_TRY(hal::CheckFill(*fill));
  if (const auto* write = std::get_if<hal::ValueWrite>(&command)) {
    KEEL_TRY(hal::CheckValueAddress(write->destination));
  }
  if (const auto* wait = std::get_if<hal::ValueWait>(&command)) {
    KEEL_TRY(hal::CheckValueAddress(wait->source));
  }
  if (const auto* copy = std::get_if<hal::Copy>(&command)) {
    KEEL_TRY(hal::CheckCopy(*copy, /*same_space=*/true));
    KEEL_TRY(CheckPinned(*copy));
    spec.host_destination = copy->destination.on_host();
    spec.host_source = copy->source.on_host();
    for (const hal::Location& side : {copy->destination, copy->source}) {
      if (!side.on_host()) KEEL_TRY(open_->Find(side.device).status());
    }
  }
  if (const auto* call = std::get_if<hal::HostCall>(&command)) {
    if (call->function == nullptr) return InvalidArgument("a host call without a function");
    spec.host_call = {HostCalls::Run, open_->host_calls().Keep(*call)};
  }
  if (const auto* child = std::get_if<hal::ChildGraph>(&command);
      child != nullptr && !child->graph) {
    return InvalidArgument("a null handle is not a graph");
  }
  return OkStatus();
}

Result<hal::NodeHandle> VendorDevice::AddNode(hal::GraphHandle graph,
                                              std::span<const hal::NodeHandle> dependencies,
                                              const hal::Command& command) {
  KEEL_TRY(Enter(Primitive::kAddNode, capabilities_.graphs));
  if (!graph) return InvalidArgument("a null handle is not a graph");
  NodeSpec spec;
  KEEL_TRY(Resolve(command, spec));
  PointerList arguments(ArgumentsOf(command), AddressOfValue);
  spec.arguments = arguments.data();
  PointerList before(dependencies, [](hal::NodeHandle node) { return Pointer(node.value); });
  CurrentScope current(api_, context_);
  void* node = nullptr;
  KEEL_TRY(Check(Primitive::kAddNode, api_.add_node(&node, Pointer(graph.value), before.data(),
                                                    dependencies.size(), spec)));
  return hal::NodeHandle{Value(node)};
}

Result<std::vector<hal::NodeInfo>> VendorDevice::GetNodes(hal::GraphHandle graph) {
  KEEL_TRY(Enter(Primitive::kGetNodes, capabilities_.graphs));
  if (!graph) return InvalidArgument("a null handle is not a graph");
  std::size_t count = 0;
  KEEL_TRY(Check(Primitive::kGetNodes, api_.graph_nodes(Pointer(graph.value), nullptr, &count)));
  std::vector<void*> nodes(count);
  if (count > 0) {
    KEEL_TRY(
        Check(Primitive::kGetNodes, api_.graph_nodes(Pointer(graph.value), nodes.data(), &count)));
  }
  std::vector<hal::NodeInfo> list(nodes.size());
  std::vector<void*> before(8);  // most nodes depend on fewer
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    list[i].node = {Value(nodes[i])};
    KEEL_TRY(Check(Primitive::kGetNodes, api_.node_kind(nodes[i], &list[i].kind)));
    std::size_t found = before.size();
    KEEL_TRY(Check(Primitive::kGetNodes, api_.node_dependencies(nodes[i], before.data(), &found)));
    if (found == before.size()) {  // as many as there was room for: perhaps more
      KEEL_TRY(Check(Primitive::kGetNodes, api_.node_dependencies(nodes[i], nullptr, &found)));
      before.resize(found + 1);
      KEEL_TRY(
          Check(Primitive::kGetNodes, api_.node_dependencies(nodes[i], before.data(), &found)));
    }
    list[i].dependencies.reserve(found);
    for (std::size_t k = 0; k < found; ++k) {
      list[i].dependencies.push_back({Value(before[k])});
    }
  }
  return list;
}

Result<hal::ExecHandle> VendorDevice::Instantiate(hal::GraphHandle graph) {
  KEEL_TRY(Enter(Primitive::kInstantiate, capabilities_.graphs));
  if (!graph) return InvalidArgument("a null handle is not a graph");
  CurrentScope current(api_, context_);
  CaptureModeScope mode(api_);
  void* exec = nullptr;
  KEEL_TRY(Check(Primitive::kInstantiate, api_.instantiate(&exec, Pointer(graph.value), 0)));
  if (api_.upload != nullptr) {
    if (const Code code = Upload(exec); code != kSuccess) {
      api_.exec_destroy(exec);
      return Check(Primitive::kInstantiate, code);
    }
  }
  return hal::ExecHandle{Value(exec)};
}

Code VendorDevice::Upload(void* exec) {
  void* stream = nullptr;
  {
    MutexLock lock(streams_mutex_);
    if (upload_stream_ == nullptr) {
      const Code code = api_.stream_create(&upload_stream_, least_priority_);
      if (code != kSuccess) {
        upload_stream_ = nullptr;
        return code;
      }
    }
    stream = upload_stream_;
  }
  return api_.upload(exec, stream);
}

Status VendorDevice::DestroyExec(hal::ExecHandle exec) {
  KEEL_TRY(Enter(Primitive::kDestroyExec, capabilities_.graphs));
  if (!exec) return InvalidArgument("a null handle is not an instantiated graph");
  CaptureModeScope mode(api_);
  return Check(Primitive::kDestroyExec, api_.exec_destroy(Pointer(exec.value)));
}

Result<hal::UpdateReport> VendorDevice::UpdateExec(hal::ExecHandle exec, hal::GraphHandle graph) {
  KEEL_TRY(Enter(Primitive::kUpdateExec, capabilities_.graph_update));
  if (!exec || !graph) return InvalidArgument("a null handle is not a graph");
  CurrentScope current(api_, context_);
  UpdateResult result;
  const Code code = api_.exec_update(Pointer(exec.value), Pointer(graph.value), &result);
  if (code != api_.update_refused) KEEL_TRY(Check(Primitive::kUpdateExec, code));
  hal::UpdateReport report{result.updated, std::move(result.reason), std::nullopt};
  if (result.node != nullptr) report.node = hal::NodeHandle{Value(result.node)};
  return report;
}

Status VendorDevice::SetNodeParams(hal::ExecHandle exec, hal::NodeHandle node,
                                   const hal::Command& command) {
  KEEL_TRY(Enter(Primitive::kSetNodeParams, capabilities_.node_update));
  if (!exec || !node)
    return InvalidArgument("a null handle is not a node of an instantiated graph");
  const auto* launch = std::get_if<hal::KernelLaunch>(&command);
  const bool kernel_first = launch != nullptr && api_.kernels_tell_kind;
  void* kernel = nullptr;
  Code code = kernel_first ? api_.node_kernel(Pointer(node.value), &kernel) : kSuccess;
  if (kernel == nullptr) {  // not known to be a kernel node
    std::size_t kind = 0;
    KEEL_TRY(Check(Primitive::kSetNodeParams, api_.node_kind(Pointer(node.value), &kind)));
    if (kind != command.index()) {
      return InvalidArgument("the new parameters are those of another kind of node");
    }
    if (launch != nullptr && !kernel_first) code = api_.node_kernel(Pointer(node.value), &kernel);
    KEEL_TRY(Check(Primitive::kSetNodeParams, code));
  }
  if (kernel != nullptr && kernel != Pointer(launch->kernel.value)) {
    return InvalidArgument("the node runs another kernel, which parameters cannot change");
  }
  NodeSpec spec;
  KEEL_TRY(Resolve(command, spec));
  PointerList arguments(ArgumentsOf(command), AddressOfValue);
  spec.arguments = arguments.data();
  CurrentScope current(api_, context_);
  return Check(Primitive::kSetNodeParams,
               api_.set_node(Pointer(exec.value), Pointer(node.value), spec));
}

Status VendorDevice::LaunchGraph(hal::ExecHandle exec, hal::StreamHandle stream) {
  KEEL_TRY(Enter(Primitive::kLaunchGraph, capabilities_.graphs));
  KEEL_TRY(CheckStream(stream));
  if (!exec) return InvalidArgument("a null handle is not an instantiated graph");
  CurrentScope current(api_, context_, NeedsCurrent(stream));
  return Check(Primitive::kLaunchGraph,
               api_.graph_launch(Pointer(exec.value), Pointer(stream.value)));
}

}  // namespace keel::vendor
