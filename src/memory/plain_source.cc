#include "memory/plain_source.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "keel/hal/capture_mode.h"

namespace keel::memory {
namespace {

constexpr std::uint64_t kSmallSegment = 2 << 20;
constexpr std::uint64_t kOwnSegment = 10 << 20;  // from here on a request has a segment of its own

}  // namespace

PlainSource::~PlainSource() {
  const hal::ScopedCaptureMode relaxed(hal::CaptureMode::kRelaxed);
  segments_.clear();
}

std::uint64_t PlainSource::SegmentSize(const Arena& arena, std::uint64_t size) const {
  if (options_.exact) return size;
  if (arena.kind == telemetry::Pool::kSmall && size <= kSmallSegment) return kSmallSegment;
  if (size < kOwnSegment) return options_.large_segment_size;
  return (size + kSmallSegment - 1) / kSmallSegment * kSmallSegment;
}

Result<Block*> PlainSource::Grow(Arena& arena, std::uint64_t size, std::uint64_t alignment) {
  const MutexLock lock(mutex_);
  {
    const MutexLock arena_lock(arena.mutex);
    Block* const block = arena.blocks.Allocate(size, alignment, arena.slack);
    if (block != nullptr) return block;
  }
  const std::uint64_t bytes =
      SegmentSize(arena, alignment > kQuantum ? size + alignment - kQuantum : size);
  if (!limit_.TryTake(bytes)) {
    return ResourceExhausted(fmt::format(
        "{} more would exceed the limit of {}, of which {} is held", ToString(Bytes(bytes)),
        ToString(Bytes(limit_.limit())), ToString(Bytes(limit_.held()))));
  }
  const hal::ScopedCaptureMode relaxed(hal::CaptureMode::kRelaxed);
  Result<hal::PlainMemory> memory = hal::PlainMemory::Create(device_, Bytes(bytes));
  if (!memory.ok()) {
    limit_.GiveBack(bytes);
    return std::move(memory).status();
  }
  if (Status covered = index_.Cover(memory->address().value(), bytes); !covered.ok()) {
    limit_.GiveBack(bytes);
    return covered;
  }
  const std::uint64_t address = memory->address().value();
  segments_.emplace(address, Segment{*std::move(memory), &arena});
  listener_.OnMapped(arena, address, bytes, true);
  const MutexLock arena_lock(arena.mutex);
  Block* const free = arena.blocks.Add(address, bytes, 0, BlockPool::Meeting::kApart);
  const std::uint64_t begin = (address + alignment - 1) / alignment * alignment;
  const bool all = begin == address && bytes - size <= arena.slack;
  return arena.blocks.Take(free, begin, all ? bytes : size);
}

bool PlainSource::IsFree(const SegmentMap::iterator& segment) {
  Arena& arena = *segment->second.arena;
  const MutexLock lock(arena.mutex);
  // Spans are kept apart, so a free one is a single block.
  const Block* const block = arena.blocks.spans().at(segment->first).first();
  return block->free() && block->size == segment->second.memory.size().count();
}

bool PlainSource::TakeOut(const SegmentMap::iterator& segment, Arena& arena, std::uint64_t passed) {
  const std::uint64_t size = segment->second.memory.size().count();
  Block* const block = arena.blocks.spans().at(segment->first).first();
  if (!block->free() || block->size != size || block->epoch > passed || !arena.open) return false;
  arena.blocks.Remove(block, segment->first, size);
  return true;
}

Status PlainSource::Close(SegmentMap::iterator segment) {
  const std::uint64_t size = segment->second.memory.size().count();
  const hal::ScopedCaptureMode relaxed(hal::CaptureMode::kRelaxed);
  Status closed = segment->second.memory.Close();
  limit_.GiveBack(size);
  listener_.OnUnmapped(*segment->second.arena, segment->first, size, true);
  segments_.erase(segment);
  return closed;
}

Status PlainSource::Trim(std::uint64_t target) {
  const MutexLock lock(mutex_);
  Status status;
  std::map<StreamClock*, std::uint64_t> passed;
  for (auto next = segments_.begin(); next != segments_.end() && limit_.held() > target;) {
    const auto segment = next++;
    if (!segment->second.arena->open || !IsFree(segment)) continue;
    StreamClock& clock = segment->second.arena->clock;
    if (!passed.contains(&clock)) {
      // Fails on a stream that is being captured: what it freed before is known all the same.
      static_cast<void>(clock.Mark(clock.now()).ok());
      KEEL_ASSIGN(passed[&clock], clock.Poll());
    }
    {
      Arena& arena = *segment->second.arena;
      const MutexLock arena_lock(arena.mutex);
      if (!TakeOut(segment, arena, passed[&clock])) continue;
    }
    Status closed = Close(segment);
    if (status.ok()) status = std::move(closed);
  }
  return status;
}

Status PlainSource::Release(Block* block, std::uint64_t epoch) {
  const MutexLock lock(mutex_);
  Arena& arena = Arena::Of(*block);
  const Result<std::uint64_t> passed = arena.clock.Poll();
  const auto segment = std::prev(segments_.upper_bound(block->address));
  {
    const MutexLock arena_lock(arena.mutex);
    index_.Remove(*block);
    arena.blocks.Free(block, epoch);
    if (!passed.ok()) return passed.status();
    if (!TakeOut(segment, arena, *passed)) return OkStatus();
  }
  return Close(segment);
}

}  // namespace keel::memory
