// PendingFrees: blocks that the program gave back while other streams may still use them.
//
// Each waits for the streams that were recorded for it, by the date of its free on their clocks. A
// date can be asked about once its epoch is marked with an event; one mark serves all frees before
// it, so small blocks are marked in batches. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "keel/base/deadline.h"
#include "keel/base/mutex.h"
#include "keel/base/result.h"
#include "memory/arena.h"

namespace keel::memory {

class PendingFrees {
 public:
  explicit PendingFrees(std::function<std::int64_t()> now_ns) : now_ns_(std::move(now_ns)) {}

  // The block was freed now, and `streams` may use it. Takes it over until Collect returns it.
  void Add(Block* block, std::span<StreamClock* const> streams) KEEL_EXCLUDES(mutex_);

  enum class Effort : std::uint8_t {
    kGlance,  // now and then, and only what is marked
    kPoll,    // what is marked
    kMark,    // marks the rest, so that it can be collected soon
  };
  // Those that nobody uses any more; the caller frees them. A stream with an error (a lost device)
  // or under capture keeps its blocks.
  std::vector<Block*> Collect(Effort effort) KEEL_EXCLUDES(mutex_);
  // The same, after waiting for all of them.
  std::vector<Block*> CollectAll(Deadline deadline) KEEL_EXCLUDES(mutex_);

  bool empty() const { return count_.load(std::memory_order_relaxed) == 0; }
  // Whether somebody who could do without should look (kMark): there are some, and nobody was told
  // so for a while.
  bool Due() { return !empty() && TakeTurn(); }

 private:
  struct Waiting {
    Block* block = nullptr;
    std::uint64_t epoch = 0;  // on the clock
  };
  struct Queue {
    std::deque<Waiting> waiting;  // in order of epoch
    std::uint32_t unmarked = 0;
    std::uint64_t unmarked_bytes = 0;
  };
  [[gnu::noinline]] bool TakeTurn();
  void MarkLocked(StreamClock& clock, Queue& queue) KEEL_REQUIRES(mutex_);
  void PopLocked(StreamClock& clock, Queue& queue, std::vector<Block*>& done) KEEL_REQUIRES(mutex_);

  const std::function<std::int64_t()> now_ns_;
  std::atomic<std::int64_t> next_turn_{0};
  std::atomic<std::size_t> count_{0};
  Mutex mutex_;
  std::uint32_t glances_ KEEL_GUARDED_BY(mutex_) = 0;
  std::map<StreamClock*, Queue> queues_ KEEL_GUARDED_BY(mutex_);
  // How many streams a block still waits for, where it was more than one.
  std::unordered_map<const Block*, std::size_t> several_ KEEL_GUARDED_BY(mutex_);
};

}  // namespace keel::memory
