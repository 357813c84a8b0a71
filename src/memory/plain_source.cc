#include "memory/plain_source.h"

#include <fmt/format.h>

#include <utility>

namespace keel::memory {
namespace {

constexpr std::uint64_t kSmallSegment = 2 << 20;
constexpr std::uint64_t kOwnSegment = 10 << 20;  // from here on a request has a segment of its own

}  // namespace

std::uint64_t PlainSource::SegmentSize(const Arena& arena, std::uint64_t size) const {
  if (arena.kind == telemetry::Pool::kSmall && size <= kSmallSegment) return kSmallSegment;
  if (size < kOwnSegment) return options_.large_segment_size;
  return (size + kSmallSegment - 1) / kSmallSegment * kSmallSegment;
}

Result<Block*> PlainSource::Grow(Arena& arena, std::uint64_t size, std::uint64_t alignment) {
  const MutexLock lock(mutex_);
  {
    const MutexLock arena_lock(arena.mutex);
    if (Block* const block = arena.blocks.Allocate(size, alignment); block != nullptr) return block;
  }
  const std::uint64_t bytes =
      SegmentSize(arena, alignment > kQuantum ? size + alignment - kQuantum : size);
  if (!limit_.TryTake(bytes)) {
    return ResourceExhausted(fmt::format(
        "{} more would exceed the limit of {}, of which {} is held", ToString(Bytes(bytes)),
        ToString(Bytes(limit_.limit())), ToString(Bytes(limit_.held()))));
  }
  Result<hal::PlainMemory> memory = hal::PlainMemory::Create(device_, Bytes(bytes));
  Status status =
      memory.ok() ? index_.Cover(memory->address().value(), bytes) : std::move(memory).status();
  if (!status.ok()) {
    limit_.GiveBack(bytes);
    return status;
  }
  const std::uint64_t address = memory->address().value();
  segments_.emplace(address, Segment{*std::move(memory), &arena});
  listener_.OnMapped(arena, address, bytes, true);
  const MutexLock arena_lock(arena.mutex);
  Block* const free = arena.blocks.Add(address, bytes);
  const std::uint64_t begin = (address + alignment - 1) / alignment * alignment;
  return arena.blocks.Take(free, begin, size);
}

Status PlainSource::Trim(std::uint64_t target, Deadline /*wait*/, const PoolId* only) {
  const MutexLock lock(mutex_);
  Status status;
  for (auto each = segments_.begin(); each != segments_.end() && limit_.held() > target;) {
    Segment& segment = each->second;
    Arena& arena = *segment.arena;
    const std::uint64_t address = each->first;
    const std::uint64_t size = segment.memory.size().count();
    const bool mine = only == nullptr ? arena.pool == 0 : arena.pool == *only;
    bool gone = false;
    if (mine) {
      const MutexLock arena_lock(arena.mutex);
      Block* const block = arena.blocks.Find(address);
      gone = block->free() && block->address <= address && address + size <= block->end();
      if (gone) arena.blocks.Remove(block, address, size);
    }
    if (!gone) {
      ++each;
      continue;
    }
    Status closed = segment.memory.Close();
    if (status.ok()) status = std::move(closed);
    limit_.GiveBack(size);
    listener_.OnUnmapped(arena, address, size, true);
    each = segments_.erase(each);
  }
  return status;
}

std::vector<SegmentInfo> PlainSource::Segments() {
  const MutexLock lock(mutex_);
  std::vector<SegmentInfo> segments;
  for (const auto& [address, segment] : segments_) {
    segments.push_back({segment.arena, address, segment.memory.size().count(), false});
  }
  return segments;
}

}  // namespace keel::memory
