#include "keel/memory/host_allocator.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "keel/base/log.h"
#include "memory/host_state.h"

namespace keel::memory {

HostAllocator::State::State(std::shared_ptr<hal::Device> device,
                            const HostAllocatorOptions& options)
    : device_(std::move(device)),
      options_(options),
      pinned_{.host = options.host,
              .numa_node = options.numa_node.value_or(device_->info().numa_node),
              .registered = options.registered,
              .prefault = options.prefault,
              .threads = options.touch_threads},
      limit_(options.limit),
      pending_(device_, std::max<std::size_t>(options.event_batch, 1)) {
  try {
    if (options_.cache && !options_.background_reserve.empty()) {
      threads_.emplace_back([this] { GrowInBackground(); });
    }
    if (options_.background_collection) threads_.emplace_back([this] { CollectInBackground(); });
  } catch (const std::system_error& error) {
    // Callers do it, then.
    Log(LogLevel::kInfo, fmt::format("HostAllocator: no background thread: {}", error.what()));
  }
}

HostAllocator::State::~State() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    grow_.NotifyAll();
    collect_.NotifyAll();
  }
  for (std::thread& thread : threads_) thread.join();
  // A wait that fails once may work the next time; on a lost device there is nothing to wait for.
  for (int failures = 0; failures < 2;) {
    DeferredBlocks::Waiting waiting;
    Memories released;
    {
      MutexLock lock(mutex_);
      static_cast<void>(CollectLocked(&released));
      waiting = pending_.Oldest();
    }
    static_cast<void>(GiveBack(std::move(released)));
    if (waiting.batch == nullptr) break;
    if (!WaitFor(waiting, Deadline::Never()).ok()) ++failures;
  }
  Memories all;
  std::int64_t live = 0;
  {
    MutexLock lock(mutex_);
    live = stats_.memory.active_requests.current;
    all = segments_.RemoveAll();
  }
  if (live > 0) {
    Log(LogLevel::kWarn,
        fmt::format("HostAllocator: destroyed with {} blocks that were not freed", live));
  }
  static_cast<void>(GiveBack(std::move(all)));
}

// --- Allocating --------------------------------------------------------------------------------

void* HostAllocator::State::HandOutLocked(Block* block, Bytes size) {
  block->requested = size.count();
  stats_.memory.active_requests.Increase(1);
  stats_.memory.active_bytes.Increase(Signed(block->size));
  stats_.requested_bytes.Increase(Signed(size.count()));
  most_requested_ = std::max(most_requested_, Unsigned(stats_.requested_bytes.current));
  segments_.Show(block);
  WakeBackgroundLocked();
  return HostSegments::PointerTo(block);
}

Result<void*> HostAllocator::State::Allocate(Bytes size, Bytes alignment, Deadline deadline) {
  KEEL_TRY(device_->Health());
  if (size.empty() || size.count() > std::numeric_limits<std::int64_t>::max()) {
    return InvalidArgument(fmt::format("pinned memory of {} bytes", size.count()));
  }
  if (!IsPowerOfTwo(alignment) || alignment > kMostAlignment) {
    return InvalidArgument(
        fmt::format("pinned memory aligned to {}; a power of two up to {} can be",
                    alignment.count(), kMostAlignment.count()));
  }
  Request request{.size = size, .small = size <= options_.small_limit};
  request.alignment = std::max(alignment.count(), kQuantum);
  request.deadline = deadline;
  request.rounded =
      request.small ? RoundToQuantum(size.count()) : HostSegments::RoundToPages(size.count());
  {
    MutexLock lock(mutex_);
    if (Block* const block = TakeLocked(request)) return HandOutLocked(block, size);
  }
  return AllocateSlowly(request);
}

// --- Freeing -----------------------------------------------------------------------------------

void HostAllocator::State::RetireLocked(Block* block) {
  stats_.memory.active_requests.Decrease(1);
  stats_.memory.active_bytes.Decrease(Signed(block->size));
  stats_.requested_bytes.Decrease(Signed(block->requested));
}

void HostAllocator::State::GiveLocked(Block* block, Memories* released) {
  const bool once = (block->mark & kOnce) != 0;
  Block* const free = HostSegments::Give(block);
  if (once) released->push_back(segments_.Remove(free));
}

Status HostAllocator::State::Free(void* pointer) {
  KEEL_TRY(Usable());
  {
    MutexLock lock(mutex_);
    Block* const block = segments_.Find(pointer);
    if (block != nullptr && block->mark == 0) {
      segments_.Hide(block);
      RetireLocked(block);
      HostSegments::Give(block);
      return OkStatus();
    }
  }
  return FreeAll({&pointer, 1});
}

Status HostAllocator::State::FreeAll(std::span<void* const> pointers) {
  KEEL_TRY(Usable());
  Memories released;
  {
    MutexLock lock(mutex_);
    std::vector<Block*> blocks;
    for (void* const pointer : pointers) {
      Block* const block = segments_.Find(pointer);
      if (block == nullptr) {
        for (Block* const hidden : blocks) segments_.Show(hidden);
        return InvalidArgument(fmt::format(
            "{} is not what Allocate returned, or was freed already; nothing was freed", pointer));
      }
      // Hidden at once, so that one that is listed twice is seen.
      segments_.Hide(block);
      blocks.push_back(block);
    }
    for (Block* const block : blocks) RetireLocked(block);
    PutAwayLocked(blocks, &released);
  }
  return GiveBack(std::move(released));
}

