// A device allocator at the edges of a process: in a forked child, while static objects are
// destroyed, and in threads that free while they end.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "base/forked_child_test.h"
#include "memory/device_allocator_test.h"

namespace keel::memory {
namespace {

class DeviceAllocatorForkTest : public DeviceAllocatorTest {
 protected:
  void SetUp() override { SetLogLevel(LogLevel::kDebug); }
};

// A9: also while another thread of the parent is inside the allocator.
TEST_P(DeviceAllocatorForkTest, InAChildEverythingIsRefusedAndNothingHangs) {
  // Not through the wrapper, whose books have a lock.
  auto allocator = Need(DeviceAllocator::Create(inner_, {.config = Config()}));
  const DeviceAddress large = Need(allocator->Allocate(4_MiB, s1()));
  const DeviceAddress small = Need(allocator->Allocate(4_KiB, s1()));
  const DeviceAddress cached = Need(allocator->Allocate(8_KiB, s1()));
  ASSERT_TRUE(IsOk(allocator->Free(cached)));
  ASSERT_TRUE(IsOk(allocator->RecordUse(large, s2())));
  // Everything in it changes: the ends that streams are asked for, blocks that wait, segments,
  // events, caches of threads.
  std::optional<WorkingThread> busy([&] {
    const DeviceAddress block = Need(allocator->Allocate(2_MiB, s2()));
    const DeviceAddress other = Need(allocator->Allocate(2_KiB, s2()));
    static_cast<void>(allocator->RecordUse(block, s1()).ok());
    static_cast<void>(allocator->Stats());
    static_cast<void>(allocator->Free(other).ok());
    static_cast<void>(allocator->Free(block).ok());
    static_cast<void>(allocator->Trim(0_B).ok());
  });
  // Of two kinds, one in memory of its own and one without: half of each is neither.
  const auto counted = std::make_shared<int>(0);
  const std::pair<std::uint64_t, std::uint64_t> plain{1, 2};
  std::optional<WorkingThread> listening([&] {
    allocator->SetMoveListener([counted](DeviceAddress, Bytes) { ++*counted; });
    allocator->SetMoveListener([plain](DeviceAddress, Bytes) { static_cast<void>(plain); });
    allocator->RemoveOutOfMemoryCallback(allocator->AddOutOfMemoryCallback([counted](Bytes) {}));
  });
  for (int round = 0; round < kForks; ++round) {
    const int status = InForkedChild([&] {
      const auto refused = [](const Status& each) {
        EXPECT_EQ(each.code(), StatusCode::kFailedPrecondition) << each.ToString();
      };
      refused(allocator->Allocate(1_KiB, s1()).status());
      refused(allocator->Allocate(64_MiB, s1()).status());
      refused(allocator->Free(large));
      refused(allocator->Free(small, 4_KiB));
      refused(allocator->RecordUse(small, s2()));
      refused(allocator->Find(small).status());
      refused(allocator->ForgetStream(s1()));
      refused(allocator->Trim(0_B));
      refused(allocator->BeginPool(1, nullptr));
      refused(allocator->EndPool(1));
      refused(allocator->ReleasePool(1));
      refused(allocator->Pin(large, 2_MiB));
      EXPECT_EQ(allocator->Stats(), telemetry::MemoryStats());
      EXPECT_TRUE(allocator->Snapshot().segments.empty());
      allocator->ResetPeakStats();
      allocator->SetMoveListener(nullptr);
      allocator->RemoveOutOfMemoryCallback(allocator->AddOutOfMemoryCallback([](Bytes) {}));
      allocator.reset();
    });
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status << " in " << round;
  }
  busy.reset();
  listening.reset();
  allocator->SetMoveListener(nullptr);
  // The parent has noticed nothing.
  EXPECT_TRUE(IsOk(allocator->Free(large)));
  EXPECT_TRUE(IsOk(allocator->Free(small)));
  EXPECT_EQ(allocator->Check(), "");
  allocator.reset();
  EXPECT_EQ(controls().used(), 0_B);
}

KEEL_WITH_BOTH_SOURCES(DeviceAllocatorForkTest);

class DeviceAllocatorExitDeathTest : public ::testing::Test {
 protected:
  DeviceAllocatorExitDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

struct Owner {
  std::shared_ptr<hal::Device> device;
  hal::Stream stream;
  std::unique_ptr<DeviceAllocator> allocator;
  std::vector<DeviceAddress> blocks;

  void Open() {
    setenv("KEEL_DRIVER", "sim", 1);
    setenv("KEEL_SIM", "memory:1GiB,arena:16GiB", 1);
    device = Need(hal::Registry::Global().OpenDefault());
    stream = Need(hal::Stream::Create(device));
    allocator = Need(DeviceAllocator::Create(device));
    for (const Bytes size : {1_KiB, 1_KiB, 3_MiB}) {
      blocks.push_back(Need(allocator->Allocate(size, stream.get())));
    }
    Free();
    for (const Bytes size : {1_KiB, 2_KiB, 3_MiB}) {
      blocks.push_back(Need(allocator->Allocate(size, stream.get())));
    }
  }
  void Free() {
    for (const DeviceAddress block : blocks) {
      if (!allocator->Free(block).ok()) std::abort();
    }
    blocks.clear();
  }
  ~Owner() {
    if (allocator == nullptr) return;
    Free();
    if (allocator->Stats().allocation.all.current != 0) std::abort();
  }
};

// A9: a static object frees after the main thread's own objects are gone.
TEST_F(DeviceAllocatorExitDeathTest, AStaticObjectMayFreeAtExit) {
  EXPECT_EXIT(
      {
        static Owner oldest;
        oldest.Open();
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "^$");
}

// A9: an object of a thread that is older than the thread's first use of the allocator.
TEST_F(DeviceAllocatorExitDeathTest, AThreadsObjectMayFreeWhileTheThreadEnds) {
  EXPECT_EXIT(
      {
        std::thread([] {
          thread_local Owner oldest;
          oldest.Open();
        }).join();
        std::_Exit(0);
      },
      ::testing::ExitedWithCode(0), "^$");
}

}  // namespace
}  // namespace keel::memory
