// Arena: the memory of one stream, for small requests or for large ones. A block freed on the
// stream is free here at once: whatever the stream does with it next comes after what it did
// before.
//
// The lock is held for bookkeeping only, never while the driver makes, maps or frees memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "keel/base/mutex.h"
#include "keel/hal/types.h"
#include "keel/telemetry/memory_stats.h"
#include "memory/block_pool.h"
#include "memory/stream_clock.h"

namespace keel::memory {

// A pool of its own, for the memory of recorded graphs: 0 is everybody's.
using PoolId = std::uint64_t;

struct Arena {
  Arena(std::uint32_t number, StreamClock& its_clock, telemetry::Pool its_kind, PoolId its_pool)
      : index(number), clock(its_clock), kind(its_kind), pool(its_pool), open(its_pool == 0) {
    blocks.set_owner(this);
  }

  static Arena& Of(const Block& block) { return *static_cast<Arena*>(block.pool->owner()); }

  const std::uint32_t index;  // among the allocator's, from 0
  StreamClock& clock;
  const telemetry::Pool kind;
  // Changes only from one that was released to a new one.
  std::atomic<PoolId> pool;
  // Whether what is free may leave. A private pool keeps its memory until it is released. Becomes
  // false under the lock.
  std::atomic<bool> open;

  // Rests of at most so many bytes are not split off.
  std::uint64_t slack = 0;

  Mutex mutex;
  BlockPool blocks KEEL_GUARDED_BY(mutex);
};

}  // namespace keel::memory
