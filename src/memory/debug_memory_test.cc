// The debug mode, as a program that is wrong sees it: every wrong write and every wrong call is
// found and named.
#include "memory/debug_memory_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <string>
#include <thread>

#include "keel/telemetry/tags.h"

namespace keel::memory {

// Visible from outside, so that reports can have their names.
[[gnu::noinline]] DeviceAddress AllocateWithAName(DeviceAllocator& allocator, Bytes size,
                                                  hal::StreamHandle stream) {
  const DeviceAddress address = Need(allocator.Allocate(size, stream));
  asm volatile("");  // no tail call
  return address;
}
[[gnu::noinline]] Status FreeWithAName(DeviceAllocator& allocator, DeviceAddress address) {
  Status status = allocator.Free(address);
  asm volatile("");
  return status;
}

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// --- Guards -----------------------------------------------------------------------------------

TEST_P(DebugMemoryTest, AByteTooFarIsFoundAtFreeWithEverythingThatNamesTheBlock) {
  const auto allocator = Make(Debug::kGuards);
  const telemetry::ScopedTag tag("weights");
  const DeviceAddress block = AllocateWithAName(*allocator, 1000_B, s1());
  Poke(block, 999, 1, s1());  // its own
  Poke(block, 1000, 7, s1());
  const Status status = FreeWithAName(*allocator, block);
  EXPECT_THAT(status, Finds(AllOf(HasSubstr("past the last byte"), HasSubstr(ToString(block)),
                                  HasSubstr("(1000 bytes, tag 'weights')"),
                                  HasSubstr("byte 1000 changed, the first from 0xb9 to 0x07"),
                                  HasSubstr("AllocateWithAName"), HasSubstr("FreeWithAName"))));
  // Freed all the same.
  EXPECT_EQ(allocator->Stats().allocation.all.current, 0);
  EXPECT_EQ(allocator->Findings().found, 1U);
  ASSERT_EQ(allocator->Findings().reports.size(), 1U);
  EXPECT_EQ(allocator->Findings().reports[0], status.message());
  EXPECT_THAT(allocator->Report(), HasSubstr("1 errors found"));
}

TEST_P(DebugMemoryTest, EveryByteOfAGuardCounts) {
  for (const Debug debug : {Debug::kGuards, Debug::kFull}) {
    const auto allocator = Make(debug);
    for (const Bytes size : {1_B, 511_B, 512_B, 513_B, 64_KiB, 1_MiB, 3_MiB + 4_B}) {
      const auto end = static_cast<std::int64_t>(size.count());
      const auto most = static_cast<std::int64_t>(RoundToQuantum(size.count())) + 511;
      for (const std::int64_t offset :
           {std::int64_t{-512}, std::int64_t{-1}, end, end + 100, most}) {
        SCOPED_TRACE(std::to_string(offset) + " of " + std::to_string(end));
        const DeviceAddress block = Need(allocator->Allocate(size, s1()));
        Poke(block, offset, 0, s1());
        EXPECT_THAT(allocator->CheckMemory(),
                    Finds(AllOf(HasSubstr("byte " + std::to_string(offset) + " changed"),
                                HasSubstr(offset < 0 ? "before the first byte" : "past the last"),
                                Not(HasSubstr("freed at")))));
        EXPECT_THAT(allocator->Free(block), Finds(HasSubstr("freed at")));
      }
      const DeviceAddress good = Need(allocator->Allocate(size, s1()));
      ASSERT_TRUE(IsOk(Fill(good, size, 0, s1())));
      EXPECT_TRUE(IsOk(allocator->CheckMemory()));
      EXPECT_TRUE(IsOk(allocator->Free(good)));
    }
    EXPECT_EQ(allocator->Findings().found, 7U * 5U);
    EXPECT_EQ(allocator->Findings().unchecked, 0U);
    EXPECT_EQ(allocator->Check(), "");
  }
}

TEST_P(DebugMemoryTest, SeveralBytesAreCounted) {
  const auto allocator = Make(Debug::kGuards);
  const DeviceAddress block = Need(allocator->Allocate(100_B, s1()));
  ASSERT_TRUE(IsOk(Fill(DeviceAddress(block.value() + 90), 20_B, 0, s1())));
  Poke(block, 200, 0, s1());
  EXPECT_THAT(allocator->Free(block), Finds(HasSubstr("11 bytes of 100 to 200 changed")));
}

TEST_P(DebugMemoryTest, CheckMemoryNamesEachBlockOnceInTheLog) {
  const auto allocator = Make(Debug::kGuards);
  std::vector<DeviceAddress> blocks;
  for (int i = 0; i < 5; ++i)
    blocks.push_back(Need(allocator->Allocate(4_KiB, i < 3 ? s1() : s2())));
  EXPECT_TRUE(IsOk(allocator->CheckMemory()));
  Poke(blocks[1], 4096, 1, s1());
  Poke(blocks[4], -1, 1, s2());
  SetLogLevel(LogLevel::kError);
  testing::internal::CaptureStderr();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(allocator->CheckMemory().code(), StatusCode::kOutOfRange);
    EXPECT_EQ(allocator->Findings().found, 2U);
  }
  for (const DeviceAddress block : blocks) {
    const StatusCode expected =
        block == blocks[1] || block == blocks[4] ? StatusCode::kOutOfRange : StatusCode::kOk;
    EXPECT_EQ(allocator->Free(block).code(), expected);
  }
  const std::string log = testing::internal::GetCapturedStderr();
  for (const DeviceAddress block : {blocks[1], blocks[4]}) {
    const std::size_t at = log.find("of " + ToString(block) + " ");
    EXPECT_NE(at, std::string::npos);
    EXPECT_EQ(log.find("of " + ToString(block) + " ", at + 1), std::string::npos);
  }
  EXPECT_EQ(allocator->Findings().found, 2U);
  EXPECT_TRUE(IsOk(allocator->CheckMemory()));
}

