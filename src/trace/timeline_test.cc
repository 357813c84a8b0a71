#include "keel/trace/timeline.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "keel/trace/snapshot_file.h"
#include "keel/trace/summary.h"
#include "trace/events_test.h"
#include "trace/files_test.h"

namespace keel::trace {
namespace {

Timeline TimelineOf(const Snapshot& snapshot, int device = 0) {
  auto timeline = BuildTimeline(snapshot, device);
  EXPECT_TRUE(timeline.ok()) << timeline.status().ToString();
  return timeline.ok() ? *std::move(timeline) : Timeline{};
}

std::vector<std::uint64_t> Requested(const Timeline& timeline) {
  std::vector<std::uint64_t> levels;
  for (const TimelinePoint& point : timeline.points) levels.push_back(point.requested);
  return levels;
}

std::vector<std::uint64_t> Reserved(const Timeline& timeline) {
  std::vector<std::uint64_t> levels;
  for (const TimelinePoint& point : timeline.points) levels.push_back(point.reserved);
  return levels;
}

TEST(TimelineTest, LivesAndLevels) {
  Snapshot snapshot;
  snapshot.devices = {{
      At(Action::kSegmentAlloc, 0, 1000, 10), At(Action::kAlloc, 0, 100, 11, 1),
      At(Action::kAlloc, 100, 200, 12, 2), At(Action::kFreeRequested, 0, 100, 13),
      At(Action::kAlloc, 300, 300, 14, 1),  // the peak: the free is not completed
      At(Action::kFreeCompleted, 0, 100, 15), At(Action::kSegmentMap, 1000, 500, 17),
      At(Action::kSegmentUnmap, 1000, 500, 16),  // a clock that went back
  }};
  snapshot.devices[0][2].tag = 7;
  snapshot.devices[0][2].stack = 9;
  snapshot.segments = {{.total_size = 1000}};
  const Timeline timeline = TimelineOf(snapshot);
  const std::vector<Allocation> lives = {
      {.address = 0, .size = 100, .stream = 1, .start = 2, .free_requested = 4, .end = 6},
      {.address = 100, .size = 200, .stream = 2, .start = 3, .stack = 9, .tag = 7},
      {.address = 300, .size = 300, .stream = 1, .start = 5}};
  EXPECT_EQ(timeline.allocations, lives);
  EXPECT_EQ(Requested(timeline),
            (std::vector<std::uint64_t>{0, 0, 100, 300, 300, 600, 500, 500, 500}));
  EXPECT_EQ(Reserved(timeline),
            (std::vector<std::uint64_t>{0, 1000, 1000, 1000, 1000, 1000, 1000, 1500, 1000}));
  EXPECT_EQ(timeline.peak, 5u);
  EXPECT_EQ(timeline.peak_reserved, 7u);
  EXPECT_EQ(timeline.points[0].time_us, 10);
  EXPECT_EQ(timeline.points[5].time_us, 14);
  EXPECT_EQ(timeline.points[8].time_us, 17);
  EXPECT_EQ(timeline.last(), 8u);
  EXPECT_FALSE(timeline.allocations[0].live_at(1));
  EXPECT_TRUE(timeline.allocations[0].live_at(2));
  EXPECT_TRUE(timeline.allocations[0].live_at(5));
  EXPECT_FALSE(timeline.allocations[0].live_at(6));
}

// A ring of events forgets the oldest.
TEST(TimelineTest, ARecordingMayBeginInTheMiddle) {
  Snapshot snapshot;
  snapshot.devices = {{
      At(Action::kFreeRequested, 0, 100),
      At(Action::kAlloc, 200, 50),
      At(Action::kFreeCompleted, 0, 100),
      At(Action::kFreeRequested, 712, 300),
      At(Action::kSegmentFree, 5000, 700),
  }};
  snapshot.segments = {
      {.address = 200,
       .total_size = 1000,
       .stream = 3,
       .blocks = {
           {.address = 200, .size = 512, .requested_size = 50, .state = BlockState::kAllocated},
           {.address = 712, .size = 400, .requested_size = 300, .state = BlockState::kPendingFree},
           {.address = 1112, .size = 88, .requested_size = 77}}}};
  const Timeline timeline = TimelineOf(snapshot);
  const std::vector<Allocation> lives = {
      {.address = 0, .size = 100, .free_requested = 1, .end = 3},
      {.address = 712, .size = 300, .stream = 3, .free_requested = 4},
      {.address = 200, .size = 50, .start = 2}};
  EXPECT_EQ(timeline.allocations, lives);
  EXPECT_EQ(Requested(timeline), (std::vector<std::uint64_t>{400, 400, 450, 350, 350, 350}));
  EXPECT_EQ(Reserved(timeline), (std::vector<std::uint64_t>{1700, 1700, 1700, 1700, 1700, 1000}));
  EXPECT_EQ(timeline.peak, 2u);
  EXPECT_EQ(timeline.peak_reserved, 0u);
}

TEST(TimelineTest, WhatARecordingLeavesOut) {
  Snapshot snapshot;
  EXPECT_EQ(BuildTimeline(snapshot, 0).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(BuildTimeline(snapshot, -1).status().code(), StatusCode::kInvalidArgument);
  // A log that knows no second moment of a free.
  snapshot.devices = {{At(Action::kAlloc, 64, 10), At(Action::kFreeRequested, 64, 10)}};
  EXPECT_EQ(TimelineOf(snapshot).allocations[0].end, 2u);
  // The same address twice: the free between them was not recorded.
  snapshot.devices = {{At(Action::kAlloc, 64, 1000), At(Action::kAlloc, 64, 100)}};
  EXPECT_EQ(Requested(TimelineOf(snapshot)), (std::vector<std::uint64_t>{0, 1000, 100}));
  // A picture of the moment, of another device.
  snapshot.devices.clear();
  snapshot.segments = {
      {.device = 3,
       .total_size = 512,
       .blocks = {{.size = 512, .requested_size = 500, .state = BlockState::kAllocated}}}};
  const Timeline timeline = TimelineOf(snapshot, 3);
  EXPECT_EQ(timeline.device, 3);
  EXPECT_EQ(timeline.last(), 0u);
  EXPECT_EQ(timeline.points, (std::vector<TimelinePoint>{{.requested = 500, .reserved = 512}}));
  EXPECT_EQ(BuildTimeline(snapshot, 0).status().code(), StatusCode::kInvalidArgument);
}

TEST(TimelineTest, OfEqualPeaksTheFirstCounts) {
  Snapshot snapshot;
  snapshot.devices = {{At(Action::kSegmentAlloc, 0, 100), At(Action::kAlloc, 0, 10),
                       At(Action::kFreeRequested, 0, 10), At(Action::kAlloc, 0, 10),
                       At(Action::kSegmentFree, 0, 100), At(Action::kSegmentAlloc, 0, 100)}};
  snapshot.segments = {{.total_size = 100}};
  const Timeline timeline = TimelineOf(snapshot);
  EXPECT_EQ(timeline.peak, 2u);
  EXPECT_EQ(timeline.peak_reserved, 1u);
}

TEST(TimelineTest, SegmentsThatAreLeftOutOrOfOtherDevicesDoNotCount) {
  Snapshot snapshot;
  snapshot.devices = {{At(Action::kSegmentAlloc, 0, 1000), At(Action::kSegmentFree, 0, 300)}};
  EXPECT_EQ(Reserved(TimelineOf(snapshot)), (std::vector<std::uint64_t>{0, 1000, 700}));
  snapshot.segments = {
      {.total_size = 700},
      {.device = 1,
       .total_size = 50,
       .blocks = {{.size = 50, .requested_size = 50, .state = BlockState::kAllocated}}}};
  EXPECT_EQ(Reserved(TimelineOf(snapshot)), (std::vector<std::uint64_t>{0, 1000, 700}));
  EXPECT_TRUE(TimelineOf(snapshot).allocations.empty());
}

TEST(TimelineTest, NumbersThatDoNotFitAreCut) {
  Snapshot snapshot;
  snapshot.devices = {{At(Action::kAlloc, 1, UINT64_MAX), At(Action::kAlloc, 2, UINT64_MAX),
                       At(Action::kFreeRequested, 1, 0), At(Action::kSegmentAlloc, 2, UINT64_MAX)}};
  snapshot.segments = {{.total_size = UINT64_MAX}, {.total_size = UINT64_MAX}};
  EXPECT_EQ(Requested(TimelineOf(snapshot)),
            (std::vector<std::uint64_t>{0, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}));
}

TEST(TimelineTest, ARealHistoryAgreesWithItsSummary) {
  if (!kReadsXz) GTEST_SKIP() << "built without liblzma";
  const auto snapshot = ReadSnapshotFile(kSample);
  ASSERT_TRUE(snapshot.ok()) << snapshot.status().ToString();
  const DeviceSummary summary = Summarize(*snapshot).at(0);
  const Timeline timeline = TimelineOf(*snapshot);
  EXPECT_EQ(timeline.allocations.size(), summary.allocs);
  EXPECT_EQ(timeline.points.size(), summary.events + 1);
  EXPECT_EQ(Bytes(timeline.points[timeline.peak].requested), summary.peak_requested);
  EXPECT_EQ(Bytes(timeline.points[timeline.peak_reserved].reserved), summary.peak_reserved);
  EXPECT_EQ(Bytes(timeline.points.back().requested), summary.requested_at_end);
  EXPECT_EQ(timeline.points.back().time_us - timeline.points.front().time_us, summary.duration_us);
}

}  // namespace
}  // namespace keel::trace
