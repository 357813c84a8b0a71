// BlockCounters: what an allocator counts of its blocks, on a hot path that many threads take.
//
// Each thread, or thread cache, writes a shard that nobody else writes: plain stores, no
// read-modify-write, no line that bounces between cores. Reading sums the shards under a lock.
//
//   BlockCounters counters({.blocks = 65'536, .bytes = 256 << 20});
//   auto* shard = counters.AddShard();                    // once per thread
//   shard->Allocated(Pool::kSmall, 512, 100);             // 512 bytes, of which 100 were asked for
//   shard->Freed(Pool::kSmall, 512, 100);
//   counters.Read().bytes.small_pool;                     // a Stat
//
// A block that is freed while somebody still uses it is pending: Deferred instead of Freed, and
// Ended when the use is over. A block is active until then. It may be allocated through one shard
// and freed through another: only the sum means something.
//
// Exactness. `current`, `allocated`, `freed` and the counters are exact when no update is in
// flight; otherwise each is what it was at some moment of the call, and `current` never exceeds
// `peak`. `peak` is exact while one shard at a time is in use between two folds and no fold runs
// beside an update, so always with one thread. With n shards it is never below a value that the sum
// had while no update and no fold was in flight, and above the true peak by at most
//     4 * (n - 1) * parts * (fold_after + the largest single update).
// A pool's blocks and what is pending there are one part each: `all` has two, `active` has two, and
// `active` of all has four.
//
// How: time is cut into windows, and a shard keeps the highest net value that it had in the present
// one. A fold adds these up over all shards, which is the estimate of the window's peak, and starts
// the next window for all. Reading folds, and so does an update that moves its shard further than
// `fold_after` from where it was when the window began: a lock and a look at every shard. So
// fold_after is the price of a small error; a few hundred times the usual update is cheap.
//
// Large blocks are few, and one of them can be more than all small ones. So a shard folds before it
// counts one if another shard counted the last: threads that take turns with large blocks, as a
// program and its backward pass do, have exact peaks of those. Nobody waits for it: where the lock
// is taken, the fold is left out.
//
// What is active is what is allocated and what is pending, and that changes seldom. So between two
// such changes the highest of the one tells the highest of the other, and only a change looks at
// both: the common update keeps books on three quantities of its pool, and compares those and the
// sums of both pools with their highest.
//
// A shard is freed by Retire or with the counters; what it counted stays.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "keel/base/mutex.h"
#include "keel/telemetry/memory_stats.h"

namespace keel::telemetry {

class BlockCounters {
 public:
  class Shard;

  struct Values {
    PoolStat blocks;
    PoolStat bytes;
    PoolStat requested;
    PoolStat active_blocks;  // and those that are freed but still used
    PoolStat active_bytes;
    Stat pending_blocks;  // of those, the freed ones
    Stat pending_bytes;
    std::int64_t misses = 0;
  };
  struct FoldAfter {
    std::int64_t blocks = 0;
    std::int64_t bytes = 0;
  };

  explicit BlockCounters(FoldAfter fold_after)
      : fold_after_{fold_after.blocks, fold_after.bytes, fold_after.bytes} {}
  BlockCounters(const BlockCounters&) = delete;
  BlockCounters& operator=(const BlockCounters&) = delete;
  ~BlockCounters();

  // A shard for one writer at a time: a thread, or whoever holds some lock. The counters own it.
  Shard* AddShard() KEEL_EXCLUDES(mutex_);
  // Its writer is done, and what it wrote is visible to the caller.
  void Retire(Shard* shard) KEEL_EXCLUDES(mutex_);

  // Any thread, for the rest.
  Values Read() KEEL_EXCLUDES(mutex_);
  // What Read() has as bytes.all.current, for less: it does not fold.
  std::int64_t ReadBytes() KEEL_EXCLUDES(mutex_);
  // Peaks become the current values.
  void ResetPeak() KEEL_EXCLUDES(mutex_);
  // `allocated`, `freed` and the counters start again at zero.
  void ResetAccumulated() KEEL_EXCLUDES(mutex_);

 private:
  enum Quantity : std::size_t { kBlocks, kBytes, kRequested, kQuantities };
  static constexpr std::size_t kPools = 2;
  // A pool, by its number, or both.
  static constexpr std::size_t kAll = kPools;
  static constexpr std::size_t kViews = kPools + 1;

