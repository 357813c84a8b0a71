// AllocatorCore: what is behind DeviceAllocator, which has the contracts.
//
// Locks, from the outside in: the registry of thread caches; a source's; an arena's; the debug
// mode's; a clock's. A thread cache's lock (owner_lock.h) is held for a few instructions and never
// over another one.
//
// The debug mode (debug_memory.h) costs the others nothing: its blocks are in no index and every
// request is larger than `largest_`, so that its calls take branches that are there anyway.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/fork.h"
#include "keel/memory/device_allocator.h"
#include "memory/address_index.h"
#include "memory/arena_set.h"
#include "memory/debug_memory.h"
#include "memory/expandable_source.h"
#include "memory/memory_limit.h"
#include "memory/pending_frees.h"
#include "memory/plain_source.h"
#include "memory/thread_cache.h"

namespace keel::memory {

class AllocatorCore : public std::enable_shared_from_this<AllocatorCore>, private SegmentListener {
 public:
  static Result<std::shared_ptr<AllocatorCore>> Create(std::shared_ptr<hal::Device> device,
                                                       DeviceAllocatorOptions options);
  ~AllocatorCore() override;

  Result<DeviceAddress> Allocate(Bytes size, hal::StreamHandle stream,
                                 const AllocationOptions& options);
  Status Free(DeviceAddress address, const Bytes* size);
  Status RecordUse(DeviceAddress address, hal::StreamHandle stream);
  Result<AllocationInfo> Find(DeviceAddress address);
  std::optional<AllocationInfo> FindBlock(DeviceAddress address);
  Status ForgetStream(hal::StreamHandle stream);
  Status Trim(std::uint64_t target);
  Status SetFraction(double fraction);
  Status Pin(DeviceAddress address, Bytes size, bool pin);
  Status AddPeer(std::shared_ptr<hal::Device> peer);
  void RemovePeer(hal::DeviceId peer);
  std::vector<hal::AccessGrant> GrantsFor(hal::Access access) KEEL_EXCLUDES(peers_mutex_);

  std::uint64_t AddCallback(DeviceAllocator::OutOfMemoryCallback callback);
  void RemoveCallback(std::uint64_t id);
  void SetMoveListener(DeviceAllocator::MoveListener listener);

  PoolId CreatePool();
  Status BeginPool(PoolId pool, std::function<bool(hal::StreamHandle)> filter);
  Status EndPool(PoolId pool);
  Status ReleasePool(PoolId pool);
  Result<std::vector<PoolBlock>> PoolBlocks(PoolId pool);
  Result<std::vector<DeviceAddress>> RestorePool(PoolId pool, std::span<const PoolBlock> blocks);

  Status CheckMemory();
  DebugFindings Findings();
  Bytes Allocated();
  telemetry::MemoryStats Stats();
  void ResetStats(bool peaks);
  MemorySnapshot Snapshot();
  std::string Report();
  std::string Check();
  std::string CheckPools();

  // For memory that is somebody's as a whole (whole_memory.h): under the limit, and in the books.
  Status TakeWhole(std::uint64_t size, telemetry::TagId tag);
  void GiveBackWhole(std::uint64_t size, telemetry::TagId tag);

  // OK, but in a forked child: there nothing else may be called, because locks may be held by
  // threads that are not there.
  Status Here() const;

  // Of a thread that ends.
  void Retire(ThreadCache* cache);

  const std::shared_ptr<hal::Device> device;
  const AllocatorConfig config;
  MemoryLimit limit;

 private:
  // What a taken block is to the allocator (Block::mark).
  enum Mark : std::uint8_t {
    kNobodys,  // on its way to the program, or held while memory beside it is found
    kLive,
    kCached,
    kPending,
  };
  // How long is waited for work that holds memory, where the alternative is to fail.
  static constexpr std::chrono::seconds kPatience{60};

