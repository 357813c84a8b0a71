#include "memory/stream_clock.h"

#include <utility>

namespace keel::memory {

Status StreamClock::MarkLocked(std::uint64_t epoch) {
  if (epoch <= marked_ || retired_.load(std::memory_order_acquire)) return OkStatus();
  // An event would become a node of the graph, and say nothing about when its memory is free.
  KEEL_ASSIGN(const hal::CaptureState state, device_->GetCaptureState(stream_));
  if (state != hal::CaptureState::kNone) {
    return FailedPrecondition("the stream is being captured: what it uses is not known yet");
  }
  KEEL_ASSIGN(PooledEvent event, events_.Acquire());
  // The epoch ends before the event is recorded: a free that still takes this date comes before it.
  const std::uint64_t ended = now_.fetch_add(1, std::memory_order_relaxed);
  Status recorded = event.Record(stream_);
  if (!recorded.ok()) return recorded;  // the next mark stands for this epoch too
  marked_ = ended;
  ends_.push_back({ended, std::move(event)});
  return OkStatus();
}

Status StreamClock::Mark(std::uint64_t epoch) {
  MutexLock lock(mutex_);
  return MarkLocked(epoch);
}

Result<bool> StreamClock::Passed(std::uint64_t epoch) {
  if (epoch <= passed_.load(std::memory_order_acquire)) return true;
  if (retired_.load(std::memory_order_acquire)) return true;
  MutexLock lock(mutex_);
  while (!ends_.empty() && epoch > passed_.load(std::memory_order_relaxed)) {
    KEEL_ASSIGN(const hal::Completion completion, ends_.front().event.Query());
    if (completion == hal::Completion::kPending) return false;
    passed_.store(ends_.front().epoch, std::memory_order_release);
    ends_.pop_front();
  }
  return epoch <= passed_.load(std::memory_order_relaxed);
}

Result<std::uint64_t> StreamClock::Poll() {
  if (retired_.load(std::memory_order_acquire)) return ~std::uint64_t{0};
  KEEL_TRY(Passed(~std::uint64_t{0}).status());
  return passed_.load(std::memory_order_acquire);
}

Status StreamClock::Wait(std::uint64_t epoch, Deadline deadline) {
  if (epoch <= passed_.load(std::memory_order_acquire)) return OkStatus();
  if (retired_.load(std::memory_order_acquire)) return OkStatus();
  MutexLock lock(mutex_);
  KEEL_TRY(MarkLocked(epoch));
  while (!ends_.empty() && epoch > passed_.load(std::memory_order_relaxed)) {
    KEEL_TRY(ends_.front().event.Synchronize(deadline));
    passed_.store(ends_.front().epoch, std::memory_order_release);
    ends_.pop_front();
  }
  if (epoch <= passed_.load(std::memory_order_relaxed)) return OkStatus();
  return Internal("an epoch has neither passed nor an end");
}

}  // namespace keel::memory
