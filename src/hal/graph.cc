#include "keel/hal/graph.h"

#include <utility>

#include "hal/describe.h"

namespace keel::hal {

Status GraphTraits::GiveBack(Device& device, const Handle& handle) {
  return device.DestroyGraph(handle);
}

std::string GraphTraits::Describe(const Handle& handle) {
  return DescribeHandle("DestroyGraph", handle.value);
}

Result<Graph> Graph::Create(std::shared_ptr<Device> device) {
  KEEL_ASSIGN(const GraphHandle graph, device->CreateGraph());
  return Graph(std::move(device), graph);
}

Status ExecTraits::GiveBack(Device& device, const Handle& handle) {
  return device.DestroyExec(handle);
}

std::string ExecTraits::Describe(const Handle& handle) {
  return DescribeHandle("DestroyExec", handle.value);
}

Result<GraphExec> GraphExec::Create(const Graph& graph) {
  if (!graph) return InvalidArgument("this Graph owns no graph");
  KEEL_ASSIGN(const ExecHandle exec, graph.device()->Instantiate(graph.get()));
  return GraphExec(graph.device(), exec);
}

Status GraphExec::Launch(StreamHandle stream) const {
  if (!*this) return InvalidArgument("this GraphExec owns no graph");
  return device()->LaunchGraph(get(), stream);
}

Status CaptureTraits::GiveBack(Device& device, const Handle& handle) {
  Result<GraphHandle> graph = device.EndCapture(handle);
  if (graph.ok()) {
    // The capture is over whatever becomes of its graph, so the graph is retried by itself.
    internal::GiveBackOrRetry(
        device, [&] { return GraphTraits::Describe(*graph); },
        [&device, graph = *graph] { return GraphTraits::GiveBack(device, graph); });
    return OkStatus();
  }
  if (graph.status().code() == StatusCode::kDeviceLost) return std::move(graph).status();
  // A capture that was invalidated ends with an error, and one that must be ended by another
  // thread does not end with the same error: only the stream itself tells.
  const Result<CaptureState> state = device.GetCaptureState(handle);
  if (state.ok() && *state == CaptureState::kNone) return OkStatus();
  return std::move(graph).status();
}

std::string CaptureTraits::Describe(const Handle& handle) {
  return DescribeHandle("EndCapture", handle.value);
}

Result<Capture> Capture::Begin(std::shared_ptr<Device> device, StreamHandle stream,
                               CaptureMode mode) {
  KEEL_TRY(device->BeginCapture(stream, mode));
  return Capture(std::move(device), stream);
}

Result<Graph> Capture::End() {
  if (!*this) return InvalidArgument("this Capture owns no capture");
  Result<GraphHandle> graph = device()->EndCapture(handle());
  if (!graph.ok()) {
    // Still open, if the call failed before it reached the capture: the destructor's way ends it.
    *this = Capture();
    return std::move(graph).status();
  }
  std::shared_ptr<Device> owner = device();
  Release();
  return Graph(std::move(owner), *graph);
}

}  // namespace keel::hal
