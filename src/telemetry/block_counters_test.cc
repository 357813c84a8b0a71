#include "telemetry/block_counters.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace keel::telemetry {

struct BlockCountersTestPeer {
  static void AllocatedUnnoticed(BlockCounters::Shard* shard, Pool pool, std::int64_t bytes) {
    shard->Add(pool, bytes, bytes);
  }
  static void FreedUnnoticed(BlockCounters::Shard* shard, Pool pool, std::int64_t bytes) {
    shard->Remove(pool, bytes, bytes);
  }
};

namespace {

using Shard = BlockCounters::Shard;
using Values = BlockCounters::Values;

constexpr BlockCounters::FoldAfter kFold{.blocks = 8, .bytes = 1000};
constexpr Pool kSmall = Pool::kSmall;
constexpr Pool kLarge = Pool::kLarge;

struct TestBlock {
  Pool pool = kSmall;
  std::int64_t bytes = 0;
  std::int64_t requested = 0;
};

// What the counters should say, by plain Stats.
struct Truth {
  void Allocated(const TestBlock& block) {
    values.blocks.Increase(block.pool, 1);
    values.bytes.Increase(block.pool, block.bytes);
    values.requested.Increase(block.pool, block.requested);
    values.active_blocks.Increase(block.pool, 1);
    values.active_bytes.Increase(block.pool, block.bytes);
  }
  void NoLongerAllocated(const TestBlock& block) {
    values.blocks.Decrease(block.pool, 1);
    values.bytes.Decrease(block.pool, block.bytes);
    values.requested.Decrease(block.pool, block.requested);
  }
  void Inactive(const TestBlock& block) {
    values.active_blocks.Decrease(block.pool, 1);
    values.active_bytes.Decrease(block.pool, block.bytes);
  }
  void Deferred(const TestBlock& block) {
    NoLongerAllocated(block);
    values.pending_blocks.Increase(1);
    values.pending_bytes.Increase(block.bytes);
  }
  void Ended(const TestBlock& block) {
    Inactive(block);
    values.pending_blocks.Decrease(1);
    values.pending_bytes.Decrease(block.bytes);
  }
  void ForEach(void (Stat::*change)()) {
    for (PoolStat* stat : {&values.blocks, &values.bytes, &values.requested, &values.active_blocks,
                           &values.active_bytes}) {
      for (Stat* each : {&stat->all, &stat->small_pool, &stat->large_pool}) (each->*change)();
    }
    for (Stat* each : {&values.pending_blocks, &values.pending_bytes}) (each->*change)();
  }

