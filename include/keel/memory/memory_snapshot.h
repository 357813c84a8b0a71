// MemorySnapshot: every segment and block of an allocator at one moment.
#pragma once

#include <cstdint>
#include <vector>

#include "keel/base/bytes.h"
#include "keel/hal/types.h"
#include "keel/telemetry/memory_stats.h"
#include "keel/telemetry/tags.h"

namespace keel::memory {

struct BlockSnapshot {
  enum class State : std::uint8_t {
    kAllocated,    // the program has it
    kPendingFree,  // freed, and work on another stream may still use it
    kFree,  // in an arena, or in a thread's cache; in debug mode also freed and kept, or a guard
  };
  DeviceAddress address;
  Bytes size;
  Bytes requested;
  State state = State::kFree;
  telemetry::TagId tag = telemetry::TagId::kNone;
};

// A run of addresses that has memory. Its blocks tile it.
struct SegmentSnapshot {
  DeviceAddress address;
  Bytes size;
  hal::StreamHandle stream;
  telemetry::Pool kind = telemetry::Pool::kSmall;
  std::uint64_t pool = 0;
  bool expandable = false;
  std::vector<BlockSnapshot> blocks;
};

struct MemorySnapshot {
  hal::DeviceId device = hal::DeviceId::kNone;
  std::vector<SegmentSnapshot> segments;  // by address
};

}  // namespace keel::memory
