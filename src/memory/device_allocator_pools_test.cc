// Pools for the memory of recorded graphs, and everything else about captures: which calls are
// made while somebody records, and what a graph's memory is safe from.
#include <gtest/gtest.h>

#include <optional>

#include "keel/hal/capture_mode.h"
#include "keel/hal/event.h"
#include "keel/hal/graph.h"
#include "memory/device_allocator_test.h"

namespace keel::memory {
namespace {

using hal::CaptureMode;

class DeviceAllocatorPoolsTest : public DeviceAllocatorTest {
 protected:
  static std::function<bool(hal::StreamHandle)> Only(hal::StreamHandle stream) {
    return [stream](hal::StreamHandle each) { return each == stream; };
  }
};

TEST_P(DeviceAllocatorPoolsTest, RequestsThatTheFilterAcceptsComeFromThePool) {
  const auto allocator = Make();
  const PoolId pool = allocator->CreatePool();
  const DeviceAddress before = Need(allocator->Allocate(3_MiB, s1()));
  ASSERT_TRUE(IsOk(allocator->BeginPool(pool, Only(s1()))));
  const DeviceAddress inside = Need(allocator->Allocate(3_MiB, s1()));
  const DeviceAddress small = Need(allocator->Allocate(1_KiB, s1()));
  const DeviceAddress other = Need(allocator->Allocate(3_MiB, s2()));
  ASSERT_TRUE(IsOk(allocator->EndPool(pool)));
  const DeviceAddress after = Need(allocator->Allocate(3_MiB, s1()));
  EXPECT_EQ(Need(allocator->Find(before)).pool, 0U);
  EXPECT_EQ(Need(allocator->Find(inside)).pool, pool);
  EXPECT_EQ(Need(allocator->Find(small)).pool, pool);
  EXPECT_EQ(Need(allocator->Find(other)).pool, 0U);
  EXPECT_EQ(Need(allocator->Find(after)).pool, 0U);
}

TEST_P(DeviceAllocatorPoolsTest, WhatIsFreedInAPoolIsReusedThereOnlyAndStaysUntilItIsReleased) {
  const auto allocator = Make();
  const PoolId pool = allocator->CreatePool();
  ASSERT_TRUE(IsOk(allocator->BeginPool(pool, nullptr)));
  const DeviceAddress large = Need(allocator->Allocate(24_MiB, s1()));
  const DeviceAddress small = Need(allocator->Allocate(1_KiB, s1()));
  ASSERT_TRUE(IsOk(allocator->Free(large)));
  ASSERT_TRUE(IsOk(allocator->Free(small)));
  EXPECT_EQ(Need(allocator->Allocate(24_MiB, s1())), large);
  EXPECT_EQ(Need(allocator->Allocate(1_KiB, s1())), small);
  ASSERT_TRUE(IsOk(allocator->Free(large)));
  ASSERT_TRUE(IsOk(allocator->Free(small)));
  ASSERT_TRUE(IsOk(allocator->EndPool(pool)));

  // A19: neither to the program, nor to the device, nor when memory is short.
  const Bytes kept = allocator->reserved();
  ASSERT_TRUE(IsOk(allocator->EmptyCache()));
  EXPECT_EQ(allocator->reserved(), kept);
  allocator->SetLimit(kept + 24_MiB);
  const DeviceAddress outside = Need(allocator->Allocate(24_MiB, s1()));
  EXPECT_NE(outside, large);
  EXPECT_EQ(allocator->Allocate(24_MiB, s1()).status().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(allocator->Report().find("kept for graphs"), std::string::npos);
  if (expandable()) {
    EXPECT_TRUE(IsOk(inner_->GetAccess(large, inner_->id())));  // never unmapped
    EXPECT_EQ(allocator->Stats().pages_moved, 0);
  }

  ASSERT_TRUE(IsOk(allocator->ReleasePool(pool)));
  Need(allocator->Allocate(24_MiB, s1()));
  ASSERT_TRUE(IsOk(allocator->Free(outside)));
  EXPECT_EQ(allocator->Check(), "");
}

TEST_P(DeviceAllocatorPoolsTest, ALiveBlockOutlivesItsPoolsRelease) {
  const auto allocator = Make();
  const PoolId pool = allocator->CreatePool();
  ASSERT_TRUE(IsOk(allocator->BeginPool(pool, nullptr)));
  const DeviceAddress block = Need(allocator->Allocate(4_MiB, s1()));
  const DeviceAddress small = Need(allocator->Allocate(4_KiB, s1()));
  ASSERT_TRUE(IsOk(allocator->EndPool(pool)));
  ASSERT_TRUE(IsOk(allocator->ReleasePool(pool)));
  ASSERT_TRUE(IsOk(Fill(block, 4_MiB, 9, s1())));
  ASSERT_TRUE(IsOk(allocator->EmptyCache()));
  EXPECT_TRUE(Holds(block, 4_MiB, 9, s1()));
  ASSERT_TRUE(IsOk(allocator->Free(block)));
  ASSERT_TRUE(IsOk(allocator->Free(small)));
  ASSERT_TRUE(IsOk(allocator->EmptyCache()));
  EXPECT_EQ(allocator->reserved(), 0_B);
}

TEST_P(DeviceAllocatorPoolsTest, WrongUseOfAPoolIsRefused) {
  const auto allocator = Make();
  EXPECT_EQ(allocator->BeginPool(7, nullptr).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(allocator->EndPool(7).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(allocator->ReleasePool(7).code(), StatusCode::kInvalidArgument);
  const PoolId pool = allocator->CreatePool();
  EXPECT_EQ(allocator->EndPool(pool).code(), StatusCode::kFailedPrecondition);
  ASSERT_TRUE(IsOk(allocator->BeginPool(pool, nullptr)));
  EXPECT_EQ(allocator->BeginPool(pool, nullptr).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(allocator->ReleasePool(pool).code(), StatusCode::kFailedPrecondition);
  ASSERT_TRUE(IsOk(allocator->EndPool(pool)));
  ASSERT_TRUE(IsOk(allocator->ReleasePool(pool)));
  EXPECT_EQ(allocator->ReleasePool(pool).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(allocator->BeginPool(pool, nullptr).code(), StatusCode::kInvalidArgument);
}

// A19: whatever the capture's mode and the thread's own, nothing that the allocator does breaks it,
// and the graph has its memory at every replay.
TEST_P(DeviceAllocatorPoolsTest, EverythingWorksUnderAnOpenCaptureInEveryMode) {
  const auto allocator = Make();
  for (const CaptureMode mode :
       {CaptureMode::kGlobal, CaptureMode::kThreadLocal, CaptureMode::kRelaxed}) {
    for (const CaptureMode thread :
         {CaptureMode::kGlobal, CaptureMode::kThreadLocal, CaptureMode::kRelaxed}) {
      SCOPED_TRACE(std::to_string(static_cast<int>(mode)) + " of the capture, " +
                   std::to_string(static_cast<int>(thread)) + " of the thread");
      const hal::ScopedCaptureMode strict(thread);
      const DeviceAddress shared = Need(allocator->Allocate(2_MiB, s2()));
      const PoolId pool = allocator->CreatePool();
      hal::Capture capture = Need(hal::Capture::Begin(inner_, s1(), mode));
      ASSERT_TRUE(IsOk(allocator->BeginPool(pool, Only(s1()))));
      const DeviceAddress first = Need(allocator->Allocate(3_MiB, s1()));
      ASSERT_TRUE(IsOk(Fill(first, 64_KiB, 5, s1())));
      const DeviceAddress second = Need(allocator->Allocate(30_MiB, s1()));
      ASSERT_TRUE(IsOk(Fill(second, 64_KiB, 6, s1())));
      // The other stream goes on meanwhile: frees, pending frees, growth, moving, trimming.
      ASSERT_TRUE(IsOk(allocator->RecordUse(shared, s1())));
      ASSERT_TRUE(IsOk(allocator->Free(shared)));
      std::vector<DeviceAddress> others;
      for (int i = 1; i <= 20; ++i) {
        others.push_back(Need(allocator->Allocate(Bytes(i * (3 << 20)), s2())));
        if (i % 2 == 0) {
          ASSERT_TRUE(IsOk(allocator->Free(others.back())));
          others.pop_back();
        }
      }
      for (const DeviceAddress each : others) ASSERT_TRUE(IsOk(allocator->Free(each)));
      ASSERT_TRUE(IsOk(allocator->Free(second)));
      ASSERT_TRUE(IsOk(allocator->EmptyCache()));
      EXPECT_EQ(allocator->Allocate(900_MiB, s2()).status().ok(), true);
      static_cast<void>(allocator->Stats());
      EXPECT_EQ(Need(inner_->GetCaptureState(s1())), hal::CaptureState::kActive);
      ASSERT_TRUE(IsOk(allocator->EndPool(pool)));
      const hal::Graph graph = Need(capture.End());
      const hal::ScopedCaptureMode relaxed(CaptureMode::kRelaxed);
      const hal::GraphExec exec = Need(hal::GraphExec::Create(graph));
      for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(IsOk(exec.Launch(s2())));
        EXPECT_TRUE(Holds(first, 64_KiB, 5, s2()));
        EXPECT_TRUE(Holds(second, 64_KiB, 6, s2()));
      }
      ASSERT_TRUE(IsOk(allocator->Free(first)));
      ASSERT_TRUE(IsOk(allocator->ReleasePool(pool)));
      for (const SegmentSnapshot& segment : allocator->Snapshot().segments) {
        for (const BlockSnapshot& block : segment.blocks) {
          if (block.state == BlockSnapshot::State::kAllocated) {
            ASSERT_TRUE(IsOk(allocator->Free(block.address)));
          }
        }
      }
      ASSERT_TRUE(IsOk(allocator->EmptyCache()));
      EXPECT_EQ(allocator->reserved(), 0_B);
      EXPECT_EQ(allocator->Stats().pending_frees.current, 0);
    }
  }
}

// A19: a graph runs on any stream, so what its pool gets must be free of all earlier work, that of
// the stream that it was recorded on included.
TEST_P(DeviceAllocatorPoolsTest, APoolGetsNoMemoryThatEarlierWorkStillUses) {
  const auto allocator = Make();
  const DeviceAddress scratch = Need(allocator->Allocate(16_MiB, s1()));
  HeldStream held = Hold(s1());
  ASSERT_TRUE(IsOk(Fill(scratch, 16_MiB, 1, s1())));
  ASSERT_TRUE(IsOk(allocator->Free(scratch)));
  const PoolId pool = allocator->CreatePool();
  ASSERT_TRUE(IsOk(allocator->BeginPool(pool, Only(s1()))));
  const DeviceAddress graphs = Need(allocator->Allocate(32_MiB, s1()));
  ASSERT_TRUE(IsOk(allocator->EndPool(pool)));
  // As a replay on another stream does.
  ASSERT_TRUE(IsOk(Fill(graphs, 32_MiB, 2, s2())));
  ASSERT_TRUE(IsOk(second_.Synchronize()));
  held.Release();
  ASSERT_TRUE(IsOk(first_.Synchronize()));
  EXPECT_TRUE(Holds(graphs, 32_MiB, 2, s2()));
}

TEST_P(DeviceAllocatorPoolsTest, PoolsThatComeAndGoDoNotUseUpAddresses) {
  const auto allocator = Make();
  for (int i = 0; i < 200; ++i) {
    const PoolId pool = allocator->CreatePool();
    ASSERT_TRUE(IsOk(allocator->BeginPool(pool, nullptr)));
    const Result<DeviceAddress> large = allocator->Allocate(30_MiB, s1());
    ASSERT_TRUE(IsOk(large)) << "pool " << i;
    const Result<DeviceAddress> small = allocator->Allocate(1_KiB, s1());
    ASSERT_TRUE(IsOk(small)) << "pool " << i;
    ASSERT_TRUE(IsOk(allocator->EndPool(pool)));
    ASSERT_TRUE(IsOk(allocator->Free(*large)));
    ASSERT_TRUE(IsOk(allocator->Free(*small)));
    ASSERT_TRUE(IsOk(allocator->ReleasePool(pool)));
    ASSERT_TRUE(IsOk(first_.Synchronize()));
  }
  EXPECT_LE(device_->calls(Primitive::kReserveAddress), 20U);
  EXPECT_LE(allocator->reserved(), 200_MiB);
}

TEST_P(DeviceAllocatorPoolsTest, OfSeveralThatAreOpenTheLastBegunIsMeant) {
  const auto allocator = Make();
  const PoolId first = allocator->CreatePool();
  const PoolId second = allocator->CreatePool();
  const auto pool_of_next = [&] {
    const Result<DeviceAddress> block = allocator->Allocate(1_KiB, s1());
    return block.ok() ? Need(allocator->Find(*block)).pool : ~PoolId{0};
  };
  // The one with the larger number is not always the later one.
  ASSERT_TRUE(IsOk(allocator->BeginPool(second, nullptr)));
  ASSERT_TRUE(IsOk(allocator->BeginPool(first, nullptr)));
  EXPECT_EQ(pool_of_next(), first);
  ASSERT_TRUE(IsOk(allocator->EndPool(first)));
  EXPECT_EQ(pool_of_next(), second);
  ASSERT_TRUE(IsOk(
      allocator->BeginPool(first, [this](hal::StreamHandle stream) { return stream == s2(); })));
  EXPECT_EQ(pool_of_next(), second);  // the filter does not want this stream
  ASSERT_TRUE(IsOk(allocator->EndPool(second)));
  ASSERT_TRUE(IsOk(allocator->EndPool(first)));
  EXPECT_EQ(pool_of_next(), 0U);
}

// As docs/configuration.md says of graph_capture_record_stream_reuse.
TEST_P(DeviceAllocatorPoolsTest, WhatSeveralStreamsUsedInACaptureIsKeptUntilItEnds) {
  const auto allocator = Make();
  const PoolId pool = allocator->CreatePool();
  ASSERT_TRUE(IsOk(allocator->BeginPool(pool, nullptr)));
  hal::Capture capture = Need(hal::Capture::Begin(inner_, s1(), CaptureMode::kRelaxed));
  const hal::Event fork = Need(hal::Event::Create(inner_));
  const hal::Event join = Need(hal::Event::Create(inner_));
  ASSERT_TRUE(IsOk(fork.Record(s1())));
  ASSERT_TRUE(IsOk(inner_->WaitEvent(s2(), fork.get())));
  const DeviceAddress block = Need(allocator->Allocate(3_MiB, s1()));
  ASSERT_TRUE(IsOk(Fill(block, 64_KiB, 1, s2())));
  ASSERT_TRUE(IsOk(allocator->RecordUse(block, s2())));
  ASSERT_TRUE(IsOk(join.Record(s2())));
  ASSERT_TRUE(IsOk(inner_->WaitEvent(s1(), join.get())));
  ASSERT_TRUE(IsOk(allocator->Free(block)));
  const DeviceAddress inside = Need(allocator->Allocate(3_MiB, s1()));
  EXPECT_NE(inside, block);
  const hal::Graph graph = Need(capture.End());
  ASSERT_TRUE(IsOk(allocator->EmptyCache()));  // collects it
  EXPECT_EQ(allocator->Stats().pending_frees.current, 0);
  EXPECT_EQ(Need(allocator->Allocate(3_MiB, s1())), block);
  ASSERT_TRUE(IsOk(allocator->EndPool(pool)));
}

KEEL_WITH_BOTH_SOURCES(DeviceAllocatorPoolsTest);

}  // namespace
}  // namespace keel::memory
