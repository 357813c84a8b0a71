// Every key that KEEL_ALLOC_CONF accepts does what it says: the same requests, with the key and
// without, and what must differ, in figures.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "memory/device_allocator_test.h"

namespace keel::memory {
namespace {

constexpr std::int64_t kKiB = 1 << 10;
constexpr std::int64_t kMiB = 1 << 20;

// What requests came to: sizes, calls of the driver, statistics.
using Figures = std::vector<std::int64_t>;

std::int64_t In(Bytes bytes, std::int64_t unit) {
  return static_cast<std::int64_t>(bytes.count()) / unit;
}

class KeyEffectsTest : public DeviceAllocatorFixture {
 protected:
  using Requests = std::function<Figures(DeviceAllocator&)>;
  struct Case {
    std::string key;
    std::string value;
    std::string with;  // other keys, for both
    Requests requests;
    Figures without_key;
    Figures with_key;
  };

  std::vector<Case> Cases();
  Figures Measure(const std::string& text, const Requests& requests) {
    log_ = std::make_unique<telemetry::EventLog>();
    now_ns_ = 0;
    const auto allocator = Make(Need(AllocatorConfig::Parse(text)), log_.get());
    device_->ResetCounts();
    Figures figures = requests(*allocator);
    EXPECT_EQ(allocator->Check(), "") << text;
    return figures;
  }
  std::int64_t Calls(Primitive primitive) const {
    return static_cast<std::int64_t>(device_->calls(primitive));
  }
  DeviceAddress Take(DeviceAllocator& allocator, Bytes size) {
    return Need(allocator.Allocate(size, s1()));
  }
  bool CanTake(DeviceAllocator& allocator, Bytes size) {
    const Result<DeviceAddress> block = allocator.Allocate(size, s1());
    if (!block.ok()) return false;
    EXPECT_TRUE(IsOk(allocator.Free(*block)));
    return true;
  }
  void Pairs(DeviceAllocator& allocator, Bytes size, int count) {
    for (int i = 0; i < count; ++i) EXPECT_TRUE(IsOk(allocator.Free(Take(allocator, size))));
  }
  // How large the blocks for these requests are.
  Requests SizesOf(std::vector<Bytes> sizes) {
    return [this, sizes = std::move(sizes)](DeviceAllocator& allocator) {
      Figures figures;
      for (const Bytes size : sizes) {
        figures.push_back(In(Need(allocator.Find(Take(allocator, size))).size, 1));
      }
      return figures;
    };
  }

