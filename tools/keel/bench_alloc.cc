// keel bench alloc: what a pair of Allocate and Free costs, on a new allocator for each case.

#include <fmt/format.h>

#include <algorithm>
#include <barrier>
#include <deque>
#include <thread>
#include <utility>

#include "block_churn.h"
#include "format.h"
#include "keel/hal/stream.h"
#include "keel/memory/device_allocator.h"
#include "measure.h"

namespace keel::cli {
namespace {

using Json = nlohmann::ordered_json;
using memory::DeviceAllocator;

constexpr Bytes kLeast{512};
constexpr Bytes kMost = 2_MiB;
constexpr std::size_t kLive[] = {100, 1000, 10000};
constexpr int kMostThreads = 16;

// An allocator and a stream, which outlives it.
struct Workplace {
  static Result<Workplace> Create(const BenchSetting& setting) {
    Workplace place;
    KEEL_ASSIGN(place.stream, hal::Stream::Create(setting.device));
    KEEL_ASSIGN(place.allocator,
                DeviceAllocator::Create(setting.device, {.config = setting.config}));
    return place;
  }

  hal::Stream stream;
  std::unique_ptr<DeviceAllocator> allocator;
};

Json SizeParameters(std::size_t live) {
  return {{"live", live}, {"least_size", kLeast.count()}, {"most_size", kMost.count()}};
}

std::vector<Measurement> One(std::string name, Json parameters, double ns) {
  std::vector<Measurement> measurements(1);
  measurements[0] = {.name = std::move(name), .parameters = std::move(parameters), .value = ns};
  return measurements;
}

Result<std::vector<Measurement>> CachedPair(const BenchSetting& setting, Bytes size) {
  KEEL_ASSIGN(const Workplace place, Workplace::Create(setting));
  KEEL_ASSIGN(const double ns, MedianNs([&](std::uint64_t count) {
                for (std::uint64_t i = 0; i < count; ++i) {
                  KEEL_ASSIGN(const DeviceAddress address,
                              place.allocator->Allocate(size, place.stream.get()));
                  KEEL_TRY(place.allocator->Free(address));
                }
                return OkStatus();
              }));
  return One("cached pair", {{"size", size.count()}}, ns);
}

Result<std::vector<Measurement>> RandomPair(const BenchSetting& setting, std::size_t live) {
  KEEL_ASSIGN(const Workplace place, Workplace::Create(setting));
  const SizeTable sizes(kLeast, kMost, live);
  BlockChurn churn(*place.allocator, place.stream.get(), sizes, live);
  KEEL_TRY(churn.Fill(live));
  KEEL_ASSIGN(const double ns, MedianNs([&](std::uint64_t count) { return churn.Turn(count); }));
  KEEL_TRY(churn.FreeAll());
  return One("random pair", SizeParameters(live), ns);
}

// Two threads, each of which frees what the other allocated.
Result<std::vector<Measurement>> OtherThreadsPair(const BenchSetting& setting, std::size_t live) {
  KEEL_ASSIGN(const Workplace place, Workplace::Create(setting));
  const SizeTable sizes(kLeast, kMost, live);
  std::deque<BlockChurn> churns;
  for (std::uint64_t seed : {1, 2}) {
    churns.emplace_back(*place.allocator, place.stream.get(), sizes, seed);
    KEEL_TRY(churns.back().Fill(live / 2));
  }
  KEEL_ASSIGN(const double ns, MedianNs([&](std::uint64_t sweeps) {
                std::barrier exchange(
                    2, [&]() noexcept { std::swap(churns[0].blocks(), churns[1].blocks()); });
                return InThreads(2, [&](int thread) {
                  for (std::uint64_t i = 0; i < sweeps; ++i) {
                    exchange.arrive_and_wait();
                    Status status = churns[static_cast<std::size_t>(thread)].Sweep();
                    if (!status.ok()) {
                      exchange.arrive_and_drop();
                      return status;
                    }
                  }
                  return OkStatus();
                });
              }));
  for (BlockChurn& churn : churns) KEEL_TRY(churn.FreeAll());
  return One("random pair freed by another thread", SizeParameters(live),
             ns / static_cast<double>(live));
}

Result<std::vector<Measurement>> UsedPair(const BenchSetting& setting, std::size_t live) {
  KEEL_ASSIGN(const Workplace place, Workplace::Create(setting));
  KEEL_ASSIGN(const hal::Stream other, hal::Stream::Create(setting.device));
  const SizeTable sizes(kLeast, kMost, live);
  BlockChurn churn(*place.allocator, place.stream.get(), sizes, live);
  KEEL_TRY(churn.Fill(live));
  KEEL_ASSIGN(const double ns,
              MedianNs([&](std::uint64_t count) { return churn.TurnUsed(count, other.get()); }));
  KEEL_TRY(churn.FreeAll());
  KEEL_TRY(place.allocator->ForgetStream(other.get()));
  return One("random pair used on another stream", SizeParameters(live), ns);
}

// What the search among holes costs: without the thread's cache, which would answer for it.
Result<std::vector<Measurement>> HolesPair(BenchSetting setting, std::size_t holes) {
  constexpr Bytes kSmallest = 4_KiB;
  constexpr Bytes kLargest = 8_KiB;
  setting.config.front_cache = Bytes(0);
  KEEL_ASSIGN(const Workplace place, Workplace::Create(setting));
  const hal::StreamHandle stream = place.stream.get();
  const SizeTable sizes(kSmallest, kLargest, holes);
  FastRandom random(holes);
  const SizeTable smallest(Bytes(1), Bytes(1), 1);
  BlockChurn walls(*place.allocator, stream, smallest, 1);
  {
    BlockChurn between(*place.allocator, stream, sizes, holes);
    for (std::size_t i = 1; i <= holes; ++i) {
      KEEL_TRY(between.Fill(i));
      KEEL_TRY(walls.Fill(i));
    }
    KEEL_TRY(between.FreeAll());
  }
  KEEL_ASSIGN(const double ns, MedianNs([&](std::uint64_t count) {
                for (std::uint64_t i = 0; i < count; ++i) {
                  KEEL_ASSIGN(const DeviceAddress address,
                              place.allocator->Allocate(sizes[random()], stream));
                  KEEL_TRY(place.allocator->Free(address));
                }
                return OkStatus();
              }));
  KEEL_TRY(walls.FreeAll());
  return One("pair among holes",
             {{"holes", holes},
              {"least_size", kSmallest.count()},
              {"most_size", kLargest.count()},
              {"front_cache", 0}},
             ns);
}

// All threads at work, each on a stream of its own; the time is that of a pair of any of them, so
// that half of it is twice the throughput.
Result<std::vector<Measurement>> ThreadsPair(const BenchSetting& setting, int threads) {
  constexpr std::size_t kLiveEach = 100;
  KEEL_ASSIGN(const Workplace place, Workplace::Create(setting));
  const SizeTable sizes(kLeast, kMost, 1);
  std::vector<hal::Stream> streams;
  std::deque<BlockChurn> churns;
  for (int i = 0; i < threads; ++i) {
    KEEL_ASSIGN(hal::Stream stream, hal::Stream::Create(setting.device));
    streams.push_back(std::move(stream));
    churns.emplace_back(*place.allocator, streams.back().get(), sizes,
                        static_cast<std::uint64_t>(i) + 1);
    KEEL_TRY(churns.back().Fill(kLiveEach));
  }
  KEEL_ASSIGN(const double ns, MedianNs([&](std::uint64_t count) {
                return InThreads(threads, [&](int thread) {
                  return churns[static_cast<std::size_t>(thread)].Turn(count);
                });
              }));
  for (BlockChurn& churn : churns) KEEL_TRY(churn.FreeAll());
  for (const hal::Stream& stream : streams) {
    KEEL_TRY(place.allocator->ForgetStream(stream.get()));
  }
  Json parameters = SizeParameters(kLiveEach);
  parameters["threads"] = threads;
  return One("random pair by threads", std::move(parameters), ns / threads);
}

}  // namespace

std::vector<BenchCase> AllocCases(const BenchSetting& setting) {
  std::vector<BenchCase> cases;
  const auto add = [&](std::string title, auto measure, auto parameter) {
    cases.push_back({std::move(title), [=] { return measure(setting, parameter); }});
  };
  for (const Bytes size : {512_B, 64_KiB, 1_MiB, 16_MiB}) {
    add("cached pair of " + ToString(size), CachedPair, size);
  }
  for (const std::size_t live : kLive) {
    add(fmt::format("random pair, {} live", FormatCount(live)), RandomPair, live);
  }
  for (const std::size_t live : kLive) {
    add(fmt::format("freed by another thread, {} live", FormatCount(live)), OtherThreadsPair, live);
  }
  for (const std::size_t live : kLive) {
    add(fmt::format("used on another stream, {} live", FormatCount(live)), UsedPair, live);
  }
  for (const std::size_t holes : {64, 65536}) {
    add(fmt::format("among {} holes", FormatCount(holes)), HolesPair, holes);
  }
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  for (int threads = 1; threads <= std::min(cores, kMostThreads); threads *= 2) {
    add(fmt::format("{} thread{} on as many streams", threads, threads == 1 ? "" : "s"),
        ThreadsPair, threads);
  }
  return cases;
}

}  // namespace keel::cli
