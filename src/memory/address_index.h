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

  // A block, and the place in the table that says so: what is found once need not be looked for
  // again to remove it.
  class Found;
  // Null: no block begins there, or the address is not covered.
  Found FindPlace(std::uint64_t address) const;
  Block* Find(std::uint64_t address) const;
  // The block begins here now, or does no longer. Its address must be covered, and its size the
  // same in both calls.
  void Add(Block* block) {
    const Region region = RegionOf(block->address);
    // Asked at once: which of the two it is, a processor cannot guess. The difference is negative
    // for a large block; as arithmetic, because of a comparison compilers make a jump.
    const std::uint64_t large = ((std::uint64_t{1} << kCoarseBits) - block->size) >> 63;
    if ((large & ~region.word) != 0) [[unlikely]] {
      NoteLarge(block->address);
    }
    SlotOf(region, *block)
        .store(reinterpret_cast<std::uint64_t>(block) | TagOf(block->address) << kTagShift,
               std::memory_order_release);
  }
  void Remove(const Block& block) {
    SlotOf(RegionOf(block.address), block).store(0, std::memory_order_release);
  }

 private:
  // A block's address, and in its upper 16 bits that there is one and where in its MiB of the
  // address space it begins. A reader that meets another block there must not look into it: its
  // owner may be just about to free it.
  using Slot = std::atomic<std::uint64_t>;
  static constexpr auto kAcquire = std::memory_order_acquire;
  static constexpr int kTagShift = 48;
  static constexpr std::uint64_t kSomething = 1 << 15;
  static std::uint64_t TagOf(std::uint64_t address) {
    return kSomething | (address >> kFineBits & ((1 << (kCoarseBits - kFineBits)) - 1));
  }
  static bool Matches(std::uint64_t slot, std::uint64_t address) {
    return slot >> kTagShift == TagOf(address);
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

  // The arrays of a region, one behind the other: the fine, the middle and the coarse one, as
  // numbers rather than fields, because which of them a block is in is chosen without a jump. The
  // finest is last, where most of it is never touched.
  static constexpr std::array<int, 3> kBits{kFineBits, kMiddleBits, kCoarseBits};
  static constexpr std::size_t kCoarseAt = 0;
  static constexpr std::size_t kMiddleAt = kCoarseAt + (kRegionBytes >> kCoarseBits);
  static constexpr std::size_t kFineAt = kMiddleAt + (kRegionBytes >> kMiddleBits);
  static constexpr std::array<std::size_t, 3> kAt{kFineAt, kMiddleAt, kCoarseAt};
  static constexpr std::size_t kSlots = kFineAt + (kRegionBytes >> kFineBits);

  // Its slots, and in the lowest bit whether any block was ever in the coarse array. Arenas for
  // large blocks and for small ones have addresses of their own, so most regions have either
  // nothing else there or nothing at all.
  struct Region {
    std::uint64_t word = 0;
    bool exists() const { return word != 0; }
    bool has_large() const { return (word & 1) != 0; }
    Slot* slots() const { return reinterpret_cast<Slot*>(word & ~std::uint64_t{1}); }
  };
  Region RegionOf(std::uint64_t address) const {
    return {regions_[address >> kRegionBits].load(std::memory_order_acquire)};
  }
  void NoteLarge(std::uint64_t address) {
    regions_[address >> kRegionBits].fetch_or(1, std::memory_order_relaxed);
  }
  static Slot& SlotOf(Region region, const Block& block) {
    const std::size_t which = std::size_t{block.size > std::uint64_t{1} << kMiddleBits} +
                              std::size_t{block.size > std::uint64_t{1} << kCoarseBits};
    const std::uint64_t offset = block.address & (kRegionBytes - 1);
    return region.slots()[kAt[which] + (offset >> kBits[which])];
  }

  Mutex mutex_;
  std::unique_ptr<std::atomic<std::uint64_t>[]> regions_;
};

class AddressIndex::Found {
 public:
  Found() = default;
  Block* block() const { return BlockOf(value_); }
  // Whether it is still so: the block was not removed since.
  bool current() const { return slot_->load(std::memory_order_relaxed) == value_; }
  // As AddressIndex::Remove. To be called only while it is current.
  void Remove() const { slot_->store(0, std::memory_order_release); }

 private:
  friend class AddressIndex;
  Found(Slot& slot, std::uint64_t value) : slot_(&slot), value_(value) {}

  Slot* slot_ = nullptr;
  std::uint64_t value_ = 0;
};

[[gnu::always_inline]] inline AddressIndex::Found AddressIndex::FindPlace(
    std::uint64_t address) const {
  if (address >> kRegionBits >= kRegions || address % kQuantum != 0) return {};
  const Region region = RegionOf(address);
  if (!region.exists()) return {};
  const std::uint64_t offset = address & (kRegionBytes - 1);
  // The first look is at one place, chosen without a jump that a processor could guess wrong.
  const auto which = 1 + std::size_t{region.has_large()};
  Slot& first = region.slots()[kAt[which] + (offset >> kBits[which])];
  const std::uint64_t value = first.load(kAcquire);
  if (Matches(value, address)) [[likely]] {
    return {first, value};
  }
  if (region.has_large()) {
    Slot& middle = region.slots()[kMiddleAt + (offset >> kMiddleBits)];
    const std::uint64_t second = middle.load(kAcquire);
    if (Matches(second, address)) return {middle, second};
  }
  Slot& fine = region.slots()[kFineAt + (offset >> kFineBits)];
  return {fine, fine.load(kAcquire)};
}

inline Block* AddressIndex::Find(std::uint64_t address) const { return FindPlace(address).block(); }

}  // namespace keel::memory
