#include "memory/allocator_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <ranges>

#include "keel/base/log.h"

namespace keel::memory {
namespace {

constexpr std::uint64_t kSmallMax = 1 << 20;

std::atomic<std::uint64_t> last_id{0};

// The caches of the calling thread: the two allocators that it used last without a search. Plain
// data, reached without a call; who cleans up is `Ending`, below.
struct LocalEntry {
  std::uint64_t id = 0;
  ThreadCache* cache = nullptr;
};
__attribute__((tls_model("initial-exec"))) thread_local std::array<LocalEntry, 2> local_entries;

// Plain data as well: objects of the thread, and static ones, may free after `ending` is gone.
thread_local bool has_ended = false;

// Gives back what the thread keeps when it ends, as far as the allocators still live.
class Ending {
 public:
  struct Entry {
    std::uint64_t id = 0;
    std::weak_ptr<AllocatorCore> core;
    ThreadCache* cache = nullptr;
  };
  ~Ending() {
    has_ended = true;
    local_entries = {};
    for (const Entry& entry : entries) {
      if (const std::shared_ptr<AllocatorCore> core = entry.core.lock()) core->Retire(entry.cache);
    }
  }
  std::vector<Entry> entries;
};
thread_local Ending ending;

std::uint64_t FractionOf(const hal::Device& device, double fraction) {
  return static_cast<std::uint64_t>(static_cast<double>(device.info().memory.count()) * fraction);
}

// What is left of a large block of a plain segment is a block of its own only from here on.
constexpr std::uint64_t kLargeSlack = 1 << 20;

// What a thread keeps of a plain segment keeps all of it: less of it, then.
constexpr std::uint64_t kPlainFrontCache = 256 << 10;

bool UsesExpandable(const hal::Device& device, const AllocatorConfig& config) {
  return config.backend == AllocatorConfig::Backend::kNative && config.expandable_segments &&
         device.capabilities().virtual_memory;
}

// What a thread may keep for itself, per stream.
std::uint64_t FrontOf(const hal::Device& device, const AllocatorConfig& config) {
  if (config.backend == AllocatorConfig::Backend::kPassthrough) return 0;
  return UsesExpandable(device, config) ? config.front_cache.count()
                                        : std::min(config.front_cache.count(), kPlainFrontCache);
}

// From which size on blocks are never split, if at all. The segments that requests share always
// are, or none of them would be used twice.
std::uint64_t OversizeFrom(const AllocatorConfig& config) {
  if (config.max_split_size == kUnlimited) return ~std::uint64_t{0};
  return std::max(config.max_split_size, config.large_segment_size + Bytes(kQuantum)).count();
}

Cutting LargeCutting(const hal::Device& device, const AllocatorConfig& config) {
  if (UsesExpandable(device, config)) return {};
  return {.slack = kLargeSlack,
          .oversize = OversizeFrom(config),
          .rounding = config.max_non_split_rounding.count()};
}

// Keys that act on the other kind of segments only. Which kind it is, the configuration alone does
// not say: a device without virtual memory has plain ones whatever was asked for.
void WarnOfKeysWithoutEffect(const hal::Device& device, const AllocatorConfig& config) {
  // There the configuration itself says so, for every key.
  if (config.backend == AllocatorConfig::Backend::kPassthrough) return;
  const AllocatorConfig defaults;
  const auto warn = [](std::string_view text) { Log(LogLevel::kWarn, text); };
  if (UsesExpandable(device, config)) {
    if (config.max_split_size != defaults.max_split_size) {
      warn(
          "max_split_size_mb has no effect: expandable segments move the memory of a large hole to "
          "where it is needed, so that splitting it loses nothing");
    }
    // It follows the size of segments unless it is given. Who set up a configuration by hand may
    // have left it at its default.
    if (config.max_non_split_rounding != config.large_segment_size &&
        config.max_non_split_rounding != defaults.max_non_split_rounding) {
      warn(
          "max_non_split_rounding_mb has no effect: it is for blocks that max_split_size_mb keeps "
          "whole, and expandable segments have none");
    }
    if (config.large_segment_size != defaults.large_segment_size) {
      warn(
          "large_segment_size_mb has no effect: expandable segments take what a request lacks, in "
          "handles of at most handle_size");
    }
    return;
  }
  if (config.handle_size != defaults.handle_size) {
    warn("handle_size has no effect: plain segments have no handles");
  }
  if (config.upkeep != defaults.upkeep) {
    warn("upkeep has no effect: plain segments have no handles");
  }
  if (config.front_cache != defaults.front_cache && config.front_cache > Bytes(kPlainFrontCache)) {
    warn(
        fmt::format("front_cache is {} instead of {}: of plain segments a thread keeps no more, "
                    "because one block of a segment keeps all of it",
                    ToString(Bytes(kPlainFrontCache)), ToString(config.front_cache)));
  }
}

// Far enough for a fold to be rare, and the error of a peak to be small beside a device's memory.
constexpr telemetry::BlockCounters::FoldAfter kFoldAfter{.blocks = 65'536,
                                                         .bytes = std::int64_t{256} << 20};

}  // namespace

// --- Making and ending ------------------------------------------------------------------------

Result<std::shared_ptr<AllocatorCore>> AllocatorCore::Create(std::shared_ptr<hal::Device> device,
                                                             DeviceAllocatorOptions options) {
  std::vector<std::shared_ptr<hal::Device>> peers = std::move(options.peers);
  const std::shared_ptr<AllocatorCore> core(
      new AllocatorCore(std::move(device), std::move(options)), DeleteHere());
  for (std::shared_ptr<hal::Device>& peer : peers) KEEL_TRY(core->AddPeer(std::move(peer)));
  return core;
}

AllocatorCore::AllocatorCore(std::shared_ptr<hal::Device> its_device,
                             DeviceAllocatorOptions options)
    : device(std::move(its_device)),
      config(std::move(options.config)),
      limit(
          std::min(config.limit.count(), FractionOf(*device, config.per_process_memory_fraction))),
      id_(last_id.fetch_add(1) + 1),
      capacity_(device->info().memory.count()),
      largest_(config.debug == AllocatorConfig::Debug::kOff ? capacity_ : 0),
      rounds_up_(std::any_of(config.roundup_power2_divisions.begin(),
                             config.roundup_power2_divisions.end(),
                             [](std::uint32_t divisions) { return divisions > 1; })),
      oversize_(OversizeFrom(config)),
      returned_below_(config.backend == AllocatorConfig::Backend::kPassthrough ? 0 : oversize_),
      counts_requests_(config.garbage_collection_threshold > 0),
      log_(options.log != nullptr ? *options.log : telemetry::EventLog::Global()),
      events_(device),
      counters_(kFoldAfter),
      arenas_(device, events_, FrontOf(*device, config), LargeCutting(*device, config)),
      pending_(options.now_ns ? options.now_ns : &telemetry::EventLog::Now) {
  if (config.history != 0) {
    const Status enabled =
        log_.Enable({.capacity = config.history, .stacks = config.history_stacks});
    if (!enabled.ok()) Log(LogLevel::kWarn, fmt::format("history: {}", enabled.ToString()));
  }
  WarnOfKeysWithoutEffect(*device, config);
  SegmentListener& listener = *this;
  const bool passthrough = config.backend == AllocatorConfig::Backend::kPassthrough;
  if (UsesExpandable(*device, config)) {
    auto source = std::make_unique<ExpandableSource>(
        device, index_, limit, [this] { return arenas_.List(); }, listener,
        ExpandableOptions{.handle_size = config.handle_size.count(),
                          .upkeep = config.upkeep,
                          .now_ns = std::move(options.now_ns)});
    expandable_ = source.get();
    source_ = std::move(source);
  } else {
    auto source = std::make_unique<PlainSource>(
        device, index_, limit, listener,
        PlainOptions{.large_segment_size = config.large_segment_size.count(),
                     .exact = passthrough,
                     .oversize = oversize_});
    if (passthrough) passthrough_ = source.get();
    source_ = std::move(source);
  }
  if (config.debug != AllocatorConfig::Debug::kOff) StartDebugMode();
}

AllocatorCore::~AllocatorCore() {
  if (debug_ != nullptr) {
    // Nobody is there to take it; the log has what it finds.
    static_cast<void>(debug_->CheckLive().ok());
    static_cast<void>(debug_->Empty().ok());
  }
  // What is freed or live may still be in use: memory must not go before that work is done.
  for (StreamClock* const clock : arenas_.Clocks()) {
    Status waited = clock->Wait(clock->now(), Deadline::After(kPatience));
    if (!waited.ok() && !clock->retired()) {
      // No event could be had: then the stream itself.
      waited = device->SynchronizeStream(clock->stream(), Deadline::After(kPatience));
    }
    if (!waited.ok() && waited.code() != StatusCode::kDeviceLost) {
      Log(LogLevel::kWarn,
          fmt::format("an allocator ends while a stream is not done: {}", waited.ToString()));
    }
  }
  for (Arena* const arena : arenas_.List()) {
    const ShortLockGuard lock(arena->mutex);
    for (const auto& [begin, span] : arena->blocks.spans()) {
      for (const Block* block = span.first(); block != span.back; block = block->after) {
        if (!block->free()) delete ListOfUses(block->attachment);
      }
    }
  }
}

Status AllocatorCore::Here() const {
  if (home_.here()) return OkStatus();
  return FailedPrecondition("device memory cannot be used in a forked child");
}

// --- The caches of threads --------------------------------------------------------------------

ThreadCache& AllocatorCore::Local() {
  for (const LocalEntry& entry : local_entries) {
    if (entry.id == id_) return *entry.cache;
  }
  return MakeLocal();
}

ThreadCache& AllocatorCore::MakeLocal() {
  ThreadCache* cache = nullptr;
  if (!has_ended) {
    for (const Ending::Entry& entry : ending.entries) {
      if (entry.id == id_) cache = entry.cache;
    }
  }
  if (cache == nullptr) {
    {
      const MutexLock lock(caches_mutex_);
      caches_.push_back(std::make_unique<ThreadCache>(counters_.AddShard()));
      cache = caches_.back().get();
    }
    // What a thread keeps after its end stays in the registry, where memory that is short is found.
    if (!has_ended) {
      std::erase_if(ending.entries,
                    [](const Ending::Entry& entry) { return entry.core.expired(); });
      ending.entries.push_back({id_, weak_from_this(), cache});
    }
  }
  local_entries[1] = local_entries[0];
  local_entries[0] = {id_, cache};
  return *cache;
}

void AllocatorCore::Retire(ThreadCache* cache) {
  // In a child the lock may be held by a thread that is not there.
  if (!Here().ok()) return;
  std::vector<ThreadCache::Batch> batches;
  const MutexLock lock(caches_mutex_);
  cache->lock.Lock();
  batches = cache->TakeAll(nullptr);
  cache->lock.Unlock();
  for (const ThreadCache::Batch& batch : batches) GiveBack(batch);
  counters_.Retire(cache->shard);
  std::erase_if(caches_, [&](const auto& each) { return each.get() == cache; });
}

bool AllocatorCore::FlushCaches(const Arena* only) {
  bool any = false;
  const ThreadCache* const mine = &Local();
  const MutexLock lock(caches_mutex_);
  for (const auto& cache : caches_) {
    std::vector<ThreadCache::Batch> batches;
    if (cache.get() == mine) {
      cache->lock.LockAsOwner();
      batches = cache->TakeAll(only);
      cache->lock.UnlockAsOwner();
    } else {
      cache->lock.Lock();
      batches = cache->TakeAll(only);
      cache->lock.Unlock();
    }
    for (const ThreadCache::Batch& batch : batches) {
      GiveBack(batch);
      any = true;
    }
  }
  return any;
}

void AllocatorCore::GiveBack(const ThreadCache::Batch& batch) {
  const std::uint64_t epoch = batch.arena->clock.now();
  const ShortLockGuard lock(batch.arena->mutex);
  for (Block* block = batch.first; block != nullptr;) {
    Block* const next = block->next;
    block->PrefetchNeighbours();
    index_.Remove(*block);
    batch.arena->Free(block, epoch);
    block = next;
  }
}

// --- What is told to others -------------------------------------------------------------------

void AllocatorCore::RecordAlways(telemetry::EventAction action, std::uint64_t address,
                                 std::uint64_t size, hal::StreamHandle stream,
                                 telemetry::TagId tag) {
  log_.Record({.action = action,
               .device = device->id(),
               .address = DeviceAddress(address),
               .size = Bytes(size),
               .stream = stream.value,
               .tag = tag});
}

void AllocatorCore::RecordFreed(const Block& block, const Arena& arena) {
  for (const auto action :
       {telemetry::EventAction::kFreeRequested, telemetry::EventAction::kFreeCompleted}) {
    RecordAlways(action, block.address, block.requested, arena.clock.stream(),
                 telemetry::TagId{block.tag.get()});
  }
}

void AllocatorCore::OnMapped(const Arena& arena, std::uint64_t address, std::uint64_t size,
                             bool whole) {
  Record(whole ? telemetry::EventAction::kSegmentAlloc : telemetry::EventAction::kSegmentMap,
         address, size, arena.clock.stream(), telemetry::TagId::kNone);
  const MutexLock lock(stats_mutex_);
  slow_.segment.Increase(arena.kind, 1);
  slow_.reserved_bytes.Increase(arena.kind, static_cast<std::int64_t>(size));
  if (!whole) slow_.mapped_bytes.Increase(static_cast<std::int64_t>(size));
  if (whole && size >= oversize_) slow_.oversize_segments.Increase(1);
  ++slow_.num_device_alloc;
}

void AllocatorCore::OnUnmapped(const Arena& arena, std::uint64_t address, std::uint64_t size,
                               bool whole) {
  Record(whole ? telemetry::EventAction::kSegmentFree : telemetry::EventAction::kSegmentUnmap,
         address, size, arena.clock.stream(), telemetry::TagId::kNone);
  const MutexLock lock(stats_mutex_);
  if (!whole && move_listener_) move_listener_(DeviceAddress(address), Bytes(size));
  slow_.segment.Decrease(arena.kind, 1);
  slow_.reserved_bytes.Decrease(arena.kind, static_cast<std::int64_t>(size));
  if (!whole) slow_.mapped_bytes.Decrease(static_cast<std::int64_t>(size));
  if (whole && size >= oversize_) slow_.oversize_segments.Decrease(1);
  ++slow_.num_device_free;
}

void AllocatorCore::OnMoved(const Arena& from, std::uint64_t from_address, const Arena& to,
                            std::uint64_t to_address, std::uint64_t size) {
  Record(telemetry::EventAction::kSegmentUnmap, from_address, size, from.clock.stream(),
         telemetry::TagId::kNone);
  Record(telemetry::EventAction::kSegmentMap, to_address, size, to.clock.stream(),
         telemetry::TagId::kNone);
  const MutexLock lock(stats_mutex_);
  if (move_listener_) move_listener_(DeviceAddress(from_address), Bytes(size));
  ++slow_.pages_moved;
  if (from.kind == to.kind) return;
  // All of it stays what it is; only the parts change.
  const auto bytes = static_cast<std::int64_t>(size);
  slow_.segment.of(from.kind).Decrease(1);
  slow_.segment.of(to.kind).Increase(1);
  slow_.reserved_bytes.of(from.kind).Decrease(bytes);
  slow_.reserved_bytes.of(to.kind).Increase(bytes);
}

// --- Allocating -------------------------------------------------------------------------------

telemetry::Pool AllocatorCore::KindOf(std::uint64_t size) {
  return size <= kSmallMax ? telemetry::Pool::kSmall : telemetry::Pool::kLarge;
}

std::uint64_t AllocatorCore::RoundUp(std::uint64_t size) const {
  const std::uint32_t divisions = config.RoundupDivisions(Bytes(size));
  if (divisions > 1 && size > kQuantum * divisions) {
    const std::uint64_t step = std::max(std::bit_floor(size) / divisions, kQuantum);
    return (size + step - 1) / step * step;
  }
  return RoundToQuantum(size);
}

Arena& AllocatorCore::RouteSlow(ThreadCache& cache, hal::StreamHandle stream,
                                telemetry::Pool kind) {
  if (open_pools_.load(std::memory_order_acquire) != 0) {
    const MutexLock lock(pools_mutex_);
    for (const PoolId id : std::views::reverse(open_order_)) {
      if (pools_.at(id).filter(stream)) return arenas_.Find(stream, kind, id);
    }
  }
  Arena& arena = arenas_.Find(stream, kind, 0);
  ThreadCache::Route& route = cache.last[static_cast<std::size_t>(kind)];
  route.stream = stream;
  route.arena.store(&arena, std::memory_order_relaxed);
  cache.lock.LockAsOwner();
  cache.Open(arena);
  cache.lock.UnlockAsOwner();
  return arena;
}

Status AllocatorCore::CheckAlignment(Bytes alignment) const {
  if (!IsPowerOfTwo(alignment)) {
    return InvalidArgument(
        fmt::format("an alignment of {} is not a power of two", ToString(alignment)));
  }
  if (alignment > device->info().memory) {
    return InvalidArgument(fmt::format("an alignment of {} is more than the device's {}",
                                       ToString(alignment), ToString(device->info().memory)));
  }
  return OkStatus();
}

Result<DeviceAddress> AllocatorCore::Allocate(Bytes size, hal::StreamHandle stream,
                                              const AllocationOptions& options) {
  if (!home_.here()) [[unlikely]]
    return Here();
  if (size.empty()) [[unlikely]]
    return DeviceAddress();
  const telemetry::TagId tag =
      options.tag != telemetry::TagId::kNone ? options.tag : telemetry::CurrentTag();
  if (size.count() > largest_ || !options.alignment.empty()) [[unlikely]] {
    return AllocateRarely(size, stream, options, tag);
  }
  const std::uint64_t rounded = Round(size.count());
  const telemetry::Pool kind = KindOf(rounded);
  ThreadCache& cache = Local();
  Arena& arena = Route(cache, stream, kind);
  // Of large blocks there are none; to ask is cheaper than to guess wrongly which it is.
  cache.lock.LockAsOwner();
  Block* block = cache.Pop(arena, rounded);
  cache.lock.UnlockAsOwner();
  if (block == nullptr) {
    CountMiss(cache);
    if (pending_.Due()) [[unlikely]] {
      FreeCollected(pending_.Collect(PendingFrees::Effort::kMark));
    }
    {
      const ShortLockGuard lock(arena.mutex);
      block = arena.TryTake(rounded, kQuantum);
    }
    if (block == nullptr) [[unlikely]] {
      return AllocateFrom(arena, cache,
                          {.size = rounded,
                           .asked = size,
                           .stream = stream,
                           .tag = tag,
                           .deadline = options.deadline});
    }
    Publish(block);
  }
  HandOut(*cache.shard, *block, kind, size, tag);
  Record(telemetry::EventAction::kAlloc, block->address, size.count(), stream, tag);
  return DeviceAddress(block->address);
}

Result<DeviceAddress> AllocatorCore::AllocateFrom(Arena& arena, ThreadCache& cache,
                                                  const Request& request) {
  KEEL_ASSIGN(Block* const block, Obtain(arena, request));
  Publish(block);
  HandOut(*cache.shard, *block, Arena::Of(*block).kind, request.asked, request.tag);
  Record(telemetry::EventAction::kAlloc, block->address, request.asked.count(), request.stream,
         request.tag);
  return DeviceAddress(block->address);
}

void AllocatorCore::CountOversize(int more) {
  const MutexLock lock(stats_mutex_);
  more > 0 ? slow_.oversize_allocations.Increase(more) : slow_.oversize_allocations.Decrease(-more);
}

Block* AllocatorCore::TryArena(Arena& arena, const Request& request) {
  const ShortLockGuard lock(arena.mutex);
  return arena.TryTake(request.size, request.alignment);
}

Block* AllocatorCore::SearchArena(Arena& arena, const Request& request) {
  const ShortLockGuard lock(arena.mutex);
  return arena.TakeIfAny(request.size, request.alignment);
}

Result<Block*> AllocatorCore::Obtain(Arena& arena, const Request& request) {
  if (Block* const block = TryArena(arena, request); block != nullptr) [[likely]] {
    return block;
  }
  return ObtainSlow(arena, request);
}

Result<Block*> AllocatorCore::ObtainSlow(Arena& arena, const Request& request) {
  // What costs nothing: blocks that became free, and what threads keep.
  if (FreeCollected(pending_.Collect(PendingFrees::Effort::kMark)) || FlushCaches(&arena)) {
    if (Block* const block = TryArena(arena, request); block != nullptr) return block;
  }
  KEEL_TRY(CollectGarbage(request.size));
  Result<Block*> grown = source_->Grow(arena, request.size, request.alignment);
  if (grown.ok() || grown.status().code() != StatusCode::kResourceExhausted) return grown;

  return ObtainShort(arena, request, grown.status());
}

// --- Freeing ----------------------------------------------------------------------------------

Status AllocatorCore::Free(DeviceAddress address, const Bytes* size) {
  if (!home_.here()) [[unlikely]]
    return Here();
  if (!address) return OkStatus();
  const AddressIndex::Found found = index_.FindPlace(address.value());
  Block* const block = found.block();
  if (block == nullptr || block->mark != kLive) [[unlikely]]
    return FreeRarely(address, size);
  if (size != nullptr && size->count() != block->requested) [[unlikely]]
    return WrongSize(address, Bytes(block->requested), *size);
  Arena& arena = Arena::Of(*block);
  ThreadCache& cache = Local();
  // What another thread may free too is looked at under the lock only; of large blocks none is
  // kept.
  if (arena.kind == telemetry::Pool::kSmall && block->attachment == nullptr &&
      cache.Keeps(arena, block->size)) {
    if (log_.enabled()) [[unlikely]] {
      RecordFreed(*block, arena);
    }
    cache.shard->Freed(telemetry::Pool::kSmall, BytesOf(*block), RequestedOf(*block));
    block->mark = kCached;
    cache.lock.LockAsOwner();
    const ThreadCache::Batch out = cache.Push(arena, block);
    cache.lock.UnlockAsOwner();
    if (out.first != nullptr) [[unlikely]]
      GiveBack(out);
    return OkStatus();
  }
  if (!log_.enabled()) [[likely]] {
    const ShortLockGuard lock(arena.mutex);
    // Another thread may have freed it since it was found, and the block may be another by now.
    if (!found.current() || block->mark != kLive) [[unlikely]]
      return FreeRarely(address, nullptr);
    if (block->attachment == nullptr && block->size < returned_below_) [[likely]] {
      block->PrefetchNeighbours();
      cache.shard->Freed(arena.kind, BytesOf(*block), RequestedOf(*block));
      found.Remove();
      arena.Free(block, arena.clock.now());
      return OkStatus();
    }
  }
  return FreeSlow(cache, address, found, arena);
}

Status AllocatorCore::WrongSize(DeviceAddress address, Bytes requested, Bytes size) {
  return InvalidArgument(
      fmt::format("the block at {} was allocated with {} bytes and freed with {}",
                  ToString(address), requested.count(), size.count()));
}

Status AllocatorCore::FreeSlow(ThreadCache& cache, DeviceAddress address, AddressIndex::Found found,
                               Arena& arena) {
  Block* const block = found.block();
  void* uses = nullptr;
  {
    const ShortLockGuard lock(arena.mutex);
    if (!found.current() || block->mark != kLive) return FreeRarely(address, nullptr);  // as above
    Record(telemetry::EventAction::kFreeRequested, block->address, block->requested,
           StreamOf(*block, arena), telemetry::TagId{block->tag.get()});
    if (block->size >= oversize_) CountOversize(-1);
    uses = std::exchange(block->attachment, nullptr);
    if (uses == nullptr) {
      cache.shard->Freed(arena.kind, BytesOf(*block), RequestedOf(*block));
      Record(telemetry::EventAction::kFreeCompleted, block->address, block->requested,
             arena.clock.stream(), telemetry::TagId{block->tag.get()});
      if (passthrough_ == nullptr) {
        found.Remove();
        arena.Free(block, arena.clock.now());
        return OkStatus();
      }
    }
    if (uses != nullptr) {
      cache.shard->Deferred(arena.kind, BytesOf(*block), RequestedOf(*block));
    }
    block->mark = kPending;
  }
  if (uses == nullptr) return PassBack(arena, block);
  if (StreamClock* const only = OnlyUse(uses); only != nullptr) {
    Defer(block, {&only, 1});
  } else {
    const std::unique_ptr<Uses> list(ListOfUses(uses));
    Defer(block, list->clocks);
  }
  FreeCollected(pending_.Collect(PendingFrees::Effort::kGlance));
  return OkStatus();
}

void AllocatorCore::Defer(Block* block, std::span<StreamClock* const> streams) {
  block->mark = kPending;
  pending_.Add(block, streams);
}

Status AllocatorCore::Return(Block* block) {
  Arena& arena = Arena::Of(*block);
  if (passthrough_ != nullptr) return PassBack(arena, block);
  const ShortLockGuard lock(arena.mutex);
  index_.Remove(*block);
  arena.Free(block, arena.clock.now());
  return OkStatus();
}

Status AllocatorCore::PassBack(Arena& arena, Block* block) {
  const std::uint64_t epoch = arena.clock.now();
  // A stream that is being captured, or is not done for too long, keeps it until a Trim.
  Status waited = arena.clock.Wait(epoch, Deadline::After(kPatience));
  Status status = passthrough_->Release(block, epoch);
  if (!waited.ok()) status = std::move(waited);
  const bool later = status.code() == StatusCode::kFailedPrecondition ||
                     status.code() == StatusCode::kDeadlineExceeded;
  // Freeing works on a lost device too, whose memory is gone.
  return later || status.code() == StatusCode::kDeviceLost ? OkStatus() : status;
}

bool AllocatorCore::FreeCollected(const std::vector<Block*>& blocks, Status* found) {
  if (blocks.empty()) return false;
  std::array<std::int64_t, 2> ended{};
  std::array<std::int64_t, 2> ended_bytes{};
  for (const Block* const block : blocks) {
    const auto kind = static_cast<std::size_t>(Arena::Of(*block).kind);
    ++ended[kind];
    ended_bytes[kind] += BytesOf(*block);
  }
  for (const telemetry::Pool pool : {telemetry::Pool::kSmall, telemetry::Pool::kLarge}) {
    const auto kind = static_cast<std::size_t>(pool);
    if (ended[kind] != 0) Local().shard->Ended(pool, ended[kind], ended_bytes[kind]);
  }
  for (Block* const block : blocks) {
    if (debug_ != nullptr) {
      Status retired = RetireChecked(block);
      if (found != nullptr && found->ok()) *found = std::move(retired);
      continue;
    }
    Record(telemetry::EventAction::kFreeCompleted, block->address, block->requested,
           Arena::Of(*block).clock.stream(), telemetry::TagId{block->tag.get()});
    if (const Status status = Return(block); !status.ok()) {
      Log(LogLevel::kWarn, fmt::format("giving memory back: {}", status.ToString()));
    }
  }
  return true;
}

Status AllocatorCore::RecordUse(DeviceAddress address, hal::StreamHandle stream) {
  KEEL_TRY(Here());
  if (!address) return OkStatus();
  const AddressIndex::Found found = index_.FindPlace(address.value());
  Block* const block = found.block();
  if (block == nullptr || block->mark != kLive) return RecordUseRarely(address, stream);
  Arena& arena = Arena::Of(*block);
  if (stream == arena.clock.stream()) return OkStatus();  // ordered anyway
  ThreadCache& cache = Local();
  // One that was forgotten may have given its handle to another, which the set of arenas notices.
  if (cache.last_used == nullptr || cache.last_used->stream() != stream ||
      cache.last_used->retired()) {
    cache.last_used = &arenas_.Clock(stream);
  }
  StreamClock& clock = *cache.last_used;
  const ShortLockGuard lock(arena.mutex);
  if (!found.current() || block->mark != kLive) {
    return RecordUseRarely(address, stream);  // freed meanwhile
  }
  AddUse(*block, clock);
  return OkStatus();
}

void AllocatorCore::AddUse(Block& block, StreamClock& clock) {
  static_assert(alignof(StreamClock) > 1 && alignof(Uses) > 1);
  if (block.attachment == nullptr) {
    block.attachment = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(&clock) | 1);
    return;
  }
  StreamClock* const only = OnlyUse(block.attachment);
  if (only == &clock) return;
  if (only != nullptr) block.attachment = new Uses{.clocks = {only}};
  std::vector<StreamClock*>& clocks = ListOfUses(block.attachment)->clocks;
  if (std::find(clocks.begin(), clocks.end(), &clock) == clocks.end()) clocks.push_back(&clock);
}

}  // namespace keel::memory
