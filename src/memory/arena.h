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

#include "base/short_lock.h"
#include "keel/base/mutex.h"
#include "keel/hal/types.h"
#include "keel/telemetry/memory_stats.h"
#include "memory/block_pool.h"
#include "memory/stream_clock.h"

namespace keel::memory {

// A pool of its own, for the memory of recorded graphs: 0 is everybody's.
using PoolId = std::uint64_t;

// How blocks are cut from the memory of an arena.
struct Cutting {
  // Rests of at most so many bytes are not split off.
  std::uint64_t slack = 0;
  // From this size on a block is oversize: it is handed out whole, to requests that are oversize
  // too and that it exceeds by less than `rounding`.
  std::uint64_t oversize = ~std::uint64_t{0};
  std::uint64_t rounding = 0;
};

struct Arena {
  Arena(std::uint32_t number, StreamClock& its_clock, telemetry::Pool its_kind, PoolId its_pool,
        std::uint64_t its_front, const Cutting& its_cutting,
        const std::atomic<std::uint32_t>& its_requests)
      : index(number),
        clock(its_clock),
        kind(its_kind),
        front(its_front),
        front_always(its_front / kFrontParts),
        cutting(its_cutting),
        requests(its_requests),
        pool(its_pool),
        open(its_pool == 0) {
    blocks.set_owner(this);
  }

  static Arena& Of(const Block& block) { return *static_cast<Arena*>(block.pool()->owner()); }

  const std::uint32_t index;  // among the allocator's, from 0
  StreamClock& clock;
  const telemetry::Pool kind;
  const std::uint64_t front;  // bytes of it that a thread may keep for itself
  // Blocks up to this size are kept whatever the thread asks for: see thread_cache.h.
  static constexpr std::uint64_t kFrontParts = 16;
  const std::uint64_t front_always;
  const Cutting cutting;
  // How many requests the allocator had so far, if that is counted: the date of what is freed.
  const std::atomic<std::uint32_t>& requests;
  // Changes only from one that was released to a new one.
  std::atomic<PoolId> pool;
  // Whether what is free may leave. A private pool keeps its memory until it is released. Becomes
  // false under the lock.
  std::atomic<bool> open;

  // A taken block from what is free here, as `cutting` has it; null: nothing that fits.
  Block* TryTake(std::uint64_t size, std::uint64_t alignment) KEEL_REQUIRES(mutex) {
    if (cutting.oversize == ~std::uint64_t{0}) {
      return blocks.Allocate(size, alignment, cutting.slack);
    }
    return TryTakeWhole(size, alignment);
  }
  // As TryTake, and looks at everything that is free: where the alternative is to fail.
  Block* TakeIfAny(std::uint64_t size, std::uint64_t alignment) KEEL_REQUIRES(mutex);
  // From a free block that was made for the request.
  Block* TakeFrom(Block* free, std::uint64_t size, std::uint64_t alignment) KEEL_REQUIRES(mutex);
  // The block is free from `epoch` on.
  void Free(Block* block, std::uint64_t epoch) KEEL_REQUIRES(mutex) {
    blocks.Free(block, epoch, requests.load(std::memory_order_relaxed));
  }

  ShortLock mutex;
  BlockPool blocks KEEL_GUARDED_BY(mutex);

 private:
  Block* TryTakeWhole(std::uint64_t size, std::uint64_t alignment) KEEL_REQUIRES(mutex);
  // From a free block that was found for the request; null: it must not be cut for it, or is null.
  Block* TakeFound(Block* fit, std::uint64_t size, std::uint64_t alignment) KEEL_REQUIRES(mutex);
};

}  // namespace keel::memory
