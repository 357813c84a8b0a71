// ShardedCounters: the counters of a hot path that many threads take.
//
// Each thread, or thread cache, writes a shard that nobody else writes: plain stores, no
// read-modify-write, no line that bounces between cores. Reading sums the shards under a lock.
//
//   enum Gauge { kBytes, kBlocks };  enum Counter { kHits };
//   ShardedCounters<2, 1> counters({64 << 20, 100'000});
//   auto* shard = counters.AddShard();      // once per thread
//   shard->Increase(kBytes, 4096);          // a gauge: goes up and down, has a peak
//   shard->Count(kHits);                    // a counter: only grows
//   counters.Read().gauges[kBytes];         // a Stat
//
// A gauge may be increased through one shard and decreased through another: only the sum means
// something.
//
// Exactness. `current`, `allocated`, `freed` and counters are exact when no update is in flight;
// otherwise each is what it was at some moment of the call, and `current` never exceeds `peak`.
// `peak` is exact while one shard at a time is in use between two folds, so always with one
// thread. With n shards it is never below a value that the sum had while no update and no fold was
// in flight, and above the true peak by at most
//     4 * (n - 1) * (fold_after + the largest single update).
//
// How: time is cut into windows, and a shard keeps the highest net value that it had in the present
// one. A fold adds these up over all shards, which is the estimate of the window's peak, and starts
// the next window for all. Reading folds, and so does an update that moves its shard further than
// `fold_after` from where it was when the window began: a lock and a look at every shard. So
// fold_after is the price of a small error; a few hundred times the usual update is cheap.
//
// A shard is freed by Retire or with the counters; what it counted stays.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "keel/base/mutex.h"
#include "keel/telemetry/memory_stats.h"

namespace keel::telemetry {

template <std::size_t kGauges, std::size_t kCounters>
class ShardedCounters {
 public:
  class Shard;

  struct Values {
    std::array<Stat, kGauges> gauges{};
    std::array<std::int64_t, kCounters> counters{};
  };

  explicit ShardedCounters(const std::array<std::int64_t, kGauges>& fold_after)
      : fold_after_(fold_after) {}
  ShardedCounters(const ShardedCounters&) = delete;
  ShardedCounters& operator=(const ShardedCounters&) = delete;

  // A shard for one writer at a time: a thread, or whoever holds some lock. The counters own it.
  Shard* AddShard() KEEL_EXCLUDES(mutex_);
  // Its writer is done, and what it wrote is visible to the caller.
  void Retire(Shard* shard) KEEL_EXCLUDES(mutex_);

  // Any thread, for the rest.
  Values Read() KEEL_EXCLUDES(mutex_);
  // Peaks become the current values.
  void ResetPeak() KEEL_EXCLUDES(mutex_);
  // `allocated`, `freed` and the counters start again at zero.
  void ResetAccumulated() KEEL_EXCLUDES(mutex_);

 private:
  struct Totals {
    std::int64_t added = 0;
    std::int64_t removed = 0;
    std::int64_t net() const { return added - removed; }
    friend bool operator==(const Totals&, const Totals&) = default;
  };
  struct Entry {
    std::unique_ptr<Shard> shard;
    std::array<Totals, kGauges> at_fold{};  // as the last fold saw them
  };

  void Fold() KEEL_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    FoldLocked();
  }
  void FoldLocked() KEEL_REQUIRES(mutex_);
  static std::int64_t HighestSinceFold(const Shard& shard, std::size_t gauge, std::uint64_t window,
                                       const Totals& at_fold, const Totals& now);
  Totals SumLocked(std::size_t gauge) const KEEL_REQUIRES(mutex_);
  std::int64_t CountLocked(std::size_t counter) const KEEL_REQUIRES(mutex_);

  const std::array<std::int64_t, kGauges> fold_after_;
  // The number of the present window; written under the lock.
  alignas(64) std::atomic<std::uint64_t> window_{1};

  alignas(64) Mutex mutex_;
  std::vector<Entry> shards_ KEEL_GUARDED_BY(mutex_);
  std::array<std::int64_t, kGauges> peak_ KEEL_GUARDED_BY(mutex_){};
  // Of retired shards.
  std::array<Totals, kGauges> retired_ KEEL_GUARDED_BY(mutex_){};
  std::array<std::int64_t, kCounters> retired_count_ KEEL_GUARDED_BY(mutex_){};
  // What the sums were at the last ResetAccumulated.
  std::array<Totals, kGauges> base_ KEEL_GUARDED_BY(mutex_){};
  std::array<std::int64_t, kCounters> base_count_ KEEL_GUARDED_BY(mutex_){};
};

