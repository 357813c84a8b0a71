// BlockPool: which bytes of some address space are taken. Bookkeeping over numbers: it touches no
// memory that it hands out, so device memory, pinned memory and plain offsets are all the same to
// it, and it is tested without any device.
//
// The pool is made of spans: runs of addresses that are there (backed by memory), added and removed
// by the owner. Blocks tile every span. A free block never has a free neighbour. Each span ends in
// a border on both sides, a block of no bytes that counts as taken, so that merging needs no test
// for an end.
//
// Free blocks are found by size, without a scan: a bin for each multiple of 512 bytes up to 64 KiB
// and 64 bins for each doubling above, with a bitmap over the bins. A request takes the better of
// the first two blocks in its own bin if one fits, else one of the next bin that has any: a waste
// of at most 1/64 against exact best fit. When no later bin has any, the best of the first 32 in
// its own must do, not always the best. Allocate and Free cost the same at 65,536 holes as at 64
// (docs/essays/finding-a-hole.md). Where the alternative is to fail, FindFitAmongAll looks at the
// whole bin.
//
// Not thread-safe: the owner has the lock. A Block lives until it merges or its span goes; whoever
// holds a taken one may keep its address.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace keel::memory {

class BlockPool;

// What every address and size in a pool is a multiple of.
inline constexpr std::uint64_t kQuantum = 512;

constexpr std::uint64_t RoundToQuantum(std::uint64_t size) {
  return (size + kQuantum - 1) & ~(kQuantum - 1);
}

// A value that one thread writes while others may look at it, for what they count and show.
// Trivial, so that a union can have it.
template <class T>
struct Relaxed {
  Relaxed& operator=(T other) {
    std::atomic_ref<T>(value).store(other, std::memory_order_relaxed);
    return *this;
  }
  T get() const {
    return std::atomic_ref<T>(const_cast<T&>(value)).load(std::memory_order_relaxed);
  }
  operator T() const { return get(); }  // NOLINT: it stands for its value

  T value;
};

// One line of the cache: merging looks at the neighbours, and searching at the free blocks of a
// bin.
struct alignas(64) Block {
  enum class State : std::uint8_t { kFree, kTaken, kBorder };

  std::uint64_t address = 0;
  std::uint64_t size = 0;
  Block* before = nullptr;  // neighbours by address, of the same span
  Block* after = nullptr;
  Block* next = nullptr;  // free: in its bin; taken: the owner's own
  union {
    Block** link = nullptr;  // free: what points to it in its bin
    void* attachment;        // taken: the owner's own, null when handed out
  };
  union {
    // Free: when it was freed, in the owner's measure. Merging keeps the later one.
    Relaxed<std::uint64_t> epoch{0};
    Relaxed<std::uint64_t> requested;  // taken: the owner's own; as `epoch` was when handed out
  };
  union {
    Relaxed<std::uint32_t> tag{0};  // taken: the owner's own; as `date` was when handed out
    // Free: when it was freed, in a second measure of the owner's, which may wrap around: how long
    // ago counts. Merging keeps the later one.
    Relaxed<std::uint32_t> date;
  };
  std::uint16_t bin = 0;  // of the pool, while free
  State state = State::kFree;
  Relaxed<std::uint8_t> mark{0};  // of the owner, while taken; 0 when handed out

  std::uint64_t end() const { return address + size; }
  bool free() const { return state == State::kFree; }
  BlockPool* pool() const;  // where it is from
  // Soon to be freed: its neighbours are looked at then, and with many blocks they are far away.
  void PrefetchNeighbours() const {
    __builtin_prefetch(before, 1);
    __builtin_prefetch(after, 1);
  }
};
static_assert(sizeof(Block) == 64);

class BlockPool {
 public:
  struct Span {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    Block* front = nullptr;  // its borders
    Block* back = nullptr;

    Block* first() const { return front->after; }
    Block* last() const { return back->before; }
  };

  BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;
  ~BlockPool();

  // `owner` is any number that the owner wants to find again from a block.
  void set_owner(void* owner) { owner_ = owner; }
  void* owner() const { return owner_; }

  enum class Meeting : std::uint8_t {
    kJoin,   // spans that meet become one, and blocks may lie across
    kApart,  // the new span stays by itself: memory of two allocations is not one
  };
  // New bytes: they must not overlap what is there. Returns the free block that they are now in,
  // which is larger where they join free neighbours. `epoch` and `date` as if they had just been
  // freed. A pool adds all its spans in the same way.
  Block* Add(std::uint64_t address, std::uint64_t size, std::uint64_t epoch = 0,
             Meeting meeting = Meeting::kJoin, std::uint32_t date = 0);
  // The bytes are gone: they must lie within the free block. The span may fall into two.
  void Remove(Block* free, std::uint64_t address, std::uint64_t size);

