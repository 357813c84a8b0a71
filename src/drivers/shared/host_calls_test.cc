#include "drivers/shared/host_calls.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

#include "hal/host_call_scope.h"

namespace keel::vendor {
namespace {

struct Seen {
  int calls = 0;
  bool marked = false;
};

void Look(void* data) {
  auto* seen = static_cast<Seen*>(data);
  ++seen->calls;
  seen->marked = hal::InHostCall();
}

TEST(HostCalls, TheFunctionRunsOnAMarkedThread) {
  HostCalls calls;
  Seen seen;
  HostCalls::RunQueued(calls.Queue({.function = Look, .data = &seen}));
  EXPECT_EQ(seen.calls, 1);
  EXPECT_TRUE(seen.marked);
  EXPECT_FALSE(hal::InHostCall());
}

TEST(HostCalls, ANodeRunsAnyNumberOfTimes) {
  HostCalls calls;
  Seen one;
  Seen two;
  HostCalls::Thunk* const node = calls.ForNode({.function = Look, .data = &one});
  EXPECT_EQ(calls.ForNode({.function = Look, .data = &one}), node);
  EXPECT_NE(calls.ForNode({.function = Look, .data = &two}), node);
  EXPECT_EQ(calls.size(), 2u);
  for (int i = 0; i < 3; ++i) HostCalls::RunNode(node);
  EXPECT_EQ(one.calls, 3);
  EXPECT_TRUE(one.marked);
}

TEST(HostCalls, ThereAreAsManyAsWereQueuedAtOnce) {
  HostCalls calls;
  std::vector<Seen> data(1000);
  // One that never runs, as after a loss, and one that the library did not take.
  calls.Queue({.function = Look, .data = data.data()});
  calls.Drop(calls.Queue({.function = Look, .data = data.data() + 1}));
  for (std::size_t i = 2; i < data.size(); i += 2) {
    HostCalls::Thunk* const first = calls.Queue({.function = Look, .data = &data[i]});
    HostCalls::Thunk* const second = calls.Queue({.function = Look, .data = &data[i + 1]});
    ASSERT_NE(first, second);
    HostCalls::RunQueued(second);
    HostCalls::RunQueued(first);
  }
  EXPECT_EQ(calls.size(), 3u);
  EXPECT_EQ(data[0].calls, 0);
  EXPECT_EQ(data[1].calls, 0);
  for (std::size_t i = 2; i < data.size(); ++i) ASSERT_EQ(data[i].calls, 1);
}

void CountUp(void* data) { static_cast<std::atomic<int>*>(data)->fetch_add(1); }

TEST(HostCalls, ManyThreadsQueueAndRun) {
  HostCalls calls;
  std::vector<std::atomic<int>> counts(3000);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      // Run in another order than they were queued in, and by whoever comes first.
      for (std::size_t i = 0; i < counts.size(); i += 3) {
        std::array<HostCalls::Thunk*, 3> queued{};
        for (std::size_t k = 0; k < 3; ++k) {
          queued[k] = calls.Queue({.function = CountUp, .data = &counts[i + k]});
        }
        for (const std::size_t k : {1u, 2u, 0u}) HostCalls::RunQueued(queued[k]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::atomic<int>& count : counts) EXPECT_EQ(count.load(), 4);
  EXPECT_LE(calls.size(), 4u * 3u);
}

}  // namespace
}  // namespace keel::vendor
