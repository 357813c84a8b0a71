// HostSegments: which bytes of the pinned segments of a HostAllocator are taken, and by which
// block.
//
// A segment is memory that the driver gave in one piece; a block never spans two, also where they
// happen to meet. A block's address is its address in memory.
//
// Bookkeeping only: the one driver call is giving back memory that could not be added. Not
// thread-safe: the owner has the lock.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "keel/base/result.h"
#include "memory/address_index.h"
#include "memory/block_pool.h"
#include "memory/pinned_memory.h"

namespace keel::memory {

class HostSegments {
 public:
  enum class Kind : std::uint8_t {
    kSmall,    // shared by small requests
    kLarge,    // made for a large request
    kDirect,   // for one request; not kept
    kReserve,  // shared by all that fit, and kept to the end
  };

  static constexpr std::uint64_t kPage = 4096;
  static std::uint64_t RoundToPages(std::uint64_t size) {
    return (size + kPage - 1) / kPage * kPage;
  }

  // Owns the memory, and returns it as one free block. On an error the memory is given back.
  Result<Block*> Add(PinnedMemory memory, Kind kind);
  // The memory of a segment that is one free block. The block is gone.
  PinnedMemory Remove(Block* whole);
  // Everything, whatever is still taken. Nothing may be asked after it.
  std::vector<PinnedMemory> RemoveAll();

  // A taken block of `size` bytes, a multiple of the quantum; null if there is none. For a large
  // one, whose size is in pages, a free block may be a third larger; the rest of it stays free.
  Block* TakeSmall(std::uint64_t size, std::uint64_t alignment) {
    return small_.Allocate(size, alignment);
  }
  Block* TakeLarge(std::uint64_t size);
  Block* TakeReserved(std::uint64_t size, std::uint64_t alignment) {
    return reserve_.bytes() == 0 ? nullptr : reserve_.Allocate(size, alignment);
  }
  // From wherever there is a free block that has room, however large.
  Block* TakeAny(std::uint64_t size, std::uint64_t alignment);
  // From the start of one free block.
  static Block* TakeFrom(Block* free, std::uint64_t size) {
    return free->pool()->Take(free, free->address, size);
  }
  // Returns the free block that it is now in.
  static Block* Give(Block* block) { return block->pool()->Free(block); }

  // The free blocks that are a whole segment and may go, in no order.
  std::vector<Block*> WholeBlocks() const;

  static void* PointerTo(const Block* block) { return reinterpret_cast<void*>(block->address); }
  // The block that was shown and begins at this address; hidden again, it is not found.
  Block* Find(const void* pointer) const {
    return index_.Find(reinterpret_cast<std::uint64_t>(pointer));
  }
  void Show(Block* block) { index_.Add(block); }
  void Hide(const Block* block) { index_.Remove(*block); }
  // The shown block of a byte; null if there is none. Walks the blocks of a segment.
  Block* FindInside(const void* pointer) const;

  std::uint64_t reserve_bytes() const { return reserve_.bytes(); }
  std::uint64_t small_bytes() const { return small_.bytes(); }
  std::uint64_t small_free_bytes() const { return small_.free_bytes(); }
  // Of the largest free block.
  std::uint64_t largest_free() const;
  // Empty, or what is wrong. For tests.
  std::string Check() const;

 private:
  BlockPool reserve_;
  BlockPool small_;
  BlockPool large_;  // whole pages only
  AddressIndex index_;
  std::map<std::uint64_t, PinnedMemory> memory_;  // by address
};

}  // namespace keel::memory
