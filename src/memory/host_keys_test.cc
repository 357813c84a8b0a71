// Every key for host memory, from its text to what it does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/soon_test.h"
#include "hal/sim_devices_test.h"
#include "keel/hal/memory.h"
#include "keel/hal/stream.h"
#include "keel/memory/host_allocator.h"
#include "keel/memory/parallel_copy.h"
#include "keel/memory/staging.h"

namespace keel::memory {
namespace {

using hal::IsOk;
using hal::Need;
using hal::Primitive;
using ::testing::HasSubstr;

class HostKeysTest : public hal::SimDevicesTest {
 protected:
  static AllocatorConfig Config(std::string_view text) {
    return Need(AllocatorConfig::Parse(text));
  }
  static HostAllocatorOptions Options(std::string_view text) {
    return HostAllocatorOptions::From(Config(text));
  }
  void* Take(HostAllocator& allocator, Bytes size) { return Need(allocator.Allocate(size)); }
  static Bytes Held(const HostAllocator& allocator) {
    return Bytes(static_cast<std::uint64_t>(allocator.stats().memory.allocated_bytes.current));
  }
  static std::size_t ResidentPages(const void* data, Bytes size) {
    std::vector<unsigned char> pages(size.count() / 4096);
    EXPECT_EQ(mincore(const_cast<void*>(data), size.count(), pages.data()), 0);
    return static_cast<std::size_t>(
        std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return page & 1; }));
  }
  // Of the calling thread.
  static long Faults() {
    rusage usage{};
    EXPECT_EQ(getrusage(RUSAGE_THREAD, &usage), 0);
    return usage.ru_minflt;
  }
};

TEST_F(HostKeysTest, WithoutKeysTheOptionsAreTheDefaults) {
  const HostAllocatorOptions options = Options("");
  EXPECT_TRUE(options.cache);
  EXPECT_EQ(options.limit, 0_B);
  EXPECT_EQ(options.cache_limit, 0_B);
  EXPECT_EQ(options.reserve, 0_B);
  EXPECT_FALSE(options.background_collection || options.registered || options.prefault);
  const StagingOptions staging = StagingOptions::From(Config(""));
  EXPECT_EQ(staging.to_device_threshold, StagingOptions().to_device_threshold);
  EXPECT_EQ(staging.to_host_threshold, StagingOptions().to_host_threshold);
  EXPECT_EQ(staging.most_chunk, StagingOptions().most_chunk);
  EXPECT_EQ(staging.least_chunk, StagingOptions().least_chunk);
  EXPECT_EQ(ParallelCopyOptions::From(Config("")).threads, ParallelCopyOptions().threads);
}

TEST_F(HostKeysTest, HostLimit) {
  HostAllocator allocator(device_, Options("host_limit:8MiB"));
  void* const block = Take(allocator, 6_MiB);
  const Status status = allocator.Allocate(4_MiB).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("6 MiB are held of a limit of 8 MiB"));
  ASSERT_TRUE(IsOk(allocator.Free(block)));
  ASSERT_TRUE(IsOk(allocator.Free(Take(allocator, 8_MiB))));
}

TEST_F(HostKeysTest, HostCache) {
  HostAllocator none(device_, Options("host_cache:0"));
  ASSERT_TRUE(IsOk(none.Free(Take(none, 2_MiB))));
  EXPECT_EQ(device_->calls(Primitive::kFreeHost), 1U);
  EXPECT_EQ(Held(none), 0_B);

  HostAllocator some(device_, Options("host_cache:4MiB"));
  void* const kept = Take(some, 3_MiB);
  void* const beyond = Take(some, 2_MiB);
  ASSERT_TRUE(IsOk(some.Free(kept)));
  ASSERT_TRUE(IsOk(some.Free(beyond)));
  EXPECT_EQ(Held(some), 3_MiB);

  HostAllocator all(device_, Options("host_cache:unlimited"));
  ASSERT_TRUE(IsOk(all.FreeAll(std::vector{Take(all, 3_MiB), Take(all, 2_MiB)})));
  EXPECT_EQ(Held(all), 5_MiB);
}

