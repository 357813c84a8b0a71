// The debug mode, as a program sees it: every wrong write and every wrong call is found and named,
// and nothing is found where a program is right.
#include "memory/debug_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <map>
#include <random>
#include <string>
#include <thread>

#include "base/forked_child_test.h"
#include "keel/hal/capture_mode.h"
#include "keel/hal/graph.h"
#include "keel/hal/module.h"
#include "keel/telemetry/tags.h"
#include "memory/device_allocator_test.h"
#include "memory/every_call_fails_test.h"

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
using Debug = AllocatorConfig::Debug;

// Writes one byte wherever it is told to, as a kernel with a wrong index does.
void PokeKernel(sim::KernelContext& context) {
  context.Buffer<std::uint8_t>(0)[0] = context.Value<std::uint8_t>(1);
}
constexpr sim::KernelParameter kPokeParameters[] = {sim::KernelParameter::Out(),
                                                    sim::KernelParameter::Value<std::uint8_t>()};
constexpr const char* kSet = "debug-memory-test";

hal::ModuleSource PokeModule() {
  static const bool registered = [] {
    const sim::KernelDefinition kernels[] = {{"poke", &PokeKernel, kPokeParameters}};
    return sim::RegisterKernels(kSet, kernels).ok();
  }();
  EXPECT_TRUE(registered);
  return hal::ModuleSource::Registered(kSet);
}

class DebugMemoryTest : public DeviceAllocatorTest {
 protected:
  DebugMemoryTest() : poke_(Need(module_.Find("poke"))) {}

  AllocatorConfig Config(Debug debug) const {
    AllocatorConfig config = DeviceAllocatorTest::Config();
    config.debug = debug;
    return config;
  }
  std::unique_ptr<DeviceAllocator> Make(Debug debug) {
    return DeviceAllocatorTest::Make(Config(debug));
  }
  // At an offset from the block, which may be outside of it.
  void Poke(DeviceAddress block, std::int64_t offset, std::uint8_t value,
            hal::StreamHandle stream) {
    const DeviceAddress at(block.value() + static_cast<std::uint64_t>(offset));
    const hal::KernelArg args[] = {hal::KernelArg::Out(at, 1_B), hal::KernelArg::Value(value)};
    ASSERT_TRUE(IsOk(inner_->LaunchKernel(stream, {.kernel = poke_, .args = args})));
  }

  hal::Module module_ = Need(hal::Module::Load(inner_, PokeModule()));
  hal::KernelHandle poke_;
};

testing::Matcher<const Status&> Finds(const testing::Matcher<std::string>& message) {
  return AllOf(testing::Property(&Status::code, StatusCode::kOutOfRange),
               testing::Property(&Status::ToString, message));
}

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

// --- Everything else goes on ------------------------------------------------------------------

