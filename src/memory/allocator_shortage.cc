// What an allocator does when the device, or the limit, has no more: the ladder that
// keel/memory/device_allocator.h lists, and giving back before it comes to that.
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "base/ranges.h"
#include "memory/allocator_core.h"

namespace keel::memory {
namespace {

// How often it tries again because others freed memory, which others yet may have taken.
constexpr int kRounds = 16;

}  // namespace

Result<Block*> AllocatorCore::ObtainShort(Arena& arena, const Request& request,
                                          const Status& cause) {
  const ScopedRange range("memory is short");
  {
    const MutexLock lock(stats_mutex_);
    ++slow_.num_alloc_retries;
  }
  const Deadline patience = Deadline::After(kPatience);
  const bool hurried = request.deadline.when() < patience.when();
  const Deadline deadline = hurried ? request.deadline : patience;
  const std::uint64_t held = limit.held();
  const auto try_again = [&]() -> std::optional<Result<Block*>> {
    if (Block* const block = SearchArena(arena, request); block != nullptr) return block;
    Result<Block*> again = source_->Grow(arena, request.size, request.alignment);
    if (again.ok() || again.status().code() != StatusCode::kResourceExhausted) return again;
    return std::nullopt;
  };
  // What costs time: everything that is free in other threads, then in other streams.
  static_cast<void>(TakeBackAll(deadline).ok());  // what the program did wrong is no failure here
  KEEL_ASSIGN(bool waited, WaitForStreams(deadline));
  {
    const MutexLock lock(stats_mutex_);
    ++slow_.num_sync_all_streams;
  }
  if (auto result = try_again()) return *std::move(result);
  RunCallbacks(request.asked);
  for (int round = 0; round < kRounds; ++round) {
    const std::int64_t freed = counters_.Read().blocks.all.freed;
    static_cast<void>(TakeBackAll(deadline).ok());
    if (auto result = try_again()) return *std::move(result);
    // What is free but in the wrong pieces: back to the device, to be had anew.
    KEEL_ASSIGN(waited, WaitForStreams(deadline));
    KEEL_TRY(source_->Trim(0));
    if (auto result = try_again()) return *std::move(result);
    // And what cannot go back, because something beside it is in use.
    if (Block* const block = Borrow(arena, request); block != nullptr) return block;
    // If nobody else did anything, that was all.
    if (counters_.Read().blocks.all.freed == freed) break;
  }
  // What was taken on the way to a failure is not kept from others on the device.
  if (limit.held() > held) static_cast<void>(source_->Trim(held).ok());
  if (hurried && !waited) {
    return DeadlineExceeded(
        fmt::format("no {} were free by the deadline: memory is short, and streams that have some "
                    "of it are not done ({})",
                    ToString(request.asked), cause.message()));
  }
  return OutOfMemory(request, cause);
}

Block* AllocatorCore::Borrow(const Arena& arena, const Request& request) {
  // A graph's memory is its pool's, pass-through has none that is free, and the debug mode would
  // fill the block on the wrong stream.
  if (arena.pool != 0 || passthrough_ != nullptr || debug_ != nullptr) return nullptr;
  const std::vector<Arena*> arenas = arenas_.List();
  for (Arena* const from : arenas) {
    if (from == &arena || !from->open) continue;
    if (Block* const block = SearchArena(*from, request); block != nullptr && Lend(arena, block)) {
      return block;
    }
  }
  // A hole that is too small may need less beside it than a place here.
  for (Arena* const from : arenas) {
    if (expandable_ == nullptr || from == &arena || !from->open) continue;
    const Result<Block*> grown = source_->Grow(*from, request.size, request.alignment);
    if (grown.ok() && Lend(arena, *grown)) return *grown;
  }
  return nullptr;
}

bool AllocatorCore::Lend(const Arena& arena, Block* block) {
  Arena& from = Arena::Of(*block);
  if (&from.clock == &arena.clock && from.open) return true;
  const Result<std::uint64_t> passed = from.clock.Poll();
  const ShortLockGuard lock(from.mutex);
  if (!passed.ok() || block->epoch > *passed || !from.open) {
    from.blocks.Free(block, block->epoch, block->date);
    return false;
  }
  auto uses = std::make_unique<Uses>();
  uses->lent = true;
  uses->clocks.push_back(&arena.clock);
  block->attachment = uses.release();
  return true;
}

Status AllocatorCore::TakeBackAll(Deadline deadline) {
  FlushCaches(nullptr);
  Status found;
  FreeCollected(pending_.CollectAll(deadline), &found);
  if (debug_ == nullptr) return found;
  Status emptied = debug_->Empty();
  return found.ok() ? emptied : found;
}

Status AllocatorCore::CollectGarbage(std::uint64_t more) {
  if (config.garbage_collection_threshold <= 0) return OkStatus();
  const auto threshold = static_cast<std::uint64_t>(config.garbage_collection_threshold *
                                                    static_cast<double>(limit.limit()));
  const std::uint64_t wanted = limit.held() + more;
  return wanted <= threshold ? OkStatus() : source_->CollectGarbage(wanted - threshold);
}

Result<bool> AllocatorCore::WaitForStreams(Deadline deadline) {
  bool done = true;
  for (StreamClock* const clock : arenas_.Clocks()) {
    // A stream that is being captured cannot be waited for, and holds what it holds.
    Status waited = clock->Wait(clock->now(), deadline);
    if (waited.code() == StatusCode::kDeviceLost) return waited;
    done &= waited.code() != StatusCode::kDeadlineExceeded;
  }
  return done;
}

void AllocatorCore::RunCallbacks(Bytes size) {
  std::vector<DeviceAllocator::OutOfMemoryCallback> callbacks;
  {
    const MutexLock lock(callbacks_mutex_);
    for (const auto& [id, callback] : callbacks_) callbacks.push_back(callback);
  }
  for (const auto& callback : callbacks) callback(size);
}

}  // namespace keel::memory