// What another stream writes is seen when it is done, which is after Free.
TEST_P(DebugMemoryTest, AnotherStreamsWriteIsFoundWhenThatStreamIsDone) {
  for (const Debug debug : {Debug::kGuards, Debug::kFull}) {
    const auto allocator = Make(debug);
    const DeviceAddress block = Need(allocator->Allocate(2_MiB, s1()));
    ASSERT_TRUE(IsOk(first_.Synchronize()));
    HeldStream held = Hold(s2());
    Poke(block, 2 << 20, 3, s2());
    // Not overwritten while the other stream reads it.
    ASSERT_TRUE(IsOk(Fill(block, 2_MiB, 5, s1())));
    ASSERT_TRUE(IsOk(allocator->RecordUse(block, s2())));
    ASSERT_TRUE(IsOk(allocator->Free(block)));
    EXPECT_TRUE(Holds(block, 2_MiB, 5, s1()));
    EXPECT_EQ(allocator->Stats().pending_frees.current, 1);
    held.Release();
    EXPECT_THAT(allocator->EmptyCache(), Finds(HasSubstr("byte 2097152 changed")));
    EXPECT_EQ(allocator->Stats().pending_frees.current, 0);
    EXPECT_EQ(allocator->reserved(), 0_B);
  }
}

// --- Poison -----------------------------------------------------------------------------------