TEST_F(HostKeysTest, PinnedUseHostRegister) {
  for (const char* const key :
       {"pinned_use_cuda_host_register", "pinned_use_hip_host_register"}) {  // vendor-ok: PyTorch's
    device_->ResetCounts();
    {
      HostAllocator allocator(device_, Options(std::string(key) + ":True"));
      void* const block = Take(allocator, 3_MiB);
      EXPECT_EQ(device_->calls(Primitive::kRegisterHost), 1U);
      EXPECT_EQ(device_->calls(Primitive::kAllocateHost), 0U);
      EXPECT_TRUE(IsOk(device_->GetHostAddress(block)));
      std::memset(block, 7, (3_MiB).count());
      ASSERT_TRUE(IsOk(allocator.Free(block)));
      EXPECT_EQ(Take(allocator, 3_MiB), block);
      EXPECT_EQ(device_->calls(Primitive::kRegisterHost), 1U);
      ASSERT_TRUE(IsOk(allocator.Free(block)));
      ASSERT_TRUE(IsOk(allocator.EmptyCache()));
      EXPECT_EQ(device_->calls(Primitive::kUnregisterHost), 1U);
      EXPECT_EQ(device_->calls(Primitive::kFreeHost), 0U);
      EXPECT_EQ(Held(allocator), 0_B);
    }
    ExpectNothingLeft();
  }
}

TEST_F(HostKeysTest, RegisteringThatFailsLeavesNothingBehind) {
  HostAllocator allocator(
      device_, Options("pinned_use_cuda_host_register:True"));  // vendor-ok: PyTorch's key
  device_->FailNth(Primitive::kRegisterHost, 1, Internal("on purpose"));
  EXPECT_EQ(allocator.Allocate(3_MiB).status().code(), StatusCode::kInternal);
  EXPECT_EQ(Held(allocator), 0_B);
  void* const block = Take(allocator, 3_MiB);
  ASSERT_TRUE(IsOk(allocator.Free(block)));
  // Tried again by its owner.
  device_->ResetCounts();
  device_->FailNth(Primitive::kUnregisterHost, 1, Internal("on purpose"));
  EXPECT_EQ(allocator.EmptyCache().code(), StatusCode::kInternal);
  EXPECT_EQ(device_->calls(Primitive::kUnregisterHost), 2U);
  EXPECT_EQ(Held(allocator), 0_B);
  ExpectNothingLeft();
}

TEST_F(HostKeysTest, PinnedNumRegisterThreads) {
  constexpr Bytes kSize = 64_MiB;
  const auto faults = [&](std::string_view text) {
    HostAllocator allocator(device_, Options(text));
    const long before = Faults();
    void* const block = Take(allocator, kSize);
    const long after = Faults();
    EXPECT_EQ(ResidentPages(block, kSize), kSize / 4_KiB) << text;
    EXPECT_TRUE(IsOk(allocator.Free(block)));
    return after - before;
  };
  const std::string key = "pinned_use_cuda_host_register:True";  // vendor-ok: PyTorch's key
  const long alone = faults(key + ",prefault:True");
  const long shared = faults(key + ",pinned_num_register_threads:8");
  EXPECT_GT(alone, 0);
  EXPECT_LT(shared, alone / 2);
}

TEST_F(HostKeysTest, Prefault) {
  constexpr Bytes kSize = 4_MiB;
  for (const bool prefault : {false, true}) {
    HostAllocator allocator(device_, Options(prefault ? "prefault:True" : ""));
    void* const block = Take(allocator, kSize);
    EXPECT_EQ(ResidentPages(block, kSize), prefault ? kSize / 4_KiB : 0);
    ASSERT_TRUE(IsOk(allocator.Free(block)));
  }
}

