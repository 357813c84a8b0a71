// History: what an allocator did, event by event, as a recording tells it. What replay runs, what
// a report draws; independent of the file it came from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace keel::trace {

enum class Action : std::uint8_t {
  kAlloc,
  kFreeRequested,  // the program gave it back
  kFreeCompleted,  // and no work on other streams uses it any more
  kSegmentAlloc,   // the allocator took memory from the device, or gave it back
  kSegmentFree,
  kSegmentMap,  // the same in parts of an expandable segment
  kSegmentUnmap,
  kSnapshot,
  kOutOfMemory,
};
// "alloc", "free_requested", ...
std::string_view ActionName(Action action);

struct Event {
  Action action = Action::kAlloc;
  std::uint64_t address = 0;  // of kOutOfMemory: how many bytes the device had free
  std::uint64_t size = 0;     // as the program asked for it, not rounded
  std::uint64_t stream = 0;
  std::int64_t time_us = 0;
};

// A segment as it was when the recording ended.
struct RecordedSegment {
  int device = 0;
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::uint64_t stream = 0;
  bool expandable = false;
};

struct History {
  std::vector<std::vector<Event>> devices;  // by the device's number, in order of time
  std::vector<RecordedSegment> segments;
  std::string configuration;  // of the allocator that was recorded; empty: its defaults, or unknown

  std::size_t event_count() const {
    std::size_t count = 0;
    for (const auto& events : devices) count += events.size();
    return count;
  }
};

}  // namespace keel::trace
