#include "memory/thread_cache.h"

#include <utility>

namespace keel::memory {
namespace {

// A block of more than this part of a cache must have come before.
constexpr std::uint64_t kLargePart = 8;

}  // namespace

ThreadCache::Shelves* ThreadCache::Make(Arena& arena) {
  if (shelves_.size() <= arena.index) shelves_.resize(arena.index + 1);
  shelves_[arena.index] = std::make_unique<Shelves>();
  shelves_[arena.index]->arena = &arena;
  return shelves_[arena.index].get();
}

ThreadCache::Batch ThreadCache::PushSlow(Arena& arena, Block* block) {
  Shelves* shelves = Find(arena);
  if (shelves == nullptr) shelves = Make(arena);
  Shelf& shelf = shelves->shelf[ShelfOf(block->size)];
  Batch out{&arena, nullptr};
  if (shelves->bytes + block->size > arena.front) {
    out.first = TakeAll(*shelves);
  } else if (shelf.size != block->size) {
    out.first = Take(*shelves, shelf);
  }
  const std::uint64_t before = std::exchange(shelf.size, block->size);
  if (before != block->size && block->size > arena.front / kLargePart) {
    block->next = out.first;
    out.first = block;
  } else {
    Put(*shelves, shelf, block);
  }
  return out;
}

Block* ThreadCache::Take(Shelves& shelves, Shelf& shelf) {
  Block* const first = std::exchange(shelf.top, nullptr);
  for (const Block* block = first; block != nullptr; block = block->next) {
    shelves.bytes -= block->size;
  }
  return first;
}

Block* ThreadCache::TakeAll(Shelves& shelves) {
  Block* all = nullptr;
  for (Shelf& shelf : shelves.shelf) {
    for (Block* block = Take(shelves, shelf); block != nullptr;) {
      Block* const next = block->next;
      block->next = all;
      all = block;
      block = next;
    }
  }
  return all;
}

std::vector<ThreadCache::Batch> ThreadCache::TakeAll(const Arena* only) {
  std::vector<Batch> batches;
  for (const auto& shelves : shelves_) {
    if (shelves == nullptr || shelves->bytes == 0) continue;
    if (only != nullptr && shelves->arena != only) continue;
    batches.push_back({shelves->arena, TakeAll(*shelves)});
  }
  return batches;
}

bool ThreadCache::Holds(const Arena& arena) const {
  return arena.index < shelves_.size() && shelves_[arena.index] != nullptr &&
         shelves_[arena.index]->bytes != 0;
}

}  // namespace keel::memory