  // The streams that RecordUse named for a block (Block::attachment): mostly one, whose clock is
  // there itself, marked by the lowest bit; else a list.
  struct Uses {
    std::vector<StreamClock*> clocks;
    bool lent = false;  // to the first of them, by an arena of another
  };
  static StreamClock* OnlyUse(void* attachment) {
    const auto word = reinterpret_cast<std::uintptr_t>(attachment);
    return (word & 1) != 0 ? reinterpret_cast<StreamClock*>(word - 1) : nullptr;
  }
  // Null: there is none, or it is a single one.
  static Uses* ListOfUses(void* attachment) {
    return OnlyUse(attachment) != nullptr ? nullptr : static_cast<Uses*>(attachment);
  }
  static void AddUse(Block& block, StreamClock& clock);
  struct PoolState {
    std::function<bool(hal::StreamHandle)> filter;
    bool open = false;  // between Begin and End
  };
  struct Request {
    std::uint64_t size = 0;  // rounded
    std::uint64_t alignment = kQuantum;
    Bytes asked;
    hal::StreamHandle stream;
    telemetry::TagId tag = telemetry::TagId::kNone;
    Deadline deadline = Deadline::Never();
  };

  AllocatorCore(std::shared_ptr<hal::Device> its_device, DeviceAllocatorOptions options);

  Status CheckAlignment(Bytes alignment) const;
  std::uint64_t Round(std::uint64_t size) const {
    return rounds_up_ ? RoundUp(size) : RoundToQuantum(size);
  }
  [[gnu::noinline]] std::uint64_t RoundUp(std::uint64_t size) const;
  static telemetry::Pool KindOf(std::uint64_t size);
  ThreadCache& Local();
  [[gnu::noinline]] ThreadCache& MakeLocal();
  [[gnu::always_inline]] Arena& Route(ThreadCache& cache, hal::StreamHandle stream,
                                      telemetry::Pool kind) {
    const ThreadCache::Route& last = cache.last[static_cast<std::size_t>(kind)];
    Arena* const arena = last.arena.load(std::memory_order_relaxed);
    if (arena != nullptr && last.stream == stream &&
        open_pools_.load(std::memory_order_acquire) == 0) [[likely]] {
      return *arena;
    }
    return RouteSlow(cache, stream, kind);
  }
  [[gnu::noinline]] Arena& RouteSlow(ThreadCache& cache, hal::StreamHandle stream,
                                     telemetry::Pool kind);

