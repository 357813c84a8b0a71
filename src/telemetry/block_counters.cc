#include "telemetry/block_counters.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace keel::telemetry {

BlockCounters::~BlockCounters() = default;

// --- Totals -----------------------------------------------------------------------------------

std::int64_t BlockCounters::Totals::updates() const {
  return Of(added, kAll, kBlocks) + Of(removed, kAll, kBlocks) + Of(deferred, kAll, kBlocks) +
         Of(ended, kAll, kBlocks);
}

BlockCounters::Highs BlockCounters::Totals::Now() const {
  Highs now{};
  for (std::size_t q = 0; q < kQuantities; ++q) {
    for (std::size_t view = 0; view < kViews; ++view) {
      now[Live(view, q)] = Of(added, view, q) - Of(removed, view, q);
      now[Active(view, q)] = now[Live(view, q)] + pending(view, q);
    }
    now[Pending(q)] = pending(kAll, q);
  }
  return now;
}

void BlockCounters::AddTo(Totals::Sums& sums, const Totals::Sums& more) {
  for (std::size_t pool = 0; pool < kPools; ++pool) {
    for (std::size_t q = 0; q < kQuantities; ++q) sums[pool][q] += more[pool][q];
  }
}

// --- A shard, by its owner --------------------------------------------------------------------

BlockCounters::Shard::Shard(BlockCounters& parent, std::uint64_t window)
    : parent_(parent), window_(window) {
  for (Part& part : parts_) {
    for (std::size_t q = 0; q < kQuantities; ++q) part.fold_below[q] = -parent.fold_after_[q];
  }
}

void BlockCounters::Shard::Keep(std::size_t peak, std::int64_t value) {
  if (value > Get(kept_[peak])) kept_[peak].store(value, std::memory_order_release);
}

void BlockCounters::Shard::KeepHighest(std::size_t view, std::size_t quantity,
                                       std::int64_t pending) {
  const std::int64_t highest = Get(HighestOf(view, quantity));
  Keep(Live(view, quantity), highest);
  Keep(Active(view, quantity), highest + pending);
}

bool BlockCounters::Shard::ChangePending(Pool pool, Sums Part::* sums, std::int64_t blocks,
                                         std::int64_t bytes) {
  const auto view = static_cast<std::size_t>(pool);
  Part& part = parts_[view];
  const Part& other = parts_[1 - view];
  bool far = false;
  for (const auto& [q, amount] : {std::pair{kBlocks, blocks}, {kBytes, bytes}}) {
    const std::int64_t elsewhere = PendingOf(other, q);
    const std::int64_t before = PendingOf(part, q);
    KeepHighest(view, q, before);
    KeepHighest(kAll, q, before + elsewhere);
    Increase((part.*sums)[q], amount);
    const std::int64_t after = PendingOf(part, q);
    Keep(Pending(q), after + elsewhere);
    far |= std::abs(after - part.pending_at_start[q]) > parent_.fold_after_[q];
  }
  return far;
}

void BlockCounters::Shard::RestartHighest(Pool pool) {
  const auto view = static_cast<std::size_t>(pool);
  for (const std::size_t q : {kBlocks, kBytes}) {
    const std::int64_t net = NetOf(parts_[view], q);
    // After what was kept: who sees this sees that.
    HighestOf(view, q).store(net, std::memory_order_release);
    HighestOf(kAll, q).store(net + NetOf(parts_[1 - view], q), std::memory_order_release);
  }
}

void BlockCounters::Shard::Deferred(Pool pool, std::int64_t bytes, std::int64_t requested) {
  TakeTurn(pool);
  NoticeWindow();
  // It is pending before it is no longer allocated: it stays active.
  bool far = ChangePending(pool, &Part::deferred, 1, bytes);
  far |= RemoveAll(parts_[static_cast<std::size_t>(pool)], bytes, requested);
  RestartHighest(pool);
  if (far) parent_.Fold();
}

void BlockCounters::Shard::Ended(Pool pool, std::int64_t blocks, std::int64_t bytes) {
  TakeTurn(pool);
  NoticeWindow();
  const bool far = ChangePending(pool, &Part::ended, blocks, bytes);
  RestartHighest(pool);
  if (far) parent_.Fold();
}

