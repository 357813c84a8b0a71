#include "keel/trace/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <utility>

namespace keel::trace {
namespace {

// Sizes come from files: their sum may not fit in 64 bits.
__extension__ using Wide = __int128;

std::uint64_t Clamp(Wide amount) {
  constexpr Wide kMost = UINT64_MAX;
  return static_cast<std::uint64_t>(std::clamp<Wide>(amount, 0, kMost));
}

// Turns events into lives.
class Lives {
 public:
  explicit Lives(const std::vector<Event>& events) {
    // A log that knows no second moment of a free has it at the first.
    completes_ = std::any_of(events.begin(), events.end(), [](const Event& event) {
      return event.action == Action::kFreeCompleted;
    });
  }

  void Add(const Event& event, Moment moment) {
    switch (event.action) {
      case Action::kAlloc:
        End(event.address, moment);  // its free was not recorded
        live_[event.address] = known_.size();
        known_.push_back({.address = event.address,
                          .size = event.size,
                          .stream = event.stream,
                          .start = moment,
                          .stack = event.stack,
                          .tag = event.tag});
        break;
      case Action::kFreeRequested:
        if (const auto found = live_.find(event.address); found != live_.end()) {
          known_[found->second].free_requested = moment;
        } else {
          requested_before_[event.address] = moment;
        }
        if (!completes_) Complete(event, moment);
        break;
      case Action::kFreeCompleted:
        Complete(event, moment);
        break;
      default:
        break;
    }
  }

  // What is active at the end and was allocated before the recording began.
  void AddAtEnd(const Segment& segment) {
    for (const Block& block : segment.blocks) {
      if (block.state == BlockState::kInactive) continue;
      if (!live_.emplace(block.address, 0).second) continue;
      Allocation& allocation = before_.emplace_back();
      allocation.address = block.address;
      allocation.size = block.requested_size;
      allocation.stream = segment.stream;
      allocation.stack = block.stack;
      allocation.tag = block.tag;
      if (const auto found = requested_before_.find(block.address);
          found != requested_before_.end()) {
        allocation.free_requested = found->second;
      }
    }
  }

  std::vector<Allocation> Take() && {
    before_.insert(before_.end(), known_.begin(), known_.end());
    return std::move(before_);
  }

 private:
  // False if nothing is known to be there.
  bool End(std::uint64_t address, Moment moment) {
    const auto found = live_.find(address);
    if (found == live_.end()) return false;
    known_[found->second].end = moment;
    live_.erase(found);
    return true;
  }

  void Complete(const Event& event, Moment moment) {
    if (End(event.address, moment)) return;
    Allocation& allocation = before_.emplace_back();
    allocation.address = event.address;
    allocation.size = event.size;
    allocation.stream = event.stream;
    allocation.end = moment;
    // The stack and the tag are those of the free: they say nothing about the block.
    if (const auto found = requested_before_.find(event.address);
        found != requested_before_.end()) {
      allocation.free_requested = found->second;
      requested_before_.erase(found);
    }
  }

  bool completes_ = false;
  std::vector<Allocation> before_, known_;
  std::unordered_map<std::uint64_t, std::size_t> live_;  // in known_, by address
  std::unordered_map<std::uint64_t, Moment> requested_before_;
};

Wide ReservedChange(const Event& event) {
  switch (event.action) {
    case Action::kSegmentAlloc:
    case Action::kSegmentMap:
      return event.size;
    case Action::kSegmentFree:
    case Action::kSegmentUnmap:
      return -Wide{event.size};
    default:
      return 0;
  }
}

void FillLevels(const std::vector<Event>& events, Wide reserved_at_end, Timeline& timeline) {
  std::vector<TimelinePoint>& points = timeline.points;
  std::vector<Wide> change(points.size());
  for (const Allocation& allocation : timeline.allocations) {
    change[allocation.start] += allocation.size;
    if (allocation.end != kNever) change[allocation.end] -= allocation.size;
  }
  Wide reserved = reserved_at_end;
  for (const Event& event : events) reserved -= ReservedChange(event);
  // Segments may be left out of a recording whose events have them: not less than nothing then.
  reserved = std::max<Wide>(reserved, 0);
  Wide requested = 0;
  for (Moment moment = 0; moment < points.size(); ++moment) {
    TimelinePoint& point = points[moment];
    requested += change[moment];
    point.requested = Clamp(requested);
    if (moment > 0) {
      const Event& event = events[moment - 1];
      reserved += ReservedChange(event);
      point.time_us = std::max(points[moment - 1].time_us, event.time_us);
    } else if (!events.empty()) {
      point.time_us = events.front().time_us;
    }
    point.reserved = Clamp(reserved);
    if (point.requested > points[timeline.peak].requested) timeline.peak = moment;
    if (point.reserved > points[timeline.peak_reserved].reserved) timeline.peak_reserved = moment;
  }
}

}  // namespace

Result<Timeline> BuildTimeline(const Snapshot& snapshot, int device) {
  static const std::vector<Event> kNone;
  const bool has_events = device >= 0 && static_cast<std::size_t>(device) < snapshot.devices.size();
  const std::vector<Event>& events =
      has_events ? snapshot.devices[static_cast<std::size_t>(device)] : kNone;
  const auto is_here = [device](const Segment& segment) { return segment.device == device; };
  if (events.empty() && std::none_of(snapshot.segments.begin(), snapshot.segments.end(), is_here)) {
    return InvalidArgument(
        fmt::format("the recording has no events and no segments of device {}", device));
  }
  if (events.size() >= kNever - 1) {
    return OutOfRange(fmt::format("device {} has {} events; a timeline has at most {}", device,
                                  events.size(), kNever - 2));
  }
  Lives lives(events);
  Moment moment = 0;
  for (const Event& event : events) lives.Add(event, ++moment);
  Wide reserved_at_end = 0;
  for (const Segment& segment : snapshot.segments) {
    if (!is_here(segment)) continue;
    lives.AddAtEnd(segment);
    reserved_at_end += segment.total_size;
  }
  Timeline timeline;
  timeline.device = device;
  timeline.allocations = std::move(lives).Take();
  timeline.points.resize(events.size() + 1);
  FillLevels(events, reserved_at_end, timeline);
  return timeline;
}

}  // namespace keel::trace
