// Random operations of several threads on several streams, against what must hold: no two live
// blocks overlap, and no byte is written by anybody else from its allocation until the work that
// was queued before its free is done. Every block is filled with a pattern of its own and compared
// before it goes, on its own stream and, recorded, on others, while the device delays its commands
// at random.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <thread>

#include "keel/base/mutex.h"
#include "keel/hal/memory.h"
#include "keel/hal/module.h"
#include "keel/hal/standard_kernels.h"
#include "memory/device_allocator_test.h"

namespace keel::memory {
namespace {

constexpr int kThreads = 4;
constexpr int kStreams = 3;
// Work on every byte of large blocks would only be slow: their ends and their middle.
constexpr std::uint64_t kProbe = 1024;

int Operations() {
  const char* const soak = std::getenv("KEEL_SOAK");
  return soak != nullptr && *soak != '\0' ? 2'000'000 : 25'000;
}

struct LiveBlock {
  DeviceAddress address;
  Bytes size;
  hal::StreamHandle stream;
  std::uint32_t pattern = 0;
};

// What is live, as a program sees it.
class Reference {
 public:
  void Add(const LiveBlock& block) KEEL_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    const auto next = blocks_.lower_bound(block.address.value());
    if (next != blocks_.end()) {
      EXPECT_LE(block.address.value() + block.size.count(), next->first) << "overlaps the next";
    }
    if (next != blocks_.begin()) {
      const auto before = std::prev(next);
      EXPECT_LE(before->first + before->second, block.address.value()) << "overlaps the one before";
    }
    blocks_.emplace(block.address.value(), block.size.count());
    bytes_ += block.size.count();
  }
  void Remove(const LiveBlock& block) KEEL_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    blocks_.erase(block.address.value());
    bytes_ -= block.size.count();
  }
  std::size_t count() KEEL_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return blocks_.size();
  }
  std::uint64_t bytes() KEEL_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return bytes_;
  }

 private:
  Mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> blocks_ KEEL_GUARDED_BY(mutex_);
  std::uint64_t bytes_ KEEL_GUARDED_BY(mutex_) = 0;
};

// expected[i] == value for all i, else *wrong counts.
void CompareKernel(sim::KernelContext& context) {
  const std::span<const std::uint32_t> words = context.Buffer<const std::uint32_t>(0);
  const auto value = context.Value<std::uint32_t>(2);
  for (const std::uint32_t word : words) {
    if (word != value) {
      std::atomic_ref<std::uint64_t>(context.Buffer<std::uint64_t>(1)[0]).fetch_add(1);
      return;
    }
  }
}

constexpr sim::KernelParameter kCompareParameters[] = {
    sim::KernelParameter::In(), sim::KernelParameter::InOut(),
    sim::KernelParameter::Value<std::uint32_t>()};
constexpr const char* kSet = "allocator-random-test";

hal::ModuleSource CompareModule() {
  static const bool registered = [] {
    const sim::KernelDefinition kernels[] = {{"compare", &CompareKernel, kCompareParameters}};
    return sim::RegisterKernels(kSet, kernels).ok();
  }();
  EXPECT_TRUE(registered);
  return hal::ModuleSource::Registered(kSet);
}