void BlockCounters::Shard::StartWindow(std::uint64_t window) {
  const Totals now = Read();
  const Highs start = now.Now();
  for (std::size_t view = 0; view < kViews; ++view) {
    for (std::size_t q = 0; q < kQuantities; ++q) KeepHighest(view, q, now.pending(view, q));
  }
  for (std::size_t peak = 0; peak < kPeaks; ++peak) {
    closed_[peak].store(Get(kept_[peak]), std::memory_order_relaxed);
    // After the closed window's: who sees this sees that.
    kept_[peak].store(start[peak], std::memory_order_release);
  }
  closed_updates_.store(now.updates(), std::memory_order_relaxed);
  for (std::size_t q = 0; q < kQuantities; ++q) {
    for (std::size_t view = 0; view < kViews; ++view) {
      HighestOf(view, q).store(start[Live(view, q)], std::memory_order_release);
    }
    for (std::size_t pool = 0; pool < kPools; ++pool) {
      parts_[pool].fold_below[q] = start[Live(pool, q)] - parent_.fold_after_[q];
      parts_[pool].pending_at_start[q] = now.pending(pool, q);
    }
  }
  window_.store(window, std::memory_order_release);
}

// --- A shard, by anybody ----------------------------------------------------------------------

auto BlockCounters::Shard::ReadSums(const std::array<Part, kPools>& parts, Sums Part::* sums)
    -> Totals::Sums {
  Totals::Sums read;
  for (std::size_t pool = 0; pool < kPools; ++pool) {
    for (std::size_t q = 0; q < kQuantities; ++q) {
      read[pool][q] = (parts[pool].*sums)[q].load(std::memory_order_acquire);
    }
  }
  return read;
}

auto BlockCounters::Shard::Read() const -> Totals {
  Totals totals;
  totals.ended = ReadSums(parts_, &Part::ended);
  totals.removed = ReadSums(parts_, &Part::removed);
  totals.deferred = ReadSums(parts_, &Part::deferred);
  totals.added = ReadSums(parts_, &Part::added);
  totals.misses = Get(misses_);
  return totals;
}

auto BlockCounters::Shard::HighestSinceFold(std::uint64_t window, const Totals& at_fold,
                                            const Totals& now) const -> Highs {
  Highs highs = now.Now();
  if (now.updates() == at_fold.updates()) return highs;  // nothing happened
  const bool noticed = window_.load(std::memory_order_acquire) == window;
  for (std::size_t view = 0; view < kViews; ++view) {
    for (std::size_t q = 0; q < kQuantities; ++q) {
      const std::int64_t highest = HighestOf(view, q).load(std::memory_order_acquire);
      Raise(highs, Live(view, q), highest);
      Raise(highs, Active(view, q), highest + now.pending(view, q));
    }
  }
  for (std::size_t peak = 0; peak < kPeaks; ++peak) {
    Raise(highs, peak, kept_[peak].load(std::memory_order_acquire));
  }
  if (noticed && Get(closed_updates_) == at_fold.updates()) return highs;
  // Updates between the last fold and the moment its owner noticed are in the closed window.
  for (std::size_t peak = 0; peak < kPeaks; ++peak) Raise(highs, peak, Get(closed_[peak]));
  return highs;
}

// --- All of them ------------------------------------------------------------------------------

BlockCounters::Shard* BlockCounters::AddShard() {
  const MutexLock lock(mutex_);
  Entry& entry = shards_.emplace_back();
  entry.shard.reset(new Shard(*this, window_.load(std::memory_order_relaxed)));
  return entry.shard.get();
}

void BlockCounters::Retire(Shard* shard) {
  const MutexLock lock(mutex_);
  FoldLocked();
  const auto entry = std::find_if(shards_.begin(), shards_.end(),
                                  [shard](const Entry& e) { return e.shard.get() == shard; });
  if (entry == shards_.end()) return;
  const Totals last = shard->Read();
  AddTo(retired_.added, last.added);
  AddTo(retired_.removed, last.removed);
  AddTo(retired_.deferred, last.deferred);
  AddTo(retired_.ended, last.ended);
  retired_.misses += last.misses;
  if (turn_.load(std::memory_order_relaxed) == shard)
    turn_.store(nullptr, std::memory_order_relaxed);
  shards_.erase(entry);
}

void BlockCounters::Fold() {
  const MutexLock lock(mutex_);
  FoldLocked();
}

void BlockCounters::FoldForTurn(const Shard* next) {
  turn_.store(next, std::memory_order_relaxed);
  if (!mutex_.TryLock()) return;
  FoldLocked();
  mutex_.Unlock();
}

