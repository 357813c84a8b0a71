// For tests: writes over the memory between an orchestrator and its worker.
#pragma once

#include <cstddef>
#include <random>
#include <span>

#include "task/region.h"

namespace keel::task {

// A byte of the count of answers, the cursors, the bells and the ticket, or of the first slots or
// the beginning of a ring.
inline std::byte* Victim(Region& region, std::mt19937& random) {
  RegionHeader& header = region.header();
  const auto name = static_cast<LaneName>(random() % kLanes);
  const Lane lane = region.lane(name);
  switch (random() % 7) {
    case 6:
      return reinterpret_cast<std::byte*>(&header.answered) + random() % sizeof(header.answered);
    case 0:
      return reinterpret_cast<std::byte*>(&header.ticket) + random() % sizeof(header.ticket);
    case 1:
      return reinterpret_cast<std::byte*>(&lane.state->written) + random() % 4;
    case 2:
      return reinterpret_cast<std::byte*>(&lane.state->read) + random() % 8;
    case 3:
      return reinterpret_cast<std::byte*>(&lane.state->bell) + random() % 8;
    case 4:
      return lane.ring.data() + random() % 1500;
    default:
      return std::as_writable_bytes(lane.slots).data() + random() % (12 * sizeof(LaneSlot));
  }
}

}  // namespace keel::task
