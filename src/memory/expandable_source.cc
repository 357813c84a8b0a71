#include "memory/expandable_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <span>
#include <utility>

#include "base/ranges.h"

namespace keel::memory {
namespace {

std::uint64_t UpTo(std::uint64_t value, std::uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// See the header: how much of the time may go into moving, and what part of an arena it gets at
// once when that is exceeded.
constexpr double kMovesShare = 0.05;
constexpr double kMovesAtOnceNs = 50e6;  // a program that has just begun may move so much
constexpr std::uint64_t kSpareParts = 16;
// And how often: requests for which memory moves may follow each other at this pace for long, and
// faster only so many times.
constexpr double kMoveEveryNs = 2e6;
constexpr double kMovesInARow = 32;

// From so many handles on it is worth asking first whether there is memory for them: a request for
// half of a device must not fill the other half to find out.
constexpr std::uint64_t kHandlesToAsk = 16;

// A request of 1 MiB lacks two pages at most, and what fills them should be free to go separately.
constexpr std::uint64_t kSmallHandleSize = 2 << 20;

// What a request for addresses falls back to when there are not so many.
constexpr int kReserveTries = 6;

}  // namespace

ExpandableSource::ExpandableSource(std::shared_ptr<hal::Device> device, AddressIndex& index,
                                   MemoryLimit& limit, ListArenas arenas, SegmentListener& listener,
                                   ExpandableOptions options)
    : device_(std::move(device)),
      index_(index),
      limit_(limit),
      arenas_(std::move(arenas)),
      listener_(listener),
      options_(std::move(options)),
      granule_(device_->capabilities().granularity.minimum.count()),
      handle_size_(UpTo(options_.handle_size, granule_)),
      small_handle_size_(UpTo(kSmallHandleSize, granule_)),
      began_ns_(Now()),
      grants_{{.device = device_->id(), .access = hal::Access::kReadWrite}} {}

ExpandableSource::~ExpandableSource() = default;

std::int64_t ExpandableSource::Now() const {
  if (options_.now_ns) return options_.now_ns();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

const hal::AddressRange& ExpandableSource::RangeOf(std::uint64_t address) const {
  return std::find_if(
             ranges_.begin(), ranges_.end(),
             [&](const Range& range) { return range.begin <= address && address < range.end; })
      ->addresses;
}

// --- Where a request goes ---------------------------------------------------------------------

std::vector<ExpandableSource::Interval> ExpandableSource::Missing(std::uint64_t begin,
                                                                  std::uint64_t end) const {
  std::vector<Interval> missing;
  std::uint64_t at = PageDown(begin);
  const std::uint64_t last = PageUp(end);
  auto extent = extents_.upper_bound(at);
  if (extent != extents_.begin()) --extent;
  for (; extent != extents_.end() && extent->first < last; ++extent) {
    if (!extent->second.present || extent->second.end() <= at) continue;
    if (extent->first > at) missing.push_back({at, extent->first});
    at = extent->second.end();
  }
  if (at < last) missing.push_back({at, last});
  return missing;
}

std::uint64_t ExpandableSource::MissingBytes(std::uint64_t begin, std::uint64_t end) const {
  std::uint64_t bytes = 0;
  for (const Interval& interval : Missing(begin, end)) bytes += interval.size();
  return bytes;
}

bool ExpandableSource::AllThere(std::uint64_t address, std::uint64_t size) const {
  return size != 0 && size <= ~address && Missing(address, address + size).empty();
}

bool ExpandableSource::Haunted(std::uint64_t begin, std::uint64_t end) {
  auto extent = extents_.upper_bound(PageDown(begin));
  if (extent != extents_.begin()) --extent;
  for (; extent != extents_.end() && extent->first < PageUp(end); ++extent) {
    const Extent& ghost = extent->second;
    if (ghost.present || ghost.end() <= PageDown(begin)) continue;
    const Result<bool> passed = ghost.arena->clock.Passed(ghost.epoch);
    if (!passed.ok() || !*passed) return true;
  }
  return false;
}

std::vector<ExpandableSource::Gap> ExpandableSource::GapsOf(const Range& range,
                                                            const BlockPool& blocks) {
  std::vector<Gap> gaps;
  Gap gap;
  gap.addresses = {range.begin, range.begin};
  for (auto span = blocks.spans().lower_bound(range.begin);
       span != blocks.spans().end() && span->first < range.end; ++span) {
    Block* const first = span->second.first();
    Block* const last = span->second.last();
    if (first->free()) gap.blocks.push_back(first);
    if (first->free() && first == last) continue;  // and the gap goes on
    gap.addresses.end = first->free() ? first->end() : first->address;
    // A gap that is all there is none that memory could be added to.
    if (gap.addresses.begin < span->first) gaps.push_back(gap);
    gap = {};
    gap.addresses.begin = last->free() ? last->address : last->end();
    if (last->free()) gap.blocks.push_back(last);
  }
  gap.addresses.end = range.end;
  gap.open = true;
  gaps.push_back(std::move(gap));
  return gaps;
}

Result<ExpandableSource::Place> ExpandableSource::FindPlace(Arena& arena, std::uint64_t size,
                                                            std::uint64_t alignment) {
  const auto up = [&](std::uint64_t address) { return UpTo(address, alignment); };
  for (int attempt = 0;; ++attempt) {
    std::uint64_t least = ~std::uint64_t{0};
    Place best;
    const auto consider = [&](const Gap& gap, std::uint64_t address) KEEL_REQUIRES(mutex_) {
      if (address < gap.addresses.begin || address > gap.addresses.end ||
          gap.addresses.end - address < size) {
        return;
      }
      const std::uint64_t bytes = MissingBytes(address, address + size);
      if (bytes >= least || Haunted(address, address + size)) return;
      least = bytes;
      best.address = address;
      best.end = gap.addresses.end;
      best.blocks = gap.blocks;
    };
    for (const Range& range : ranges_) {
      if (range.arena != &arena) continue;
      for (const Gap& gap : GapsOf(range, arena.blocks)) {
        consider(gap, up(gap.addresses.begin));
        if (!gap.open) {
          if (gap.addresses.size() >= size) {
            consider(gap, (gap.addresses.end - size) / alignment * alignment);
          }
          continue;
        }
        // Behind everything that was ever mapped nothing is in the way.
        auto extent = extents_.lower_bound(range.end);
        if (extent != extents_.begin() && std::prev(extent)->first >= range.begin) {
          consider(gap, up(std::max(gap.addresses.begin, std::prev(extent)->second.end())));
        }
      }
    }
    if (least != ~std::uint64_t{0}) return best;
    if (attempt > 0) return Internal("a new range of addresses has no place for a request");
    KEEL_TRY(
        AddRange(arena, UpTo(size, granule_) + (alignment > granule_ ? alignment : 0) + granule_));
  }
}

Status ExpandableSource::AddRange(Arena& arena, std::uint64_t size) {
  // Addresses are many but not without end, and every stream has two arenas.
  const std::uint64_t memory = device_->info().memory.count();
  const std::uint64_t wish = options_.reserve != 0                   ? options_.reserve
                             : arena.kind == telemetry::Pool::kSmall ? memory / 8
                                                                     : memory;
  std::uint64_t reserve = std::max(UpTo(wish, granule_), size);
  for (int i = 0;; ++i) {
    Result<hal::AddressRange> range =
        Timed([&] { return hal::AddressRange::Create(device_, Bytes(reserve)); });
    if (range.ok()) {
      const std::uint64_t begin = range->address().value();
      // Without its last page, so that blocks of two ranges that are neighbours never join.
      ranges_.push_back({*std::move(range), &arena, begin, begin + reserve - granule_});
      return OkStatus();
    }
    if (range.status().code() != StatusCode::kResourceExhausted || reserve == size ||
        i == kReserveTries) {
      return std::move(range).status();
    }
    reserve = std::max(UpTo(reserve / 4, granule_), size);
  }
}

Result<Block*> ExpandableSource::Grow(Arena& arena, std::uint64_t size, std::uint64_t alignment) {
  const MutexLock lock(mutex_);
  Place place;
  std::vector<Interval> missing;
  std::vector<Block*> held;
  std::vector<Interval> spare;
  const From from = MovesTooMuch() ? From::kDevice : From::kAnywhere;
  {
    const ShortLockGuard arena_lock(arena.mutex);
    // Somebody may have been here while this thread waited for the lock.
    if (Block* const block = arena.TryTake(size, alignment); block != nullptr) return block;
    KEEL_ASSIGN(place, FindPlace(arena, size, alignment));
    missing = Missing(place.address, place.address + size);
    // What is there already must not be taken by others meanwhile.
    for (Block* const each : place.blocks) {
      const std::uint64_t begin = std::max(each->address, place.address);
      const std::uint64_t end = std::min(each->end(), place.address + size);
      if (begin < end) held.push_back(arena.blocks.Take(each, begin, end - begin));
    }
    if (from == From::kDevice) {
      const std::uint64_t begin = PageUp(place.address + size);
      const std::uint64_t end =
          std::min(PageDown(place.end), begin + PageUp(arena.blocks.bytes() / kSpareParts));
      if (begin < end && !Haunted(begin, end)) spare = Missing(begin, end);
    }
  }
  std::vector<Handle*> filled;
  const std::uint64_t moved_before = stats_.moved;
  Status status = Fill(arena, missing, from, filled);
  if (from == From::kDevice && status.code() == StatusCode::kResourceExhausted) {
    // Then it moves after all: what was filled stays filled.
    for (const Handle* const handle : filled) {
      for (Interval& interval : missing) {
        if (interval.begin == handle->at) interval.begin += handle->size;
      }
    }
    std::erase_if(missing, [](const Interval& interval) { return interval.size() == 0; });
    status = Fill(arena, missing, From::kAnywhere, filled);
  } else if (status.ok() && !spare.empty()) {
    // What is more than asked for may fail.
    static_cast<void>(Fill(arena, spare, From::kDevice, filled).ok());
  }
  if (stats_.moved != moved_before) {
    // No more than that is remembered: churn at the limit is over some time.
    recent_moves_ = std::min(RecentMoves() + 1, 2 * kMovesInARow);
    moved_at_ns_ = Now();
  }
  const ShortLockGuard arena_lock(arena.mutex);
  // The piece after which all of the place is free has joined the others.
  Block* free = nullptr;
  const auto joined = [&](Block* block) {
    if (block->address <= place.address && place.address + size <= block->end()) free = block;
  };
  for (Block* const block : held) joined(arena.blocks.Free(block, block->epoch, block->date));
  const std::uint32_t date = arena.requests.load(std::memory_order_relaxed);
  for (const Handle* const handle : filled) {
    joined(
        arena.blocks.Add(handle->at, handle->size, handle->epoch, BlockPool::Meeting::kJoin, date));
  }
  if (!status.ok()) return status;
  return arena.blocks.Take(free, place.address, size);
}

// --- What fills it ----------------------------------------------------------------------------

std::vector<ExpandableSource::Candidate> ExpandableSource::CandidatesOf(Arena& from,
                                                                        std::uint64_t epoch) {
  std::vector<Candidate> candidates;
  if (!from.open) return candidates;  // it was, perhaps, before its lock was taken
  from.blocks.ForEachFree(granule_, [&](Block* block) KEEL_REQUIRES(mutex_) {
    if (block->epoch > epoch) return true;
    for (auto extent = extents_.lower_bound(block->address);
         extent != extents_.end() && extent->second.end() <= block->end(); ++extent) {
      if (extent->second.present && extent->second.handle->pins == 0) {
        candidates.push_back({block, extent->second.handle});
      }
    }
    return true;
  });
  return candidates;
}

void ExpandableSource::Detach(Arena& from, const Candidate& candidate) {
  Handle& handle = *candidate.handle;
  Extent& extent = extents_.at(handle.at);
  handle.epoch = candidate.block->epoch;
  handle.date = candidate.block->date;
  from.blocks.Remove(candidate.block, handle.at, handle.size);
  extent.present = false;
  extent.epoch = handle.epoch;
  handle.ghosts.push_back(handle.at);
  ++ghosts_;
  handle.at = 0;
  handle.arena = nullptr;
}

void ExpandableSource::PutBack(Handle* handle) {
  const std::uint64_t home = handle->ghosts.back();
  handle->ghosts.pop_back();
  --ghosts_;
  Extent& extent = extents_.at(home);
  extent.present = true;
  handle->at = home;
  handle->arena = extent.arena;
  const ShortLockGuard lock(extent.arena->mutex);
  extent.arena->blocks.Add(home, handle->size, handle->epoch, BlockPool::Meeting::kJoin,
                           handle->date);
}

void ExpandableSource::TakeDonors(const Arena& arena, const std::vector<Interval>& missing,
                                  std::vector<Handle*>& donors) {
  std::uint64_t need = 0;
  std::uint64_t longest = 0;
  for (const Interval& interval : missing) {
    need += interval.size();
    longest = std::max(longest, interval.size());
  }
  const auto was_here = [&](const Handle& handle) {
    return std::any_of(handle.ghosts.begin(), handle.ghosts.end(), [&](std::uint64_t ghost) {
      return std::any_of(missing.begin(), missing.end(), [&](const Interval& interval) {
        return interval.begin <= ghost && ghost + handle.size <= interval.end;
      });
    });
  };
  // A graph runs on any stream: to its pool, also that of its own stream is another's memory.
  const auto ordered = [&](const Arena* from) {
    return &from->clock == &arena.clock && arena.pool == 0;
  };
  std::vector<Arena*> arenas = arenas_();
  std::partition(arenas.begin(), arenas.end(), ordered);
  for (Arena* const from : arenas) {
    if (need == 0) return;
    if (!from->open) continue;
    std::uint64_t epoch = ~std::uint64_t{0};
    if (!ordered(from)) {
      const Result<std::uint64_t> passed = from->clock.Poll();
      if (!passed.ok()) continue;
      epoch = *passed;
    }
    std::uint64_t latest = 0;
    {
      const ShortLockGuard lock(from->mutex);
      std::vector<Candidate> candidates = CandidatesOf(*from, epoch);
      for (Candidate& each : candidates) each.was_here = was_here(*each.handle);
      std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
        if (a.was_here != b.was_here) return a.was_here;
        return a.handle->size != b.handle->size ? a.handle->size > b.handle->size
                                                : a.handle->at < b.handle->at;
      });
      std::vector<Candidate> chosen;
      for (const Candidate& each : candidates) {
        if (each.handle->size > longest || each.handle->size > need) continue;
        need -= each.handle->size;
        chosen.push_back(each);
      }
      std::sort(chosen.begin(), chosen.end(),
                [](const Candidate& a, const Candidate& b) { return a.handle->at > b.handle->at; });
      for (const Candidate& each : chosen) {
        Detach(*from, each);
        latest = std::max(latest, each.handle->epoch);
        // On another clock the date means nothing, and is past.
        if (!ordered(from)) each.handle->epoch = 0;
        donors.push_back(each.handle);
      }
    }
    // So that the ghosts can be unmapped some day. A stream that is being captured has no answer
    // yet: the next one marks it.
    if (latest != 0) static_cast<void>(from->clock.Mark(latest).ok());
    // What was not there yet will be, at the next request.
    if (need != 0 && !ordered(from)) {
      static_cast<void>(from->clock.Mark(from->clock.now()).ok());
    }
  }
}

double ExpandableSource::RecentMoves() const {
  return std::max(0.0, recent_moves_ - static_cast<double>(Now() - moved_at_ns_) / kMoveEveryNs);
}

bool ExpandableSource::MovesTooMuch() const {
  return RecentMoves() > kMovesInARow ||
         static_cast<double>(stats_.move_ns) >
             kMovesAtOnceNs + kMovesShare * static_cast<double>(Now() - began_ns_);
}

Status ExpandableSource::Fill(Arena& arena, const std::vector<Interval>& missing, From from,
                              std::vector<Handle*>& filled) {
  std::vector<Handle*> donors;
  if (from == From::kAnywhere) TakeDonors(arena, missing, donors);
  Status status = CheckRoom(missing, donors);
  for (const Interval& interval : missing) {
    if (!status.ok()) break;
    status = FillInterval(arena, interval, from, donors, filled);
  }
  for (Handle* const donor : donors) PutBack(donor);
  LimitGhosts();
  return status;
}

Status ExpandableSource::CheckRoom(const std::vector<Interval>& missing,
                                   const std::vector<Handle*>& donors) {
  std::uint64_t need = 0;
  for (const Interval& interval : missing) need += interval.size();
  for (const Handle* const donor : donors) need -= donor->size;
  if (need < kHandlesToAsk * handle_size_) return OkStatus();
  if (limit_.held() + need > limit_.limit()) return OverLimit(need);
  const Result<hal::MemoryInfo> memory = Timed([&] { return device_->GetMemoryInfo(); });
  if (!memory.ok() || memory->free.count() >= need) return OkStatus();
  return ResourceExhausted(fmt::format("{} more is needed, and the device has {} free",
                                       ToString(Bytes(need)), ToString(memory->free)));
}

Status ExpandableSource::OverLimit(std::uint64_t more) const {
  return ResourceExhausted(fmt::format("{} more would exceed the limit of {}, of which {} is held",
                                       ToString(Bytes(more)), ToString(Bytes(limit_.limit())),
                                       ToString(Bytes(limit_.held()))));
}

Status ExpandableSource::FillInterval(Arena& arena, Interval interval, From from,
                                      std::vector<Handle*>& donors, std::vector<Handle*>& filled) {
  while (interval.size() != 0) {
    Handle* handle = nullptr;
    const auto ghost = extents_.find(interval.begin);
    auto found = donors.end();
    if (ghost != extents_.end() && ghost->second.handle->size <= interval.size()) {
      found = std::find(donors.begin(), donors.end(), ghost->second.handle);
    }
    if (found == donors.end()) {
      for (auto each = donors.begin(); each != donors.end(); ++each) {
        if ((*each)->size > interval.size()) continue;
        if (found == donors.end() || (*each)->size > (*found)->size) found = each;
      }
    }
    if (found != donors.end()) {
      handle = *found;
      const std::int64_t before = stats_.driver_ns;
      KEEL_TRY(MapAt(handle, arena, interval.begin));
      stats_.move_ns += stats_.driver_ns - before;
      donors.erase(found);
    } else {
      if (from == From::kAnywhere) ReleaseLargerThan(interval.size());
      const std::int64_t before = stats_.driver_ns;
      KEEL_ASSIGN(handle, Create(NewHandleSize(arena, interval.size())));
      if (Status mapped = MapAt(handle, arena, interval.begin); !mapped.ok()) {
        static_cast<void>(Release(handle).ok());  // logged and tried again by its owner
        return mapped;
      }
      // A moving average: one slow call changes little.
      handle_cost_ns_ += (stats_.driver_ns - before - handle_cost_ns_) / 8;
    }
    interval.begin += handle->size;
    filled.push_back(handle);
  }
  return OkStatus();
}

std::uint64_t ExpandableSource::NewHandleSize(const Arena& arena, std::uint64_t size) const {
  if (arena.kind == telemetry::Pool::kSmall) return std::min(size, small_handle_size_);
  const double allowed = options_.upkeep * static_cast<double>(Now() - began_ns_) -
                         static_cast<double>(stats_.driver_ns);
  for (std::uint64_t each = granule_; each < handle_size_; each *= 2) {
    const std::uint64_t count = (size + each - 1) / each;
    const std::uint64_t cost_ns = count * static_cast<std::uint64_t>(handle_cost_ns_);
    if (static_cast<double>(cost_ns) <= allowed) return std::min(size, each);
  }
  return std::min(size, handle_size_);
}

Result<ExpandableSource::Handle*> ExpandableSource::Create(std::uint64_t size) {
  if (!limit_.TryTake(size)) return OverLimit(size);
  const ScopedRange range("take memory");
  Result<hal::PhysicalMemory> memory =
      Timed([&] { return hal::PhysicalMemory::Create(device_, Bytes(size), options_.memory); });
  if (!memory.ok()) {
    limit_.GiveBack(size);
    return std::move(memory).status();
  }
  auto handle = std::make_unique<Handle>();
  handle->memory = *std::move(memory);
  handle->size = size;
  Handle* const raw = handle.get();
  handles_.emplace(raw, std::move(handle));
  ++stats_.created;
  return raw;
}

Status ExpandableSource::MapAt(Handle* handle, Arena& arena, std::uint64_t address) {
  const bool is_new = handle->ghosts.empty();
  const std::uint64_t from = is_new ? 0 : handle->ghosts.back();
  const auto known = extents_.find(address);
  if (known != extents_.end() && known->second.handle == handle) {
    std::erase(handle->ghosts, address);
    --ghosts_;
    ++stats_.returned;
    known->second.present = true;
  } else {
    const ScopedRange mapping("map memory");
    KEEL_TRY(UnmapGhosts(address, address + handle->size));
    KEEL_TRY(index_.Cover(address, handle->size));
    const hal::AddressRange& range = RangeOf(address);
    const std::span<const hal::AccessGrant> grants = grants_;
    Extent extent;
    KEEL_ASSIGN(extent.mapping, Timed([&] {
                  return hal::Mapping::Create(range, Offset(address - range.address().value()),
                                              handle->memory, grants);
                }));
    extent.handle = handle;
    extent.present = true;
    extent.arena = &arena;
    extents_.emplace(address, std::move(extent));
    if (!is_new) ++stats_.moved;
  }
  handle->at = address;
  handle->arena = &arena;
  if (is_new) {
    listener_.OnMapped(arena, address, handle->size, false);
  } else {
    listener_.OnMoved(*extents_.at(from).arena, from, arena, address, handle->size);
  }
  return OkStatus();
}

// --- Who else has a say -----------------------------------------------------------------------

Status ExpandableSource::Pin(std::uint64_t address, std::uint64_t size) {
  const MutexLock lock(mutex_);
  if (!AllThere(address, size)) {
    return InvalidArgument(fmt::format("{} at {} is not all memory of this allocator",
                                       ToString(Bytes(size)), ToString(DeviceAddress(address))));
  }
  for (auto extent = std::prev(extents_.upper_bound(address));
       extent != extents_.end() && extent->first < address + size; ++extent) {
    ++extent->second.handle->pins;
  }
  return OkStatus();
}

Status ExpandableSource::Unpin(std::uint64_t address, std::uint64_t size) {
  const MutexLock lock(mutex_);
  std::vector<Handle*> pinned;
  if (AllThere(address, size)) {
    for (auto extent = std::prev(extents_.upper_bound(address));
         extent != extents_.end() && extent->first < address + size; ++extent) {
      pinned.push_back(extent->second.handle);
    }
  }
  if (pinned.empty() || std::any_of(pinned.begin(), pinned.end(),
                                    [](const Handle* handle) { return handle->pins == 0; })) {
    return InvalidArgument(fmt::format("{} at {} was not pinned", ToString(Bytes(size)),
                                       ToString(DeviceAddress(address))));
  }
  for (Handle* const handle : pinned) --handle->pins;
  return OkStatus();
}

Status ExpandableSource::Grant(hal::DeviceId device) {
  const MutexLock lock(mutex_);
  const hal::AccessGrant grant{.device = device, .access = hal::Access::kReadWrite};
  const hal::AccessGrant none{.device = device, .access = hal::Access::kNone};
  for (auto extent = extents_.begin(); extent != extents_.end(); ++extent) {
    Status granted = extent->second.mapping.SetAccess({&grant, 1});
    if (granted.ok()) continue;
    while (extent != extents_.begin()) {
      --extent;
      // Access that nobody knows of harms nobody: what cannot be undone stays.
      static_cast<void>(extent->second.mapping.SetAccess({&none, 1}).ok());
    }
    return granted;
  }
  grants_.push_back(grant);
  return OkStatus();
}

void ExpandableSource::Revoke(hal::DeviceId device) {
  const MutexLock lock(mutex_);
  std::erase_if(grants_, [&](const hal::AccessGrant& grant) { return grant.device == device; });
}

ExpandableSource::Stats ExpandableSource::stats() {
  const MutexLock lock(mutex_);
  return stats_;
}

}  // namespace keel::memory
