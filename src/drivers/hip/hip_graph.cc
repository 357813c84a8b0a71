// The HIP runtime's captures and graphs in VendorApi's shape.

#include <variant>

#include "drivers/hip/runtime.h"
#include "drivers/shared/update_reason.h"

namespace keel::hip {
namespace {

using vendor::NodeSpec;
using vendor::UpdateResult;
using vendor::VendorApi;

abi::Graph GraphOf(void* graph) { return static_cast<abi::Graph>(graph); }
abi::GraphNode NodeOf(void* node) { return static_cast<abi::GraphNode>(node); }
abi::GraphExec ExecOf(void* exec) { return static_cast<abi::GraphExec>(exec); }

// --- Captures ------------------------------------------------------------------------------------

Code ExchangeCaptureMode(int* mode) { return Settle(runtime.entries.exchange_capture_mode(mode)); }

Code BeginCapture(void* stream, int mode) {
  return Settle(runtime.entries.capture_begin(StreamOf(stream), mode));
}

Code EndCapture(void* stream, void** graph) {
  abi::Graph captured = nullptr;
  const Code code = Settle(runtime.entries.capture_end(StreamOf(stream), &captured));
  *graph = captured;
  return code;
}

Code CaptureInfo(void* stream, int* state, void* const** dependencies, std::size_t* count) {
  const abi::GraphNode* nodes = nullptr;
  const Code code = Settle(
      runtime.entries.capture_info(StreamOf(stream), state, nullptr, nullptr, &nodes, count));
  if (dependencies != nullptr) *dependencies = reinterpret_cast<void* const*>(nodes);
  return code;
}

// --- Graphs --------------------------------------------------------------------------------------

Code CreateGraph(void** graph, unsigned flags) {
  abi::Graph created = nullptr;
  const Code code = Settle(runtime.entries.graph_create(&created, flags));
  *graph = created;
  return code;
}

Code DestroyGraph(void* graph) { return Settle(runtime.entries.graph_destroy(GraphOf(graph))); }

Code GetNodes(void* graph, void** nodes, std::size_t* count) {
  return Settle(
      runtime.entries.graph_nodes(GraphOf(graph), reinterpret_cast<abi::GraphNode*>(nodes), count));
}

Code GetDependencies(void* node, void** dependencies, std::size_t* count) {
  return Settle(runtime.entries.node_dependencies(
      NodeOf(node), reinterpret_cast<abi::GraphNode*>(dependencies), count));
}

Code Instantiate(void** exec, void* graph, unsigned long long) {
  abi::GraphExec created = nullptr;
  const Code code =
      Settle(runtime.entries.instantiate(&created, GraphOf(graph), nullptr, nullptr, 0));
  *exec = created;
  return code;
}

Code DestroyExec(void* exec) { return Settle(runtime.entries.exec_destroy(ExecOf(exec))); }

Code LaunchGraph(void* exec, void* stream) {
  return Settle(runtime.entries.graph_launch(ExecOf(exec), StreamOf(stream)));
}

Code UpdateExec(void* exec, void* graph, UpdateResult* result) {
  abi::GraphNode node = nullptr;
  int why = 0;
  const Code code = Settle(runtime.entries.exec_update(ExecOf(exec), GraphOf(graph), &node, &why));
  result->updated = code == kSuccess;
  if (code == abi::kGraphExecUpdateFailure) {
    result->reason = vendor::UpdateReason(why);
    result->node = node;
  }
  return code;
}

// --- Nodes ---------------------------------------------------------------------------------------

abi::KernelNodeParams KernelParams(const hal::KernelLaunch& launch, const NodeSpec& spec) {
  const auto& grid = launch.dims.grid;
  const auto& block = launch.dims.block;
  abi::KernelNodeParams params;
  params.function = PointerOf(launch.kernel.value);
  params.grid = {grid[0], grid[1], grid[2]};
  params.block = {block[0], block[1], block[2]};
  params.shared_memory = static_cast<unsigned>(launch.dims.shared_memory.count());
  params.arguments = spec.arguments;
  return params;
}

abi::MemsetParams FillParams(const hal::Fill& fill) {
  abi::MemsetParams params;
  params.destination = PointerOf(fill.destination.value());
  params.value = fill.value;
  params.element_size = fill.width;
  params.width = fill.count;
  return params;
}

int CopyKind(const NodeSpec& spec) {
  if (spec.host_source) {
    return spec.host_destination ? abi::kCopyHostToHost : abi::kCopyHostToDevice;
  }
  return spec.host_destination ? abi::kCopyDeviceToHost : abi::kCopyDeviceToDevice;
}

abi::MemOp ValueOp(const hal::Command& command) {
  abi::MemOp op = {};
  if (const auto* write = std::get_if<hal::ValueWrite>(&command)) {
    op.value = {abi::kMemOpWriteValue64, PointerOf(write->destination.value()), write->value, 0,
                nullptr};
  } else {
    const auto& wait = std::get<hal::ValueWait>(command);
    op.value = {abi::kMemOpWaitValue64, PointerOf(wait.source.value()), wait.value,
                WaitFlags(wait.condition), nullptr};
  }
  return op;
}

// The context stays null: the device is the current one.
abi::BatchMemOpNodeParams ValueParams(abi::MemOp* op) {
  abi::BatchMemOpNodeParams params;
  params.count = 1;
  params.operations = op;
  return params;
}

Code AddNode(void** node, void* graph_handle, void* const* dependency_handles, std::size_t count,
             const NodeSpec& spec) {
  const Entries& e = runtime.entries;
  abi::Graph graph = GraphOf(graph_handle);
  const auto* before = reinterpret_cast<const abi::GraphNode*>(dependency_handles);
  abi::GraphNode added = nullptr;
  Code code = kSuccess;
  if (const auto* launch = std::get_if<hal::KernelLaunch>(spec.command)) {
    const abi::KernelNodeParams params = KernelParams(*launch, spec);
    code = e.add_kernel(&added, graph, before, count, &params);
  } else if (const auto* copy = std::get_if<hal::Copy>(spec.command)) {
    code = e.add_copy(&added, graph, before, count, PointerOf(copy->destination.address),
                      PointerOf(copy->source.address), copy->size.count(), CopyKind(spec));
  } else if (const auto* fill = std::get_if<hal::Fill>(spec.command)) {
    const abi::MemsetParams params = FillParams(*fill);
    code = e.add_fill(&added, graph, before, count, &params);
  } else if (std::holds_alternative<hal::HostCall>(*spec.command)) {
    const abi::HostNodeParams params{spec.host_call.function, spec.host_call.data};
    code = e.add_host(&added, graph, before, count, &params);
  } else if (const auto* child = std::get_if<hal::ChildGraph>(spec.command)) {
    code = e.add_child(&added, graph, before, count, GraphOf(PointerOf(child->graph.value)));
  } else if (std::holds_alternative<hal::EmptyNode>(*spec.command)) {
    code = e.add_empty(&added, graph, before, count);
  } else if (e.add_mem_op == nullptr) {
    return abi::kNotSupported;
  } else {
    abi::MemOp op = ValueOp(*spec.command);
    const abi::BatchMemOpNodeParams params = ValueParams(&op);
    code = e.add_mem_op(&added, graph, before, count, &params);
  }
  *node = added;
  return Settle(code);
}

Code SetNode(void* exec_handle, void* node_handle, const NodeSpec& spec) {
  const Entries& e = runtime.entries;
  abi::GraphExec exec = ExecOf(exec_handle);
  abi::GraphNode node = NodeOf(node_handle);
  if (const auto* launch = std::get_if<hal::KernelLaunch>(spec.command)) {
    const abi::KernelNodeParams params = KernelParams(*launch, spec);
    return Settle(e.set_kernel(exec, node, &params));
  }
  if (const auto* copy = std::get_if<hal::Copy>(spec.command)) {
    return Settle(e.set_copy(exec, node, PointerOf(copy->destination.address),
                             PointerOf(copy->source.address), copy->size.count(), CopyKind(spec)));
  }
  if (const auto* fill = std::get_if<hal::Fill>(spec.command)) {
    const abi::MemsetParams params = FillParams(*fill);
    return Settle(e.set_fill(exec, node, &params));
  }
  if (std::holds_alternative<hal::HostCall>(*spec.command)) {
    const abi::HostNodeParams params{spec.host_call.function, spec.host_call.data};
    return Settle(e.set_host(exec, node, &params));
  }
  if (const auto* child = std::get_if<hal::ChildGraph>(spec.command)) {
    return Settle(e.set_child(exec, node, GraphOf(PointerOf(child->graph.value))));
  }
  if (std::holds_alternative<hal::EmptyNode>(*spec.command)) return kSuccess;
  if (e.set_mem_op == nullptr) return abi::kNotSupported;
  abi::MemOp op = ValueOp(*spec.command);
  const abi::BatchMemOpNodeParams params = ValueParams(&op);
  return Settle(e.set_mem_op(exec, node, &params));
}

template <class Kind>
constexpr std::size_t IndexOf() {
  return hal::Command(Kind{}).index();
}

Code NodeKind(void* node, std::size_t* index) {
  int type = 0;
  if (const Code code = Settle(runtime.entries.node_type(NodeOf(node), &type)); code != kSuccess) {
    return code;
  }
  if (runtime.version < abi::kVersion5_3) {
    type = type == abi::kNodeMemcpy1DBefore5_3 ? static_cast<int>(abi::kNodeMemcpy)
                                               : type - abi::kNodeFirstBefore5_3;
  }
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
      if (runtime.entries.get_mem_op != nullptr) {
        const Code code = Settle(runtime.entries.get_mem_op(NodeOf(node), &params));
        if (code != kSuccess) return code;
      }
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
  const Code code = runtime.entries.get_kernel == nullptr
                        ? kSuccess
                        : Settle(runtime.entries.get_kernel(NodeOf(node), &params));
  *kernel = params.function;
  return code;
}

}  // namespace

bool HasGraphs() {
  const Entries& e = runtime.entries;
  return e.exchange_capture_mode != nullptr && e.capture_begin != nullptr &&
         e.capture_end != nullptr && e.capture_info != nullptr && e.graph_create != nullptr &&
         e.graph_destroy != nullptr && e.graph_nodes != nullptr && e.node_dependencies != nullptr &&
         e.node_type != nullptr && e.instantiate != nullptr && e.exec_destroy != nullptr &&
         e.graph_launch != nullptr && e.add_kernel != nullptr && e.add_copy != nullptr &&
         e.add_fill != nullptr && e.add_host != nullptr && e.add_child != nullptr &&
         e.add_empty != nullptr;
}

bool HasNodeUpdate() {
  const Entries& e = runtime.entries;
  return e.set_kernel != nullptr && e.set_copy != nullptr && e.set_fill != nullptr &&
         e.set_host != nullptr && e.set_child != nullptr;
}

void FillGraphs(VendorApi& api) {
  api.exchange_capture_mode =
      runtime.entries.exchange_capture_mode == nullptr ? nullptr : ExchangeCaptureMode;
  api.capture_begin = BeginCapture;
  api.capture_end = EndCapture;
  api.capture_info = CaptureInfo;
  api.graph_create = CreateGraph;
  api.graph_destroy = DestroyGraph;
  api.graph_nodes = GetNodes;
  api.node_dependencies = GetDependencies;
  api.node_kind = NodeKind;
  api.node_kernel = NodeKernel;
  api.add_node = AddNode;
  api.set_node = SetNode;
  api.instantiate = Instantiate;
  api.exec_destroy = DestroyExec;
  api.exec_update = UpdateExec;
  api.graph_launch = LaunchGraph;
}

}  // namespace keel::hip
