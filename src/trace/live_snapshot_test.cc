#include "keel/trace/live_snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "base/forked_child_test.h"
#include "base/recorded_ranges_test.h"
#include "keel/trace/snapshot_file.h"
#include "keel/trace/summary.h"
#include "memory/device_allocator_test.h"

namespace keel::trace {
namespace {

using hal::IsOk;
using hal::Need;
using memory::DeviceAllocator;
using memory::Source;
using memory::SourceName;
using ::testing::HasSubstr;

class LiveSnapshotTest : public memory::DeviceAllocatorTest {
 protected:
  void SetUp() override {
    DeviceAllocatorTest::SetUp();
    ASSERT_TRUE(IsOk(log_.Enable({.capacity = 100'000, .stacks = false})));
  }
  Result<Snapshot> Take(DeviceAllocator& allocator) {
    DeviceAllocator* const one[] = {&allocator};
    return TakeSnapshot(one, {.log = &log_});
  }
  static std::uint64_t Sum(const Snapshot& snapshot, std::uint64_t Segment::* field) {
    std::uint64_t sum = 0;
    for (const Segment& segment : snapshot.segments) sum += segment.*field;
    return sum;
  }

  telemetry::EventLog log_;
};

TEST_P(LiveSnapshotTest, ShowsInProfilers) {
  const auto allocator = Make(&log_);
  RecordedRanges ranges;
  ASSERT_TRUE(IsOk(Take(*allocator)));
  EXPECT_THAT(ranges.Take(), ::testing::ElementsAre("take a snapshot"));
}

TEST_P(LiveSnapshotTest, IsWhatTheAllocatorHoldsAndSurvivesBothFormats) {
  const auto allocator = Make(&log_);
  std::vector<DeviceAddress> blocks;
  for (std::uint64_t i = 1; i <= 30; ++i) {
    blocks.push_back(Need(allocator->Allocate(
        Bytes(i * 100'003), i % 2 == 0 ? s1() : s2(),
        {.tag = telemetry::InternTag(i % 3 == 0 ? "cache \"1\"" : "weights")})));
  }
  for (std::size_t i = 0; i < blocks.size(); i += 3) {
    ASSERT_TRUE(IsOk(allocator->Free(blocks[i])));
  }
  ASSERT_TRUE(IsOk(allocator->RecordUse(blocks[1], s2())));
  memory::HeldStream held = Hold(s2());
  ASSERT_TRUE(IsOk(Fill(blocks[1], 1_KiB, 1, s2())));
  ASSERT_TRUE(IsOk(allocator->Free(blocks[1])));

  const Snapshot snapshot = Need(Take(*allocator));
  const telemetry::MemoryStats stats = allocator->Stats();
  const auto bytes = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  EXPECT_TRUE(IsOk(CheckSnapshot(snapshot)));
  EXPECT_EQ(Sum(snapshot, &Segment::total_size), bytes(stats.reserved_bytes.all.current));
  EXPECT_EQ(Sum(snapshot, &Segment::allocated_size), bytes(stats.allocated_bytes.all.current));
  EXPECT_EQ(Sum(snapshot, &Segment::active_size), bytes(stats.active_bytes.all.current));
  std::size_t pending = 0;
  for (const Segment& segment : snapshot.segments) {
    EXPECT_EQ(segment.is_expandable, expandable());
    for (const Block& block : segment.blocks) {
      pending += block.state == BlockState::kPendingFree ? 1U : 0U;
      if (block.state != BlockState::kAllocated) continue;
      const memory::AllocationInfo info = Need(allocator->Find(DeviceAddress(block.address)));
      EXPECT_EQ(info.size.count(), block.size);
      EXPECT_EQ(info.requested.count(), block.requested_size);
      EXPECT_EQ(info.stream.value, segment.stream);
      EXPECT_EQ(TagName(info.tag), snapshot.tags[block.tag]);
    }
  }
  EXPECT_EQ(pending, 1U);
  EXPECT_EQ(snapshot.devices.at(0).back().action, Action::kSnapshot);

  for (const SnapshotFormat format : {SnapshotFormat::kJson, SnapshotFormat::kPickle}) {
    const Snapshot read = Need(ReadSnapshot(Need(WriteSnapshot(snapshot, format))));
    EXPECT_EQ(read.segments, snapshot.segments);
    EXPECT_EQ(read.devices, snapshot.devices);
    EXPECT_EQ(read.settings, snapshot.settings);
    EXPECT_EQ(read.tags, snapshot.tags);
  }
  held.Release();
}

TEST_P(LiveSnapshotTest, StacksOfLiveBlocksAreThoseOfTheirAllocation) {
  ASSERT_TRUE(IsOk(log_.Enable({.capacity = 1000, .stacks = true})));
  const auto allocator = Make(&log_);
  const DeviceAddress old = Need(allocator->Allocate(4_KiB, s1()));
  ASSERT_TRUE(IsOk(allocator->Free(old)));
  const DeviceAddress again = Need(allocator->Allocate(4_KiB, s1()));
  const Snapshot snapshot = Need(Take(*allocator));
  const std::vector<Event>& events = snapshot.devices.at(0);
  std::uint32_t stack = 0;
  for (const Event& event : events) {
    if (event.action == Action::kAlloc) stack = event.stack;
  }
  ASSERT_NE(stack, 0U);
  std::size_t found = 0;
  for (const Segment& segment : snapshot.segments) {
    EXPECT_NE(segment.stack, 0U);
    for (const Block& block : segment.blocks) {
      if (block.state == BlockState::kInactive) {
        EXPECT_EQ(block.stack, 0U);
        continue;
      }
      EXPECT_EQ(block.address, again.value());
      EXPECT_EQ(block.stack, stack);
      ++found;
    }
  }
  EXPECT_EQ(found, 1U);
}

TEST_P(LiveSnapshotTest, HistoriesOfOtherDevicesAreLeftOut) {
  const auto here = Make(&log_);
  const auto there = Need(DeviceAllocator::Create(peer_, {.config = Config(), .log = &log_}));
  const hal::Stream stream = Need(hal::Stream::Create(peer_));
  EXPECT_TRUE(IsOk(here->Allocate(1_KiB, s1())));
  EXPECT_TRUE(IsOk(there->Allocate(2_KiB, stream.get())));
  const Snapshot one = Need(Take(*there));
  ASSERT_EQ(one.devices.size(), 2U);
  EXPECT_TRUE(one.devices[0].empty());
  EXPECT_FALSE(one.devices[1].empty());
  for (const Segment& segment : one.segments) EXPECT_EQ(segment.device, 1);
  DeviceAllocator* const both[] = {here.get(), there.get()};
  const Snapshot all = Need(TakeSnapshot(both, {.log = &log_}));
  EXPECT_FALSE(all.devices.at(0).empty());
  EXPECT_EQ(all.segments.size(), 2U);
}

TEST_P(LiveSnapshotTest, TwoDevicesWithOneNumberAreRefused) {
  const auto other_driver = hal::SimDriver(1);
  const auto other = Need(other_driver->Open(0));
  const auto here = Make(&log_);
  const auto there = Need(DeviceAllocator::Create(other, {.config = Config(), .log = &log_}));
  DeviceAllocator* const both[] = {here.get(), there.get()};
  const Status status = TakeSnapshot(both, {.log = &log_}).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("sim:0"));
}

TEST_P(LiveSnapshotTest, WithoutHistoryThereAreSegmentsOnly) {
  log_.Disable();
  const auto allocator = Make(&log_);
  EXPECT_TRUE(IsOk(allocator->Allocate(1_KiB, s1())));
  const Snapshot snapshot = Need(Take(*allocator));
  EXPECT_EQ(snapshot.event_count(), 0U);
  EXPECT_EQ(snapshot.segments.size(), 1U);
  EXPECT_TRUE(IsOk(TakeSnapshot({}, {.log = &log_})));
}

TEST_P(LiveSnapshotTest, AllocatorsGoOnMeanwhile) {
  const auto allocator = Make(&log_);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (const hal::StreamHandle stream : {s1(), s2()}) {
    threads.emplace_back([&, stream] {
      for (std::uint64_t i = 0; !stop; ++i) {
        const DeviceAddress block =
            Need(allocator->Allocate(Bytes(1 + i * 7919 % 3'000'000), stream));
        EXPECT_TRUE(IsOk(allocator->Free(block)));
      }
    });
  }
  for (int round = 0; round < 20; ++round) {
    const Snapshot snapshot = Need(Take(*allocator));
    EXPECT_TRUE(IsOk(CheckSnapshot(snapshot)));
    EXPECT_EQ(snapshot.devices.at(0).back().action, Action::kSnapshot);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST_P(LiveSnapshotTest, AForkedChildIsRefused) {
  auto allocator = Need(DeviceAllocator::Create(inner_, {.config = Config(), .log = &log_}));
  const int status = InForkedChild(
      [&] { EXPECT_EQ(Take(*allocator).status().code(), StatusCode::kFailedPrecondition); });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

KEEL_WITH_BOTH_SOURCES(LiveSnapshotTest);

}  // namespace
}  // namespace keel::trace
