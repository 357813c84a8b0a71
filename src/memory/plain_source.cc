#include "memory/plain_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/ranges.h"
#include "keel/hal/capture_mode.h"
#include "memory/garbage.h"

namespace keel::memory {
namespace {

constexpr std::uint64_t kSmallSegment = 2 << 20;
constexpr std::uint64_t kOwnSegment = 10 << 20;  // from here on a request has a segment of its own

std::uint64_t RoundToSegment(std::uint64_t size) {
  return (size + kSmallSegment - 1) / kSmallSegment * kSmallSegment;
}

}  // namespace

PlainSource::~PlainSource() {
  const hal::ScopedCaptureMode relaxed(hal::CaptureMode::kRelaxed);
  segments_.clear();
}

std::uint64_t PlainSource::SegmentSize(const Arena& arena, std::uint64_t size) const {
  if (options_.exact) return size;
  if (arena.kind == telemetry::Pool::kSmall && size <= kSmallSegment) return kSmallSegment;
  if (size < kOwnSegment) return options_.large_segment_size;
  return RoundToSegment(size);
}

Result<hal::PlainMemory> PlainSource::Create(std::uint64_t bytes) {
  if (!limit_.TryTake(bytes)) {
    return ResourceExhausted(fmt::format(
        "{} more would exceed the limit of {}, of which {} is held", ToString(Bytes(bytes)),
        ToString(Bytes(limit_.limit())), ToString(Bytes(limit_.held()))));
  }
  const ScopedRange range("take memory");
  Result<hal::PlainMemory> memory = hal::PlainMemory::Create(device_, Bytes(bytes));
  if (!memory.ok()) limit_.GiveBack(bytes);
  return memory;
}

Result<Block*> PlainSource::Grow(Arena& arena, std::uint64_t size, std::uint64_t alignment) {
  const MutexLock lock(mutex_);
  {
    const ShortLockGuard arena_lock(arena.mutex);
    if (Block* const block = arena.TryTake(size, alignment); block != nullptr) return block;
  }
  const std::uint64_t needed = alignment > kQuantum ? size + alignment - kQuantum : size;
  const std::uint64_t usual = SegmentSize(arena, needed);
  const hal::ScopedCaptureMode relaxed(hal::CaptureMode::kRelaxed);
  Result<hal::PlainMemory> memory = Create(usual);
  const auto exhausted = [&] { return memory.status().code() == StatusCode::kResourceExhausted; };
  if (exhausted() && options_.oversize != ~std::uint64_t{0}) {
    KEEL_TRY(ReleaseOversize(usual));
    memory = Create(usual);
  }
  if (exhausted() && RoundToSegment(needed) < usual) memory = Create(RoundToSegment(needed));
  KEEL_TRY(memory.status());
  const std::uint64_t address = memory->address().value();
  const std::uint64_t bytes = memory->size().count();
  if (Status covered = index_.Cover(address, bytes); !covered.ok()) {
    limit_.GiveBack(bytes);
    return covered;
  }
  segments_.emplace(address, Segment{*std::move(memory), &arena});
  listener_.OnMapped(arena, address, bytes, true);
  const ShortLockGuard arena_lock(arena.mutex);
  Block* const free = arena.blocks.Add(address, bytes, 0, BlockPool::Meeting::kApart);
  return arena.TakeFrom(free, size, alignment);
}

std::optional<std::uint32_t> PlainSource::AgeOf(const SegmentMap::iterator& segment) {
  Arena& arena = *segment->second.arena;
  const ShortLockGuard lock(arena.mutex);
  // Spans are kept apart, so a free one is a single block.
  const Block* const block = arena.blocks.spans().at(segment->first).first();
  if (!block->free() || block->size != segment->second.memory.size().count()) return std::nullopt;
  return arena.requests.load(std::memory_order_relaxed) - block->date;
}

bool PlainSource::TakeOut(const SegmentMap::iterator& segment, Arena& arena, std::uint64_t passed) {
  const std::uint64_t size = segment->second.memory.size().count();
  Block* const block = arena.blocks.spans().at(segment->first).first();
  if (!block->free() || block->size != size || block->epoch > passed || !arena.open) return false;
  arena.blocks.Remove(block, segment->first, size);
  return true;
}

Status PlainSource::Close(SegmentMap::iterator segment) {
  const ScopedRange range("give memory back");
  const std::uint64_t size = segment->second.memory.size().count();
  const hal::ScopedCaptureMode relaxed(hal::CaptureMode::kRelaxed);
  Status closed = segment->second.memory.Close();
  limit_.GiveBack(size);
  listener_.OnUnmapped(*segment->second.arena, segment->first, size, true);
  segments_.erase(segment);
  return closed;
}

Result<std::vector<PlainSource::Unused>> PlainSource::FindUnused() {
  std::vector<Unused> unused;
  std::map<StreamClock*, std::uint64_t> passed;
  for (auto segment = segments_.begin(); segment != segments_.end(); ++segment) {
    if (!segment->second.arena->open) continue;
    const std::optional<std::uint32_t> age = AgeOf(segment);
    if (!age) continue;
    StreamClock& clock = segment->second.arena->clock;
    if (!passed.contains(&clock)) {
      // Fails on a stream that is being captured: what it freed before is known all the same.
      static_cast<void>(clock.Mark(clock.now()).ok());
      KEEL_ASSIGN(passed[&clock], clock.Poll());
    }
    unused.push_back({segment, passed[&clock], *age});
  }
  return unused;
}

Result<std::uint64_t> PlainSource::GiveBack(const Unused& unused) {
  const std::uint64_t size = unused.size();
  {
    Arena& arena = *unused.segment->second.arena;
    const ShortLockGuard lock(arena.mutex);
    if (!TakeOut(unused.segment, arena, unused.passed)) return std::uint64_t{0};
  }
  KEEL_TRY(Close(unused.segment));
  return size;
}

Status PlainSource::Trim(std::uint64_t target) {
  const MutexLock lock(mutex_);
  if (limit_.held() <= target) return OkStatus();
  Status status;
  KEEL_ASSIGN(const std::vector<Unused> all, FindUnused());
  for (const Unused& unused : all) {
    if (limit_.held() <= target) break;
    Status given = GiveBack(unused).status();
    if (status.ok()) status = std::move(given);
  }
  return status;
}

Status PlainSource::CollectGarbage(std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  KEEL_ASSIGN(const std::vector<Unused> all, FindUnused());
  std::vector<Garbage> garbage;
  garbage.reserve(all.size());
  for (const Unused& unused : all) garbage.push_back({unused.size(), unused.age});
  Status status;
  for (const std::size_t each : ChooseGarbage(garbage, bytes)) {
    Status given = GiveBack(all[each]).status();
    if (status.ok()) status = std::move(given);
  }
  return status;
}

Status PlainSource::ReleaseOversize(std::uint64_t bytes) {
  KEEL_ASSIGN(std::vector<Unused> unused, FindUnused());
  std::erase_if(unused, [&](const Unused& each) { return each.size() < options_.oversize; });
  std::sort(unused.begin(), unused.end(), [](const Unused& a, const Unused& b) {
    return std::pair(a.size(), a.segment->first) < std::pair(b.size(), b.segment->first);
  });
  while (bytes != 0 && !unused.empty()) {
    auto next = std::find_if(unused.begin(), unused.end(),
                             [&](const Unused& each) { return each.size() >= bytes; });
    if (next == unused.end()) --next;
    KEEL_ASSIGN(const std::uint64_t given, GiveBack(*next));
    bytes -= std::min(bytes, given);
    unused.erase(next);
  }
  return OkStatus();
}

Status PlainSource::Release(Block* block, std::uint64_t epoch) {
  const MutexLock lock(mutex_);
  Arena& arena = Arena::Of(*block);
  const Result<std::uint64_t> passed = arena.clock.Poll();
  const auto segment = std::prev(segments_.upper_bound(block->address));
  {
    const ShortLockGuard arena_lock(arena.mutex);
    index_.Remove(*block);
    arena.Free(block, epoch);
    if (!passed.ok()) return passed.status();
    if (!TakeOut(segment, arena, *passed)) return OkStatus();
  }
  return Close(segment);
}

}  // namespace keel::memory
