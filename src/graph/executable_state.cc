#include "graph/executable_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <utility>

#include "keel/graph/scratch_arena.h"

namespace keel::graph {
namespace {

using Clock = std::chrono::steady_clock;

// How long an Acquire that finds no slot sleeps before it looks at the timelines again, unless one
// is given back meanwhile.
constexpr std::chrono::microseconds kFirstLook{20};
constexpr std::chrono::microseconds kLastLook{500};
// A mark never comes if the device is lost, and only a call of the driver tells.
constexpr std::chrono::milliseconds kAskDevice{5};

std::atomic<std::uint64_t> uses{0};

std::int64_t NsSince(Clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
}

bool HasEager(const Program& program) {
  return std::any_of(program.commands().begin(), program.commands().end(),
                     [](const ProgramCommand& command) {
                       return std::holds_alternative<command::Eager>(command);
                     });
}

int WarmUp(const ExecutableOptions& options, const Program& program) {
  if (options.warm_up >= 0) return options.warm_up;
  return program.has_traced() ? 1 : 0;
}

}  // namespace

ExecutableState::ExecutableState(std::shared_ptr<const Program> its_program,
                                 std::shared_ptr<memory::DeviceMemory> its_memory,
                                 ExecutableOptions its_options,
                                 std::shared_ptr<const Layout> its_layout,
                                 std::shared_ptr<AutoPolicy> its_choices)
    : program(std::move(its_program)),
      memory(std::move(its_memory)),
      options(std::move(its_options)),
      layout(std::move(its_layout)),
      choices(std::move(its_choices)),
      opaque_(program->has_traced() || HasEager(*program)),
      eager_(HasEager(*program)),
      warm_up_(WarmUp(options, *program)) {
  const MutexLock lock(mutex_);
  defaults_.resize(program->bindings().size());
}

ExecutableState::~ExecutableState() {
  std::unique_ptr<SlotSet> set;
  {
    const MutexLock lock(mutex_);
    set = std::move(set_ != nullptr ? set_ : half_made_);
  }
  SlotSet::Retire(std::move(set), Deadline::After(options.patience), options.budget, this);
}

// --- Bindings ------------------------------------------------------------------------------------

Status ExecutableState::CheckId(std::uint32_t binding) const {
  if (binding < layout->bindings.size()) return OkStatus();
  return InvalidArgument(fmt::format("program '{}' has no binding {}: it has {}", program->name(),
                                     binding, layout->bindings.size()));
}

Status ExecutableState::Check(std::uint32_t binding, const Buffer& buffer) const {
  KEEL_TRY(CheckId(binding));
  const BindingLayout& its = layout->bindings[binding];
  const BindingSpec& spec = program->bindings()[binding];
  if (its.policy == Policy::kInPlace) {
    return FailedPrecondition(
        fmt::format("binding '{}' ({}) is in the slot's own memory: use Lease::address{}",
                    spec.name, AccessName(spec.access), its.out ? " and Lease::Hold" : ""));
  }
  if (its.policy == Policy::kRemap) {
    if (buffer.memory == nullptr || !*buffer.memory) {
      return InvalidArgument(fmt::format(
          "binding '{}' is remapped: the buffer must bring its physical memory", spec.name));
    }
    if (buffer.memory->size() == its.window) return OkStatus();
    return InvalidArgument(fmt::format("binding '{}' is remapped: its memory must have {}, not {}",
                                       spec.name, keel::ToString(its.window),
                                       keel::ToString(buffer.memory->size())));
  }
  if (!buffer.address) {
    return InvalidArgument(fmt::format("binding '{}': a buffer without an address", spec.name));
  }
  if (buffer.address.value() % its.alignment != 0) {
    return InvalidArgument(
        fmt::format("binding '{}' is filled in words of {} bytes: {} is not "
                    "aligned to that",
                    spec.name, its.alignment, keel::ToString(buffer.address)));
  }
  if (buffer.size < spec.size) {
    return InvalidArgument(fmt::format("binding '{}' needs {}; the buffer at {} has {}", spec.name,
                                       keel::ToString(spec.size), keel::ToString(buffer.address),
                                       keel::ToString(buffer.size)));
  }
  return OkStatus();
}

Status ExecutableState::Bind(std::uint32_t binding, Buffer buffer) {
  KEEL_TRY(Here());
  if (!Fits(binding, buffer)) KEEL_TRY(Check(binding, buffer));
  const MutexLock lock(mutex_);
  defaults_[binding] = std::move(buffer);
  ChangedLocked(binding);
  return OkStatus();
}

void ExecutableState::ChangedLocked(std::uint32_t binding) {
  if (set_ == nullptr) return;  // slots that are made later read everything
  log_.push_back(binding);
  // What every slot has read is dropped; one that lags too far behind reads everything.
  if (log_.size() < 4 * (defaults_.size() + 16)) return;
  const std::uint64_t end = log_begin_ + log_.size();
  for (const std::unique_ptr<Slot>& slot : set_->slots()) {
    if (slot->use.caught_up != end) slot->use.fresh = true;
  }
  log_begin_ = end;
  log_.clear();
}

void ExecutableState::CatchUpLocked(Slot& slot) {
  const auto take = [&](std::uint32_t binding) KEEL_REQUIRES(mutex_) {
    slot.SetDefault(binding, defaults_[binding] ? &*defaults_[binding] : nullptr);
    if (layout->bindings[binding].dynamic) slot.Reconsider(binding);
  };
  slot.BeginLease();
  const std::uint64_t end = log_begin_ + log_.size();
  if (std::exchange(slot.use.fresh, false)) {
    for (std::uint32_t i = 0; i < defaults_.size(); ++i) take(i);
  } else {
    for (std::uint64_t i = slot.use.caught_up; i < end; ++i) take(log_[i - log_begin_]);
  }
  slot.use.caught_up = end;
}

// --- Slots ---------------------------------------------------------------------------------------

Status ExecutableState::NeedSlots(Deadline deadline) {
  std::unique_ptr<SlotSet> half_made;
  {
    std::chrono::microseconds look = kFirstLook;
    const MutexLock lock(mutex_);
    while (changing_) {
      if (deadline.Passed()) {
        return DeadlineExceeded(fmt::format(
            "the slots of '{}' were not made in time by another step", program->name()));
      }
      ++waiting_;
      RestLocked(look, deadline);
      --waiting_;
    }
    if (set_ != nullptr) return OkStatus();
    changing_ = true;  // what the budget gives is not to be given up before there is something
    half_made = std::move(half_made_);
  }
  Result<std::unique_ptr<SlotSet>> set = CreateSlots(half_made, deadline);
  const MutexLock lock(mutex_);
  changing_ = false;
  half_made_ = std::move(half_made);
  if (waiting_ != 0) released_.NotifyAll();
  KEEL_TRY(set.status());
  set_ = *std::move(set);
  next_ = 0;
  log_.clear();
  log_begin_ = 0;
  return OkStatus();
}

Result<std::unique_ptr<SlotSet>> ExecutableState::CreateSlots(std::unique_ptr<SlotSet>& half_made,
                                                              Deadline deadline) {
  if (half_made == nullptr) {
    if (options.budget != nullptr) {
      KEEL_TRY(options.budget->Take(
          shared_from_this(), SlotSet::BytesFor(*layout, device().capabilities(), options.slots)));
    }
    half_made = std::make_unique<SlotSet>(
        program, layout, choices, memory, options.slots, options.kept_traces,
        options.scratch != nullptr ? options.scratch->address() : DeviceAddress());
  }
  Status made = half_made->Make(deadline);
  if (made.ok()) return std::move(half_made);
  // Whoever waits in slices, and tries again after each, takes memory once.
  if (made.code() == StatusCode::kDeadlineExceeded) return made;
  // What was queued may not be done, and writes to the memory.
  SlotSet::Retire(std::move(half_made), deadline, options.budget, this);
  return made;
}

bool ExecutableState::InUseLocked() const {
  return std::any_of(
      set_->slots().begin(), set_->slots().end(),
      [](const std::unique_ptr<Slot>& slot) { return slot->use.taken() || slot->use.held != 0; });
}

bool ExecutableState::TryGiveUp() {
  std::unique_ptr<SlotSet> set;  // ends without the lock
  const MutexLock lock(mutex_);
  set = TakeUnusedLocked();
  if (set == nullptr) return set_ == nullptr && half_made_ == nullptr && !changing_;
  evicted_ = true;
  ++totals_.evictions;
  return true;
}

std::unique_ptr<SlotSet> ExecutableState::TakeUnusedLocked() {
  if (changing_ || waiting_ != 0) return nullptr;
  // On a device that is lost nothing runs any more.
  const bool lost = device().Health().code() == StatusCode::kDeviceLost;
  if (half_made_ != nullptr) {
    const bool idle = lost || half_made_->WaitIdle(Deadline::Now()).ok();
    return idle ? std::move(half_made_) : nullptr;
  }
  if (set_ == nullptr || InUseLocked()) return nullptr;
  return lost || set_->Idle() ? std::move(set_) : nullptr;
}

Slot* ExecutableState::PickLocked(hal::StreamHandle stream) {
  const std::vector<std::unique_ptr<Slot>>& slots = set_->slots();
  Slot* in_order = nullptr;
  for (std::size_t i = 0, at = next_; i < slots.size(); ++i, at = After(at)) {
    Slot& slot = *slots[at];
    if (slot.use.taken() || slot.use.held != 0) continue;
    // The stream sees to the order, and there is nothing to wait for: whether it is idle, which is
    // a look at memory that the device writes, does not matter.
    const bool rewrites = layout->rewrites || choices->remaps();
    if (!rewrites && slot.timeline().stream() == stream && !slot.timeline().lost_track()) {
      return &slot;
    }
    (void)slot.timeline().Look(device());  // it stays busy, and whoever waits asks again
    if (slot.timeline().Idle()) return &slot;
    if (in_order == nullptr && slot.timeline().stream() == stream) in_order = &slot;
  }
  return in_order;
}

Result<Slot*> ExecutableState::Acquire(hal::StreamHandle stream, Deadline deadline) {
  if (options.budget != nullptr) {
    last_use_.store(uses.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  KEEL_TRY(device().Health());
  std::optional<Clock::time_point> begin;
  InTheWay in_the_way;  // when it was
  Clock::time_point asked;
  std::chrono::microseconds look = kFirstLook;
  mutex_.Lock();
  Slot* slot = nullptr;
  Status status;
  while (true) {
    if (set_ == nullptr) {  // not made yet, or given up
      mutex_.Unlock();
      status = NeedSlots(deadline);
      mutex_.Lock();
      if (!status.ok()) break;
      continue;
    }
    slot = PickLocked(stream);
    if (slot != nullptr) break;
    if (!begin) {
      asked = *(begin = Clock::now());
      in_the_way = LookLocked();
    }
    status = AskLocked(asked);
    if (!status.ok()) break;
    if (deadline.Passed()) {
      status = DeadlineExceeded(DescribeLocked());
      break;
    }
    ++waiting_;
    RestLocked(look, deadline);
    --waiting_;
  }
  if (slot == nullptr) {
    mutex_.Unlock();
    return status;
  }
  slot->use.leased = true;
  slot->use.stream = stream;
  slot->use.mark = 0;
  slot->use.asked = {};
  slot->use.looks = 0;
  slot->use.warmed_up = false;
  slot->use.report.Clear();
  slot->use.report.slot = slot->index();
  next_ = After(slot->index());
  CatchUpLocked(*slot);
  mutex_.Unlock();
  if (begin) {
    slot->use.report.waited_ns = NsSince(*begin);
    slot->use.report.Add({.kind = ActionKind::kWaited,
                          .reason = in_the_way.Of(*slot),
                          .host_ns = slot->use.report.waited_ns});
  }
  return slot;
}

void ExecutableState::RestLocked(std::chrono::microseconds& look, Deadline deadline) {
  Clock::time_point until = Clock::now() + look;
  if (!deadline.never()) until = std::min(until, deadline.when());
  released_.WaitUntil(mutex_, until);
  look = std::min(2 * look, kLastLook);
}

Status ExecutableState::AskLocked(Clock::time_point& asked) {
  KEEL_TRY(device().Health());
  if (Clock::now() - asked < kAskDevice) return OkStatus();
  asked = Clock::now();
  for (const std::unique_ptr<Slot>& slot : set_->slots()) {
    if (slot->timeline().Idle()) continue;
    // What a lease has is looked at only.
    const Status status = slot->use.leased ? slot->timeline().StreamDone(device()).status()
                                           : slot->timeline().Ask(device());
    if (status.code() == StatusCode::kDeviceLost) return status;
  }
  return OkStatus();
}

ExecutableState::InTheWay ExecutableState::LookLocked() const {
  InTheWay found;
  for (const std::unique_ptr<Slot>& slot : set_->slots()) {
    const std::uint64_t bit = std::uint64_t{1} << slot->index();
    if (slot->use.taken()) {
      found.leased |= bit;
    } else if (slot->use.held != 0) {
      found.held |= bit;
    }
  }
  return found;
}

std::string ExecutableState::DescribeLocked() const {
  const InTheWay found = LookLocked();
  const int leased = std::popcount(found.leased);
  const int held = std::popcount(found.held);
  const int running = static_cast<int>(set_->slots().size()) - leased - held;
  return fmt::format(
      "no slot of '{}' became free in time: of {}, {} run on other streams, {} are leased, {} hold "
      "outputs that were not let go",
      program->name(), set_->slots().size(), running, leased, held);
}

void ExecutableState::Release(Slot& slot) noexcept {
  if (!home_.here()) return;
  const ReplayReport& report = slot.use.report;
  const MutexLock lock(mutex_);
  if (slot.use.mark != 0) {
    ++totals_.steps;
    totals_.graphs_launched += report.graphs;
    totals_.eager_steps += report.eager ? 1 : 0;
    totals_.copied_in += report.copied_in;
    totals_.copied_out += report.copied_out;
  }
  if (!report.actions().empty()) {
    totals_.rows_rebound += report.rebound;
    totals_.commands_patched += report.patched;
    totals_.bindings_remapped += report.remapped;
    totals_.graphs_recorded += report.recorded;
    totals_.commands_traced += report.traced;
    totals_.waits += report.waited_ns != 0 ? 1 : 0;
    totals_.waited_ns += static_cast<std::uint64_t>(report.waited_ns);
    totals_.traces_reused += report.traces_reused;
    totals_.policy_changes += report.chosen;
    for (std::size_t i = 0; i < kActionKinds; ++i) totals_.host_ns[i] += report.host_ns()[i];
  }
  slot.use.leased = false;
  if (waiting_ != 0) released_.NotifyAll();
}

// --- After the launch ----------------------------------------------------------------------------

Status ExecutableState::Wait(Slot& slot, Deadline deadline) {
  if (slot.use.mark == 0) return FailedPrecondition("nothing was launched with this lease");
  return slot.timeline().Wait(device(), slot.use.mark, deadline);
}

bool ExecutableState::Ended(Slot& slot) {
  Timeline& timeline = slot.timeline();
  (void)timeline.Look(device());
  if (timeline.Reached(slot.use.mark) || !device().Health().ok()) return true;
  // Its first look is one at the mark alone: most ask when it is there.
  const Clock::time_point now = Clock::now();
  if (slot.use.asked == Clock::time_point()) slot.use.asked = now;
  if (now - slot.use.asked < kAskDevice) return false;
  slot.use.asked = now;
  return timeline.Ask(device()).code() == StatusCode::kDeviceLost ||
         timeline.Reached(slot.use.mark);
}

Status ExecutableState::Hold(Slot& slot, std::uint32_t binding) {
  KEEL_TRY(Here());
  KEEL_TRY(CheckId(binding));
  const BindingLayout& its = layout->bindings[binding];
  const std::string& name = program->bindings()[binding].name;
  if (slot.use.mark == 0) return FailedPrecondition("nothing was launched with this lease");
  if (!its.out || !slot.in_slot(binding)) {
    return FailedPrecondition(fmt::format(
        "'{}' is no output in the slot's own memory (access {}, policy {})", name,
        AccessName(program->bindings()[binding].access), PolicyName(choices->at(binding))));
  }
  const MutexLock lock(mutex_);
  ++slot.use.held;
  return OkStatus();
}

Status ExecutableState::LetGo(Slot& slot, std::span<const hal::StreamHandle> readers) {
  KEEL_TRY(Here());
  Status first;
  std::vector<std::pair<memory::PooledEvent, hal::StreamHandle>> events;
  const auto record = [&](hal::StreamHandle reader) {
    const Result<hal::CaptureState> capture = device().GetCaptureState(reader);
    // An event would become part of the capture, and its wait drag the next step into it.
    if (capture.ok() && *capture != hal::CaptureState::kNone) {
      events.emplace_back(memory::PooledEvent(), reader);
      return;
    }
    Result<memory::PooledEvent> event = memory->events().Acquire();
    Status status = event.ok() ? event->Record(reader) : event.status();
    if (status.ok()) {
      events.emplace_back(*std::move(event), reader);
      return;
    }
    // Without an event only waiting keeps the next step from overwriting what is being read.
    status = device().SynchronizeStream(reader, Deadline::After(options.patience));
    if (!status.ok() && first.ok()) first = status;
  };
  // The step's own stream may have read it after the step's mark.
  record(slot.use.stream);
  for (const hal::StreamHandle reader : readers) {
    if (reader != slot.use.stream) record(reader);
  }
  const MutexLock lock(mutex_);
  for (auto& [event, stream] : events) slot.WaitBeforeNext(std::move(event), stream);
  --slot.use.held;
  if (waiting_ != 0) released_.NotifyAll();
  return first;
}

// --- The whole -----------------------------------------------------------------------------------

ExecutableStats ExecutableState::Stats() const {
  if (!home_.here()) return {};
  const MutexLock lock(mutex_);
  ExecutableStats stats = totals_;
  if (set_ != nullptr) stats.slot_bytes = set_->bytes();
  if (half_made_ != nullptr) stats.slot_bytes = half_made_->bytes();
  return stats;
}

Status ExecutableState::Synchronize(Deadline deadline) {
  KEEL_TRY(Here());
  std::chrono::microseconds look = kFirstLook;
  Clock::time_point asked = Clock::now();
  const MutexLock lock(mutex_);
  // Slots that were given up meanwhile were idle.
  const SlotSet* const set = set_.get();
  std::vector<std::uint64_t> marks;
  if (set != nullptr) {
    for (const std::unique_ptr<Slot>& slot : set->slots()) {
      marks.push_back(slot->timeline().launched());
    }
  }
  for (std::size_t i = 0; i < marks.size(); ++i) {
    while (set_.get() == set) {
      Slot& slot = *set->slots()[i];
      if (!slot.use.leased) (void)slot.timeline().Look(device());
      if (slot.timeline().Reached(marks[i])) break;
      if (slot.use.leased && slot.timeline().lost_track()) {
        const Result<bool> done = slot.timeline().StreamDone(device());
        if (done.ok() && *done) break;
      }
      KEEL_TRY(AskLocked(asked));
      if (deadline.Passed()) {
        return DeadlineExceeded(
            fmt::format("slot {} of '{}' has a step that is not done", i, program->name()));
      }
      ++waiting_;
      RestLocked(look, deadline);
      --waiting_;
    }
  }
  return OkStatus();
}

Status ExecutableState::Close(Deadline deadline) {
  KEEL_TRY(Here());
  {
    const MutexLock lock(mutex_);
    if (set_ != nullptr && InUseLocked()) {
      return FailedPrecondition(fmt::format("'{}' is in use: {}", program->name(),
                                            "a lease or a held output was not let go"));
    }
  }
  Status waited = Synchronize(deadline);
  if (!waited.ok() && waited.code() != StatusCode::kDeviceLost) return waited;
  std::unique_ptr<SlotSet> set;
  {
    std::chrono::microseconds look = kFirstLook;
    const MutexLock lock(mutex_);
    while (true) {
      if (!changing_ && set_ == nullptr && half_made_ == nullptr) return waited;
      set = TakeUnusedLocked();
      if (set != nullptr) break;
      if (set_ != nullptr && (waiting_ != 0 || InUseLocked())) {
        return FailedPrecondition(
            fmt::format("'{}' was used while it was closed", program->name()));
      }
      // An output that was let go is still being read, or a step came in between; or the slots are
      // being made, or were not in time.
      if (deadline.Passed()) {
        return DeadlineExceeded(
            changing_
                ? fmt::format("the slots of '{}' are being made by a step", program->name())
                : fmt::format("the memory of '{}' is still used by the device", program->name()));
      }
      RestLocked(look, deadline);
    }
    // Nobody makes new slots before the old ones are off the budget.
    changing_ = true;
  }
  set.reset();
  if (options.budget != nullptr) options.budget->GiveBack(this);
  const MutexLock lock(mutex_);
  changing_ = false;
  if (waiting_ != 0) released_.NotifyAll();
  return waited;
}

}  // namespace keel::graph