TEST_P(DebugMemoryTest, BlocksAreWhatTheProgramAskedFor) {
  for (const Debug debug : {Debug::kGuards, Debug::kPoison, Debug::kFull}) {
    telemetry::EventLog log;
    ASSERT_TRUE(IsOk(log.Enable({})));
    const auto allocator = DeviceAllocatorTest::Make(Config(debug), &log);
    const telemetry::TagId tag = telemetry::InternTag("debug-blocks");
    std::int64_t requested = 0;
    std::vector<DeviceAddress> blocks;
    for (const Bytes alignment : {0_B, 512_B, 4_KiB, 2_MiB}) {
      for (const Bytes size : {1_B, 1000_B, 2_MiB}) {
        const DeviceAddress block =
            Need(allocator->Allocate(size, s1(), {.alignment = alignment, .tag = tag}));
        EXPECT_EQ(block.value() % std::max<std::uint64_t>(alignment.count(), 512), 0U);
        requested += static_cast<std::int64_t>(size.count());
        blocks.push_back(block);
        for (const Bytes at : {0_B, size - 1_B}) {
          const AllocationInfo info = Need(allocator->Find(block + at));
          EXPECT_EQ(info.address, block);
          EXPECT_EQ(info.requested, size);
          EXPECT_EQ(info.size.count(), RoundToQuantum(size.count()));
          EXPECT_EQ(info.stream, s1());
          EXPECT_EQ(info.tag, tag);
        }
        if (debug != Debug::kPoison) {
          EXPECT_FALSE(allocator->Find(DeviceAddress(block.value() - 1)).ok());
          EXPECT_FALSE(allocator->Find(block + Bytes(RoundToQuantum(size.count()))).ok());
        }
        EXPECT_EQ(log.Read(1).at(0).address, block);
      }
    }
    telemetry::MemoryStats stats = allocator->Stats();
    EXPECT_EQ(stats.requested_bytes.all.current, requested);
    EXPECT_EQ(stats.allocation.all.current, static_cast<std::int64_t>(blocks.size()));
    EXPECT_EQ(stats.tag_bytes.at("debug-blocks"), stats.allocated_bytes.all.current);
    // In the snapshot too a block begins where the program thinks it does; and all tile.
    std::vector<DeviceAddress> seen;
    for (const SegmentSnapshot& segment : allocator->Snapshot().segments) {
      DeviceAddress at = segment.address;
      for (const BlockSnapshot& block : segment.blocks) {
        EXPECT_EQ(block.address, at);
        at = at + block.size;
        if (block.state == BlockSnapshot::State::kAllocated) seen.push_back(block.address);
      }
      EXPECT_EQ(at, segment.address + segment.size);
    }
    EXPECT_THAT(seen, testing::UnorderedElementsAreArray(blocks));
    ASSERT_TRUE(IsOk(allocator->Pin(blocks.back(), 2_MiB)));
    ASSERT_TRUE(IsOk(allocator->Unpin(blocks.back(), 2_MiB)));
    for (const DeviceAddress block : blocks) {
      ASSERT_TRUE(IsOk(allocator->Free(block)));
      EXPECT_EQ(log.Read(1).at(0).address, block);
    }
    ASSERT_TRUE(IsOk(allocator->EmptyCache()));
    stats = allocator->Stats();
    for (const telemetry::PoolStat* each :
         {&stats.allocation, &stats.allocated_bytes, &stats.requested_bytes, &stats.active,
          &stats.active_bytes, &stats.reserved_bytes, &stats.segment, &stats.inactive_split}) {
      EXPECT_EQ(each->all.current, 0);
      EXPECT_EQ(each->all.allocated, each->all.freed);
    }
    EXPECT_EQ(allocator->Findings().found, 0U);
  }
}

