#include "memory/arena.h"

namespace keel::memory {

namespace {

// What a free block must have, wherever it begins.
std::uint64_t NeededFor(std::uint64_t size, std::uint64_t alignment) {
  return alignment > kQuantum ? size + alignment - kQuantum : size;
}

}  // namespace

Block* Arena::TryTakeWhole(std::uint64_t size, std::uint64_t alignment) {
  return TakeFound(blocks.FindFit(NeededFor(size, alignment)), size, alignment);
}

Block* Arena::TakeIfAny(std::uint64_t size, std::uint64_t alignment) {
  return TakeFound(blocks.FindFitAmongAll(NeededFor(size, alignment)), size, alignment);
}

Block* Arena::TakeFound(Block* fit, std::uint64_t size, std::uint64_t alignment) {
  if (fit == nullptr) return nullptr;
  if (size < cutting.oversize ? fit->size >= cutting.oversize
                              : fit->size - size >= cutting.rounding) {
    return nullptr;
  }
  return TakeFrom(fit, size, alignment);
}

Block* Arena::TakeFrom(Block* free, std::uint64_t size, std::uint64_t alignment) {
  const std::uint64_t begin = (free->address + alignment - 1) / alignment * alignment;
  const std::uint64_t rest = free->end() - begin - size;
  const bool all = size >= cutting.oversize || (begin == free->address && rest <= cutting.slack);
  return blocks.Take(free, begin, all ? size + rest : size);
}

}  // namespace keel::memory
