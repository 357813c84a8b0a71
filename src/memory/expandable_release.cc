// What leaves an expandable source: ghosts, handles that nobody needs, addresses without memory.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/ranges.h"
#include "keel/base/log.h"
#include "memory/expandable_source.h"
#include "memory/garbage.h"

namespace keel::memory {

Status ExpandableSource::UnmapGhost(std::map<std::uint64_t, Extent>::iterator extent) {
  const ScopedRange range("unmap memory");
  std::erase(extent->second.handle->ghosts, extent->first);
  --ghosts_;
  ++stats_.unmapped;
  hal::Mapping mapping = std::move(extent->second.mapping);
  extents_.erase(extent);
  return Timed([&] { return mapping.Close(); });
}

Status ExpandableSource::UnmapGhosts(std::uint64_t begin, std::uint64_t end) {
  auto extent = extents_.upper_bound(begin);
  if (extent != extents_.begin() && std::prev(extent)->second.end() > begin) --extent;
  while (extent != extents_.end() && extent->first < end) {
    KEEL_TRY(UnmapGhost(extent++));
  }
  return OkStatus();
}

bool ExpandableSource::Idle(const Handle& handle) {
  for (const std::uint64_t ghost : handle.ghosts) {
    const Extent& extent = extents_.at(ghost);
    const Result<bool> passed = extent.arena->clock.Passed(extent.epoch);
    if (!passed.ok() || !*passed) return false;
  }
  return true;
}

void ExpandableSource::LimitGhosts() {
  for (auto extent = extents_.begin(); extent != extents_.end() && ghosts_ > options_.max_ghosts;) {
    const auto each = extent++;
    if (each->second.present) continue;
    const Result<bool> passed = each->second.arena->clock.Passed(each->second.epoch);
    if (!passed.ok() || !*passed) continue;
    if (const Status status = UnmapGhost(each); !status.ok()) {
      Log(LogLevel::kWarn, fmt::format("unmapping memory that moved: {}", status.ToString()));
    }
  }
}

Status ExpandableSource::Release(Handle* handle) {
  const ScopedRange range("give memory back");
  const std::uint64_t size = handle->size;
  const std::uint64_t home = handle->ghosts.empty() ? 0 : handle->ghosts.back();
  // Before: whoever registered the pages elsewhere must let go of them first.
  if (home != 0) listener_.OnUnmapped(*extents_.at(home).arena, home, size, false);
  Status status;
  while (!handle->ghosts.empty()) {
    Status unmapped = UnmapGhost(extents_.find(handle->ghosts.back()));
    if (status.ok()) status = std::move(unmapped);
  }
  Status closed = Timed([&] { return handle->memory.Close(); });
  if (status.ok()) status = std::move(closed);
  ++stats_.released;
  handles_.erase(handle);
  limit_.GiveBack(size);
  return status;
}

ExpandableSource::Candidate ExpandableSource::SmallestLargerThan(std::uint64_t size, Arena& from,
                                                                 std::uint64_t epoch) {
  Candidate best;
  for (const Candidate& each : CandidatesOf(from, epoch)) {
    if (each.handle->size <= size || !Idle(*each.handle)) continue;
    if (best.handle == nullptr || each.handle->size < best.handle->size) best = each;
  }
  return best;
}

bool ExpandableSource::ReleaseLargerThan(std::uint64_t size) {
  Arena* best_from = nullptr;
  std::uint64_t best_size = ~std::uint64_t{0};
  for (Arena* const from : arenas_()) {
    if (!from->open) continue;
    const Result<std::uint64_t> passed = from->clock.Poll();
    if (!passed.ok()) continue;
    const ShortLockGuard lock(from->mutex);
    const Candidate found = SmallestLargerThan(size, *from, *passed);
    if (found.handle != nullptr && found.handle->size < best_size) {
      best_from = from;
      best_size = found.handle->size;
    }
  }
  if (best_from == nullptr) return false;
  const Result<std::uint64_t> passed = best_from->clock.Poll();
  if (!passed.ok()) return false;
  Candidate found;
  {
    const ShortLockGuard lock(best_from->mutex);
    found = SmallestLargerThan(size, *best_from, *passed);
    if (found.handle == nullptr) return false;
    Detach(*best_from, found);
  }
  if (const Status status = Release(found.handle); !status.ok()) {
    Log(LogLevel::kWarn, fmt::format("giving memory back: {}", status.ToString()));
  }
  return true;
}

Status ExpandableSource::ReleaseChosen(Arena& from,
                                       const std::function<bool(const Candidate&)>& choose) {
  if (!from.open) return OkStatus();
  // Fails on a stream that is being captured: what it freed before is known all the same.
  static_cast<void>(from.clock.Mark(from.clock.now()).ok());
  KEEL_ASSIGN(const std::uint64_t passed, from.clock.Poll());
  std::vector<Handle*> gone;
  {
    const ShortLockGuard arena_lock(from.mutex);
    std::vector<Candidate> candidates = CandidatesOf(from, passed);
    std::sort(candidates.begin(), candidates.end(),
              [](const Candidate& a, const Candidate& b) { return a.handle->at > b.handle->at; });
    for (const Candidate& each : candidates) {
      if (!Idle(*each.handle) || !choose(each)) continue;
      Detach(from, each);
      gone.push_back(each.handle);
    }
  }
  Status status;
  for (Handle* const handle : gone) {
    Status released = Release(handle);
    if (status.ok()) status = std::move(released);
  }
  return status;
}

Status ExpandableSource::CollectGarbage(std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  const std::vector<Arena*> arenas = arenas_();
  std::vector<Garbage> garbage;
  std::vector<const Handle*> handles;
  for (Arena* const from : arenas) {
    KEEL_TRY(ReleaseChosen(*from, [&](const Candidate& each) {
      const std::uint32_t now = from->requests.load(std::memory_order_relaxed);
      garbage.push_back({each.handle->size, now - each.block->date});
      handles.push_back(each.handle);
      return false;
    }));
  }
  std::set<const Handle*> chosen;
  for (const std::size_t each : ChooseGarbage(garbage, bytes)) chosen.insert(handles[each]);
  Status status;
  for (Arena* const from : arenas) {
    Status released =
        ReleaseChosen(*from, [&](const Candidate& each) { return chosen.contains(each.handle); });
    if (status.ok()) status = std::move(released);
  }
  return status;
}

Status ExpandableSource::Trim(std::uint64_t target) {
  const MutexLock lock(mutex_);
  Status status;
  for (Arena* const from : arenas_()) {
    std::uint64_t held = limit_.held();
    if (held <= target) break;
    Status released = ReleaseChosen(*from, [&](const Candidate& each) {
      if (held <= target) return false;
      held -= each.handle->size;
      return true;
    });
    if (status.ok()) status = std::move(released);
  }
  // Addresses without any memory go too.
  std::erase_if(ranges_, [&](Range& range) KEEL_REQUIRES(mutex_) {
    const auto extent = extents_.lower_bound(range.begin);
    if (extent != extents_.end() && extent->first < range.end) return false;
    Status closed = range.addresses.Close();
    if (status.ok()) status = std::move(closed);
    return true;
  });
  return status;
}

}  // namespace keel::memory
