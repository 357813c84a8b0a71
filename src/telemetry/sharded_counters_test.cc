#include "telemetry/sharded_counters.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <random>
#include <thread>
#include <vector>

namespace keel::telemetry {

struct ShardedCountersTestPeer {
  template <class Shard>
  static void AddUnnoticed(Shard* shard, std::size_t gauge, std::int64_t amount) {
    shard->Add(gauge, amount);
  }
  template <class Shard>
  static void RemoveUnnoticed(Shard* shard, std::size_t gauge, std::int64_t amount) {
    shard->Remove(gauge, amount);
  }
};

namespace {

enum Gauge : std::size_t { kBytes, kBlocks };
enum Counter : std::size_t { kHits, kMisses };
using Counters = ShardedCounters<2, 2>;

constexpr std::int64_t kFoldBytes = 1000;
constexpr std::int64_t kFoldBlocks = 8;

TEST(ShardedCountersTest, StartsAtZero) {
  Counters counters({kFoldBytes, kFoldBlocks});
  EXPECT_EQ(counters.Read().gauges[kBytes], Stat());
  counters.AddShard();
  EXPECT_EQ(counters.Read().gauges[kBytes], Stat());
  EXPECT_EQ(counters.Read().counters[kHits], 0);
}

// With one thread everything is as a plain Stat has it, whenever it is read or reset.
TEST(ShardedCountersTest, OneThreadIsExact) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    Counters counters({kFoldBytes, kFoldBlocks});
    Counters::Shard* shard = counters.AddShard();
    Stat bytes;
    Stat blocks;
    std::int64_t hits = 0;
    std::vector<std::int64_t> live;
    for (int i = 0; i < 2000; ++i) {
      const auto dice = random() % 100;
      if (dice < 48 || live.empty()) {
        // Now and then one that is larger than the threshold.
        const std::int64_t size = dice < 4 ? 5000 : 1 + random() % 300;
        live.push_back(size);
        shard->Increase(kBytes, size);
        shard->Increase(kBlocks, 1);
        bytes.Increase(size);
        blocks.Increase(1);
      } else if (dice < 90) {
        std::swap(live[random() % live.size()], live.back());
        shard->Decrease(kBytes, live.back());
        shard->Decrease(kBlocks, 1);
        bytes.Decrease(live.back());
        blocks.Decrease(1);
        live.pop_back();
      } else if (dice < 93) {
        shard->Count(kHits, 3);
        hits += 3;
      } else if (dice < 95) {
        counters.ResetPeak();
        bytes.ResetPeak();
        blocks.ResetPeak();
      } else if (dice < 96) {
        counters.ResetAccumulated();
        bytes.ResetAccumulated();
        blocks.ResetAccumulated();
        hits = 0;
      } else if (dice < 97) {
        // A thread that ends and another that takes over.
        counters.Retire(shard);
        shard = counters.AddShard();
      } else {
        const Counters::Values values = counters.Read();
        ASSERT_EQ(values.gauges[kBytes], bytes) << seed << " " << i;
        ASSERT_EQ(values.gauges[kBlocks], blocks) << seed << " " << i;
        ASSERT_EQ(values.counters[kHits], hits);
        ASSERT_EQ(values.counters[kMisses], 0);
      }
    }
    ASSERT_EQ(counters.Read().gauges[kBytes], bytes) << seed;
    ASSERT_EQ(counters.Read().gauges[kBlocks], blocks) << seed;
  }
}

// Several shards in turn, so that the true peak is known: the sum is exact, the peak is never
// below the truth and above it by no more than the header says.
TEST(ShardedCountersTest, SeveralShardsStayWithinTheBound) {
  constexpr int kShards = 6;
  constexpr std::int64_t kLargest = 400;
  std::int64_t worst = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    Counters counters({kFoldBytes, kFoldBlocks});
    std::vector<Counters::Shard*> shards(kShards);
    for (Counters::Shard*& shard : shards) shard = counters.AddShard();
    Stat truth;
    std::vector<std::int64_t> live;
    for (int i = 0; i < 3000; ++i) {
      // Freed through any shard, as blocks are by any thread.
      Counters::Shard* shard = shards[random() % kShards];
      const auto dice = random() % 1000;
      if (dice < 500 || live.empty()) {
        live.push_back(1 + random() % kLargest);
        shard->Increase(kBytes, live.back());
        truth.Increase(live.back());
      } else if (dice < 997) {
        std::swap(live[random() % live.size()], live.back());
        shard->Decrease(kBytes, live.back());
        truth.Decrease(live.back());
        live.pop_back();
      } else if (dice < 998) {
        counters.ResetPeak();
        truth.ResetPeak();
      } else if (dice < 999) {
        Counters::Shard*& retired = shards[random() % kShards];
        counters.Retire(retired);
        retired = counters.AddShard();
      } else {
        (void)counters.Read();
      }
    }
    const Stat stat = counters.Read().gauges[kBytes];
    ASSERT_EQ(stat.current, truth.current) << seed;
    ASSERT_EQ(stat.allocated, truth.allocated) << seed;
    ASSERT_EQ(stat.freed, truth.freed) << seed;
    ASSERT_GE(stat.peak, truth.peak) << seed;
    ASSERT_LE(stat.peak, truth.peak + 4 * (kShards - 1) * (kFoldBytes + kLargest)) << seed;
    worst = std::max(worst, stat.peak - truth.peak);
  }
  EXPECT_GT(worst, 0) << "nothing was estimated: the test is too easy";
}

