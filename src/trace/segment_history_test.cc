#include "keel/trace/segment_history.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "keel/trace/snapshot_file.h"
#include "trace/events_test.h"
#include "trace/files_test.h"

namespace keel::trace {
namespace {

std::vector<Segment> Segments(const Snapshot& snapshot, Moment moment) {
  const auto timeline = BuildTimeline(snapshot, 0);
  EXPECT_TRUE(timeline.ok()) << timeline.status().ToString();
  if (!timeline.ok()) return {};
  return SegmentsAt(snapshot, *timeline, ReservedRegions(snapshot, 0), moment);
}

TEST(SegmentHistoryTest, RegionsHaveLives) {
  Snapshot snapshot;
  snapshot.devices = {{
      At(Action::kSegmentAlloc, 1000, 100, 0, 1), At(Action::kSegmentAlloc, 5000, 100, 0, 2),
      At(Action::kSegmentFree, 1000, 100, 0, 1), At(Action::kSegmentAlloc, 1000, 50, 0, 3),
      At(Action::kSegmentFree, 9000, 10, 0, 4),  // taken before the recording
  }};
  snapshot.segments = {{.address = 7000, .total_size = 20, .stream = 5}};  // so was this
  const std::vector<Region> regions = {
      {.address = 1000, .size = 100, .stream = 1, .start = 1, .end = 3},
      {.address = 1000, .size = 50, .stream = 3, .start = 4},
      {.address = 5000, .size = 100, .stream = 2, .start = 2},
      {.address = 7000, .size = 20, .stream = 5},
      {.address = 9000, .size = 10, .stream = 4, .end = 5}};
  EXPECT_EQ(ReservedRegions(snapshot, 0), regions);
  EXPECT_TRUE(ReservedRegions(Snapshot{}, 0).empty());
  EXPECT_TRUE(ReservedRegions(snapshot, 1).empty());
}

TEST(SegmentHistoryTest, PartsAreGivenBackInOtherPieces) {
  Snapshot snapshot;
  snapshot.devices = {{
      At(Action::kSegmentMap, 100, 20), At(Action::kSegmentMap, 120, 20),
      At(Action::kSegmentUnmap, 90, 35),   // 90 to 100 was there before
      At(Action::kSegmentUnmap, 130, 5),   // out of the middle
      At(Action::kSegmentAlloc, 125, 15),  // again, without a free
  }};
  const auto part = [](std::uint64_t address, std::uint64_t size, Moment start, Moment end) {
    return Region{
        .address = address, .size = size, .start = start, .end = end, .is_expandable = true};
  };
  const std::vector<Region> regions = {part(90, 10, 0, 3),
                                       part(100, 20, 1, 3),
                                       part(120, 5, 2, 3),
                                       part(125, 5, 2, 5),
                                       {.address = 125, .size = 15, .start = 5},
                                       part(130, 5, 2, 4),
                                       part(135, 5, 2, 5)};
  EXPECT_EQ(ReservedRegions(snapshot, 0), regions);
}

TEST(SegmentHistoryTest, BlocksAndHolesOfAMoment) {
  Snapshot snapshot;
  snapshot.devices = {{
      At(Action::kSegmentMap, 1000, 100),
      At(Action::kSegmentMap, 1100, 100),
      At(Action::kSegmentAlloc, 1200, 100),
      At(Action::kAlloc, 1050, 100),
      At(Action::kAlloc, 1200, 30),
      At(Action::kFreeRequested, 1200, 30),
      At(Action::kAlloc, 1290, 30),  // longer than the segment
      At(Action::kAlloc, 9999, 30),  // in no segment
      At(Action::kFreeCompleted, 1200, 30),
  }};
  const std::vector<Segment> segments = Segments(snapshot, 8);
  ASSERT_EQ(segments.size(), 2u);
  EXPECT_EQ(segments[0].address, 1000u);
  EXPECT_EQ(segments[0].total_size, 200u);
  EXPECT_TRUE(segments[0].is_expandable);
  EXPECT_EQ(segments[0].active_size, 100u);
  const std::vector<Block> first = {
      {.address = 1000, .size = 50},
      {.address = 1050, .size = 100, .requested_size = 100, .state = BlockState::kAllocated},
      {.address = 1150, .size = 50}};
  EXPECT_EQ(segments[0].blocks, first);
  const std::vector<Block> second = {
      {.address = 1200, .size = 30, .requested_size = 30, .state = BlockState::kPendingFree},
      {.address = 1230, .size = 60},
      {.address = 1290, .size = 10, .requested_size = 30, .state = BlockState::kAllocated}};
  EXPECT_EQ(segments[1].blocks, second);
  EXPECT_EQ(segments[1].allocated_size, 10u);
  EXPECT_EQ(segments[1].active_size, 40u);
  EXPECT_TRUE(Segments(snapshot, 0).empty());
  EXPECT_EQ(Segments(snapshot, 9)[1].active_size, 10u);
}

TEST(SegmentHistoryTest, NothingIsNoRegionAndStreamsAreApart) {
  Snapshot snapshot;
  snapshot.devices = {{
      At(Action::kSegmentAlloc, 500, 0), At(Action::kSegmentMap, 1000, 100, 0, 1),
      At(Action::kSegmentMap, 1100, 100, 0, 2),  // beside it, of another stream
      At(Action::kAlloc, 1000, 60),
      At(Action::kAlloc, 1050, 20),  // within the one before, which no sound recording has
  }};
  EXPECT_EQ(ReservedRegions(snapshot, 0).size(), 2u);
  const std::vector<Segment> segments = Segments(snapshot, 5);
  ASSERT_EQ(segments.size(), 2u);
  EXPECT_EQ(segments[0].stream, 1u);
  EXPECT_EQ(segments[1].stream, 2u);
  const std::vector<Block> blocks = {
      {.address = 1000, .size = 60, .requested_size = 60, .state = BlockState::kAllocated},
      {.address = 1060, .size = 40}};
  EXPECT_EQ(segments[0].blocks, blocks);
}

TEST(SegmentHistoryTest, AddressesAtTheEndOfTheRange) {
  Snapshot snapshot;
  snapshot.devices = {{At(Action::kSegmentAlloc, UINT64_MAX - 10, UINT64_MAX),
                       At(Action::kAlloc, UINT64_MAX - 5, UINT64_MAX)}};
  const std::vector<Segment> segments = Segments(snapshot, 2);
  ASSERT_EQ(segments.size(), 1u);
  EXPECT_EQ(segments[0].total_size, 10u);
  ASSERT_EQ(segments[0].blocks.size(), 2u);
  EXPECT_EQ(segments[0].blocks[1].size, 5u);
}

TEST(SegmentHistoryTest, ARealHistory) {
  if (!kReadsXz) GTEST_SKIP() << "built without liblzma";
  const auto snapshot = ReadSnapshotFile(kSample);
  ASSERT_TRUE(snapshot.ok()) << snapshot.status().ToString();
  const auto timeline = BuildTimeline(*snapshot, 0);
  ASSERT_TRUE(timeline.ok());
  const std::vector<Region> regions = ReservedRegions(*snapshot, 0);
  for (const Moment moment : {timeline->peak, timeline->last()}) {
    Snapshot at;
    at.segments = SegmentsAt(*snapshot, *timeline, regions, moment);
    at.stacks = snapshot->stacks;
    EXPECT_EQ(CheckSnapshot(at).ToString(), "OK");
    std::uint64_t reserved = 0;
    std::uint64_t requested = 0;
    for (const Segment& segment : at.segments) {
      reserved += segment.total_size;
      requested += segment.requested_size;
    }
    EXPECT_EQ(reserved, timeline->points[moment].reserved);
    EXPECT_EQ(requested, timeline->points[moment].requested);
  }
  EXPECT_EQ(SegmentsAt(*snapshot, *timeline, regions, timeline->last()), snapshot->segments);
}

}  // namespace
}  // namespace keel::trace
