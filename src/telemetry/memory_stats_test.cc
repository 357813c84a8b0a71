#include "keel/telemetry/memory_stats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/docs_table_test.h"

namespace keel::telemetry {
namespace {

using ::testing::ElementsAreArray;

const std::vector<std::string> kStatParts = {"current", "peak", "allocated", "freed"};

std::vector<std::string> Keys(const FlatStats& flat) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : flat) keys.push_back(key);
  return keys;
}

std::int64_t Value(const FlatStats& flat, std::string_view wanted) {
  for (const auto& [key, value] : flat) {
    if (key == wanted) return value;
  }
  ADD_FAILURE() << "no key " << wanted;
  return -999;
}

// "a.{b,c}.{d,e}" is a.b.d, a.b.e, a.c.d, a.c.e.
std::vector<std::string> Expand(const std::string& key) {
  const std::size_t open = key.find('{');
  if (open == std::string::npos) return {key};
  const std::size_t close = key.find('}', open);
  std::vector<std::string> all;
  std::size_t begin = open + 1;
  while (begin <= close) {
    const std::size_t end = std::min(key.find(',', begin), close);
    const std::string one =
        key.substr(0, open) + key.substr(begin, end - begin) + key.substr(close + 1);
    for (const std::string& expanded : Expand(one)) all.push_back(expanded);
    begin = end + 1;
  }
  return all;
}

std::vector<std::string> Expand(const std::vector<StatDescription>& descriptions) {
  std::vector<std::string> keys;
  for (const StatDescription& description : descriptions) {
    for (const std::string& key : Expand(description.key)) keys.push_back(key);
  }
  return keys;
}

TEST(StatTest, PeakStaysUntilReset) {
  Stat stat;
  stat.Increase(100);
  stat.Increase(50);
  stat.Decrease(120);
  stat.Increase(10);
  EXPECT_EQ(stat, (Stat{.current = 40, .peak = 150, .allocated = 160, .freed = 120}));
  stat.ResetPeak();
  EXPECT_EQ(stat.peak, 40);
  stat.ResetAccumulated();
  EXPECT_EQ(stat, (Stat{.current = 40, .peak = 40, .allocated = 0, .freed = 0}));
  stat.Decrease(40);
  EXPECT_EQ(stat, (Stat{.current = 0, .peak = 40, .allocated = 0, .freed = 40}));
}

TEST(StatTest, ThePeakOfAllIsNotTheSumOfThePools) {
  PoolStat stat;
  stat.Increase(Pool::kSmall, 10);
  stat.Decrease(Pool::kSmall, 10);
  stat.Increase(Pool::kLarge, 30);
  EXPECT_EQ(stat.small_pool.peak, 10);
  EXPECT_EQ(stat.large_pool.peak, 30);
  EXPECT_EQ(stat.all, (Stat{.current = 30, .peak = 30, .allocated = 40, .freed = 10}));
}

TEST(StatTest, TimesKeepTheirExtremes) {
  TimeStat time;
  EXPECT_EQ(time.avg(), 0);
  time.Add(7);
  time.Add(3);
  time.Add(8);
  EXPECT_EQ(time, (TimeStat{18, 8, 3, 3, true}));
  EXPECT_EQ(time.avg(), 6);
  // The smallest is of what follows, not zero for ever.
  time.ResetPeak();
  time.Add(5);
  EXPECT_EQ(time, (TimeStat{23, 5, 5, 4, true}));
  TimeStat sum;
  sum += TimeStat();
  EXPECT_FALSE(sum.has_extremes);
  sum += time;
  EXPECT_EQ(sum, time);
}