  // What the thread's cache does not have, and the arena no hole for; or with an alignment.
  [[gnu::noinline]] Result<DeviceAddress> AllocateFrom(Arena& arena, ThreadCache& cache,
                                                       const Request& request);
  // A request that the thread's cache does not answer.
  void CountMiss(ThreadCache& cache) {
    cache.shard->CountMiss();
    if (counts_requests_) arenas_.CountRequest();
  }
  // The block is in the program's hands soon: in the index, and counted if it is oversize.
  void Publish(Block* block) {
    index_.Add(block);
    if (block->size >= oversize_) [[unlikely]] {
      CountOversize(1);
    }
  }
  [[gnu::noinline]] void CountOversize(int more);
  // The block is the program's.
  [[gnu::always_inline]] static void HandOut(telemetry::BlockCounters::Shard& shard, Block& block,
                                             telemetry::Pool kind, Bytes asked,
                                             telemetry::TagId tag) {
    block.requested = asked.count();
    block.tag = static_cast<std::uint32_t>(tag);
    block.mark = kLive;
    shard.Allocated(kind, BytesOf(block), static_cast<std::int64_t>(asked.count()));
  }
  // What a block is to the counters.
  static std::int64_t BytesOf(const Block& block) { return static_cast<std::int64_t>(block.size); }
  static std::int64_t RequestedOf(const Block& block) {
    return static_cast<std::int64_t>(block.requested.get());
  }
  Result<Block*> Obtain(Arena& arena, const Request& request);
  // When the arena has no hole for it.
  Result<Block*> ObtainSlow(Arena& arena, const Request& request);
  // When there is no more; counts a failure.
  Result<Block*> ObtainShort(Arena& arena, const Request& request, const Status& cause);
  // A hole of another arena, which the block stays a part of. At its free it waits for the stream
  // that it was lent to. Null: there is none.
  Block* Borrow(const Arena& arena, const Request& request);
  // Makes a block that was just taken one that is lent to the arena's stream. False: the stream
  // that it is from is not done with it, and it is free again.
  bool Lend(const Arena& arena, Block* block);
  Block* TryArena(Arena& arena, const Request& request);
  // As TryArena, and looks at everything that is free.
  Block* SearchArena(Arena& arena, const Request& request);
  // A block that is not just put back: streams use it, or it is oversize, or its free is recorded.
  [[gnu::noinline]] Status FreeSlow(ThreadCache& cache, DeviceAddress address,
                                    AddressIndex::Found found, Arena& arena);
  // A block that nobody uses any more, back into its arena.
  Status Return(Block* block);
  // Pass-through: back to the device, once its stream is done.
  Status PassBack(Arena& arena, Block* block);
  void GiveBack(const ThreadCache::Batch& batch);
  // A block that was freed, and counted so, while these streams may use it.
  void Defer(Block* block, std::span<StreamClock* const> streams);
  // Frees blocks that were pending. False: there were none. `found`, if it is OK: the first thing
  // that the debug mode found in them.
  bool FreeCollected(const std::vector<Block*>& blocks, Status* found = nullptr);

  // In debug mode, with an alignment, and where a request or an address is wrong.
  [[gnu::noinline]] Result<DeviceAddress> AllocateRarely(Bytes size, hal::StreamHandle stream,
                                                         const AllocationOptions& options,
                                                         telemetry::TagId tag);
  Result<DeviceAddress> AllocateChecked(Request request);
  [[gnu::noinline]] static Status WrongSize(DeviceAddress address, Bytes requested, Bytes size);
  [[gnu::noinline]] Status FreeRarely(DeviceAddress address, const Bytes* size);
  [[gnu::noinline]] Status RecordUseRarely(DeviceAddress address, hal::StreamHandle stream);
  void StartDebugMode();
  // The rest of the way of a freed block that no stream uses any more.
  Status RetireChecked(Block* block);
  // What threads keep goes back to the arenas; of one arena, or of all. False: there was none.
  bool FlushCaches(const Arena* only);
  // Everything that was freed and is held back: by threads, for other streams, and by the debug
  // mode, whose first finding it returns.
  Status TakeBackAll(Deadline deadline);
  void RunCallbacks(Bytes size);
  Status OutOfMemory(const Request& request, const Status& cause);
  Status CollectGarbage(std::uint64_t more);

  // What RestorePool has to do. All lists of wanted blocks are by address.
  struct PoolPlan {
    std::vector<DeviceAddress> live;     // now
    std::vector<DeviceAddress> leaving;  // of those
    std::vector<StreamClock*> busy;      // that were recorded for them
    DeviceAddress in_the_way;            // a freed block that is pending; zero: none is
    std::size_t found = 0;               // of the blocks that are wanted
  };
  Result<std::vector<Arena*>> ArenasOf(PoolId pool);
  static void PlanArena(Arena& arena, std::span<const PoolBlock> wanted, PoolPlan& plan);
  static Result<PoolPlan> PlanPool(const std::vector<Arena*>& arenas,
                                   std::span<const PoolBlock> wanted);
  // Of a live block: what was recorded is done.
  void ForgetUses(DeviceAddress address);
  Status TakeAgain(Arena& arena, std::span<const PoolBlock> wanted);