  Values values;
};

std::vector<Stat> StatsOf(const Values& values) {
  std::vector<Stat> stats = {values.pending_blocks, values.pending_bytes};
  for (const PoolStat& stat :
       {values.blocks, values.bytes, values.requested, values.active_blocks, values.active_bytes}) {
    stats.insert(stats.end(), {stat.all, stat.small_pool, stat.large_pool});
  }
  return stats;
}

Stat SmallBytes(BlockCounters& counters) { return counters.Read().bytes.small_pool; }

TEST(BlockCountersTest, StartsAtZero) {
  BlockCounters counters(kFold);
  EXPECT_EQ(StatsOf(counters.Read()), StatsOf(Values()));
  counters.AddShard();
  EXPECT_EQ(StatsOf(counters.Read()), StatsOf(Values()));
  EXPECT_EQ(counters.Read().misses, 0);
}

// A block in both pools, freed at once and later: each in its place.
TEST(BlockCountersTest, ABlockIsActiveUntilItsUseEnds) {
  BlockCounters counters(kFold);
  Shard* shard = counters.AddShard();
  shard->Allocated(kSmall, 512, 100);
  shard->Allocated(kLarge, 700, 600);
  shard->Deferred(kLarge, 700, 600);
  shard->Freed(kSmall, 512, 100);
  Values values = counters.Read();
  EXPECT_EQ(values.bytes.all, (Stat{.peak = 1212, .allocated = 1212, .freed = 1212}));
  EXPECT_EQ(values.requested.large_pool, (Stat{.peak = 600, .allocated = 600, .freed = 600}));
  EXPECT_EQ(values.active_bytes.all,
            (Stat{.current = 700, .peak = 1212, .allocated = 1212, .freed = 512}));
  EXPECT_EQ(values.active_blocks.small_pool, (Stat{.peak = 1, .allocated = 1, .freed = 1}));
  EXPECT_EQ(values.pending_bytes, (Stat{.current = 700, .peak = 700, .allocated = 700}));
  // What is allocated beside what is pending: no new peak of the one, but of both.
  shard->Allocated(kSmall, 600, 600);
  shard->Freed(kSmall, 600, 600);
  shard->Ended(kLarge, 1, 700);
  values = counters.Read();
  EXPECT_EQ(values.bytes.all.peak, 1212);
  EXPECT_EQ(values.bytes.small_pool.peak, 600);
  EXPECT_EQ(values.active_bytes.all.peak, 1300);
  EXPECT_EQ(values.active_bytes.all.current, 0);
  EXPECT_EQ(values.active_bytes.large_pool, (Stat{.peak = 700, .allocated = 700, .freed = 700}));
  EXPECT_EQ(values.pending_blocks, (Stat{.peak = 1, .allocated = 1, .freed = 1}));
}

// With one thread everything is as plain Stats have it, whenever it is read or reset.
TEST(BlockCountersTest, OneThreadIsExact) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    BlockCounters counters(kFold);
    Shard* shard = counters.AddShard();
    Truth truth;
    std::int64_t misses = 0;
    std::vector<TestBlock> live;
    std::vector<TestBlock> pending;
    const auto take = [&](std::vector<TestBlock>& from) {
      std::swap(from[random() % from.size()], from.back());
      const TestBlock block = from.back();
      from.pop_back();
      return block;
    };
    for (int i = 0; i < 3000; ++i) {
      const auto dice = random() % 100;
      if (dice < 42 || live.empty()) {
        // Now and then one that is larger than the threshold.
        const std::int64_t bytes = dice < 3 ? 5000 : 1 + random() % 300;
        const TestBlock block{random() % 2 == 0 ? kSmall : kLarge, bytes,
                              1 + static_cast<std::int64_t>(random() % bytes)};
        live.push_back(block);
        shard->Allocated(block.pool, block.bytes, block.requested);
        truth.Allocated(block);
      } else if (dice < 70) {
        const TestBlock block = take(live);
        shard->Freed(block.pool, block.bytes, block.requested);
        truth.NoLongerAllocated(block);
        truth.Inactive(block);
      } else if (dice < 82) {
        const TestBlock block = take(live);
        pending.push_back(block);
        shard->Deferred(block.pool, block.bytes, block.requested);
        truth.Deferred(block);
      } else if (dice < 90) {
        if (pending.empty()) continue;
        const TestBlock block = take(pending);
        shard->Ended(block.pool, 1, block.bytes);
        truth.Ended(block);
      } else if (dice < 93) {
        shard->CountMiss();
        ++misses;
      } else if (dice < 95) {
        counters.ResetPeak();
        truth.ForEach(&Stat::ResetPeak);
      } else if (dice < 96) {
        counters.ResetAccumulated();
        truth.ForEach(&Stat::ResetAccumulated);
        misses = 0;
      } else if (dice < 97) {
        // A thread that ends and another that takes over.
        counters.Retire(shard);
        shard = counters.AddShard();
      } else {
        const Values values = counters.Read();
        ASSERT_EQ(StatsOf(values), StatsOf(truth.values)) << seed << " " << i;
        ASSERT_EQ(values.misses, misses);
      }
    }
    ASSERT_EQ(StatsOf(counters.Read()), StatsOf(truth.values)) << seed;
  }
}