  // Everything that has a peak, as one list.
  static constexpr std::size_t Live(std::size_t view, std::size_t quantity) {
    return view * kQuantities + quantity;
  }
  static constexpr std::size_t Active(std::size_t view, std::size_t quantity) {
    return Live(kViews + view, quantity);
  }
  static constexpr std::size_t Pending(std::size_t quantity) { return Live(2 * kViews, quantity); }
  static constexpr std::size_t kPeaks = (2 * kViews + 1) * kQuantities;
  using Highs = std::array<std::int64_t, kPeaks>;
  static void Raise(Highs& highs, std::size_t peak, std::int64_t value) {
    if (value > highs[peak]) highs[peak] = value;
  }

  // What was added and taken away, by pool and quantity. Each number only grows.
  struct Totals {
    using Sums = std::array<std::array<std::int64_t, kQuantities>, kPools>;
    Sums added{};
    Sums removed{};
    Sums deferred{};
    Sums ended{};
    std::int64_t misses = 0;

    // Equal for two moments of a shard if nothing happened in between.
    std::int64_t updates() const;
    std::int64_t pending(std::size_t view, std::size_t quantity) const {
      return Of(deferred, view, quantity) - Of(ended, view, quantity);
    }
    // The present values of what has a peak.
    Highs Now() const;
    static std::int64_t Of(const Sums& sums, std::size_t view, std::size_t quantity) {
      return view == kAll ? sums[0][quantity] + sums[1][quantity] : sums[view][quantity];
    }
  };
  struct Entry {
    std::unique_ptr<Shard> shard;
    Totals at_fold;  // as the last fold saw it
  };

  [[gnu::noinline]] void Fold() KEEL_EXCLUDES(mutex_);
  [[gnu::noinline]] void FoldForTurn(const Shard* next) KEEL_EXCLUDES(mutex_);
  void FoldLocked() KEEL_REQUIRES(mutex_);
  Totals SumLocked() const KEEL_REQUIRES(mutex_);
  // One of the sums, or several.
  static void AddTo(Totals::Sums& sums, const Totals::Sums& more);

  const std::array<std::int64_t, kQuantities> fold_after_;
  // The number of the present window; written under the lock.
  alignas(64) std::atomic<std::uint64_t> window_{1};
  // The shard that counted the last large block.
  std::atomic<const Shard*> turn_{nullptr};

  alignas(64) Mutex mutex_;
  std::vector<Entry> shards_ KEEL_GUARDED_BY(mutex_);
  Highs peak_ KEEL_GUARDED_BY(mutex_){};
  Totals retired_ KEEL_GUARDED_BY(mutex_);  // of retired shards
  Totals base_ KEEL_GUARDED_BY(mutex_);     // what the sums were at the last ResetAccumulated
};

class alignas(64) BlockCounters::Shard {
 public:
  // A block of `bytes`, of which `requested` were asked for, is handed out.
  [[gnu::always_inline]] void Allocated(Pool pool, std::int64_t bytes, std::int64_t requested) {
    TakeTurn(pool);
    NoticeWindow();
    Add(pool, bytes, requested);
  }
  // It is free.
  [[gnu::always_inline]] void Freed(Pool pool, std::int64_t bytes, std::int64_t requested) {
    TakeTurn(pool);
    NoticeWindow();
    Remove(pool, bytes, requested);
  }
  // It is free, once something is done that still uses it.
  void Deferred(Pool pool, std::int64_t bytes, std::int64_t requested);
  // That is done, for so many of them, which have so many bytes together.
  void Ended(Pool pool, std::int64_t blocks, std::int64_t bytes);
  // A counter that is there for the owner to use.
  void CountMiss() { Increase(misses_, 1); }

 private:
  friend class BlockCounters;
  friend struct BlockCountersTestPeer;  // updates that have not noticed a window
  using Value = std::atomic<std::int64_t>;

  // Written by the owner only; others read the atomics.
  using Sums = std::array<Value, kQuantities>;
  struct alignas(64) Part {
    Sums added{};
    Sums removed{};
    // Since the window began, or what is pending changed; of added - removed.
    alignas(64) Sums highest{};
    std::array<std::int64_t, kQuantities> fold_below{};
    // What is pending; of what was requested nothing is kept there.
    alignas(64) Sums deferred{};
    Sums ended{};
    std::array<std::int64_t, kQuantities> pending_at_start{};
  };

  Shard(BlockCounters& parent, std::uint64_t window);

  static std::int64_t Get(const Value& value) { return value.load(std::memory_order_relaxed); }
  static std::int64_t Increase(Value& value, std::int64_t amount) {
    const std::int64_t increased = Get(value) + amount;
    value.store(increased, std::memory_order_release);
    return increased;
  }

