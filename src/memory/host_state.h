// HostAllocator::State: what is behind HostAllocator, which has the contracts.
//
// host_allocator.cc has the way of a block: handed out, used, freed, waiting. host_growth.cc has
// the way of a segment: when one is taken from the driver, and when it goes back.
//
// The driver is never called with the lock held, but for events.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "base/fork.h"
#include "keel/base/mutex.h"
#include "keel/memory/host_allocator.h"
#include "memory/deferred_blocks.h"
#include "memory/host_segments.h"
#include "memory/pinned_memory.h"

namespace keel::memory {

class HostAllocator::State {
 public:
  State(std::shared_ptr<hal::Device> device, const HostAllocatorOptions& options);
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  const std::shared_ptr<hal::Device>& device() const { return device_; }
  bool here() const { return home_.here(); }
  // For calls that need no device: OK, or what a forked child is told.
  Status Usable() const { return here() ? OkStatus() : device_->Health(); }

  Result<void*> Allocate(Bytes size, Bytes alignment, Deadline deadline) KEEL_EXCLUDES(mutex_);
  Status RecordUse(const void* pointer, hal::StreamHandle stream) KEEL_EXCLUDES(mutex_);
  Status Free(void* pointer) KEEL_EXCLUDES(mutex_);
  Status FreeAll(std::span<void* const> pointers) KEEL_EXCLUDES(mutex_);
  Result<HostBlock> Find(const void* pointer) const KEEL_EXCLUDES(mutex_);
  Status Trim(Bytes target) KEEL_EXCLUDES(mutex_);
  Status ReleaseCaptured() KEEL_EXCLUDES(mutex_);
  void SetLimit(Bytes limit) KEEL_EXCLUDES(mutex_);
  HostAllocatorStats stats() const KEEL_EXCLUDES(mutex_);
  void ResetPeakStats() KEEL_EXCLUDES(mutex_);
  void ResetAccumulatedStats() KEEL_EXCLUDES(mutex_);

 private:
  using Memories = std::vector<PinnedMemory>;
  using Kind = HostSegments::Kind;

  // Bits of Block::mark.
  static constexpr std::uint8_t kUsed = 1;      // streams were recorded
  static constexpr std::uint8_t kCaptured = 2;  // one of them while it was capturing
  static constexpr std::uint8_t kOnce = 4;      // of a segment that is not kept

  static std::int64_t Signed(std::uint64_t value) { return static_cast<std::int64_t>(value); }
  static std::uint64_t Unsigned(std::int64_t value) { return static_cast<std::uint64_t>(value); }

  // A request on its way through the ladder.
  struct Request {
    Bytes size;
    std::uint64_t rounded = 0;
    std::uint64_t alignment = 0;
    bool small = false;
    // What it would ask the driver for.
    std::uint64_t growth = 0;
    Kind kind = Kind::kLarge;
    // The driver had no memory: whatever is free is given back, and it asks for no more than it
    // needs.
    bool desperate = false;
    // What the driver refused, since anything changed.
    static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t refused = kNever;
    Deadline deadline = Deadline::Never();
  };
  enum class Step { kTaken, kGrow, kRelease, kWait };

  Block* TakeLocked(const Request& request) KEEL_REQUIRES(mutex_) {
    if (!options_.cache) return nullptr;
    Block* const reserved = segments_.TakeReserved(request.rounded, request.alignment);
    if (reserved != nullptr) return reserved;
    return request.small ? segments_.TakeSmall(request.rounded, request.alignment)
                         : segments_.TakeLarge(request.rounded);
  }
  void* HandOutLocked(Block* block, Bytes size) KEEL_REQUIRES(mutex_);
  Result<void*> AllocateSlowly(Request request) KEEL_EXCLUDES(mutex_);
  // What to do next. With kTaken there is a block; with kGrow the growth is accounted for already;
  // with kRelease there is memory to give back.
  Step NextStepLocked(Request& request, Block** block, Memories* released) KEEL_REQUIRES(mutex_);
  void PlanGrowthLocked(Request& request) KEEL_REQUIRES(mutex_);
  bool FitsLocked(std::uint64_t growth) const KEEL_REQUIRES(mutex_) {
    return limit_.empty() || held_ + growth <= limit_.count();
  }
  bool KeptLocked(std::uint64_t growth) const KEEL_REQUIRES(mutex_) {
    return options_.cache_limit.empty() || held_ + growth <= options_.cache_limit.count();
  }
  Status ExhaustedLocked(const Request& request) KEEL_REQUIRES(mutex_);
  // Takes free segments out, those that suffice to bring `excess` bytes back with the least of
  // them.
  void ReleaseLocked(std::uint64_t excess, Memories* released) KEEL_REQUIRES(mutex_);
  void GiveLocked(Block* block, Memories* released) KEEL_REQUIRES(mutex_);
  Status CollectLocked(Memories* released) KEEL_REQUIRES(mutex_);
  void RetireLocked(Block* block) KEEL_REQUIRES(mutex_);
  void PutAwayLocked(std::span<Block* const> blocks, Memories* released) KEEL_REQUIRES(mutex_);

  // The driver. None of these is called with the lock held.
  // Adds a segment whose bytes are accounted for already; on an error they are not any more. With a
  // request, cuts its block and hands that out.
  enum class Who : std::uint8_t { kCaller, kBackground };
  Result<void*> Grow(std::uint64_t growth, Kind kind, const Request* request,
                     Who who = Who::kCaller) KEEL_EXCLUDES(mutex_);
  Status GiveBack(Memories memories) KEEL_EXCLUDES(mutex_);
  Status WaitFor(const DeferredBlocks::Waiting& waiting, Deadline deadline) KEEL_EXCLUDES(mutex_);

  // Once.
  void TakeReserve() KEEL_EXCLUDES(mutex_);

  // Of threads of their own, to the end.
  void GrowInBackground() KEEL_EXCLUDES(mutex_);
  void CollectInBackground() KEEL_EXCLUDES(mutex_);
  void WakeBackgroundLocked() KEEL_REQUIRES(mutex_) {
    if (segments_.small_free_bytes() < options_.background_reserve.count()) grow_.NotifyOne();
  }

  const std::shared_ptr<hal::Device> device_;
  const HostAllocatorOptions options_;
  const PinnedOptions pinned_;
  const Home home_;

  mutable Mutex mutex_;
  Bytes limit_ KEEL_GUARDED_BY(mutex_);
  HostSegments segments_ KEEL_GUARDED_BY(mutex_);
  DeferredBlocks pending_ KEEL_GUARDED_BY(mutex_);
  std::vector<Block*> captured_ KEEL_GUARDED_BY(mutex_);
  // From the driver, with what is being asked for and what is being given back.
  std::uint64_t held_ KEEL_GUARDED_BY(mutex_) = 0;
  std::uint64_t most_requested_ KEEL_GUARDED_BY(mutex_) = 0;
  HostAllocatorStats stats_ KEEL_GUARDED_BY(mutex_);

  bool reserve_taken_ KEEL_GUARDED_BY(mutex_) = false;
  CondVar grow_;
  CondVar collect_;
  bool stopping_ KEEL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace keel::memory