TEST_P(DebugMemoryTest, ContentsAreOverwrittenWhenHandedOutAndWhenFreed) {
  for (const Debug debug : {Debug::kPoison, Debug::kFull}) {
    const auto allocator = Make(debug);
    for (const Bytes size : {1_B, 1000_B, 3_MiB}) {
      const DeviceAddress block = Need(allocator->Allocate(size, s1()));
      EXPECT_TRUE(Holds(block, size, DebugMemory::kNew, s1()));
      ASSERT_TRUE(IsOk(Fill(block, size, 1, s1())));
      ASSERT_TRUE(IsOk(allocator->Free(block)));
      EXPECT_TRUE(Holds(block, size, DebugMemory::kFreed, s1()));
      // And not handed out again at once.
      EXPECT_NE(Need(allocator->Allocate(size, s1())), block);
    }
  }
  // Guards alone leave contents be.
  const auto allocator = Make(Debug::kGuards);
  const DeviceAddress block = Need(allocator->Allocate(1_KiB, s1()));
  ASSERT_TRUE(IsOk(Fill(block, 1_KiB, 1, s1())));
  ASSERT_TRUE(IsOk(allocator->Free(block)));
  EXPECT_EQ(Need(allocator->Allocate(1_KiB, s1())), block);
  EXPECT_TRUE(Holds(block, 1_KiB, 1, s1()));
}

TEST_P(DebugMemoryTest, AWriteAfterFreeIsFoundByWhoeverLooksFirst) {
  const auto use_after_free = [&](DeviceAllocator& allocator) {
    const telemetry::ScopedTag tag("activations");
    const DeviceAddress block = AllocateWithAName(allocator, 3_MiB, s1());
    EXPECT_TRUE(IsOk(FreeWithAName(allocator, block)));
    Poke(block, 2'000'000, 0x42, s1());
    return AllOf(HasSubstr("after the free of " + ToString(block)),
                 HasSubstr("(3145728 bytes, tag 'activations')"),
                 HasSubstr("byte 2000000 changed, the first from 0xde to 0x42"),
                 HasSubstr("AllocateWithAName"), HasSubstr("FreeWithAName"));
  };
  for (const Debug debug : {Debug::kPoison, Debug::kFull}) {
    auto allocator = Make(debug);
    {
      const auto report = use_after_free(*allocator);
      EXPECT_THAT(allocator->CheckMemory(), Finds(report));
      EXPECT_TRUE(IsOk(allocator->CheckMemory()));  // said, and gone
      EXPECT_EQ(allocator->Findings().kept_blocks, 0U);
    }
    {
      const auto report = use_after_free(*allocator);
      EXPECT_THAT(allocator->EmptyCache(), Finds(report));
      EXPECT_EQ(allocator->reserved(), 0_B);
    }
    {
      // Pushed out by later frees.
      const auto report = use_after_free(*allocator);
      Status found;
      for (int i = 0; i < 100 && found.ok(); ++i) {
        found = allocator->Free(Need(allocator->Allocate(2_MiB, s2())));
      }
      EXPECT_THAT(found, Finds(report));
    }
    EXPECT_EQ(allocator->Findings().found, 3U);
    {
      const auto report = use_after_free(*allocator);
      SetLogLevel(LogLevel::kError);
      testing::internal::CaptureStderr();
      allocator.reset();
      EXPECT_THAT(testing::internal::GetCapturedStderr(), report);
      SetLogLevel(LogLevel::kOff);
    }
  }
}

TEST_P(DebugMemoryTest, TheEndOfAnAllocatorTellsAboutLiveBlocksToo) {
  auto allocator = Make(Debug::kGuards);
  const DeviceAddress block = Need(allocator->Allocate(1_KiB, s1()));
  Poke(block, 1024, 1, s1());
  SetLogLevel(LogLevel::kError);
  testing::internal::CaptureStderr();
  allocator.reset();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("byte 1024 changed"));
  SetLogLevel(LogLevel::kOff);
  ExpectNothingLeft();
}