// Blocks that were handed out and are not any more: to the pool, or to where they wait.
void HostAllocator::State::PutAwayLocked(std::span<Block* const> blocks, Memories* released) {
  std::vector<Block*> used;
  for (Block* const block : blocks) {
    if ((block->mark & kCaptured) != 0) {
      captured_.push_back(block);
      stats_.captured_bytes += Signed(block->size);
    } else if ((block->mark & kUsed) != 0) {
      used.push_back(block);
      stats_.pending_bytes += Signed(block->size);
    } else {
      GiveLocked(block, released);
    }
  }
  if (used.empty()) return;
  pending_.Defer(used);
  if (options_.background_collection) collect_.NotifyOne();
}

Status HostAllocator::State::CollectLocked(Memories* released) {
  if (pending_.empty()) return OkStatus();
  std::vector<Block*> done;
  Status status = pending_.Collect(&done);
  for (Block* const block : done) {
    stats_.pending_bytes -= Signed(block->size);
    GiveLocked(block, released);
  }
  return status;
}

Status HostAllocator::State::RecordUse(const void* pointer, hal::StreamHandle stream) {
  KEEL_ASSIGN(const hal::CaptureState state, device_->GetCaptureState(stream));
  MutexLock lock(mutex_);
  Block* const block = segments_.FindInside(pointer);
  if (block == nullptr) {
    return InvalidArgument(fmt::format("{} is in no block that is handed out", pointer));
  }
  pending_.AddUse(block, stream);
  block->mark = static_cast<std::uint8_t>(
      block->mark | (state == hal::CaptureState::kNone ? kUsed : kUsed | kCaptured));
  return OkStatus();
}

Status HostAllocator::State::ReleaseCaptured() {
  KEEL_TRY(Usable());
  Memories released;
  {
    MutexLock lock(mutex_);
    const std::vector<Block*> blocks = std::exchange(captured_, {});
    stats_.captured_bytes = 0;
    for (Block* const block : blocks)
      block->mark = static_cast<std::uint8_t>(block->mark & ~kCaptured);
    PutAwayLocked(blocks, &released);
  }
  return GiveBack(std::move(released));
}

// --- Looking -----------------------------------------------------------------------------------

Result<HostBlock> HostAllocator::State::Find(const void* pointer) const {
  KEEL_TRY(Usable());
  MutexLock lock(mutex_);
  const Block* const block = segments_.FindInside(pointer);
  if (block == nullptr) {
    return NotFound(fmt::format("{} is in no block that is handed out", pointer));
  }
  return HostBlock{HostSegments::PointerTo(block), Bytes(block->size), Bytes(block->requested)};
}

void HostAllocator::State::SetLimit(Bytes limit) {
  MutexLock lock(mutex_);
  limit_ = limit;
}

HostAllocatorStats HostAllocator::State::stats() const {
  if (!here()) return {};
  MutexLock lock(mutex_);
  HostAllocatorStats stats = stats_;
  stats.record_failures = static_cast<std::int64_t>(pending_.record_failures());
  return stats;
}

void HostAllocator::State::ResetPeakStats() {
  if (!here()) return;
  MutexLock lock(mutex_);
  stats_.memory.ResetPeak();
  stats_.requested_bytes.ResetPeak();
  most_requested_ = Unsigned(stats_.requested_bytes.current);
}

void HostAllocator::State::ResetAccumulatedStats() {
  if (!here()) return;
  MutexLock lock(mutex_);
  stats_.memory.ResetAccumulated();
  stats_.requested_bytes.ResetAccumulated();
}

// --- HostAllocator -----------------------------------------------------------------------------

HostAllocatorOptions HostAllocatorOptions::From(const AllocatorConfig& config) {
  const auto bound = [](Bytes bytes) { return bytes == kUnlimited ? Bytes() : bytes; };
  return {.cache = !config.host_cache.empty(),
          .limit = bound(config.host_limit),
          .cache_limit = bound(config.host_cache),
          .background_reserve = config.host_background_reserve,
          .reserve = config.pinned_reserve_segment_size,
          .background_collection = config.pinned_use_background_threads,
          .registered = config.pinned_use_host_register,
          .prefault = config.prefault,
          .touch_threads = static_cast<int>(config.pinned_num_register_threads)};
}

HostAllocator::HostAllocator(std::shared_ptr<hal::Device> device,
                             const HostAllocatorOptions& options)
    : state_(MakeSharedHere<State>(std::move(device), options)) {}

HostAllocator::~HostAllocator() = default;

const std::shared_ptr<hal::Device>& HostAllocator::device() const { return state_->device(); }

Result<void*> HostAllocator::Allocate(Bytes size, Bytes alignment, Deadline deadline) {
  return state_->Allocate(size, alignment, deadline);
}
Status HostAllocator::RecordUse(const void* pointer, hal::StreamHandle stream) {
  return state_->RecordUse(pointer, stream);
}
Status HostAllocator::Free(void* pointer) { return state_->Free(pointer); }
Status HostAllocator::FreeAll(std::span<void* const> pointers) { return state_->FreeAll(pointers); }
Result<HostBlock> HostAllocator::Find(const void* pointer) const { return state_->Find(pointer); }
Status HostAllocator::Trim(Bytes target) { return state_->Trim(target); }
Status HostAllocator::ReleaseCaptured() { return state_->ReleaseCaptured(); }
Status HostAllocator::SetLimit(Bytes limit) {
  KEEL_TRY(state_->Usable());
  state_->SetLimit(limit);
  return OkStatus();
}
HostAllocatorStats HostAllocator::stats() const { return state_->stats(); }
void HostAllocator::ResetPeakStats() { state_->ResetPeakStats(); }
void HostAllocator::ResetAccumulatedStats() { state_->ResetAccumulatedStats(); }

}  // namespace keel::memory
