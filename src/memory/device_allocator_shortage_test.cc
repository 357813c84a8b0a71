// Small limits: what a request can have, it gets, wherever the memory is.
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "base/soon_test.h"
#include "memory/device_allocator_test.h"

namespace keel::memory {
namespace {

class ShortageTest : public DeviceAllocatorTest {};

// Nothing can be given back to the device: in the only piece of memory something is live.
TEST_P(ShortageTest, AHoleOfAnotherStreamIsUsedBeforeARequestFails) {
  const auto allocator = Make();
  allocator->SetLimit(2_MiB);
  const DeviceAddress mine = Need(allocator->Allocate(700_KiB, s1()));
  const Result<DeviceAddress> borrowed = allocator->Allocate(900_KiB, s2());
  ASSERT_TRUE(IsOk(borrowed));
  EXPECT_EQ(Need(allocator->Find(*borrowed)).stream, s2());
  EXPECT_EQ(allocator->Stats().allocated_bytes.all.current, (700 + 900) << 10);
  EXPECT_EQ(allocator->Stats().num_ooms, 0);

  // Freed, it is for the stream that it is from only when the other is done with it.
  HeldStream held = Hold(s2());
  ASSERT_TRUE(IsOk(Fill(*borrowed, 900_KiB, 1, s2())));
  ASSERT_TRUE(IsOk(allocator->Free(*borrowed)));
  EXPECT_EQ(allocator->Stats().pending_free_bytes.current, 900 << 10);
  device_->ResetCounts();
  std::atomic<bool> released{false};
  std::thread release([&] {
    EXPECT_TRUE(Soon([&] { return device_->calls(Primitive::kSynchronizeEvent) != 0; }))
        << "nobody waits for the stream";
    released = true;
    held.Release();
  });
  const Result<DeviceAddress> again = allocator->Allocate(900_KiB, s1());
  EXPECT_TRUE(released);
  release.join();
  ASSERT_TRUE(IsOk(again));
  EXPECT_EQ(*again, *borrowed);
  ASSERT_TRUE(IsOk(Fill(*again, 900_KiB, 2, s1())));
  EXPECT_TRUE(Holds(*again, 900_KiB, 2, s1()));

  EXPECT_EQ(allocator->Allocate(900_KiB, s2()).status().code(), StatusCode::kResourceExhausted);
  ASSERT_TRUE(IsOk(allocator->Free(mine)));
  ASSERT_TRUE(IsOk(allocator->Free(*again)));
  EXPECT_EQ(allocator->Check(), "");
  EXPECT_EQ(allocator->Stats().allocated_bytes.small_pool.current, 0);
  ASSERT_TRUE(IsOk(allocator->EmptyCache()));
  EXPECT_EQ(allocator->reserved(), 0_B);
}

TEST_P(ShortageTest, AWaitForAStreamEndsAtTheDeadline) {
  const auto allocator = Make();
  allocator->SetLimit(2_MiB);
  const DeviceAddress used = Need(allocator->Allocate(1500_KiB, s2()));
  HeldStream held = Hold(s2());
  ASSERT_TRUE(IsOk(Fill(used, 1500_KiB, 1, s2())));
  ASSERT_TRUE(IsOk(allocator->Free(used)));
  const auto take = [&](Deadline deadline) {
    return allocator->Allocate(1500_KiB, s1(), {.deadline = deadline});
  };
  for (const Deadline deadline :
       {Deadline::Now(), Deadline::After(std::chrono::milliseconds(20))}) {
    const Status late = take(deadline).status();
    EXPECT_EQ(late.code(), StatusCode::kDeadlineExceeded) << late.ToString();
  }
  EXPECT_EQ(allocator->Stats().num_ooms, 0);
  EXPECT_EQ(allocator->Stats().allocated_bytes.all.current, 0);
  held.Release();
  const Result<DeviceAddress> again = take(Deadline::After(std::chrono::seconds(30)));
  ASSERT_TRUE(IsOk(again));
  // Where there is nothing to wait for, it is no matter of time.
  EXPECT_EQ(take(Deadline::After(std::chrono::seconds(30))).status().code(),
            StatusCode::kResourceExhausted);
  ASSERT_TRUE(IsOk(allocator->Free(*again)));
}

// A search for a hole looks at a few that are about as large as the request. Before it fails, a
// request looks at all of them.
TEST_P(ShortageTest, TheOnlyHoleThatFitsIsFoundBehindManyThatDoNot) {
  AllocatorConfig config = Config();
  config.front_cache = 0_B;
  const auto allocator = Make(config);
  allocator->SetLimit(8_MiB);
  const DeviceAddress fits = Need(allocator->Allocate(96_KiB + 512_B, s1()));
  // Everything is taken, and then every second is free.
  std::vector<DeviceAddress> others;
  for (int i = 0; i < 80; ++i) others.push_back(Need(allocator->Allocate(96_KiB, s1())));
  while (allocator->Allocate(512_B, s1()).ok()) continue;
  ASSERT_TRUE(IsOk(allocator->Free(fits)));
  for (std::size_t i = 1; i < others.size(); i += 2) {
    ASSERT_TRUE(IsOk(allocator->Free(others[i])));
  }
  const std::int64_t failed = allocator->Stats().num_ooms;
  const Result<DeviceAddress> found = allocator->Allocate(96_KiB + 512_B, s1());
  ASSERT_TRUE(IsOk(found));
  EXPECT_EQ(*found, fits);
  EXPECT_EQ(allocator->Stats().num_ooms, failed);
  EXPECT_EQ(allocator->Allocate(96_KiB + 512_B, s1()).status().code(),
            StatusCode::kResourceExhausted);
  EXPECT_EQ(allocator->Check(), "");
}

// A graph's memory is its own, whatever is free elsewhere, and nobody else's.
TEST_P(ShortageTest, PoolsNeitherLendNorBorrow) {
  const auto allocator = Make();
  allocator->SetLimit(2_MiB);
  const PoolId pool = allocator->CreatePool();
  const DeviceAddress mine = Need(allocator->Allocate(700_KiB, s1()));
  ASSERT_TRUE(IsOk(allocator->BeginPool(pool, nullptr)));
  EXPECT_EQ(allocator->Allocate(900_KiB, s1()).status().code(), StatusCode::kResourceExhausted);
  ASSERT_TRUE(IsOk(allocator->Free(mine)));
  ASSERT_TRUE(IsOk(allocator->EmptyCache()));
  const DeviceAddress graphs = Need(allocator->Allocate(700_KiB, s1()));
  ASSERT_TRUE(IsOk(allocator->EndPool(pool)));
  EXPECT_EQ(allocator->Allocate(900_KiB, s1()).status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(allocator->Allocate(900_KiB, s2()).status().code(), StatusCode::kResourceExhausted);
  ASSERT_TRUE(IsOk(allocator->Free(graphs)));
}

TEST_P(ShortageTest, ASegmentIsSmallerThanUsualWhereThereIsNoMore) {
  const auto allocator = Make();
  allocator->SetLimit(14_MiB);
  // Not Need(), which ends the program: here the error is what the test is about.
  ASSERT_TRUE(IsOk(allocator->Allocate(9_MiB, s1())));
  EXPECT_EQ(allocator->reserved(), 10_MiB);
  EXPECT_TRUE(IsOk(allocator->Allocate(3_MiB, s2())));
  EXPECT_LE(allocator->reserved(), 14_MiB);
}

// At any time three others have 2 MiB each, which lie in 4 MiB at most: the rest, 4 MiB, has room.
// What threads keep must not be in the way, however they race.
// Neither to find out that there is not enough, nor afterwards.
TEST_P(ShortageTest, ARequestThatFailsTakesNoMemoryFromOthers) {
  for (const Bytes limit : {2_GiB, 900_MiB}) {  // the device has 1 GiB
    SCOPED_TRACE(ToString(limit));
    const auto allocator = Make();
    allocator->SetLimit(limit);
    const DeviceAddress half = Need(allocator->Allocate(512_MiB, s1()));
    const Bytes held = allocator->reserved();
    const DeviceAddress others = Need(inner_->AllocatePlain(64_MiB));
    const std::uint64_t created = device_->calls(Primitive::kCreateMemory);
    const auto started = device_->calls(Primitive::kAllocatePlain);
    for (const hal::StreamHandle stream : {s1(), s2()}) {
      EXPECT_EQ(allocator->Allocate(512_MiB, stream).status().code(),
                StatusCode::kResourceExhausted);
      EXPECT_EQ(allocator->reserved(), held);
    }
    EXPECT_EQ(device_->calls(Primitive::kCreateMemory), created);
    if (expandable()) {
      EXPECT_EQ(device_->calls(Primitive::kAllocatePlain), started);
    }
    // Free memory of other streams counts as what can be had.
    ASSERT_TRUE(IsOk(allocator->Free(half)));
    EXPECT_TRUE(IsOk(allocator->Allocate(700_MiB, s2())));
    ASSERT_TRUE(IsOk(inner_->FreePlain(others)));
  }
}

TEST_P(ShortageTest, WhatThreadsKeepAndFreeMeanwhileDoesNotMakeARequestFail) {
  const auto allocator = Make();
  allocator->SetLimit(16_MiB);
  const hal::Stream third = Need(hal::Stream::Create(inner_));
  const hal::StreamHandle streams[] = {s1(), s2(), third.get()};
  std::atomic<std::uint64_t> failures{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      std::mt19937 random(i);
      for (int round = 0; round < 4000; ++round) {
        const hal::StreamHandle stream = streams[random() % 3];
        const std::uint64_t most = std::uint64_t{1} << (9 + random() % 13);
        const Result<DeviceAddress> block = allocator->Allocate(Bytes(1 + random() % most), stream);
        if (!block.ok()) {
          ++failures;
          continue;
        }
        if (random() % 4 == 0) {
          ASSERT_TRUE(IsOk(allocator->RecordUse(*block, streams[random() % 3])));
        }
        ASSERT_TRUE(IsOk(allocator->Free(*block)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0U);
  EXPECT_EQ(allocator->Check(), "");
  ASSERT_TRUE(IsOk(allocator->EmptyCache()));
  EXPECT_EQ(allocator->reserved(), 0_B);
}

KEEL_WITH_BOTH_SOURCES(ShortageTest);

// The last memory comes free while the last step is under way, in another thread, which would keep
// it.
TEST_F(DeviceAllocatorFixture, WhatIsFreedDuringTheLastStepIsSeen) {
  const auto allocator = Make({});
  allocator->SetLimit(4_MiB);
  std::atomic<int> step{0};
  std::thread other([&] {
    const DeviceAddress block = Need(allocator->Allocate(700_KiB, s2()));
    step = 1;
    step.notify_all();
    step.wait(1);
    ASSERT_TRUE(IsOk(allocator->Free(block)));
    step = 3;
    step.notify_all();
  });
  step.wait(0);
  ASSERT_TRUE(IsOk(allocator->Free(Need(allocator->Allocate(2_MiB, s1())))));
  allocator->SetMoveListener([&](DeviceAddress, Bytes) {
    int first = 1;
    if (!step.compare_exchange_strong(first, 2)) return;
    step.notify_all();
    step.wait(2);
  });
  EXPECT_TRUE(IsOk(allocator->Allocate(4_MiB, s1())));
  // Else the other waits for it for ever.
  int first = 1;
  EXPECT_FALSE(step.compare_exchange_strong(first, 2)) << "no memory was moved";
  step.notify_all();
  other.join();
  EXPECT_EQ(step, 3);
  EXPECT_EQ(allocator->Stats().num_ooms, 0);
}

}  // namespace
}  // namespace keel::memory
