// SimDevice: capture and graphs.

#include <fmt/format.h>

#include <utility>

#include "drivers/sim/sim_device.h"
#include "hal/check_command.h"

namespace keel::sim {

using hal::Primitive;

Status SimDevice::BeginCapture(hal::StreamHandle stream, hal::CaptureMode mode) {
  KEEL_TRY(Enter(Primitive::kBeginCapture));
  KEEL_ASSIGN(const auto on, FindStream(stream));
  return machine_->captures.Begin(on, mode);
}

Result<hal::GraphHandle> SimDevice::EndCapture(hal::StreamHandle stream) {
  KEEL_TRY(Enter(Primitive::kEndCapture));
  KEEL_ASSIGN(const auto on, FindStream(stream));
  KEEL_ASSIGN(auto graph, machine_->captures.End(*on));
  return hal::GraphHandle{machine_->graphs.Insert(
      std::make_shared<GraphObject>(GraphObject{std::move(graph), ordinal_}))};
}

Result<hal::CaptureState> SimDevice::GetCaptureState(hal::StreamHandle stream) {
  KEEL_TRY(Enter(Primitive::kGetCaptureState));
  KEEL_ASSIGN(const auto on, FindStream(stream));
  return machine_->captures.State(*on);
}

Result<std::vector<hal::NodeHandle>> SimDevice::GetCaptureFrontier(hal::StreamHandle stream) {
  KEEL_TRY(Enter(Primitive::kGetCaptureFrontier));
  KEEL_ASSIGN(const auto on, FindStream(stream));
  return machine_->captures.Frontier(*on);
}

Result<std::shared_ptr<SimGraph>> SimDevice::FindGraph(hal::GraphHandle graph) const {
  const std::shared_ptr<GraphObject> found = machine_->graphs.Find(graph.value);
  if (found == nullptr || found->ordinal != ordinal_) {
    return InvalidArgument(
        fmt::format("{:#x} is not the handle of a graph of device {}, or was destroyed",
                    graph.value, ordinal_));
  }
  return found->graph;
}

Result<std::shared_ptr<ExecObject>> SimDevice::FindExec(hal::ExecHandle exec) const {
  std::shared_ptr<ExecObject> found = machine_->execs.Find(exec.value);
  if (found == nullptr || found->ordinal != ordinal_) {
    return InvalidArgument(fmt::format(
        "{:#x} is not the handle of an instantiated graph of device {}, or was destroyed",
        exec.value, ordinal_));
  }
  return found;
}

Result<hal::GraphHandle> SimDevice::CreateGraph() {
  KEEL_TRY(Enter(Primitive::kCreateGraph));
  return hal::GraphHandle{machine_->graphs.Insert(
      std::make_shared<GraphObject>(GraphObject{std::make_shared<SimGraph>(), ordinal_}))};
}

Status SimDevice::DestroyGraph(hal::GraphHandle graph) {
  KEEL_TRY(Enter(Primitive::kDestroyGraph));
  KEEL_TRY(FindGraph(graph).status());
  if (machine_->graphs.Remove(graph.value) == nullptr) return FindGraph(graph).status();
  return OkStatus();
}

Result<StoredCommand> SimDevice::Store(const hal::Command& command) const {
  if (const auto* launch = std::get_if<hal::KernelLaunch>(&command)) {
    KEEL_ASSIGN(StoredKernel stored, machine_->StoreKernel(ordinal_, *launch));
    return StoredCommand(std::move(stored));
  }
  if (const auto* copy = std::get_if<hal::Copy>(&command)) {
    KEEL_ASSIGN(StoredCopy stored, StoreCopy(*copy));
    for (const CopySide& side : {stored.destination, stored.source}) {
      if (side.ordinal == CopySide::kHost && !machine_->host.Contains(side.address, copy->size)) {
        return FailedPrecondition(
            "a copy of host memory that is not pinned cannot be part of a graph; allocate it with "
            "AllocateHost, or register it");
      }
    }
    return StoredCommand(std::move(stored));
  }
  if (const auto* fill = std::get_if<hal::Fill>(&command)) {
    KEEL_TRY(hal::CheckFill(*fill));
    return StoredCommand(*fill);
  }
  if (const auto* call = std::get_if<hal::HostCall>(&command)) {
    if (call->function == nullptr) return InvalidArgument("a host call without a function");
    return StoredCommand(*call);
  }
  if (const auto* write = std::get_if<hal::ValueWrite>(&command)) {
    KEEL_TRY(hal::CheckValueAddress(write->destination));
    return StoredCommand(*write);
  }
  if (const auto* wait = std::get_if<hal::ValueWait>(&command)) {
    KEEL_TRY(hal::CheckValueAddress(wait->source));
    return StoredCommand(*wait);
  }
  if (const auto* child = std::get_if<hal::ChildGraph>(&command)) {
    KEEL_ASSIGN(const auto graph, FindGraph(child->graph));
    return StoredCommand(std::make_shared<const Program>(graph->Copy().program));
  }
  return StoredCommand(hal::EmptyNode{});
}

Result<hal::NodeHandle> SimDevice::AddNode(hal::GraphHandle graph,
                                           std::span<const hal::NodeHandle> dependencies,
                                           const hal::Command& command) {
  KEEL_TRY(Enter(Primitive::kAddNode));
  KEEL_ASSIGN(const auto found, FindGraph(graph));
  KEEL_ASSIGN(StoredCommand stored, Store(command));
  return found->Add(dependencies, std::move(stored), ordinal_);
}

Result<std::vector<hal::NodeInfo>> SimDevice::GetNodes(hal::GraphHandle graph) {
  KEEL_TRY(Enter(Primitive::kGetNodes));
  KEEL_ASSIGN(const auto found, FindGraph(graph));
  return found->List();
}

Result<hal::ExecHandle> SimDevice::Instantiate(hal::GraphHandle graph) {
  KEEL_TRY(Enter(Primitive::kInstantiate, Safety::kUnsafeInCapture));
  KEEL_ASSIGN(const auto found, FindGraph(graph));
  return hal::ExecHandle{
      machine_->execs.Insert(std::make_shared<ExecObject>(found->Copy(), ordinal_))};
}

Status SimDevice::DestroyExec(hal::ExecHandle exec) {
  KEEL_TRY(Enter(Primitive::kDestroyExec));
  KEEL_TRY(FindExec(exec).status());
  if (machine_->execs.Remove(exec.value) == nullptr) return FindExec(exec).status();
  return OkStatus();
}

Result<hal::UpdateReport> SimDevice::UpdateExec(hal::ExecHandle exec, hal::GraphHandle graph) {
  KEEL_TRY(Enter(Primitive::kUpdateExec));
  KEEL_ASSIGN(const auto found, FindExec(exec));
  KEEL_ASSIGN(const auto source, FindGraph(graph));
  return found->exec.Update(*source);
}

Status SimDevice::SetNodeParams(hal::ExecHandle exec, hal::NodeHandle node,
                                const hal::Command& command) {
  KEEL_TRY(Enter(Primitive::kSetNodeParams));
  KEEL_ASSIGN(const auto found, FindExec(exec));
  KEEL_ASSIGN(StoredCommand stored, Store(command));
  return found->exec.SetParams(node, std::move(stored));
}

Status SimDevice::LaunchGraph(hal::ExecHandle exec, hal::StreamHandle stream) {
  KEEL_TRY(Enter(Primitive::kLaunchGraph));
  KEEL_ASSIGN(const auto on, FindStream(stream));
  KEEL_ASSIGN(const auto found, FindExec(exec));
  KEEL_TRY(machine_->captures.CheckStream(*on, "LaunchGraph"));
  on->Push(found->exec.NewLaunch());
  return OkStatus();
}

}  // namespace keel::sim