void BlockCounters::FoldLocked() {
  const std::uint64_t window = window_.load(std::memory_order_relaxed);
  Highs highest = retired_.Now();
  for (Entry& entry : shards_) {
    const Totals now = entry.shard->Read();
    const Highs of_shard = entry.shard->HighestSinceFold(window, entry.at_fold, now);
    for (std::size_t peak = 0; peak < kPeaks; ++peak) highest[peak] += of_shard[peak];
    entry.at_fold = now;
  }
  for (std::size_t peak = 0; peak < kPeaks; ++peak) Raise(peak_, peak, highest[peak]);
  window_.store(window + 1, std::memory_order_release);
}

BlockCounters::Totals BlockCounters::SumLocked() const {
  // First what was taken away: whoever took it saw it added, so the sum is never short of it.
  Totals sum = retired_;
  using Part = Shard::Part;
  const auto read = [](const Entry& entry, Shard::Sums Part::* sums) {
    return Shard::ReadSums(entry.shard->parts_, sums);
  };
  for (const Entry& entry : shards_) AddTo(sum.ended, read(entry, &Part::ended));
  for (const Entry& entry : shards_) AddTo(sum.removed, read(entry, &Part::removed));
  for (const Entry& entry : shards_) AddTo(sum.deferred, read(entry, &Part::deferred));
  for (const Entry& entry : shards_) AddTo(sum.added, read(entry, &Part::added));
  for (const Entry& entry : shards_) sum.misses += Shard::Get(entry.shard->misses_);
  return sum;
}

std::int64_t BlockCounters::ReadBytes() {
  const MutexLock lock(mutex_);
  const auto sum = [this](const Totals::Sums& retired, Shard::Sums Shard::Part::* sums)
                       KEEL_REQUIRES(mutex_) {
                         std::int64_t bytes = Totals::Of(retired, kAll, kBytes);
                         for (const Entry& entry : shards_) {
                           for (const Shard::Part& part : entry.shard->parts_)
                             bytes += Shard::Get((part.*sums)[kBytes]);
                         }
                         return bytes;
                       };
  // In this order, as in SumLocked.
  const std::int64_t removed = sum(retired_.removed, &Shard::Part::removed);
  return sum(retired_.added, &Shard::Part::added) - removed;
}

BlockCounters::Values BlockCounters::Read() {
  const MutexLock lock(mutex_);
  FoldLocked();
  const Totals sum = SumLocked();
  const Highs now = sum.Now();
  const Totals base = base_;
  const Highs peaks = peak_;
  // Since the sums were reset.
  const auto since = [&](Totals::Sums Totals::* sums, std::size_t view, std::size_t q) {
    return Totals::Of(sum.*sums, view, q) - Totals::Of(base.*sums, view, q);
  };
  const auto stat = [&](std::size_t peak, std::int64_t allocated, std::int64_t freed) {
    return Stat{.current = std::min(now[peak], peaks[peak]),
                .peak = peaks[peak],
                .allocated = allocated,
                .freed = freed};
  };
  const auto live = [&](std::size_t view, std::size_t q) {
    return stat(Live(view, q), since(&Totals::added, view, q), since(&Totals::removed, view, q));
  };
  const auto active = [&](std::size_t view, std::size_t q) {
    const std::int64_t pending = since(&Totals::deferred, view, q) - since(&Totals::ended, view, q);
    return stat(Active(view, q), since(&Totals::added, view, q),
                since(&Totals::removed, view, q) - pending);
  };
  const auto pending = [&](std::size_t q) {
    return stat(Pending(q), since(&Totals::deferred, kAll, q), since(&Totals::ended, kAll, q));
  };
  Values values;
  for (std::size_t view = 0; view < kViews; ++view) {
    const auto of = [view](PoolStat& both) -> Stat& {
      return view == kAll ? both.all : both.of(static_cast<Pool>(view));
    };
    of(values.blocks) = live(view, kBlocks);
    of(values.bytes) = live(view, kBytes);
    of(values.requested) = live(view, kRequested);
    of(values.active_blocks) = active(view, kBlocks);
    of(values.active_bytes) = active(view, kBytes);
  }
  values.pending_blocks = pending(kBlocks);
  values.pending_bytes = pending(kBytes);
  values.misses = sum.misses - base.misses;
  return values;
}

void BlockCounters::ResetPeak() {
  const MutexLock lock(mutex_);
  FoldLocked();
  // As the fold saw them, and not as they are by now: the next window starts there.
  peak_ = retired_.Now();
  for (const Entry& entry : shards_) {
    const Highs now = entry.at_fold.Now();
    for (std::size_t peak = 0; peak < kPeaks; ++peak) peak_[peak] += now[peak];
  }
}

void BlockCounters::ResetAccumulated() {
  const MutexLock lock(mutex_);
  base_ = SumLocked();
}

}  // namespace keel::telemetry
