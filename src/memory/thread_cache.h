// ThreadCache: the free small blocks that one thread keeps for one allocator, and its counters.
//
// For each arena that the thread works with there are 64 shelves, each with blocks of exactly one
// size, chosen by a hash of the size. A request for a size that was freed before is answered by two
// loads and a store, with no lock that anybody else takes: the lock here is biased to the owner
// (biased_lock.h). A shelf that another size needs, and a cache that is full, go back to the arena.
//
// Blocks on a shelf count as taken there. When an arena has no hole for a request, what all threads
// keep for it is taken back first, so nothing is wasted on idle threads.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "keel/base/mutex.h"
#include "memory/arena.h"
#include "memory/biased_lock.h"
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
    if (shelves == nullptr) return nullptr;
    Shelf& shelf = shelves->shelf[ShelfOf(size)];
    if (shelf.size != size || shelf.top == nullptr) return nullptr;
    Block* const block = shelf.top;
    shelf.top = block->next;
    shelves->bytes -= size;
    return block;
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

  BiasedLock lock;
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
  Shelves* Find(const Arena& arena) {
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