TEST_F(HostKeysTest, HostBackgroundReserve) {
  constexpr Bytes kSize = 1_MiB;
  for (const bool background : {false, true}) {
    device_->ResetCounts();
    HostAllocator allocator(device_, Options(background ? "host_background_reserve:4MiB" : ""));
    if (background) {
      ASSERT_TRUE(Soon([&] { return Held(allocator) >= 4_MiB; })) << "nothing is taken ahead";
    }
    const std::uint64_t before = device_->calls(Primitive::kAllocateHost);
    EXPECT_EQ(before, background ? 1U : 0U);
    void* const block = Take(allocator, kSize);
    EXPECT_EQ(ResidentPages(block, kSize), background ? kSize / 4_KiB : 0)
        << "before its first use";
    if (!background) {
      EXPECT_EQ(device_->calls(Primitive::kAllocateHost), 1U) << "the caller did it";
    }
    ASSERT_TRUE(IsOk(allocator.Free(block)));
  }
}

// The bounded search looks at 32 holes; who would fail looks at all.
TEST_F(HostKeysTest, AHoleFarBehindInTheReserveIsFound) {
  constexpr Bytes kFits = 64_KiB + 512_B;
  HostAllocatorOptions options = Options("pinned_reserve_segment_size_mb:4");
  options.limit = 4_MiB;
  for (const Bytes alignment : {512_B, 1_KiB}) {
    HostAllocator allocator(device_, options);
    std::vector<void*> holes;
    std::vector<void*> kept;
    Bytes used;
    const auto take = [&](std::vector<void*>& into, Bytes size) {
      into.push_back(Take(allocator, size));
      used += size;
    };
    for (int i = 0; i < 41; ++i) {
      // In one bin; the one that was freed first is looked at last.
      take(holes, i == 0 ? kFits : 64_KiB);
      take(kept, 512_B);
    }
    take(kept, 1_MiB);
    take(kept, 4_MiB - used);
    for (void* const hole : holes) ASSERT_TRUE(IsOk(allocator.Free(hole)));
    const Bytes wanted = kFits - (alignment - 512_B);
    const Result<void*> block = allocator.Allocate(wanted, alignment);
    ASSERT_TRUE(IsOk(block));
    if (alignment == 512_B) {
      EXPECT_EQ(*block, holes[0]);
    }
    EXPECT_EQ(device_->calls(Primitive::kAllocateHost), 1U);
    device_->ResetCounts();
  }
}

TEST_F(HostKeysTest, PinnedUseBackgroundThreads) {
  for (const bool background : {false, true}) {
    HostAllocator allocator(device_,
                            Options(background ? "pinned_use_background_threads:True" : ""));
    const hal::Stream stream = Need(hal::Stream::Create(device_));
    ASSERT_TRUE(IsOk(controls().HoldStream(stream.get())));
    ASSERT_TRUE(IsOk(device_->CallHost(stream.get(), {.function = [](void*) {}, .data = nullptr})));
    void* const block = Take(allocator, 3_MiB);
    ASSERT_TRUE(IsOk(allocator.RecordUse(block, stream.get())));
    ASSERT_TRUE(IsOk(allocator.Free(block)));
    EXPECT_EQ(allocator.stats().pending_bytes, 3 << 20);
    ASSERT_TRUE(IsOk(controls().ReleaseStream(stream.get())));
    ASSERT_TRUE(IsOk(stream.Synchronize()));
    if (background) {
      EXPECT_TRUE(Soon([&] { return allocator.stats().pending_bytes == 0; }))
          << "the thread has not noticed that the stream is through";
    } else {
      EXPECT_EQ(allocator.stats().pending_bytes, 3 << 20);
    }
  }
}

// The thread is not in the way of an end while there is something to wait for.
TEST_F(HostKeysTest, BackgroundThreadsEndWithTheAllocator) {
  const hal::Stream stream = Need(hal::Stream::Create(device_));
  ASSERT_TRUE(IsOk(device_->BeginCapture(stream.get(), hal::CaptureMode::kRelaxed)));
  {
    HostAllocator allocator(device_, Options("pinned_use_background_threads:True"));
    void* const block = Take(allocator, 3_MiB);
    ASSERT_TRUE(IsOk(allocator.RecordUse(block, stream.get())));
    ASSERT_TRUE(IsOk(allocator.Free(block)));
    ASSERT_TRUE(IsOk(allocator.ReleaseCaptured()));  // pending now, on a stream that captures
  }
  const hal::GraphHandle graph = Need(device_->EndCapture(stream.get()));
  ASSERT_TRUE(IsOk(device_->DestroyGraph(graph)));
}