// Several shards in turn, so that the true peaks are known: sums are exact, peaks are never below
// the truth and above it by no more than the header says.
TEST(BlockCountersTest, SeveralShardsStayWithinTheBound) {
  constexpr int kShards = 6;
  constexpr std::int64_t kLargest = 400;
  std::int64_t worst = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    BlockCounters counters(kFold);
    std::vector<Shard*> shards(kShards);
    for (Shard*& shard : shards) shard = counters.AddShard();
    Truth truth;
    std::vector<TestBlock> live;
    std::vector<TestBlock> pending;
    for (int i = 0; i < 3000; ++i) {
      // Freed through any shard, as blocks are by any thread.
      Shard* shard = shards[random() % kShards];
      const auto dice = random() % 1000;
      if (dice < 500 || live.empty()) {
        const auto bytes = static_cast<std::int64_t>(1 + random() % kLargest);
        live.push_back({random() % 2 == 0 ? kSmall : kLarge, bytes, bytes});
        shard->Allocated(live.back().pool, bytes, bytes);
        truth.Allocated(live.back());
      } else if (dice < 997) {
        std::swap(live[random() % live.size()], live.back());
        const TestBlock block = live.back();
        live.pop_back();
        if (dice < 800) {
          shard->Freed(block.pool, block.bytes, block.requested);
          truth.NoLongerAllocated(block);
          truth.Inactive(block);
        } else {
          shard->Deferred(block.pool, block.bytes, block.requested);
          truth.Deferred(block);
          pending.push_back(block);
        }
        if (pending.size() > 20) {
          for (const TestBlock& each : pending) {
            shards[random() % kShards]->Ended(each.pool, 1, each.bytes);
            truth.Ended(each);
          }
          pending.clear();
        }
      } else if (dice < 998) {
        counters.ResetPeak();
        truth.ForEach(&Stat::ResetPeak);
      } else if (dice < 999) {
        Shard*& retired = shards[random() % kShards];
        counters.Retire(retired);
        retired = counters.AddShard();
      } else {
        (void)counters.Read();
      }
    }
    const Values values = counters.Read();
    const std::vector<Stat> stats = StatsOf(values);
    const std::vector<Stat> truths = StatsOf(truth.values);
    for (std::size_t i = 0; i < stats.size(); ++i) {
      ASSERT_EQ(stats[i].current, truths[i].current) << seed << " " << i;
      ASSERT_EQ(stats[i].allocated, truths[i].allocated) << seed << " " << i;
      ASSERT_EQ(stats[i].freed, truths[i].freed) << seed << " " << i;
      ASSERT_GE(stats[i].peak, truths[i].peak) << seed << " " << i;
    }
    const auto within = [&](const Stat& stat, const Stat& true_stat, std::int64_t parts) {
      EXPECT_LE(stat.peak, true_stat.peak + 4 * (kShards - 1) * parts * (kFold.bytes + kLargest))
          << seed;
      worst = std::max(worst, stat.peak - true_stat.peak);
    };
    within(values.bytes.small_pool, truth.values.bytes.small_pool, 1);
    within(values.bytes.all, truth.values.bytes.all, 2);
    within(values.active_bytes.large_pool, truth.values.active_bytes.large_pool, 2);
    within(values.active_bytes.all, truth.values.active_bytes.all, 4);
    within(values.pending_bytes, truth.values.pending_bytes, 2);
  }
  EXPECT_GT(worst, 0) << "nothing was estimated: the test is too easy";
}

// The case that adding up one shard after the other would miss: both are at their highest
// together, then back at zero before anybody looks.
TEST(BlockCountersTest, ThreadsThatPeakTogetherAreSeenTogether) {
  BlockCounters counters(kFold);
  Shard* a = counters.AddShard();
  Shard* b = counters.AddShard();
  a->Allocated(kSmall, 100, 100);
  b->Allocated(kSmall, 100, 100);
  a->Freed(kSmall, 100, 100);
  b->Freed(kSmall, 100, 100);
  EXPECT_EQ(SmallBytes(counters).peak, 200);
}

// What an idle shard did in an earlier window must not be added to what others do now.
TEST(BlockCountersTest, AnIdleShardDoesNotInflateThePeak) {
  BlockCounters counters(kFold);
  Shard* idle = counters.AddShard();
  Shard* busy = counters.AddShard();
  idle->Allocated(kSmall, 900, 900);
  idle->Freed(kSmall, 900, 900);
  EXPECT_EQ(SmallBytes(counters).peak, 900);
  for (int i = 0; i < 5; ++i) {
    busy->Allocated(kSmall, 700, 700);
    (void)counters.Read();
    busy->Freed(kSmall, 700, 700);
  }
  EXPECT_EQ(SmallBytes(counters).peak, 900);
}