TEST_P(DebugMemoryTest, WhatIsKeptIsBoundedAndTheOldestLeaveFirst) {
  // A sixteenth of the device's GiB.
  constexpr std::uint64_t kMost = 64 << 20;
  const auto allocator = Make(Debug::kPoison);
  std::vector<DeviceAddress> freed;
  for (int i = 0; i < 24; ++i) freed.push_back(Need(allocator->Allocate(4_MiB, s1())));
  for (const DeviceAddress block : freed) {
    ASSERT_TRUE(IsOk(allocator->Free(block)));
    EXPECT_LE(allocator->Findings().kept.count(), kMost);
  }
  EXPECT_EQ(allocator->Findings().kept_blocks, 16U);
  // The last 16 still are.
  for (std::size_t i = 0; i < freed.size(); ++i) {
    EXPECT_EQ(Holds(freed[i], 4_MiB, DebugMemory::kFreed, s1()), true);
    Poke(freed[i], 0, 1, s1());
  }
  EXPECT_EQ(allocator->CheckMemory().code(), StatusCode::kOutOfRange);
  EXPECT_EQ(allocator->Findings().found, 16U);
  // More than may be kept at all is given back at once.
  const DeviceAddress large = Need(allocator->Allocate(65_MiB, s1()));
  ASSERT_TRUE(IsOk(allocator->Free(large)));
  EXPECT_EQ(allocator->Findings().kept_blocks, 0U);
}

TEST_P(DebugMemoryTest, WhatIsKeptIsGivenUpBeforeARequestFails) {
  for (const Debug debug : {Debug::kPoison, Debug::kFull}) {
    AllocatorConfig config = Config(debug);
    config.limit = 256_MiB;  // keeps 16
    const auto allocator = DeviceAllocatorTest::Make(config);
    const DeviceAddress rest = Need(allocator->Allocate(200_MiB, s1()));
    const DeviceAddress freed = Need(allocator->Allocate(12_MiB, s2()));
    ASSERT_TRUE(IsOk(allocator->Free(freed)));
    Poke(freed, 5, 1, s2());
    ASSERT_EQ(allocator->Findings().kept_blocks, 1U);
    const Result<DeviceAddress> large = allocator->Allocate(50_MiB, s1());
    EXPECT_TRUE(IsOk(large));
    EXPECT_EQ(allocator->Findings().kept_blocks, 0U);
    EXPECT_EQ(allocator->Findings().found, 1U);  // and is no failure of that request
    EXPECT_EQ(allocator->Allocate(100_MiB, s1()).status().code(), StatusCode::kResourceExhausted);
    EXPECT_TRUE(IsOk(allocator->Free(rest)));
  }
}

// --- Wrong calls ------------------------------------------------------------------------------

TEST_P(DebugMemoryTest, AFreeTooManyNamesTheBlockAndItsFirstFree) {
  for (const Debug debug : {Debug::kGuards, Debug::kPoison, Debug::kFull}) {
    const auto allocator = Make(debug);
    const telemetry::ScopedTag tag("kv-cache");
    const DeviceAddress block = AllocateWithAName(*allocator, 4_KiB, s1());
    ASSERT_TRUE(IsOk(FreeWithAName(*allocator, block)));
    const auto report =
        AllOf(HasSubstr(ToString(block) + " (4096 bytes, tag 'kv-cache') was freed before"),
              HasSubstr("AllocateWithAName"), HasSubstr("FreeWithAName"));
    // While it is kept, and when it is gone.
    for (int i = 0; i < 2; ++i) {
      for (const Status& status : {allocator->Free(block), allocator->Free(block, 4_KiB),
                                   allocator->RecordUse(block, s2())}) {
        EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
        EXPECT_THAT(status.ToString(), report);
      }
      EXPECT_THAT(allocator->Free(block + 100_B).ToString(),
                  HasSubstr("is byte 100 of " + ToString(block) +
                            " (4096 bytes, tag 'kv-cache'), which was freed before"));
      ASSERT_TRUE(IsOk(allocator->EmptyCache()));
    }
    EXPECT_EQ(allocator->Findings().found, 8U);
    EXPECT_EQ(allocator->Stats().allocation.all.freed, 1);
  }
}

