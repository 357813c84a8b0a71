// Slot: recording, patching and launching.

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "graph/commands.h"
#include "graph/slot.h"
#include "keel/hal/command.h"

namespace keel::graph {
namespace {

// Blocks of the copies' kernel. More pieces than blocks are copied in turns.
constexpr std::uint32_t kMostBlocks = 2048;
constexpr std::uint32_t kThreads = 256;

using Clock = std::chrono::steady_clock;

std::int64_t NsSince(Clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
}

}  // namespace

hal::KernelLaunch Slot::CopyLaunch(bool in, std::array<hal::KernelArg, 3>& arguments) const {
  const Layout& layout = context_.layout;
  const std::vector<CopyPiece>& pieces = in ? layout.pieces_in : layout.pieces_out;
  const Bytes skipped(in ? 0 : layout.pieces_in.size() * sizeof(CopyPiece));
  const std::uint64_t count = pieces.size();
  arguments = {hal::KernelArg::In(context_.pieces + skipped, Bytes(count * sizeof(CopyPiece))),
               hal::KernelArg::In(layout.fetch ? near_ : rows_address(),
                                  Bytes(layout.rows * sizeof(CopyRow))),
               hal::KernelArg::Value(count)};
  const auto blocks = static_cast<std::uint32_t>(std::min<std::uint64_t>(count, kMostBlocks));
  return {.kernel = context_.copy_kernel,
          .dims = {.grid = {blocks, 1, 1}, .block = {kThreads, 1, 1}},
          .args = arguments};
}

DeviceAddress Slot::rows_address() const {
  return pinned_address_ +
         Bytes(reinterpret_cast<std::byte*>(rows_) - static_cast<std::byte*>(pinned_));
}

// The same kernel: one piece, of a row that never changes.
hal::KernelLaunch Slot::FetchLaunch(std::array<hal::KernelArg, 3>& arguments) const {
  const Layout& layout = context_.layout;
  const Bytes skipped((layout.pieces_in.size() + layout.pieces_out.size()) * sizeof(CopyPiece));
  arguments = {hal::KernelArg::In(context_.pieces + skipped, Bytes(sizeof(CopyPiece))),
               hal::KernelArg::In(control_ + Bytes(sizeof(CopyRow)), Bytes(sizeof(CopyRow))),
               hal::KernelArg::Value(std::uint64_t{1})};
  return {.kernel = context_.copy_kernel,
          .dims = {.grid = {1, 1, 1}, .block = {kThreads, 1, 1}},
          .args = arguments};
}

hal::KernelLaunch Slot::MarkLaunch(std::array<hal::KernelArg, 2>& arguments) const {
  arguments = {hal::KernelArg::InOut(control_, 8_B), hal::KernelArg::Out(pinned_address_, 8_B)};
  return {.kernel = context_.mark_kernel, .dims = {}, .args = arguments};
}

// --- Recording -----------------------------------------------------------------------------------

std::vector<std::uint64_t> Slot::TraceKey(std::uint32_t command) const {
  std::vector<std::uint64_t> key;
  for (const Operand& operand :
       std::get<command::Traced>(context_.program.commands()[command]).uses) {
    key.push_back(addresses_[operand.binding.index].value());
    // Only where the address is the caller's: what is copied or mapped is the slot's own.
    const bool callers = context_.layout.bindings[operand.binding.index].policy == Policy::kRetrace;
    key.push_back(callers ? generations_[operand.binding.index] : 0);
  }
  return key;
}

Result<hal::GraphHandle> Slot::FindOrTrace(std::uint32_t command, Reason reason,
                                           ReplayReport& report) {
  const auto& traced = std::get<command::Traced>(context_.program.commands()[command]);
  if (traced.recorded) return TakeGraph(traced, reason, report);
  std::list<Trace>& traces = traces_[command];
  std::vector<std::uint64_t> key = TraceKey(command);
  const auto found = std::find_if(traces.begin(), traces.end(),
                                  [&](const Trace& trace) { return trace.key == key; });
  if (found != traces.end()) {
    traces.splice(traces.begin(), traces, found);
    ++report.traces_reused;
    report.Add({.kind = ActionKind::kTraceReused, .reason = reason});
    return traces.front().graph.get();
  }
  const Clock::time_point begin = Clock::now();
  KEEL_ASSIGN(hal::Capture capture,
              hal::Capture::Begin(context_.memory.device(), context_.capture_stream));
  KEEL_TRY(Enqueue(context_.device(), context_.capture_stream, context_.program.commands()[command],
                   addresses_, true));
  KEEL_ASSIGN(hal::Graph graph, capture.End());
  traces.push_front({.key = std::move(key), .graph = std::move(graph)});
  if (traces.size() > context_.kept_traces) traces.pop_back();
  ++report.traced;
  report.Add({.kind = ActionKind::kTraced, .reason = reason, .host_ns = NsSince(begin)});
  return traces.front().graph.get();
}

Result<hal::GraphHandle> Slot::TakeGraph(const command::Traced& traced, Reason reason,
                                         ReplayReport& report) {
  const Clock::time_point begin = Clock::now();
  hal::GraphHandle graph;
  Status status = traced.function(TraceContext(context_.device(), context_.capture_stream,
                                               addresses_, /*capturing=*/true, &graph));
  if (status.ok() && !graph) status = FailedPrecondition("it gave no graph");
  if (!status.ok()) return std::move(status).Annotate("'" + traced.name + "'");
  ++report.traced;
  report.Add({.kind = ActionKind::kTraced, .reason = reason, .host_ns = NsSince(begin)});
  return graph;
}

Result<Slot::Recording> Slot::RecordStretch(std::size_t index, Reason reason,
                                            ReplayReport& report) {
  const Layout& layout = context_.layout;
  const Stretch& stretch = layout.stretches[index];
  hal::Device& device = context_.device();
  Recording recording;
  KEEL_ASSIGN(recording.graph, hal::Graph::Create(context_.memory.device()));
  // Each command after the one before.
  std::optional<hal::NodeHandle> before;
  const auto add = [&](const hal::Command& command) -> Status {
    const std::span<const hal::NodeHandle> dependencies =
        before ? std::span(&*before, 1) : std::span<const hal::NodeHandle>();
    KEEL_ASSIGN(before, device.AddNode(recording.graph.get(), dependencies, command));
    return OkStatus();
  };
  std::array<hal::KernelArg, 3> copy_arguments;
  std::array<hal::KernelArg, 2> mark_arguments;
  if (index == 0 && !layout.pieces_in.empty()) {
    if (layout.fetch) KEEL_TRY(add(FetchLaunch(copy_arguments)));
    KEEL_TRY(add(CopyLaunch(true, copy_arguments)));
  }
  for (std::uint32_t i = stretch.first; i < stretch.last; ++i) {
    const ProgramCommand& command = context_.program.commands()[i];
    if (std::holds_alternative<command::Traced>(command)) {
      KEEL_ASSIGN(const hal::GraphHandle child, FindOrTrace(i, reason, report));
      KEEL_TRY(add(hal::ChildGraph{child}));
    } else {
      KEEL_TRY(add(CommandAt(command, addresses_, device.id(), arguments_)));
    }
    recording.nodes.push_back(*before);
  }
  if (index + 1 == layout.stretches.size()) {
    if (!layout.pieces_out.empty()) {
      if (layout.pieces_in.empty()) KEEL_TRY(add(FetchLaunch(copy_arguments)));
      KEEL_TRY(add(CopyLaunch(false, copy_arguments)));
    }
    KEEL_TRY(add(MarkLaunch(mark_arguments)));
  }
  KEEL_ASSIGN(recording.exec, hal::GraphExec::Create(recording.graph));
  ++report.recorded;
  return recording;
}

Status Slot::Record(Reason reason, ReplayReport& report) {
  const Clock::time_point begin = Clock::now();
  const std::uint32_t before = report.recorded;
  std::vector<Recording> recordings(context_.layout.stretches.size());
  for (std::size_t i = 0; i < recordings.size(); ++i) {
    if (context_.layout.stretches[i].eager) continue;
    KEEL_ASSIGN(recordings[i], RecordStretch(i, reason, report));
  }
  recordings_ = std::move(recordings);
  recorded_ = true;
  // They were made with the addresses as they are now.
  for (std::vector<std::uint32_t>* marked : {&marked_commands_, &marked_traces_}) {
    for (const std::uint32_t command : *marked) command_marked_[command] = false;
    marked->clear();
  }
  report.Add({.kind = ActionKind::kRecorded,
              .reason = reason,
              .count = report.recorded - before,
              .host_ns = NsSince(begin)});
  return OkStatus();
}

Slot::Recorded Slot::At(std::uint32_t command) const {
  const Recording& recording = recordings_[stretch_of_[command]];
  const std::uint32_t first = context_.layout.stretches[stretch_of_[command]].first;
  return {.exec = recording.exec.get(), .node = recording.nodes[command - first]};
}

Status Slot::Patch(ReplayReport& report) {
  hal::Device& device = context_.device();
  if (!marked_commands_.empty()) {
    const Clock::time_point begin = Clock::now();
    std::uint32_t patched = 0;
    while (!marked_commands_.empty()) {
      const std::uint32_t command = marked_commands_.back();
      const Recorded at = At(command);
      KEEL_TRY(device.SetNodeParams(
          at.exec, at.node,
          CommandAt(context_.program.commands()[command], addresses_, device.id(), arguments_)));
      marked_commands_.pop_back();
      command_marked_[command] = false;
      ++patched;
    }
    report.patched += patched;
    report.Add({.kind = ActionKind::kPatched,
                .reason = Reason::kMoved,
                .count = patched,
                .host_ns = NsSince(begin)});
  }
  while (!marked_traces_.empty()) {
    const std::uint32_t command = marked_traces_.back();
    KEEL_ASSIGN(const hal::GraphHandle child,
                FindOrTrace(command, trace_reasons_[command], report));
    const Recorded at = At(command);
    Status status = device.SetNodeParams(at.exec, at.node, hal::ChildGraph{child});
    if (status.code() == StatusCode::kDeviceLost) return status;
    // The new trace has other nodes than the old one, or the device does not update: record anew.
    if (!status.ok()) return Record(Reason::kTopology, report);
    marked_traces_.pop_back();
    command_marked_[command] = false;
  }
  return OkStatus();
}

// --- Launching -----------------------------------------------------------------------------------

Status Slot::QueueWaits(hal::StreamHandle stream) {
  // They are kept until a step is queued behind them: if this one fails, the next waits as well.
  for (const Reader& reader : before_next_) {
    if (reader.stream == stream) continue;
    KEEL_TRY(context_.device().WaitEvent(stream, reader.event.get()));
  }
  return OkStatus();
}

Status Slot::Launch(hal::StreamHandle stream, ReplayReport& report) {
  if (!before_next_.empty()) KEEL_TRY(QueueWaits(stream));
  hal::Device& device = context_.device();
  report.graphs = 0;
  for (std::size_t i = 0; i < recordings_.size(); ++i) {
    const Stretch& stretch = context_.layout.stretches[i];
    const Status status =
        stretch.eager
            ? Enqueue(device, stream, context_.program.commands()[stretch.first], addresses_, false)
            : device.LaunchGraph(recordings_[i].exec.get(), stream);
    if (!status.ok()) {
      // A command that is called may have queued something before it failed.
      if (i != 0 || stretch.eager) timeline_.LostTrack(stream);
      return status;
    }
    report.graphs += stretch.eager ? 0 : 1;
  }
  timeline_.Launched(stream);
  before_next_.clear();
  return OkStatus();
}

Status Slot::RunEagerly(hal::StreamHandle stream, ReplayReport& report) {
  if (!before_next_.empty()) KEEL_TRY(QueueWaits(stream));
  hal::Device& device = context_.device();
  const auto run = [&]() -> Status {
    std::array<hal::KernelArg, 3> copy_arguments;
    std::array<hal::KernelArg, 2> mark_arguments;
    const Layout& layout = context_.layout;
    if (layout.fetch) KEEL_TRY(device.LaunchKernel(stream, FetchLaunch(copy_arguments)));
    if (!layout.pieces_in.empty()) {
      KEEL_TRY(device.LaunchKernel(stream, CopyLaunch(true, copy_arguments)));
    }
    for (const ProgramCommand& command : context_.program.commands()) {
      KEEL_TRY(Enqueue(device, stream, command, addresses_, false));
    }
    if (!layout.pieces_out.empty()) {
      KEEL_TRY(device.LaunchKernel(stream, CopyLaunch(false, copy_arguments)));
    }
    return device.LaunchKernel(stream, MarkLaunch(mark_arguments));
  };
  Status status = run();
  if (status.ok()) {
    timeline_.Launched(stream);
    before_next_.clear();
    report.eager = true;
  } else {
    timeline_.LostTrack(stream);
  }
  return status;
}

}  // namespace keel::graph
