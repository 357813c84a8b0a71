// Calls that meet: of several threads on one stream, and of one thread on several devices.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <csignal>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "memory/device_allocator_test.h"

namespace keel::memory {
namespace {

// Threads that race give way wherever they are, again and again: else one is mostly through before
// the next begins, on a machine with few processors, and they meet once in several runs.
class Nudges {
 public:
  explicit Nudges(std::vector<std::thread>& threads) {
    struct sigaction action = {};
    action.sa_handler = [](int) { sched_yield(); };
    action.sa_flags = SA_RESTART;
    EXPECT_EQ(sigaction(SIGUSR1, &action, &before_), 0);
    nudger_ = std::thread([this, &threads] {
      while (!stop_.load()) {
        for (std::thread& thread : threads) pthread_kill(thread.native_handle(), SIGUSR1);
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      }
    });
  }
  Nudges(const Nudges&) = delete;
  Nudges& operator=(const Nudges&) = delete;
  // Before the threads are joined, and while none of them can have ended.
  void Stop() {
    stop_ = true;
    nudger_.join();
  }
  ~Nudges() { sigaction(SIGUSR1, &before_, nullptr); }

 private:
  struct sigaction before_ = {};
  std::atomic<bool> stop_{false};
  std::thread nudger_;
};

class DeviceAllocatorRaceTest : public DeviceAllocatorTest {};

// A1: a block leaves the free list and becomes allocated in one step, whatever its neighbours do
// meanwhile. Every 512 bytes have an owner here, which is nobody when they are handed out.
TEST_P(DeviceAllocatorRaceTest, FreesBesideARequestNeverTouchItsBlock) {
  constexpr int kThreads = 4;
  constexpr int kOperations = 200'000;
  // A slow machine does fewer of them.
  constexpr int kLeastOperations = 2'000;
  constexpr std::chrono::seconds kLongEnough(5);
  constexpr std::size_t kMostLive = 16;
  AllocatorConfig config = Config();
  config.front_cache = 0_B;  // every call goes to the arena, where the neighbours are
  const auto allocator = Make(config);
  // All of it is one hole, from here on.
  const DeviceAddress base = Need(allocator->Allocate(1_MiB, s1()));
  ASSERT_TRUE(IsOk(allocator->Free(base)));
  ASSERT_EQ(allocator->reserved(), 2_MiB);
  std::vector<std::atomic<int>> owners((2_MiB) / 512_B);
  std::atomic<int> shared{0};
  std::atomic<int> outside{0};
  struct Live {
    DeviceAddress address;
    std::size_t first;
    std::size_t count;
  };
  std::barrier<> start(kThreads);
  std::barrier<> done(kThreads + 1);
  const auto work = [&](int thread) {
    std::mt19937 random(static_cast<unsigned>(thread) + 1);
    start.arrive_and_wait();
    const auto end = std::chrono::steady_clock::now() + kLongEnough;
    std::vector<Live> live;
    const auto free_one = [&] {
      const std::size_t which = random() % live.size();
      const Live block = live[which];
      live[which] = live.back();
      live.pop_back();
      for (std::size_t i = 0; i < block.count; ++i) {
        if (owners[block.first + i].exchange(0) != thread + 1) shared.fetch_add(1);
      }
      EXPECT_TRUE(IsOk(allocator->Free(block.address)));
    };
    for (int i = 0; i < kOperations && shared.load() == 0 && outside.load() == 0; ++i) {
      if (i >= kLeastOperations && std::chrono::steady_clock::now() >= end) break;
      if (live.size() == kMostLive || (!live.empty() && random() % 2 == 0)) {
        free_one();
        continue;
      }
      const std::size_t count = 1 + random() % 8;
      const DeviceAddress address = Need(allocator->Allocate(count * 512_B, s1()));
      const std::size_t first = (address.value() - base.value()) / 512;
      if (address < base || first + count > owners.size()) {
        outside.fetch_add(1);
        break;
      }
      for (std::size_t each = first; each < first + count; ++each) {
        if (owners[each].exchange(thread + 1) != 0) shared.fetch_add(1);
      }
      live.push_back({address, first, count});
    }
    while (!live.empty() && shared.load() == 0) free_one();
    done.arrive_and_wait();
    done.arrive_and_wait();
  };
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) threads.emplace_back([&, i] { work(i); });
  Nudges nudges(threads);
  done.arrive_and_wait();
  nudges.Stop();
  done.arrive_and_wait();
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(shared.load(), 0) << "bytes of two blocks";
  ASSERT_EQ(outside.load(), 0) << "more memory than the one hole";
  EXPECT_EQ(allocator->Check(), "");
  EXPECT_EQ(allocator->Stats().allocation.all.current, 0);
  // And all of it is one hole again.
  EXPECT_EQ(Need(allocator->Allocate(1_MiB, s1())), base);
}

KEEL_WITH_BOTH_SOURCES(DeviceAllocatorRaceTest);

// A15: what a thread did last, and for which device, is nothing to a call for another one. More
// allocators than a thread finds at a glance, with calls for a device right before those of
// another.
TEST_F(RoomyDevicesTest, AllocatorsStayOnTheirDeviceWhicheverTheThreadUsedLast) {
  constexpr int kDevices = 4;
  constexpr int kThreads = 3;
  Open({.devices = kDevices, .memory = 1_GiB, .arena = 60_GiB});
  struct Set {
    std::shared_ptr<hal::Device> device;
    std::unique_ptr<DeviceAllocator> allocator;
  };
  std::vector<Set> sets(kDevices);
  for (int i = 0; i < kDevices; ++i) {
    Set& set = sets[static_cast<std::size_t>(i)];
    set.device = Need(driver_->Open(i));
    set.allocator = Need(DeviceAllocator::Create(set.device));
  }
  const auto work = [&](int thread) {
    std::vector<hal::Stream> streams;
    for (const Set& set : sets) streams.push_back(Need(hal::Stream::Create(set.device)));
    for (int round = 0; round < 50; ++round) {
      for (std::size_t step = 0; step < sets.size(); ++step) {
        const std::size_t at = (step + static_cast<std::size_t>(thread + round)) % sets.size();
        const Set& set = sets[at];
        const Set& other = sets[(at + 1) % sets.size()];
        const hal::StreamHandle stream = streams[at].get();
        const hal::StreamHandle elsewhere = streams[(at + 1) % sets.size()].get();
        for (const Bytes size : {4_KiB, 3_MiB}) {
          ASSERT_TRUE(IsOk(other.device->GetMemoryInfo()));
          const DeviceAddress block = Need(set.allocator->Allocate(size, stream));
          const DeviceAddress theirs = Need(other.allocator->Allocate(size, elsewhere));
          ASSERT_NE(block, theirs);
          ASSERT_TRUE(set.allocator->FindBlock(block).has_value());
          ASSERT_FALSE(other.allocator->FindBlock(block).has_value());
          // Memory of the device is what the device itself can write.
          ASSERT_TRUE(IsOk(set.device->EnqueueFill(
              stream, {.destination = block, .value = 7, .width = 1, .count = size.count()})));
          ASSERT_TRUE(IsOk(other.allocator->Free(theirs)));
          ASSERT_TRUE(IsOk(set.allocator->Free(block)));
        }
      }
    }
    for (std::size_t i = 0; i < sets.size(); ++i) {
      ASSERT_TRUE(IsOk(streams[i].Synchronize()));
      ASSERT_TRUE(IsOk(sets[i].allocator->ForgetStream(streams[i].get())));
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) threads.emplace_back([&, i] { work(i); });
  for (std::thread& thread : threads) thread.join();
  for (const Set& set : sets) {
    EXPECT_TRUE(IsOk(set.device->Health()));
    // What the allocator believes to hold is what this device has given.
    EXPECT_GT(set.allocator->reserved(), 0_B);
    EXPECT_EQ(sim::FindControls(*set.device)->used(), set.allocator->reserved());
    EXPECT_EQ(set.allocator->Check(), "");
  }
}

}  // namespace
}  // namespace keel::memory