  std::unique_ptr<telemetry::EventLog> log_;
};

std::vector<KeyEffectsTest::Case> KeyEffectsTest::Cases() {
  const Requests one_of_16 = [this](DeviceAllocator& allocator) {
    Take(allocator, 16_MiB);
    return Figures{Calls(Primitive::kCreateMemory), Calls(Primitive::kMap)};
  };
  return {
      {.key = "backend",
       .value = "passthrough",
       .requests =
           [this](DeviceAllocator& allocator) {
             Pairs(allocator, 1_KiB, 3);
             return Figures{Calls(Primitive::kAllocatePlain), Calls(Primitive::kFreePlain)};
           },
       .without_key = {0, 0},
       .with_key = {3, 3}},
      {.key = "roundup_power2_divisions",
       .value = "4",
       .requests = SizesOf({600_KiB + 1_B, 5_MiB + 1_B, 17_MiB}),
       .without_key = {600 * kKiB + 512, 5 * kMiB + 512, 17 * kMiB},
       .with_key = {640 * kKiB, 6 * kMiB, 20 * kMiB}},
      {.key = "roundup_power2_divisions",
       .value = "[2:4,8:8,>:2]",
       .requests = SizesOf({600_KiB + 1_B, 2_MiB + 1_B, 5_MiB + 1_B, 9_MiB + 1_B, 17_MiB}),
       .without_key = {600 * kKiB + 512, 2 * kMiB + 512, 5 * kMiB + 512, 9 * kMiB + 512, 17 * kMiB},
       // The first holds for less as well; 4 MiB is not named, and not rounded.
       .with_key = {640 * kKiB, 2 * kMiB + 512 * kKiB, 5 * kMiB + 512, 10 * kMiB, 24 * kMiB}},
      {.key = "expandable_segments",
       .value = "false",
       .requests =
           [this](DeviceAllocator& allocator) {
             Take(allocator, 5_MiB);
             return Figures{Calls(Primitive::kMap), Calls(Primitive::kAllocatePlain),
                            In(allocator.reserved(), kMiB)};
           },
       .without_key = {1, 0, 6},
       .with_key = {0, 1, 20}},
      {.key = "large_segment_size_mb",
       .value = "40",
       .with = "expandable_segments:false",
       .requests =
           [this](DeviceAllocator& allocator) {
             for (int i = 0; i < 5; ++i) Take(allocator, 8_MiB);
             return Figures{Calls(Primitive::kAllocatePlain), In(allocator.reserved(), kMiB)};
           },
       .without_key = {3, 60},
       .with_key = {1, 40}},
      {.key = "per_process_memory_fraction",
       .value = "0.25",
       .requests =
           [this](DeviceAllocator& allocator) {
             return Figures{In(allocator.limit(), kMiB), CanTake(allocator, 258_MiB),
                            CanTake(allocator, 256_MiB)};
           },
       .without_key = {1024, 1, 1},
       .with_key = {256, 0, 1}},
      {.key = "limit",
       .value = "64MiB",
       .requests =
           [this](DeviceAllocator& allocator) {
             return Figures{In(allocator.limit(), kMiB), CanTake(allocator, 66_MiB),
                            CanTake(allocator, 64_MiB)};
           },
       .without_key = {1024, 1, 1},
       .with_key = {64, 0, 1}},
      {.key = "debug",
       .value = "guards",
       .requests =
           [this](DeviceAllocator& allocator) {
             Take(allocator, 1_KiB);
             const telemetry::MemoryStats stats = allocator.Stats();
             return Figures{stats.requested_bytes.all.current, stats.allocated_bytes.all.current};
           },
       .without_key = {1024, 1024},
       .with_key = {1024, 2048}},
      {.key = "history",
       .value = "3",
       .requests =
           [this](DeviceAllocator& allocator) {
             Pairs(allocator, 1_KiB, 2);
             return Figures{static_cast<std::int64_t>(log_->recorded()),
                            static_cast<std::int64_t>(log_->Read().size())};
           },
       .without_key = {0, 0},
       // A segment, and for each pair the request, its free, and that it is free.
       .with_key = {7, 3}},
      {.key = "history_stacks",
       .value = "true",
       .with = "history:100",
       .requests =
           [this](DeviceAllocator& allocator) {
             Take(allocator, 1_KiB);
             const std::vector<telemetry::MemoryEvent> events = log_->Read();
             return Figures{std::count_if(events.begin(), events.end(), [](const auto& event) {
               return event.stack != telemetry::StackId::kNone;
             })};
           },
       .without_key = {0},
       .with_key = {2}},
      {.key = "front_cache",
       .value = "0",
       .requests =
           [this](DeviceAllocator& allocator) {
             Pairs(allocator, 1_KiB, 10);
             const telemetry::MemoryStats stats = allocator.Stats();
             return Figures{stats.front_cache_hits, stats.front_cache_misses};
           },
       .without_key = {9, 1},
       .with_key = {0, 10}},
      {.key = "handle_size",
       .value = "4MiB",
       .requests = one_of_16,
       .without_key = {1, 1},
       .with_key = {4, 4}},
      {.key = "upkeep",
       .value = "0",
       .requests =
           [this, one_of_16](DeviceAllocator& allocator) {
             // Time has passed of which nothing went into mapping.
             now_ns_ = std::int64_t{100} * 1'000'000'000;
             return one_of_16(allocator);
           },
       .without_key = {8, 8},
       .with_key = {1, 1}},
  };
}

// Keys that need more than a line: the test that holds them to what they say.
const std::map<std::string, std::string>& TestedElsewhere() {
  static const std::map<std::string, std::string> tests = {
      {"max_split_size_mb", "MaxSplitTest.ARequestBelowTheMaximumTakesNoBlockOfItAndMore"},
      {"max_non_split_rounding_mb",
       "MaxSplitTest.AnOversizeBlockIsHandedOutWholeIfItWastesLessThanTheRounding"},
      {"garbage_collection_threshold", "GarbageCollectionTest.WhatWasNotUsedForLongestGoesFirst"},
      {"pinned_use_cuda_host_register",  // vendor-ok: PyTorch's key
       "HostKeysTest.PinnedUseHostRegister"},
      {"pinned_use_hip_host_register",  // vendor-ok: PyTorch's key
       "HostKeysTest.PinnedUseHostRegister"},
      {"pinned_num_register_threads", "HostKeysTest.PinnedNumRegisterThreads"},
      {"pinned_use_background_threads", "HostKeysTest.PinnedUseBackgroundThreads"},
      {"pinned_reserve_segment_size_mb", "HostKeysTest.PinnedReserveSegmentSize"},
      {"host_limit", "HostKeysTest.HostLimit"},
      {"host_cache", "HostKeysTest.HostCache"},
      {"host_background_reserve", "HostKeysTest.HostBackgroundReserve"},
      {"staging_threshold", "StagingKeysTest.StagingThreshold"},
      {"staging_chunk", "StagingKeysTest.StagingChunk"},
      {"staging_threads", "StagingKeysTest.StagingThreads"},
      {"staging_pin_limit", "StagingKeysTest.StagingPinLimit"},
      {"prefault", "HostKeysTest.Prefault"},
  };
  return tests;
}

// Whether this program has the test, with or without parameters.
bool IsTest(const std::string& name) {
  const auto& all = *::testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const ::testing::TestSuite& suite = *all.GetTestSuite(i);
    const std::string_view suite_name = suite.name();
    const std::string bare(suite_name.substr(suite_name.rfind('/') + 1));
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const std::string_view test = suite.GetTestInfo(j)->name();
      if (bare + "." + std::string(test.substr(0, test.find('/'))) == name) return true;
    }
  }
  return false;
}

