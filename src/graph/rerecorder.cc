#include "keel/graph/rerecorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "graph/commands.h"
#include "graph/layout.h"
#include "keel/base/log.h"

namespace keel::graph {
namespace {

bool IsScratch(const BindingSpec& spec) { return spec.access == BindingAccess::kScratch; }

bool IsEager(const ProgramCommand& command) {
  return std::holds_alternative<command::Eager>(command);
}

}  // namespace

Rerecorder::Rerecorder(std::shared_ptr<const Program> program,
                       std::shared_ptr<memory::DeviceMemory> memory, Rerecording how)
    : program_(std::move(program)),
      memory_(std::move(memory)),
      how_(how),
      addresses_(program_->bindings().size()),
      warm_(!program_->has_traced()) {}

Result<std::unique_ptr<Rerecorder>> Rerecorder::Create(std::shared_ptr<const Program> program,
                                                       std::shared_ptr<memory::DeviceMemory> memory,
                                                       Rerecording how) {
  if (program == nullptr) return InvalidArgument("no program");
  if (memory == nullptr) return InvalidArgument("no device memory");
  const hal::Capabilities& can = memory->device()->capabilities();
  if (!can.graphs) return Unimplemented("this device has no graphs to record");
  if (how == Rerecording::kUpdate && !can.graph_update) {
    return Unimplemented("this device does not update graphs: use Rerecording::kInstantiate");
  }
  std::unique_ptr<Rerecorder> made(new Rerecorder(std::move(program), std::move(memory), how));
  KEEL_ASSIGN(made->capture_stream_, hal::Stream::Create(made->memory_->device()));
  KEEL_ASSIGN(made->memory_stream_, hal::Stream::Create(made->memory_->device()));
  KEEL_TRY(made->TakeScratch());
  return made;
}

Rerecorder::~Rerecorder() {
  if (!scratch_) return;
  // Kept from others until the streams that use it are past this point.
  Status status = memory_->allocator().Free(scratch_);
  if (status.ok()) status = memory_->allocator().ForgetStream(memory_stream_.get());
  if (!status.ok() && memory_->device()->Health().ok()) {
    Log(LogLevel::kWarn, fmt::format("scratch memory of '{}' could not be freed: {}",
                                     program_->name(), status.ToString()));
  }
}

Status Rerecorder::TakeScratch() {
  Bytes size;
  std::vector<std::pair<std::size_t, Bytes>> parts;
  for (std::size_t i = 0; i < addresses_.size(); ++i) {
    const BindingSpec& spec = program_->bindings()[i];
    if (!IsScratch(spec)) continue;
    parts.emplace_back(i, size);
    const auto aligned = AlignUp(spec.size, Layout::kAlignment);
    const auto end = aligned ? CheckedAdd(size, *aligned) : std::nullopt;
    if (!end) {
      return InvalidArgument(fmt::format("binding '{}': {} is more than there are addresses for",
                                         spec.name, keel::ToString(spec.size)));
    }
    size = *end;
  }
  if (parts.empty()) return OkStatus();
  KEEL_ASSIGN(scratch_, memory_->allocator().Allocate(
                            size, memory_stream_.get(),
                            {.tag = telemetry::InternTag("graph:" + program_->name())}));
  for (const auto& [binding, offset] : parts) addresses_[binding] = scratch_ + offset;
  return OkStatus();
}

Status Rerecorder::RecordUse(hal::StreamHandle stream) {
  if (!scratch_ ||
      std::find(scratch_users_.begin(), scratch_users_.end(), stream) != scratch_users_.end()) {
    return OkStatus();
  }
  KEEL_TRY(memory_->allocator().RecordUse(scratch_, stream));
  scratch_users_.push_back(stream);
  return OkStatus();
}

Status Rerecorder::Run(hal::StreamHandle stream, std::span<const DeviceAddress> addresses) {
  if (!stream) return InvalidArgument("no stream");
  if (addresses.size() != addresses_.size()) {
    return InvalidArgument(fmt::format("{} addresses for the {} bindings of '{}'", addresses.size(),
                                       addresses_.size(), program_->name()));
  }
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const BindingSpec& spec = program_->bindings()[i];
    if (IsScratch(spec)) continue;
    if (!addresses[i]) {
      return InvalidArgument(
          fmt::format("binding '{}' of program '{}' has no address", spec.name, program_->name()));
    }
    addresses_[i] = addresses[i];
  }
  KEEL_TRY(RecordUse(stream));
  const std::span<const ProgramCommand> commands = program_->commands();
  hal::Device& device = *memory_->device();
  std::size_t graphs = 0;
  for (std::size_t i = 0; i < commands.size();) {
    if (!warm_ || IsEager(commands[i])) {
      KEEL_TRY(Enqueue(device, stream, commands[i], addresses_, false));
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < commands.size() && !IsEager(commands[end])) ++end;
    KEEL_TRY(RunGraph(graphs++, i, end, stream));
    i = end;
  }
  warm_ = true;
  ++stats_.steps;
  return OkStatus();
}

Status Rerecorder::RunGraph(std::size_t index, std::size_t first, std::size_t last,
                            hal::StreamHandle stream) {
  hal::Device& device = *memory_->device();
  KEEL_ASSIGN(hal::Capture capture, hal::Capture::Begin(memory_->device(), capture_stream_.get()));
  for (std::size_t i = first; i < last; ++i) {
    KEEL_TRY(Enqueue(device, capture_stream_.get(), program_->commands()[i], addresses_, true));
  }
  KEEL_ASSIGN(const hal::Graph graph, capture.End());
  ++stats_.captured;
  if (execs_.size() <= index) execs_.resize(index + 1);
  KEEL_TRY(Refresh(execs_[index], graph));
  return execs_[index].Launch(stream);
}

Status Rerecorder::Refresh(hal::GraphExec& exec, const hal::Graph& graph) {
  if (how_ == Rerecording::kUpdate && exec) {
    KEEL_ASSIGN(const hal::UpdateReport report,
                memory_->device()->UpdateExec(exec.get(), graph.get()));
    if (report.updated) {
      ++stats_.updated;
      return OkStatus();
    }
  }
  KEEL_ASSIGN(exec, hal::GraphExec::Create(graph));
  ++stats_.instantiated;
  return OkStatus();
}

}  // namespace keel::graph
