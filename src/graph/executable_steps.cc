// ExecutableState: a step, from what was bound to what is on the stream.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "graph/executable_state.h"
#include "graph/turn.h"
#include "keel/base/log.h"
#include "keel/graph/scratch_arena.h"

namespace keel::graph {
namespace {

using Clock = std::chrono::steady_clock;

// The executables whose steps this thread is launching, the innermost first: functions of the
// caller's are called meanwhile, and may launch others.
class Launching {
 public:
  explicit Launching(const ExecutableState* state) : state_(state), outer_(innermost_) {
    innermost_ = this;
  }
  ~Launching() { innermost_ = outer_; }
  Launching(const Launching&) = delete;
  Launching& operator=(const Launching&) = delete;

  // One that a step of `state` would wait for, or whose scratch it would spoil; null: none.
  static const ExecutableState* InTheWayOf(const ExecutableState& state) {
    for (const Launching* each = innermost_; each != nullptr; each = each->outer_) {
      const std::shared_ptr<ScratchArena>& scratch = each->state_->options.scratch;
      if (each->state_ == &state || (scratch != nullptr && scratch == state.options.scratch)) {
        return each->state_;
      }
    }
    return nullptr;
  }

 private:
  static thread_local const Launching* innermost_;
  const ExecutableState* const state_;
  const Launching* const outer_;
};
thread_local const Launching* Launching::innermost_ = nullptr;

std::int64_t NsSince(Clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
}

}  // namespace

Status ExecutableState::Launch(Slot& slot, Deadline deadline) {
  KEEL_TRY(Here());
  if (slot.use.mark != 0) {
    return FailedPrecondition("the lease's step was launched already: acquire another");
  }
  if (const ExecutableState* const outer = Launching::InTheWayOf(*this); outer != nullptr) {
    return FailedPrecondition(
        outer == this
            ? fmt::format("a command of '{0}' launches a step of '{0}', which it would wait for",
                          program->name())
            : fmt::format("a command of '{}' launches a step of '{}', which has the same scratch",
                          outer->program->name(), program->name()));
  }
  const Launching launching(this);
  // What waits for the device comes first: the arena's other users are not kept from their turn by
  // it.
  ReplayReport& report = slot.use.report;
  Status status = CheckNotCaptured(slot);
  if (status.ok()) status = slot.Apply(deadline, report);
  const auto queue = [&] { return QueueStep(slot, deadline); };
  if (status.ok()) {
    status = options.scratch != nullptr && !layout->arena_bytes.empty()
                 ? options.scratch->InTurn(slot.use.stream, deadline, report, queue)
                 : queue();
  }
  if (!status.ok()) {
    const MutexLock lock(mutex_);
    ++totals_.failed_steps;
    return status;
  }
  slot.use.mark = slot.timeline().launched();
  report.step = steps_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (layout->dynamic != 0) Judge(slot);
  return OkStatus();
}

Status ExecutableState::CheckNotCaptured(Slot& slot) {
  const bool launches = options.mode == Mode::kGraph && !NeedsTurn(slot);
  // What is put on such a stream becomes a part of somebody's graph: the mark of the step may never
  // come, or come again and again. A launch is refused by the driver, and costs no call before it.
  if (launches || !device().capabilities().graphs) return OkStatus();
  KEEL_ASSIGN(const hal::CaptureState capture, device().GetCaptureState(slot.use.stream));
  if (capture == hal::CaptureState::kNone) return OkStatus();
  return FailedPrecondition(fmt::format(
      "the stream of a step of '{}' is being captured: end the capture first", program->name()));
}

Status ExecutableState::QueueStep(Slot& slot, Deadline deadline) {
  ReplayReport& report = slot.use.report;
  if (!NeedsTurn(slot)) {
    if (options.mode == Mode::kEager) return QueueEagerly(slot, Reason::kEagerMode);
    KEEL_TRY(slot.Patch(report));
    return slot.Launch(slot.use.stream, report);
  }
  if (!TakeTurn(recording_mutex_, device(), deadline, Reason::kCommandsBusy, report)) {
    KEEL_TRY(device().Health());
    return DeadlineExceeded(
        fmt::format("another step of '{}' was not done in time with recording, or with calling the "
                    "functions of its commands: give the launch more time, or those less to do",
                    program->name()));
  }
  const TimedMutexUnlocker turn(recording_mutex_);
  return QueueInTurn(slot);
}

bool ExecutableState::NeedsTurn(Slot& slot) const {
  if (options.mode == Mode::kEager) return opaque_;
  // A launch calls eager commands; traced ones are in the graph, unless they must be traced again.
  return eager_ || warm_up_.load(std::memory_order_relaxed) > 0 || !slot.recorded() ||
         slot.needs_trace();
}

Status ExecutableState::QueueInTurn(Slot& slot) {
  ReplayReport& report = slot.use.report;
  if (options.mode == Mode::kEager) return QueueEagerly(slot, Reason::kEagerMode);
  // Those who began at once do not all warm up.
  if (warm_up_.load(std::memory_order_relaxed) > 0) {
    KEEL_TRY(QueueEagerly(slot, Reason::kWarmUp));
    warm_up_.fetch_sub(1, std::memory_order_relaxed);
    const MutexLock lock(mutex_);
    slot.use.warmed_up = true;
    return OkStatus();
  }
  if (!slot.recorded()) {
    bool evicted = false;
    {
      const MutexLock lock(mutex_);
      evicted = std::exchange(evicted_, false);
    }
    KEEL_TRY(slot.Record(evicted ? Reason::kEvicted : Reason::kFirstStep, report));
    RecordOthers(slot);
    if (layout->dynamic != 0 && !warned_) WarnOfSharedMemory(slot);
  } else {
    KEEL_TRY(slot.Patch(report));
  }
  return slot.Launch(slot.use.stream, report);
}

Status ExecutableState::QueueEagerly(Slot& slot, Reason reason) {
  const Clock::time_point begin = Clock::now();
  KEEL_TRY(slot.RunEagerly(slot.use.stream, slot.use.report));
  slot.use.report.Add(
      {.kind = ActionKind::kRanEagerly, .reason = reason, .host_ns = NsSince(begin)});
  return OkStatus();
}

void ExecutableState::WarnOfSharedMemory(const Slot& slot) {
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint32_t binding = 0;
  };
  std::vector<Range> ranges;
  for (std::uint32_t i = 0; i < layout->bindings.size(); ++i) {
    const Buffer* const buffer = slot.bound(i);
    if (buffer == nullptr || !buffer->address) continue;
    const std::uint64_t begin = buffer->address.value();
    ranges.push_back({begin, begin + layout->bindings[i].size.count(), i});
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    for (std::size_t j = i + 1; j < ranges.size() && ranges[j].begin < ranges[i].end; ++j) {
      const BindingLayout& one = layout->bindings[ranges[i].binding];
      const BindingLayout& other = layout->bindings[ranges[j].binding];
      if ((!one.out && !other.out) || (!one.dynamic && !other.dynamic)) continue;
      warned_ = true;
      const std::span<const BindingSpec> specs = program->bindings();
      Log(LogLevel::kWarn,
          fmt::format("bindings '{}' and '{}' of '{}' share memory, which the program writes, and "
                      "`auto` may change what one sees of the other: give them another policy",
                      specs[ranges[i].binding].name, specs[ranges[j].binding].name,
                      program->name()));
      return;
    }
  }
}

