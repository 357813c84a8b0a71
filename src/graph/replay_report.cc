#include "keel/graph/replay_report.h"

#include <fmt/format.h>

namespace keel::graph {

std::string_view ActionName(ActionKind kind) {
  switch (kind) {
    case ActionKind::kWaited:
      return "waited";
    case ActionKind::kRebound:
      return "rebound";
    case ActionKind::kPatched:
      return "patched";
    case ActionKind::kRemapped:
      return "remapped";
    case ActionKind::kRecorded:
      return "recorded";
    case ActionKind::kTraced:
      return "traced";
    case ActionKind::kTraceReused:
      return "trace reused";
    case ActionKind::kRanEagerly:
      return "ran eagerly";
    case ActionKind::kChose:
      return "chose";
  }
  return "unknown";
}

std::string_view ReasonText(Reason reason) {
  switch (reason) {
    case Reason::kFirstStep:
      return "the slot had no graph yet";
    case Reason::kWarmUp:
      return "libraries run once before they are captured";
    case Reason::kEagerMode:
      return "asked for";
    case Reason::kMoved:
      return "another address than in the slot's last step";
    case Reason::kReallocated:
      return "the same address, but other memory";
    case Reason::kTopology:
      return "the new trace has other nodes";
    case Reason::kSlotBusy:
      return "the slot's last step ran on another stream";
    case Reason::kTableInUse:
      return "the slot's last step may read the table";
    case Reason::kChurns:
      return "it moves so often that copying is cheaper";
    case Reason::kSettled:
      return "it moves so seldom that patching is cheaper";
    case Reason::kEvicted:
      return "the memory budget had taken the slots";
    case Reason::kLastStepFailed:
      return "the last step failed";
    case Reason::kAhead:
      return "other slots had no graph yet";
    case Reason::kMappable:
      return "it moves so often that mapping its memory is cheaper";
    case Reason::kMappingDear:
      return "mapping its memory takes longer than another way would";
    case Reason::kNoMemory:
      return "its buffer brings no physical memory any more";
    case Reason::kCommandsBusy:
      return "another step was recording or calling the commands' functions";
    case Reason::kScratchBusy:
      return "another step with the same scratch was being queued";
    case Reason::kMappingFailed:
      return "its memory could not be mapped";
    case Reason::kSlotLeased:
      return "another lease had the slot";
    case Reason::kSlotHeld:
      return "the slot kept outputs that were not let go";
  }
  return "unknown";
}

std::string ReplayReport::ToString(std::span<const BindingSpec> bindings) const {
  std::string text = fmt::format(
      "step {} in slot {}: {} launched", step, slot,
      eager ? std::string("nothing") : fmt::format("{} graph{}", graphs, graphs == 1 ? "" : "s"));
  if (copied_in.count() != 0) text += ", " + keel::ToString(copied_in) + " copied in";
  if (copied_out.count() != 0) text += ", " + keel::ToString(copied_out) + " copied out";
  for (const Action& action : actions()) {
    text += fmt::format("\n  {}", ActionName(action.kind));
    if (action.binding < bindings.size())
      text += fmt::format(" '{}'", bindings[action.binding].name);
    if (action.count != 1) text += fmt::format(" ({})", action.count);
    text += fmt::format(": {}", ReasonText(action.reason));
    if (action.host_ns != 0)
      text += fmt::format(", {:.1f} us", static_cast<double>(action.host_ns) / 1e3);
  }
  if (actions_left_out != 0) text += fmt::format("\n  and {} more", actions_left_out);
  return text;
}

}  // namespace keel::graph