// An owner sees a new window only at its next update, and that update's look may come too early:
// what it did meanwhile belongs to the new window all the same.
TEST(BlockCountersTest, LargeBlocksOfThreadsThatTakeTurnsAreExact) {
  BlockCounters counters(kFold);
  Shard* const program = counters.AddShard();
  Shard* const backward = counters.AddShard();
  // A step: one allocates, the other uses a little more and frees it all. Nothing is far enough for
  // a fold by itself.
  for (int step = 0; step < 5; ++step) {
    for (int i = 0; i < 3; ++i) program->Allocated(kLarge, 100, 90);
    backward->Allocated(kLarge, 50, 40);
    backward->Deferred(kLarge, 50, 40);
    for (int i = 0; i < 3; ++i) backward->Freed(kLarge, 100, 90);
    program->Ended(kLarge, 1, 50);
  }
  const Values values = counters.Read();
  EXPECT_EQ(values.bytes.large_pool.peak, 350);
  EXPECT_EQ(values.bytes.all.peak, 350);
  EXPECT_EQ(values.requested.all.peak, 310);
  EXPECT_EQ(values.blocks.all.peak, 4);
  EXPECT_EQ(values.active_bytes.all.peak, 350);
  EXPECT_EQ(values.pending_bytes.peak, 50);
  EXPECT_EQ(values.bytes.all.current, 0);
}

TEST(BlockCountersTest, UpdatesBeforeTheWindowIsNoticedCount) {
  using Peer = BlockCountersTestPeer;
  BlockCounters counters(kFold);
  Shard* shard = counters.AddShard();
  // Folded before the owner notices ...
  (void)counters.Read();
  Peer::AllocatedUnnoticed(shard, kSmall, 100);
  Peer::FreedUnnoticed(shard, kSmall, 100);
  EXPECT_EQ(SmallBytes(counters).peak, 100);
  // ... and after.
  Peer::AllocatedUnnoticed(shard, kSmall, 200);
  Peer::FreedUnnoticed(shard, kSmall, 200);
  shard->Allocated(kSmall, 1, 1);
  EXPECT_EQ(SmallBytes(counters).peak, 200);
  EXPECT_EQ(SmallBytes(counters).current, 1);
}