  // A taken block of exactly `size` bytes at a multiple of `alignment` (a power of two), or null
  // when no free block has them that the search looks at. Lowest addresses of the block that fits
  // best.
  //
  // A rest of at most `slack` bytes is not split off: the block is that much larger.
  Block* Allocate(std::uint64_t size, std::uint64_t alignment = kQuantum, std::uint64_t slack = 0);
  // The free block that Allocate(size) would cut; null when there is none.
  Block* FindFit(std::uint64_t size) const;
  // As FindFit, and null only when no free block is so large. Costs as much as a bin has blocks.
  Block* FindFitAmongAll(std::uint64_t size) const;
  // As Allocate, from the block that FindFitAmongAll says: for who would fail without it.
  Block* AllocateAmongAll(std::uint64_t size, std::uint64_t alignment = kQuantum);
  // How many blocks FindFit looks at. For tests.
  std::size_t CountLooks(std::uint64_t size) const;
  // As Allocate, at a place of the caller's choice within a free block.
  Block* Take(Block* free, std::uint64_t address, std::uint64_t size);
  // Gives a taken block back, and returns the free block that it is now in.
  Block* Free(Block* block, std::uint64_t epoch = 0, std::uint32_t date = 0);

  // By address.
  const std::map<std::uint64_t, Span>& spans() const { return spans_; }
  // Free blocks of at least `size`, the largest bins first, until `visit` says false. `visit` must
  // not change the pool.
  void ForEachFree(std::uint64_t size, const std::function<bool(Block*)>& visit) const;
  // The block that has the byte at `address`, free or taken; null: it is not there. Walks the span.
  Block* Find(std::uint64_t address) const;
  // The largest free block, or null. For messages.
  const Block* Largest() const;

  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t free_bytes() const { return free_bytes_; }
  std::size_t taken_blocks() const { return taken_; }
  // Walks them.
  std::size_t CountFree() const;

  // Empty, or what is wrong with the books: every invariant of this header. For tests; walks all.
  std::string Check() const;

 private:
  friend struct Block;
  // Blocks are made in chunks that lie at multiples of their size and say whose they are.
  static constexpr std::size_t kChunkBytes = 16 << 10;
  struct alignas(kChunkBytes) Chunk {
    BlockPool* pool = nullptr;
    std::array<Block, kChunkBytes / sizeof(Block) - 1> blocks;
  };
  static constexpr std::size_t kLinearBins = 64;
  static constexpr std::size_t kBins = 64 * 35;
  static constexpr std::size_t kWords = kBins / 64;

  static std::size_t BinOf(std::uint64_t size);
  [[gnu::always_inline]] Block* NewBlock(std::uint64_t address, std::uint64_t size,
                                         Block::State state);
  [[gnu::noinline]] void AddChunk();
  void Recycle(Block* block);
  void Insert(Block* block);  // into its bin
  void Erase(Block* block);   // out of its bin
  [[gnu::always_inline]] Block* MergeFree(Block* block);
  // A search says to `look` how many blocks it is about to look at.
  template <class Look>
  [[gnu::always_inline]] Block* FindFitInline(std::uint64_t size, const Look& look) const;
  template <class Look>
  [[gnu::noinline]] Block* SearchBin(std::size_t bin, std::uint64_t size, std::size_t most,
                                     const Look& look) const;
  void MarkTaken(Block* block);
  [[gnu::noinline]] Block* AllocateAligned(std::uint64_t size, std::uint64_t alignment);
  // The block ends at `address` from now on; returns the rest, free like it and in no bin.
  [[gnu::always_inline]] Block* SplitAt(Block* block, std::uint64_t address);
  // Cuts [address, address + size) out of a free block that is in no bin any more; what is left on
  // the sides is free again. Returns the block of the middle, still marked free and in no bin.
  Block* CutOut(Block* free, std::uint64_t address, std::uint64_t size);
  Block* BorderAt(std::uint64_t address);
  Block* End() const { return const_cast<Block*>(&end_); }
  // Of the first two blocks of a list, the one that fits better; if neither does, any.
  template <class Look>
  [[gnu::always_inline]] Block* BetterOfTwo(Block* first, std::uint64_t size,
                                            const Look& look) const;

  void* owner_ = nullptr;
  std::uint64_t summary_ = 0;  // bit w: words_[w] is not zero
  std::uint64_t free_bytes_ = 0;
  std::array<std::uint64_t, kWords> words_{};
  std::array<Block*, kBins> bins_{};
  // Behind the last block of every bin, and behind itself, with no bytes: lists are changed and
  // searched without asking where they end, which processors guess wrong.
  Block end_;
  std::uint64_t bytes_ = 0;
  std::size_t taken_ = 0;
  std::map<std::uint64_t, Span> spans_;  // by begin
  std::vector<std::unique_ptr<Chunk>> chunks_;
  Block* spare_ = nullptr;
};

inline BlockPool* Block::pool() const {
  static_assert(sizeof(BlockPool::Chunk) == BlockPool::kChunkBytes);
  const auto at = reinterpret_cast<std::uintptr_t>(this);
  return reinterpret_cast<const BlockPool::Chunk*>(at & ~(BlockPool::kChunkBytes - 1))->pool;
}

}  // namespace keel::memory
