// Slot: recording, patching and launching.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <utility>

#include "graph/commands.h"
#include "graph/slot.h"
#include "keel/hal/command.h"

namespace keel::graph {
namespace {

// Blocks of the copies' kernel. More pieces than blocks are copied in turns.
constexpr std::uint32_t kMostBlocks = 2048;
constexpr std::uint32_t kThreads = 256;
// What few blocks wrote comes to the program's kernels sooner than what many did.
constexpr std::uint32_t kTeamsOfBlock = 2;

using Clock = std::chrono::steady_clock;

std::uint32_t BlocksFor(std::uint64_t pieces) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(pieces, kMostBlocks));
}

// Blocks of as many teams as it takes, but no more than are good for one.
hal::LaunchDims DimsOf(std::uint32_t teams, std::uint32_t blocks) {
  const std::uint32_t of_block = std::min((teams + blocks - 1) / blocks, kTeamsOfBlock);
  return {.grid = {blocks, 1, 1},
          .block = {of_block * static_cast<std::uint32_t>(hal::kernels::kTeamThreads), 1, 1}};
}

std::int64_t NsSince(Clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
}

}  // namespace

DeviceAddress Slot::rows_address() const {
  return pinned_address_ +
         Bytes(reinterpret_cast<std::byte*>(rows_) - static_cast<std::byte*>(pinned_));
}

// One piece, of a row that never changes.
hal::KernelLaunch Slot::FetchLaunch(Arguments& arguments) const {
  const Layout& layout = context_.layout;
  const Bytes skipped((layout.pieces_in.size() + layout.pieces_out.size()) * sizeof(CopyPiece));
  arguments[0] = hal::KernelArg::In(context_.pieces + skipped, Bytes(sizeof(CopyPiece)));
  arguments[1] =
      hal::KernelArg::In(control_ + Bytes(offsetof(Control, fetch)), Bytes(sizeof(CopyRow)));
  arguments[2] = hal::KernelArg::Value(std::uint64_t{1});
  return {.kernel = context_.fetch_kernel,
          .dims = {.grid = {1, 1, 1}, .block = {kThreads, 1, 1}},
          .args = std::span(arguments).first(3)};
}

hal::KernelLaunch Slot::CopyInLaunch(Arguments& arguments) const {
  const Layout& layout = context_.layout;
  const std::uint64_t pieces = layout.pieces_in.size();
  const Bytes in(layout.rows_in * sizeof(CopyRow));
  // On the way, the rows of the copies out come near; a block more, so that no copy waits for them.
  const std::uint64_t words =
      layout.fetch ? 0 : layout.rows_out() * (sizeof(CopyRow) / sizeof(std::uint64_t));
  const Bytes fetched(words * sizeof(std::uint64_t));
  arguments = {hal::KernelArg::In(context_.pieces, Bytes(pieces * sizeof(CopyPiece))),
               hal::KernelArg::In(layout.fetch ? near_ : rows_address(), in),
               hal::KernelArg::Value(pieces),
               hal::KernelArg::Value(std::uint64_t{layout.rows_in}),
               hal::KernelArg::In(rows_address() + in, fetched),
               hal::KernelArg::Out(near_ + in, fetched),
               hal::KernelArg::Value(words)};
  return {
      .kernel = context_.copy_in_kernel,
      .dims = {.grid = {BlocksFor(pieces) + (words != 0 ? 1 : 0), 1, 1}, .block = {kThreads, 1, 1}},
      .args = arguments};
}

hal::KernelLaunch Slot::CopyInRowsLaunch(Arguments& arguments) const {
  const Layout& layout = context_.layout;
  const std::uint64_t pieces = layout.pieces_in.size();
  const DeviceAddress near = near_ + Bytes(layout.rows_in * sizeof(CopyRow));
  const Bytes left_near(layout.rows_out() * sizeof(CopyRow));
  arguments[0] = hal::KernelArg::ValueAt(row_values_.get(), sizeof(*row_values_));
  if (layout.small_in) {
    arguments[1] = hal::KernelArg::Value(std::uint64_t{layout.rows_in});
    arguments[2] = hal::KernelArg::Out(near, left_near);
    arguments[3] = hal::KernelArg::Value(std::uint64_t{layout.rows_out()});
    // A team more, so that no copy waits for the rows that are left near.
    const std::uint32_t teams = Layout::TeamsFor(layout.rows_in) + (left_near.empty() ? 0 : 1);
    return {.kernel = context_.copy_in_kernel,
            .dims = DimsOf(teams, (teams + kTeamsOfBlock - 1) / kTeamsOfBlock),
            .args = std::span(arguments).first(4)};
  }
  arguments[1] = hal::KernelArg::In(context_.pieces, Bytes(pieces * sizeof(CopyPiece)));
  arguments[2] = hal::KernelArg::Value(pieces);
  arguments[3] = hal::KernelArg::Value(std::uint64_t{layout.rows_in});
  arguments[4] = hal::KernelArg::Out(near, left_near);
  arguments[5] = hal::KernelArg::Value(std::uint64_t{layout.rows_out()});
  return {.kernel = context_.copy_in_kernel,
          .dims = {.grid = {BlocksFor(pieces), 1, 1}, .block = {kThreads, 1, 1}},
          .args = std::span(arguments).first(6)};
}

