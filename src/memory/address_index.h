// AddressIndex: the taken block that begins at an address. A table over the address space, as a
// page table is one: 2^17 regions of 1 GiB, each with three arrays of slots. A block is in the
// coarsest one in which it cannot meet another: of blocks larger than 1 MiB at most one begins in
// any MiB, of those larger than 64 KiB in any 64 KiB; the rest have a slot for every 512 bytes. So
// ten thousand blocks lie close together, and the table costs memory only where blocks begin.
//
// Looking up takes no lock and a few loads. A slot is written by whoever has the block; a program
// that hands an address to another thread orders the two, as it must for the memory itself.
#pragma once

#include <array>
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
    const std::uint64_t number = address >> kRegionBits;
    if (number >= kRegions || address % kQuantum != 0) return nullptr;
    const Region* const region = regions_[number].load(std::memory_order_acquire);
    if (region == nullptr) return nullptr;
    const std::uint64_t offset = address & (kRegionBytes - 1);
    // The first look is at one place, chosen without a jump that a processor could guess wrong.
    const bool large = region->has_large.load(std::memory_order_relaxed);
    const Slot* const slots = large ? region->coarse.data() : region->middle.data();
    const int bits = large ? kCoarseBits : kMiddleBits;
    const std::uint64_t first = slots[offset >> bits].load(kAcquire);
    if (Matches(first, address, bits)) return BlockOf(first);
    if (large) {
      const std::uint64_t middle = region->middle[offset >> kMiddleBits].load(kAcquire);
      if (Matches(middle, address, kMiddleBits)) return BlockOf(middle);
    }
    return BlockOf(region->fine[offset >> kFineBits].load(kAcquire));
  }
  // The block begins here now, or does no longer. Its address must be covered, and its size the
  // same in both calls.
  void Add(Block* block) {
    if (block->size > std::uint64_t{1} << kCoarseBits) NoteLarge(block->address);
    SlotOf(*block).store(reinterpret_cast<std::uint64_t>(block) | TagOf(block->address),
                         std::memory_order_release);
  }
  void Remove(const Block& block) { SlotOf(block).store(0, std::memory_order_release); }

 private:
  // A block's address, and in its upper 16 bits where in the slot's part of the address space it
  // begins. A reader that meets another block there must not look into it: its owner may be just
  // about to free it.
  using Slot = std::atomic<std::uint64_t>;
  static constexpr auto kAcquire = std::memory_order_acquire;
  static constexpr int kTagShift = 48;
  // Of the largest part, a MiB: 11 bits.
  static std::uint64_t TagOf(std::uint64_t address) {
    return (address >> kFineBits & ((1 << (kCoarseBits - kFineBits)) - 1)) << kTagShift;
  }
  static bool Matches(std::uint64_t slot, std::uint64_t address, int bits) {
    const std::uint64_t mask = (std::uint64_t{1} << (bits - kFineBits)) - 1;
    return slot != 0 && ((slot ^ TagOf(address)) >> kTagShift & mask) == 0;
  }
  static Block* BlockOf(std::uint64_t slot) {
    return reinterpret_cast<Block*>(slot & ((std::uint64_t{1} << kTagShift) - 1));
  }

  static constexpr int kRegionBits = 30;
  static constexpr std::uint64_t kRegionBytes = std::uint64_t{1} << kRegionBits;
  static constexpr std::uint64_t kRegions = std::uint64_t{1} << (47 - kRegionBits);
  static constexpr int kCoarseBits = 20;
  static constexpr int kMiddleBits = 16;
  static constexpr int kFineBits = 9;
  static_assert(kQuantum == std::uint64_t{1} << kFineBits);
  template <int kBits>
  using Slots = std::array<Slot, (kRegionBytes >> kBits)>;
  struct Region {
    Slots<kCoarseBits> coarse;
    Slots<kMiddleBits> middle;
    Slots<kFineBits> fine;
    // Whether any block was ever in `coarse`. Arenas for large blocks and for small ones have
    // addresses of their own, so most regions have either nothing else there or nothing at all.
    std::atomic<bool> has_large;
  };

  void NoteLarge(std::uint64_t address) {
    Region& region = *regions_[address >> kRegionBits].load(std::memory_order_relaxed);
    if (!region.has_large.load(std::memory_order_relaxed)) {
      region.has_large.store(true, std::memory_order_relaxed);
    }
  }

  Slot& SlotOf(const Block& block) const {
    Region& region = *regions_[block.address >> kRegionBits].load(std::memory_order_relaxed);
    const std::uint64_t offset = block.address & (kRegionBytes - 1);
    if (block.size > std::uint64_t{1} << kCoarseBits) return region.coarse[offset >> kCoarseBits];
    if (block.size > std::uint64_t{1} << kMiddleBits) return region.middle[offset >> kMiddleBits];
    return region.fine[offset >> kFineBits];
  }

  Mutex mutex_;
  std::unique_ptr<std::atomic<Region*>[]> regions_;
};

}  // namespace keel::memory
