// The debug mode, as a program that is right sees it: nothing is found, and everything else goes on
// as without it, whatever the driver does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include "base/forked_child_test.h"
#include "keel/hal/capture_mode.h"
#include "keel/hal/graph.h"
#include "keel/telemetry/tags.h"
#include "memory/debug_memory_test.h"
#include "memory/every_call_fails_test.h"

namespace keel::memory {
namespace {

using ::testing::HasSubstr;

class DebugMemoryUseTest : public DebugMemoryTest {};

// --- Everything else goes on ------------------------------------------------------------------

TEST_P(DebugMemoryUseTest, BlocksAreWhatTheProgramAskedFor) {
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
          EXPECT_TRUE(allocator->FindBlock(block).has_value());
          EXPECT_FALSE(allocator->FindBlock(block + 1_B).has_value());
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

TEST_P(DebugMemoryUseTest, OffThereIsNothingToCheck) {
  const auto allocator = Make(Debug::kOff);
  EXPECT_EQ(allocator->CheckMemory().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(allocator->Findings().found, 0U);
  EXPECT_EQ(allocator->Free(DeviceAddress(512)).code(), StatusCode::kInvalidArgument);
}

TEST_P(DebugMemoryUseTest, BlocksOutliveTheirStream) {
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
TEST_P(DebugMemoryUseTest, ACaptureGoesOnAndItsGraphIsAsWithoutTheDebugMode) {
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

TEST_P(DebugMemoryUseTest, APoolsLiveBlocksAreGuarded) {
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

TEST_P(DebugMemoryUseTest, AfterTheDeviceIsLostFreeingStillWorks) {
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

TEST_P(DebugMemoryUseTest, InAForkedChildEverythingIsRefused) {
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
TEST_P(DebugMemoryUseTest, NothingIsFoundInAProgramThatIsRight) {
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

TEST_P(DebugMemoryUseTest, EveryCallMayFailAndNothingLeaksOrIsFound) {
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

TEST_P(DebugMemoryUseTest, ARequestThatCannotBeFilledGivesItsBlockBack) {
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

KEEL_WITH_BOTH_SOURCES(DebugMemoryUseTest);

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
