// What an allocator tells about itself, its limits and its pools: everything but the way of a
// block.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/ranges.h"
#include "memory/allocator_core.h"

namespace keel::memory {
namespace {

std::string Text(std::uint64_t bytes) { return ToString(Bytes(bytes)); }

}  // namespace

// --- Limits -----------------------------------------------------------------------------------

Status AllocatorCore::Trim(std::uint64_t target) {
  const ScopedRange range("trim");
  const Deadline deadline = Deadline::After(kPatience);
  Status found = TakeBackAll(deadline);
  // Here, and not under the lock that everybody needs who wants memory.
  if (limit.held() > target) KEEL_TRY(WaitForStreams(deadline).status());
  KEEL_TRY(source_->Trim(target));
  return found;
}

Status AllocatorCore::SetFraction(double fraction) {
  if (!(fraction >= 0 && fraction <= 1)) {
    return InvalidArgument(fmt::format("a fraction of {} is not in [0, 1]", fraction));
  }
  limit.set_limit(
      static_cast<std::uint64_t>(static_cast<double>(device->info().memory.count()) * fraction));
  return OkStatus();
}

Status AllocatorCore::ForgetStream(hal::StreamHandle stream) {
  StreamClock* const clock = arenas_.FindClock(stream);
  if (clock == nullptr || clock->retired()) return OkStatus();
  KEEL_TRY(clock->Wait(clock->now(), Deadline::After(kPatience)));
  clock->Retire();
  FreeCollected(pending_.Collect(PendingFrees::Effort::kPoll));
  // A new stream may get the handle: whoever uses it asks the set of arenas, which notices.
  const MutexLock lock(caches_mutex_);
  for (const auto& cache : caches_) cache->ForgetRoutes();
  return OkStatus();
}

Status AllocatorCore::Pin(DeviceAddress address, Bytes size, bool pin) {
  // Without virtual memory nothing ever moves.
  if (expandable_ == nullptr) return OkStatus();
  return pin ? expandable_->Pin(address.value(), size.count())
             : expandable_->Unpin(address.value(), size.count());
}

Status AllocatorCore::AddPeer(std::shared_ptr<hal::Device> peer) {
  if (peer == nullptr) return InvalidArgument("no device to be a peer");
  if (peer->id() == device->id()) return OkStatus();
  const MutexLock lock(peers_mutex_);
  const auto same = [&](const auto& known) { return known->id() == peer->id(); };
  if (std::any_of(peers_.begin(), peers_.end(), same)) return OkStatus();
  KEEL_ASSIGN(const bool can, peer->CanAccessPeer(device->id()));
  if (!can) return OkStatus();
  KEEL_TRY(expandable_ != nullptr ? expandable_->Grant(peer->id())
                                  : peer->EnablePeerAccess(device->id()));
  peers_.push_back(std::move(peer));
  return OkStatus();
}

void AllocatorCore::RemovePeer(hal::DeviceId peer) {
  const MutexLock lock(peers_mutex_);
  if (expandable_ != nullptr && peer != device->id()) expandable_->Revoke(peer);
  std::erase_if(peers_, [&](const auto& known) { return known->id() == peer; });
}

std::vector<hal::AccessGrant> AllocatorCore::GrantsFor(hal::Access access) {
  std::vector<hal::AccessGrant> grants = {{.device = device->id(), .access = access}};
  const MutexLock lock(peers_mutex_);
  for (const std::shared_ptr<hal::Device>& peer : peers_) {
    grants.push_back({.device = peer->id(), .access = access});
  }
  return grants;
}

std::uint64_t AllocatorCore::AddCallback(DeviceAllocator::OutOfMemoryCallback callback) {
  const MutexLock lock(callbacks_mutex_);
  callbacks_.emplace(++last_callback_, std::move(callback));
  return last_callback_;
}

void AllocatorCore::RemoveCallback(std::uint64_t id) {
  const MutexLock lock(callbacks_mutex_);
  callbacks_.erase(id);
}

void AllocatorCore::SetMoveListener(DeviceAllocator::MoveListener listener) {
  const MutexLock lock(stats_mutex_);
  move_listener_ = std::move(listener);
}

// --- Private pools ----------------------------------------------------------------------------

PoolId AllocatorCore::CreatePool() {
  const MutexLock lock(pools_mutex_);
  pools_.emplace(++last_pool_, PoolState{});
  return last_pool_;
}

Status AllocatorCore::BeginPool(PoolId pool, std::function<bool(hal::StreamHandle)> filter) {
  const MutexLock lock(pools_mutex_);
  const auto found = pools_.find(pool);
  if (found == pools_.end()) {
    return InvalidArgument(fmt::format("there is no pool {}, or it was released", pool));
  }
  if (found->second.open) return FailedPrecondition(fmt::format("pool {} is open already", pool));
  found->second.filter = filter ? std::move(filter) : [](hal::StreamHandle) { return true; };
  found->second.open = true;
  open_order_.push_back(pool);
  open_pools_.fetch_add(1, std::memory_order_release);
  return OkStatus();
}

Status AllocatorCore::EndPool(PoolId pool) {
  const MutexLock lock(pools_mutex_);
  const auto found = pools_.find(pool);
  if (found == pools_.end() || !found->second.open) {
    return FailedPrecondition(fmt::format("pool {} is not open", pool));
  }
  found->second.open = false;
  std::erase(open_order_, pool);
  open_pools_.fetch_sub(1, std::memory_order_release);
  return OkStatus();
}

Status AllocatorCore::ReleasePool(PoolId pool) {
  {
    const MutexLock lock(pools_mutex_);
    const auto found = pools_.find(pool);
    if (found == pools_.end()) {
      return InvalidArgument(fmt::format("there is no pool {}, or it was released", pool));
    }
    if (found->second.open) return FailedPrecondition(fmt::format("pool {} is open", pool));
    pools_.erase(found);
  }
  for (Arena* const arena : arenas_.List()) {
    if (arena->pool != pool) continue;
    // So that others can have the memory soon; who finds no mark makes one.
    static_cast<void>(arena->clock.Mark(arena->clock.now()).ok());
    arena->open = true;
  }
  return OkStatus();
}

// --- What it is doing -------------------------------------------------------------------------

Result<AllocationInfo> AllocatorCore::Find(DeviceAddress address) {
  if (debug_ != nullptr) {
    KEEL_ASSIGN(const DebugMemory::Allocation found, debug_->Find(address));
    const Arena& arena = Arena::Of(*found.block);
    return AllocationInfo{.address = DeviceAddress(found.address),
                          .size = Bytes(found.usable),
                          .requested = Bytes(found.requested),
                          .stream = arena.clock.stream(),
                          .tag = found.tag,
                          .pool = arena.pool};
  }
  for (Arena* const arena : arenas_.List()) {
    const ShortLockGuard lock(arena->mutex);
    const Block* const block = arena->blocks.Find(address.value());
    if (block == nullptr) continue;
    if (block->free() || block->mark != kLive) break;
    return InfoOf(*block, *arena);
  }
  return NotFound(fmt::format("no live block has the byte at {}", ToString(address)));
}

std::optional<AllocationInfo> AllocatorCore::FindBlock(DeviceAddress address) {
  if (debug_ != nullptr) {
    const Result<AllocationInfo> found = Find(address);
    if (!found.ok() || found->address != address) return std::nullopt;
    return *found;
  }
  const Block* const block = index_.Find(address.value());
  if (block == nullptr) return std::nullopt;
  Arena& arena = Arena::Of(*block);
  const ShortLockGuard lock(arena.mutex);
  if (block->mark != kLive) return std::nullopt;
  return InfoOf(*block, arena);
}

AllocationInfo AllocatorCore::InfoOf(const Block& block, const Arena& arena) {
  return {.address = DeviceAddress(block.address),
          .size = Bytes(block.size),
          .requested = Bytes(block.requested),
          .stream = StreamOf(block, arena),
          .tag = telemetry::TagId{block.tag.get()},
          .pool = arena.pool};
}

Bytes AllocatorCore::Allocated() {
  return Bytes(static_cast<std::uint64_t>(counters_.ReadBytes()));
}

telemetry::MemoryStats AllocatorCore::Stats() {
  const telemetry::BlockCounters::Values hot = counters_.Read();
  telemetry::MemoryStats stats;
  std::int64_t split_blocks[2] = {};
  std::int64_t split_bytes[2] = {};
  std::map<std::string, std::int64_t, std::less<>> tags;
  for (Arena* const arena : arenas_.List()) {
    const auto kind = static_cast<std::size_t>(arena->kind);
    const ShortLockGuard lock(arena->mutex);
    for (const auto& [begin, span] : arena->blocks.spans()) {
      const bool split = span.first() != span.last();
      for (const Block* block = span.first(); block != span.back; block = block->after) {
        if (!block->free() && block->mark == kLive && block->tag != 0) {
          tags[std::string(telemetry::TagName(telemetry::TagId{block->tag.get()}))] +=
              static_cast<std::int64_t>(block->size);
        }
        if (!split || (!block->free() && block->mark != kCached)) continue;
        ++split_blocks[kind];
        split_bytes[kind] += static_cast<std::int64_t>(block->size);
      }
    }
  }
  // Before stats_mutex_: the source reports what it maps while it holds its own.
  const std::uint64_t avoided = expandable_ == nullptr ? 0 : expandable_->stats().returned;
  const MutexLock lock(stats_mutex_);
  const auto set = [](telemetry::Stat& stat, std::int64_t value) {
    if (value > stat.current) stat.Increase(value - stat.current);
    if (value < stat.current) stat.Decrease(stat.current - value);
  };
  set(slow_.inactive_split.small_pool, split_blocks[0]);
  set(slow_.inactive_split.large_pool, split_blocks[1]);
  set(slow_.inactive_split.all, split_blocks[0] + split_blocks[1]);
  set(slow_.inactive_split_bytes.small_pool, split_bytes[0]);
  set(slow_.inactive_split_bytes.large_pool, split_bytes[1]);
  set(slow_.inactive_split_bytes.all, split_bytes[0] + split_bytes[1]);
  stats = slow_;
  for (const auto& [tag, bytes] : whole_) {
    if (tag == telemetry::TagId::kNone) continue;
    tags[std::string(telemetry::TagName(tag))] += static_cast<std::int64_t>(bytes);
  }
  stats.tag_bytes = std::move(tags);
  stats.allocation = hot.blocks;
  stats.allocated_bytes = hot.bytes;
  stats.requested_bytes = hot.requested;
  stats.active = hot.active_blocks;
  stats.active_bytes = hot.active_bytes;
  stats.pending_frees = hot.pending_blocks;
  stats.pending_free_bytes = hot.pending_bytes;
  stats.front_cache_misses = hot.misses;
  stats.front_cache_hits = stats.allocation.all.allocated - stats.front_cache_misses;
  stats.max_split_size = config.max_split_size == kUnlimited
                             ? -1
                             : static_cast<std::int64_t>(config.max_split_size.count());
  stats.driver_calls_avoided = static_cast<std::int64_t>(avoided);
  return stats;
}

void AllocatorCore::ResetStats(bool peaks) {
  const MutexLock lock(stats_mutex_);
  if (peaks) {
    counters_.ResetPeak();
    slow_.ResetPeak();
  } else {
    counters_.ResetAccumulated();
    slow_.ResetAccumulated();
  }
}

MemorySnapshot AllocatorCore::Snapshot() {
  MemorySnapshot snapshot{.device = device->id()};
  for (Arena* const arena : arenas_.List()) {
    const ShortLockGuard lock(arena->mutex);
    for (const auto& [begin, span] : arena->blocks.spans()) {
      SegmentSnapshot segment{.address = DeviceAddress(begin),
                              .size = Bytes(span.end - begin),
                              .stream = arena->clock.stream(),
                              .kind = arena->kind,
                              .pool = arena->pool,
                              .expandable = expandable_ != nullptr};
      for (const Block* block = span.first(); block != span.back; block = block->after) {
        BlockSnapshot each{.address = DeviceAddress(block->address), .size = Bytes(block->size)};
        if (!block->free() && (block->mark == kLive || block->mark == kPending)) {
          each.requested = Bytes(block->requested);
          each.tag = telemetry::TagId{block->tag.get()};
          each.state = block->mark == kLive ? BlockSnapshot::State::kAllocated
                                            : BlockSnapshot::State::kPendingFree;
          if (debug_ != nullptr) {
            // The guard before it is a block of its own, so that its address is the program's.
            const Bytes front(debug_->FrontOf(*block));
            if (!front.empty()) segment.blocks.push_back({.address = each.address, .size = front});
            each.address = each.address + front;
            each.size -= front;
          }
        }
        segment.blocks.push_back(each);
      }
      snapshot.segments.push_back(std::move(segment));
    }
  }
  std::sort(
      snapshot.segments.begin(), snapshot.segments.end(),
      [](const SegmentSnapshot& a, const SegmentSnapshot& b) { return a.address < b.address; });
  return snapshot;
}

std::string AllocatorCore::Report() {
  const telemetry::MemoryStats stats = Stats();
  const hal::DeviceInfo& info = device->info();
  std::string text = fmt::format("{} {} ({}), {}\n", info.driver, info.ordinal, info.name,
                                 Text(info.memory.count()));
  const auto bytes = [](std::int64_t value) { return Text(static_cast<std::uint64_t>(value)); };
  text +=
      fmt::format("  held from the device: {} of a limit of {}, at most {} so far\n",
                  Text(limit.held()), Text(limit.limit()), bytes(stats.reserved_bytes.all.peak));
  text +=
      fmt::format("  in use: {} in {} blocks ({} requested), at most {} so far\n",
                  bytes(stats.allocated_bytes.all.current), stats.allocation.all.current,
                  bytes(stats.requested_bytes.all.current), bytes(stats.allocated_bytes.all.peak));
  if (stats.pending_free_bytes.current != 0) {
    text += fmt::format("  freed, still used by other streams: {} in {} blocks\n",
                        bytes(stats.pending_free_bytes.current), stats.pending_frees.current);
  }
  if (debug_ != nullptr) {
    const DebugFindings findings = debug_->findings();
    text += fmt::format(
        "  debug mode: {} freed and kept in {} blocks; {} errors found, {} times not looked\n",
        ToString(findings.kept), findings.kept_blocks, findings.found, findings.unchecked);
  }
  std::uint64_t free_bytes = 0;
  std::uint64_t kept = 0;
  std::size_t pieces = 0;
  std::uint64_t largest = 0;
  for (Arena* const arena : arenas_.List()) {
    const ShortLockGuard lock(arena->mutex);
    free_bytes += arena->blocks.free_bytes();
    pieces += arena->blocks.CountFree();
    if (!arena->open) kept += arena->blocks.free_bytes();
    if (const Block* const block = arena->blocks.Largest(); block != nullptr) {
      largest = std::max(largest, block->size);
    }
  }
  text += fmt::format("  free here: {} in {} pieces, the largest {}; {} of it kept for graphs\n",
                      Text(free_bytes), pieces, Text(largest), Text(kept));
  std::vector<std::pair<std::int64_t, std::string>> tags;
  tags.reserve(stats.tag_bytes.size());
  for (const auto& [tag, live] : stats.tag_bytes) tags.emplace_back(live, tag);
  std::sort(tags.rbegin(), tags.rend());
  for (std::size_t i = 0; i < std::min<std::size_t>(tags.size(), 5); ++i) {
    text += fmt::format("  tag '{}': {}\n", tags[i].second, bytes(tags[i].first));
  }
  if (const Result<hal::MemoryInfo> memory = device->GetMemoryInfo(); memory.ok()) {
    const std::uint64_t used = memory->total.count() - memory->free.count();
    text += fmt::format("  the device: {} free of {}; others hold about {}\n",
                        Text(memory->free.count()), Text(memory->total.count()),
                        Text(used > limit.held() ? used - limit.held() : 0));
  }
  return text;
}

Status AllocatorCore::OutOfMemory(const Request& request, const Status& cause) {
  std::uint64_t device_free = 0;
  if (const Result<hal::MemoryInfo> memory = device->GetMemoryInfo(); memory.ok()) {
    device_free = memory->free.count();
  }
  Record(telemetry::EventAction::kOom, device_free, request.asked.count(), request.stream,
         request.tag);
  {
    const MutexLock lock(stats_mutex_);
    ++slow_.num_ooms;
  }
  const bool limited = limit.limit() < device->info().memory.count();
  return ResourceExhausted(
             fmt::format("out of memory: {} asked for ({} bytes){}\n{}  {}\n", Text(request.size),
                         request.asked.count(),
                         request.tag == telemetry::TagId::kNone
                             ? std::string()
                             : fmt::format(", for '{}'", telemetry::TagName(request.tag)),
                         Report(),
                         limited ? "what to do: raise the limit (KEEL_ALLOC_CONF limit or "
                                   "per_process_memory_fraction), or hold less"
                                 : "what to do: hold less at a time, or free it earlier; the "
                                   "largest tags are above") +
             fmt::format("  cause: {}", cause.message()))
      .WithVendor(cause.vendor_code(), cause.vendor_name());
}

Status AllocatorCore::TakeWhole(std::uint64_t size, telemetry::TagId tag) {
  if (!limit.TryTake(size)) {
    const std::uint64_t most = limit.limit();
    if (size <= most) KEEL_TRY(Trim(most - size));
    if (!limit.TryTake(size)) {
      return ResourceExhausted(fmt::format(
          "{} more would be above the limit of {}: {} are held, and no more of that is free",
          Text(size), Text(most), Text(limit.held())));
    }
  }
  const MutexLock lock(stats_mutex_);
  slow_.reserved_bytes.Increase(telemetry::Pool::kLarge, static_cast<std::int64_t>(size));
  whole_[tag] += size;
  return OkStatus();
}

void AllocatorCore::GiveBackWhole(std::uint64_t size, telemetry::TagId tag) {
  {
    const MutexLock lock(stats_mutex_);
    slow_.reserved_bytes.Decrease(telemetry::Pool::kLarge, static_cast<std::int64_t>(size));
    const auto its = whole_.find(tag);
    its->second -= size;
    if (its->second == 0) whole_.erase(its);
  }
  limit.GiveBack(size);
}

std::string AllocatorCore::CheckPools() {
  for (Arena* const arena : arenas_.List()) {
    const ShortLockGuard lock(arena->mutex);
    if (std::string wrong = arena->blocks.Check(); !wrong.empty()) return wrong;
  }
  return {};
}

std::string AllocatorCore::Check() {
  if (std::string wrong = CheckPools(); !wrong.empty()) return wrong;
  std::uint64_t bytes = 0;
  for (Arena* const arena : arenas_.List()) {
    const ShortLockGuard lock(arena->mutex);
    bytes += arena->blocks.bytes();
  }
  {
    const MutexLock lock(stats_mutex_);
    for (const auto& [tag, whole] : whole_) bytes += whole;
  }
  if (bytes != limit.held()) {
    return fmt::format("arenas have {} bytes, and {} are held", bytes, limit.held());
  }
  return {};
}

}  // namespace keel::memory
