// For tests: writes over the memory between an orchestrator and its worker.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>

#include "task/region.h"

namespace keel::task {

// A byte of the count of answers, the cursors, the bells and the ticket, or of the slots that were
// written last or come next, or of the beginning of a ring, which is larger than what is sent.
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
    default: {
      constexpr std::uint32_t kNear = 4;
      const std::uint32_t at = lane.state->written.load() - kNear + random() % (2 * kNear);
      return std::as_writable_bytes(lane.slots).data() + at % kLaneSlots * sizeof(LaneSlot) +
             random() % sizeof(LaneSlot);
    }
  }
}

// As another process would: no thread of this one has a race with it, which a sanitizer would see.
inline void Damage(std::byte* victim, std::byte value) {
  std::atomic_ref(*victim).store(value, std::memory_order_relaxed);
}

}  // namespace keel::task