TEST_P(DebugMemoryTest, OffThereIsNothingToCheck) {
  const auto allocator = Make(Debug::kOff);
  EXPECT_EQ(allocator->CheckMemory().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(allocator->Findings().found, 0U);
  EXPECT_EQ(allocator->Free(DeviceAddress(512)).code(), StatusCode::kInvalidArgument);
}

TEST_P(DebugMemoryTest, BlocksOutliveTheirStream) {
  const auto allocator = Make(Debug::kFull);
  hal::Stream gone = Need(hal::Stream::Create(inner_));
  const DeviceAddress kept = Need(allocator->Allocate(4_KiB, gone.get()));
  const DeviceAddress live = Need(allocator->Allocate(4_KiB, gone.get()));
  const DeviceAddress bad = Need(allocator->Allocate(4_KiB, gone.get()));
  ASSERT_TRUE(IsOk(allocator->Free(kept)));
  ASSERT_TRUE(IsOk(allocator->ForgetStream(gone.get())));
  ASSERT_TRUE(IsOk(gone.Close()));
  EXPECT_TRUE(IsOk(allocator->CheckMemory()));
  Poke(kept, 0, 1, s1());
  Poke(bad, 4096, 1, s1());
  ASSERT_TRUE(IsOk(first_.Synchronize()));
  EXPECT_TRUE(IsOk(allocator->Free(live)));
  EXPECT_THAT(allocator->Free(bad), Finds(HasSubstr("past the last byte")));
  EXPECT_THAT(allocator->EmptyCache(), Finds(HasSubstr("after the free of " + ToString(kept))));
  EXPECT_EQ(allocator->Findings().unchecked, 0U);
  EXPECT_EQ(allocator->reserved(), 0_B);
}

// No mode of anybody's capture is broken, and nothing of the debug mode gets into a graph.
TEST_P(DebugMemoryTest, ACaptureGoesOnAndItsGraphIsAsWithoutTheDebugMode) {
  using hal::CaptureMode;
  const auto allocator = Make(Debug::kFull);
  for (const CaptureMode mode :
       {CaptureMode::kGlobal, CaptureMode::kThreadLocal, CaptureMode::kRelaxed}) {
    const hal::ScopedCaptureMode strict(mode);
    const DeviceAddress before = Need(allocator->Allocate(2_MiB, s1()));
    const DeviceAddress other = Need(allocator->Allocate(2_MiB, s2()));
    const DeviceAddress kept = Need(allocator->Allocate(2_MiB, s1()));
    ASSERT_TRUE(IsOk(allocator->Free(kept)));
    const std::uint64_t unchecked = allocator->Findings().unchecked;
    const PoolId pool = allocator->CreatePool();
    hal::Capture capture = Need(hal::Capture::Begin(inner_, s1(), mode));
    ASSERT_TRUE(IsOk(allocator->BeginPool(pool, [this](auto stream) { return stream == s1(); })));
    const DeviceAddress first = Need(allocator->Allocate(64_KiB, s1()));
    ASSERT_TRUE(IsOk(Fill(first, 64_KiB, 5, s1())));
    ASSERT_TRUE(IsOk(allocator->Free(first)));
    const DeviceAddress second = Need(allocator->Allocate(3_MiB, s1()));
    ASSERT_TRUE(IsOk(Fill(second, 64_KiB, 6, s1())));
    ASSERT_TRUE(IsOk(allocator->Free(before)));
    EXPECT_GT(allocator->Findings().unchecked, unchecked);
    // Others are looked at meanwhile.
    EXPECT_TRUE(IsOk(allocator->CheckMemory()));
    EXPECT_TRUE(IsOk(allocator->Free(other)));
    EXPECT_TRUE(IsOk(allocator->EmptyCache()));
    EXPECT_EQ(Need(inner_->GetCaptureState(s1())), hal::CaptureState::kActive);
    ASSERT_TRUE(IsOk(allocator->EndPool(pool)));
    const hal::Graph graph = Need(capture.End());
    EXPECT_EQ(Need(inner_->GetNodes(graph.get())).size(), 2U);
    const hal::ScopedCaptureMode relaxed(CaptureMode::kRelaxed);
    const hal::GraphExec exec = Need(hal::GraphExec::Create(graph));
    for (int i = 0; i < 3; ++i) {
      // Writes to the freed block of its pool, and may.
      ASSERT_TRUE(IsOk(exec.Launch(s2())));
      EXPECT_TRUE(Holds(second, 64_KiB, 6, s2()));
      EXPECT_TRUE(IsOk(allocator->CheckMemory()));
    }
    ASSERT_TRUE(IsOk(allocator->Free(second)));
    ASSERT_TRUE(IsOk(allocator->ReleasePool(pool)));
    ASSERT_TRUE(IsOk(allocator->EmptyCache()));
    EXPECT_EQ(allocator->reserved(), 0_B);
  }
  EXPECT_EQ(allocator->Findings().found, 0U);
}

TEST_P(DebugMemoryTest, APoolsLiveBlocksAreGuarded) {
  const auto allocator = Make(Debug::kFull);
  const PoolId pool = allocator->CreatePool();
  ASSERT_TRUE(IsOk(allocator->BeginPool(pool, nullptr)));
  const DeviceAddress block = Need(allocator->Allocate(4_KiB, s1()));
  ASSERT_TRUE(IsOk(allocator->EndPool(pool)));
  EXPECT_EQ(Need(allocator->Find(block)).pool, pool);
  Poke(block, 4096, 1, s1());
  EXPECT_THAT(allocator->Free(block), Finds(HasSubstr("byte 4096")));
  // And its memory is reused there at once.
  ASSERT_TRUE(IsOk(allocator->BeginPool(pool, nullptr)));
  EXPECT_EQ(Need(allocator->Allocate(4_KiB, s1())), block);
  ASSERT_TRUE(IsOk(allocator->EndPool(pool)));
}

TEST_P(DebugMemoryTest, AfterTheDeviceIsLostFreeingStillWorks) {
  auto allocator = Make(Debug::kFull);
  std::vector<DeviceAddress> blocks;
  for (const Bytes size : {1_KiB, 4_KiB, 3_MiB, 3_MiB}) {
    blocks.push_back(Need(allocator->Allocate(size, s1())));
  }
  ASSERT_TRUE(IsOk(allocator->RecordUse(blocks[2], s2())));
  ASSERT_TRUE(IsOk(allocator->Free(blocks[0])));
  Poke(DeviceAddress(0x1000), 0, 1, s1());  // nothing is mapped there
  EXPECT_EQ(first_.Synchronize().code(), StatusCode::kDeviceLost);
  for (std::size_t i = 1; i < blocks.size(); ++i) {
    EXPECT_TRUE(IsOk(allocator->Free(blocks[i])));
    EXPECT_EQ(allocator->Free(blocks[i]).code(), StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(allocator->Allocate(1_KiB, s1()).status().code(), StatusCode::kDeviceLost);
  EXPECT_EQ(allocator->Trim(0_B).code(), StatusCode::kDeviceLost);
  static_cast<void>(allocator->CheckMemory().ok());
  EXPECT_EQ(allocator->Stats().allocation.all.current, 0);
  EXPECT_EQ(allocator->Check(), "");
  EXPECT_NE(allocator->Report(), "");
  allocator.reset();
}

TEST_P(DebugMemoryTest, InAForkedChildEverythingIsRefused) {
  auto allocator = Need(DeviceAllocator::Create(inner_, {.config = Config(Debug::kFull)}));
  const DeviceAddress block = Need(allocator->Allocate(4_KiB, s1()));
  const DeviceAddress freed = Need(allocator->Allocate(4_KiB, s1()));
  ASSERT_TRUE(IsOk(allocator->Free(freed)));
  const int status = InForkedChild([&] {
    const auto refused = [](const Status& each) {
      EXPECT_EQ(each.code(), StatusCode::kFailedPrecondition) << each.ToString();
    };
    refused(allocator->Allocate(1_KiB, s1()).status());
    refused(allocator->Free(block));
    refused(allocator->Free(freed));
    refused(allocator->CheckMemory());
    EXPECT_EQ(allocator->Findings().found, 0U);
    allocator.reset();
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(IsOk(allocator->CheckMemory()));
  EXPECT_TRUE(IsOk(allocator->Free(block)));
}

// Random calls of several threads on streams whose commands are delayed at random, every block used
// to its last byte and by more than one stream: nothing is found.
TEST_P(DebugMemoryTest, NothingIsFoundInAProgramThatIsRight) {
  constexpr int kThreads = 3;
  constexpr int kOperations = 400;
  first_ = {};
  second_ = {};
  module_ = {};
  Open({.devices = 1, .memory = 256_MiB, .arena = 30_GiB, .seed = 11, .delay_us = 20});
  std::vector<hal::Stream> streams;
  for (int i = 0; i < 3; ++i) streams.push_back(Need(hal::Stream::Create(device_)));
  AllocatorConfig config = Config(Debug::kFull);
  config.limit = 48_MiB;  // met, so that what is kept is given up; keeps 3
  auto allocator = Need(DeviceAllocator::Create(device_, {.config = config}));
  struct Live {
    DeviceAddress address;
    Bytes size;
    hal::StreamHandle stream;
    std::uint8_t value = 0;
  };
  Mutex mutex;
  std::vector<Live> handed;
  const auto run = [&](unsigned seed) {
    std::mt19937 random(seed);
    std::vector<Live> mine;
    const auto finish = [&](const Live& block) {
      EXPECT_TRUE(Holds(block.address, block.size, block.value, block.stream));
      if (random() % 3 == 0) {
        const hal::StreamHandle other = streams[random() % streams.size()].get();
        const hal::EventHandle event = Need(device_->CreateEvent({}));
        ASSERT_TRUE(IsOk(device_->RecordEvent(event, block.stream)));
        ASSERT_TRUE(IsOk(device_->WaitEvent(other, event)));
        ASSERT_TRUE(IsOk(device_->DestroyEvent(event)));
        ASSERT_TRUE(IsOk(Fill(block.address, block.size, 0x33, other)));
        ASSERT_TRUE(IsOk(allocator->RecordUse(block.address, other)));
      }
      ASSERT_TRUE(IsOk(random() % 2 == 0 ? allocator->Free(block.address)
                                         : allocator->Free(block.address, block.size)));
    };
    for (int i = 0; i < kOperations && !HasFailure(); ++i) {
      const auto what = random() % 100;
      if (what < 55) {
        Live block{.size = Bytes(1 + random() % (random() % 8 == 0 ? 6 << 20 : 20'000)),
                   .stream = streams[random() % streams.size()].get(),
                   .value = static_cast<std::uint8_t>(random())};
        const Result<DeviceAddress> address = allocator->Allocate(
            block.size, block.stream, {.alignment = random() % 20 == 0 ? 64_KiB : 0_B});
        if (!address.ok()) {
          ASSERT_EQ(address.status().code(), StatusCode::kResourceExhausted);
          while (mine.size() > 2) {
            finish(mine.back());
            mine.pop_back();
          }
          continue;
        }
        block.address = *address;
        ASSERT_TRUE(IsOk(Fill(block.address, block.size, block.value, block.stream)));
        if (random() % 8 == 0) {
          const MutexLock lock(mutex);
          handed.push_back(block);
        } else {
          mine.push_back(block);
        }
      } else if (what < 97) {
        std::optional<Live> block;
        {
          const MutexLock lock(mutex);
          if (!handed.empty()) {
            block = handed.back();
            handed.pop_back();
          }
        }
        if (!block && !mine.empty()) {
          const std::size_t which = random() % mine.size();
          block = mine[which];
          mine[which] = mine.back();
          mine.pop_back();
        }
        if (block) finish(*block);
      } else if (what < 99) {
        ASSERT_TRUE(IsOk(allocator->CheckMemory()));
      } else {
        ASSERT_TRUE(IsOk(allocator->Trim(Bytes(random() % 64 << 20))));
      }
    }
    for (const Live& block : mine) finish(block);
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) threads.emplace_back(run, i + 1);
  for (std::thread& thread : threads) thread.join();
  for (const Live& block : handed) ASSERT_TRUE(IsOk(allocator->Free(block.address)));
  ASSERT_TRUE(IsOk(allocator->CheckMemory()));
  ASSERT_TRUE(IsOk(allocator->EmptyCache()));
  const DebugFindings findings = allocator->Findings();
  EXPECT_EQ(findings.found, 0U);
  EXPECT_EQ(findings.unchecked, 0U);
  EXPECT_EQ(findings.kept, 0_B);
  EXPECT_EQ(allocator->Check(), "");
  EXPECT_EQ(allocator->reserved(), 0_B);
  const telemetry::MemoryStats stats = allocator->Stats();
  EXPECT_EQ(stats.allocation.all.current, 0);
  EXPECT_EQ(stats.active_bytes.all.current, 0);
  EXPECT_EQ(stats.pending_frees.current, 0);
  EXPECT_GT(stats.num_alloc_retries, 0);
  allocator.reset();
  streams.clear();
  ExpectNothingLeft();
}

// --- Failing drivers --------------------------------------------------------------------------

TEST_P(DebugMemoryTest, EveryCallMayFailAndNothingLeaksOrIsFound) {
  for (const Debug debug : {Debug::kGuards, Debug::kFull}) {
    AllocatorConfig config = Config(debug);
    config.limit = 6_MiB;  // three segments; keeps 384 KiB
    const auto scenario = [&]() -> Status {
      KEEL_ASSIGN(const auto allocator,
                  DeviceAllocator::Create(
                      device_, {.config = config, .now_ns = [this] { return now_ns_.load(); }}));
      const auto expect_right = [&](std::int64_t live) {
        EXPECT_EQ(allocator->Check(), "");
        EXPECT_EQ(allocator->Stats().allocation.all.current, live);
        EXPECT_EQ(allocator->Findings().found, 0U);
      };
      std::vector<DeviceAddress> blocks;
      for (const Bytes size : {1_KiB, 200_KiB, 8_KiB}) {
        const Result<DeviceAddress> block = allocator->Allocate(size, s1());
        expect_right(static_cast<std::int64_t>(blocks.size() + (block.ok() ? 1 : 0)));
        KEEL_TRY(block.status());
        blocks.push_back(*block);
      }
      KEEL_TRY(allocator->CheckMemory());
      KEEL_TRY(allocator->RecordUse(blocks[1], s2()));
      // Freed whatever fails.
      Status first;
      for (std::size_t i = 0; i < blocks.size(); ++i) {
        Status freed = allocator->Free(blocks[i]);
        expect_right(static_cast<std::int64_t>(blocks.size() - i - 1));
        if (first.ok()) first = std::move(freed);
      }
      KEEL_TRY(std::move(first));
      KEEL_TRY(allocator->CheckMemory());
      // Of a stream that is gone.
      hal::Stream gone = Need(hal::Stream::Create(inner_));
      Result<DeviceAddress> lost = allocator->Allocate(4_KiB, gone.get());
      const Status forgotten = allocator->ForgetStream(gone.get());
      if (!forgotten.ok()) {
        EXPECT_TRUE(IsOk(gone.Synchronize()));
        EXPECT_TRUE(IsOk(allocator->ForgetStream(gone.get())));
      }
      EXPECT_TRUE(IsOk(gone.Close()));
      KEEL_TRY(lost.status());
      KEEL_TRY(allocator->Free(*lost));
      KEEL_TRY(allocator->CheckMemory());
      // Until one needs the memory of what is kept.
      for (int i = 0; i < 6 && (i < 3 || allocator->Findings().kept_blocks != 0); ++i) {
        KEEL_TRY(allocator->Allocate(900_KiB, s2()).status());
      }
      EXPECT_EQ(allocator->Findings().kept_blocks, 0U);
      return allocator->EmptyCache();
    };
    const std::uint64_t calls = SweepCalls(*device_, scenario, [this] {
      ASSERT_TRUE(IsOk(inner_->Synchronize(Deadline::Never())));
      ExpectNothingLeft();
    });
    EXPECT_GT(calls, 40U);
  }
}

TEST_P(DebugMemoryTest, ARequestThatCannotBeFilledGivesItsBlockBack) {
  const auto allocator = Make(Debug::kFull);
  for (int fill = 1; fill <= 3; ++fill) {
    device_->ClearRules();
    device_->FailNth(Primitive::kFill, fill, Internal("injected"));
    EXPECT_EQ(allocator->Allocate(4_KiB, s1()).status().code(), StatusCode::kInternal);
    device_->ClearRules();
    ASSERT_TRUE(IsOk(allocator->EmptyCache()));
    EXPECT_EQ(allocator->reserved(), 0_B);
  }
}

KEEL_WITH_BOTH_SOURCES(DebugMemoryTest);

// Each request a call of the driver, and debug mode on top.
TEST_F(DeviceAllocatorFixture, TheDebugModeWorksInPassThroughMode) {
  const auto allocator =
      Make({.backend = AllocatorConfig::Backend::kPassthrough, .debug = Debug::kFull});
  const DeviceAddress good = Need(allocator->Allocate(1000_B, s1()));
  const DeviceAddress bad = Need(allocator->Allocate(1000_B, s1()));
  ASSERT_TRUE(IsOk(Fill(bad, 1001_B, 1, s1())));
  EXPECT_TRUE(IsOk(allocator->Free(good)));
  EXPECT_THAT(allocator->Free(bad), Finds(HasSubstr("byte 1000 changed")));
  ASSERT_TRUE(IsOk(Fill(good, 1_B, 1, s1())));
  EXPECT_THAT(allocator->EmptyCache(), Finds(HasSubstr("byte 0 changed")));
  EXPECT_EQ(allocator->reserved(), 0_B);
}

}  // namespace
}  // namespace keel::memory