// The case that adding up one shard after the other would miss: both are at their highest
// together, then back at zero before anybody looks.
TEST(ShardedCountersTest, ThreadsThatPeakTogetherAreSeenTogether) {
  Counters counters({kFoldBytes, kFoldBlocks});
  Counters::Shard* a = counters.AddShard();
  Counters::Shard* b = counters.AddShard();
  a->Increase(kBytes, 100);
  b->Increase(kBytes, 100);
  a->Decrease(kBytes, 100);
  b->Decrease(kBytes, 100);
  EXPECT_EQ(counters.Read().gauges[kBytes].peak, 200);
}

// What an idle shard did in an earlier window must not be added to what others do now.
TEST(ShardedCountersTest, AnIdleShardDoesNotInflateThePeak) {
  Counters counters({kFoldBytes, kFoldBlocks});
  Counters::Shard* idle = counters.AddShard();
  Counters::Shard* busy = counters.AddShard();
  idle->Increase(kBytes, 900);
  idle->Decrease(kBytes, 900);
  EXPECT_EQ(counters.Read().gauges[kBytes].peak, 900);
  for (int i = 0; i < 5; ++i) {
    busy->Increase(kBytes, 700);
    (void)counters.Read();
    busy->Decrease(kBytes, 700);
  }
  EXPECT_EQ(counters.Read().gauges[kBytes].peak, 900);
}

// An owner sees a new window only at its next update, and that update's look may come too early:
// what it did meanwhile belongs to the new window all the same.
TEST(ShardedCountersTest, UpdatesBeforeTheWindowIsNoticedCount) {
  using Peer = ShardedCountersTestPeer;
  Counters counters({kFoldBytes, kFoldBlocks});
  Counters::Shard* shard = counters.AddShard();
  // Folded before the owner notices ...
  (void)counters.Read();
  Peer::AddUnnoticed(shard, kBytes, 100);
  Peer::RemoveUnnoticed(shard, kBytes, 100);
  EXPECT_EQ(counters.Read().gauges[kBytes].peak, 100);
  // ... and after.
  Peer::AddUnnoticed(shard, kBytes, 200);
  Peer::RemoveUnnoticed(shard, kBytes, 200);
  shard->Increase(kBytes, 1);
  EXPECT_EQ(counters.Read().gauges[kBytes].peak, 200);
  EXPECT_EQ(counters.Read().gauges[kBytes].current, 1);
}