TEST(MemoryStatsTest, KeysAreThoseOfPyTorchThenKeel) {
  std::vector<std::string> expected;
  for (const char* name :
       {"allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes",
        "active_bytes", "inactive_split_bytes", "requested_bytes"}) {
    for (const char* pool : {"all", "small_pool", "large_pool"}) {
      for (const std::string& part : kStatParts) {
        expected.push_back(std::string(name) + "." + pool + "." + part);
      }
    }
  }
  for (const char* name : {"oversize_allocations", "oversize_segments"}) {
    for (const std::string& part : kStatParts) expected.push_back(std::string(name) + "." + part);
  }
  for (const char* name : {"num_alloc_retries", "num_ooms", "num_sync_all_streams",
                           "num_device_alloc", "num_device_free", "max_split_size"}) {
    expected.emplace_back(name);
  }
  std::vector<std::string> keys = Keys(MemoryStats().Flatten());
  ASSERT_GT(keys.size(), expected.size());
  for (std::size_t i = expected.size(); i < keys.size(); ++i) {
    EXPECT_TRUE(keys[i].starts_with("keel.")) << keys[i];
  }
  keys.resize(expected.size());
  EXPECT_THAT(keys, ElementsAreArray(expected));
}

TEST(MemoryStatsTest, HostKeysAreThoseOfPyTorch) {
  std::vector<std::string> expected;
  for (const char* name : {"allocations", "active_requests", "allocated_bytes", "active_bytes"}) {
    for (const std::string& part : kStatParts) expected.push_back(std::string(name) + "." + part);
  }
  expected.emplace_back("num_host_alloc");
  expected.emplace_back("num_host_free");
  for (const char* name : {"host_alloc_time", "host_free_time"}) {
    for (const char* part : {"total", "max", "min", "count", "avg"}) {
      expected.push_back(std::string(name) + "." + part);
    }
  }
  EXPECT_THAT(Keys(HostMemoryStats().Flatten()), ElementsAreArray(expected));
}

// What a key says is what the field of that name holds: each gets a value of its own.
TEST(MemoryStatsTest, EachKeyHasItsOwnField) {
  MemoryStats stats;
  stats.allocated_bytes.Increase(Pool::kLarge, 100);
  stats.allocated_bytes.Decrease(Pool::kLarge, 1);
  stats.requested_bytes.Increase(Pool::kSmall, 7);
  stats.oversize_segments.Increase(3);
  stats.num_ooms = 11;
  stats.pages_moved = 12;
  stats.mapped_bytes.Increase(13);
  stats.tag_bytes["weights"] = 14;
  stats.tag_bytes[""] = 15;
  const FlatStats flat = stats.Flatten();
  EXPECT_EQ(Value(flat, "allocated_bytes.all.current"), 99);
  EXPECT_EQ(Value(flat, "allocated_bytes.all.peak"), 100);
  EXPECT_EQ(Value(flat, "allocated_bytes.large_pool.allocated"), 100);
  EXPECT_EQ(Value(flat, "allocated_bytes.large_pool.freed"), 1);
  EXPECT_EQ(Value(flat, "allocated_bytes.small_pool.current"), 0);
  EXPECT_EQ(Value(flat, "requested_bytes.small_pool.peak"), 7);
  EXPECT_EQ(Value(flat, "oversize_segments.current"), 3);
  EXPECT_EQ(Value(flat, "num_ooms"), 11);
  EXPECT_EQ(Value(flat, "max_split_size"), -1);
  EXPECT_EQ(Value(flat, "keel.pages_moved"), 12);
  EXPECT_EQ(Value(flat, "keel.mapped_bytes.current"), 13);
  EXPECT_EQ(Value(flat, "keel.tag_bytes.weights"), 14);
  EXPECT_EQ(Value(flat, "keel.tag_bytes.(none)"), 15);
  const std::vector<std::string> keys = Keys(flat);
  EXPECT_EQ(std::set<std::string>(keys.begin(), keys.end()).size(), keys.size());
}

// A struct that grows by a field must grow by a row: a statistic that nobody sees is none (A16).
TEST(MemoryStatsTest, EveryFieldHasARow) {
  std::size_t stats_bytes = 0;
  for (const auto& [key, value] : MemoryStats().Flatten()) stats_bytes += sizeof(value);
  EXPECT_EQ(sizeof(MemoryStats), stats_bytes + sizeof(decltype(MemoryStats::tag_bytes)));
  std::size_t host_bytes = 0;
  for (const auto& [key, value] : HostMemoryStats().Flatten()) host_bytes += sizeof(value);
  // avg is computed, and has_extremes takes its place.
  EXPECT_EQ(sizeof(HostMemoryStats), host_bytes);
}

