// What a history amounts to, in a few numbers per device.
#pragma once

#include <cstdint>
#include <vector>

#include "keel/base/bytes.h"
#include "keel/base/export.h"
#include "keel/trace/snapshot.h"

namespace keel::trace {

struct DeviceSummary {
  int device = 0;
  std::uint64_t events = 0;
  std::uint64_t allocs = 0;
  std::uint64_t frees = 0;  // as requested by the program
  std::uint64_t out_of_memory = 0;
  std::uint64_t streams = 0;  // on which something was allocated
  std::int64_t duration_us = 0;

  // What the program had asked for and not yet got rid of (a free counts when it is completed), at
  // most, at the end, and at the start: a recording often begins in the middle, and what was there
  // before shows in frees without an allocation and in blocks that are active at the end.
  Bytes peak_requested;
  Bytes requested_at_start;
  Bytes requested_at_end;
  std::uint64_t live_at_end = 0;  // how many allocations

  // What the recorded allocator had taken from the device, from the segments of the moment and the
  // events before it. All 0 if the recording has no segments.
  Bytes peak_reserved;
  Bytes reserved_at_start;
  Bytes reserved_at_end;
};

// For every device that has events or segments, in order. Time is linear in the events; memory in
// what is live at once.
KEEL_EXPORT std::vector<DeviceSummary> Summarize(const Snapshot& snapshot);

}  // namespace keel::trace