  // The stream that a live block was allocated for.
  static hal::StreamHandle StreamOf(const Block& block, const Arena& arena) {
    const Uses* const uses = ListOfUses(block.attachment);
    return uses != nullptr && uses->lent ? uses->clocks.front()->stream() : arena.clock.stream();
  }
  static AllocationInfo InfoOf(const Block& block, const Arena& arena);
  // Until everything that they have now is done. Only a lost device is an error. False: some are
  // not done by the deadline.
  Result<bool> WaitForStreams(Deadline deadline);

  void Record(telemetry::EventAction action, std::uint64_t address, std::uint64_t size,
              hal::StreamHandle stream, telemetry::TagId tag) {
    if (log_.enabled()) [[unlikely]] {
      RecordAlways(action, address, size, stream, tag);
    }
  }
  [[gnu::noinline]] void RecordAlways(telemetry::EventAction action, std::uint64_t address,
                                      std::uint64_t size, hal::StreamHandle stream,
                                      telemetry::TagId tag);
  // Freed, and no longer in use.
  [[gnu::noinline]] void RecordFreed(const Block& block, const Arena& arena);

  void OnMapped(const Arena& arena, std::uint64_t address, std::uint64_t size, bool whole) override;
  void OnUnmapped(const Arena& arena, std::uint64_t address, std::uint64_t size,
                  bool whole) override;
  void OnMoved(const Arena& from, std::uint64_t from_address, const Arena& to,
               std::uint64_t to_address, std::uint64_t size) override;

  const std::uint64_t id_;  // never used again
  const Home home_;
  const std::uint64_t capacity_;
  const std::uint64_t largest_;   // request that needs no second thought
  const bool rounds_up_;          // in steps of a power of two
  const std::uint64_t oversize_;  // blocks from here on are counted apart
  // Blocks below this size go back into their arena without a second thought.
  const std::uint64_t returned_below_;
  const bool counts_requests_;  // for the age of what is free
  telemetry::EventLog& log_;
  EventPool events_;
  AddressIndex index_;
  telemetry::BlockCounters counters_;
  ArenaSet arenas_;
  std::unique_ptr<SegmentSource> source_;
  ExpandableSource* expandable_ = nullptr;  // source_, if it is that
  PlainSource* passthrough_ = nullptr;      // source_, if every request is its own segment
  PendingFrees pending_;
  std::unique_ptr<DebugMemory> debug_;  // null: off

  Mutex caches_mutex_;
  std::vector<std::unique_ptr<ThreadCache>> caches_ KEEL_GUARDED_BY(caches_mutex_);

  std::atomic<int> open_pools_{0};
  Mutex pools_mutex_;
  PoolId last_pool_ KEEL_GUARDED_BY(pools_mutex_) = 0;
  std::map<PoolId, PoolState> pools_ KEEL_GUARDED_BY(pools_mutex_);
  std::vector<PoolId> open_order_ KEEL_GUARDED_BY(pools_mutex_);  // those that are open

  Mutex peers_mutex_;
  // Held open: the device is asked to give them access by what they are now.
  std::vector<std::shared_ptr<hal::Device>> peers_ KEEL_GUARDED_BY(peers_mutex_);

  Mutex callbacks_mutex_;
  std::uint64_t last_callback_ KEEL_GUARDED_BY(callbacks_mutex_) = 0;
  std::map<std::uint64_t, DeviceAllocator::OutOfMemoryCallback> callbacks_
      KEEL_GUARDED_BY(callbacks_mutex_);

  // Counters of the slow paths; the hot ones are in counters_.
  Mutex stats_mutex_;
  telemetry::MemoryStats slow_ KEEL_GUARDED_BY(stats_mutex_);
  // Bytes that are somebody's as a whole, by their tag.
  std::map<telemetry::TagId, std::uint64_t> whole_ KEEL_GUARDED_BY(stats_mutex_);
  DeviceAllocator::MoveListener move_listener_ KEEL_GUARDED_BY(stats_mutex_);
};

}  // namespace keel::memory