TEST_F(HostKeysTest, PinnedReserveSegmentSize) {
  {
    HostAllocator allocator(device_, Options("pinned_reserve_segment_size_mb:64"));
    EXPECT_EQ(device_->calls(Primitive::kAllocateHost), 0U);
    void* const first = Take(allocator, 1_KiB);
    EXPECT_EQ(device_->calls(Primitive::kAllocateHost), 1U);
    EXPECT_EQ(Held(allocator), 64_MiB);
    // Of all sizes, in any order.
    std::vector<void*> blocks = {first};
    for (const Bytes size : {20_MiB, 1_MiB, 5_KiB, 30_MiB}) blocks.push_back(Take(allocator, size));
    EXPECT_EQ(Need(allocator.Find(static_cast<std::byte*>(blocks[1]) + 5)).data, blocks[1]);
    EXPECT_EQ(device_->calls(Primitive::kAllocateHost), 1U);
    // It is full: the rest is as ever, and what is beside the reserve does not count against it.
    void* const more = Take(allocator, 20_MiB);
    EXPECT_EQ(device_->calls(Primitive::kAllocateHost), 2U);
    ASSERT_TRUE(IsOk(allocator.Free(more)));
    ASSERT_TRUE(IsOk(allocator.FreeAll(blocks)));
    ASSERT_TRUE(IsOk(allocator.EmptyCache()));
    EXPECT_EQ(Held(allocator), 64_MiB);
    ASSERT_TRUE(IsOk(allocator.Free(Take(allocator, 64_MiB))));
    EXPECT_EQ(device_->calls(Primitive::kAllocateHost), 2U);
  }
  ExpectNothingLeft();
  // A driver that has none: then without.
  HostAllocator without(device_, Options("pinned_reserve_segment_size_mb:64"));
  device_->FailNth(Primitive::kAllocateHost, 1, ResourceExhausted("on purpose"));
  ASSERT_TRUE(IsOk(without.Free(Take(without, 1_KiB))));
  EXPECT_EQ(Held(without), 1_MiB);
}

class StagingKeysTest : public HostKeysTest {
 protected:
  struct Went {
    bool to_device;
    bool to_host;
  };
  // Whether copies of this size were staged.
  Went Copies(std::string_view text, Bytes size) {
    const hal::Stream stream = Need(hal::Stream::Create(device_));
    const hal::MappedMemory memory = Need(hal::MappedMemory::Create(device_, size));
    Staging staging(std::make_shared<HostAllocator>(device_, Options(text)), Config(text));
    std::vector<std::byte> bytes(size.count());
    EXPECT_TRUE(IsOk(staging.CopyToDevice(stream.get(), memory.address(), bytes.data(), size)));
    const bool to_device = staging.stats().staged != 0;
    const std::uint64_t before = staging.stats().staged;
    EXPECT_TRUE(IsOk(staging.CopyToHost(stream.get(), bytes.data(), memory.address(), size)));
    EXPECT_TRUE(IsOk(stream.Synchronize()));
    return {to_device, staging.stats().staged != before};
  }
};

TEST_F(StagingKeysTest, StagingThreshold) {
  const auto expect = [&](std::string_view text, Bytes size, bool to_device, bool to_host) {
    const Went went = Copies(text, size);
    EXPECT_EQ(went.to_device, to_device) << text << " " << ToString(size);
    EXPECT_EQ(went.to_host, to_host) << text << " " << ToString(size);
  };
  for (const char* const text : {"", "staging_threshold:auto"}) {
    expect(text, 256_KiB - 1_B, false, false);
    expect(text, 256_KiB, false, true);
    expect(text, 1_MiB - 1_B, false, true);
    expect(text, 1_MiB, true, true);
  }
  expect("staging_threshold:1MiB", 1_MiB - 1_B, false, false);
  expect("staging_threshold:1MiB", 1_MiB, true, true);
  expect("staging_threshold:0", 1_B, true, true);
  expect("staging_threshold:unlimited", 8_MiB, false, false);
}

