// Timeline: a history as the lives of its blocks, and the levels that they add up to.
//
// Time is counted in moments: moment 0 is before the first event of the device, moment m after the
// first m events; so there is one moment more than events, and the last is the end. Two events of
// the same microsecond are two moments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "keel/base/export.h"
#include "keel/base/result.h"
#include "keel/trace/snapshot.h"

namespace keel::trace {

using Moment = std::uint32_t;
// After every moment: what has not ended in the recording ends then.
inline constexpr Moment kNever = UINT32_MAX;

// One block, from its allocation until its free was completed. It is live at the moments from
// `start` up to `end`, without `end`.
struct Allocation {
  std::uint64_t address = 0;
  std::uint64_t size = 0;  // as the program asked for it
  std::uint64_t stream = 0;
  Moment start = 0;                // 0: it was there before the recording
  Moment free_requested = kNever;  // when the program gave it back
  Moment end = kNever;             // kNever: it is there at the end
  std::uint32_t stack = 0;         // of the allocation; in Snapshot::stacks
  std::uint32_t tag = 0;           // in Snapshot::tags

  bool live_at(Moment moment) const { return start <= moment && moment < end; }

  friend bool operator==(const Allocation&, const Allocation&) = default;
};

struct TimelinePoint {
  std::int64_t time_us = 0;     // never less than that of the point before
  std::uint64_t requested = 0;  // of all live blocks; see DeviceSummary for both
  std::uint64_t reserved = 0;   // by the recorded allocator; 0 if the recording does not tell

  friend bool operator==(const TimelinePoint&, const TimelinePoint&) = default;
};

struct Timeline {
  int device = 0;
  std::vector<Allocation> allocations;  // in order of `start`
  std::vector<TimelinePoint> points;    // by moment
  Moment peak = 0;                      // the first with the most requested
  Moment peak_reserved = 0;             // the first with the most reserved

  Moment last() const { return static_cast<Moment>(points.size() - 1); }
};

// Of one device. A history that begins in the middle is completed as for a DeviceSummary: what was
// there before shows in frees without an allocation and in blocks that are active at the end. A
// recording without events has one moment, with what its segments hold.
//
// kInvalidArgument: the recording has no such device; kOutOfRange: it has more events than there
// are moments. Time and memory are linear in the events.
KEEL_EXPORT Result<Timeline> BuildTimeline(const Snapshot& snapshot, int device);

}  // namespace keel::trace
