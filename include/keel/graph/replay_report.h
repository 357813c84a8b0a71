// ReplayReport: what one step did to be able to replay, why, and what it cost.
//
// A step that replays with nothing to do has no actions, and does not look at the clock: what the
// launch itself takes is not in the report. Bytes that the graph itself copies are counted, and
// cost the host nothing. ExecutableStats has the totals of an executable.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "keel/base/export.h"
#include "keel/graph/binding.h"

namespace keel::graph {

enum class ActionKind : std::uint8_t {
  kWaited,       // for the slot's last step, or for another step that has its turn
  kRebound,      // a row of the copies was rewritten
  kPatched,      // parameters of commands were rewritten
  kRemapped,     // physical memory was mapped under the slot's address
  kRecorded,     // the slot's graphs were recorded and instantiated
  kTraced,       // a traced command was captured
  kTraceReused,  // a traced command's graph for these addresses was in the cache
  kRanEagerly,   // commands were put on the stream one by one
  kChose,        // `auto` changed how it reaches a binding
};
inline constexpr std::size_t kActionKinds = 9;

enum class Reason : std::uint8_t {
  kFirstStep,       // the slot has no graph yet
  kWarmUp,          // libraries want to run once before they are captured
  kEagerMode,       // asked for
  kMoved,           // the binding has another address than in the slot's last step
  kReallocated,     // the same address, another generation
  kTopology,        // the new trace has other nodes: updating was refused
  kSlotBusy,        // its last step was still running on another stream
  kTableInUse,      // its last step may still read the table, or use the mapping
  kChurns,          // it moves so often that copying is cheaper
  kSettled,         // it moves so seldom that patching is cheaper
  kEvicted,         // the memory budget had taken the slots
  kLastStepFailed,  // and left the slot in need of repair
  kAhead,           // of other slots, so that their steps need not
  kMappable,        // it moves so often that mapping its memory is cheaper
  kMappingDear,     // mapping its memory takes longer than it was worth
  kNoMemory,        // its buffer brings no physical memory any more
  kCommandsBusy,    // another step was recording, or calling the functions of the commands
  kScratchBusy,     // another step with the same scratch arena was being queued
  kMappingFailed,   // its memory could not be mapped
  kSlotLeased,      // another lease had it
  kSlotHeld,        // it kept outputs that the caller had not let go
};
inline constexpr std::size_t kReasons = 21;

KEEL_EXPORT std::string_view ActionName(ActionKind kind);
KEEL_EXPORT std::string_view ReasonText(Reason reason);

struct Action {
  static constexpr std::uint32_t kNoBinding = ~std::uint32_t{0};
  ActionKind kind = ActionKind::kWaited;
  Reason reason = Reason::kFirstStep;
  std::uint32_t binding = kNoBinding;  // index in the program
  std::uint32_t count = 1;             // commands patched, graphs recorded
  // Of the calling thread. 0: not measured, less than a look at the clock: a choice, and a row that
  // was rewritten. The one call that gives all rows of a step to the graph is the last row's cost.
  std::int64_t host_ns = 0;
};

// Of the calling thread, by the kind of what it was spent on.
using HostNs = std::array<std::int64_t, kActionKinds>;

struct ReplayReport {
  static constexpr std::size_t kMostActions = 8;

  std::uint64_t step = 0;  // of the executable, from 1
  std::uint32_t slot = 0;
  std::uint32_t graphs = 0;  // launched
  Bytes copied_in;           // by the graph, into the slot
  Bytes copied_out;
  std::uint32_t rebound = 0;   // rows rewritten
  std::uint32_t patched = 0;   // commands rewritten
  std::uint32_t remapped = 0;  // bindings
  std::uint32_t recorded = 0;  // graphs instantiated
  std::uint32_t traced = 0;    // commands captured
  std::uint32_t traces_reused = 0;
  std::uint32_t chosen = 0;  // bindings that `auto` reaches otherwise from now on
  bool eager = false;
  std::int64_t waited_ns = 0;

  // The first kMostActions, and every choice of `auto`; `actions_left_out` others had no room.
  // Memory is allocated only for choices that come after the first kMostActions.
  std::span<const Action> actions() const {
    if (!all_.empty()) return all_;
    return {first_.data(), action_count_};
  }
  std::uint32_t actions_left_out = 0;
  void Add(const Action& action) {
    host_ns_[static_cast<std::size_t>(action.kind)] += action.host_ns;
    if (action_count_ != kMostActions) {
      first_[action_count_++] = action;
      return;
    }
    if (action.kind != ActionKind::kChose) {
      ++actions_left_out;
      return;
    }
    if (all_.empty()) all_.assign(first_.begin(), first_.end());
    all_.push_back(action);
  }

  // The last action of the kind took so much more.
  void Charge(ActionKind kind, std::int64_t ns) {
    Action* const all = all_.empty() ? first_.data() : all_.data();
    for (std::size_t i = actions().size(); i-- > 0;) {
      if (all[i].kind != kind) continue;
      all[i].host_ns += ns;
      host_ns_[static_cast<std::size_t>(kind)] += ns;
      return;
    }
    Add({.kind = kind, .reason = Reason::kMoved, .host_ns = ns});
  }
  // Of all actions of the kind, also of those that had no room.
  std::int64_t host_ns(ActionKind kind) const { return host_ns_[static_cast<std::size_t>(kind)]; }
  const HostNs& host_ns() const { return host_ns_; }

  // As if new; cheaper.
  void Clear() {
    if (action_count_ != 0) host_ns_ = {};
    step = 0;
    slot = graphs = rebound = patched = remapped = recorded = traced = traces_reused = chosen = 0;
    copied_in = copied_out = {};
    eager = false;
    waited_ns = 0;
    actions_left_out = 0;
    action_count_ = 0;
    all_.clear();
  }

  // For people: one line per action.
  KEEL_EXPORT std::string ToString(std::span<const BindingSpec> bindings) const;

 private:
  std::array<Action, kMostActions> first_{};
  std::size_t action_count_ = 0;  // of these
  std::vector<Action> all_;       // these and further choices, if there are any
  HostNs host_ns_{};
};

// Totals since an executable was made.
struct ExecutableStats {
  std::uint64_t steps = 0;
  std::uint64_t graphs_launched = 0;
  std::uint64_t eager_steps = 0;
  std::uint64_t rows_rebound = 0;
  std::uint64_t commands_patched = 0;
  std::uint64_t bindings_remapped = 0;
  std::uint64_t graphs_recorded = 0;
  std::uint64_t commands_traced = 0;
  std::uint64_t traces_reused = 0;
  std::uint64_t waits = 0;
  std::uint64_t waited_ns = 0;
  std::uint64_t policy_changes = 0;
  std::uint64_t evictions = 0;
  std::uint64_t failed_steps = 0;
  Bytes copied_in;
  Bytes copied_out;
  Bytes slot_bytes;  // held now
  HostNs host_ns{};
};

}  // namespace keel::graph