TEST_F(StagingKeysTest, StagingChunk) {
  const auto copies = [&](std::string_view text) {
    device_->ResetCounts();
    Copies(text, 4_MiB);
    return device_->calls(Primitive::kCopy);
  };
  EXPECT_EQ(copies("staging_threshold:0"), 2 * 8U);
  EXPECT_EQ(copies("staging_threshold:0,staging_chunk:64KiB"), 2 * 64U);
  EXPECT_EQ(copies("staging_threshold:0,staging_chunk:512KiB"), 2 * 8U);
}

TEST_F(StagingKeysTest, StagingPinLimit) {
  constexpr Bytes kSize = 2_MiB;
  const hal::Stream stream = Need(hal::Stream::Create(device_));
  const hal::MappedMemory memory = Need(hal::MappedMemory::Create(device_, kSize));
  const auto staging = [&](std::string_view text) {
    return std::make_unique<Staging>(std::make_shared<HostAllocator>(device_), Config(text));
  };
  const auto copy_some = [&](Staging& by, const std::vector<std::byte>& bytes, Bytes size) {
    ASSERT_TRUE(IsOk(by.CopyToDevice(stream.get(), memory.address(), bytes.data(), size)));
  };
  const auto copy = [&](Staging& by, const std::vector<std::byte>& bytes) {
    copy_some(by, bytes, kSize);
  };
  std::vector<std::byte> first(kSize.count());
  const std::vector<std::byte> second(kSize.count());
  const auto without = staging("staging_threshold:1MiB");
  for (int i = 0; i < 3; ++i) copy(*without, first);
  EXPECT_EQ(without->registrations(), nullptr);
  EXPECT_EQ(without->stats().pinned, 0U);
  EXPECT_EQ(device_->calls(Primitive::kRegisterHost), 0U);

  // Room for one of them, with the pages at its ends.
  const auto with = staging("staging_threshold:1MiB,staging_pin_limit:3MiB");
  ASSERT_NE(with->registrations(), nullptr);
  for (int i = 0; i < 3; ++i) copy(*with, first);
  EXPECT_EQ(with->stats().staged, kSize.count()) << "the first time";
  EXPECT_EQ(with->stats().pinned, 2 * kSize.count()) << "and from then on";
  EXPECT_EQ(device_->calls(Primitive::kRegisterHost), 1U);
  // A copy that is the driver's by its size would not be waited for: this memory is pinned.
  copy_some(*with, first, 4_KiB);
  EXPECT_EQ(with->stats().direct, 0U);
  EXPECT_EQ(with->stats().pinned, 2 * kSize.count() + 4096);
  // The other one takes its place: at the limit, what was used longest ago goes.
  for (int i = 0; i < 5; ++i) copy(*with, second);
  EXPECT_EQ(with->registrations()->stats().evictions, 1U);
  EXPECT_EQ(with->registrations()->stats().ranges, 1U);
  EXPECT_LE(with->registrations()->stats().peak_bytes, 3_MiB);
  EXPECT_GT(with->stats().pinned, 3 * kSize.count());
  EXPECT_TRUE(IsOk(MemoryGone(second.data(), kSize)));
  EXPECT_EQ(with->registrations()->stats().ranges, 0U);
  EXPECT_EQ(device_->calls(Primitive::kUnregisterHost), 2U);
}

TEST_F(StagingKeysTest, StagingThreads) {
  EXPECT_EQ(ParallelCopy(ParallelCopyOptions::From(Config("staging_threads:3"))).threads(), 3);
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
  };
  const hal::Stream stream = Need(hal::Stream::Create(device_));
  const hal::MappedMemory memory = Need(hal::MappedMemory::Create(device_, 8_MiB));
  const auto before = threads();
  Staging staging(std::make_shared<HostAllocator>(device_), Config("staging_threads:5"));
  const std::vector<std::byte> bytes((8_MiB).count());
  ASSERT_TRUE(IsOk(staging.CopyToDevice(stream.get(), memory.address(), bytes.data(), 8_MiB)));
  EXPECT_EQ(threads() - before, 4);  // and the caller
  ASSERT_TRUE(IsOk(stream.Synchronize()));
}

}  // namespace
}  // namespace keel::memory