void ExecutableState::RecordOthers(Slot& like) {
  std::vector<Slot*> others;
  std::vector<Slot*> launched;  // a lease has them, and does nothing more to them
  {
    const MutexLock lock(mutex_);
    for (const std::unique_ptr<Slot>& slot : set_->slots()) {
      if (slot->recorded()) continue;
      if (!slot->use.leased) {
        slot->use.leased = true;
        CatchUpLocked(*slot);
        others.push_back(slot.get());
      } else if (slot->use.warmed_up) {
        slot->use.recording = true;
        launched.push_back(slot.get());
      }
    }
  }
  if (others.empty() && launched.empty()) return;
  const Clock::time_point begin = Clock::now();
  ReplayReport report;
  const auto record = [&](Slot& slot, Status status) {
    if (status.ok()) status = slot.Record(Reason::kFirstStep, report);
    // It is not this step's failure: the slot records in its own first step.
    if (!status.ok() && LogEnabled(LogLevel::kDebug)) {
      Log(LogLevel::kDebug, "a slot is recorded later: " + status.ToString());
    }
  };
  for (Slot* const slot : others) {
    slot->EndBinding();
    for (std::uint32_t i = 0; i < layout->bindings.size(); ++i) {
      if (slot->bound(i) == nullptr && like.bound(i) != nullptr) {
        slot->BindStep(i, *like.bound(i));
      }
    }
    record(*slot, slot->ApplyWithoutWaiting(report));
  }
  for (Slot* const slot : launched) record(*slot, OkStatus());
  // What was done for the other slots is this step's: one action for the recordings, and each of
  // those that are news of a binding.
  ReplayReport& paid = like.use.report;
  paid.recorded += report.recorded;
  paid.traced += report.traced;
  paid.traces_reused += report.traces_reused;
  paid.remapped += report.remapped;
  paid.chosen += report.chosen;
  std::int64_t ns = NsSince(begin);
  for (const Action& action : report.actions()) {
    if (action.kind != ActionKind::kRemapped && action.kind != ActionKind::kChose) continue;
    paid.Add(action);
    ns -= action.host_ns;
  }
  if (report.recorded != 0) {
    paid.Add({.kind = ActionKind::kRecorded,
              .reason = Reason::kAhead,
              .count = report.recorded,
              .host_ns = ns});
  }
  const MutexLock lock(mutex_);
  for (Slot* const slot : others) slot->use.leased = false;
  for (Slot* const slot : launched) slot->use.recording = false;
  if (waiting_ != 0) released_.NotifyAll();
}

void ExecutableState::Judge(Slot& slot) {
  ReplayReport& report = slot.use.report;
  const std::uint64_t step = report.step;
  std::vector<std::uint32_t> changed;
  const auto chose = [&](const AutoPolicy::Choices& choices_made) {
    for (const auto& [binding, reason] : choices_made) {
      changed.push_back(binding);
      ++report.chosen;
      report.Add({.kind = ActionKind::kChose, .reason = reason, .binding = binding});
    }
  };
  if (!slot.rebound_bindings().empty()) {
    chose(choices->Rebound(slot.rebound_bindings(), step));
    slot.rebound_bindings().clear();
  }
  if (!slot.patched_bindings().empty()) {
    chose(choices->Patched(slot.patched_bindings(), report.patched, step));
    slot.patched_bindings().clear();
  }
  if (choices->ShouldSettle(step)) chose(choices->Settle(step));
  if (changed.empty()) return;
  const MutexLock lock(mutex_);
  for (const std::uint32_t binding : changed) ChangedLocked(binding);
}

}  // namespace keel::graph
