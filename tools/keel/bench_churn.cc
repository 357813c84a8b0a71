#include "bench_churn.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <utility>

#include "block_churn.h"
#include "format.h"
#include "keel/base/mutex.h"
#include "keel/hal/stream.h"
#include "keel/memory/device_allocator.h"

namespace keel::cli {
namespace {

using memory::DeviceAllocator;

constexpr Bytes kLeast{512};
constexpr Bytes kMost = 32_MiB;
constexpr Bytes kMostLimit = 4_GiB;
constexpr std::uint64_t kUsedEvery = 4;   // one block in so many is used on another stream
constexpr std::uint64_t kGivenEvery = 8;  // and one in so many is freed by another thread

struct Block {
  DeviceAddress address;
  Bytes size;
};

// Blocks on their way from the thread that allocated them to the one that frees them. They count as
// live until they are freed.
class Exchange {
 public:
  void Put(const Block& block) {
    const MutexLock lock(mutex_);
    blocks_.push_back(block);
  }
  std::vector<Block> TakeAll() {
    const MutexLock lock(mutex_);
    return std::exchange(blocks_, {});
  }

 private:
  Mutex mutex_;
  std::vector<Block> blocks_ KEEL_GUARDED_BY(mutex_);
};

class Churn {
 public:
  Churn(const ChurnOptions& options, DeviceAllocator& allocator,
        const std::vector<hal::Stream>& streams, Bytes budget)
      : options_(options),
        allocator_(allocator),
        streams_(streams),
        budget_(budget),
        sizes_(kLeast, kMost, options.seed) {}

  Status Run(int thread) {
    FastRandom random(options_.seed * 1000 + static_cast<std::uint64_t>(thread));
    std::vector<Block> live;
    Status status;
    for (std::uint64_t i = 0; i < options_.operations && status.ok(); ++i) {
      status = Step(random, live);
    }
    for (const Block& block : live) {
      Status freed = Free(block);
      if (status.ok()) status = std::move(freed);
    }
    return status;
  }

  // What no thread has come to free.
  Status FreeRest() {
    for (const Block& block : exchange_.TakeAll()) KEEL_TRY(Free(block));
    return OkStatus();
  }

  std::uint64_t ooms() const { return ooms_; }

 private:
  Status Step(FastRandom& random, std::vector<Block>& live) {
    for (const Block& block : exchange_.TakeAll()) KEEL_TRY(Free(block));
    const Bytes size = sizes_[random()];
    while (!Claim(size)) {
      // Others hold the rest, and free it in their turn.
      if (live.empty()) return OkStatus();
      std::swap(live[random() % live.size()], live.back());
      const Block block = live.back();
      live.pop_back();
      KEEL_TRY(Free(block));
    }
    const auto stream = [&] { return streams_[random() % streams_.size()].get(); };
    const Result<DeviceAddress> address = allocator_.Allocate(size, stream());
    if (!address.ok()) {
      claimed_ -= size.count();
      if (address.status().code() != StatusCode::kResourceExhausted) return address.status();
      ++ooms_;
      return OkStatus();
    }
    const Block block{*address, size};
    if (random() % kUsedEvery == 0) {
      Status used = allocator_.RecordUse(*address, stream());
      if (!used.ok()) {
        live.push_back(block);
        return used;
      }
    }
    if (random() % kGivenEvery == 0) {
      exchange_.Put(block);
    } else {
      live.push_back(block);
    }
    return OkStatus();
  }

  bool Claim(Bytes size) {
    if (claimed_.fetch_add(size.count()) + size.count() <= budget_.count()) return true;
    claimed_ -= size.count();
    return false;
  }

  Status Free(const Block& block) {
    Status status = allocator_.Free(block.address);
    claimed_ -= block.size.count();
    return status;
  }

  const ChurnOptions& options_;
  DeviceAllocator& allocator_;
  const std::vector<hal::Stream>& streams_;
  const Bytes budget_;
  const SizeTable sizes_;
  Exchange exchange_;
  std::atomic<std::uint64_t> claimed_{0};  // bytes that are live, or about to be
  std::atomic<std::uint64_t> ooms_{0};
};

std::vector<Invariant> Examine(DeviceAllocator& allocator, std::uint64_t ooms,
                               const telemetry::MemoryStats& stats) {
  const std::int64_t requests = stats.allocation.all.allocated;
  const std::int64_t hits = std::max<std::int64_t>(requests - stats.num_device_alloc, 0);
  const std::int64_t blocks = stats.allocation.all.current;
  const std::int64_t bytes = stats.allocated_bytes.all.current;
  const Bytes reserved = allocator.reserved();
  const auto count = [](std::int64_t n) { return FormatCount(static_cast<std::uint64_t>(n)); };
  return {{"no leak", blocks == 0 && bytes == 0,
           fmt::format("{} blocks and {} bytes are allocated after all were freed", blocks, bytes)},
          {"no spurious out-of-memory", ooms == 0,
           fmt::format("{} requests failed with half of the limit free", FormatCount(ooms))},
          {"EmptyCache releases", reserved.empty(),
           fmt::format("{} are reserved after it", ToString(reserved))},
          {"hits", hits > 0,
           fmt::format("{} of {} requests took nothing from the driver", count(hits),
                       count(requests))}};
}

}  // namespace

bool ChurnReport::passed() const {
  return std::all_of(invariants.begin(), invariants.end(),
                     [](const Invariant& invariant) { return invariant.holds; });
}

Result<ChurnReport> RunChurn(const BenchSetting& setting, const ChurnOptions& options) {
  ChurnReport report;
  memory::AllocatorConfig config = setting.config;
  report.limit = std::min({config.limit, kMostLimit, setting.device->info().memory / 2});
  config.limit = report.limit;
  std::vector<hal::Stream> streams;  // outlive the allocator
  for (int i = 0; i < options.streams; ++i) {
    KEEL_ASSIGN(hal::Stream stream, hal::Stream::Create(setting.device));
    streams.push_back(std::move(stream));
  }
  KEEL_ASSIGN(const std::unique_ptr<DeviceAllocator> allocator,
              DeviceAllocator::Create(setting.device, {.config = config}));
  Churn churn(options, *allocator, streams, report.limit / 2);
  const auto began = std::chrono::steady_clock::now();
  KEEL_TRY(InThreads(options.threads, [&](int thread) { return churn.Run(thread); }));
  KEEL_TRY(churn.FreeRest());
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - began;
  const telemetry::MemoryStats stats = allocator->Stats();
  report.ns = took.count() / std::max(1.0, static_cast<double>(stats.allocation.all.allocated));
  KEEL_TRY(allocator->EmptyCache());
  report.invariants = Examine(*allocator, churn.ooms(), stats);
  return report;
}

}  // namespace keel::cli
