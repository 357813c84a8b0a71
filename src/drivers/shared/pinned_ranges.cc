#include "drivers/shared/pinned_ranges.h"

#include <iterator>

namespace keel::vendor {
namespace {

std::atomic<std::uint64_t> last_state{0};

std::uint64_t NextState() { return last_state.fetch_add(1, std::memory_order_relaxed) + 1; }

struct Remembered {
  std::uint64_t state = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};
thread_local Remembered remembered;

std::uint64_t Value(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

}  // namespace

PinnedRanges::PinnedRanges() : state_(NextState()) {}

void PinnedRanges::ChangedLocked() { state_.store(NextState(), std::memory_order_release); }

void PinnedRanges::Add(hal::DeviceId owner, const void* pointer, Bytes size) {
  const MutexLock lock(mutex_);
  ranges_[Value(pointer)] = {owner, size};
}

PinnedRanges::Range PinnedRanges::Take(const void* pointer) {
  const MutexLock lock(mutex_);
  const auto found = ranges_.find(Value(pointer));
  if (found == ranges_.end()) return {};
  const Range range = found->second;
  ranges_.erase(found);
  ChangedLocked();
  return range;
}

bool PinnedRanges::Has(const void* pointer, Bytes size) const {
  const std::uint64_t begin = Value(pointer);
  const std::uint64_t end = begin + size.count();
  if (remembered.state == state_.load(std::memory_order_acquire) && remembered.begin <= begin &&
      begin <= end && end <= remembered.end) {
    return true;
  }
  const MutexLock lock(mutex_);
  const auto behind = ranges_.upper_bound(begin);
  if (behind == ranges_.begin()) return false;
  const auto& [address, range] = *std::prev(behind);
  if (end < begin || end > address + range.size.count()) return false;
  remembered = {state_.load(std::memory_order_relaxed), address, address + range.size.count()};
  return true;
}

void PinnedRanges::Forget(hal::DeviceId owner) {
  const MutexLock lock(mutex_);
  std::erase_if(ranges_, [&](const auto& each) { return each.second.owner == owner; });
  ChangedLocked();
}

}  // namespace keel::vendor
