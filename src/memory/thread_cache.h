// ThreadCache: the free small blocks that one thread keeps for one allocator, and its counters.
//
// For each arena that the thread works with there are 64 shelves, each with blocks of exactly one
// size, chosen by a hash of the size. A request for a size that was freed before is answered by two
// loads and a store, with no lock that anybody else takes: the lock here is its owner's
// (owner_lock.h). A shelf that another size needs, and a cache that is full, go back to the arena.
//
// Not everything is worth a place. A block that is large beside what may be kept (more than a
// sixteenth) pushes out many others, and is worth that only if the thread will ask for its size
// again: it is kept if this is the size that was last asked for in vain on its shelf. Programs with
// ever new sizes go past the cache, at the price of a look.
//
// Blocks on a shelf count as taken there. When an arena has no hole for a request, what all threads
// keep for it is taken back first, so nothing is wasted on idle threads.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/owner_lock.h"
#include "keel/base/mutex.h"
#include "memory/arena.h"
#include "telemetry/block_counters.h"

namespace keel::memory {

class ThreadCache {
 public:
  explicit ThreadCache(telemetry::BlockCounters::Shard* its_shard) : shard(its_shard) {}

  // Blocks of one arena, linked by `next`, that are to be freed there.
  struct Batch {
    Arena* arena = nullptr;
    Block* first = nullptr;
  };

  // All of these need the lock.
  Block* Pop(Arena& arena, std::uint64_t size) {
    Shelves* const shelves = Find(arena);
    if (shelves == nullptr) [[unlikely]] {
      return nullptr;
    }
    Shelf& shelf = shelves->shelf[ShelfOf(size)];
    if (shelf.size != size || shelf.top == nullptr) {
      shelf.missed = size;
      return nullptr;
    }
    Block* const block = shelf.top;
    shelf.top = block->next;
    shelves->bytes -= size;
    return block;
  }
  // The thread works with the arena from now on. Also one of which it may keep nothing has its
  // shelves, so that the common calls need not ask.
  void Open(Arena& arena) {
    if (Find(arena) == nullptr) Make(arena);
  }
  // Whether a block of this size is worth keeping. For the owner; needs no lock.
  bool Keeps(const Arena& arena, std::uint64_t size) const {
    const Shelves* const shelves = Find(arena);
    if (shelves == nullptr) [[unlikely]] {
      return size <= arena.front_always;
    }
    // Everything is asked at once: which of it is so, a processor cannot guess.
    const bool again = (shelves->shelf[ShelfOf(size)].missed == size) & (size <= arena.front);
    return (size <= arena.front_always) | again;
  }
  // Keeps the block; what has to leave for it is returned.
  Batch Push(Arena& arena, Block* block) {
    Shelves* const shelves = Find(arena);
    if (shelves != nullptr) [[likely]] {
      Shelf& shelf = shelves->shelf[ShelfOf(block->size)];
      if (shelf.size == block->size && shelves->bytes + block->size <= arena.front) [[likely]] {
        Put(*shelves, shelf, block);
        return {};
      }
    }
    return PushSlow(arena, block);
  }
  // Everything, or everything of one arena.
  std::vector<Batch> TakeAll(const Arena* only);
  bool Holds(const Arena& arena) const;

  OwnerLock lock;
  // Written by the owning thread alone.
  telemetry::BlockCounters::Shard* const shard;
  // The arena that the thread used last, for each kind, and for which stream. Others may only
  // forget it.
  struct Route {
    hal::StreamHandle stream;
    std::atomic<Arena*> arena{nullptr};
  };
  std::array<Route, 2> last{};
  // The clock that it recorded a use for last.
  StreamClock* last_used = nullptr;
  void ForgetRoutes() {
    for (Route& route : last) route.arena.store(nullptr, std::memory_order_relaxed);
  }

 private:
  static constexpr std::size_t kShelves = 64;
  struct Shelf {
    std::uint64_t size = 0;
    Block* top = nullptr;
    std::uint64_t missed = 0;  // the owner's own: the size that was last asked for in vain
  };
  struct Shelves {
    Arena* arena = nullptr;
    std::uint64_t bytes = 0;
    std::uint64_t used = 0;  // bit i: shelf i has a size
    std::array<Shelf, kShelves> shelf{};
  };
  static std::size_t ShelfOf(std::uint64_t size) {
    return (size / kQuantum * 0x9E3779B97F4A7C15) >> 58;
  }
  Shelves* Find(const Arena& arena) const {
    return arena.index < shelves_.size() ? shelves_[arena.index].get() : nullptr;
  }
  static void Put(Shelves& shelves, Shelf& shelf, Block* block) {
    block->next = shelf.top;
    shelf.top = block;
    shelves.bytes += block->size;
  }
  [[gnu::noinline]] Batch PushSlow(Arena& arena, Block* block);
  Shelves* Make(Arena& arena);
  static Block* Take(Shelves& shelves, std::size_t number);
  static Block* TakeAll(Shelves& shelves);

  std::vector<std::unique_ptr<Shelves>> shelves_;  // by the arena's index
};

}  // namespace keel::memory
