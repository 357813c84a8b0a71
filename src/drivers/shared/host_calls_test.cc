#include "drivers/shared/host_calls.h"

#include <gtest/gtest.h>

#include <algorithm>
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

TEST(HostCalls, OnePairIsOneThunk) {
  HostCalls calls;
  Seen one;
  Seen two;
  HostCalls::Thunk* const first = calls.Queue({.function = Look, .data = &one});
  EXPECT_EQ(calls.Queue({.function = Look, .data = &one}), first);
  EXPECT_NE(calls.Queue({.function = Look, .data = &two}), first);
  EXPECT_EQ(calls.ForNode({.function = Look, .data = &one}), first);
  EXPECT_EQ(calls.size(), 2u);
}

TEST(HostCalls, WhatHasRunIsFreedAndWhatHasNotIsKept) {
  HostCalls calls;
  std::vector<Seen> data(10'000);
  // Never run, as after a loss; a node; and one that the library did not take.
  HostCalls::Thunk* const waiting = calls.Queue({.function = Look, .data = data.data()});
  HostCalls::Thunk* const node = calls.ForNode({.function = Look, .data = data.data() + 1});
  HostCalls::Drop(calls.Queue({.function = Look, .data = data.data() + 2}));
  std::size_t most = 0;
  for (std::size_t i = 3; i < data.size(); ++i) {
    HostCalls::RunQueued(calls.Queue({.function = Look, .data = &data[i]}));
    most = std::max(most, calls.size());
  }
  EXPECT_LT(most, 3000u);
  EXPECT_EQ(calls.Queue({.function = Look, .data = data.data()}), waiting);
  EXPECT_EQ(calls.ForNode({.function = Look, .data = data.data() + 1}), node);
  // A node runs any number of times.
  for (int i = 0; i < 3; ++i) HostCalls::RunNode(node);
  EXPECT_EQ(data[1].calls, 3);
  for (std::size_t i = 3; i < data.size(); ++i) ASSERT_EQ(data[i].calls, 1);
}

void CountUp(void* data) { static_cast<std::atomic<int>*>(data)->fetch_add(1); }

TEST(HostCalls, ManyThreadsQueueAndRun) {
  HostCalls calls;
  std::vector<std::atomic<int>> counts(3000);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (std::atomic<int>& count : counts) {
        HostCalls::RunQueued(calls.Queue({.function = CountUp, .data = &count}));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::atomic<int>& count : counts) EXPECT_EQ(count.load(), 4);
}

}  // namespace
}  // namespace keel::vendor
