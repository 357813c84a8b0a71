// keel bench host: pinned host memory.

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "block_churn.h"
#include "format.h"
#include "keel/hal/stream.h"
#include "keel/memory/host_allocator.h"
#include "measure.h"

namespace keel::cli {
namespace {

using memory::HostAllocator;

Measurement Pair(std::string name, Bytes size, double ns) {
  return {.name = std::move(name), .parameters = {{"size", size.count()}}, .value = ns};
}

Status Pairs(HostAllocator& allocator, Bytes size, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    KEEL_ASSIGN(void* const pointer, allocator.Allocate(size));
    KEEL_TRY(allocator.Free(pointer));
  }
  return OkStatus();
}

// From the cache, also with work of a stream to wait for, and the driver's own calls.
Result<std::vector<Measurement>> PinnedPair(const BenchSetting& setting, Bytes size) {
  KEEL_ASSIGN(const hal::Stream stream, hal::Stream::Create(setting.device));
  // One each: what waits for a stream would be looked at by the others.
  const auto options = memory::HostAllocatorOptions::From(setting.config);
  HostAllocator cached(setting.device, options);
  HostAllocator streamed(setting.device, options);
  HostAllocator uncached(setting.device, {.cache = false});
  const auto used = [&](std::uint64_t count) -> Status {
    for (std::uint64_t i = 0; i < count; ++i) {
      KEEL_ASSIGN(void* const pointer, streamed.Allocate(size));
      KEEL_TRY(streamed.RecordUse(pointer, stream.get()));
      KEEL_TRY(streamed.Free(pointer));
    }
    return OkStatus();
  };
  KEEL_ASSIGN(const std::vector<double> ns,
              MediansNs({[&](std::uint64_t count) { return Pairs(cached, size, count); }, used,
                         [&](std::uint64_t count) { return Pairs(uncached, size, count); }}));
  std::vector<Measurement> measurements;
  measurements.push_back(Pair("pinned pair", size, ns[0]));
  measurements.push_back(Pair("pinned pair used on a stream", size, ns[1]));
  measurements.push_back(Pair("pinned pair of the driver", size, ns[2]));
  return measurements;
}

// The most that was held over the most that was asked for, for sizes of all magnitudes, each for a
// random time.
Result<std::vector<Measurement>> Waste(const BenchSetting& setting, std::size_t most_live) {
  constexpr Bytes kLeast = 1_KiB;
  constexpr Bytes kMost = 64_MiB;
  constexpr std::size_t kTurns = 20;
  HostAllocator allocator(setting.device, memory::HostAllocatorOptions::From(setting.config));
  const SizeTable sizes(kLeast, kMost, most_live);
  FastRandom random(most_live);
  std::vector<void*> live;
  Status status;
  for (std::size_t turn = 0; turn < most_live * kTurns && status.ok(); ++turn) {
    while (status.ok() && !live.empty() &&
           (live.size() >= most_live || random() % (2 * most_live) < live.size())) {
      std::swap(live[random() % live.size()], live.back());
      status = allocator.Free(live.back());
      live.pop_back();
    }
    if (!status.ok()) break;
    Result<void*> pointer = allocator.Allocate(sizes[random()]);
    if (pointer.ok()) live.push_back(*pointer);
    status = std::move(pointer).status();
  }
  const Status freed = allocator.FreeAll(live);
  KEEL_TRY(status);
  KEEL_TRY(freed);
  const memory::HostAllocatorStats stats = allocator.stats();
  std::vector<Measurement> measurements(1);
  measurements[0] = {
      .name = "pinned held over requested",
      .parameters = {{"live", most_live},
                     {"least_size", kLeast.count()},
                     {"most_size", kMost.count()}},
      .unit = Measurement::Unit::kRatio,
      .value = static_cast<double>(stats.memory.allocated_bytes.peak) /
               static_cast<double>(std::max<std::int64_t>(stats.requested_bytes.peak, 1))};
  return measurements;
}

}  // namespace

std::vector<BenchCase> HostCases(const BenchSetting& setting) {
  std::vector<BenchCase> cases;
  for (const Bytes size : {512_B, 64_KiB, 1_MiB, 16_MiB}) {
    cases.push_back({"pinned pair of " + ToString(size),
                     [setting, size] { return PinnedPair(setting, size); }});
  }
  for (const std::size_t live : {20, 80, 300}) {
    cases.push_back({"pinned memory held, " + FormatCount(live) + " live",
                     [setting, live] { return Waste(setting, live); }});
  }
  return cases;
}

}  // namespace keel::cli
