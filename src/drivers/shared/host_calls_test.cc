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
  HostCalls::Run(calls.Lend({.function = Look, .data = &seen}));
  EXPECT_EQ(seen.calls, 1);
  EXPECT_TRUE(seen.marked);
  EXPECT_FALSE(hal::InHostCall());
}

TEST(HostCalls, ANodeRunsAnyNumberOfTimes) {
  HostCalls calls;
  Seen one;
  Seen two;
  HostCalls::Thunk* const node = calls.Keep({.function = Look, .data = &one});
  EXPECT_EQ(calls.Keep({.function = Look, .data = &one}), node);
  EXPECT_NE(calls.Keep({.function = Look, .data = &two}), node);
  EXPECT_EQ(calls.size(), 2u);
  for (int i = 0; i < 3; ++i) HostCalls::Run(node);
  EXPECT_EQ(one.calls, 3);
  EXPECT_TRUE(one.marked);
}

TEST(HostCalls, APairThatComesAgainHasOneThunkForEver) {
  HostCalls calls;
  Seen seen;
  Seen other;
  const hal::HostCall call{.function = Look, .data = &seen};
  EXPECT_EQ(calls.Find(call), nullptr);
  HostCalls::Run(calls.Lend(call));
  EXPECT_EQ(calls.Find(call), nullptr) << "it came once";
  HostCalls::Thunk* const kept = calls.Lend(call);
  EXPECT_EQ(calls.Find(call), kept);
  EXPECT_EQ(calls.Find({.function = Look, .data = &other}), nullptr);
  EXPECT_EQ(calls.Keep(call), kept) << "a node shares it";
  // Queued several times before it runs, and once not taken by the library.
  HostCalls::GiveBack(kept);
  for (int i = 0; i < 3; ++i) HostCalls::Run(kept);
  EXPECT_EQ(seen.calls, 4);
  EXPECT_EQ(calls.Find(call), kept);
  EXPECT_EQ(calls.size(), 2u);
}

TEST(HostCalls, ACallOfANodeIsFoundOnAStreamToo) {
  HostCalls calls;
  Seen seen;
  const hal::HostCall call{.function = Look, .data = &seen};
  HostCalls::Thunk* const node = calls.Keep(call);
  EXPECT_EQ(calls.Find(call), node);
}

// More pairs than are found quickly, all of which come again and again: those that came too late
// are lent a thunk each time, and nothing grows.
TEST(HostCalls, ManyPairsAreAllRightAndBounded) {
  HostCalls calls;
  std::vector<Seen> data(1000);
  const auto run = [&](Seen& seen) {
    const hal::HostCall call{.function = Look, .data = &seen};
    HostCalls::Thunk* const found = calls.Find(call);
    HostCalls::Run(found != nullptr ? found : calls.Lend(call));
  };
  // Twice in a row, so that each is seen to come again.
  for (Seen& seen : data) {
    run(seen);
    run(seen);
  }
  const std::size_t kept = calls.size();
  EXPECT_GT(kept, 100u);
  EXPECT_LT(kept, 257u);
  for (int i = 0; i < 3; ++i) {
    for (Seen& seen : data) run(seen);
  }
  EXPECT_EQ(calls.size(), kept);
  for (const Seen& seen : data) ASSERT_EQ(seen.calls, 5);
  // A node has one even then, and the same one.
  HostCalls::Thunk* const node = calls.Keep({.function = Look, .data = &data.back()});
  EXPECT_EQ(calls.Keep({.function = Look, .data = &data.back()}), node);
  HostCalls::Run(node);
  HostCalls::Run(node);
  EXPECT_EQ(data.back().calls, 7);
}

TEST(HostCalls, ThereAreAsManyAsWereQueuedAtOnce) {
  HostCalls calls;
  std::vector<Seen> data(1000);
  // One that never runs, as after a loss, and one that the library did not take.
  calls.Lend({.function = Look, .data = data.data()});
  HostCalls::GiveBack(calls.Lend({.function = Look, .data = data.data() + 1}));
  for (std::size_t i = 2; i < data.size(); i += 2) {
    HostCalls::Thunk* const first = calls.Lend({.function = Look, .data = &data[i]});
    HostCalls::Thunk* const second = calls.Lend({.function = Look, .data = &data[i + 1]});
    ASSERT_NE(first, second);
    HostCalls::Run(second);
    HostCalls::Run(first);
  }
  EXPECT_EQ(calls.size(), 3u);
  EXPECT_EQ(data[0].calls, 0);
  EXPECT_EQ(data[1].calls, 0);
  for (std::size_t i = 2; i < data.size(); ++i) ASSERT_EQ(data[i].calls, 1);
}

void CountUp(void* data) { static_cast<std::atomic<int>*>(data)->fetch_add(1); }

// Some pairs come again and are kept meanwhile, by whichever thread is first; most are lent.
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
          const hal::HostCall call{.function = CountUp, .data = &counts[i + k]};
          HostCalls::Thunk* const found = calls.Find(call);
          queued[k] = found != nullptr ? found : calls.Lend(call);
        }
        for (const std::size_t k : {1u, 2u, 0u}) HostCalls::Run(queued[k]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::atomic<int>& count : counts) EXPECT_EQ(count.load(), 4);
  EXPECT_LE(calls.size(), 256u + 4u * 3u);
}

}  // namespace
}  // namespace keel::vendor