TEST(MemoryStatsTest, MergingAddsEverything) {
  MemoryStats one;
  one.active.Increase(Pool::kSmall, 5);
  one.num_device_alloc = 2;
  one.max_split_size = 100;
  one.tag_bytes["a"] = 1;
  MemoryStats two;
  two.active.Increase(Pool::kSmall, 6);
  two.active.Decrease(Pool::kSmall, 6);
  two.num_device_alloc = 3;
  two.max_split_size = 50;
  two.tag_bytes["a"] = 10;
  two.tag_bytes["b"] = 20;
  one += two;
  EXPECT_EQ(one.active.all, (Stat{.current = 5, .peak = 11, .allocated = 11, .freed = 6}));
  EXPECT_EQ(one.num_device_alloc, 5);
  EXPECT_EQ(one.max_split_size, 100);
  EXPECT_EQ(one.tag_bytes["a"], 11);
  EXPECT_EQ(one.tag_bytes["b"], 20);
  one += MemoryStats();
  EXPECT_EQ(one.max_split_size, -1);
}

TEST(MemoryStatsTest, ResetsLeaveWhatIsHeld) {
  MemoryStats stats;
  stats.reserved_bytes.Increase(Pool::kLarge, 100);
  stats.reserved_bytes.Decrease(Pool::kLarge, 60);
  stats.pending_frees.Increase(4);
  stats.pending_frees.Decrease(3);
  stats.num_ooms = 5;
  stats.front_cache_hits = 6;
  stats.max_split_size = 7;
  stats.tag_bytes["a"] = 8;
  stats.ResetPeak();
  EXPECT_EQ(stats.reserved_bytes.all.peak, 40);
  EXPECT_EQ(stats.reserved_bytes.large_pool.peak, 40);
  EXPECT_EQ(stats.pending_frees.peak, 1);
  EXPECT_EQ(stats.num_ooms, 5);
  stats.ResetAccumulated();
  EXPECT_EQ(stats.reserved_bytes.all,
            (Stat{.current = 40, .peak = 40, .allocated = 0, .freed = 0}));
  EXPECT_EQ(stats.pending_frees, (Stat{.current = 1, .peak = 1, .allocated = 0, .freed = 0}));
  EXPECT_EQ(stats.num_ooms, 0);
  EXPECT_EQ(stats.front_cache_hits, 0);
  EXPECT_EQ(stats.max_split_size, 7);
  EXPECT_EQ(stats.tag_bytes["a"], 8);

  HostMemoryStats host;
  host.active_bytes.Increase(9);
  host.host_alloc_time.Add(9);
  host.num_host_alloc = 1;
  host.ResetPeak();
  host.ResetAccumulated();
  EXPECT_EQ(host.active_bytes.current, 9);
  EXPECT_EQ(host.host_alloc_time, TimeStat());
  EXPECT_EQ(host.num_host_alloc, 0);
}

TEST(MemoryStatsTest, DescriptionsExpandToTheKeys) {
  MemoryStats stats;
  stats.tag_bytes["<tag>"] = 1;
  EXPECT_THAT(Expand(MemoryStats::Describe()), ElementsAreArray(Keys(stats.Flatten())));
  EXPECT_THAT(Expand(HostMemoryStats::Describe()),
              ElementsAreArray(Keys(HostMemoryStats().Flatten())));
}

std::vector<std::string> Rows(const std::vector<StatDescription>& descriptions) {
  std::vector<std::string> rows;
  rows.reserve(descriptions.size());
  for (const StatDescription& stat : descriptions) {
    rows.push_back("| `" + stat.key + "` | " + std::string(stat.unit) + " | " +
                   std::string(stat.meaning) + " |");
  }
  return rows;
}

TEST(MemoryStatsTest, ThePageListsEveryStatisticAndNoOther) {
  const std::string page = KEEL_DOCS "/stats.md";
  const std::vector<std::string> device = Rows(MemoryStats::Describe());
  const std::vector<std::string> host = Rows(HostMemoryStats::Describe());
  EXPECT_EQ(DocsTableRows(page, "Device memory"), device) << JoinRows(device);
  EXPECT_EQ(DocsTableRows(page, "Host memory"), host) << JoinRows(host);
}

}  // namespace
}  // namespace keel::telemetry