template <std::size_t kGauges, std::size_t kCounters>
class alignas(64) ShardedCounters<kGauges, kCounters>::Shard {
 public:
  // Amounts are positive.
  void Increase(std::size_t gauge, std::int64_t amount) {
    NoticeWindow();
    Add(gauge, amount);
  }
  void Decrease(std::size_t gauge, std::int64_t amount) {
    NoticeWindow();
    Remove(gauge, amount);
  }
  // Several at once, in two places: gauges `a` and `b` by the first amount, the ones behind them by
  // the second, ...
  template <std::size_t kAmounts>
  void IncreaseEach(std::size_t a, std::size_t b,
                    const std::array<std::int64_t, kAmounts>& amounts) {
    NoticeWindow();
    for (std::size_t i = 0; i < kAmounts; ++i) Add(a + i, amounts[i]);
    for (std::size_t i = 0; i < kAmounts; ++i) Add(b + i, amounts[i]);
  }
  template <std::size_t kAmounts>
  void DecreaseEach(std::size_t a, std::size_t b,
                    const std::array<std::int64_t, kAmounts>& amounts) {
    NoticeWindow();
    for (std::size_t i = 0; i < kAmounts; ++i) Remove(a + i, amounts[i]);
    for (std::size_t i = 0; i < kAmounts; ++i) Remove(b + i, amounts[i]);
  }
  void Count(std::size_t counter, std::int64_t amount = 1) {
    std::atomic<std::int64_t>& count = counts_[counter];
    count.store(count.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }

 private:
  friend class ShardedCounters;
  friend struct ShardedCountersTestPeer;  // updates that have not noticed a window

  void Add(std::size_t gauge, std::int64_t amount) {
    Cell& cell = cells_[gauge];
    const std::int64_t added = cell.added.load(std::memory_order_relaxed) + amount;
    cell.added.store(added, std::memory_order_release);
    const std::int64_t net = added - cell.removed.load(std::memory_order_relaxed);
    if (net <= cell.highest.load(std::memory_order_relaxed)) return;
    cell.highest.store(net, std::memory_order_release);
    if (net > cell.fold_above) [[unlikely]] {
      parent_.Fold();
    }
  }
  void Remove(std::size_t gauge, std::int64_t amount) {
    Cell& cell = cells_[gauge];
    const std::int64_t removed = cell.removed.load(std::memory_order_relaxed) + amount;
    cell.removed.store(removed, std::memory_order_release);
    const std::int64_t net = cell.added.load(std::memory_order_relaxed) - removed;
    if (net < cell.fold_below) [[unlikely]] {
      parent_.Fold();
    }
  }

  // Written by the owner only; others read the atomics.
  struct alignas(64) Cell {
    std::atomic<std::int64_t> added{0};
    std::atomic<std::int64_t> removed{0};
    std::atomic<std::int64_t> highest{0};  // of added - removed, in this shard's window
    // How the window before ended. The owner notices a new one late, at its next update: a fold
    // must not miss what happened in between.
    std::atomic<std::int64_t> closed_highest{0};
    std::atomic<std::int64_t> closed_added{0};
    std::atomic<std::int64_t> closed_removed{0};
    std::int64_t fold_above = 0;
    std::int64_t fold_below = 0;
  };

  Shard(ShardedCounters& parent, std::uint64_t window) : parent_(parent), window_(window) {
    for (std::size_t i = 0; i < kGauges; ++i) {
      cells_[i].fold_above = parent.fold_after_[i];
      cells_[i].fold_below = -parent.fold_after_[i];
    }
  }

  void NoticeWindow() {
    const std::uint64_t window = parent_.window_.load(std::memory_order_acquire);
    if (window != window_.load(std::memory_order_relaxed)) [[unlikely]] {
      StartWindow(window);
    }
  }

  [[gnu::noinline]] void StartWindow(std::uint64_t window) {
    for (std::size_t i = 0; i < kGauges; ++i) {
      Cell& cell = cells_[i];
      const std::int64_t added = cell.added.load(std::memory_order_relaxed);
      const std::int64_t removed = cell.removed.load(std::memory_order_relaxed);
      const std::int64_t net = added - removed;
      cell.closed_highest.store(cell.highest.load(std::memory_order_relaxed),
                                std::memory_order_relaxed);
      cell.closed_added.store(added, std::memory_order_relaxed);
      cell.closed_removed.store(removed, std::memory_order_relaxed);
      // After the closed window's: who sees this sees that.
      cell.highest.store(net, std::memory_order_release);
      cell.fold_above = net + parent_.fold_after_[i];
      cell.fold_below = net - parent_.fold_after_[i];
    }
    window_.store(window, std::memory_order_release);
  }

  ShardedCounters& parent_;
  std::atomic<std::uint64_t> window_;
  std::array<std::atomic<std::int64_t>, kCounters> counts_{};
  std::array<Cell, kGauges> cells_{};
};

template <std::size_t kGauges, std::size_t kCounters>
auto ShardedCounters<kGauges, kCounters>::AddShard() -> Shard* {
  const MutexLock lock(mutex_);
  Entry& entry = shards_.emplace_back();
  entry.shard.reset(new Shard(*this, window_.load(std::memory_order_relaxed)));
  return entry.shard.get();
}

template <std::size_t kGauges, std::size_t kCounters>
void ShardedCounters<kGauges, kCounters>::Retire(Shard* shard) {
  const MutexLock lock(mutex_);
  FoldLocked();
  const auto entry = std::find_if(shards_.begin(), shards_.end(),
                                  [shard](const Entry& e) { return e.shard.get() == shard; });
  if (entry == shards_.end()) return;
  for (std::size_t i = 0; i < kGauges; ++i) {
    retired_[i].added += shard->cells_[i].added.load(std::memory_order_relaxed);
    retired_[i].removed += shard->cells_[i].removed.load(std::memory_order_relaxed);
  }
  for (std::size_t i = 0; i < kCounters; ++i) {
    retired_count_[i] += shard->counts_[i].load(std::memory_order_relaxed);
  }
  shards_.erase(entry);
}

template <std::size_t kGauges, std::size_t kCounters>
std::int64_t ShardedCounters<kGauges, kCounters>::HighestSinceFold(const Shard& shard,
                                                                   std::size_t gauge,
                                                                   std::uint64_t window,
                                                                   const Totals& at_fold,
                                                                   const Totals& now) {
  if (now == at_fold) return now.net();  // both only grow: nothing happened
  const auto& cell = shard.cells_[gauge];
  const bool noticed = shard.window_.load(std::memory_order_acquire) == window;
  const std::int64_t highest = std::max(cell.highest.load(std::memory_order_acquire), now.net());
  const Totals closed{cell.closed_added.load(std::memory_order_relaxed),
                      cell.closed_removed.load(std::memory_order_relaxed)};
  if (noticed && closed == at_fold) return highest;
  // Updates between the last fold and the moment its owner noticed are in the closed window.
  return std::max(highest, cell.closed_highest.load(std::memory_order_relaxed));
}

template <std::size_t kGauges, std::size_t kCounters>
void ShardedCounters<kGauges, kCounters>::FoldLocked() {
  const std::uint64_t window = window_.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < kGauges; ++i) {
    std::int64_t highest = retired_[i].net();
    for (Entry& entry : shards_) {
      const auto& cell = entry.shard->cells_[i];
      Totals now;
      now.removed = cell.removed.load(std::memory_order_acquire);
      now.added = cell.added.load(std::memory_order_acquire);
      highest += HighestSinceFold(*entry.shard, i, window, entry.at_fold[i], now);
      entry.at_fold[i] = now;
    }
    peak_[i] = std::max(peak_[i], highest);
  }
  window_.store(window + 1, std::memory_order_release);
}

