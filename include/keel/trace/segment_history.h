// What the recorded allocator held of the device at any moment of a history: its segments, the
// blocks in them, and the holes between.
#pragma once

#include <cstdint>
#include <vector>

#include "keel/base/export.h"
#include "keel/trace/snapshot.h"
#include "keel/trace/timeline.h"

namespace keel::trace {

// A range of addresses that was reserved from moment `start` up to `end`: a segment, or a mapped
// part of an expandable one.
struct Region {
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::uint64_t stream = 0;
  Moment start = 0;
  Moment end = kNever;
  bool is_expandable = false;

  bool live_at(Moment moment) const { return start <= moment && moment < end; }

  friend bool operator==(const Region&, const Region&) = default;
};

// Of one device, in order of address, then of start. What was reserved before the recording shows
// in regions that are given back without having been taken, and in segments at the end. Regions may
// be given back in other pieces than they were taken in. Empty if the recording does not tell.
KEEL_EXPORT std::vector<Region> ReservedRegions(const Snapshot& snapshot, int device);

// The segments of that moment, in order of address, each tiled by its blocks. At the end they are
// the recording's own, if it has any; at other moments a block has the size that was requested, and
// what rounding added counts as a hole. Parts of an expandable segment that touch are one segment.
// Blocks outside every region, which no sound recording has, are left out.
KEEL_EXPORT std::vector<Segment> SegmentsAt(const Snapshot& snapshot, const Timeline& timeline,
                                            const std::vector<Region>& regions, Moment moment);

}  // namespace keel::trace