class DeviceAllocatorRandomTest : public RoomyDevicesTest,
                                  public ::testing::WithParamInterface<Source> {
 protected:
  DeviceAllocatorRandomTest() {
    Open({.devices = 1, .memory = 256_MiB, .arena = 30_GiB, .seed = 7, .delay_us = 20});
    for (int i = 0; i < kStreams; ++i) streams_.push_back(Need(hal::Stream::Create(device_)));
    module_ = Need(hal::Module::Load(device_, CompareModule()));
    compare_ = Need(module_.Find("compare"));
    wrong_ = Need(hal::PlainMemory::Create(inner_, 4_KiB));
    EXPECT_TRUE(IsOk(inner_->EnqueueFill(
        streams_[0].get(), {.destination = wrong_.address(), .value = 0, .width = 4, .count = 2})));
    EXPECT_TRUE(IsOk(streams_[0].Synchronize()));
  }

  // Three probes of a block.
  template <class Probe>
  void ForEachProbe(const LiveBlock& block, Probe probe) {
    const std::uint64_t words = std::min(block.size.count(), kProbe) / 4;
    if (words == 0) return;
    const std::uint64_t last = (block.size.count() / 4 - words) * 4;
    for (const std::uint64_t offset : {std::uint64_t{0}, last / 8 * 4, last}) {
      probe(block.address + Bytes(offset), words);
    }
  }
  void Write(const LiveBlock& block) {
    ForEachProbe(block, [&](DeviceAddress at, std::uint64_t words) {
      ASSERT_TRUE(IsOk(device_->EnqueueFill(
          block.stream, {.destination = at, .value = block.pattern, .width = 4, .count = words})));
    });
  }
  void Compare(const LiveBlock& block, hal::StreamHandle stream) {
    ForEachProbe(block, [&](DeviceAddress at, std::uint64_t words) {
      const hal::KernelArg args[] = {hal::KernelArg::In(at, Bytes(words * 4)),
                                     hal::KernelArg::InOut(wrong_.address(), 8_B),
                                     hal::KernelArg::Value(block.pattern)};
      ASSERT_TRUE(IsOk(device_->LaunchKernel(stream, {.kernel = compare_, .args = args})));
    });
  }
  std::uint64_t Wrong() {
    std::uint64_t wrong = 0;
    EXPECT_TRUE(IsOk(inner_->EnqueueCopy(
        streams_[0].get(), {.destination = hal::Location::Host(&wrong),
                            .source = hal::Location::On(inner_->id(), wrong_.address()),
                            .size = 8_B})));
    return wrong;
  }

  void Run(DeviceAllocator& allocator, Reference& reference, int thread, int operations);
  void Finish(DeviceAllocator& allocator, Reference& reference, std::mt19937& random,
              const LiveBlock& block);

  std::vector<hal::Stream> streams_;
  hal::Module module_;
  hal::KernelHandle compare_;
  hal::PlainMemory wrong_;
  // Blocks that one thread allocated and another shall free.
  Mutex handed_mutex_;
  std::vector<LiveBlock> handed_ KEEL_GUARDED_BY(handed_mutex_);
  std::atomic<std::uint64_t> exhausted_{0};
};

Bytes RandomSize(std::mt19937& random) {
  // Mostly small, as in programs; a few that are large for this device.
  static constexpr int kWeights[] = {30, 30, 20, 14, 5, 1};
  std::discrete_distribution<int> pick(std::begin(kWeights), std::end(kWeights));
  static constexpr std::uint64_t kMost[] = {2 << 10, 32 << 10, 1 << 20,
                                            4 << 20, 16 << 20, 64 << 20};
  const std::uint64_t most = kMost[pick(random)];
  // Often a size that was there before.
  if (random() % 2 == 0) return Bytes(most / (1 + random() % 4));
  return Bytes(4 + random() % most);
}

void DeviceAllocatorRandomTest::Finish(DeviceAllocator& allocator, Reference& reference,
                                       std::mt19937& random, const LiveBlock& block) {
  Compare(block, block.stream);
  if (random() % 4 == 0) {
    // Another stream reads it, after what wrote it, and nobody waits for that.
    const hal::StreamHandle other = streams_[random() % kStreams].get();
    const hal::EventHandle event = Need(device_->CreateEvent({}));
    ASSERT_TRUE(IsOk(device_->RecordEvent(event, block.stream)));
    ASSERT_TRUE(IsOk(device_->WaitEvent(other, event)));
    ASSERT_TRUE(IsOk(device_->DestroyEvent(event)));
    Compare(block, other);
    ASSERT_TRUE(IsOk(allocator.RecordUse(block.address, other)));
  }
  reference.Remove(block);
  ASSERT_TRUE(IsOk(random() % 2 == 0 ? allocator.Free(block.address)
                                     : allocator.Free(block.address, block.size)));
}

