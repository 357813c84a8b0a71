#include "memory/address_index.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>

#include "keel/base/bytes.h"

namespace keel::memory {

AddressIndex::AddressIndex() : regions_(std::make_unique<std::atomic<std::uint64_t>[]>(kRegions)) {}

AddressIndex::~AddressIndex() {
  for (std::uint64_t i = 0; i < kRegions; ++i) {
    const Region region{regions_[i].load(std::memory_order_relaxed)};
    if (region.exists()) munmap(static_cast<void*>(region.slots()), kSlots * sizeof(Slot));
  }
}

Status AddressIndex::Cover(std::uint64_t address, std::uint64_t size) {
  const std::uint64_t last = (address + size - 1) >> kRegionBits;
  if (last >= kRegions) {
    return ResourceExhausted(fmt::format("{} is above the addresses that Keel keeps books on",
                                         ToString(DeviceAddress(address + size - 1))));
  }
  MutexLock lock(mutex_);
  for (std::uint64_t region = address >> kRegionBits; region <= last; ++region) {
    if (regions_[region].load(std::memory_order_relaxed) != 0) continue;
    // Zero pages until written: atomics of null pointers.
    void* const made = mmap(nullptr, kSlots * sizeof(Slot), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED) return SystemError("making the index of addresses", errno);
    regions_[region].store(reinterpret_cast<std::uint64_t>(made), std::memory_order_release);
  }
  return OkStatus();
}

}  // namespace keel::memory
