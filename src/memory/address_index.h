// AddressIndex: the taken block that begins at an address. A table over the address space, as a
// page table is one: 2^17 regions of 1 GiB, each with a slot for every 512 bytes, which costs
// memory only where blocks begin.
//
// Looking up takes no lock and two loads. A slot is written by whoever has the block; a program
// that hands an address to another thread orders the two, as it must for the memory itself.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "keel/base/mutex.h"
#include "keel/base/result.h"
#include "memory/block_pool.h"

namespace keel::memory {

class AddressIndex {
 public:
  AddressIndex();
  AddressIndex(const AddressIndex&) = delete;
  AddressIndex& operator=(const AddressIndex&) = delete;
  ~AddressIndex();

  // Makes the slots of a range; none of the others may be used before. kResourceExhausted when the
  // host has no memory for them.
  Status Cover(std::uint64_t address, std::uint64_t size) KEEL_EXCLUDES(mutex_);

  // Null: no block begins there, or the address is not covered.
  Block* Find(std::uint64_t address) const {
    const std::uint64_t region = address >> kRegionBits;
    if (region >= kRegions || address % kQuantum != 0) return nullptr;
    const Slot* const slots = regions_[region].load(std::memory_order_acquire);
    if (slots == nullptr) return nullptr;
    return slots[SlotOf(address)].load(std::memory_order_acquire);
  }
  // The address must be covered.
  void Set(std::uint64_t address, Block* block) {
    Slot* const slots = regions_[address >> kRegionBits].load(std::memory_order_relaxed);
    slots[SlotOf(address)].store(block, std::memory_order_release);
  }

 private:
  using Slot = std::atomic<Block*>;
  static constexpr int kRegionBits = 30;
  static constexpr std::uint64_t kRegions = std::uint64_t{1} << (47 - kRegionBits);
  static constexpr std::uint64_t kSlots = (std::uint64_t{1} << kRegionBits) / kQuantum;
  static std::uint64_t SlotOf(std::uint64_t address) {
    return (address & ((std::uint64_t{1} << kRegionBits) - 1)) / kQuantum;
  }

  Mutex mutex_;
  std::unique_ptr<std::atomic<Slot*>[]> regions_;
};

}  // namespace keel::memory