  // Before the update is noted: what others did until now ends with their window.
  void TakeTurn(Pool pool) {
    // Both are asked: which pool it is, a processor cannot guess.
    const bool others = parent_.turn_.load(std::memory_order_relaxed) != this;
    if (static_cast<unsigned>(pool == Pool::kLarge) & static_cast<unsigned>(others)) [[unlikely]] {
      parent_.FoldForTurn(this);
    }
  }
  void NoticeWindow() {
    const std::uint64_t window = parent_.window_.load(std::memory_order_acquire);
    if (window != window_.load(std::memory_order_relaxed)) [[unlikely]] {
      StartWindow(window);
    }
  }

  void Add(Pool pool, std::int64_t bytes, std::int64_t requested) {
    Part& part = parts_[static_cast<std::size_t>(pool)];
    const Part& other = parts_[1 - static_cast<std::size_t>(pool)];
    bool far = AddOne<kBlocks>(part, other, 1);
    far |= AddOne<kBytes>(part, other, bytes);
    far |= AddOne<kRequested>(part, other, requested);
    if (far) [[unlikely]] {
      parent_.Fold();
    }
  }
  // Whether that is further than fold_after from where the window began.
  template <std::size_t kQuantity>
  bool AddOne(Part& part, const Part& other, std::int64_t amount) {
    const std::int64_t net = Increase(part.added[kQuantity], amount) - Get(part.removed[kQuantity]);
    bool far = false;
    if (net > Get(part.highest[kQuantity])) {
      part.highest[kQuantity].store(net, std::memory_order_release);
      far = net - part.fold_below[kQuantity] > 2 * parent_.fold_after_[kQuantity];
    }
    const std::int64_t all = net + Get(other.added[kQuantity]) - Get(other.removed[kQuantity]);
    if (all > Get(highest_of_all_[kQuantity])) {
      highest_of_all_[kQuantity].store(all, std::memory_order_release);
    }
    return far;
  }

  void Remove(Pool pool, std::int64_t bytes, std::int64_t requested) {
    if (RemoveAll(parts_[static_cast<std::size_t>(pool)], bytes, requested)) [[unlikely]] {
      parent_.Fold();
    }
  }
  static bool RemoveAll(Part& part, std::int64_t bytes, std::int64_t requested) {
    bool far = RemoveOne<kBlocks>(part, 1);
    far |= RemoveOne<kBytes>(part, bytes);
    far |= RemoveOne<kRequested>(part, requested);
    return far;
  }
  template <std::size_t kQuantity>
  static bool RemoveOne(Part& part, std::int64_t amount) {
    const std::int64_t removed = Increase(part.removed[kQuantity], amount);
    return Get(part.added[kQuantity]) - removed < part.fold_below[kQuantity];
  }

  const Value& HighestOf(std::size_t view, std::size_t quantity) const {
    return view == kAll ? highest_of_all_[quantity] : parts_[view].highest[quantity];
  }
  Value& HighestOf(std::size_t view, std::size_t quantity) {
    return view == kAll ? highest_of_all_[quantity] : parts_[view].highest[quantity];
  }
  static std::int64_t NetOf(const Part& part, std::size_t quantity) {
    return Get(part.added[quantity]) - Get(part.removed[quantity]);
  }
  static std::int64_t PendingOf(const Part& part, std::size_t quantity) {
    return Get(part.deferred[quantity]) - Get(part.ended[quantity]);
  }
  void Keep(std::size_t peak, std::int64_t value);
  void KeepHighest(std::size_t view, std::size_t quantity, std::int64_t pending);
  // Blocks more in `sums`, deferred or ended: the highest values so far are kept, because from
  // now on they mean something else for what is active. Whether it is too far from the window's
  // start. Then they start again.
  bool ChangePending(Pool pool, Sums Part::* sums, std::int64_t blocks, std::int64_t bytes);
  void RestartHighest(Pool pool);
  [[gnu::noinline]] void StartWindow(std::uint64_t window);

  // Anybody's. Each number is what it was at some moment of the call.
  Totals Read() const;
  static Totals::Sums ReadSums(const std::array<Part, kPools>& parts, Sums Part::* sums);
  // The highest values since the last fold.
  Highs HighestSinceFold(std::uint64_t window, const Totals& at_fold, const Totals& now) const;

  BlockCounters& parent_;
  std::atomic<std::uint64_t> window_;
  Value misses_{0};
  std::array<Value, kQuantities> highest_of_all_{};
  std::array<Part, kPools> parts_{};

  // Of this window, as far as it is not in the highest values above.
  std::array<Value, kPeaks> kept_{};
  // How the window before ended. The owner notices a new one late, at its next update: a fold must
  // not miss what happened in between.
  std::array<Value, kPeaks> closed_{};
  Value closed_updates_{0};
};

}  // namespace keel::telemetry
