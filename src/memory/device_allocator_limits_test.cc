// What is held and when it goes back: limits, out-of-memory, trimming, and the numbers about it.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <limits>
#include <map>
#include <random>
#include <thread>

#include "base/soon_test.h"
#include "memory/device_allocator_test.h"

namespace keel::memory {
namespace {

using telemetry::EventAction;
using telemetry::MemoryStats;

class DeviceAllocatorLimitsTest : public DeviceAllocatorTest {
 protected:
  // Everything in a snapshot lies beside each other, and what it says adds up to the statistics.
  void ExpectSound(DeviceAllocator& allocator) {
    EXPECT_EQ(allocator.Check(), "");
    const MemoryStats stats = allocator.Stats();
    std::map<BlockSnapshot::State, std::int64_t> bytes;
    std::int64_t reserved = 0;
    std::uint64_t last = 0;
    for (const SegmentSnapshot& segment : allocator.Snapshot().segments) {
      EXPECT_GE(segment.address.value(), last);
      std::uint64_t at = segment.address.value();
      for (const BlockSnapshot& block : segment.blocks) {
        EXPECT_EQ(block.address.value(), at);
        at += block.size.count();
        bytes[block.state] += static_cast<std::int64_t>(block.size.count());
      }
      last = segment.address.value() + segment.size.count();
      EXPECT_EQ(at, last);
      reserved += static_cast<std::int64_t>(segment.size.count());
    }
    EXPECT_EQ(reserved, stats.reserved_bytes.all.current);
    EXPECT_EQ(allocator.reserved(), Bytes(static_cast<std::uint64_t>(reserved)));
    EXPECT_EQ(bytes[BlockSnapshot::State::kAllocated], stats.allocated_bytes.all.current);
    EXPECT_EQ(bytes[BlockSnapshot::State::kPendingFree], stats.pending_free_bytes.current);
    for (const telemetry::PoolStat* each :
         {&stats.allocation, &stats.segment, &stats.active, &stats.inactive_split,
          &stats.allocated_bytes, &stats.reserved_bytes, &stats.active_bytes,
          &stats.inactive_split_bytes, &stats.requested_bytes}) {
      EXPECT_EQ(each->all.current, each->small_pool.current + each->large_pool.current);
      EXPECT_EQ(each->all.current, each->all.allocated - each->all.freed);
      EXPECT_LE(each->all.current, each->all.peak);
    }
    EXPECT_EQ(stats.active_bytes.all.current,
              stats.allocated_bytes.all.current + stats.pending_free_bytes.current);
    // A16
    EXPECT_EQ(stats.mapped_bytes.current, expandable() ? reserved : 0);
    EXPECT_EQ(controls().used(), allocator.reserved());
  }
};

// A3
TEST_P(DeviceAllocatorLimitsTest, TheLimitIsExactWhileThreadsRace) {
  const auto allocator = Make();
  constexpr Bytes kLimit = 120_MiB;
  allocator->SetLimit(kLimit);
  std::atomic<std::uint64_t> refused{0};
  std::atomic<std::uint64_t> most{0};
  std::vector<std::thread> threads;
  std::barrier together(8);
  for (unsigned i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      std::mt19937 random(i);
      std::vector<DeviceAddress> mine;
      for (int round = 0; round < 500; ++round) {
        // All hold something, and ask together.
        if (round % 50 < 10) together.arrive_and_wait();
        const Bytes size(1 + random() % (12 << 20));
        const Result<DeviceAddress> block = allocator->Allocate(size, i % 2 == 0 ? s1() : s2());
        const std::uint64_t used = controls().used().count();
        std::uint64_t before = most.load();
        while (used > before && !most.compare_exchange_weak(before, used)) {
        }
        if (block.ok()) {
          mine.push_back(*block);
        } else {
          EXPECT_EQ(block.status().code(), StatusCode::kResourceExhausted);
          ++refused;
        }
        if (!block.ok() || mine.size() > 3) {
          for (const DeviceAddress each : mine) ASSERT_TRUE(IsOk(allocator->Free(each)));
          mine.clear();
        }
      }
      for (const DeviceAddress each : mine) ASSERT_TRUE(IsOk(allocator->Free(each)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  // As the device counts it, its own rounding included.
  EXPECT_LE(most.load(), kLimit.count());
  EXPECT_LE(allocator->Stats().reserved_bytes.all.peak, static_cast<std::int64_t>(kLimit.count()));
  EXPECT_GT(refused.load(), 0U);
  ExpectSound(*allocator);
}

// A4: what an idle thread keeps.
TEST_P(DeviceAllocatorLimitsTest, IdleThreadsGiveUpWhatTheyKeepBeforeARequestFails) {
  const auto allocator = Make();
  allocator->SetLimit(20_MiB);
  std::atomic<int> step{0};
  std::thread idle([&] {
    std::vector<DeviceAddress> blocks;
    for (int i = 0; i < 8; ++i) blocks.push_back(Need(allocator->Allocate(16_KiB, s2())));
    for (const DeviceAddress block : blocks) ASSERT_TRUE(IsOk(allocator->Free(block)));
    step = 1;
    step.notify_all();
    step.wait(1);
  });
  step.wait(0);
  EXPECT_TRUE(IsOk(allocator->Allocate(20_MiB, s1())));
  step = 2;
  step.notify_all();
  idle.join();
  ExpectSound(*allocator);
}

// A4: what pending work on other streams holds is waited for.
TEST_P(DeviceAllocatorLimitsTest, PendingFreesAndOtherStreamsAreWaitedForBeforeARequestFails) {
  const auto allocator = Make();
  allocator->SetLimit(64_MiB);
  const DeviceAddress freed = Need(allocator->Allocate(20_MiB, s2()));
  const DeviceAddress pending = Need(allocator->Allocate(20_MiB, s1()));
  HeldStream held = Hold(s2());
  ASSERT_TRUE(IsOk(Fill(freed, 20_MiB, 1, s2())));
  ASSERT_TRUE(IsOk(Fill(pending, 20_MiB, 1, s2())));
  ASSERT_TRUE(IsOk(allocator->RecordUse(pending, s2())));
  ASSERT_TRUE(IsOk(allocator->Free(pending)));
  ASSERT_TRUE(IsOk(allocator->Free(freed)));
  device_->ResetCounts();
  std::thread release([&] {
    EXPECT_TRUE(Soon([&] { return device_->calls(Primitive::kSynchronizeEvent) != 0; }))
        << "nobody waits for the stream";
    // Whoever waits for memory keeps nobody else from freeing.
    const DeviceAddress small = Need(allocator->Allocate(1_KiB, s2()));
    ASSERT_TRUE(IsOk(allocator->RecordUse(small, s1())));
    ASSERT_TRUE(IsOk(allocator->Free(small)));
    held.Release();
  });
  const Result<DeviceAddress> all = allocator->Allocate(60_MiB, s1());
  release.join();
  ASSERT_TRUE(IsOk(all));
  ASSERT_TRUE(IsOk(Fill(*all, 60_MiB, 2, s1())));
  EXPECT_EQ(allocator->Stats().num_ooms, 0);
  EXPECT_GT(allocator->Stats().num_alloc_retries, 0);
  ExpectSound(*allocator);
}

TEST_P(DeviceAllocatorLimitsTest, AFailureSaysWhatIsHeldAndByWhomAndChangesNothing) {
  telemetry::EventLog log;
  ASSERT_TRUE(IsOk(log.Enable({})));
  const auto allocator = Make(&log);
  allocator->SetLimit(100_MiB);
  DeviceAddress weights;
  {
    const telemetry::ScopedTag tag("limits weights");
    weights = Need(allocator->Allocate(60_MiB, s1()));
  }
  ASSERT_TRUE(IsOk(Fill(weights, 64_KiB, 4, s1())));
  const MemoryStats before = allocator->Stats();
  const Status status =
      allocator->Allocate(50_MiB, s2(), {.tag = telemetry::InternTag("limits cache")}).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  for (const char* const part :
       {"50 MiB asked for (52428800 bytes), for 'limits cache'", " of a limit of 100 MiB",
        "60 MiB in 1 blocks", "tag 'limits weights': 60 MiB", "raise the limit",
        "the device: ", "free of 1 GiB", "cause: ", "free here: "}) {
    EXPECT_NE(status.message().find(part), std::string::npos) << part << "\n" << status.message();
  }
  const MemoryStats after = allocator->Stats();
  EXPECT_EQ(after.num_ooms, 1);
  EXPECT_EQ(after.allocation, before.allocation);
  EXPECT_EQ(after.allocated_bytes, before.allocated_bytes);
  EXPECT_EQ(after.requested_bytes, before.requested_bytes);
  EXPECT_EQ(after.active_bytes, before.active_bytes);
  const std::vector<telemetry::MemoryEvent> events = log.Read();
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back().action, EventAction::kOom);
  EXPECT_EQ(events.back().size, 50_MiB);
  EXPECT_TRUE(Holds(weights, 64_KiB, 4, s1()));
  EXPECT_TRUE(IsOk(allocator->Allocate(30_MiB, s2())));
  // More than there can ever be, and more than a number holds.
  for (const Bytes size : {2_GiB, Bytes(~std::uint64_t{0}), Bytes(~std::uint64_t{0} - 511)}) {
    const Status huge = allocator->Allocate(size, s1()).status();
    EXPECT_EQ(huge.code(), StatusCode::kResourceExhausted);
    EXPECT_EQ(huge.message().rfind("out of memory: " + ToString(size) + " asked for", 0), 0U)
        << huge.message();
  }
  ExpectSound(*allocator);
}

TEST_P(DeviceAllocatorLimitsTest, CallbacksAreAskedInOrderBeforeARequestFails) {
  const auto allocator = Make();
  allocator->SetLimit(64_MiB);
  DeviceAddress cache = Need(allocator->Allocate(40_MiB, s2()));
  std::vector<int> called;
  const auto first = allocator->AddOutOfMemoryCallback([&](Bytes) { called.push_back(1); });
  allocator->AddOutOfMemoryCallback([&](Bytes size) {
    EXPECT_EQ(size, 50_MiB);
    called.push_back(2);
    if (cache) {
      EXPECT_TRUE(IsOk(allocator->Free(cache)));
    }
    cache = {};
  });
  EXPECT_TRUE(IsOk(allocator->Allocate(50_MiB, s1())));
  EXPECT_EQ(called, (std::vector{1, 2}));
  allocator->RemoveOutOfMemoryCallback(first);
  EXPECT_FALSE(allocator->Allocate(50_MiB, s1()).ok());
  EXPECT_EQ(called, (std::vector{1, 2, 2}));
}

TEST_P(DeviceAllocatorLimitsTest, TrimGivesBackUntilTheTargetAndNoLiveBlock) {
  const auto allocator = Make();
  std::vector<DeviceAddress> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(Need(allocator->Allocate(20_MiB, s1())));
  for (int i = 1; i < 8; ++i) ASSERT_TRUE(IsOk(allocator->Free(blocks[i])));
  ASSERT_TRUE(IsOk(Fill(blocks[0], 64_KiB, 3, s1())));
  const Bytes before = allocator->reserved();
  ASSERT_TRUE(IsOk(allocator->Trim(before)));
  EXPECT_EQ(allocator->reserved(), before);
  ASSERT_TRUE(IsOk(allocator->Trim(100_MiB)));
  EXPECT_LE(allocator->reserved(), 100_MiB);
  EXPECT_GT(allocator->reserved(), 60_MiB);
  ASSERT_TRUE(IsOk(allocator->EmptyCache()));
  EXPECT_LE(allocator->reserved(), 32_MiB);
  EXPECT_TRUE(Holds(blocks[0], 64_KiB, 3, s1()));
  ExpectSound(*allocator);
  ASSERT_TRUE(IsOk(allocator->Free(blocks[0])));
  ASSERT_TRUE(IsOk(allocator->EmptyCache()));
  EXPECT_EQ(allocator->reserved(), 0_B);
  EXPECT_EQ(controls().used(), 0_B);
}

TEST_P(DeviceAllocatorLimitsTest, FractionsAndLimitsAreOfTheDevice) {
  const auto allocator = Make();
  EXPECT_EQ(allocator->limit(), 1_GiB);
  for (const double wrong : {-0.1, 1.01, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_EQ(allocator->SetFraction(wrong).code(), StatusCode::kInvalidArgument) << wrong;
  }
  ASSERT_TRUE(IsOk(allocator->SetFraction(0.25)));
  EXPECT_EQ(allocator->limit(), 256_MiB);
  const DeviceAddress block = Need(allocator->Allocate(200_MiB, s1()));
  EXPECT_FALSE(allocator->Allocate(100_MiB, s1()).ok());
  // Lower than what is held: the block stays.
  allocator->SetLimit(64_MiB);
  ASSERT_TRUE(IsOk(Fill(block, 64_KiB, 1, s1())));
  EXPECT_TRUE(Holds(block, 64_KiB, 1, s1()));
  ASSERT_TRUE(IsOk(allocator->Free(block)));
  EXPECT_TRUE(IsOk(allocator->Allocate(60_MiB, s2())));
  EXPECT_LE(allocator->reserved(), 64_MiB);
}

TEST_P(DeviceAllocatorLimitsTest, AFractionOfZeroLeavesWhatIsHeld) {
  const auto allocator = Make();
  const DeviceAddress block = Need(allocator->Allocate(4_MiB, s1()));
  const Bytes held = allocator->reserved();
  ASSERT_TRUE(IsOk(allocator->SetFraction(0)));
  EXPECT_EQ(allocator->limit(), 0_B);
  ASSERT_TRUE(IsOk(allocator->Free(block)));
  EXPECT_EQ(Need(allocator->Allocate(4_MiB, s1())), block);
  EXPECT_EQ(allocator->Allocate(held + 1_MiB, s1()).status().code(),
            StatusCode::kResourceExhausted);
  ASSERT_TRUE(IsOk(allocator->SetFraction(1)));
  EXPECT_TRUE(IsOk(allocator->Allocate(held + 1_MiB, s1())));
}

TEST_P(DeviceAllocatorLimitsTest, WhatIsHeldAndLiveCanBeReadByItself) {
  const auto allocator = Make();
  std::vector<DeviceAddress> blocks;
  const auto expect_same = [&] {
    const telemetry::MemoryStats stats = allocator->Stats();
    EXPECT_EQ(allocator->allocated().count(),
              static_cast<std::uint64_t>(stats.allocated_bytes.all.current));
    EXPECT_EQ(allocator->reserved().count(),
              static_cast<std::uint64_t>(stats.reserved_bytes.all.current));
  };
  expect_same();
  for (const Bytes size : {100_B, 3_MiB, 5_KiB}) {
    blocks.push_back(Need(allocator->Allocate(size, s1())));
    expect_same();
  }
  EXPECT_EQ(allocator->allocated(), 512_B + 3_MiB + 5_KiB);
  // Of another thread, which is gone, and pending.
  std::thread([&] { EXPECT_TRUE(IsOk(allocator->Free(blocks[0]))); }).join();
  expect_same();
  EXPECT_EQ(allocator->allocated(), 3_MiB + 5_KiB);
  ASSERT_TRUE(IsOk(allocator->RecordUse(blocks[1], s2())));
  ASSERT_TRUE(IsOk(allocator->Free(blocks[1])));
  expect_same();
  EXPECT_EQ(allocator->allocated(), 5_KiB);
}

// A16
TEST_P(DeviceAllocatorLimitsTest, PeaksAndTotalsAreOfWhatHappened) {
  const auto allocator = Make();
  const DeviceAddress large = Need(allocator->Allocate(40_MiB, s1()));
  const DeviceAddress small = Need(allocator->Allocate(1000_B, s1()));
  ExpectSound(*allocator);
  ASSERT_TRUE(IsOk(allocator->Free(large)));
  ASSERT_TRUE(IsOk(allocator->EmptyCache()));
  ExpectSound(*allocator);
  MemoryStats stats = allocator->Stats();
  EXPECT_EQ(stats.allocated_bytes.all.current, 1024);
  EXPECT_EQ(stats.requested_bytes.all.current, 1000);
  EXPECT_EQ(stats.allocated_bytes.all.peak, (40 << 20) + 1024);
  EXPECT_EQ(stats.allocated_bytes.all.allocated, (40 << 20) + 1024);
  EXPECT_EQ(stats.allocated_bytes.all.freed, 40 << 20);
  EXPECT_GT(stats.reserved_bytes.all.peak, stats.reserved_bytes.all.current);
  EXPECT_GE(stats.reserved_bytes.all.peak, 40 << 20);
  EXPECT_GT(stats.num_device_alloc, 0);
  EXPECT_GT(stats.num_device_free, 0);
  allocator->ResetPeakStats();
  allocator->ResetAccumulatedStats();
  stats = allocator->Stats();
  EXPECT_EQ(stats.allocated_bytes.all.peak, 1024);
  EXPECT_EQ(stats.allocated_bytes.all.allocated, 0);
  EXPECT_EQ(stats.reserved_bytes.all.peak, stats.reserved_bytes.all.current);
  EXPECT_EQ(stats.num_device_alloc, 0);
  ASSERT_TRUE(IsOk(allocator->Free(small)));
  EXPECT_EQ(allocator->Stats().allocated_bytes.all.freed, 1024);
}

TEST_P(DeviceAllocatorLimitsTest, TheHistoryTellsEachLifeInOrder) {
  telemetry::EventLog log;
  ASSERT_TRUE(IsOk(log.Enable({})));
  const auto allocator = Make(&log);
  const DeviceAddress block = Need(allocator->Allocate(3'000'000_B, s1()));
  ASSERT_TRUE(IsOk(allocator->RecordUse(block, s2())));
  HeldStream held = Hold(s2());
  ASSERT_TRUE(IsOk(allocator->Free(block)));
  held.Release();
  ASSERT_TRUE(IsOk(allocator->EmptyCache()));
  std::vector<EventAction> actions;
  std::uint64_t mapped = 0;
  for (const telemetry::MemoryEvent& event : log.Read()) {
    EXPECT_EQ(event.device, device_->id());
    if (actions.empty() || actions.back() != event.action) actions.push_back(event.action);
    if (event.action == EventAction::kAlloc) {
      EXPECT_EQ(event.address, block);
      EXPECT_EQ(event.size, 3'000'000_B);
      EXPECT_EQ(event.stream, s1().value);
    }
    const bool in =
        event.action == EventAction::kSegmentMap || event.action == EventAction::kSegmentAlloc;
    const bool out =
        event.action == EventAction::kSegmentUnmap || event.action == EventAction::kSegmentFree;
    mapped += in ? event.size.count() : 0;
    mapped -= out ? event.size.count() : 0;
  }
  EXPECT_EQ(mapped, 0U);
  EXPECT_EQ(
      actions,
      (std::vector{expandable() ? EventAction::kSegmentMap : EventAction::kSegmentAlloc,
                   EventAction::kAlloc, EventAction::kFreeRequested, EventAction::kFreeCompleted,
                   expandable() ? EventAction::kSegmentUnmap : EventAction::kSegmentFree}));
}

// A small device, filled until nothing more goes, again and again.
TEST_P(DeviceAllocatorLimitsTest, ADeviceThatIsFullGoesOnWhenSomethingIsFreed) {
  Open({.devices = 1, .memory = 64_MiB, .arena = 16_GiB});
  const hal::Stream one = Need(hal::Stream::Create(inner_));
  const hal::Stream two = Need(hal::Stream::Create(inner_));
  const auto allocator = Need(DeviceAllocator::Create(device_, {.config = Config()}));
  std::mt19937 random(5);
  std::vector<std::pair<DeviceAddress, Bytes>> live;
  std::uint64_t failures = 0;
  for (int i = 0; i < 4000; ++i) {
    const Bytes size(1 + random() % (random() % 3 == 0 ? 12 << 20 : 40 << 10));
    const hal::StreamHandle stream = random() % 2 == 0 ? one.get() : two.get();
    const Result<DeviceAddress> block = allocator->Allocate(size, stream);
    if (block.ok()) {
      live.emplace_back(*block, size);
      ASSERT_TRUE(IsOk(inner_->EnqueueFill(
          stream, {.destination = *block, .value = 1, .width = 1, .count = 1})));
      continue;
    }
    ASSERT_EQ(block.status().code(), StatusCode::kResourceExhausted) << block.status().ToString();
    ++failures;
    ASSERT_EQ(allocator->Stats().allocation.all.current, static_cast<std::int64_t>(live.size()));
    for (std::size_t n = live.size() / 3 + 1; n-- > 0;) {
      std::swap(live[random() % live.size()], live.back());
      ASSERT_TRUE(IsOk(allocator->Free(live.back().first, live.back().second)));
      live.pop_back();
    }
    ASSERT_EQ(allocator->Check(), "");
  }
  EXPECT_GT(failures, 10U);
  for (const auto& [address, size] : live) ASSERT_TRUE(IsOk(allocator->Free(address, size)));
  ASSERT_TRUE(IsOk(allocator->EmptyCache()));
  EXPECT_EQ(controls().used(), 0_B);
  EXPECT_TRUE(IsOk(allocator->Allocate(64_MiB, two.get())));
}

KEEL_WITH_BOTH_SOURCES(DeviceAllocatorLimitsTest);

}  // namespace
}  // namespace keel::memory