hal::KernelLaunch Slot::CopyOutLaunch(Arguments& arguments) const {
  const Layout& layout = context_.layout;
  const Bytes skipped(layout.pieces_in.size() * sizeof(CopyPiece));
  const std::uint64_t pieces = layout.pieces_out.size();
  const bool near = layout.fetch || !layout.pieces_in.empty();
  const Bytes in(layout.rows_in * sizeof(CopyRow));
  const Bytes marks(layout.marks() * sizeof(std::uint64_t));
  arguments[0] = hal::KernelArg::In(context_.pieces + skipped, Bytes(pieces * sizeof(CopyPiece)));
  arguments[1] = hal::KernelArg::In((near ? near_ : rows_address()) + in,
                                    Bytes(layout.rows_out() * sizeof(CopyRow)));
  arguments[2] = hal::KernelArg::Value(pieces);
  if (layout.small_out) {
    arguments[3] = hal::KernelArg::InOut(control_, marks);
    arguments[4] = hal::KernelArg::Out(pinned_address_, marks);
    return {.kernel = context_.copy_out_kernel,
            .dims = DimsOf(Layout::TeamsFor(layout.rows_out()), layout.marks()),
            .args = std::span(arguments).first(5)};
  }
  arguments[3] = hal::KernelArg::Value(std::uint64_t{layout.rows_out()});
  arguments[4] = hal::KernelArg::InOut(control_, marks);
  arguments[5] = hal::KernelArg::Out(pinned_address_, marks);
  return {.kernel = context_.copy_out_kernel,
          .dims = {.grid = {BlocksFor(pieces), 1, 1}, .block = {kThreads, 1, 1}},
          .args = std::span(arguments).first(6)};
}

hal::KernelLaunch Slot::MarkLaunch(Arguments& arguments) const {
  const Layout& layout = context_.layout;
  const Bytes marks(layout.marks() * sizeof(std::uint64_t));
  arguments[0] = hal::KernelArg::InOut(control_, marks);
  arguments[1] = hal::KernelArg::Out(pinned_address_, marks);
  arguments[2] = hal::KernelArg::Value(std::uint64_t{layout.marks()});
  // A step that copies out counts its blocks, if they share a mark.
  const std::uint64_t blocks = layout.small_out ? 1 : BlocksFor(layout.pieces_out.size());
  arguments[3] = hal::KernelArg::Value(std::max<std::uint64_t>(blocks, 1));
  return {.kernel = context_.mark_kernel,
          .dims = {.grid = {1, 1, 1}, .block = {layout.marks(), 1, 1}},
          .args = std::span(arguments).first(4)};
}

template <class Put>
Status Slot::PutBegin(Put put) const {
  const Layout& layout = context_.layout;
  Arguments arguments;
  if (layout.pieces_in.empty()) return OkStatus();
  if (layout.by_value) return put(CopyInRowsLaunch(arguments));
  if (layout.fetch) KEEL_TRY(put(FetchLaunch(arguments)));
  return put(CopyInLaunch(arguments));
}

template <class Put>
Status Slot::PutEnd(bool copies, Put put) const {
  const Layout& layout = context_.layout;
  Arguments arguments;
  if (!copies || layout.pieces_out.empty()) return put(MarkLaunch(arguments));
  if (layout.fetch && layout.pieces_in.empty()) KEEL_TRY(put(FetchLaunch(arguments)));
  return put(CopyOutLaunch(arguments));
}

// --- Recording -----------------------------------------------------------------------------------

std::vector<std::uint64_t> Slot::TraceKey(std::uint32_t command) const {
  std::vector<std::uint64_t> key;
  for (const Operand& operand :
       std::get<command::Traced>(context_.program.commands()[command]).uses) {
    key.push_back(addresses_[operand.binding.index].value());
    // Only where the address is the caller's: what is copied or mapped is the slot's own.
    const std::uint32_t binding = operand.binding.index;
    const BindingLayout& layout = context_.layout.bindings[binding];
    const bool callers = (layout.policy == Policy::kRetrace || layout.dynamic) &&
                         addresses_[binding] != homes_[binding] && !in_window(binding);
    key.push_back(callers ? generations_[binding] : 0);
  }
  return key;
}

