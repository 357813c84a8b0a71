#include "memory/pending_frees.h"

#include <utility>

namespace keel::memory {
namespace {

// An event costs as much as several allocations, and a block that waits for one cannot be used:
// small blocks share, large ones are worth one each.
constexpr std::uint32_t kBatch = 32;
constexpr std::uint64_t kBatchBytes = 1 << 20;
constexpr std::uint32_t kGlanceEvery = 16;
// Looking asks the driver once or twice for each stream that frees wait for: that must stay a small
// part of the time of a program that does nothing but allocate.
constexpr std::int64_t kTurnNs = 100'000;

}  // namespace

bool PendingFrees::TakeTurn() {
  const std::int64_t now = now_ns_();
  std::int64_t next = next_turn_.load(std::memory_order_relaxed);
  return now > next && next_turn_.compare_exchange_strong(next, now + kTurnNs);
}

void PendingFrees::MarkLocked(StreamClock& clock, Queue& queue) {
  if (queue.waiting.empty()) return;
  if (!clock.Mark(queue.waiting.back().epoch).ok()) return;  // tried again with the next
  queue.unmarked = 0;
  queue.unmarked_bytes = 0;
}

void PendingFrees::Add(Block* block, std::span<StreamClock* const> streams) {
  const MutexLock lock(mutex_);
  if (streams.size() > 1) several_[block] = streams.size();
  count_.fetch_add(1, std::memory_order_relaxed);
  for (StreamClock* const clock : streams) {
    Queue& queue = queues_[clock];
    queue.waiting.push_back({block, clock->now()});
    ++queue.unmarked;
    queue.unmarked_bytes += block->size;
    if (queue.unmarked >= kBatch || queue.unmarked_bytes >= kBatchBytes) MarkLocked(*clock, queue);
  }
}

void PendingFrees::PopLocked(StreamClock& clock, Queue& queue, std::vector<Block*>& done) {
  if (queue.waiting.empty()) return;
  const Result<std::uint64_t> passed = clock.Poll();
  if (!passed.ok()) return;
  while (!queue.waiting.empty() && queue.waiting.front().epoch <= *passed) {
    Block* const block = queue.waiting.front().block;
    queue.waiting.pop_front();
    if (const auto several = several_.find(block); several != several_.end()) {
      if (--several->second != 0) continue;
      several_.erase(several);
    }
    count_.fetch_sub(1, std::memory_order_relaxed);
    done.push_back(block);
  }
}

std::vector<Block*> PendingFrees::Collect(Effort effort) {
  std::vector<Block*> done;
  if (empty()) return done;
  const MutexLock lock(mutex_);
  if (effort == Effort::kGlance && ++glances_ % kGlanceEvery != 0) return done;
  for (auto& [clock, queue] : queues_) {
    if (effort == Effort::kMark) MarkLocked(*clock, queue);
    PopLocked(*clock, queue, done);
  }
  return done;
}

std::vector<Block*> PendingFrees::CollectAll(Deadline deadline) {
  std::vector<Block*> done;
  if (empty()) return done;
  std::vector<std::pair<StreamClock*, std::uint64_t>> last;
  {
    const MutexLock lock(mutex_);
    for (const auto& [clock, queue] : queues_) {
      if (!queue.waiting.empty()) last.emplace_back(clock, queue.waiting.back().epoch);
    }
  }
  for (const auto& [clock, epoch] : last) {
    static_cast<void>(clock->Wait(epoch, deadline).ok());
  }
  const MutexLock lock(mutex_);
  for (auto& [clock, queue] : queues_) PopLocked(*clock, queue, done);
  return done;
}

}  // namespace keel::memory
