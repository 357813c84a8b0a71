// HostAllocator under threads and streams, with commands delayed by random times: blocks that are
// live never overlap, and memory is not reused while a stream still reads or writes it.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "hal/sim_devices_test.h"
#include "keel/base/mutex.h"
#include "keel/hal/memory.h"
#include "keel/hal/stream.h"
#include "keel/memory/host_allocator.h"

namespace keel::memory {
namespace {

using hal::IsOk;
using hal::Need;

constexpr std::size_t kMost = 192 * 1024;

// Who has which bytes.
class LiveRanges {
 public:
  void Add(const void* pointer, std::size_t size) KEEL_EXCLUDES(mutex_) {
    const auto start = reinterpret_cast<std::uint64_t>(pointer);
    MutexLock lock(mutex_);
    const auto after = ranges_.upper_bound(start);
    ASSERT_TRUE(after == ranges_.end() || start + size <= after->first) << "overlaps a live block";
    ASSERT_TRUE(after == ranges_.begin() || std::prev(after)->second <= start)
        << "overlaps a live block";
    ranges_[start] = start + size;
  }
  void Remove(const void* pointer) KEEL_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    ranges_.erase(reinterpret_cast<std::uint64_t>(pointer));
  }

 private:
  Mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> ranges_ KEEL_GUARDED_BY(mutex_);
};

struct Shared {
  std::shared_ptr<hal::Device> device;
  HostAllocator& allocator;
  LiveRanges live;
};

bool AllBytesAre(const void* pointer, std::size_t size, unsigned char value) {
  const auto* const bytes = static_cast<const unsigned char*>(pointer);
  return size == 0 || (bytes[0] == value && std::memcmp(bytes, bytes + 1, size - 1) == 0);
}

// One thread's part: its own streams and device memory, everybody's allocator.
class Worker {
 public:
  Worker(Shared& shared, unsigned seed) : shared_(shared), random_(seed) {
    for (int i = 0; i < 3; ++i) streams_.push_back(Need(hal::Stream::Create(shared.device)));
    memory_ = Need(hal::PlainMemory::Create(shared.device, Bytes(kSlots * kMost)));
    check_ = Need(hal::HostMemory::Create(shared.device, Bytes(kSlots * kMost)));
  }

  void Run(int rounds) {
    for (int round = 0; round < rounds && !testing::Test::HasFailure(); ++round) {
      for (std::size_t slot = 0; slot < kSlots; ++slot) {
        if (random_() % 2 == 0) {
          SendAndFree(slot);
        } else {
          ReceiveAndFree(slot);
        }
        HoldOne();
      }
      CheckRound();
    }
    while (!held_.empty()) DropOne();
    // The streams go: what waits for an event to share must have it.
    ASSERT_TRUE(IsOk(shared_.allocator.Trim(1_TiB)));
  }

 private:
  static constexpr std::size_t kSlots = 8;

  struct Held {
    void* pointer;
    std::size_t size;
    unsigned char value;
  };

  std::size_t Size() {
    const std::size_t size = 1 + random_() % kMost;
    return random_() % 2 == 0 ? 1 + size / 64 : size;
  }
  const hal::Stream& AnyStream() { return streams_[random_() % streams_.size()]; }
  hal::Location OnDevice(std::size_t slot) const {
    return hal::Location::On(shared_.device->id(), memory_.address() + Bytes(slot * kMost));
  }
  void* Allocate(std::size_t size) {
    void* const pointer = Need(shared_.allocator.Allocate(Bytes(size)));
    shared_.live.Add(pointer, size);
    return pointer;
  }
  void FreeUsed(void* pointer, std::size_t size, const hal::Stream& stream) {
    ASSERT_TRUE(
        IsOk(shared_.allocator.RecordUse(static_cast<char*>(pointer) + size / 2, stream.get())));
    shared_.live.Remove(pointer);
    ASSERT_TRUE(IsOk(shared_.allocator.Free(pointer)));
  }

  // The stream reads the block after it was freed: whoever writes into it too early is seen in the
  // copy.
  void SendAndFree(std::size_t slot) {
    sent_[slot] = Size();
    values_[slot] = static_cast<unsigned char>(random_());
    void* const pointer = Allocate(sent_[slot]);
    std::memset(pointer, values_[slot], sent_[slot]);
    const hal::Stream& stream = AnyStream();
    ASSERT_TRUE(
        IsOk(shared_.device->EnqueueCopy(stream.get(), {.destination = OnDevice(slot),
                                                        .source = hal::Location::Host(pointer),
                                                        .size = Bytes(sent_[slot])})));
    FreeUsed(pointer, sent_[slot], stream);
  }