// The threshold counts from where a shard stood when the window began, wherever that was: here far
// below zero, because these threads free what another one allocates.
TEST(ShardedCountersTest, TheBoundHoldsFarFromZero) {
  Counters counters({kFoldBytes, kFoldBlocks});
  counters.AddShard()->Increase(kBytes, 200'000);
  Counters::Shard* a = counters.AddShard();
  Counters::Shard* b = counters.AddShard();
  a->Decrease(kBytes, 50'000);
  b->Decrease(kBytes, 50'000);
  counters.ResetPeak();
  for (Counters::Shard* shard : {a, b}) {
    for (int i = 0; i < 200; ++i) shard->Increase(kBytes, 100);
    for (int i = 0; i < 200; ++i) shard->Decrease(kBytes, 100);
  }
  EXPECT_GE(counters.Read().gauges[kBytes].peak, 120'000);
  EXPECT_LE(counters.Read().gauges[kBytes].peak, 120'000 + 4 * 2 * (kFoldBytes + 100));
}

// Also for a shard that falls: if it did not fold on the way, an update before it notices the
// window would bring back how high it once was.
TEST(ShardedCountersTest, TheBoundHoldsAfterAFall) {
  using Peer = ShardedCountersTestPeer;
  Counters counters({kFoldBytes, kFoldBlocks});
  Counters::Shard* a = counters.AddShard();
  Counters::Shard* b = counters.AddShard();
  a->Increase(kBytes, 50'000);
  for (int i = 0; i < 200; ++i) a->Decrease(kBytes, 100);
  for (int i = 0; i < 200; ++i) b->Increase(kBytes, 100);
  Peer::AddUnnoticed(a, kBytes, 1);
  Peer::RemoveUnnoticed(a, kBytes, 1);
  EXPECT_GE(counters.Read().gauges[kBytes].peak, 50'000);
  EXPECT_LE(counters.Read().gauges[kBytes].peak, 50'000 + 4 * (kFoldBytes + 100));
}

TEST(ShardedCountersTest, ResetPeakForgetsWhatShardsStillRemember) {
  Counters counters({kFoldBytes, kFoldBlocks});
  Counters::Shard* a = counters.AddShard();
  Counters::Shard* b = counters.AddShard();
  a->Increase(kBytes, 500);
  b->Increase(kBytes, 400);
  b->Decrease(kBytes, 400);
  counters.ResetPeak();
  EXPECT_EQ(counters.Read().gauges[kBytes].peak, 500);
  b->Increase(kBytes, 10);
  EXPECT_EQ(counters.Read().gauges[kBytes].peak, 510);
  a->Decrease(kBytes, 500);
  counters.ResetPeak();
  EXPECT_EQ(counters.Read().gauges[kBytes].peak, 10);
}

TEST(ShardedCountersTest, RetiredShardsLeaveTheirValues) {
  Counters counters({kFoldBytes, kFoldBlocks});
  Counters::Shard* gone = counters.AddShard();
  gone->Increase(kBytes, 300);
  gone->Decrease(kBytes, 200);
  gone->Count(kMisses, 4);
  counters.Retire(gone);
  Counters::Shard* other = counters.AddShard();
  other->Decrease(kBytes, 100);  // freed by another thread
  const Counters::Values values = counters.Read();
  EXPECT_EQ(values.gauges[kBytes],
            (Stat{.current = 0, .peak = 300, .allocated = 300, .freed = 300}));
  EXPECT_EQ(values.counters[kMisses], 4);
}

// Threads that meet now and then: there the sum is known, and the peak must not be below the
// largest of these sums, although a reader folds all the time.
TEST(ShardedCountersTest, ThreadsNeverLoseAQuiescentMaximum) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 60;
  constexpr std::int64_t kLargest = 300;
  Counters counters({kFoldBytes, kFoldBlocks});
  std::atomic<std::int64_t> sum{0};
  std::atomic<std::int64_t> hits{0};
  std::int64_t quiescent_maximum = 0;
  Mutex not_in_a_fold;  // a meeting during a fold is no quiescent state
  std::barrier meet(kThreads, [&]() noexcept {
    const MutexLock lock(not_in_a_fold);
    quiescent_maximum = std::max(quiescent_maximum, sum.load());
  });
  std::vector<std::int64_t> highest(kThreads, 0);
  std::atomic<bool> done{false};
  std::thread reader([&] {
    while (!done.load()) {
      const MutexLock lock(not_in_a_fold);
      const Stat stat = counters.Read().gauges[kBytes];
      EXPECT_GE(stat.current, 0);
      EXPECT_LE(stat.current, stat.peak);
    }
  });
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      Counters::Shard* shard = counters.AddShard();
      std::int64_t net = 0;
      for (int round = 0; round < kRounds; ++round) {
        for (int i = 0; i < 200; ++i) {
          const std::int64_t size = 1 + random() % kLargest;
          if (random() % 2 == 0) {
            shard->Increase(kBytes, size);
            net += size;
            sum += size;
          } else if (net >= size) {
            shard->Decrease(kBytes, size);
            net -= size;
            sum -= size;
          }
          highest[t] = std::max(highest[t], net);
          shard->Count(kHits);
          ++hits;
        }
        meet.arrive_and_wait();
        meet.arrive_and_wait();
      }
      counters.Retire(shard);
    });
  }
  for (std::thread& thread : threads) thread.join();
  done = true;
  reader.join();
  const Counters::Values values = counters.Read();
  EXPECT_EQ(values.gauges[kBytes].current, sum.load());
  EXPECT_EQ(values.counters[kHits], hits.load());
  EXPECT_GE(values.gauges[kBytes].peak, quiescent_maximum);
  std::int64_t together = 0;
  for (const std::int64_t h : highest) together += h;
  EXPECT_LE(values.gauges[kBytes].peak, together);
}

TEST(ShardedCountersTest, ThreadsComeAndGoWhileOthersReadAndReset) {
  constexpr int kThreads = 4;
  Counters counters({kFoldBytes, kFoldBlocks});
  std::atomic<bool> done{false};
  std::thread reader([&] {
    while (!done.load()) {
      counters.ResetPeak();
      counters.ResetAccumulated();
      (void)counters.Read();
    }
  });
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int life = 0; life < 20; ++life) {
        Counters::Shard* shard = counters.AddShard();
        for (int i = 0; i < 100; ++i) {
          shard->Increase(kBytes, 90);
          shard->Increase(kBlocks, 1);
          shard->Decrease(kBytes, 60);
        }
        counters.Retire(shard);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  done = true;
  reader.join();
  EXPECT_EQ(counters.Read().gauges[kBytes].current, kThreads * 20 * 100 * 30);
  EXPECT_EQ(counters.Read().gauges[kBlocks].current, kThreads * 20 * 100);
  EXPECT_GE(counters.Read().gauges[kBlocks].peak, kThreads * 20 * 100);
}

}  // namespace
}  // namespace keel::telemetry
