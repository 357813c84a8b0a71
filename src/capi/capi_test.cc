// The C interface where C is not enough: threads, forks, a lost device, the end of a process. What
// every function does is in capi_test.c.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/forked_child_test.h"
#include "capi/handles.h"
#include "capi/last_error.h"
#include "keel/base/log.h"
#include "keel/c.h"
#include "keel/drivers/sim.h"
#include "keel/memory/process_memory.h"

namespace keel::capi {
namespace {

using ::testing::HasSubstr;

// The enumerators of both sides never change, and are the same.
static_assert(KEEL_STATUS_OK == static_cast<int>(StatusCode::kOk));
static_assert(KEEL_STATUS_CANCELLED == static_cast<int>(StatusCode::kCancelled));
static_assert(KEEL_STATUS_UNKNOWN == static_cast<int>(StatusCode::kUnknown));
static_assert(KEEL_STATUS_INVALID_ARGUMENT == static_cast<int>(StatusCode::kInvalidArgument));
static_assert(KEEL_STATUS_DEADLINE_EXCEEDED == static_cast<int>(StatusCode::kDeadlineExceeded));
static_assert(KEEL_STATUS_NOT_FOUND == static_cast<int>(StatusCode::kNotFound));
static_assert(KEEL_STATUS_ALREADY_EXISTS == static_cast<int>(StatusCode::kAlreadyExists));
static_assert(KEEL_STATUS_PERMISSION_DENIED == static_cast<int>(StatusCode::kPermissionDenied));
static_assert(KEEL_STATUS_RESOURCE_EXHAUSTED == static_cast<int>(StatusCode::kResourceExhausted));
static_assert(KEEL_STATUS_FAILED_PRECONDITION == static_cast<int>(StatusCode::kFailedPrecondition));
static_assert(KEEL_STATUS_ABORTED == static_cast<int>(StatusCode::kAborted));
static_assert(KEEL_STATUS_OUT_OF_RANGE == static_cast<int>(StatusCode::kOutOfRange));
static_assert(KEEL_STATUS_UNIMPLEMENTED == static_cast<int>(StatusCode::kUnimplemented));
static_assert(KEEL_STATUS_INTERNAL == static_cast<int>(StatusCode::kInternal));
static_assert(KEEL_STATUS_UNAVAILABLE == static_cast<int>(StatusCode::kUnavailable));
static_assert(KEEL_STATUS_DEVICE_LOST == static_cast<int>(StatusCode::kDeviceLost));
static_assert(KEEL_STATUS_UNAUTHENTICATED == static_cast<int>(StatusCode::kUnauthenticated));

void ChooseSimulated() {
  setenv("KEEL_DRIVER", "sim", 1);
  setenv("KEEL_SIM", "devices:2,memory:1GiB,arena:16GiB", 1);
}

class CapiTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ChooseSimulated();
    SetLogLevel(LogLevel::kOff);
    ASSERT_EQ(keel_device_open("sim:0", &device_), KEEL_STATUS_OK) << keel_last_error_message();
  }
  void TearDown() override {
    static_cast<void>(keel_device_close(device_));
    SetLogLevel(LogLevel::kWarn);
    ASSERT_TRUE(memory::ProcessMemory::Global().Shutdown().ok());
  }

  keel_device device_ = nullptr;
};

TEST_F(CapiTest, IsTheMemoryOfTheProcess) {
  const auto set = *memory::ProcessMemory::Global().For({.driver = "sim", .ordinal = 0});
  std::uint64_t address = 0;
  ASSERT_EQ(keel_malloc(device_, nullptr, 1000, nullptr, &address), KEEL_STATUS_OK);
  EXPECT_EQ(set->allocator().Stats().requested_bytes.all.current, 1000);
  EXPECT_TRUE(set->allocator().Free(DeviceAddress(address)).ok());
  EXPECT_EQ(keel_free(device_, address), KEEL_STATUS_INVALID_ARGUMENT);
}

TEST_F(CapiTest, EachThreadHasItsOwnMessage) {
  EXPECT_EQ(keel_free(device_, 0x1234), KEEL_STATUS_INVALID_ARGUMENT);
  std::thread([] {
    EXPECT_STREQ(keel_last_error_message(), "");
    EXPECT_EQ(keel_device_close(nullptr), KEEL_STATUS_INVALID_ARGUMENT);
    EXPECT_THAT(keel_last_error_message(), HasSubstr("NULL"));
  }).join();
  EXPECT_THAT(keel_last_error_message(), HasSubstr("0x1234"));
  // Success leaves it.
  EXPECT_EQ(keel_free(device_, 0), KEEL_STATUS_OK);
  EXPECT_THAT(keel_last_error_message(), HasSubstr("0x1234"));
}

TEST_F(CapiTest, NoExceptionGetsOut) {
  EXPECT_EQ(Guard("f", []() -> Status { throw std::bad_alloc(); }), KEEL_STATUS_RESOURCE_EXHAUSTED);
  EXPECT_EQ(Guard("f", []() -> Status { throw std::runtime_error("the reason"); }),
            KEEL_STATUS_INTERNAL);
  EXPECT_STREQ(keel_last_error_message(), "f: the reason");
  EXPECT_EQ(Guard("f", []() -> Status { throw 3; }), KEEL_STATUS_INTERNAL);
  const auto visit = [](const char*, std::int64_t, void*) { throw std::runtime_error("visitor"); };
  EXPECT_EQ(keel_for_each_stat(device_, visit, nullptr), KEEL_STATUS_INTERNAL);
  EXPECT_THAT(keel_last_error_message(), HasSubstr("visitor"));
}

