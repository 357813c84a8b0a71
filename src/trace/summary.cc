#include "keel/trace/summary.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

namespace keel::trace {
namespace {

// Sizes come from files: their sum may not fit in 64 bits.
__extension__ using Wide = __int128;

Bytes ToBytes(Wide amount) {
  constexpr Wide kMost = UINT64_MAX;
  return Bytes(static_cast<std::uint64_t>(std::clamp<Wide>(amount, 0, kMost)));
}

// A quantity of which only the changes are known, and its highest value relative to the start.
struct Level {
  Wide now = 0;
  Wide peak = 0;

  void Change(Wide by) {
    now += by;
    peak = std::max(peak, now);
  }
};

class DeviceCount {
 public:
  explicit DeviceCount(int device) { summary_.device = device; }

  void AddSegment(const Segment& segment) {
    reserved_at_end_ += segment.total_size;
    segments_.push_back(&segment);
  }

  void AddEvents(const std::vector<Event>& events) {
    summary_.events = events.size();
    if (events.empty()) return;
    std::int64_t first = events.front().time_us;
    std::int64_t last = first;
    for (const Event& event : events) {
      first = std::min(first, event.time_us);
      last = std::max(last, event.time_us);
      AddEvent(event);
    }
    std::int64_t duration = 0;
    summary_.duration_us = __builtin_sub_overflow(last, first, &duration) ? INT64_MAX : duration;
  }

  DeviceSummary Finish() {
    // What is active at the end and was allocated before the recording began.
    for (const Segment* segment : segments_) {
      for (const Block& block : segment->blocks) {
        if (block.state == BlockState::kInactive) continue;
        if (live_.emplace(block.address, block.requested_size).second) {
          requested_before_ += block.requested_size;
        }
      }
    }
    summary_.streams = streams_.size();
    summary_.live_at_end = live_.size();
    summary_.requested_at_start = ToBytes(requested_before_);
    summary_.requested_at_end = ToBytes(requested_before_ + requested_.now);
    summary_.peak_requested = ToBytes(requested_before_ + requested_.peak);
    // Segments may be left out of a recording whose events have them: not less than nothing then.
    const Wide start = std::max<Wide>(reserved_at_end_ - reserved_.now, 0);
    summary_.reserved_at_start = ToBytes(start);
    summary_.reserved_at_end = ToBytes(start + reserved_.now);
    summary_.peak_reserved = ToBytes(start + reserved_.peak);
    return summary_;
  }

 private:
  void AddEvent(const Event& event) {
    switch (event.action) {
      case Action::kAlloc:
        ++summary_.allocs;
        streams_.insert(event.stream);
        Forget(event.address);  // its free was not recorded
        live_.emplace(event.address, event.size);
        requested_.Change(event.size);
        break;
      case Action::kFreeRequested:
        ++summary_.frees;
        break;
      case Action::kFreeCompleted:
        if (Forget(event.address)) break;
        requested_before_ += event.size;
        requested_.Change(-Wide{event.size});
        break;
      case Action::kSegmentAlloc:
      case Action::kSegmentMap:
        reserved_.Change(event.size);
        break;
      case Action::kSegmentFree:
      case Action::kSegmentUnmap:
        reserved_.Change(-Wide{event.size});
        break;
      case Action::kOutOfMemory:
        ++summary_.out_of_memory;
        break;
      case Action::kSnapshot:
        break;
    }
  }

  // False if nothing is known to be there.
  bool Forget(std::uint64_t address) {
    const auto found = live_.find(address);
    if (found == live_.end()) return false;
    requested_.Change(-Wide{found->second});
    live_.erase(found);
    return true;
  }

  DeviceSummary summary_;
  Level requested_, reserved_;
  Wide requested_before_ = 0, reserved_at_end_ = 0;
  std::unordered_map<std::uint64_t, std::uint64_t> live_;  // sizes by address
  std::unordered_set<std::uint64_t> streams_;
  std::vector<const Segment*> segments_;
};

}  // namespace

std::vector<DeviceSummary> Summarize(const Snapshot& snapshot) {
  std::map<int, DeviceCount> counts;
  const auto count_of = [&](int device) -> DeviceCount& {
    return counts.try_emplace(device, device).first->second;
  };
  for (std::size_t i = 0; i < snapshot.devices.size(); ++i) {
    if (snapshot.devices[i].empty()) continue;
    const int device = static_cast<int>(i);
    count_of(device).AddEvents(snapshot.devices[i]);
  }
  for (const Segment& segment : snapshot.segments) count_of(segment.device).AddSegment(segment);
  std::vector<DeviceSummary> summaries;
  summaries.reserve(counts.size());
  for (auto& [device, count] : counts) summaries.push_back(count.Finish());
  return summaries;
}

}  // namespace keel::trace
