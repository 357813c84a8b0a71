#include "drivers/sim/interval_allocator.h"

#include <cassert>
#include <iterator>

namespace keel::sim {

IntervalAllocator::IntervalAllocator(std::uint64_t start, std::uint64_t end) {
  if (end > start) Insert(start, end - start);
}

std::optional<std::uint64_t> IntervalAllocator::Allocate(std::uint64_t size,
                                                         std::uint64_t alignment) {
  for (auto it = by_size_.lower_bound({size, 0}); it != by_size_.end(); ++it) {
    const auto [length, start] = *it;
    const std::uint64_t aligned = (start + alignment - 1) & ~(alignment - 1);
    if (aligned < start || aligned - start > length - size) continue;
    Take(free_.find(start), aligned, size);
    return aligned;
  }
  return std::nullopt;
}

bool IntervalAllocator::AllocateAt(std::uint64_t start, std::uint64_t size) {
  auto it = free_.upper_bound(start);
  if (it == free_.begin()) return false;
  --it;
  const std::uint64_t before = start - it->first;
  if (before >= it->second || it->second - before < size) return false;
  Take(it, start, size);
  return true;
}

void IntervalAllocator::Free(std::uint64_t start, std::uint64_t size) {
  auto next = free_.lower_bound(start);
  assert(next == free_.end() || next->first >= start + size);
  if (next != free_.end() && next->first == start + size) {
    size += next->second;
    Erase(next);
  }
  auto previous = free_.lower_bound(start);
  if (previous != free_.begin()) {
    --previous;
    assert(previous->first + previous->second <= start);
    if (previous->first + previous->second == start) {
      start = previous->first;
      size += previous->second;
      Erase(previous);
    }
  }
  Insert(start, size);
}

void IntervalAllocator::Take(Free_::iterator interval, std::uint64_t start, std::uint64_t size) {
  const auto [first, length] = *interval;
  Erase(interval);
  if (start > first) Insert(first, start - first);
  const std::uint64_t end = start + size;
  if (first + length > end) Insert(end, first + length - end);
}

void IntervalAllocator::Insert(std::uint64_t start, std::uint64_t size) {
  free_.emplace(start, size);
  by_size_.emplace(size, start);
}

void IntervalAllocator::Erase(Free_::iterator interval) {
  by_size_.erase({interval->second, interval->first});
  free_.erase(interval);
}

}  // namespace keel::sim
