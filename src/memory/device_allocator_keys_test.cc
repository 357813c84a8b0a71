// Keys of the configuration that decide which free memory is used, and which goes first.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "memory/device_allocator_test.h"

namespace keel::memory {
namespace {

using telemetry::MemoryStats;
using telemetry::Stat;
using ::testing::HasSubstr;

// --- max_split_size_mb, max_non_split_rounding_mb ----------------------------------------------

class MaxSplitTest : public DeviceAllocatorFixture {
 protected:
  static AllocatorConfig Config() {
    return {
        .max_split_size = 64_MiB, .max_non_split_rounding = 20_MiB, .expandable_segments = false};
  }
  DeviceAddress Cached(DeviceAllocator& allocator, Bytes size) {
    const DeviceAddress address = Need(allocator.Allocate(size, s1()));
    EXPECT_TRUE(IsOk(allocator.Free(address)));
    return address;
  }
  static std::vector<Bytes> Segments(DeviceAllocator& allocator) {
    std::vector<Bytes> sizes;
    for (const SegmentSnapshot& segment : allocator.Snapshot().segments) {
      sizes.push_back(segment.size);
    }
    std::sort(sizes.begin(), sizes.end());
    return sizes;
  }
};

TEST_F(MaxSplitTest, ARequestBelowTheMaximumTakesNoBlockOfItAndMore) {
  const auto allocator = Make(Config());
  Cached(*allocator, 64_MiB);
  Cached(*allocator, 100_MiB);
  const DeviceAddress small = Need(allocator->Allocate(62_MiB, s1()));
  EXPECT_EQ(Segments(*allocator), (std::vector{62_MiB, 64_MiB, 100_MiB}));
  ASSERT_TRUE(IsOk(allocator->Free(small)));
  // Blocks below it are split as ever.
  EXPECT_EQ(Need(allocator->Allocate(40_MiB, s1())), small);
  EXPECT_EQ(Need(allocator->Allocate(20_MiB, s1())), small + 40_MiB);
  EXPECT_EQ(allocator->Check(), "");
}

TEST_F(MaxSplitTest, AnOversizeBlockIsHandedOutWholeIfItWastesLessThanTheRounding) {
  const auto allocator = Make(Config());
  const DeviceAddress block = Cached(*allocator, 100_MiB);
  const DeviceAddress other = Need(allocator->Allocate(80_MiB, s1()));
  EXPECT_NE(other, block);
  EXPECT_EQ(Need(allocator->Allocate(80_MiB + 512_B, s1())), block);
  EXPECT_EQ(Need(allocator->Find(block)).size, 100_MiB);
  EXPECT_EQ(Need(allocator->Find(block)).requested, 80_MiB + 512_B);
  // A new one has no rest either.
  const DeviceAddress odd = Need(allocator->Allocate(70_MiB + 1_B, s1()));
  EXPECT_EQ(Need(allocator->Find(odd)).size, 72_MiB);
  EXPECT_EQ(Segments(*allocator), (std::vector{72_MiB, 80_MiB, 100_MiB}));
  EXPECT_EQ(allocator->Stats().inactive_split.all.current, 0);
  // An alignment is kept all the same.
  const DeviceAddress aligned = Need(allocator->Allocate(65_MiB, s1(), {.alignment = 4_MiB}));
  EXPECT_EQ(aligned.value() % (4_MiB).count(), 0U);
  EXPECT_EQ(allocator->Check(), "");
}

// Or a segment that requests share would be used only once.
TEST_F(MaxSplitTest, SharedSegmentsAreAlwaysSplit) {
  AllocatorConfig config = Config();
  config.max_split_size = 20_MiB;
  const auto allocator = Make(config);
  const DeviceAddress first = Cached(*allocator, 5_MiB);
  EXPECT_EQ(Need(allocator->Allocate(5_MiB, s1())), first);
  EXPECT_EQ(Need(allocator->Allocate(5_MiB, s1())), first + 5_MiB);
  EXPECT_EQ(Segments(*allocator), (std::vector{20_MiB}));
}

TEST_F(MaxSplitTest, WhatIsOversizeIsCounted) {
  const auto allocator = Make(Config());
  const DeviceAddress first = Need(allocator->Allocate(64_MiB, s1()));
  const DeviceAddress second = Need(allocator->Allocate(100_MiB, s1()));
  Need(allocator->Allocate(62_MiB, s1()));
  ASSERT_TRUE(IsOk(allocator->Free(first)));
  MemoryStats stats = allocator->Stats();
  EXPECT_EQ(stats.max_split_size, 64 << 20);
  EXPECT_EQ(stats.oversize_allocations,
            (Stat{.current = 1, .peak = 2, .allocated = 2, .freed = 1}));
  EXPECT_EQ(stats.oversize_segments, (Stat{.current = 2, .peak = 2, .allocated = 2, .freed = 0}));
  ASSERT_TRUE(IsOk(allocator->RecordUse(second, s2())));
  ASSERT_TRUE(IsOk(allocator->Free(second)));
  ASSERT_TRUE(IsOk(allocator->EmptyCache()));
  stats = allocator->Stats();
  EXPECT_EQ(stats.oversize_allocations,
            (Stat{.current = 0, .peak = 2, .allocated = 2, .freed = 2}));
  EXPECT_EQ(stats.oversize_segments, (Stat{.current = 0, .peak = 2, .allocated = 2, .freed = 2}));
  allocator->ResetPeakStats();
  allocator->ResetAccumulatedStats();
  EXPECT_EQ(allocator->Stats().oversize_allocations, Stat{});
}

TEST_F(MaxSplitTest, AtTheLimitJustEnoughOversizeBlocksGoFirst) {
  AllocatorConfig config = Config();
  config.limit = 300_MiB;
  const auto allocator = Make(config);
  for (const Bytes size : {40_MiB, 70_MiB, 160_MiB}) Cached(*allocator, size);
  // 30 MiB are left. The smallest that suffices goes.
  Need(allocator->Allocate(66_MiB, s2()));
  EXPECT_EQ(Segments(*allocator), (std::vector{40_MiB, 66_MiB, 160_MiB}));
  // None suffices: the largest go, and what is not oversize stays.
  allocator->SetLimit(280_MiB);
  EXPECT_TRUE(IsOk(allocator->Allocate(170_MiB, s2())));
  EXPECT_EQ(Segments(*allocator), (std::vector{40_MiB, 66_MiB, 170_MiB}));
  EXPECT_EQ(allocator->Stats().num_ooms, 0);
  EXPECT_EQ(allocator->Check(), "");
}

TEST_F(MaxSplitTest, ExpandableSegmentsSayThatItHasNoEffect) {
  AllocatorConfig config = Config();
  config.expandable_segments = true;
  SetLogLevel(LogLevel::kWarn);
  ::testing::internal::CaptureStderr();
  const auto allocator = Make(config);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("max_split_size_mb has no effect: expandable segments"));
  const DeviceAddress large = Cached(*allocator, 100_MiB);
  EXPECT_EQ(Need(allocator->Allocate(10_MiB, s1())), large);
  EXPECT_EQ(allocator->Stats().oversize_allocations.allocated, 1);
  EXPECT_EQ(allocator->Stats().oversize_segments.allocated, 0);
}

// --- Keys of the other kind of segments ----------------------------------------------------------

TEST_F(DeviceAllocatorFixture, KeysOfTheOtherKindOfSegmentsSayThatTheyHaveNoEffect) {
  const std::pair<const char*, const char*> cases[] = {
      {"max_split_size_mb:64", "max_split_size_mb has no effect: expandable segments"},
      {"max_non_split_rounding_mb:64", "max_non_split_rounding_mb has no effect: "},
      {"large_segment_size_mb:40", "large_segment_size_mb has no effect: expandable segments"},
      {"expandable_segments:false,handle_size:4MiB", "handle_size has no effect: plain segments"},
      {"expandable_segments:false,upkeep:0", "upkeep has no effect: plain segments"},
      {"expandable_segments:false,front_cache:1MiB", "front_cache is 256 KiB instead of 1 MiB: "},
  };
  SetLogLevel(LogLevel::kWarn);
  const auto said = [&](std::string_view text) {
    ::testing::internal::CaptureStderr();
    static_cast<void>(Make(Need(AllocatorConfig::Parse(text))));
    return ::testing::internal::GetCapturedStderr();
  };
  for (const auto& [text, warning] : cases) {
    const std::string log = said(text);
    EXPECT_THAT(log, HasSubstr(warning)) << text;
    EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
  }
  // And with their own kind, or as they are without being given, they say nothing.
  for (const char* const text :
       {"", "handle_size:4MiB,upkeep:0,front_cache:1MiB", "expandable_segments:false",
        "expandable_segments:false,max_split_size_mb:64,max_non_split_rounding_mb:64,"
        "large_segment_size_mb:40,front_cache:256KiB"}) {
    EXPECT_EQ(said(text), "") << text;
  }
  // Set up by hand, it does not follow the size of segments: nobody gave it all the same.
  AllocatorConfig by_hand;
  by_hand.large_segment_size = 40_MiB;
  ::testing::internal::CaptureStderr();
  static_cast<void>(Make(by_hand));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::Not(HasSubstr("max_non_split_rounding_mb")));
}

