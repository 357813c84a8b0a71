#include "keel/trace/summary.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "keel/trace/snapshot_file.h"
#include "trace/events_test.h"
#include "trace/files_test.h"

namespace keel::trace {
namespace {

DeviceSummary SummaryOf(const Snapshot& snapshot) {
  const std::vector<DeviceSummary> summaries = Summarize(snapshot);
  EXPECT_EQ(summaries.size(), 1u);
  return summaries.empty() ? DeviceSummary{} : summaries[0];
}

TEST(SummaryTest, CountsAndPeaks) {
  Snapshot snapshot;
  snapshot.devices = {{
      At(Action::kSegmentAlloc, 0, 1000, 10),
      At(Action::kAlloc, 0, 100, 11, 1),
      At(Action::kAlloc, 100, 200, 12, 2),
      At(Action::kFreeRequested, 0, 100, 13),
      At(Action::kAlloc, 300, 300, 14, 1),  // the peak: the free is not completed
      At(Action::kFreeCompleted, 0, 100, 15),
      At(Action::kOutOfMemory, 5, 5000, 16),
      At(Action::kSegmentMap, 1000, 500, 17),
      At(Action::kSegmentUnmap, 1000, 500, 18),
      At(Action::kSnapshot, 0, 0, 30),
  }};
  snapshot.segments = {{.total_size = 1000}};
  const DeviceSummary summary = SummaryOf(snapshot);
  EXPECT_EQ(summary.events, 10u);
  EXPECT_EQ(summary.allocs, 3u);
  EXPECT_EQ(summary.frees, 1u);
  EXPECT_EQ(summary.out_of_memory, 1u);
  EXPECT_EQ(summary.streams, 2u);
  EXPECT_EQ(summary.duration_us, 20);
  EXPECT_EQ(summary.peak_requested, Bytes(600));
  EXPECT_EQ(summary.requested_at_start, Bytes(0));
  EXPECT_EQ(summary.requested_at_end, Bytes(500));
  EXPECT_EQ(summary.live_at_end, 2u);
  EXPECT_EQ(summary.peak_reserved, Bytes(1500));
  EXPECT_EQ(summary.reserved_at_start, Bytes(0));
  EXPECT_EQ(summary.reserved_at_end, Bytes(1000));
}

// A ring of events forgets the oldest.
TEST(SummaryTest, ARecordingMayBeginInTheMiddle) {
  Snapshot snapshot;
  snapshot.devices = {{
      At(Action::kFreeRequested, 0, 100),
      At(Action::kAlloc, 200, 50),
      At(Action::kFreeCompleted, 0, 100),
      At(Action::kSegmentFree, 5000, 700),
  }};
  snapshot.segments = {
      {.address = 200,
       .total_size = 1000,
       .blocks = {
           {.address = 200, .size = 512, .requested_size = 50, .state = BlockState::kAllocated},
           {.address = 712, .size = 400, .requested_size = 300, .state = BlockState::kPendingFree},
           {.address = 1112, .size = 88, .requested_size = 77}}}};
  const DeviceSummary summary = SummaryOf(snapshot);
  EXPECT_EQ(summary.requested_at_start, Bytes(400));
  EXPECT_EQ(summary.peak_requested, Bytes(450));
  EXPECT_EQ(summary.requested_at_end, Bytes(350));
  EXPECT_EQ(summary.live_at_end, 2u);
  EXPECT_EQ(summary.reserved_at_start, Bytes(1700));
  EXPECT_EQ(summary.peak_reserved, Bytes(1700));
  EXPECT_EQ(summary.reserved_at_end, Bytes(1000));
}

TEST(SummaryTest, WhatARecordingLeavesOutIsNotInvented) {
  Snapshot snapshot;
  EXPECT_TRUE(Summarize(snapshot).empty());
  // Events of segments, and no segments: the moment was not recorded.
  snapshot.devices = {{}, {At(Action::kSegmentAlloc, 0, 1000), At(Action::kSegmentAlloc, 0, 500)}};
  DeviceSummary summary = SummaryOf(snapshot);
  EXPECT_EQ(summary.device, 1);
  EXPECT_EQ(summary.peak_reserved, Bytes(1500));
  // The same address twice: the free between them was not recorded.
  snapshot.devices = {{At(Action::kAlloc, 64, 1000), At(Action::kAlloc, 64, 100)}};
  summary = SummaryOf(snapshot);
  EXPECT_EQ(summary.peak_requested, Bytes(1000));
  EXPECT_EQ(summary.requested_at_end, Bytes(100));
  EXPECT_EQ(summary.peak_reserved, Bytes(0));
}

TEST(SummaryTest, NumbersThatDoNotFitAreCut) {
  Snapshot snapshot;
  snapshot.devices = {{At(Action::kAlloc, 1, UINT64_MAX, INT64_MIN),
                       At(Action::kAlloc, 2, UINT64_MAX, INT64_MAX),
                       At(Action::kSegmentAlloc, 2, UINT64_MAX, 0)}};
  snapshot.segments = {{.total_size = UINT64_MAX}, {.total_size = UINT64_MAX}};
  const DeviceSummary summary = SummaryOf(snapshot);
  EXPECT_EQ(summary.peak_requested, Bytes(UINT64_MAX));
  EXPECT_EQ(summary.peak_reserved, Bytes(UINT64_MAX));
  EXPECT_EQ(summary.duration_us, INT64_MAX);
}

// As the allocator that was recorded counted it itself.
TEST(SummaryTest, ARealHistoryIsWhatItWas) {
  if (!kReadsXz) GTEST_SKIP() << "built without liblzma";
  const auto snapshot = ReadSnapshotFile(kSample);
  ASSERT_TRUE(snapshot.ok()) << snapshot.status().ToString();
  EXPECT_EQ(CheckSnapshot(*snapshot).ToString(), "OK");
  const DeviceSummary summary = SummaryOf(*snapshot);
  EXPECT_EQ(summary.events, 46485u);
  EXPECT_EQ(summary.allocs, 15448u);
  EXPECT_EQ(summary.frees, 15445u);
  EXPECT_EQ(summary.peak_requested, Bytes(7810783248));
  EXPECT_EQ(summary.peak_reserved, Bytes(11106516992));
  EXPECT_EQ(summary.reserved_at_start, Bytes(0));
  EXPECT_EQ(summary.requested_at_start, Bytes(0));
  EXPECT_EQ(summary.live_at_end, 3u);
  EXPECT_EQ(summary.streams, 1u);
  EXPECT_EQ(summary.out_of_memory, 0u);
  EXPECT_EQ(summary.duration_us, 1794705403967879 - 1794705400989082);
}

}  // namespace
}  // namespace keel::trace