Result<hal::GraphHandle> Slot::FindOrTrace(std::uint32_t command, Reason reason,
                                           ReplayReport& report) {
  const auto& traced = std::get<command::Traced>(context_.program.commands()[command]);
  if (traced.recorded) return TakeGraph(traced, reason, report);
  const Clock::time_point begin = Clock::now();
  std::list<Trace>& traces = traces_[command];
  std::vector<std::uint64_t> key = TraceKey(command);
  const auto found = std::find_if(traces.begin(), traces.end(),
                                  [&](const Trace& trace) { return trace.key == key; });
  if (found != traces.end()) {
    traces.splice(traces.begin(), traces, found);
    ++report.traces_reused;
    report.Add({.kind = ActionKind::kTraceReused, .reason = reason, .host_ns = NsSince(begin)});
    return traces.front().graph.get();
  }
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

Result<Slot::Recording> Slot::RecordStretch(std::size_t index, bool copies, Reason reason,
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
  if (index == 0 && copies) {
    KEEL_TRY(PutBegin(add));
    if (before) recording.copy_in = *before;
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
  if (index + 1 == layout.stretches.size()) KEEL_TRY(PutEnd(copies, add));
  if (!before) return Recording();
  KEEL_ASSIGN(recording.exec, hal::GraphExec::Create(recording.graph));
  ++report.recorded;
  return recording;
}

Status Slot::Record(Reason reason, ReplayReport& report) {
  const Clock::time_point begin = Clock::now();
  const std::uint32_t before = report.recorded;
  const auto traced = [&] {
    return report.host_ns(ActionKind::kTraced) + report.host_ns(ActionKind::kTraceReused);
  };
  const std::int64_t traced_before = traced();
  std::vector<std::vector<Recording>> made(takes_.size());
  ReplayReport again;  // of the second take: traces that the first one made are no news
  for (std::size_t take = 0; take < made.size(); ++take) {
    made[take].resize(context_.layout.stretches.size());
    for (std::size_t i = 0; i < made[take].size(); ++i) {
      if (context_.layout.stretches[i].eager) continue;
      KEEL_ASSIGN(made[take][i], RecordStretch(i, take == 0, reason, take == 0 ? report : again));
    }
  }
  report.recorded += again.recorded;
  report.traced += again.traced;  // of functions that are asked for a graph each time
  for (std::size_t i = 0; i < made.size(); ++i) {
    Take& take = takes_[i];
    take.recordings = std::move(made[i]);
    // They were made with the addresses as they are now.
    take.marked_commands.clear();
    take.marked_traces.clear();
    std::fill(take.command_marked.begin(), take.command_marked.end(), std::nullopt);
  }
  recorded_ = true;
  rows_changed_ = false;
  report.Add({.kind = ActionKind::kRecorded,
              .reason = reason,
              .count = report.recorded - before,
              .host_ns = NsSince(begin) - (traced() - traced_before)});
  return OkStatus();
}

Slot::Recorded Slot::At(const Take& take, std::uint32_t command) const {
  const Recording& recording = take.recordings[stretch_of_[command]];
  const std::uint32_t first = context_.layout.stretches[stretch_of_[command]].first;
  return {.exec = recording.exec.get(), .node = recording.nodes[command - first]};
}

Status Slot::Patch(ReplayReport& report) {
  Take& take = Now();
  if (!take.marked_commands.empty()) KEEL_TRY(PatchCommands(take, report));
  // A step without copies leaves them to the next one that has some.
  if (rows_changed_ && context_.layout.by_value && &take == &takes_.front()) {
    KEEL_TRY(PatchRows(take, report));
  }
  return take.marked_traces.empty() ? OkStatus() : PatchTraces(take, report);
}

Status Slot::PatchCommands(Take& take, ReplayReport& report) {
  hal::Device& device = context_.device();
  const Clock::time_point begin = Clock::now();
  std::uint32_t patched = 0;
  std::array<std::uint32_t, kReasons> counts{};
  while (!take.marked_commands.empty()) {
    const std::uint32_t command = take.marked_commands.back();
    const Recorded at = At(take, command);
    KEEL_TRY(device.SetNodeParams(
        at.exec, at.node,
        CommandAt(context_.program.commands()[command], addresses_, device.id(), arguments_)));
    take.marked_commands.pop_back();
    ++counts[static_cast<std::size_t>(
        std::exchange(take.command_marked[command], std::nullopt).value_or(Reason::kMoved))];
    ++patched;
  }
  const std::int64_t ns = NsSince(begin);
  report.patched += patched;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    // Each command costs about the same.
    report.Add({.kind = ActionKind::kPatched,
                .reason = static_cast<Reason>(i),
                .count = counts[i],
                .host_ns = ns * counts[i] / patched});
  }
  return OkStatus();
}

// Launches that are queued keep the rows that they were launched with.
Status Slot::PatchRows(const Take& take, ReplayReport& report) {
  const Clock::time_point begin = Clock::now();
  const Recording& first = take.recordings.front();
  Arguments arguments;
  KEEL_TRY(context_.device().SetNodeParams(first.exec.get(), first.copy_in,
                                           CopyInRowsLaunch(arguments)));
  rows_changed_ = false;
  report.Charge(ActionKind::kRebound, NsSince(begin));
  return OkStatus();
}

Status Slot::PatchTraces(Take& take, ReplayReport& report) {
  hal::Device& device = context_.device();
  while (!take.marked_traces.empty()) {
    const Clock::time_point begin = Clock::now();
    const std::uint32_t command = take.marked_traces.back();
    const std::uint32_t traced = report.traced;
    KEEL_ASSIGN(const hal::GraphHandle child,
                FindOrTrace(command, trace_reasons_[command], report));
    const Recorded at = At(take, command);
    const Clock::time_point exchanging = Clock::now();
    Status status = device.SetNodeParams(at.exec, at.node, hal::ChildGraph{child});
    if (status.code() == StatusCode::kDeviceLost) return status;
    report.Charge(report.traced != traced ? ActionKind::kTraced : ActionKind::kTraceReused,
                  NsSince(exchanging));
    // The new trace has other nodes than the old one, or the device does not update: record anew.
    if (!status.ok()) status = Record(Reason::kTopology, report);
    context_.choices.TraceTook(static_cast<double>(NsSince(begin)) / 1e3);
    KEEL_TRY(status);
    if (take.marked_traces.empty()) break;  // recorded anew
    take.marked_traces.pop_back();
    take.command_marked[command].reset();
  }
  return OkStatus();
}

// --- Launching -----------------------------------------------------------------------------------

Status Slot::QueueWaits(hal::StreamHandle stream) {
  // They are kept until a step is queued behind them: if this one fails, the next waits as well.
  for (Reader& reader : before_next_) {
    if (reader.stream == stream) continue;
    KEEL_TRY(NeedEvent(reader));
    KEEL_TRY(context_.device().WaitEvent(stream, reader.event.get()));
  }
  return OkStatus();
}

Status Slot::Launch(hal::StreamHandle stream, ReplayReport& report) {
  if (!before_next_.empty()) KEEL_TRY(QueueWaits(stream));
  hal::Device& device = context_.device();
  const std::vector<Recording>& recordings = Now().recordings;
  report.graphs = 0;
  for (std::size_t i = 0; i < recordings.size(); ++i) {
    const Stretch& stretch = context_.layout.stretches[i];
    if (!stretch.eager && !recordings[i].exec) continue;
    const Status status =
        stretch.eager
            ? Enqueue(device, stream, context_.program.commands()[stretch.first], addresses_, false)
            : device.LaunchGraph(recordings[i].exec.get(), stream);
    if (!status.ok()) {
      // A command that is called may have queued something before it failed.
      if (i != 0 || stretch.eager) LostTrack(stream);
      return status;
    }
    report.graphs += stretch.eager ? 0 : 1;
  }
  timeline_.Launched(stream);
  if (!before_next_.empty()) before_next_.clear();
  return OkStatus();
}

Status Slot::RunEagerly(hal::StreamHandle stream, ReplayReport& report) {
  if (!before_next_.empty()) KEEL_TRY(QueueWaits(stream));
  hal::Device& device = context_.device();
  const auto put = [&](const hal::KernelLaunch& launch) {
    return device.LaunchKernel(stream, launch);
  };
  const auto run = [&]() -> Status {
    if (copies()) KEEL_TRY(PutBegin(put));
    for (const ProgramCommand& command : context_.program.commands()) {
      KEEL_TRY(Enqueue(device, stream, command, addresses_, false));
    }
    return PutEnd(copies(), put);
  };
  Status status = run();
  if (status.ok()) {
    timeline_.Launched(stream);
    before_next_.clear();
    report.eager = true;
  } else {
    LostTrack(stream);
  }
  return status;
}

}  // namespace keel::graph
