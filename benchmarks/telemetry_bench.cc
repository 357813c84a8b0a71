// What it costs an allocator to count and to keep a history.
//
//   counters/...  one update: of a plain Stat (no threads), of a shard, which has three for each
//                 pool, and for comparison of one atomic that all threads share
//   events/...    one EventLog::Record: off, on, and on with stacks
// Each also with several threads at once.

#include <benchmark/benchmark.h>

#include <atomic>
#include <cstdint>

#include "keel/telemetry/event_log.h"
#include "keel/telemetry/memory_stats.h"
#include "telemetry/block_counters.h"

namespace keel::telemetry {
namespace {

using benchmark::State;

void PlainStat(State& state) {
  Stat stat;
  for (auto _ : state) {
    stat.Increase(512);
    benchmark::DoNotOptimize(stat);
    stat.Decrease(512);
    benchmark::DoNotOptimize(stat);
  }
  state.SetItemsProcessed(state.iterations() * 2);
}
BENCHMARK(PlainStat)->Name("counters/plain");

std::atomic<std::int64_t> shared_current{0};

void SharedAtomic(State& state) {
  for (auto _ : state) {
    shared_current.fetch_add(512, std::memory_order_relaxed);
    shared_current.fetch_sub(512, std::memory_order_relaxed);
  }
  state.SetItemsProcessed(state.iterations() * 2);
}
BENCHMARK(SharedAtomic)->Name("counters/one_atomic")->ThreadRange(1, 8);

constexpr BlockCounters::FoldAfter kFoldAfter{.blocks = 100'000, .bytes = 64 << 20};

BlockCounters& BenchCounters() {
  static BlockCounters* const counters = new BlockCounters(kFoldAfter);
  return *counters;
}

void ShardUpdate(State& state) {
  BlockCounters::Shard* shard = BenchCounters().AddShard();
  for (auto _ : state) {
    shard->Allocated(Pool::kSmall, 512, 500);
    shard->Freed(Pool::kSmall, 512, 500);
  }
  BenchCounters().Retire(shard);
  state.SetItemsProcessed(state.iterations() * 2);
}
BENCHMARK(ShardUpdate)->Name("counters/shard")->ThreadRange(1, 8);

void ShardCount(State& state) {
  BlockCounters::Shard* shard = BenchCounters().AddShard();
  for (auto _ : state) shard->CountMiss();
  BenchCounters().Retire(shard);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(ShardCount)->Name("counters/shard_count");

void ReadShards(State& state) {
  BlockCounters counters(kFoldAfter);
  for (int i = 0; i < 64; ++i) counters.AddShard()->Allocated(Pool::kSmall, 512, 500);
  for (auto _ : state) benchmark::DoNotOptimize(counters.Read());
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(ReadShards)->Name("counters/read_64_shards");

EventLog& BenchLog() {
  static EventLog* const log = new EventLog;
  return *log;
}

void RecordLoop(State& state) {
  EventLog& log = BenchLog();
  const MemoryEvent event{.action = EventAction::kAlloc,
                          .address = DeviceAddress(0x7f0000000000),
                          .size = 2_MiB,
                          .stream = 1};
  for (auto _ : state) log.Record(event);
  state.SetItemsProcessed(state.iterations());
}

void EnableLog(bool stacks) {
  if (!BenchLog().Enable({.capacity = 100'000, .stacks = stacks}).ok()) std::abort();
}

BENCHMARK(RecordLoop)->Name("events/off")->Setup([](const State&) { BenchLog().Disable(); });
BENCHMARK(RecordLoop)
    ->Name("events/on")
    ->Setup([](const State&) { EnableLog(false); })
    ->ThreadRange(1, 8);
BENCHMARK(RecordLoop)->Name("events/stacks")->Setup([](const State&) { EnableLog(true); });

void Clock(State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(EventLog::Now());
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(Clock)->Name("events/clock_alone")->ThreadRange(1, 8);

}  // namespace
}  // namespace keel::telemetry