template <std::size_t kGauges, std::size_t kCounters>
auto ShardedCounters<kGauges, kCounters>::SumLocked(std::size_t gauge) const -> Totals {
  // First what was taken away: whoever took it saw it added, so the sum is never short of it.
  Totals sum = retired_[gauge];
  for (const Entry& entry : shards_) {
    sum.removed += entry.shard->cells_[gauge].removed.load(std::memory_order_acquire);
  }
  for (const Entry& entry : shards_) {
    sum.added += entry.shard->cells_[gauge].added.load(std::memory_order_acquire);
  }
  return sum;
}

template <std::size_t kGauges, std::size_t kCounters>
std::int64_t ShardedCounters<kGauges, kCounters>::CountLocked(std::size_t counter) const {
  std::int64_t sum = retired_count_[counter];
  for (const Entry& entry : shards_) {
    sum += entry.shard->counts_[counter].load(std::memory_order_relaxed);
  }
  return sum;
}

template <std::size_t kGauges, std::size_t kCounters>
auto ShardedCounters<kGauges, kCounters>::Read() -> Values {
  const MutexLock lock(mutex_);
  FoldLocked();
  Values values;
  for (std::size_t i = 0; i < kGauges; ++i) {
    const Totals sum = SumLocked(i);
    Stat& stat = values.gauges[i];
    stat.peak = peak_[i];
    stat.current = std::min(sum.net(), stat.peak);
    stat.allocated = sum.added - base_[i].added;
    stat.freed = sum.removed - base_[i].removed;
  }
  for (std::size_t i = 0; i < kCounters; ++i) {
    values.counters[i] = CountLocked(i) - base_count_[i];
  }
  return values;
}

template <std::size_t kGauges, std::size_t kCounters>
void ShardedCounters<kGauges, kCounters>::ResetPeak() {
  const MutexLock lock(mutex_);
  FoldLocked();
  // As the fold saw them, and not as they are by now: the next window starts there.
  for (std::size_t i = 0; i < kGauges; ++i) {
    peak_[i] = retired_[i].net();
    for (const Entry& entry : shards_) peak_[i] += entry.at_fold[i].net();
  }
}

template <std::size_t kGauges, std::size_t kCounters>
void ShardedCounters<kGauges, kCounters>::ResetAccumulated() {
  const MutexLock lock(mutex_);
  for (std::size_t i = 0; i < kGauges; ++i) base_[i] = SumLocked(i);
  for (std::size_t i = 0; i < kCounters; ++i) base_count_[i] = CountLocked(i);
}

}  // namespace keel::telemetry