// --- garbage_collection_threshold --------------------------------------------------------------

class GarbageCollectionTest : public DeviceAllocatorTest {};

TEST_P(GarbageCollectionTest, WhatWasNotUsedForLongestGoesFirst) {
  AllocatorConfig config = Config();
  config.limit = 256_MiB;
  config.garbage_collection_threshold = 0.5;
  const auto allocator = Make(config);
  // With something live between them: holes that meet are one.
  const DeviceAddress young = Need(allocator->Allocate(32_MiB, s1()));
  const DeviceAddress live = Need(allocator->Allocate(16_MiB, s1()));
  const DeviceAddress old = Need(allocator->Allocate(32_MiB, s1()));
  const DeviceAddress end = Need(allocator->Allocate(16_MiB, s1()));
  const auto requests = [&](int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_TRUE(IsOk(allocator->Free(Need(allocator->Allocate(16_MiB, s2())))));
    }
  };
  ASSERT_TRUE(IsOk(allocator->Free(old)));
  requests(10);
  ASSERT_TRUE(IsOk(allocator->Free(young)));
  requests(2);
  EXPECT_EQ(allocator->reserved(), 112_MiB);
  Need(allocator->Allocate(16_MiB, s2()));  // below the threshold: nothing goes
  EXPECT_EQ(allocator->reserved(), 112_MiB);
  // So that all its work is known to be done.
  ASSERT_TRUE(IsOk(allocator->ForgetStream(s1())));
  const auto there = [&](DeviceAddress address) {
    if (expandable()) return inner_->GetAccess(address, inner_->id()).ok();
    const std::vector<SegmentSnapshot> segments = allocator->Snapshot().segments;
    return std::any_of(segments.begin(), segments.end(), [&](const SegmentSnapshot& segment) {
      return segment.address == address && segment.size == 32_MiB;
    });
  };
  ASSERT_TRUE(there(old) && there(young));
  Need(allocator->Allocate(24_MiB, s2()));
  EXPECT_FALSE(there(old));
  EXPECT_TRUE(there(young));
  EXPECT_LE(allocator->reserved(), 128_MiB);
  ASSERT_TRUE(IsOk(allocator->Free(live)));
  ASSERT_TRUE(IsOk(allocator->Free(end)));
  EXPECT_EQ(allocator->Check(), "");
}

KEEL_WITH_BOTH_SOURCES(GarbageCollectionTest);

}  // namespace
}  // namespace keel::memory
