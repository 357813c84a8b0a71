#include "keel/memory/host_allocator.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "base/forked_child_test.h"
#include "base/soon_test.h"
#include "hal/sim_devices_test.h"
#include "keel/hal/forwarding_device.h"
#include "keel/hal/graph.h"
#include "keel/hal/memory.h"
#include "keel/hal/stream.h"
#include "memory/every_call_fails_test.h"
#include "memory/numa_policy.h"

namespace keel::memory {
namespace {

using hal::IsOk;
using hal::Need;
using hal::Primitive;

std::int64_t Signed(Bytes bytes) { return static_cast<std::int64_t>(bytes.count()); }

class HostAllocatorTest : public hal::SimDevicesTest {
 protected:
  void* Take(HostAllocator& allocator, Bytes size) { return Need(allocator.Allocate(size)); }
  // A stream that starts nothing until it is released.
  hal::Stream HeldStream() {
    hal::Stream stream = Need(hal::Stream::Create(device_));
    EXPECT_TRUE(IsOk(controls().HoldStream(stream.get())));
    // Held streams with nothing queued are done: something must be in the way.
    EXPECT_TRUE(IsOk(device_->CallHost(stream.get(), {.function = [](void*) {}, .data = nullptr})));
    return stream;
  }
  void Release(const hal::Stream& stream) {
    EXPECT_TRUE(IsOk(controls().ReleaseStream(stream.get())));
    EXPECT_TRUE(IsOk(stream.Synchronize()));
  }
};

TEST_F(HostAllocatorTest, FromTheCacheThereIsNoDriverCall) {
  {
    HostAllocator allocator(device_);
    for (const Bytes size : {1_B, 100_KiB, 1_MiB, 3_MiB + 1_B}) {
      void* const first = Take(allocator, size);
      std::memset(first, 1, size.count());
      ASSERT_TRUE(IsOk(allocator.Free(first)));
      device_->ResetCounts();
      for (int i = 0; i < 10; ++i) {
        void* const again = Take(allocator, size);
        EXPECT_EQ(again, first);
        ASSERT_TRUE(IsOk(allocator.Free(again)));
      }
      EXPECT_EQ(device_->calls(), 0U) << ToString(size);
    }
  }
  ExpectNothingLeft();
}

TEST_F(HostAllocatorTest, PointersAreAlignedAsAsked) {
  HostAllocator allocator(device_);
  std::vector<void*> live;
  for (const Bytes size : {1_B, 700_B, 5_KiB, 2_MiB}) {
    for (std::uint64_t alignment = 1; alignment <= 4096; alignment *= 2) {
      void* const pointer = Need(allocator.Allocate(size, Bytes(alignment)));
      EXPECT_EQ(reinterpret_cast<std::uint64_t>(pointer) % std::max<std::uint64_t>(alignment, 512),
                0U);
      live.push_back(pointer);
    }
  }
  ASSERT_TRUE(IsOk(allocator.FreeAll(live)));
  EXPECT_EQ(allocator.Allocate(1_KiB, 3_B).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(allocator.Allocate(1_KiB, 8_KiB).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(allocator.Allocate(0_B).status().code(), StatusCode::kInvalidArgument);
}

// A2
TEST_F(HostAllocatorTest, MemoryThatAStreamStillUsesIsNotReused) {
  HostAllocator allocator(device_);
  const hal::Stream first = HeldStream();
  const hal::Stream second = HeldStream();
  void* const used = Take(allocator, 2_MiB);
  ASSERT_TRUE(IsOk(allocator.RecordUse(used, first.get())));
  // Anywhere inside, and twice is once.
  ASSERT_TRUE(IsOk(allocator.RecordUse(static_cast<char*>(used) + 12345, second.get())));
  ASSERT_TRUE(IsOk(allocator.RecordUse(used, second.get())));
  ASSERT_TRUE(IsOk(allocator.Free(used)));
  EXPECT_EQ(allocator.stats().pending_bytes, Signed(2_MiB));

  void* const other = Take(allocator, 2_MiB);
  EXPECT_NE(other, used);
  ASSERT_TRUE(IsOk(allocator.Free(other)));
  Release(first);
  EXPECT_TRUE(IsOk(allocator.EmptyCache()));
  EXPECT_EQ(allocator.stats().pending_bytes, Signed(2_MiB)) << "one of two streams is not there";
  Release(second);
  EXPECT_EQ(Take(allocator, 2_MiB), used);
  EXPECT_EQ(allocator.stats().pending_bytes, 0);
  ASSERT_TRUE(IsOk(allocator.Free(used)));
}

TEST_F(HostAllocatorTest, FreesTogetherShareTheirEvents) {
  HostAllocator allocator(device_);
  const hal::Stream stream = HeldStream();
  std::vector<void*> pointers;
  for (int i = 0; i < 20; ++i) {
    pointers.push_back(Take(allocator, 10_KiB));
    ASSERT_TRUE(IsOk(allocator.RecordUse(pointers.back(), stream.get())));
  }
  device_->ResetCounts();
  ASSERT_TRUE(IsOk(allocator.FreeAll(pointers)));
  EXPECT_EQ(device_->calls(Primitive::kRecordEvent), 1U);
  Release(stream);
  EXPECT_TRUE(IsOk(allocator.EmptyCache()));
  EXPECT_EQ(allocator.stats().pending_bytes, 0);
}

TEST_F(HostAllocatorTest, FreesOfAStreamShareAnEventWhenAskedTo) {
  HostAllocator allocator(device_, {.event_batch = 8});
  const hal::Stream stream = Need(hal::Stream::Create(device_));
  std::vector<void*> pointers;
  for (int i = 0; i < 20; ++i) {
    pointers.push_back(Take(allocator, 10_KiB));
    ASSERT_TRUE(IsOk(allocator.RecordUse(pointers.back(), stream.get())));
  }
  device_->ResetCounts();
  for (void* const pointer : pointers) ASSERT_TRUE(IsOk(allocator.Free(pointer)));
  EXPECT_EQ(device_->calls(Primitive::kRecordEvent), 2U);
  EXPECT_TRUE(IsOk(allocator.EmptyCache()));
  EXPECT_EQ(device_->calls(Primitive::kRecordEvent), 3U) << "the open batch";
  ASSERT_TRUE(IsOk(stream.Synchronize()));
  EXPECT_TRUE(IsOk(allocator.EmptyCache()));
  EXPECT_EQ(allocator.stats().pending_bytes, 0);
}

TEST_F(HostAllocatorTest, AStreamThatIsGoneTooEarlyIsWaitedForWithTheDevice) {
  {
    HostAllocator allocator(device_, {.limit = 3_MiB, .event_batch = 8});
    {
      const hal::Stream stream = Need(hal::Stream::Create(device_));
      void* const used = Take(allocator, 2_MiB);
      ASSERT_TRUE(IsOk(allocator.RecordUse(used, stream.get())));
      ASSERT_TRUE(IsOk(allocator.Free(used)));
    }
    void* const again = Take(allocator, 2_MiB);
    EXPECT_EQ(device_->calls(Primitive::kSynchronize), 1U);
    ASSERT_TRUE(IsOk(allocator.Free(again)));
  }
  ExpectNothingLeft();
}

// A4
TEST_F(HostAllocatorTest, TheOwnCacheIsGivenBackBeforeTheLimitIsAnError) {
  HostAllocator allocator(device_, {.limit = 12_MiB});
  void* const cached = Take(allocator, 8_MiB);
  ASSERT_TRUE(IsOk(allocator.Free(cached)));
  void* const larger = Take(allocator, 11_MiB);
  EXPECT_EQ(allocator.stats().memory.allocated_bytes.current, Signed(11_MiB));
  const Status status = allocator.Allocate(2_MiB).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(status.ToString().find("no pinned memory for 2 MiB: 11 MiB are held of a limit of 12"),
            std::string::npos)
      << status.ToString();
  EXPECT_EQ(allocator.stats().memory.active_requests.current, 1);
  ASSERT_TRUE(IsOk(allocator.SetLimit(14_MiB)));
  void* const second = Take(allocator, 2_MiB);
  ASSERT_TRUE(IsOk(allocator.SetLimit(1_MiB)));
  EXPECT_EQ(allocator.stats().memory.active_requests.current, 2) << "live memory is not disturbed";
  ASSERT_TRUE(IsOk(allocator.FreeAll(std::vector<void*>{larger, second})));
}

// A4
TEST_F(HostAllocatorTest, TheOwnCacheIsGivenBackWhenTheDriverHasNoMemory) {
  HostAllocator allocator(device_, {.overhead = 10});
  ASSERT_TRUE(IsOk(allocator.Free(Take(allocator, 8_MiB))));
  device_->FailNth(Primitive::kAllocateHost, 1, ResourceExhausted("injected"));
  void* const pointer = Take(allocator, 32_MiB);
  EXPECT_EQ(allocator.stats().memory.allocated_bytes.current, Signed(32_MiB));
  ASSERT_TRUE(IsOk(allocator.Free(pointer)));
  // A small request asks for less than a segment then.
  device_->FailNth(Primitive::kAllocateHost, 1, ResourceExhausted("injected"));
  void* const tiny = Take(allocator, 1_KiB);
  EXPECT_EQ(allocator.stats().memory.num_host_alloc, 2) << "there is a free block that it can have";
  ASSERT_TRUE(IsOk(allocator.Free(tiny)));
  ASSERT_TRUE(IsOk(allocator.EmptyCache()));
  device_->FailNth(Primitive::kAllocateHost, 1, ResourceExhausted("injected"));
  ASSERT_TRUE(IsOk(allocator.Free(Take(allocator, 1_KiB))));
  EXPECT_EQ(allocator.stats().memory.allocated_bytes.current, 4096);
}

TEST_F(HostAllocatorTest, NobodyWaitsForAStreamUnlessTheAlternativeIsToFail) {
  HostAllocator allocator(device_, {.limit = 8_MiB});
  const hal::Stream stream = HeldStream();
  void* const used = Take(allocator, 5_MiB);
  ASSERT_TRUE(IsOk(allocator.RecordUse(used, stream.get())));
  ASSERT_TRUE(IsOk(allocator.Free(used)));
  void* const other = Take(allocator, 2_MiB);
  EXPECT_EQ(device_->calls(Primitive::kSynchronizeEvent), 0U);
  std::atomic<bool> released{false};
  std::thread waiter([&] {
    const Result<void*> again = allocator.Allocate(5_MiB);
    EXPECT_TRUE(IsOk(again));
    EXPECT_TRUE(released.load());
    EXPECT_EQ(*again, used);
  });
  EXPECT_TRUE(Soon([&] { return device_->calls(Primitive::kSynchronizeEvent) != 0; }))
      << "nobody waits for the stream";
  released = true;
  Release(stream);
  waiter.join();
  ASSERT_TRUE(IsOk(allocator.FreeAll(std::vector<void*>{used, other})));
}

TEST_F(HostAllocatorTest, AWaitForAStreamEndsAtTheDeadline) {
  HostAllocator allocator(device_, {.limit = 8_MiB});
  const hal::Stream stream = HeldStream();
  void* const used = Take(allocator, 5_MiB);
  ASSERT_TRUE(IsOk(allocator.RecordUse(used, stream.get())));
  ASSERT_TRUE(IsOk(allocator.Free(used)));
  const auto before = allocator.stats();
  const auto take = [&](Deadline deadline) {
    return allocator.Allocate(5_MiB, HostAllocator::kAlignment, deadline);
  };
  EXPECT_EQ(take(Deadline::Now()).status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(take(Deadline::After(std::chrono::milliseconds(20))).status().code(),
            StatusCode::kDeadlineExceeded);
  EXPECT_EQ(allocator.stats().memory.allocated_bytes.current,
            before.memory.allocated_bytes.current);
  EXPECT_EQ(allocator.stats().pending_bytes, before.pending_bytes);
  Release(stream);
  const Result<void*> again = take(Deadline::After(std::chrono::seconds(30)));
  ASSERT_TRUE(IsOk(again));
  EXPECT_EQ(*again, used);
  // Where there is nothing to wait for, it is no matter of time.
  EXPECT_EQ(take(Deadline::Now()).status().code(), StatusCode::kResourceExhausted);
  ASSERT_TRUE(IsOk(allocator.Free(*again)));
}

// A3
TEST_F(HostAllocatorTest, TheLimitIsExactWhileThreadsRace) {
  constexpr Bytes kLimit = 20_MiB;
  HostAllocator allocator(device_, {.limit = kLimit});
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (unsigned thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      std::mt19937 random(thread);
      for (int turn = 0; turn < 100; ++turn) {
        const Result<void*> pointer = allocator.Allocate(2_MiB + Bytes(random() % 8388608));
        if (pointer.ok()) {
          EXPECT_TRUE(IsOk(allocator.Free(*pointer)));
        } else {
          EXPECT_EQ(pointer.status().code(), StatusCode::kResourceExhausted);
          ++refused;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(allocator.stats().memory.allocated_bytes.peak, Signed(kLimit));
  EXPECT_TRUE(IsOk(allocator.EmptyCache()));
  EXPECT_EQ(allocator.stats().memory.allocated_bytes.current, 0);
}

// A18
TEST_F(HostAllocatorTest, OddSizesWithRandomLifetimesWasteLittle) {
  for (const std::size_t most_live : {20U, 80U, 300U}) {
    HostAllocator allocator(device_);
    std::mt19937_64 random(most_live);
    std::uniform_real_distribution<double> exponent(std::log(1024.0), std::log(64.0 * 1048576));
    std::vector<void*> live;
    for (std::size_t turn = 0; turn < most_live * 20; ++turn) {
      while (live.size() >= most_live ||
             (!live.empty() && random() % (2 * most_live) < live.size())) {
        std::swap(live[random() % live.size()], live.back());
        ASSERT_TRUE(IsOk(allocator.Free(live.back())));
        live.pop_back();
      }
      const Bytes size(static_cast<std::uint64_t>(std::exp(exponent(random))));
      live.push_back(Take(allocator, size));
    }
    const HostAllocatorStats stats = allocator.stats();
    const double ratio = static_cast<double>(stats.memory.allocated_bytes.peak) /
                         static_cast<double>(stats.requested_bytes.peak);
    EXPECT_LE(ratio, 1.15) << most_live << " live";
    RecordProperty("ratio_" + std::to_string(most_live), std::to_string(ratio));
    ASSERT_TRUE(IsOk(allocator.FreeAll(live)));
  }
}

TEST_F(HostAllocatorTest, SizesThatComeAgainCauseNoDriverCall) {
  HostAllocator allocator(device_);
  std::mt19937_64 random(1);
  std::vector<Bytes> sizes;
  sizes.reserve(60);
  for (int i = 0; i < 60; ++i) sizes.emplace_back(1000 + random() % 20000000);
  const auto step = [&] {
    std::vector<void*> live;
    live.reserve(sizes.size());
    for (const Bytes size : sizes) live.push_back(Take(allocator, size));
    ASSERT_TRUE(IsOk(allocator.FreeAll(live)));
  };
  step();
  step();
  device_->ResetCounts();
  for (int i = 0; i < 5; ++i) step();
  EXPECT_EQ(device_->calls(), 0U);
}

// A12
TEST_F(HostAllocatorTest, AnEventWithAnErrorIsNotOneThatIsPending) {
  HostAllocator allocator(device_);
  const hal::Stream stream = Need(hal::Stream::Create(device_));
  void* const used = Take(allocator, 2_MiB);
  ASSERT_TRUE(IsOk(allocator.RecordUse(used, stream.get())));
  ASSERT_TRUE(IsOk(allocator.Free(used)));
  ASSERT_TRUE(IsOk(stream.Synchronize()));
  device_->FailNth(Primitive::kQueryEvent, 1, Internal("injected"));
  EXPECT_EQ(allocator.EmptyCache().ToString(), "INTERNAL: injected");
  EXPECT_EQ(allocator.stats().pending_bytes, Signed(2_MiB));
  // Another event is taken in its place.
  ASSERT_TRUE(IsOk(allocator.Trim(4_MiB)));
  ASSERT_TRUE(IsOk(stream.Synchronize()));
  EXPECT_EQ(Take(allocator, 2_MiB), used);
  ASSERT_TRUE(IsOk(allocator.Free(used)));
}

// A12
TEST_F(HostAllocatorTest, AfterALossWhatWasPendingIsReclaimed) {
  HostAllocator allocator(device_);
  const hal::Stream stream = HeldStream();
  void* const used = Take(allocator, 2_MiB);
  void* const live = Take(allocator, 2_MiB);
  ASSERT_TRUE(IsOk(allocator.RecordUse(used, stream.get())));
  ASSERT_TRUE(IsOk(allocator.Free(used)));
  controls().Lose("a fault");
  EXPECT_EQ(allocator.Allocate(2_MiB).status().code(), StatusCode::kDeviceLost);
  EXPECT_EQ(allocator.RecordUse(live, stream.get()).code(), StatusCode::kDeviceLost);
  EXPECT_TRUE(IsOk(allocator.Free(live)));
  EXPECT_EQ(allocator.EmptyCache().code(), StatusCode::kDeviceLost);
  EXPECT_EQ(allocator.stats().pending_bytes, 0);
  EXPECT_EQ(allocator.stats().memory.allocated_bytes.current, 0);
}

// A13
TEST_F(HostAllocatorTest, MemoryWhoseEventCouldNotBeTakenIsNotReusedBeforeTheStreamIsThere) {
  HostAllocator allocator(device_);
  const hal::Stream stream = HeldStream();
  void* const used = Take(allocator, 2_MiB);
  ASSERT_TRUE(IsOk(allocator.RecordUse(used, stream.get())));
  device_->FailNth(Primitive::kRecordEvent, 1, Internal("injected"));
  ASSERT_TRUE(IsOk(allocator.Free(used)));
  EXPECT_EQ(allocator.stats().record_failures, 1);
  device_->FailNth(Primitive::kRecordEvent, 1, Internal("injected"));
  void* const other = Take(allocator, 2_MiB);
  EXPECT_NE(other, used);
  EXPECT_EQ(allocator.stats().record_failures, 2);
  void* const third = Take(allocator, 2_MiB);
  EXPECT_NE(third, used);
  Release(stream);
  EXPECT_EQ(Take(allocator, 2_MiB), used);
  ASSERT_TRUE(IsOk(allocator.FreeAll(std::vector<void*>{used, other, third})));
}

// A13
TEST_F(HostAllocatorTest, AtTheLimitAStreamWithoutAnEventIsSynchronised) {
  HostAllocator allocator(device_, {.limit = 3_MiB});
  const hal::Stream stream = Need(hal::Stream::Create(device_));
  void* const used = Take(allocator, 2_MiB);
  ASSERT_TRUE(IsOk(allocator.RecordUse(used, stream.get())));
  device_->FailNth(Primitive::kRecordEvent, 1, Internal("injected"));
  ASSERT_TRUE(IsOk(allocator.Free(used)));
  device_->FailNth(Primitive::kRecordEvent, 1, Internal("injected"));
  EXPECT_EQ(Take(allocator, 2_MiB), used);
  EXPECT_EQ(device_->calls(Primitive::kSynchronizeStream), 1U);
  ASSERT_TRUE(IsOk(allocator.Free(used)));
}

// A19
TEST_F(HostAllocatorTest, MemoryOfACapturedGraphIsNotReusedOutsideOfIt) {
  HostAllocator allocator(device_);
  const hal::Stream stream = Need(hal::Stream::Create(device_));
  const hal::PlainMemory memory = Need(hal::PlainMemory::Create(device_, 2_MiB));
  hal::Capture capture = Need(hal::Capture::Begin(device_, stream.get()));
  void* const recorded = Take(allocator, 2_MiB);
  ASSERT_TRUE(IsOk(device_->EnqueueCopy(
      stream.get(), {.destination = hal::Location::On(device_->id(), memory.address()),
                     .source = hal::Location::Host(recorded),
                     .size = 2_MiB})));
  ASSERT_TRUE(IsOk(allocator.RecordUse(recorded, stream.get())));
  ASSERT_TRUE(IsOk(allocator.Free(recorded)));
  void* const during = Take(allocator, 2_MiB);
  EXPECT_NE(during, recorded);
  ASSERT_TRUE(IsOk(allocator.Free(during)));
  const hal::Graph graph = Need(capture.End());
  ASSERT_TRUE(IsOk(allocator.EmptyCache()));
  EXPECT_EQ(allocator.stats().captured_bytes, Signed(2_MiB));
  const hal::GraphExec exec = Need(hal::GraphExec::Create(graph));
  EXPECT_TRUE(IsOk(exec.Launch(stream.get())));
  ASSERT_TRUE(IsOk(stream.Synchronize()));
  ASSERT_TRUE(IsOk(allocator.ReleaseCaptured()));
  EXPECT_EQ(allocator.stats().captured_bytes, 0);
  ASSERT_TRUE(IsOk(stream.Synchronize()));
  EXPECT_EQ(Take(allocator, 2_MiB), recorded);
  ASSERT_TRUE(IsOk(allocator.Free(recorded)));
}

// A19
TEST_F(HostAllocatorTest, NoCallOfTheAllocatorBreaksACapture) {
  HostAllocator allocator(device_, {.limit = 8_MiB});
  const hal::Stream stream = Need(hal::Stream::Create(device_));
  void* const before = Take(allocator, 2_MiB);
  ASSERT_TRUE(IsOk(allocator.RecordUse(before, stream.get())));
  hal::Capture capture =
      Need(hal::Capture::Begin(device_, stream.get(), hal::CaptureMode::kGlobal));
  // Used before the capture, freed in it: an event would become part of the recording.
  ASSERT_TRUE(IsOk(allocator.Free(before)));
  void* const during = Take(allocator, 5_MiB);
  EXPECT_NE(during, before);
  EXPECT_EQ(allocator.Allocate(4_MiB).status().code(), StatusCode::kResourceExhausted);
  ASSERT_TRUE(IsOk(allocator.Free(during)));
  ASSERT_TRUE(IsOk(allocator.EmptyCache()));
  EXPECT_EQ(allocator.stats().pending_bytes, Signed(2_MiB));
  EXPECT_EQ(Need(device_->GetCaptureState(stream.get())), hal::CaptureState::kActive);
  EXPECT_TRUE(IsOk(capture.End()));
  ASSERT_TRUE(IsOk(allocator.Trim(4_MiB)));
  ASSERT_TRUE(IsOk(stream.Synchronize()));
  ASSERT_TRUE(IsOk(allocator.EmptyCache()));
  EXPECT_EQ(allocator.stats().pending_bytes, 0);
}

TEST_F(HostAllocatorTest, WithoutTheCacheEveryRequestIsTheDrivers) {
  {
    HostAllocator allocator(device_, {.cache = false});
    const hal::Stream stream = HeldStream();
    void* const plain = Take(allocator, 100_KiB);
    void* const used = Take(allocator, 3_MiB);
    EXPECT_EQ(device_->calls(Primitive::kAllocateHost), 2U);
    ASSERT_TRUE(IsOk(allocator.Free(plain)));
    EXPECT_EQ(device_->calls(Primitive::kFreeHost), 1U);
    ASSERT_TRUE(IsOk(allocator.RecordUse(used, stream.get())));
    ASSERT_TRUE(IsOk(allocator.Free(used)));
    EXPECT_EQ(device_->calls(Primitive::kFreeHost), 1U) << "freed under the stream";
    Release(stream);
    ASSERT_TRUE(IsOk(allocator.Free(Take(allocator, 1_KiB))));
    EXPECT_EQ(device_->calls(Primitive::kFreeHost), 3U);
    EXPECT_EQ(allocator.stats().memory.allocated_bytes.current, 0);
  }
  ExpectNothingLeft();
}

TEST_F(HostAllocatorTest, WhatTheCacheMayNotHoldIsTheDrivers) {
  HostAllocator allocator(device_, {.cache_limit = 8_MiB});
  void* const cached = Take(allocator, 6_MiB);
  void* const beyond = Take(allocator, 4_MiB);
  ASSERT_TRUE(IsOk(allocator.Free(beyond)));
  EXPECT_EQ(device_->calls(Primitive::kFreeHost), 1U);
  ASSERT_TRUE(IsOk(allocator.Free(cached)));
  EXPECT_EQ(device_->calls(Primitive::kFreeHost), 1U);
  EXPECT_EQ(allocator.stats().memory.allocated_bytes.current, Signed(6_MiB));
}

TEST_F(HostAllocatorTest, PointersThatAreNotLiveAreRefused) {
  HostAllocator allocator(device_);
  char* const pointer = static_cast<char*>(Take(allocator, 10_KiB));
  int local = 0;
  for (void* const bad : {static_cast<void*>(nullptr), static_cast<void*>(&local),
                          static_cast<void*>(pointer + 512), static_cast<void*>(pointer + 1)}) {
    EXPECT_EQ(allocator.Free(bad).code(), StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(allocator.FreeAll(std::vector<void*>{pointer, pointer}).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(Need(allocator.Find(pointer + 10239)).data, pointer) << "nothing was freed";
  EXPECT_EQ(Need(allocator.Find(pointer)).requested, 10_KiB);
  EXPECT_EQ(allocator.Find(pointer + 10240).status().code(), StatusCode::kNotFound);
  ASSERT_TRUE(IsOk(allocator.Free(pointer)));
  EXPECT_EQ(allocator.Free(pointer).code(), StatusCode::kInvalidArgument) << "freed twice";
  EXPECT_EQ(allocator.Find(pointer + 100).status().code(), StatusCode::kNotFound);
  const hal::Stream stream = Need(hal::Stream::Create(device_));
  EXPECT_EQ(allocator.RecordUse(pointer, stream.get()).code(), StatusCode::kInvalidArgument);
}

TEST_F(HostAllocatorTest, StatisticsAreExact) {
  HostAllocator allocator(device_);
  void* const small = Take(allocator, 1000_B);
  void* const large = Take(allocator, 2_MiB + 1_B);
  HostAllocatorStats stats = allocator.stats();
  EXPECT_EQ(stats.memory.allocations.current, 2);
  EXPECT_EQ(stats.memory.allocated_bytes.current, Signed(3_MiB + 4_KiB));
  EXPECT_EQ(stats.memory.active_requests.current, 2);
  EXPECT_EQ(stats.memory.active_bytes.current, Signed(1_KiB + 2_MiB + 4_KiB));
  EXPECT_EQ(stats.requested_bytes.current, Signed(1000_B + 2_MiB + 1_B));
  EXPECT_EQ(stats.memory.num_host_alloc, 2);
  EXPECT_EQ(stats.memory.host_alloc_time.count, 2);
  ASSERT_TRUE(IsOk(allocator.FreeAll(std::vector<void*>{small, large})));
  ASSERT_TRUE(IsOk(allocator.Trim(2_MiB)));
  stats = allocator.stats();
  EXPECT_EQ(stats.memory.allocated_bytes.current, Signed(1_MiB));
  EXPECT_EQ(stats.memory.allocated_bytes.peak, Signed(3_MiB + 4_KiB));
  EXPECT_EQ(stats.memory.active_requests.current, 0);
  EXPECT_EQ(stats.memory.active_requests.freed, 2);
  EXPECT_EQ(stats.memory.num_host_free, 1);
  allocator.ResetPeakStats();
  allocator.ResetAccumulatedStats();
  stats = allocator.stats();
  EXPECT_EQ(stats.memory.allocated_bytes.peak, Signed(1_MiB));
  EXPECT_EQ(stats.memory.allocated_bytes.allocated, 0);
  EXPECT_EQ(stats.memory.num_host_alloc, 0);
}

TEST_F(HostAllocatorTest, TheBackgroundThreadKeepsMemoryAhead) {
  {
    HostAllocator allocator(device_, {.limit = 64_MiB, .background_reserve = 4_MiB});
    ASSERT_TRUE(Soon([&] { return allocator.stats().memory.allocations.current != 0; }))
        << "nothing is taken ahead";
    std::vector<void*> live;
    live.reserve(300);
    for (int i = 0; i < 300; ++i) live.push_back(Take(allocator, 100_KiB));
    ASSERT_TRUE(Soon([&] {
      return allocator.stats().memory.allocated_bytes.current >= Signed(32_MiB);
    })) << "nothing is taken ahead of what is in use";
    EXPECT_LE(allocator.stats().memory.allocated_bytes.peak, Signed(64_MiB));
    ASSERT_TRUE(IsOk(allocator.FreeAll(live)));
    // One that fails is no harm, and is made up for.
    ASSERT_TRUE(IsOk(allocator.EmptyCache()));
    device_->FailNth(Primitive::kAllocateHost, 1, Internal("injected"));
    const Result<void*> pointer = allocator.Allocate(1_KiB);
    ASSERT_TRUE(IsOk(allocator.Free(Take(allocator, 1_KiB))));
    if (pointer.ok()) {
      ASSERT_TRUE(IsOk(allocator.Free(*pointer)));
    }
  }
  ExpectNothingLeft();
}

TEST_F(HostAllocatorTest, EveryCallMayFailAndNothingLeaks) {
  const auto use = [this](HostAllocator& allocator, const hal::Stream& stream) -> Status {
    std::vector<void*> live;
    const auto use_all = [&]() -> Status {
      for (const Bytes size : {1_KiB, 2_MiB, 100_KiB, 5_MiB, 3_MiB, 9_MiB}) {
        KEEL_ASSIGN(void* const pointer, allocator.Allocate(size));
        live.push_back(pointer);
        KEEL_TRY(allocator.RecordUse(pointer, stream.get()));
      }
      KEEL_TRY(allocator.Free(live.back()));
      live.pop_back();
      // Only what is pending has the room: a wait.
      KEEL_ASSIGN(void* const again, allocator.Allocate(8_MiB));
      live.push_back(again);
      return OkStatus();
    };
    Status status = use_all();
    const Status freed = allocator.FreeAll(live);
    if (status.ok()) status = freed;
    KEEL_TRY(std::move(status));
    // An event that could not be taken is taken now, and reached then.
    KEEL_TRY(allocator.Trim(1_TiB));
    KEEL_TRY(inner_->Synchronize(Deadline::Never()));
    return allocator.EmptyCache();
  };
  for (const bool cache : {true, false}) {
    const auto scenario = [&] {
      HostAllocator allocator(device_, {.cache = cache, .limit = 22_MiB});
      const hal::Stream stream = Need(hal::Stream::Create(inner_));
      Status status = use(allocator, stream);
      if (!status.ok()) {
        EXPECT_EQ(allocator.stats().memory.active_requests.current, 0);
        EXPECT_TRUE(IsOk(use(allocator, stream))) << "the same one, after " << status.ToString();
      }
      EXPECT_EQ(allocator.stats().pending_bytes, 0);
      EXPECT_EQ(allocator.stats().memory.allocated_bytes.current, 0);
      return status;
    };
    EXPECT_GT(SweepCalls(*device_, scenario, [this] { ExpectNothingLeft(); }), 20U);
  }
}

// A9
TEST_F(HostAllocatorTest, AForkedChildIsRefusedAndLeavesTheParentsMemoryAlone) {
  auto allocator =
      std::make_unique<HostAllocator>(device_, HostAllocatorOptions{.background_reserve = 1_MiB});
  char* const pointer = static_cast<char*>(Take(*allocator, 1_KiB));
  std::strcpy(pointer, "parent");
  std::optional<WorkingThread> busy([&] {
    std::vector<void*> taken;
    for (int i = 0; i < 8; ++i) taken.push_back(Take(*allocator, Bytes(1'000U << i)));
    static_cast<void>(allocator->FreeAll(taken).ok());
    static_cast<void>(allocator->EmptyCache().ok());
  });
  for (int round = 0; round < kForks; ++round) {
    const int status = InForkedChild([&] {
      EXPECT_EQ(allocator->Allocate(1_KiB).status().code(), StatusCode::kFailedPrecondition);
      EXPECT_EQ(allocator->Free(pointer).code(), StatusCode::kFailedPrecondition);
      EXPECT_EQ(allocator->EmptyCache().code(), StatusCode::kFailedPrecondition);
      EXPECT_EQ(allocator->Find(pointer).status().code(), StatusCode::kFailedPrecondition);
      allocator.reset();
    });
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status << " in " << round;
  }
  busy.reset();
  EXPECT_STREQ(pointer, "parent");
  ASSERT_TRUE(IsOk(allocator->Free(pointer)));
  allocator.reset();
  ExpectNothingLeft();
}

// A9
TEST(HostAllocatorDeathTest, AStaticAllocatorGivesBackAtExit) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        static std::optional<HostAllocator> oldest;
        static const std::unique_ptr<hal::Driver> driver = hal::SimDriver(1);
        oldest.emplace(Need(driver->Open(0)), HostAllocatorOptions{.background_reserve = 4_MiB});
        void* const pointer = Need(oldest->Allocate(3_MiB));
        if (!oldest->Free(pointer).ok()) std::abort();
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "^$");
}

// A device that is near a node, and sees by which policy the pages of host memory are taken.
class DeviceNearANode : public hal::ForwardingDevice {
 public:
  DeviceNearANode(const std::shared_ptr<hal::Device>& device, int node)
      : ForwardingDevice(device), info_(device->info()) {
    info_.numa_node = node;
  }
  const hal::DeviceInfo& info() const override { return info_; }
  Result<void*> AllocateHost(Bytes size, const hal::HostOptions& options) override {
    Look();
    return ForwardingDevice::AllocateHost(size, options);
  }
  Status RegisterHost(void* pointer, Bytes size) override {
    Look();
    return ForwardingDevice::RegisterHost(pointer, size);
  }
  // Of the last call; -1: the system's own.
  int node() const { return node_; }

 private:
  void Look() {
    int mode = 0;
    std::array<unsigned long, 1024 / (8 * sizeof(unsigned long))> nodes{};
    ASSERT_EQ(syscall(SYS_get_mempolicy, &mode, nodes.data(), 1024, nullptr, 0), 0);
    node_ = mode == 0 || nodes[0] == 0 ? -1 : std::countr_zero(nodes[0]);
  }

  hal::DeviceInfo info_;
  int node_ = -2;
};

TEST_F(HostAllocatorTest, PagesComeFromTheNodeOfTheDevice) {
  {
    const ScopedNumaNode node(0);
    if (!node.active()) GTEST_SKIP() << "this system does not let a process set its memory policy";
  }
  for (const bool registered : {false, true}) {
    const auto node_of = [&](int of_device, std::optional<int> wanted) {
      const auto device = std::make_shared<DeviceNearANode>(inner_, of_device);
      HostAllocator allocator(device, {.registered = registered, .numa_node = wanted});
      EXPECT_TRUE(IsOk(allocator.Free(Take(allocator, 2_MiB))));
      return device->node();
    };
    EXPECT_EQ(node_of(0, std::nullopt), 0) << "that of the device";
    EXPECT_EQ(node_of(-1, std::nullopt), -1) << "the device is near none";
    EXPECT_EQ(node_of(0, -1), -1) << "wherever the system takes it from";
    EXPECT_EQ(node_of(-1, 0), 0) << "the one that was asked for";
  }
}

TEST(NumaPolicyTest, TheNodeIsSetForAWhileAndThenWhatWasBefore) {
  const auto mode = [] {
    int now = -1;
    if (syscall(SYS_get_mempolicy, &now, nullptr, 0, nullptr, 0) != 0) return -1;
    return now;
  };
  const int before = mode();
  {
    const ScopedNumaNode nothing(-1);
  }
  EXPECT_EQ(mode(), before);
  {
    const ScopedNumaNode node(0);
    if (!node.active()) GTEST_SKIP() << "this system does not let a process set its memory policy";
    EXPECT_NE(mode(), before);
  }
  EXPECT_EQ(mode(), before);
  {
    const ScopedNumaNode no_such_node(1023);
  }
  EXPECT_EQ(mode(), before);
}

}  // namespace
}  // namespace keel::memory