void DeviceAllocatorRandomTest::Run(DeviceAllocator& allocator, Reference& reference, int thread,
                                    int operations) {
  std::mt19937 random(static_cast<unsigned>(thread) + 1);
  std::vector<LiveBlock> mine;
  const auto drop = [&](std::size_t which) {
    const LiveBlock block = mine[which];
    mine[which] = mine.back();
    mine.pop_back();
    if (random() % 8 == 0) {
      const MutexLock lock(handed_mutex_);
      handed_.push_back(block);
    } else {
      Finish(allocator, reference, random, block);
    }
  };
  for (int i = 0; i < operations && !HasFatalFailure(); ++i) {
    const auto what = static_cast<int>(random() % 1000);
    if (what < 520) {
      LiveBlock block{.size = RandomSize(random),
                      .stream = streams_[random() % kStreams].get(),
                      .pattern = static_cast<std::uint32_t>(random())};
      const Bytes alignment = random() % 50 == 0 ? 64_KiB : 0_B;
      const Result<DeviceAddress> address =
          allocator.Allocate(block.size, block.stream, {.alignment = alignment});
      if (address.ok()) {
        block.address = *address;
        reference.Add(block);
        Write(block);
        mine.push_back(block);
      } else {
        ASSERT_EQ(address.status().code(), StatusCode::kResourceExhausted)
            << address.status().ToString();
        exhausted_.fetch_add(1);
        while (mine.size() > 4) drop(random() % mine.size());
      }
    } else if (what < 985) {
      std::optional<LiveBlock> other;
      {
        const MutexLock lock(handed_mutex_);
        if (!handed_.empty()) {
          other = handed_.back();
          handed_.pop_back();
        }
      }
      if (other) Finish(allocator, reference, random, *other);
      if (!mine.empty()) drop(random() % mine.size());
    } else if (what < 990) {
      ASSERT_EQ(allocator.CheckPools(), "");
      const MemorySnapshot snapshot = allocator.Snapshot();
      for (const SegmentSnapshot& segment : snapshot.segments) {
        std::uint64_t at = segment.address.value();
        for (const BlockSnapshot& each : segment.blocks) {
          ASSERT_EQ(each.address.value(), at);
          at += each.size.count();
        }
        ASSERT_EQ(at, segment.address.value() + segment.size.count());
      }
    } else if (what < 995) {
      static_cast<void>(allocator.Stats());
      if (!mine.empty()) {
        const AllocationInfo info = Need(allocator.Find(mine.back().address));
        EXPECT_EQ(info.requested, mine.back().size);
        EXPECT_EQ(info.stream, mine.back().stream);
      }
    } else {
      ASSERT_TRUE(IsOk(allocator.Trim(Bytes(random() % 256 << 20))));
    }
    // So that commands do not pile up without end.
    if (i % 256 == 255) {
      ASSERT_TRUE(IsOk(streams_[random() % kStreams].Synchronize()));
    }
  }
  while (!mine.empty() && !HasFatalFailure()) drop(mine.size() - 1);
}

TEST_P(DeviceAllocatorRandomTest, NothingOverlapsAndNothingIsReusedTooEarly) {
  AllocatorConfig config{.expandable_segments = GetParam() == Source::kExpandable};
  // Less than the device has, so that the limit is met, and handles of every size.
  config.limit = 200_MiB;
  config.upkeep = 0.2;
  auto allocator = Need(DeviceAllocator::Create(device_, {.config = config}));
  Reference reference;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] { Run(*allocator, reference, i, Operations()); });
  }
  for (std::thread& thread : threads) thread.join();
  std::mt19937 random(99);
  std::vector<LiveBlock> rest;
  {
    const MutexLock lock(handed_mutex_);
    rest.swap(handed_);
  }
  EXPECT_EQ(reference.count(), rest.size());
  telemetry::MemoryStats stats = allocator->Stats();
  EXPECT_EQ(stats.allocation.all.current, static_cast<std::int64_t>(reference.count()));
  EXPECT_EQ(stats.requested_bytes.all.current, static_cast<std::int64_t>(reference.bytes()));
  for (const LiveBlock& block : rest) Finish(*allocator, reference, random, block);
  for (const hal::Stream& stream : streams_) ASSERT_TRUE(IsOk(stream.Synchronize()));
  EXPECT_TRUE(IsOk(device_->Health()));
  EXPECT_EQ(Wrong(), 0U);

  ASSERT_TRUE(IsOk(allocator->EmptyCache()));
  EXPECT_EQ(allocator->Check(), "");
  EXPECT_EQ(allocator->reserved(), 0_B);
  stats = allocator->Stats();
  for (const telemetry::PoolStat* each :
       {&stats.allocation, &stats.allocated_bytes, &stats.requested_bytes, &stats.active,
        &stats.active_bytes, &stats.reserved_bytes, &stats.segment, &stats.inactive_split}) {
    EXPECT_EQ(each->all.current, 0);
    EXPECT_EQ(each->small_pool.current, 0);
    EXPECT_EQ(each->large_pool.current, 0);
    EXPECT_EQ(each->all.allocated, each->all.freed);
  }
  EXPECT_EQ(stats.pending_frees.current, 0);
  EXPECT_EQ(stats.pending_free_bytes.current, 0);
  EXPECT_LE(stats.reserved_bytes.all.peak, 200 << 20);
  // The test is worth something only if it met the limit, and moved memory.
  EXPECT_GT(stats.num_alloc_retries, 0);
  if (GetParam() == Source::kExpandable) {
    EXPECT_GT(stats.pages_moved, 0);
  }
  RecordProperty("exhausted", std::to_string(exhausted_.load()));
  allocator.reset();
  module_ = {};
  wrong_ = {};
  streams_.clear();
  ExpectNothingLeft();
}

KEEL_WITH_BOTH_SOURCES(DeviceAllocatorRandomTest);

}  // namespace
}  // namespace keel::memory
