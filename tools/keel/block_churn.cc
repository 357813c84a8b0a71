#include "block_churn.h"

#include <cmath>
#include <random>
#include <thread>

#include "keel/base/result.h"

namespace keel::cli {
namespace {
constexpr std::size_t kSizes = 1 << 14;
}  // namespace

SizeTable::SizeTable(Bytes least, Bytes most, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> exponent(std::log(static_cast<double>(least.count())),
                                                  std::log(static_cast<double>(most.count())));
  sizes_.reserve(kSizes);
  for (std::size_t i = 0; i < kSizes; ++i) {
    sizes_.emplace_back(static_cast<std::uint64_t>(std::exp(exponent(random))));
  }
}

BlockChurn::~BlockChurn() {
  // Only after an error is anything left; that one was reported.
  (void)FreeAll();
}

Status BlockChurn::Fill(std::size_t live) {
  while (live_.size() < live) {
    KEEL_ASSIGN(const DeviceAddress address, allocator_.Allocate(sizes_[random_()], stream_));
    live_.push_back(address);
  }
  return OkStatus();
}

Status BlockChurn::Replace(std::size_t index) {
  const DeviceAddress old = std::exchange(live_[index], DeviceAddress());
  KEEL_TRY(allocator_.Free(old));
  KEEL_ASSIGN(live_[index], allocator_.Allocate(sizes_[random_()], stream_));
  return OkStatus();
}

Status BlockChurn::Turn(std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) KEEL_TRY(Replace(random_() % live_.size()));
  return OkStatus();
}

Status BlockChurn::TurnUsed(std::uint64_t count, hal::StreamHandle other) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::size_t index = random_() % live_.size();
    KEEL_TRY(allocator_.RecordUse(live_[index], other));
    KEEL_TRY(Replace(index));
  }
  return OkStatus();
}

Status BlockChurn::Sweep() {
  for (std::size_t i = 0; i < live_.size(); ++i) KEEL_TRY(Replace(i));
  return OkStatus();
}

Status BlockChurn::FreeAll() {
  Status first;
  for (const DeviceAddress address : live_) {
    Status status = allocator_.Free(address);
    if (first.ok()) first = std::move(status);
  }
  live_.clear();
  return first;
}

Status InThreads(int threads, const std::function<Status(int thread)>& body) {
  std::vector<Status> statuses(static_cast<std::size_t>(threads));
  {
    std::vector<std::jthread> running;
    running.reserve(statuses.size());
    for (int i = 0; i < threads; ++i) {
      running.emplace_back([&, i] { statuses[static_cast<std::size_t>(i)] = body(i); });
    }
  }
  for (const Status& status : statuses) KEEL_TRY(status);
  return OkStatus();
}

}  // namespace keel::cli