TEST_P(DebugMemoryTest, AnAddressInsideOfABlockNamesIt) {
  for (const Debug debug : {Debug::kGuards, Debug::kPoison, Debug::kFull}) {
    const auto allocator = Make(debug);
    const DeviceAddress block = AllocateWithAName(*allocator, 4_KiB, s1());
    const Status inside = allocator->Free(block + 512_B);
    EXPECT_EQ(inside.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(inside.ToString(),
                AllOf(HasSubstr("is byte 512 of " + ToString(block) + " (4096 bytes, no tag)"),
                      HasSubstr("is live"), HasSubstr("AllocateWithAName")));
    const Status unknown = allocator->Free(DeviceAddress(0x1234000));
    EXPECT_EQ(unknown.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(unknown.ToString(), HasSubstr("never allocated here"));
    const Status size = allocator->Free(block, 4095_B);
    EXPECT_EQ(size.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(size.ToString(),
                AllOf(HasSubstr("is freed with 4095 bytes"), HasSubstr("AllocateWithAName")));
    EXPECT_TRUE(IsOk(allocator->Free(block, 4_KiB)));
    EXPECT_TRUE(IsOk(allocator->Free(DeviceAddress())));
  }
}

TEST_P(DebugMemoryTest, OfRacingFreesExactlyOneSucceeds) {
  for (const Debug debug : {Debug::kGuards, Debug::kPoison, Debug::kFull}) {
    const auto allocator = Make(debug);
    for (const Bytes size : {4_KiB, 2_MiB}) {
      constexpr int kBlocks = 24;
      std::vector<DeviceAddress> blocks;
      for (int i = 0; i < kBlocks; ++i) blocks.push_back(Need(allocator->Allocate(size, s1())));
      std::barrier<> start(2);
      std::atomic<int> succeeded{0};
      const auto free_all = [&] {
        for (const DeviceAddress block : blocks) {
          start.arrive_and_wait();
          const Status status = allocator->Free(block);
          if (status.ok()) succeeded.fetch_add(1);
          EXPECT_TRUE(status.ok() || status.code() == StatusCode::kInvalidArgument);
        }
      };
      std::thread other(free_all);
      free_all();
      other.join();
      EXPECT_EQ(succeeded, kBlocks);
      EXPECT_EQ(allocator->Stats().allocation.all.current, 0);
      EXPECT_EQ(allocator->Check(), "");
    }
  }
}

// Without the debug mode too, for large blocks: in each of many rounds two threads meet and free
// the same block at once, and find the arena's lock taken by a third that walks over many blocks.
TEST_P(DebugMemoryTest, OfRacingFreesOfALargeBlockExactlyOneSucceedsInEveryMode) {
  constexpr int kRounds = 200;
  constexpr int kOthers = 300;
  const auto allocator = Make(Debug::kOff);
  for (int i = 0; i < kOthers; ++i) Need(allocator->Allocate(2_MiB, s1()));
  std::atomic<bool> stop{false};
  std::thread walker([&] {
    while (!stop) static_cast<void>(allocator->Snapshot());
  });
  std::atomic<std::uint64_t> block{0};
  std::atomic<int> arrived{0};
  std::atomic<int> succeeded{0};
  const auto meet = [&](int count) {
    arrived.fetch_add(1);
    for (int spins = 0; arrived.load() < count; ++spins) {
      if (spins > 10'000) std::this_thread::yield();
    }
  };
  const auto free_one = [&] {
    const Status status = allocator->Free(DeviceAddress(block.load()));
    if (status.ok()) succeeded.fetch_add(1);
    EXPECT_TRUE(status.ok() || status.code() == StatusCode::kInvalidArgument);
  };
  std::thread other([&] {
    for (int i = 0; i < kRounds; ++i) {
      meet(4 * i + 2);
      free_one();
      meet(4 * i + 4);
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    block = Need(allocator->Allocate(2_MiB, s1())).value();
    meet(4 * i + 2);
    free_one();
    meet(4 * i + 4);
  }
  other.join();
  stop = true;
  walker.join();
  EXPECT_EQ(succeeded, kRounds);
  EXPECT_EQ(allocator->Stats().allocation.all.current, kOthers);
  EXPECT_EQ(allocator->Check(), "");
}

KEEL_WITH_BOTH_SOURCES(DebugMemoryTest);

}  // namespace
}  // namespace keel::memory