TEST_F(KeyEffectsTest, AKeyChangesWhatItSays) {
  for (const Case& each : Cases()) {
    const std::string key = each.key + ":" + each.value;
    SCOPED_TRACE(key);
    EXPECT_EQ(Measure(each.with, each.requests), each.without_key) << "without it";
    const std::string text = each.with.empty() ? key : each.with + "," + key;
    EXPECT_EQ(Measure(text, each.requests), each.with_key) << "with it";
    EXPECT_NE(each.without_key, each.with_key);
  }
}

TEST_F(KeyEffectsTest, EveryKeyHasATest) {
  std::set<std::string> here;
  for (const Case& each : Cases()) here.insert(each.key);
  std::set<std::string> known;
  for (const AllocatorKey& key : DescribeAllocatorKeys()) {
    known.insert(key.name);
    if (!key.no_effect.empty()) continue;  // that they have none is a test of the configuration
    EXPECT_EQ(here.count(key.name) + TestedElsewhere().count(key.name), 1U)
        << key.name << " must be a case of AKeyChangesWhatItSays, or name its test";
  }
  for (const std::string& key : here) EXPECT_TRUE(known.contains(key)) << key << " is no key";
  for (const auto& [key, test] : TestedElsewhere()) {
    EXPECT_TRUE(known.contains(key)) << key << " is no key";
    EXPECT_TRUE(IsTest(test)) << "there is no " << test;
  }
}

}  // namespace
}  // namespace keel::memory