  // The stream writes the block after it was freed: it is seen in what the next owner wrote.
  void ReceiveAndFree(std::size_t slot) {
    sent_[slot] = 0;
    const std::size_t size = Size();
    void* const pointer = Allocate(size);
    const hal::Stream& stream = AnyStream();
    ASSERT_TRUE(
        IsOk(shared_.device->EnqueueCopy(stream.get(), {.destination = hal::Location::Host(pointer),
                                                        .source = OnDevice(slot),
                                                        .size = Bytes(size)})));
    FreeUsed(pointer, size, stream);
  }

  void HoldOne() {
    const std::size_t size = Size();
    Held held{Allocate(size), size, static_cast<unsigned char>(random_())};
    std::memset(held.pointer, held.value, size);
    held_.push_back(held);
    if (held_.size() > 6) DropOne();
  }
  void DropOne() {
    std::swap(held_[random_() % held_.size()], held_.back());
    const Held held = held_.back();
    held_.pop_back();
    EXPECT_TRUE(AllBytesAre(held.pointer, held.size, held.value)) << "somebody wrote a live block";
    shared_.live.Remove(held.pointer);
    ASSERT_TRUE(IsOk(shared_.allocator.Free(held.pointer)));
  }

  void CheckRound() {
    for (const hal::Stream& stream : streams_) ASSERT_TRUE(IsOk(stream.Synchronize()));
    ASSERT_TRUE(IsOk(shared_.device->EnqueueCopy(streams_[0].get(),
                                                 {.destination = hal::Location::Host(check_.data()),
                                                  .source = OnDevice(0),
                                                  .size = Bytes(kSlots * kMost)})));
    ASSERT_TRUE(IsOk(streams_[0].Synchronize()));
    for (std::size_t slot = 0; slot < kSlots; ++slot) {
      EXPECT_TRUE(
          AllBytesAre(static_cast<char*>(check_.data()) + slot * kMost, sent_[slot], values_[slot]))
          << "a block was reused under the copy from it";
    }
  }

  Shared& shared_;
  std::mt19937 random_;
  std::vector<hal::Stream> streams_;
  hal::PlainMemory memory_;
  hal::HostMemory check_;
  std::size_t sent_[kSlots] = {};
  unsigned char values_[kSlots] = {};
  std::vector<Held> held_;
};

void RunAll(const HostAllocatorOptions& options, unsigned seed, int rounds) {
  const std::unique_ptr<hal::Driver> driver = Need(sim::CreateSimDriver(
      {.devices = 1, .memory = 1_GiB, .arena = 8_GiB, .seed = seed, .delay_us = 40}));
  const std::shared_ptr<hal::InstrumentedDevice> device = hal::Instrumented(Need(driver->Open(0)));
  {
    HostAllocator allocator(device, options);
    Shared shared{device, allocator, {}};
    std::vector<std::thread> threads;
    threads.reserve(4);
    for (unsigned thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&, thread] { Worker(shared, seed * 100 + thread).Run(rounds); });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(allocator.stats().memory.active_requests.current, 0);
    EXPECT_EQ(allocator.stats().requested_bytes.current, 0);
    EXPECT_TRUE(IsOk(device->Synchronize(Deadline::Never())));
    EXPECT_TRUE(IsOk(allocator.EmptyCache()));
    EXPECT_EQ(allocator.stats().pending_bytes, 0);
    EXPECT_EQ(allocator.stats().memory.allocated_bytes.current, 0);
    if (!options.limit.empty()) {
      EXPECT_LE(allocator.stats().memory.allocated_bytes.peak,
                static_cast<std::int64_t>(options.limit.count()));
    }
  }
  EXPECT_EQ(hal::ToString(device->Live()), "");
}

int Rounds() {
  const char* const soak = std::getenv("KEEL_SOAK");
  return soak != nullptr && *soak != '\0' ? 2000 : 20;
}

TEST(HostAllocatorPropertyTest, StreamsAndThreadsNeverShareABlock) {
  RunAll({}, 1, Rounds());
  RunAll({.event_batch = 4}, 2, Rounds());
}

TEST(HostAllocatorPropertyTest, AtTheLimitToo) {
  RunAll({.limit = 8_MiB}, 3, Rounds());
  RunAll({.limit = 12_MiB, .background_reserve = 1_MiB}, 4, Rounds());
}

TEST(HostAllocatorPropertyTest, AndWithoutTheCache) {
  RunAll({.cache = false}, 5, Rounds());
  RunAll({.cache_limit = 2_MiB}, 6, Rounds());
}

}  // namespace
}  // namespace keel::memory
