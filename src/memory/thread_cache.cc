#include "memory/thread_cache.h"

#include <bit>

namespace keel::memory {

ThreadCache::Shelves* ThreadCache::Make(Arena& arena) {
  if (shelves_.size() <= arena.index) shelves_.resize(arena.index + 1);
  shelves_[arena.index] = std::make_unique<Shelves>();
  shelves_[arena.index]->arena = &arena;
  return shelves_[arena.index].get();
}

ThreadCache::Batch ThreadCache::PushSlow(Arena& arena, Block* block) {
  Shelves* shelves = Find(arena);
  if (shelves == nullptr) shelves = Make(arena);
  const std::size_t number = ShelfOf(block->size);
  Shelf& shelf = shelves->shelf[number];
  Batch out{&arena, nullptr};
  if (shelves->bytes + block->size > arena.front) {
    out.first = TakeAll(*shelves);
  } else if (shelf.size != block->size) {
    out.first = Take(*shelves, number);
  }
  shelf.size = block->size;
  shelves->used |= std::uint64_t{1} << number;
  Put(*shelves, shelf, block);
  return out;
}

Block* ThreadCache::Take(Shelves& shelves, std::size_t number) {
  Shelf& shelf = shelves.shelf[number];
  Block* const first = shelf.top;
  for (const Block* block = first; block != nullptr; block = block->next) {
    shelves.bytes -= block->size;
  }
  shelf.size = 0;
  shelf.top = nullptr;
  shelves.used &= ~(std::uint64_t{1} << number);
  return first;
}

Block* ThreadCache::TakeAll(Shelves& shelves) {
  Block* all = nullptr;
  while (shelves.used != 0) {
    const auto number = static_cast<std::size_t>(std::countr_zero(shelves.used));
    for (Block* block = Take(shelves, number); block != nullptr;) {
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
