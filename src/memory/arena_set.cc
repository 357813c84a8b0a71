#include "memory/arena_set.h"

namespace keel::memory {

StreamClock& ArenaSet::ClockLocked(hal::StreamHandle stream) {
  std::unique_ptr<StreamClock>& clock = clocks_[stream];
  if (clock == nullptr) clock = std::make_unique<StreamClock>(device_, events_, stream);
  if (clock->retired()) clock->Revive();
  return *clock;
}

StreamClock* ArenaSet::FindClock(hal::StreamHandle stream) const {
  const MutexLock lock(mutex_);
  const auto found = clocks_.find(stream);
  return found == clocks_.end() ? nullptr : found->second.get();
}

StreamClock& ArenaSet::Clock(hal::StreamHandle stream) {
  const MutexLock lock(mutex_);
  return ClockLocked(stream);
}

Arena* ArenaSet::FindUnusedLocked(StreamClock& clock, telemetry::Pool kind, PoolId pool) {
  for (const auto& arena : arenas_) {
    if (arena->pool == 0 || !arena->open || &arena->clock != &clock || arena->kind != kind)
      continue;
    const Result<std::uint64_t> passed = clock.Poll();
    if (!passed.ok()) return nullptr;
    const ShortLockGuard lock(arena->mutex);
    if (arena->blocks.taken_blocks() != 0) continue;
    bool idle = true;
    arena->blocks.ForEachFree(0, [&](const Block* block) {
      idle = block->epoch <= *passed;
      return idle;
    });
    if (!idle) continue;
    by_key_.erase({clock.stream(), kind, arena->pool});
    arena->pool = pool;
    arena->open = false;
    return arena.get();
  }
  return nullptr;
}

Arena& ArenaSet::Find(hal::StreamHandle stream, telemetry::Pool kind, PoolId pool) {
  const MutexLock lock(mutex_);
  StreamClock& clock = ClockLocked(stream);
  Arena*& arena = by_key_[{stream, kind, pool}];
  if (arena == nullptr && pool != 0) arena = FindUnusedLocked(clock, kind, pool);
  if (arena == nullptr) {
    const bool large = kind == telemetry::Pool::kLarge;
    arenas_.push_back(std::make_unique<Arena>(static_cast<std::uint32_t>(arenas_.size()), clock,
                                              kind, pool, large || pool != 0 ? 0 : front_,
                                              large ? large_ : Cutting{}, requests_));
    arena = arenas_.back().get();
  }
  return *arena;
}

std::vector<Arena*> ArenaSet::List() const {
  const MutexLock lock(mutex_);
  std::vector<Arena*> arenas;
  arenas.reserve(arenas_.size());
  for (const auto& arena : arenas_) arenas.push_back(arena.get());
  return arenas;
}

std::vector<StreamClock*> ArenaSet::Clocks() const {
  const MutexLock lock(mutex_);
  std::vector<StreamClock*> clocks;
  clocks.reserve(clocks_.size());
  for (const auto& [stream, clock] : clocks_) clocks.push_back(clock.get());
  return clocks;
}

}  // namespace keel::memory
