#include "memory/stream_clock.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/ranges.h"
#include "keel/hal/capture_mode.h"

namespace keel::memory {

Status StreamClock::CheckNotCaptured() const {
  KEEL_ASSIGN(const hal::CaptureState state, device_->GetCaptureState(stream_));
  if (state == hal::CaptureState::kNone) return OkStatus();
  return FailedPrecondition("the stream is being captured: what it uses is not known yet");
}

Status StreamClock::RecordLocked() {
  // An event would become a node of the graph, and say nothing about when its memory is free.
  KEEL_TRY(CheckNotCaptured());
  KEEL_ASSIGN(PooledEvent event, events_.Acquire());
  // The epoch ends before the event is recorded: a free that still takes this date comes before it.
  const std::uint64_t ended = now_.fetch_add(1, std::memory_order_relaxed);
  KEEL_TRY(event.Record(stream_));  // else the next mark stands for this epoch too
  // A capture that another thread has begun meanwhile may have taken it, and breaks if it is asked.
  KEEL_TRY(CheckNotCaptured());
  marked_ = ended;
  ends_.push_back({ended, std::move(event)});
  return OkStatus();
}

Status StreamClock::Mark(std::uint64_t epoch) {
  const MutexLock lock(mutex_);
  if (epoch <= marked_ || retired_.load(std::memory_order_acquire)) return OkStatus();
  return RecordLocked();
}

void StreamClock::PassLocked(std::uint64_t epoch) {
  if (epoch > passed_.load(std::memory_order_relaxed)) {
    passed_.store(epoch, std::memory_order_release);
  }
  while (!ends_.empty() && ends_.front().epoch <= epoch) ends_.pop_front();
}

void StreamClock::ForgetEndLocked(const Status& status) {
  if (status.code() == StatusCode::kDeviceLost) return;
  marked_ = ends_.empty() ? passed_.load(std::memory_order_relaxed) : ends_.back().epoch;
}

Result<bool> StreamClock::Passed(std::uint64_t epoch) {
  if (epoch <= passed_.load(std::memory_order_acquire)) return true;
  if (retired_.load(std::memory_order_acquire)) return true;
  const hal::ScopedCaptureMode relaxed(hal::CaptureMode::kRelaxed);
  const MutexLock lock(mutex_);
  while (!ends_.empty() && epoch > passed_.load(std::memory_order_relaxed)) {
    const Result<hal::Completion> completion = ends_.front().event.Query();
    if (!completion.ok()) {
      if (completion.status().code() != StatusCode::kDeviceLost) ends_.pop_front();
      ForgetEndLocked(completion.status());
      return completion.status();
    }
    if (*completion == hal::Completion::kPending) return false;
    PassLocked(ends_.front().epoch);
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
  const hal::ScopedCaptureMode relaxed(hal::CaptureMode::kRelaxed);
  End end;
  {
    const MutexLock lock(mutex_);
    const auto covers = [&](const End& each) { return each.epoch >= epoch; };
    auto found = std::find_if(ends_.begin(), ends_.end(), covers);
    if (found == ends_.end()) {
      KEEL_TRY(RecordLocked());  // also where another thread waits for the one that there was
      found = std::prev(ends_.end());
    }
    end = std::move(*found);
    ends_.erase(found);
  }
  const ScopedRange range("wait for a stream");
  // Without the lock: others go on freeing meanwhile, and the stream may depend on them.
  Status waited = end.event.Synchronize(deadline);
  const MutexLock lock(mutex_);
  if (waited.ok()) {
    PassLocked(end.epoch);
  } else if (waited.code() == StatusCode::kDeadlineExceeded) {
    const auto later = [&](const End& each) { return each.epoch > end.epoch; };
    if (end.epoch > passed_.load(std::memory_order_relaxed)) {
      ends_.insert(std::find_if(ends_.begin(), ends_.end(), later), std::move(end));
    }
  } else {
    ForgetEndLocked(waited);
  }
  return waited;
}

}  // namespace keel::memory
