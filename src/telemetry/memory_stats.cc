#include "keel/telemetry/memory_stats.h"

#include <algorithm>
#include <variant>

namespace keel::telemetry {
namespace {

using TagBytes = std::map<std::string, std::int64_t, std::less<>>;

// One statistic of S: everything that is done to all of them goes over a list of these.
template <class S>
struct Row {
  std::string_view name;
  std::string_view unit;
  std::string_view meaning;
  std::variant<PoolStat S::*, Stat S::*, TimeStat S::*, std::int64_t S::*, TagBytes S::*> field;
  bool is_setting = false;  // a number that no reset touches
};

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

using M = MemoryStats;
const Row<M> kMemoryRows[] = {
    {"allocation", "count", "requests that were served and not freed yet", &M::allocation},
    {"segment", "count",
     "segments held: plain pieces of device memory, or contiguous mapped parts of expandable ones",
     &M::segment},
    {"active", "count",
     "blocks in use: allocated, or freed while work on another stream may still touch them",
     &M::active},
    {"inactive_split", "count",
     "free blocks that are a part of a segment, so that the segment cannot be given back",
     &M::inactive_split},
    {"allocated_bytes", "bytes", "memory of allocated blocks, as rounded", &M::allocated_bytes},
    {"reserved_bytes", "bytes",
     "device memory held by the allocator, in use or not; mapped parts of expandable segments "
     "included",
     &M::reserved_bytes},
    {"active_bytes", "bytes", "memory of blocks in use, as in `active`", &M::active_bytes},
    {"inactive_split_bytes", "bytes", "memory of the blocks in `inactive_split`",
     &M::inactive_split_bytes},
    {"requested_bytes", "bytes", "what the program asked for, before rounding",
     &M::requested_bytes},
    {"oversize_allocations", "count", "allocations of `max_split_size_mb` and more",
     &M::oversize_allocations},
    {"oversize_segments", "count", "segments of `max_split_size_mb` and more",
     &M::oversize_segments},
    {"num_alloc_retries", "count",
     "requests that the driver refused at first, so that cached memory was given back",
     &M::num_alloc_retries},
    {"num_ooms", "count", "requests that ended in an out-of-memory error", &M::num_ooms},
    {"num_sync_all_streams", "count",
     "times that the allocator waited for all pending frees, which stalls the program",
     &M::num_sync_all_streams},
    {"num_device_alloc", "count", "driver calls that took memory: allocate, or create and map",
     &M::num_device_alloc},
    {"num_device_free", "count", "driver calls that gave memory back: free, or unmap",
     &M::num_device_free},
    {"max_split_size", "bytes", "the setting `max_split_size_mb`; -1: unlimited",
     &M::max_split_size, true},
    {"keel.front_cache_hits", "count", "requests served by the calling thread's own cache",
     &M::front_cache_hits},
    {"keel.front_cache_misses", "count", "requests that had to go to the shared pools",
     &M::front_cache_misses},
    {"keel.driver_calls_avoided", "count",
     "driver calls that a plain allocator would have made and a cache made unnecessary",
     &M::driver_calls_avoided},
    {"keel.pages_moved", "count",
     "pieces of physical memory taken from under a free hole and mapped where they were needed",
     &M::pages_moved},
    {"keel.mapped_bytes", "bytes", "physical memory mapped into expandable segments",
     &M::mapped_bytes},
    {"keel.pending_frees", "count", "blocks freed, waiting for work on other streams",
     &M::pending_frees},
    {"keel.pending_free_bytes", "bytes", "memory of the blocks in `keel.pending_frees`",
     &M::pending_free_bytes},
    {"keel.tag_bytes", "bytes", "memory of allocated blocks that carry the tag", &M::tag_bytes},
};

using H = HostMemoryStats;
const Row<H> kHostRows[] = {
    {"allocations", "count", "pieces of pinned memory held, in use or cached", &H::allocations},
    {"active_requests", "count", "requests that were served and whose memory is still in use",
     &H::active_requests},
    {"allocated_bytes", "bytes", "pinned memory held, in use or cached", &H::allocated_bytes},
    {"active_bytes", "bytes", "pinned memory in use", &H::active_bytes},
    {"num_host_alloc", "count", "driver calls that pinned memory", &H::num_host_alloc},
    {"num_host_free", "count", "driver calls that unpinned memory", &H::num_host_free},
    {"host_alloc_time", "us", "time spent in the calls of `num_host_alloc`", &H::host_alloc_time},
    {"host_free_time", "us", "time spent in the calls of `num_host_free`", &H::host_free_time},
};

void Append(const std::string& key, const Stat& stat, FlatStats* flat) {
  flat->emplace_back(key + ".current", stat.current);
  flat->emplace_back(key + ".peak", stat.peak);
  flat->emplace_back(key + ".allocated", stat.allocated);
  flat->emplace_back(key + ".freed", stat.freed);
}
void Append(const std::string& key, const PoolStat& stat, FlatStats* flat) {
  Append(key + ".all", stat.all, flat);
  Append(key + ".small_pool", stat.small_pool, flat);
  Append(key + ".large_pool", stat.large_pool, flat);
}
void Append(const std::string& key, const TimeStat& stat, FlatStats* flat) {
  flat->emplace_back(key + ".total", stat.total);
  flat->emplace_back(key + ".max", stat.max);
  flat->emplace_back(key + ".min", stat.min);
  flat->emplace_back(key + ".count", stat.count);
  flat->emplace_back(key + ".avg", stat.avg());
}
void Append(const std::string& key, std::int64_t value, FlatStats* flat) {
  flat->emplace_back(key, value);
}
void Append(const std::string& key, const TagBytes& tags, FlatStats* flat) {
  for (const auto& [tag, bytes] : tags) {
    flat->emplace_back(key + "." + (tag.empty() ? "(none)" : tag), bytes);
  }
}

template <class S, std::size_t n>
FlatStats FlattenRows(const Row<S> (&rows)[n], const S& stats) {
  FlatStats flat;
  for (const Row<S>& row : rows) {
    std::visit([&](auto field) { Append(std::string(row.name), stats.*field, &flat); }, row.field);
  }
  return flat;
}

template <class S, std::size_t n>
std::vector<StatDescription> DescribeRows(const Row<S> (&rows)[n]) {
  std::vector<StatDescription> descriptions;
  for (const Row<S>& row : rows) {
    const std::string_view parts = std::visit(
        Overloaded{
            [](PoolStat S::*) -> std::string_view {
              return ".{all,small_pool,large_pool}.{current,peak,allocated,freed}";
            },
            [](Stat S::*) -> std::string_view { return ".{current,peak,allocated,freed}"; },
            [](TimeStat S::*) -> std::string_view { return ".{total,max,min,count,avg}"; },
            [](std::int64_t S::*) -> std::string_view { return ""; },
            [](TagBytes S::*) -> std::string_view { return ".<tag>"; },
        },
        row.field);
    descriptions.push_back({std::string(row.name) + std::string(parts), row.unit, row.meaning});
  }
  return descriptions;
}

template <class S, std::size_t n>
void ResetPeakRows(const Row<S> (&rows)[n], S* stats) {
  for (const Row<S>& row : rows) {
    std::visit(Overloaded{[&](PoolStat S::* field) {
                            (stats->*field).all.ResetPeak();
                            (stats->*field).small_pool.ResetPeak();
                            (stats->*field).large_pool.ResetPeak();
                          },
                          [&](Stat S::* field) { (stats->*field).ResetPeak(); },
                          [&](TimeStat S::* field) { (stats->*field).ResetPeak(); }, [](auto) {}},
               row.field);
  }
}

template <class S, std::size_t n>
void ResetAccumulatedRows(const Row<S> (&rows)[n], S* stats) {
  for (const Row<S>& row : rows) {
    std::visit(Overloaded{[&](PoolStat S::* field) {
                            (stats->*field).all.ResetAccumulated();
                            (stats->*field).small_pool.ResetAccumulated();
                            (stats->*field).large_pool.ResetAccumulated();
                          },
                          [&](Stat S::* field) { (stats->*field).ResetAccumulated(); },
                          [&](TimeStat S::* field) { (stats->*field).ResetAccumulated(); },
                          [&](std::int64_t S::* field) {
                            if (!row.is_setting) stats->*field = 0;
                          },
                          [](TagBytes S::*) {}},
               row.field);
  }
}

template <class S, std::size_t n>
void MergeRows(const Row<S> (&rows)[n], S* stats, const S& other) {
  for (const Row<S>& row : rows) {
    std::visit(Overloaded{[&](std::int64_t S::* field) {
                            if (!row.is_setting) {
                              stats->*field += other.*field;
                            } else if (static_cast<std::uint64_t>(other.*field) >
                                       static_cast<std::uint64_t>(stats->*field)) {
                              stats->*field = other.*field;  // unsigned: -1 is the largest
                            }
                          },
                          [&](TagBytes S::* field) {
                            for (const auto& [tag, bytes] : other.*field) {
                              (stats->*field)[tag] += bytes;
                            }
                          },
                          [&](auto field) { stats->*field += other.*field; }},
               row.field);
  }
}

}  // namespace

Stat& Stat::operator+=(const Stat& other) {
  current += other.current;
  peak += other.peak;
  allocated += other.allocated;
  freed += other.freed;
  return *this;
}

PoolStat& PoolStat::operator+=(const PoolStat& other) {
  all += other.all;
  small_pool += other.small_pool;
  large_pool += other.large_pool;
  return *this;
}

void TimeStat::Add(std::int64_t microseconds) {
  *this += TimeStat{microseconds, microseconds, microseconds, 1, true};
}

void TimeStat::ResetPeak() {
  max = min = 0;
  has_extremes = false;
}

void TimeStat::ResetAccumulated() { total = count = 0; }

TimeStat& TimeStat::operator+=(const TimeStat& other) {
  total += other.total;
  count += other.count;
  if (!other.has_extremes) return *this;
  max = has_extremes ? std::max(max, other.max) : other.max;
  min = has_extremes ? std::min(min, other.min) : other.min;
  has_extremes = true;
  return *this;
}

void MemoryStats::ResetPeak() { ResetPeakRows(kMemoryRows, this); }
void MemoryStats::ResetAccumulated() { ResetAccumulatedRows(kMemoryRows, this); }
MemoryStats& MemoryStats::operator+=(const MemoryStats& other) {
  MergeRows(kMemoryRows, this, other);
  return *this;
}
FlatStats MemoryStats::Flatten() const { return FlattenRows(kMemoryRows, *this); }
std::vector<StatDescription> MemoryStats::Describe() { return DescribeRows(kMemoryRows); }

void HostMemoryStats::ResetPeak() { ResetPeakRows(kHostRows, this); }
void HostMemoryStats::ResetAccumulated() { ResetAccumulatedRows(kHostRows, this); }
HostMemoryStats& HostMemoryStats::operator+=(const HostMemoryStats& other) {
  MergeRows(kHostRows, this, other);
  return *this;
}
FlatStats HostMemoryStats::Flatten() const { return FlattenRows(kHostRows, *this); }
std::vector<StatDescription> HostMemoryStats::Describe() { return DescribeRows(kHostRows); }

}  // namespace keel::telemetry
