// MemoryStats and HostMemoryStats: what an allocator has done and holds, as plain values.
//
// Names, structure and meaning are those of PyTorch's memory_stats() and host_memory_stats(), so
// that what reads those reads these; Keel's own follow under "keel.". docs/stats.md lists every key
// with its meaning, from the same table that Flatten uses.
//
// Value types: an allocator fills one under its own lock, or from counters of its hot path
// (src/telemetry/block_counters.h), and hands out copies.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "keel/base/export.h"

namespace keel::telemetry {

// A quantity that goes up and down.
struct Stat {
  std::int64_t current = 0;
  std::int64_t peak = 0;       // the largest `current` since the last ResetPeak
  std::int64_t allocated = 0;  // everything that was added since the last ResetAccumulated
  std::int64_t freed = 0;      // and everything that was taken away

  void Increase(std::int64_t amount) {
    current += amount;
    allocated += amount;
    if (current > peak) peak = current;
  }
  void Decrease(std::int64_t amount) {
    current -= amount;
    freed += amount;
  }
  void ResetPeak() { peak = current; }
  void ResetAccumulated() { allocated = freed = 0; }

  // Of two allocators as one. The sum of the peaks is an upper bound of the peak of the sum: the
  // two need not have been at their highest together.
  KEEL_EXPORT Stat& operator+=(const Stat& other);
  friend bool operator==(const Stat&, const Stat&) = default;
};

// Which pool a block belongs to: small requests (1 MiB and less) have segments of their own.
enum class Pool : std::uint8_t { kSmall, kLarge };

// A Stat for both pools and for each. `all` has a peak of its own, which is not the sum of theirs.
struct PoolStat {
  Stat all;
  Stat small_pool;
  Stat large_pool;

  void Increase(Pool pool, std::int64_t amount) {
    all.Increase(amount);
    of(pool).Increase(amount);
  }
  void Decrease(Pool pool, std::int64_t amount) {
    all.Decrease(amount);
    of(pool).Decrease(amount);
  }
  Stat& of(Pool pool) { return pool == Pool::kSmall ? small_pool : large_pool; }
  const Stat& of(Pool pool) const { return pool == Pool::kSmall ? small_pool : large_pool; }

  KEEL_EXPORT PoolStat& operator+=(const PoolStat& other);
  friend bool operator==(const PoolStat&, const PoolStat&) = default;
};

// How long something took, in microseconds.
struct TimeStat {
  std::int64_t total = 0;
  std::int64_t max = 0;
  std::int64_t min = 0;
  std::int64_t count = 0;
  bool has_extremes = false;  // whether max and min mean something: not before the first Add

  KEEL_EXPORT void Add(std::int64_t microseconds);
  // max and min are of what follows.
  KEEL_EXPORT void ResetPeak();
  KEEL_EXPORT void ResetAccumulated();
  std::int64_t avg() const { return count == 0 ? 0 : total / count; }
  KEEL_EXPORT TimeStat& operator+=(const TimeStat& other);
  friend bool operator==(const TimeStat&, const TimeStat&) = default;
};

// One line of docs/stats.md. `key` stands for all keys that its braces expand to:
// "segment.{all,small_pool,large_pool}.{current,peak,allocated,freed}". A word in angle brackets
// stands for any text.
struct StatDescription {
  std::string key;
  std::string_view unit;
  std::string_view meaning;
};

using FlatStats = std::vector<std::pair<std::string, std::int64_t>>;

// Of one device's allocator.
struct MemoryStats {
  PoolStat allocation;
  PoolStat segment;
  PoolStat active;
  PoolStat inactive_split;
  PoolStat allocated_bytes;
  PoolStat reserved_bytes;
  PoolStat active_bytes;
  PoolStat inactive_split_bytes;
  PoolStat requested_bytes;
  Stat oversize_allocations;
  Stat oversize_segments;
  std::int64_t num_alloc_retries = 0;
  std::int64_t num_ooms = 0;
  std::int64_t num_sync_all_streams = 0;
  std::int64_t num_device_alloc = 0;
  std::int64_t num_device_free = 0;
  std::int64_t max_split_size = -1;  // a setting, not a count; -1: unlimited

  // Keel's own.
  std::int64_t front_cache_hits = 0;
  std::int64_t front_cache_misses = 0;
  std::int64_t driver_calls_avoided = 0;
  std::int64_t pages_moved = 0;
  Stat mapped_bytes;
  Stat pending_frees;
  Stat pending_free_bytes;
  std::map<std::string, std::int64_t, std::less<>> tag_bytes;  // live bytes by the tag's name

  // Peaks become the current values; `allocated`, `freed` and the plain counts become zero. What is
  // held, settings and tag_bytes stay.
  KEEL_EXPORT void ResetPeak();
  KEEL_EXPORT void ResetAccumulated();

  // Of two allocators as one; see Stat. max_split_size becomes the larger.
  KEEL_EXPORT MemoryStats& operator+=(const MemoryStats& other);

  // Every key with its value, PyTorch's first, always in the same order.
  KEEL_EXPORT FlatStats Flatten() const;
  KEEL_EXPORT static std::vector<StatDescription> Describe();

  friend bool operator==(const MemoryStats&, const MemoryStats&) = default;
};

// Of the pinned host memory of the process.
struct HostMemoryStats {
  Stat allocations;
  Stat active_requests;
  Stat allocated_bytes;
  Stat active_bytes;
  std::int64_t num_host_alloc = 0;
  std::int64_t num_host_free = 0;
  TimeStat host_alloc_time;
  TimeStat host_free_time;

  KEEL_EXPORT void ResetPeak();
  KEEL_EXPORT void ResetAccumulated();
  KEEL_EXPORT HostMemoryStats& operator+=(const HostMemoryStats& other);
  KEEL_EXPORT FlatStats Flatten() const;
  KEEL_EXPORT static std::vector<StatDescription> Describe();

  friend bool operator==(const HostMemoryStats&, const HostMemoryStats&) = default;
};

}  // namespace keel::telemetry