// Threads open, use, close and misuse each other's handles.
TEST_F(CapiTest, AnyThreadAtAnyTime) {
  std::vector<std::thread> threads;
  threads.reserve(4);
  std::atomic<std::uintptr_t> somebodys{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        keel_device device = nullptr;
        keel_stream stream = nullptr;
        std::uint64_t address = 0;
        ASSERT_EQ(keel_device_open("sim:1", &device), KEEL_STATUS_OK);
        ASSERT_EQ(keel_stream_create(device, &stream), KEEL_STATUS_OK);
        somebodys = reinterpret_cast<std::uintptr_t>(stream);
        ASSERT_EQ(keel_malloc(device, stream, 4096, nullptr, &address), KEEL_STATUS_OK);
        EXPECT_EQ(keel_enqueue_fill(device, stream, address, 1, 1, 4096), KEEL_STATUS_OK);
        const auto others = reinterpret_cast<keel_stream>(somebodys.load());
        const keel_status used = keel_stream_synchronize(device, others, 0);
        EXPECT_TRUE(used == KEEL_STATUS_OK || used == KEEL_STATUS_INVALID_ARGUMENT ||
                    used == KEEL_STATUS_DEADLINE_EXCEEDED)
            << keel_last_error_message();
        EXPECT_EQ(keel_free(device, address), KEEL_STATUS_OK);
        EXPECT_EQ(keel_stream_destroy(stream), KEEL_STATUS_OK) << keel_last_error_message();
        EXPECT_EQ(keel_device_close(device), KEEL_STATUS_OK);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(CapiTest, ALostDeviceComesBackAfterItIsForgotten) {
  std::uint64_t address = 0;
  ASSERT_EQ(keel_malloc(device_, nullptr, 4 << 20, nullptr, &address), KEEL_STATUS_OK);
  {
    const auto set = *memory::ProcessMemory::Global().For({.driver = "sim", .ordinal = 0});
    sim::FindControls(*set->device())->Lose("for a test");
  }
  EXPECT_EQ(keel_stream_synchronize(device_, nullptr, -1), KEEL_STATUS_DEVICE_LOST);
  EXPECT_EQ(keel_free(device_, address), KEEL_STATUS_OK);
  ASSERT_EQ(keel_device_forget(device_), KEEL_STATUS_OK) << keel_last_error_message();
  ASSERT_EQ(keel_device_open("sim:0", &device_), KEEL_STATUS_OK) << keel_last_error_message();
  EXPECT_EQ(keel_malloc(device_, nullptr, 4 << 20, nullptr, &address), KEEL_STATUS_OK);
  EXPECT_EQ(keel_free(device_, address), KEEL_STATUS_OK);
}

TEST_F(CapiTest, AForkedChildIsRefused) {
  keel_stream stream = nullptr;
  std::uint64_t address = 0;
  ASSERT_EQ(keel_stream_create(device_, &stream), KEEL_STATUS_OK);
  ASSERT_EQ(keel_malloc(device_, stream, 4096, nullptr, &address), KEEL_STATUS_OK);
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) {
      keel_device other = nullptr;
      if (keel_device_open("sim:0", &other) == KEEL_STATUS_OK) {
        static_cast<void>(keel_device_close(other));
      }
    }
  });
  for (int round = 0; round < 5; ++round) {
    const int status = InForkedChild([&] {
      keel_device other = nullptr;
      for (const keel_status each :
           {keel_free(device_, address), keel_malloc(device_, stream, 1, nullptr, &address),
            keel_stream_destroy(stream), keel_device_close(device_),
            keel_device_open("sim:0", &other), keel_write_snapshot(nullptr, "unused", 0)}) {
        EXPECT_EQ(each, KEEL_STATUS_FAILED_PRECONDITION) << keel_last_error_message();
      }
      EXPECT_THAT(keel_last_error_message(), HasSubstr("fork"));
    });
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  stop = true;
  busy.join();
  EXPECT_EQ(keel_free(device_, address), KEEL_STATUS_OK);
  EXPECT_EQ(keel_stream_destroy(stream), KEEL_STATUS_OK);
}

class CapiDeathTest : public ::testing::Test {
 protected:
  CapiDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

// Static objects call when the main thread's own objects, and its message, are gone.
TEST_F(CapiDeathTest, ExitIsQuiet) {
  EXPECT_EXIT(
      {
        ChooseSimulated();
        struct Late {
          ~Late() {
            if (keel_free(device, address) != KEEL_STATUS_OK) std::abort();
            if (keel_free(device, address) != KEEL_STATUS_INVALID_ARGUMENT) std::abort();
            static_cast<void>(*keel_last_error_message());
            static_cast<void>(*keel_status_name(3));
          }
          keel_device device = nullptr;
          std::uint64_t address = 0;
        };
        static Late late;
        if (keel_device_open(nullptr, &late.device) != KEEL_STATUS_OK) std::abort();
        keel_stream stream = nullptr;
        if (keel_stream_create(late.device, &stream) != KEEL_STATUS_OK) std::abort();
        if (keel_malloc(late.device, stream, 4096, nullptr, &late.address) != KEEL_STATUS_OK) {
          std::abort();
        }
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "^$");
}

}  // namespace
}  // namespace keel::capi
