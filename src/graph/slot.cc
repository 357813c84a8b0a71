#include "graph/slot.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "keel/base/log.h"

namespace keel::graph {
namespace {

// The marks are alone in their line of the cache: the device writes them while the host writes
// rows.
constexpr std::uint64_t kRowsAt = 128;
static_assert(Layout::kMostMarks * sizeof(std::uint64_t) <= kRowsAt);

std::int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Slot::Slot(const SlotContext& context, std::uint32_t index) : context_(context), index_(index) {
  const std::size_t bindings = context.layout.bindings.size();
  const std::size_t commands = context.program.commands().size();
  homes_.resize(bindings);
  windows_.resize(bindings);
  addresses_.resize(bindings);
  generations_.resize(bindings);
  bound_.resize(bindings);
  defaults_.resize(bindings);
  takes_.resize(context.layout.may_rest ? 2 : 1);
  for (Take& take : takes_) take.command_marked.resize(commands);
  trace_reasons_.resize(commands);
  stretch_of_.resize(commands);
  for (std::uint32_t s = 0; s < context.layout.stretches.size(); ++s) {
    const Stretch& stretch = context.layout.stretches[s];
    for (std::uint32_t i = stretch.first; i < stretch.last; ++i) stretch_of_[i] = s;
  }
  traces_.resize(commands);
  for (const BindingLayout& binding : context.layout.bindings) missing_ += binding.needs_buffer;
}

Slot::~Slot() {
  const auto check = [this](const Status& status) {
    // On a lost device there is nothing to free.
    if (status.ok() || !context_.device().Health().ok()) return;
    Log(LogLevel::kWarn, "a slot's memory could not be freed: " + status.ToString());
  };
  memory::DeviceAllocator& allocator = context_.memory.allocator();
  for (const DeviceAddress home : late_homes_) check(allocator.Free(home));
  if (block_) check(allocator.Free(block_));
  if (pinned_ != nullptr) check(context_.memory.host().Free(pinned_));
}

Status Slot::Allocate(Deadline deadline) {
  const Layout& layout = context_.layout;
  memory::DeviceMemory& memory = context_.memory;
  hal::Device& device = context_.device();
  const auto size = CheckedAdd(layout.slot_bytes, layout.control_bytes());
  if (!size) return InvalidArgument("the slot's memory is more than there are addresses for");
  KEEL_ASSIGN(block_, memory.allocator().Allocate(*size, context_.memory_stream,
                                                  {.tag = context_.tag, .deadline = deadline}));
  held_.store(size->count(), std::memory_order_relaxed);
  if (!layout.aliased_bytes.empty()) {
    KEEL_ASSIGN(aliased_, AliasedBlock::Create(memory, layout.aliased_bytes, context_.tag));
    held_.fetch_add(aliased_.size().count(), std::memory_order_relaxed);
  }
  const Bytes pinned_size(kRowsAt + (layout.by_value ? 0 : layout.rows * sizeof(CopyRow)));
  KEEL_ASSIGN(pinned_,
              memory.host().Allocate(pinned_size, memory::HostAllocator::kAlignment, deadline));
  std::memset(pinned_, 0, pinned_size.count());
  KEEL_ASSIGN(pinned_address_, device.GetHostAddress(pinned_));
  if (layout.by_value) {
    row_values_ = std::make_unique<CopyRows>();
    rows_ = row_values_->rows.data();
    for (std::uint32_t i = 0; i < layout.rows_in; ++i) {
      row_values_->sizes[i] = static_cast<std::uint32_t>(layout.pieces_in[i].size);
    }
  } else {
    rows_ = reinterpret_cast<CopyRow*>(static_cast<std::byte*>(pinned_) + kRowsAt);
  }
  control_ = block_ + layout.slot_bytes;
  near_ = control_ + Layout::kAlignment;
  const std::uint64_t fetched_from = layout.fetch ? rows_address().value() : 0;
  const Control control{.counts = {},
                        .fetch = {.destination = near_.value(), .source = fetched_from}};
  KEEL_TRY(memory.CopyToDevice(context_.memory_stream, control_, &control, Bytes(sizeof(control)),
                               deadline));
  timeline_.Watch({static_cast<std::uint64_t*>(pinned_), layout.marks()});
  for (std::uint32_t i = 0; i < layout.bindings.size(); ++i) {
    const BindingLayout& binding = layout.bindings[i];
    if (binding.home) homes_[i] = block_ + binding.offset;
    if (binding.aliased) homes_[i] = aliased_.address() + binding.offset;
    if (binding.arena) homes_[i] = context_.arena + binding.offset;
    addresses_[i] = homes_[i];
    if (binding.policy != Policy::kRemap) continue;
    KEEL_TRY(NeedWindow(i));
    addresses_[i] = windows_[i]->range.address();
  }
  return OkStatus();
}

void Slot::BeginLease() {
  idle_ = false;
  rebound_bindings_.clear();  // of a lease that launched nothing
  EndBinding();
  stale_.swap(strays_);
  for (const std::uint32_t binding : stale_) bound_[binding].origin = Origin::kStale;
}

void Slot::SetDefault(std::uint32_t binding, const Buffer* buffer) {
  ++use.looks;
  std::optional<Buffer>& its = defaults_[binding];
  if (buffer != nullptr) {
    its = *buffer;
  } else {
    its.reset();
  }
  if (bound_[binding].origin == Origin::kDefault) Rebind(binding, buffer);
}

void Slot::RestoreDefaults() {
  use.looks += stale_.size();
  for (const std::uint32_t binding : stale_) {
    if (bound_[binding].origin != Origin::kStale) continue;
    bound_[binding].origin = Origin::kDefault;
    Rebind(binding, defaults_[binding] ? &*defaults_[binding] : nullptr);
  }
  stale_.clear();
}

bool Slot::Moves(std::uint32_t binding, const Buffer& buffer) {
  Bound& bound = bound_[binding];
  if (!bound.copied || bound.marked) return false;
  if (bound.buffer.address != buffer.address) {
    if (!RowsAreFree()) return false;
    rows_changed_ = true;
    const BindingLayout& layout = context_.layout.bindings[binding];
    const std::uint64_t address = buffer.address.value();
    if (layout.in_row != kNoRow) rows_[layout.in_row].source = address;
    if (layout.out_row != kNoRow) rows_[layout.out_row].destination = address;
    bound.buffer.address = buffer.address;
    if (layout.dynamic) rebound_bindings_.push_back(binding);
    ++use.report.rebound;
    use.report.Add({.kind = ActionKind::kRebound, .reason = Reason::kMoved, .binding = binding});
  }
  bound.buffer.size = buffer.size;
  bound.buffer.generation = buffer.generation;
  if (bound.buffer.memory != buffer.memory) {
    bound.buffer.memory = buffer.memory;
    if (context_.layout.bindings[binding].dynamic) {
      context_.choices.SetMappable(binding, CanMap(binding, buffer));
    }
  }
  if (buffer.generation != 0) generations_[binding] = buffer.generation;
  return true;
}

void Slot::Rebind(std::uint32_t binding, const Buffer* buffer) {
  Bound& bound = bound_[binding];
  if (buffer == nullptr) {
    if (!bound.has) return MarkBinding(binding);
    bound.has = false;
    bound.buffer = {};
    if (context_.layout.bindings[binding].needs_buffer) ++missing_;
    return MarkBinding(binding);
  }
  if (!bound.has) {
    bound.has = true;
    if (context_.layout.bindings[binding].needs_buffer) --missing_;
  } else if (bound.buffer.address == buffer->address &&
             bound.buffer.generation == buffer->generation &&
             bound.buffer.memory == buffer->memory) {
    return;
  }
  bound.buffer.address = buffer->address;
  bound.buffer.size = buffer->size;
  bound.buffer.generation = buffer->generation;
  if (bound.buffer.memory != buffer->memory) bound.buffer.memory = buffer->memory;
  MarkBinding(binding);
}

// --- Working off what was bound ------------------------------------------------------------------

Status Slot::NotBound() const {
  const std::vector<BindingLayout>& bindings = context_.layout.bindings;
  std::uint32_t missing = 0;
  while (bound_[missing].has || !bindings[missing].needs_buffer) ++missing;
  return FailedPrecondition(
      fmt::format("binding '{}' of program '{}' is not bound: call Bind before Launch",
                  context_.program.bindings()[missing].name, context_.program.name()));
}

Status Slot::Apply(Deadline deadline, ReplayReport& report) {
  EndBinding();
  if (missing_ != 0) return NotBound();
  Applying applying{.deadline = deadline, .report = report};
  // From the end, so that what is done is gone and what is not stays.
  while (!marked_bindings_.empty()) {
    const std::uint32_t binding = marked_bindings_.back();
    KEEL_TRY(ApplyOne(binding, applying));
    marked_bindings_.pop_back();
    bound_[binding].marked = false;
  }
  report.copied_in = copied_in_;
  report.copied_out = copied_out_;
  return OkStatus();
}

Status Slot::ApplyWithoutWaiting(ReplayReport& report) {
  EndBinding();
  if (missing_ != 0) return NotBound();
  Applying applying{.deadline = Deadline::Now(), .report = report};
  std::vector<std::uint32_t> left;
  Status status;
  while (!marked_bindings_.empty()) {
    const std::uint32_t binding = marked_bindings_.back();
    status = ApplyOne(binding, applying);
    if (!status.ok() && status.code() != StatusCode::kDeadlineExceeded) break;
    marked_bindings_.pop_back();
    bound_[binding].marked = !status.ok();
    if (!status.ok()) left.push_back(binding);
    status = OkStatus();
  }
  marked_bindings_.insert(marked_bindings_.end(), left.begin(), left.end());
  return status;
}

Status Slot::ApplyOne(std::uint32_t binding, Applying& applying) {
  ++use.looks;
  const BindingLayout& layout = context_.layout.bindings[binding];
  const Buffer* buffer = bound(binding);
  if (buffer == nullptr && !layout.optional) return OkStatus();  // not bound any more
  Policy policy = context_.choices.at(binding);
  if (buffer == nullptr) policy = Policy::kInPlace;  // an output that stays in the slot
  if (policy == Policy::kResident) return ApplyResident(binding, *buffer);
  if (policy == Policy::kRemap && !layout.dynamic) return Remap(binding, *buffer, applying);

  if (layout.dynamic && buffer != nullptr) {
    const bool can = CanMap(binding, *buffer);
    context_.choices.SetMappable(binding, can);
    if (policy == Policy::kRemap && !can) policy = layout.direct;  // which its judge is told
  }
  const bool remapped = policy == Policy::kRemap;
  const bool was_remapped = in_window(binding);
  const bool copied = policy == Policy::kCopy;
  const bool was_copied = std::exchange(bound_[binding].copied, false);  // until all of it is done
  const bool at_caller = policy == Policy::kPatch || policy == Policy::kRetrace;
  if (!at_caller && !remapped && !homes_[binding]) KEEL_TRY(NeedHome(binding, applying.deadline));
  const std::uint64_t home = homes_[binding].value();
  CopyRow in;
  CopyRow out;
  if (copied) {
    in = {.destination = home, .source = buffer->address.value()};
    out = {.destination = buffer->address.value(), .source = home};
  }
  const bool in_changes = layout.in_row != kNoRow && rows_[layout.in_row] != in;
  const bool out_changes = layout.out_row != kNoRow && rows_[layout.out_row] != out;
  if (in_changes || out_changes) {
    if (!RowsAreFree()) KEEL_TRY(NeedIdle(applying));
    if (in_changes && SetRow(layout.in_row, in)) {
      copied_in_ = copied ? copied_in_ + layout.size : copied_in_ - layout.size;
    }
    if (out_changes && SetRow(layout.out_row, out)) {
      copied_out_ = copied ? copied_out_ + layout.size : copied_out_ - layout.size;
    }
    if (copied) {
      if (layout.dynamic && recorded_) rebound_bindings_.push_back(binding);
      ++applying.report.rebound;
      applying.report.Add(
          {.kind = ActionKind::kRebound, .reason = Reason::kMoved, .binding = binding});
    }
  }
  if (remapped) {
    KEEL_TRY(RemapDynamic(binding, *buffer, applying));
  } else if (windows_[binding] != nullptr && windows_[binding]->memory != nullptr) {
    KEEL_TRY(EndRemap(binding, applying));
  }
  const DeviceAddress aim = remapped    ? windows_[binding]->range.address()
                            : at_caller ? buffer->address
                                        : homes_[binding];
  const bool again = policy == Policy::kRetrace && OtherGeneration(binding, *buffer);
  if (addresses_[binding] != aim || again) {
    // From the slot's own memory to the caller's is a change of policy, and no move.
    const bool moved = at_caller && addresses_[binding] != homes_[binding];
    if (moved && layout.dynamic && recorded_) patched_bindings_.push_back(binding);
    Reason reason = addresses_[binding] == aim ? Reason::kReallocated : Reason::kMoved;
    if (copied && layout.dynamic) reason = Reason::kChurns;
    if (at_caller && was_copied) reason = Reason::kSettled;
    if (remapped) reason = Reason::kMappable;
    if (at_caller && was_remapped) {
      reason = CanMap(binding, *buffer) ? Reason::kMappingDear : Reason::kNoMemory;
    }
    Aim(binding, aim, reason);
  }
  if (buffer != nullptr && buffer->generation != 0) generations_[binding] = buffer->generation;
  bound_[binding].copied = copied;
  return OkStatus();
}

Status Slot::ApplyResident(std::uint32_t binding, const Buffer& buffer) {
  const DeviceAddress before = addresses_[binding];
  const bool other = OtherGeneration(binding, buffer);
  if (before && (before != buffer.address || other)) {
    return FailedPrecondition(fmt::format(
        "binding '{}' was promised not to move: it was at {}{}, and is at {}{}; declare it "
        "in-out if it moves",
        context_.program.bindings()[binding].name, keel::ToString(before),
        other ? fmt::format(" (generation {})", generations_[binding]) : "",
        keel::ToString(buffer.address),
        other ? fmt::format(" (generation {})", buffer.generation) : ""));
  }
  addresses_[binding] = buffer.address;
  if (buffer.generation != 0) generations_[binding] = buffer.generation;
  return OkStatus();
}

// True if the row begins, or ceases, to copy.
bool Slot::SetRow(std::uint32_t row, const CopyRow& value) {
  const bool before = rows_[row].destination != 0;
  rows_[row] = value;
  rows_changed_ = true;
  return before != (value.destination != 0);
}

void Slot::Aim(std::uint32_t binding, DeviceAddress address, Reason reason) {
  const bool moved = addresses_[binding] != address;
  addresses_[binding] = address;
  if (!recorded_) return;
  const BindingLayout& layout = context_.layout.bindings[binding];
  for (Take& take : takes_) {
    const auto mark = [&](std::uint32_t command, std::vector<std::uint32_t>& marked) {
      // The last reason counts: a take that was not launched meanwhile has an older mark.
      if (!std::exchange(take.command_marked[command], reason)) marked.push_back(command);
    };
    if (moved) {
      for (const std::uint32_t command : layout.explicit_uses) mark(command, take.marked_commands);
    }
    for (const std::uint32_t command : layout.traced_uses) mark(command, take.marked_traces);
  }
  for (const std::uint32_t command : layout.traced_uses) {
    trace_reasons_[command] = reason;
  }
}

bool Slot::Idle() {
  (void)timeline_.Look(context_.device());  // if it cannot be asked it is not idle
  if (!timeline_.Idle()) return false;
  while (!before_next_.empty()) {
    if (!NeedEvent(before_next_.back()).ok()) return false;
    const Result<hal::Completion> completion = before_next_.back().event.Query();
    if (!completion.ok() || *completion != hal::Completion::kDone) return false;
    before_next_.pop_back();
  }
  return true;
}

Status Slot::WaitIdle(Deadline deadline) {
  KEEL_TRY(timeline_.Wait(context_.device(), timeline_.launched(), deadline));
  while (!before_next_.empty()) {
    KEEL_TRY(NeedEvent(before_next_.back()));
    KEEL_TRY(before_next_.back().event.Synchronize(deadline));
    before_next_.pop_back();
  }
  return OkStatus();
}

Status Slot::NeedEvent(Reader& reader) {
  if (reader.event) return OkStatus();
  KEEL_ASSIGN(const hal::CaptureState capture, context_.device().GetCaptureState(reader.stream));
  if (capture != hal::CaptureState::kNone) {
    return FailedPrecondition(
        fmt::format("an output of '{}' was let go while a stream that reads it was being captured: "
                    "end the capture first",
                    context_.program.name()));
  }
  KEEL_ASSIGN(memory::PooledEvent event, context_.memory.events().Acquire());
  KEEL_TRY(event.Record(reader.stream));
  reader.event = std::move(event);
  return OkStatus();
}

Status Slot::NeedHome(std::uint32_t binding, Deadline deadline) {
  if (homes_[binding]) return OkStatus();
  const BindingLayout& layout = context_.layout.bindings[binding];
  KEEL_ASSIGN(const DeviceAddress home,
              context_.memory.allocator().Allocate(layout.size, context_.memory_stream,
                                                   {.tag = context_.tag, .deadline = deadline}));
  late_homes_.push_back(home);
  homes_[binding] = home;
  held_.fetch_add(layout.size.count(), std::memory_order_relaxed);
  return OkStatus();
}

Status Slot::NeedIdle(Applying& applying) {
  if (!timeline_.Idle()) {
    const Reason reason = timeline_.lost_track() ? Reason::kLastStepFailed : Reason::kTableInUse;
    const std::int64_t begin = NowNs();
    Status status = timeline_.Wait(context_.device(), timeline_.launched(), applying.deadline);
    const std::int64_t ns = NowNs() - begin;
    applying.report.waited_ns += ns;
    applying.report.Add({.kind = ActionKind::kWaited, .reason = reason, .host_ns = ns});
    KEEL_TRY(status);
  }
  idle_ = true;
  return OkStatus();
}

Status Slot::Remap(std::uint32_t binding, const Buffer& buffer, Applying& applying) {
  Window& window = *windows_[binding];
  if (window.memory == buffer.memory && window.generation == buffer.generation) return OkStatus();
  const std::int64_t asked = NowNs();
  if (!idle_) KEEL_TRY(NeedIdle(applying));
  const std::int64_t begin = NowNs();
  const bool same = window.memory == buffer.memory;
  const Reason reason = window.memory == nullptr ? Reason::kFirstStep
                        : same                   ? Reason::kReallocated
                                                 : Reason::kMoved;
  if (!same) {
    KEEL_TRY(window.mapping.Close());
    window.mapping = {};
    window.memory = nullptr;
    const hal::AccessGrant grant{.device = context_.device().id(),
                                 .access = hal::Access::kReadWrite};
    KEEL_ASSIGN(window.mapping,
                hal::Mapping::Create(window.range, Offset(0), *buffer.memory, {&grant, 1}));
  }
  window.memory = buffer.memory;
  window.generation = buffer.generation;
  if (buffer.generation != 0) generations_[binding] = buffer.generation;
  const std::int64_t end = NowNs();
  ++applying.report.remapped;
  applying.report.Add({.kind = ActionKind::kRemapped,
                       .reason = reason,
                       .binding = binding,
                       .host_ns = end - begin});
  if (context_.layout.bindings[binding].dynamic) {
    // Whoever maps waits, too: all of it is what a move costs.
    context_.choices.RemapTook(binding, static_cast<double>(end - asked) / 1e3);
    if (recorded_) rebound_bindings_.push_back(binding);
  }
  return OkStatus();
}

Status Slot::RemapDynamic(std::uint32_t binding, const Buffer& buffer, Applying& applying) {
  Status status = NeedWindow(binding);
  if (status.ok()) status = Remap(binding, buffer, applying);
  if (status.ok() || status.code() == StatusCode::kDeadlineExceeded ||
      status.code() == StatusCode::kDeviceLost) {
    return status;
  }
  // This step fails with it, and the next try goes another way.
  if (context_.choices.CannotMap(binding)) {
    ++applying.report.chosen;
    applying.report.Add(
        {.kind = ActionKind::kChose, .reason = Reason::kMappingFailed, .binding = binding});
  }
  return status;
}

Status Slot::NeedWindow(std::uint32_t binding) {
  if (windows_[binding] != nullptr) return OkStatus();
  auto window = std::make_unique<Window>();
  KEEL_ASSIGN(window->range, hal::AddressRange::Create(context_.memory.device(),
                                                       context_.layout.bindings[binding].window));
  windows_[binding] = std::move(window);
  return OkStatus();
}

Status Slot::EndRemap(std::uint32_t binding, Applying& applying) {
  if (!idle_) KEEL_TRY(NeedIdle(applying));
  Window& window = *windows_[binding];
  KEEL_TRY(window.mapping.Close());
  window.mapping = {};
  window.memory = nullptr;
  return OkStatus();
}

}  // namespace keel::graph