// The threshold counts from where a shard stood when the window began, wherever that was: here far
// below zero, because these threads free what another one allocates.
TEST(BlockCountersTest, TheBoundHoldsFarFromZero) {
  BlockCounters counters(kFold);
  counters.AddShard()->Allocated(kSmall, 200'000, 200'000);
  Shard* a = counters.AddShard();
  Shard* b = counters.AddShard();
  a->Freed(kSmall, 50'000, 50'000);
  b->Freed(kSmall, 50'000, 50'000);
  counters.ResetPeak();
  for (Shard* shard : {a, b}) {
    for (int i = 0; i < 200; ++i) shard->Allocated(kSmall, 100, 100);
    for (int i = 0; i < 200; ++i) shard->Freed(kSmall, 100, 100);
  }
  EXPECT_GE(SmallBytes(counters).peak, 120'000);
  EXPECT_LE(SmallBytes(counters).peak, 120'000 + 4 * 2 * (kFold.bytes + 100));
}

// Also for a shard that falls: if it did not fold on the way, an update before it notices the
// window would bring back how high it once was.
TEST(BlockCountersTest, TheBoundHoldsAfterAFall) {
  using Peer = BlockCountersTestPeer;
  BlockCounters counters(kFold);
  Shard* a = counters.AddShard();
  Shard* b = counters.AddShard();
  a->Allocated(kSmall, 50'000, 50'000);
  for (int i = 0; i < 200; ++i) a->Freed(kSmall, 100, 100);
  for (int i = 0; i < 200; ++i) b->Allocated(kSmall, 100, 100);
  Peer::AllocatedUnnoticed(a, kSmall, 1);
  Peer::FreedUnnoticed(a, kSmall, 1);
  EXPECT_GE(SmallBytes(counters).peak, 50'000);
  EXPECT_LE(SmallBytes(counters).peak, 50'000 + 4 * (kFold.bytes + 100));
}

TEST(BlockCountersTest, ResetPeakForgetsWhatShardsStillRemember) {
  BlockCounters counters(kFold);
  Shard* a = counters.AddShard();
  Shard* b = counters.AddShard();
  a->Allocated(kSmall, 500, 500);
  b->Allocated(kSmall, 400, 400);
  b->Freed(kSmall, 400, 400);
  counters.ResetPeak();
  EXPECT_EQ(SmallBytes(counters).peak, 500);
  b->Allocated(kSmall, 10, 10);
  EXPECT_EQ(SmallBytes(counters).peak, 510);
  a->Freed(kSmall, 500, 500);
  counters.ResetPeak();
  EXPECT_EQ(SmallBytes(counters).peak, 10);
}

TEST(BlockCountersTest, RetiredShardsLeaveTheirValues) {
  BlockCounters counters(kFold);
  Shard* gone = counters.AddShard();
  gone->Allocated(kSmall, 300, 300);
  gone->Freed(kSmall, 200, 200);
  gone->CountMiss();
  counters.Retire(gone);
  Shard* other = counters.AddShard();
  other->Freed(kSmall, 100, 100);  // freed by another thread
  const Values values = counters.Read();
  EXPECT_EQ(values.bytes.small_pool,
            (Stat{.current = 0, .peak = 300, .allocated = 300, .freed = 300}));
  EXPECT_EQ(values.misses, 1);
}

// Threads that meet now and then: there the sum is known, and the peak must not be below the
// largest of these sums, although a reader folds all the time.
TEST(BlockCountersTest, ThreadsNeverLoseAQuiescentMaximum) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 60;
  constexpr std::int64_t kLargest = 300;
  BlockCounters counters(kFold);
  std::atomic<std::int64_t> sum{0};
  std::atomic<std::int64_t> misses{0};
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
      const Stat stat = SmallBytes(counters);
      EXPECT_GE(stat.current, 0);
      EXPECT_LE(stat.current, stat.peak);
    }
  });
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      Shard* shard = counters.AddShard();
      std::int64_t net = 0;
      for (int round = 0; round < kRounds; ++round) {
        for (int i = 0; i < 200; ++i) {
          const std::int64_t size = 1 + random() % kLargest;
          if (random() % 2 == 0) {
            shard->Allocated(kSmall, size, size);
            net += size;
            sum += size;
          } else if (net >= size) {
            if (random() % 4 == 0) {
              shard->Deferred(kSmall, size, size);
              shard->Ended(kSmall, 1, size);
            } else {
              shard->Freed(kSmall, size, size);
            }
            net -= size;
            sum -= size;
          }
          highest[t] = std::max(highest[t], net);
          shard->CountMiss();
          ++misses;
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
  const Values values = counters.Read();
  EXPECT_EQ(values.bytes.small_pool.current, sum.load());
  EXPECT_EQ(values.misses, misses.load());
  EXPECT_GE(values.bytes.small_pool.peak, quiescent_maximum);
  EXPECT_GE(values.active_bytes.all.peak, quiescent_maximum);
  std::int64_t together = 0;
  for (const std::int64_t h : highest) together += h;
  EXPECT_LE(values.bytes.small_pool.peak, together);
}

TEST(BlockCountersTest, ThreadsComeAndGoWhileOthersReadAndReset) {
  constexpr int kThreads = 4;
  BlockCounters counters(kFold);
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
        Shard* shard = counters.AddShard();
        for (int i = 0; i < 100; ++i) {
          shard->Allocated(kSmall, 90, 90);
          shard->Allocated(kLarge, 60, 60);
          shard->Deferred(kLarge, 60, 60);
          shard->Ended(kLarge, 1, 60);
        }
        counters.Retire(shard);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  done = true;
  reader.join();
  const Values values = counters.Read();
  EXPECT_EQ(values.bytes.small_pool.current, kThreads * 20 * 100 * 90);
  EXPECT_EQ(values.bytes.large_pool.current, 0);
  EXPECT_EQ(values.active_blocks.all.current, kThreads * 20 * 100);
  EXPECT_EQ(values.pending_blocks.current, 0);
  EXPECT_GE(values.active_blocks.all.peak, kThreads * 20 * 100);
}

}  // namespace
}  // namespace keel::telemetry
