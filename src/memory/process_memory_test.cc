#include "keel/memory/process_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/forked_child_test.h"
#include "base/soon_test.h"
#include "hal/sim_devices_test.h"
#include "keel/hal/stream.h"

namespace keel::memory {
namespace {

using hal::IsOk;
using hal::Need;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Streams of these tests end before the allocators that know them, which is logged.
struct QuietLog {
  QuietLog() { SetLogLevel(LogLevel::kOff); }
  ~QuietLog() { SetLogLevel(LogLevel::kWarn); }
};

class ProcessMemoryTest : public ::testing::Test {
 protected:
  static std::vector<std::unique_ptr<hal::Driver>> Drivers(int devices) {
    std::vector<std::unique_ptr<hal::Driver>> drivers;
    drivers.push_back(
        Need(sim::CreateSimDriver({.devices = devices, .memory = 1_GiB, .arena = 16_GiB})));
    return drivers;
  }
  static std::string MessageOf(const Status& status) { return std::string(status.message()); }

  QuietLog quiet_;
  hal::Registry registry_{Drivers(2)};
  ProcessMemory memory_{registry_, AllocatorConfig{.limit = 512_MiB}};
};

TEST_F(ProcessMemoryTest, ADeviceHasOneSetForAll) {
  const auto set = Need(memory_.For());
  EXPECT_EQ(Need(memory_.For({.driver = "sim"})), set);
  EXPECT_EQ(Need(memory_.For({.driver = "", .ordinal = 0})), set);
  const auto other = Need(memory_.For({.driver = "sim", .ordinal = 1}));
  EXPECT_NE(other, set);
  EXPECT_EQ(set->name().ToString(), "sim:0");
  EXPECT_EQ(other->name().ToString(), "sim:1");
  EXPECT_EQ(Need(memory_.List()), (std::vector<std::shared_ptr<DeviceMemory>>{set, other}));
  // All parts are of the device that the driver has open, and configured alike.
  EXPECT_EQ(Need(registry_.OpenDefault(0)), set->device());
  EXPECT_EQ(set->allocator().device(), set->device());
  EXPECT_EQ(set->host().device(), set->device());
  EXPECT_EQ(set->allocator().limit(), 512_MiB);
  EXPECT_EQ(other->allocator().limit(), 512_MiB);
}

TEST_F(ProcessMemoryTest, ThreadsThatRaceGetTheSame) {
  constexpr int kThreads = 8;
  for (int round = 0; round < 20; ++round) {
    std::vector<std::shared_ptr<DeviceMemory>> found(kThreads);
    std::barrier<> start(kThreads);
    std::vector<std::thread> threads;
    threads.reserve(kThreads);
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        start.arrive_and_wait();
        found[static_cast<std::size_t>(i)] = Need(memory_.For({.driver = "", .ordinal = i % 2}));
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(std::set(found.begin(), found.end()).size(), 2U);
    EXPECT_EQ(Need(memory_.List()).size(), 2U);
    found.clear();
    ASSERT_TRUE(IsOk(memory_.Shutdown()));
  }
}

TEST_F(ProcessMemoryTest, AnUnknownDeviceIsNamedWithThoseThatAreThere) {
  const Status ordinal = memory_.For({.driver = "", .ordinal = 7}).status();
  EXPECT_EQ(ordinal.code(), StatusCode::kNotFound);
  EXPECT_THAT(MessageOf(ordinal), AllOf(HasSubstr("sim:7"), HasSubstr("sim:0, sim:1")));
  const Status driver = memory_.For({.driver = "abacus"}).status();
  EXPECT_EQ(driver.code(), StatusCode::kNotFound);
  EXPECT_THAT(MessageOf(driver), AllOf(HasSubstr("'abacus'"), HasSubstr("sim")));
  EXPECT_TRUE(Need(memory_.List()).empty());
}

TEST_F(ProcessMemoryTest, FullNamesOpenNothing) {
  const Result<hal::DeviceName> name = memory_.FullName({.driver = "", .ordinal = 1});
  ASSERT_TRUE(name.ok()) << name.status().ToString();
  EXPECT_EQ(name->ToString(), "sim:1");
  EXPECT_EQ(memory_.FullName({.driver = "", .ordinal = 9}).status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(memory_.List().value().empty());
}

TEST_F(ProcessMemoryTest, AWrongConfigurationIsNamedEachTime) {
  ProcessMemory memory(registry_, AllocatorConfig::Parse("max_split_size_mbb:20"));
  for (int i = 0; i < 2; ++i) {
    const Status status = memory.For().status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(MessageOf(status),
                AllOf(HasSubstr("KEEL_ALLOC_CONF"), HasSubstr("max_split_size_mbb")));
  }
  EXPECT_TRUE(Need(memory.List()).empty());
}

TEST_F(ProcessMemoryTest, TheHostsPartsAreConfiguredToo) {
  ProcessMemory memory(registry_, AllocatorConfig::Parse("host_limit:1MiB,staging_threshold:64KiB,"
                                                         "staging_threshold:1MiB"));
  EXPECT_FALSE(memory.For().ok());  // a key that is given twice
  ProcessMemory good(registry_, AllocatorConfig::Parse("host_limit:4MiB,staging_threshold:1MiB,"
                                                       "staging_chunk:256KiB,staging_threads:1"));
  const auto set = Need(good.For());
  EXPECT_EQ(set->host().Allocate(5_MiB).status().code(), StatusCode::kResourceExhausted);
  const hal::Stream stream = Need(hal::Stream::Create(set->device()));
  const DeviceAddress block = Need(set->allocator().Allocate(2_MiB, stream.get()));
  const std::vector<std::uint8_t> bytes(2 << 20, 7);
  ASSERT_TRUE(IsOk(set->staging().CopyToDevice(stream.get(), block, bytes.data(), 1023_KiB)));
  EXPECT_EQ(set->staging().stats().staged, 0U);
  ASSERT_TRUE(IsOk(set->staging().CopyToDevice(stream.get(), block, bytes.data(), 1_MiB)));
  EXPECT_EQ(set->staging().stats().staged, (1_MiB).count());
  ASSERT_TRUE(IsOk(set->allocator().Free(block)));
  ASSERT_TRUE(IsOk(stream.Synchronize()));
}

// The keys reach the sets of the process, and with them C, Python and PyTorch.
TEST_F(ProcessMemoryTest, MemoryThatIsCopiedAgainIsPinnedIfThatIsAllowed) {
  constexpr Bytes kSize = 2_MiB;
  std::vector<std::uint8_t> bytes(kSize.count(), 7);
  std::vector<std::uint8_t> back(kSize.count());
  for (const bool pins : {false, true}) {
    ProcessMemory memory(registry_, AllocatorConfig::Parse(pins ? "staging_pin_limit:64MiB" : ""));
    const auto set = Need(memory.For());
    const hal::Stream stream = Need(hal::Stream::Create(set->device()));
    const DeviceAddress block = Need(set->allocator().Allocate(kSize, stream.get()));
    for (int i = 0; i < 4; ++i) {
      ++bytes[5];
      ASSERT_TRUE(IsOk(set->CopyToDevice(stream.get(), block, bytes.data(), kSize)));
    }
    ASSERT_TRUE(IsOk(set->CopyToHost(stream.get(), back.data(), block, kSize)));
    EXPECT_EQ(back, bytes);
    EXPECT_EQ(set->staging().stats().pinned, pins ? 3 * kSize.count() : 0U);
    EXPECT_EQ(set->device()->GetHostAddress(bytes.data()).ok(), pins);
    // Pinned, but not for the caller: nobody would know when such a copy is done.
    EXPECT_EQ(set->EnqueueCopyToDevice(stream.get(), block, bytes.data(), kSize).code(),
              StatusCode::kInvalidArgument);
    EXPECT_EQ(set->EnqueueCopyToHost(stream.get(), bytes.data(), block, kSize).code(),
              StatusCode::kInvalidArgument);
    // More than what is pinned, from its start.
    EXPECT_TRUE(IsOk(MemoryGone(bytes.data(), kSize / 2)));
    EXPECT_FALSE(set->device()->GetHostAddress(bytes.data()).ok());
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(IsOk(set->CopyToDevice(stream.get(), block, bytes.data(), kSize / 2)));
    }
    ASSERT_TRUE(IsOk(set->CopyToDevice(stream.get(), block, bytes.data(), kSize)));
    ASSERT_TRUE(IsOk(set->CopyToHost(stream.get(), back.data(), block, kSize)));
    EXPECT_EQ(back, bytes);
    ASSERT_TRUE(IsOk(set->allocator().Free(block)));
  }
}

TEST_F(ProcessMemoryTest, AThreadKeepsPinnedMemoryAheadIfItMay) {
  for (const bool ahead : {false, true}) {
    ProcessMemory memory(registry_,
                         AllocatorConfig::Parse(ahead ? "host_background_reserve:2MiB" : ""));
    const auto set = Need(memory.For());
    const auto held = [&] { return set->host().stats().memory.allocated_bytes.current; };
    if (ahead) {
      EXPECT_TRUE(Soon([&] { return held() >= 2 << 20; }));
    } else {
      EXPECT_EQ(held(), 0);
    }
  }
}

// Whichever of two devices was asked for first, and with memory that was there before the other.
// Pins are the process's: the other device's driver takes this memory for the caller's own.
TEST_F(ProcessMemoryTest, WhatOneDevicePinnedIsStagedByTheOthers) {
  constexpr Bytes kSize = 2_MiB;
  std::vector<std::uint8_t> bytes(kSize.count(), 7);
  std::vector<std::uint8_t> back(kSize.count());
  ProcessMemory pinning(registry_, AllocatorConfig::Parse("staging_pin_limit:64MiB"));
  const auto first = Need(pinning.For());
  const hal::Stream its = Need(hal::Stream::Create(first->device()));
  const DeviceAddress there = Need(first->allocator().Allocate(kSize, its.get()));
  for (const bool pins : {true, false}) {
    ProcessMemory without(registry_, AllocatorConfig{});
    const auto second = Need((pins ? pinning : without).For({.driver = "sim", .ordinal = 1}));
    const hal::Stream stream = Need(hal::Stream::Create(second->device()));
    const DeviceAddress block = Need(second->allocator().Allocate(kSize, stream.get()));
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(IsOk(first->CopyToDevice(its.get(), there, bytes.data(), kSize)));
      ASSERT_TRUE(IsOk(first->CopyToHost(its.get(), back.data(), there, kSize)));
    }
    ASSERT_TRUE(second->device()->GetHostAddress(bytes.data()).ok()) << "the pin is not shared";
    for (int i = 0; i < 3; ++i) {
      ++bytes[5];
      ASSERT_TRUE(IsOk(second->CopyToDevice(stream.get(), block, bytes.data(), kSize)));
      ASSERT_TRUE(IsOk(second->CopyToHost(stream.get(), back.data(), block, kSize)));
      EXPECT_EQ(back, bytes);
    }
    // Also one that is the driver's by its size.
    ASSERT_TRUE(IsOk(second->CopyToDevice(stream.get(), block, bytes.data(), 4_KiB)));
    EXPECT_EQ(second->staging().stats().staged, 6 * kSize.count() + 4096);
    EXPECT_EQ(second->staging().stats().direct, 0U);
    EXPECT_EQ(second->staging().stats().pinned, 0U);
    EXPECT_EQ(second->EnqueueCopyToDevice(stream.get(), block, bytes.data(), kSize).code(),
              StatusCode::kInvalidArgument);
    EXPECT_EQ(second->EnqueueCopyToHost(stream.get(), back.data(), block, kSize).code(),
              StatusCode::kInvalidArgument);
    ASSERT_TRUE(IsOk(second->allocator().Free(block)));
  }
  ASSERT_TRUE(IsOk(first->allocator().Free(there)));
}

TEST_F(ProcessMemoryTest, DevicesOfADriverAreEachOthersPeers) {
  const auto first = Need(memory_.For({.driver = "", .ordinal = 1}));
  const hal::Stream stream = Need(hal::Stream::Create(first->device()));
  const DeviceAddress early = Need(first->allocator().Allocate(2_MiB, stream.get()));
  const auto second = Need(memory_.For({.driver = "", .ordinal = 0}));
  const hal::Stream other = Need(hal::Stream::Create(second->device()));
  const DeviceAddress late = Need(first->allocator().Allocate(64_MiB, stream.get()));
  const DeviceAddress theirs = Need(second->allocator().Allocate(2_MiB, other.get()));
  for (const DeviceAddress address : {early, late}) {
    EXPECT_EQ(Need(first->device()->GetAccess(address, second->device()->id())),
              hal::Access::kReadWrite);
  }
  EXPECT_EQ(Need(second->device()->GetAccess(theirs, first->device()->id())),
            hal::Access::kReadWrite);
}

// A9 of the allocators: memory of one device can be had although its peer is lost, gone, and back.
TEST_F(ProcessMemoryTest, ALostDeviceKeepsItsSetUntilItIsForgotten) {
  const auto whole = Need(memory_.For({.driver = "", .ordinal = 0}));
  const hal::Stream whole_stream = Need(hal::Stream::Create(whole->device()));
  auto lost = Need(memory_.For({.driver = "", .ordinal = 1}));
  auto stream = std::make_unique<hal::Stream>(Need(hal::Stream::Create(lost->device())));
  const DeviceAddress block = Need(lost->allocator().Allocate(2_MiB, stream->get()));
  sim::FindControls(*lost->device())->Lose("for a test");

  EXPECT_EQ(Need(memory_.For({.driver = "", .ordinal = 1})), lost);
  EXPECT_EQ(lost->allocator().Allocate(64_MiB, stream->get()).status().code(),
            StatusCode::kDeviceLost);
  EXPECT_TRUE(IsOk(lost->allocator().Free(block)));
  EXPECT_TRUE(IsOk(whole->allocator().Allocate(32_MiB, whole_stream.get())));

  stream.reset();
  ASSERT_TRUE(IsOk(memory_.Forget({.driver = "", .ordinal = 1})));
  EXPECT_EQ(memory_.Forget({.driver = "", .ordinal = 1}).code(), StatusCode::kNotFound);
  lost.reset();
  EXPECT_TRUE(IsOk(whole->allocator().Allocate(64_MiB, whole_stream.get())));
  const auto again = Need(memory_.For({.driver = "", .ordinal = 1}));
  const hal::Stream new_stream = Need(hal::Stream::Create(again->device()));
  const DeviceAddress fresh = Need(again->allocator().Allocate(2_MiB, new_stream.get()));
  EXPECT_EQ(Need(again->device()->GetAccess(fresh, whole->device()->id())),
            hal::Access::kReadWrite);
}

TEST_F(ProcessMemoryTest, WhoHoldsASetKeepsItAfterShutdown) {
  const auto set = Need(memory_.For());
  ASSERT_TRUE(IsOk(memory_.Shutdown()));
  EXPECT_TRUE(Need(memory_.List()).empty());
  const hal::Stream stream = Need(hal::Stream::Create(set->device()));
  const DeviceAddress block = Need(set->allocator().Allocate(1_MiB, stream.get()));
  EXPECT_TRUE(IsOk(set->allocator().Free(block)));
  EXPECT_NE(Need(memory_.For()), set);
  ASSERT_TRUE(IsOk(memory_.Shutdown()));
  ASSERT_TRUE(IsOk(memory_.Shutdown()));
}

TEST_F(ProcessMemoryTest, NothingIsLeftAfterShutdown) {
  const auto device = Need(registry_.OpenDefault(0));
  {
    const auto set = Need(memory_.For());
    const hal::Stream stream = Need(hal::Stream::Create(device));
    EXPECT_TRUE(IsOk(set->allocator().Allocate(64_MiB, stream.get())));
  }
  EXPECT_NE(sim::FindControls(*device)->used(), 0_B);
  ASSERT_TRUE(IsOk(memory_.Shutdown()));
  EXPECT_EQ(sim::FindControls(*device)->used(), 0_B);
}

TEST_F(ProcessMemoryTest, AChildThatWasForkedAfterTheFirstUseIsRefused) {
  const auto set = Need(memory_.For());
  // One that was forked while another thread has the lock, too.
  std::optional<WorkingThread> busy(
      [&] { static_cast<void>(memory_.For({.driver = "", .ordinal = 1}).ok()); });
  for (int round = 0; round < kForks; ++round) {
    const int status = InForkedChild([&] {
      const auto refused = [](const Status& each) {
        EXPECT_EQ(each.code(), StatusCode::kFailedPrecondition) << each.ToString();
        EXPECT_THAT(MessageOf(each), HasSubstr("fork"));
      };
      refused(memory_.For().status());
      refused(memory_.For({.driver = "", .ordinal = 9}).status());
      refused(memory_.Forget({}));
      refused(memory_.Shutdown());
      refused(memory_.List().status());
    });
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status << " in " << round;
  }
  busy.reset();
  EXPECT_EQ(Need(memory_.For()), set);
}

#if KEEL_TEST_THREADS_AFTER_FORK
TEST_F(ProcessMemoryTest, AChildThatWasForkedBeforeIsAProcessLikeAnyOther) {
  EXPECT_FALSE(memory_.For({.driver = "", .ordinal = 9}).ok());  // is no use
  const int status = InForkedChild([&] {
    const auto set = Need(memory_.For());
    const hal::Stream stream = Need(hal::Stream::Create(set->device()));
    EXPECT_TRUE(IsOk(set->allocator().Allocate(1_MiB, stream.get())));
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}
#endif

class ProcessMemoryDeathTest : public ::testing::Test {
 protected:
  ProcessMemoryDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

// What static objects still do after main, and what nobody gave back.
TEST_F(ProcessMemoryDeathTest, ExitIsQuietWithMemoryInUse) {
  EXPECT_EXIT(
      {
        setenv("KEEL_DRIVER", "sim", 1);
        setenv("KEEL_SIM", "memory:1GiB,arena:16GiB", 1);
        struct Late {
          ~Late() {
            const auto set = Need(ProcessMemory::Global().For());
            if (!set->allocator().Free(block).ok()) std::abort();
          }
          DeviceAddress block;
        };
        static Late late;
        const auto set = Need(ProcessMemory::Global().For());
        const hal::StreamHandle stream = Need(set->device()->CreateStream({}));
        late.block = Need(set->allocator().Allocate(3_MiB, stream));
        static_cast<void>(Need(set->allocator().Allocate(5_MiB, stream)));
        static_cast<void>(Need(set->host().Allocate(1_MiB)));
        const std::vector<char> bytes(8 << 20);
        if (!set->staging().CopyToDevice(stream, late.block, bytes.data(), 3_MiB).ok()) {
          std::abort();
        }
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "^$");
}

TEST_F(ProcessMemoryDeathTest, TheEnvironmentsMistakesAreNamed) {
  EXPECT_EXIT(
      {
        setenv("KEEL_DRIVER", "sim", 1);
        setenv("KEEL_ALLOC_CONF", "limit:many", 1);
        for (int i = 0; i < 2; ++i) {
          const Status status = ProcessMemory::Global().For().status();
          if (status.message().find("limit") == std::string_view::npos) std::abort();
        }
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace keel::memory
