// Captures and graphs.

#include <utility>

#include "drivers/standin/process.h"
#include "drivers/standin/resolve.h"
#include "keel/hal/capture_mode.h"

namespace keel::standin {
namespace {

void* Pointer(hal::NodeHandle node) { return reinterpret_cast<void*>(node.value); }
hal::NodeHandle Node(void* node) { return {reinterpret_cast<std::uint64_t>(node)}; }

Cause JudgeState(Context& context, const Status& status) {
  return Process::Judge(context, status, Cause::kIllegalState);
}

// Gives a graph that belongs to no device yet to this one.
Cause Bind(GraphObject& graph, Context& context, hal::Device& device) {
  Process& process = Process::Get();
  {
    MutexLock lock(process.mutex);
    if (graph.context != nullptr) {
      return graph.context == &context ? Cause::kOk : Cause::kNotSupported;
    }
  }
  const auto made = device.CreateGraph();
  if (!made.ok()) return JudgeState(context, made.status());
  MutexLock lock(process.mutex);
  graph.context = &context;
  graph.handle = *made;
  return Cause::kOk;
}

// The nodes of a bound graph, remembered as its.
Cause ListNodes(void* graph, GraphObject& object, std::vector<hal::NodeInfo>* nodes) {
  Process& process = Process::Get();
  std::shared_ptr<hal::Device> device;
  if (const Cause cause = process.Open(*object.context, &device); cause != Cause::kOk) return cause;
  auto listed = device->GetNodes(object.handle);
  if (!listed.ok()) return JudgeState(*object.context, listed.status());
  *nodes = *std::move(listed);
  MutexLock lock(process.mutex);
  for (const hal::NodeInfo& node : *nodes) {
    object.nodes.insert(Pointer(node.node));
    process.graph_of_node[Pointer(node.node)] = graph;
  }
  return Cause::kOk;
}

// A node of a graph that is alive, as the simulated device knows it.
Cause FindNode(void* node, hal::NodeInfo* info) {
  Process& process = Process::Get();
  void* graph = nullptr;
  {
    MutexLock lock(process.mutex);
    const auto found = process.graph_of_node.find(node);
    if (found == process.graph_of_node.end()) return Cause::kInvalidHandle;
    graph = found->second;
  }
  std::shared_ptr<GraphObject> object;
  std::vector<hal::NodeInfo> nodes;
  Cause cause = process.Find(process.graphs, graph, &object);
  if (cause == Cause::kOk) cause = ListNodes(graph, *object, &nodes);
  if (cause != Cause::kOk) return cause;
  for (hal::NodeInfo& one : nodes) {
    if (Pointer(one.node) != node) continue;
    *info = std::move(one);
    return Cause::kOk;
  }
  return Cause::kInvalidHandle;
}

// Whose node this is: the work's own context, else what was said, else the graph's, else the
// current one, else any.
Cause ContextOf(const Work& work, const GraphObject& graph, void* said, Context** context,
                std::shared_ptr<hal::Device>* device) {
  Process& process = Process::Get();
  if (const auto* launch = std::get_if<Launch>(&work)) {
    std::shared_ptr<KernelObject> kernel;
    const Cause cause = process.Find(process.kernels, launch->kernel, &kernel);
    if (cause != Cause::kOk) return cause;
    *context = kernel->context;
  } else if (said != nullptr) {
    const Cause cause = process.FindContext(said, context);
    if (cause != Cause::kOk) return cause;
  } else {
    MutexLock lock(process.mutex);
    *context = graph.context;
  }
  return *context == nullptr ? process.Any(context, device) : process.Open(**context, device);
}

// Resolve, and the kind that only graphs have.
Cause ResolveNode(const Work& work, Context& context, hal::Device& device, ResolvedWork* resolved) {
  const auto* child = std::get_if<Child>(&work);
  if (child == nullptr) return Resolve(work, context, device, resolved);
  Process& process = Process::Get();
  std::shared_ptr<GraphObject> object;
  Cause cause = process.Find(process.graphs, child->graph, &object);
  if (cause == Cause::kOk) cause = Bind(*object, context, device);
  if (cause == Cause::kOk) resolved->command = hal::ChildGraph{object->handle};
  return cause;
}

}  // namespace

void RememberWork(void* node, const Work& work) {
  Process& process = Process::Get();
  MutexLock lock(process.mutex);
  Work& kept = process.node_work[node] = work;
  if (auto* launch = std::get_if<Launch>(&kept)) launch->arguments = nullptr;
}

// --- Captures ------------------------------------------------------------------------------------

Cause ExchangeCaptureMode(int* mode) {
  if (*mode < 0 || *mode > 2) return Cause::kInvalidValue;
  *mode = static_cast<int>(hal::ExchangeThreadCaptureMode(static_cast<hal::CaptureMode>(*mode)));
  return Cause::kOk;
}

Cause BeginCapture(void* stream, int mode) {
  static std::atomic<std::uint64_t> next_id{1};
  Process& process = Process::Get();
  StreamUse use;
  if (const Cause cause = FindStream(stream, &use); cause != Cause::kOk) return cause;
  if (mode < 0 || mode > 2) return Cause::kInvalidValue;
  if (use.legacy) return Cause::kCaptureUnsupported;
  const auto captured = static_cast<hal::CaptureMode>(mode);
  const Cause cause = JudgeState(*use.context, use.device->BeginCapture(use.handle(), captured));
  if (cause != Cause::kOk) return cause;
  MutexLock lock(process.mutex);
  use.object->begun = {std::this_thread::get_id(), captured};
  ++process.open_captures;
  use.object->capture_id = next_id.fetch_add(1);
  return cause;
}

Cause EndCapture(void* stream, void** graph) {
  Process& process = Process::Get();
  *graph = nullptr;
  StreamUse use;
  if (const Cause cause = FindStream(stream, &use); cause != Cause::kOk) return cause;
  const auto before = use.device->GetCaptureState(use.handle());
  if (!before.ok()) return JudgeState(*use.context, before.status());
  if (*before == hal::CaptureState::kNone) return Cause::kIllegalState;
  std::optional<StreamObject::Begun> begun;
  {
    MutexLock lock(process.mutex);
    begun = use.object->begun;
  }
  if (!begun) {
    BreakCapture(*use.device, use.handle());
    return Cause::kCaptureUnmatched;
  }
  if (begun->mode != hal::CaptureMode::kRelaxed && begun->thread != std::this_thread::get_id()) {
    // Real libraries end the capture here; the simulated device keeps it for its own thread.
    BreakCapture(*use.device, use.handle());
    return Cause::kCaptureWrongThread;
  }
  const auto made = use.device->EndCapture(use.handle());
  {
    MutexLock lock(process.mutex);
    use.object->begun.reset();
    --process.open_captures;
  }
  if (!made.ok()) {
    return Process::Judge(*use.context, made.status(),
                          *before == hal::CaptureState::kInvalidated ? Cause::kCaptureInvalidated
                                                                     : Cause::kCaptureUnjoined);
  }
  auto object = std::make_shared<GraphObject>();
  object->context = use.context;
  object->handle = *made;
  *graph = process.Insert(process.graphs, object);
  std::vector<hal::NodeInfo> nodes;
  return ListNodes(*graph, *object, &nodes);
}

Cause GetCaptureInfo(void* stream, CaptureInfo* info) {
  Process& process = Process::Get();
  StreamUse use;
  const Cause found = FindStream(stream, &use, Implicit::kOnlyRefuses);
  if (found != Cause::kOk) return found;
  *info = {};
  const auto state = use.device->GetCaptureState(use.handle());
  if (!state.ok()) return JudgeState(*use.context, state.status());
  info->state = *state;
  if (*state != hal::CaptureState::kActive) return Cause::kOk;
  const auto frontier = use.device->GetCaptureFrontier(use.handle());
  if (!frontier.ok()) return JudgeState(*use.context, frontier.status());
  MutexLock lock(process.mutex);
  use.object->frontier.clear();
  for (const hal::NodeHandle node : *frontier) use.object->frontier.push_back(Pointer(node));
  info->id = use.object->capture_id;
  info->frontier = use.object->frontier.data();
  info->frontier_size = use.object->frontier.size();
  return Cause::kOk;
}

// --- Graphs --------------------------------------------------------------------------------------

Cause CreateGraph(void** graph) {
  Process& process = Process::Get();
  *graph = process.Insert(process.graphs, std::make_shared<GraphObject>());
  return Cause::kOk;
}

Cause DestroyGraph(void* graph) {
  Process& process = Process::Get();
  std::shared_ptr<GraphObject> object;
  Cause cause = process.Find(process.graphs, graph, &object);
  if (cause != Cause::kOk) return cause;
  if (object->context != nullptr) {
    std::shared_ptr<hal::Device> device;
    cause = process.Open(*object->context, &device);
    if (cause == Cause::kOk) {
      cause = JudgeState(*object->context, device->DestroyGraph(object->handle));
    }
    if (cause != Cause::kOk) return cause;
  }
  MutexLock lock(process.mutex);
  for (void* const node : object->nodes) {
    process.graph_of_node.erase(node);
    process.node_work.erase(node);
  }
  process.graphs.erase(graph);
  return Cause::kOk;
}

Cause AddNode(void** node, void* graph, std::span<void* const> dependencies, const Work& work,
              void* context) {
  Process& process = Process::Get();
  std::shared_ptr<GraphObject> object;
  Context* owner = nullptr;
  std::shared_ptr<hal::Device> device;
  ResolvedWork resolved;
  Cause cause = process.Find(process.graphs, graph, &object);
  if (cause == Cause::kOk) cause = ContextOf(work, *object, context, &owner, &device);
  if (cause == Cause::kOk) cause = ResolveNode(work, *owner, *device, &resolved);
  if (cause == Cause::kOk) cause = Bind(*object, *owner, *device);
  if (cause != Cause::kOk) return cause;
  std::vector<hal::NodeHandle> before;
  for (void* const dependency : dependencies) before.push_back(Node(dependency));
  const auto made = device->AddNode(object->handle, before, resolved.command);
  if (!made.ok()) return Process::Judge(*owner, made.status(), Cause::kInvalidValue);
  *node = Pointer(*made);
  RememberWork(*node, work);
  MutexLock lock(process.mutex);
  object->nodes.insert(*node);
  process.graph_of_node[*node] = graph;
  return Cause::kOk;
}

Cause GetNodes(void* graph, std::vector<void*>* nodes) {
  Process& process = Process::Get();
  std::shared_ptr<GraphObject> object;
  nodes->clear();
  Cause cause = process.Find(process.graphs, graph, &object);
  if (cause != Cause::kOk || object->context == nullptr) return cause;
  std::vector<hal::NodeInfo> listed;
  cause = ListNodes(graph, *object, &listed);
  for (const hal::NodeInfo& node : listed) nodes->push_back(Pointer(node.node));
  return cause;
}

Cause GetNodeKind(void* node, std::size_t* kind) {
  hal::NodeInfo info;
  const Cause cause = FindNode(node, &info);
  if (cause == Cause::kOk) *kind = info.kind;
  return cause;
}

Cause GetNodeWork(void* node, Work* work) {
  hal::NodeInfo info;
  if (const Cause cause = FindNode(node, &info); cause != Cause::kOk) return cause;
  Process& process = Process::Get();
  MutexLock lock(process.mutex);
  const auto found = process.node_work.find(node);
  if (found == process.node_work.end()) return Cause::kInvalidValue;
  *work = found->second;
  return Cause::kOk;
}

Cause GetNodeDependencies(void* node, std::vector<void*>* dependencies) {
  hal::NodeInfo info;
  if (const Cause cause = FindNode(node, &info); cause != Cause::kOk) return cause;
  dependencies->clear();
  for (const hal::NodeHandle one : info.dependencies) dependencies->push_back(Pointer(one));
  return Cause::kOk;
}

// --- Instantiated graphs -------------------------------------------------------------------------

Cause Instantiate(void** exec, void* graph) {
  Process& process = Process::Get();
  std::shared_ptr<GraphObject> object;
  Context* context = nullptr;
  std::shared_ptr<hal::Device> device;
  Cause cause = process.Current(&context, &device);
  if (cause == Cause::kOk) cause = process.Find(process.graphs, graph, &object);
  if (cause != Cause::kOk) return cause;
  if (object->context == nullptr) {
    cause = Bind(*object, *context, *device);
  } else {
    context = object->context;
    cause = process.Open(*context, &device);
  }
  if (cause != Cause::kOk) return cause;
  const auto made = device->Instantiate(object->handle);
  if (!made.ok()) return Process::Judge(*context, made.status(), Cause::kCaptureUnsupported);
  auto instance = std::make_shared<ExecObject>();
  instance->context = context;
  instance->handle = *made;
  std::vector<hal::NodeInfo> nodes;
  cause = ListNodes(graph, *object, &nodes);
  for (const hal::NodeInfo& node : nodes) instance->kinds.push_back(node.kind);
  *exec = process.Insert(process.execs, std::move(instance));
  return cause;
}

Cause DestroyExec(void* exec) {
  Process& process = Process::Get();
  std::shared_ptr<ExecObject> object;
  std::shared_ptr<hal::Device> device;
  Cause cause = process.Find(process.execs, exec, &object, &device);
  if (cause == Cause::kOk) {
    cause = JudgeState(*object->context, device->DestroyExec(object->handle));
  }
  if (cause == Cause::kOk) process.Erase(process.execs, exec);
  return cause;
}

Cause SetNode(void* exec, void* node, const Work& work, void* context) {
  Process& process = Process::Get();
  std::shared_ptr<ExecObject> object;
  std::shared_ptr<hal::Device> device;
  hal::NodeInfo info;
  ResolvedWork resolved;
  Cause cause = process.Find(process.execs, exec, &object);
  if (cause == Cause::kOk && context != nullptr && context != object->context) {
    cause = Cause::kInvalidContext;
  }
  if (cause == Cause::kOk) cause = process.Open(*object->context, &device);
  if (cause == Cause::kOk) cause = FindNode(node, &info);
  if (cause == Cause::kOk) cause = ResolveNode(work, *object->context, *device, &resolved);
  if (cause != Cause::kOk) return cause;
  return Process::Judge(*object->context,
                        device->SetNodeParams(object->handle, Node(node), resolved.command),
                        Cause::kInvalidValue);
}

Cause UpdateExec(void* exec, void* graph, UpdateOutcome* outcome) {
  Process& process = Process::Get();
  std::shared_ptr<ExecObject> object;
  std::shared_ptr<GraphObject> source;
  std::shared_ptr<hal::Device> device;
  *outcome = {};
  Cause cause = process.Find(process.execs, exec, &object);
  if (cause == Cause::kOk) cause = process.Find(process.graphs, graph, &source);
  if (cause == Cause::kOk) cause = process.Open(*object->context, &device);
  if (cause == Cause::kOk) cause = Bind(*source, *object->context, *device);
  if (cause != Cause::kOk) return cause;
  const auto report = device->UpdateExec(object->handle, source->handle);
  if (!report.ok()) return JudgeState(*object->context, report.status());
  if (report->updated) return Cause::kOk;
  std::vector<hal::NodeInfo> nodes;
  cause = ListNodes(graph, *source, &nodes);
  if (cause != Cause::kOk) return cause;
  outcome->why = UpdateOutcome::Why::kTopologyChanged;
  for (std::size_t i = 0; i < nodes.size() && nodes.size() == object->kinds.size(); ++i) {
    if (nodes[i].kind != object->kinds[i]) outcome->why = UpdateOutcome::Why::kKindChanged;
  }
  if (report->node) outcome->node = Pointer(*report->node);
  return Cause::kUpdateRefused;
}

Cause LaunchGraph(void* exec, void* stream) {
  Process& process = Process::Get();
  std::shared_ptr<ExecObject> object;
  StreamUse use;
  Cause cause = FindStream(stream, &use);
  if (cause == Cause::kOk) cause = process.Find(process.execs, exec, &object);
  if (cause != Cause::kOk) return cause;
  return Process::Judge(*use.context, use.device->LaunchGraph(object->handle, use.handle()),
                        Cause::kCaptureUnsupported);
}

Cause UploadGraph(void* exec, void* stream) {
  Process& process = Process::Get();
  std::shared_ptr<ExecObject> object;
  StreamUse use;
  const Cause cause = FindStream(stream, &use);
  return cause == Cause::kOk ? process.Find(process.execs, exec, &object) : cause;
}

}  // namespace keel::standin
