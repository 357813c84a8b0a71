#include "drivers/sim/host_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <iterator>
#include <thread>

namespace keel::sim {
namespace {

// Precondition: it was allocated, so it is no number that overflows.
Bytes WholePages(Bytes size) { return *AlignUp(size, 4_KiB); }

// Memory that is not there cannot be pinned; the kernel knows, a few pages at a time.
bool Exists(std::uint64_t address, Bytes size) {
  constexpr std::uint64_t kPage = 4096;
  std::array<unsigned char, 4096> residency;
  const std::uint64_t end = address + size.count();
  for (std::uint64_t at = address / kPage * kPage; at < end; at += residency.size() * kPage) {
    const std::uint64_t length = std::min(end - at, residency.size() * kPage);
    if (mincore(reinterpret_cast<void*>(at), length, residency.data()) != 0) return false;
  }
  return true;
}

}  // namespace

HostRange::~HostRange() {
  if (owned_) munmap(start_, WholePages(size_).count());
}

Result<void*> HostMemoryTable::Allocate(Bytes size) {
  if (!AlignUp(size, 4_KiB)) {
    return ResourceExhausted(
        fmt::format("{} bytes of pinned host memory are more than any host has", size.count()));
  }
  const std::uint64_t pages = WholePages(size).count();
  void* start = mmap(nullptr, pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) {
    return SystemError(fmt::format("allocating {} of pinned host memory", ToString(size)), errno);
  }
  // Locking is about speed on a real machine; an unprivileged process may lock very little, and a
  // simulation works without.
  (void)mlock2(start, pages, MLOCK_ONFAULT);
  auto range = std::make_shared<HostRange>(static_cast<std::byte*>(start), size, /*owned=*/true);
  MutexLock lock(mutex_);
  KEEL_TRY(InsertLocked(std::move(range)));
  return start;
}

Status HostMemoryTable::InsertLocked(std::shared_ptr<HostRange> range) {
  const auto start = reinterpret_cast<std::uint64_t>(range->start());
  const auto next = ranges_.lower_bound(start);
  const bool over_next = next != ranges_.end() && next->first - start < range->size().count();
  bool over_previous = false;
  if (next != ranges_.begin()) {
    const auto previous = std::prev(next);
    over_previous = start - previous->first < previous->second->size().count();
  }
  if (over_next || over_previous) {
    return AlreadyExists(fmt::format("{} at {} overlap host memory that is pinned already",
                                     ToString(range->size()), ToString(DeviceAddress(start))));
  }
  ranges_.emplace(start, std::move(range));
  return OkStatus();
}

Status HostMemoryTable::Free(void* pointer) {
  std::shared_ptr<HostRange> gone;  // unmapped outside of the lock
  MutexLock lock(mutex_);
  const auto entry = ranges_.find(reinterpret_cast<std::uint64_t>(pointer));
  if (entry == ranges_.end() || !entry->second->owned()) {
    return InvalidArgument(
        fmt::format("{} is not pinned memory that was allocated here, or it was "
                    "freed already",
                    pointer));
  }
  gone = std::move(entry->second);
  ranges_.erase(entry);
  return OkStatus();
}

Status HostMemoryTable::Register(void* pointer, Bytes size) {
  if (!Exists(reinterpret_cast<std::uint64_t>(pointer), size)) {
    return InvalidArgument(
        fmt::format("{} at {} are not memory of this process", ToString(size), pointer));
  }
  auto range = std::make_shared<HostRange>(static_cast<std::byte*>(pointer), size, /*owned=*/false);
  MutexLock lock(mutex_);
  return InsertLocked(std::move(range));
}

Status HostMemoryTable::Unregister(void* pointer) {
  std::shared_ptr<HostRange> range;
  {
    MutexLock lock(mutex_);
    const auto entry = ranges_.find(reinterpret_cast<std::uint64_t>(pointer));
    if (entry == ranges_.end() || entry->second->owned()) {
      return InvalidArgument(fmt::format("{} is not the start of a registration", pointer));
    }
    range = std::move(entry->second);
    ranges_.erase(entry);
  }
  while (range->users().load(std::memory_order_acquire) > 0) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return OkStatus();
}

std::shared_ptr<HostRange> HostMemoryTable::FindLocked(std::uint64_t address, Bytes size) {
  auto entry = ranges_.upper_bound(address);
  if (entry == ranges_.begin()) return nullptr;
  --entry;
  const std::uint64_t before = address - entry->first;
  const Bytes length = entry->second->size();
  if (before >= length.count() || size.count() > length.count() - before) return nullptr;
  return entry->second;
}

std::shared_ptr<HostRange> HostMemoryTable::Use(std::uint64_t address, Bytes size) {
  MutexLock lock(mutex_);
  std::shared_ptr<HostRange> range = FindLocked(address, size);
  if (range == nullptr) return nullptr;
  range->users().fetch_add(1, std::memory_order_relaxed);
  HostRange* const raw = range.get();
  // The release pairs with Unregister: what the operation wrote is there when the range is gone.
  return {raw, [range = std::move(range)](HostRange* used) {
            used->users().fetch_sub(1, std::memory_order_release);
          }};
}

bool HostMemoryTable::Contains(std::uint64_t address, Bytes size) {
  MutexLock lock(mutex_);
  return FindLocked(address, size) != nullptr;
}

}  // namespace keel::sim
