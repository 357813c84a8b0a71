#include "memory/block_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <iterator>
#include <memory>

namespace keel::memory {
namespace {

// One of two, without a jump: a processor would guess wrong half of the time, and notice it only
// when the blocks that decide have come from memory. For conditions that are one comparison: of
// several a compiler makes jumps.
Block* Choose(bool first, Block* a, Block* b) {
  return __builtin_expect_with_probability(static_cast<long>(first), 1, 0.5) != 0 ? a : b;
}

// Of the request's own bin, when no other has a block that fits.
constexpr std::size_t kMostLooks = 32;

// What a search is told when nobody counts.
struct NobodyCounts {
  void operator()(std::size_t /*looks*/) const {}
};

std::uint32_t Later(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b) > 0 ? a : b;
}

}  // namespace

BlockPool::BlockPool() {
  end_.next = &end_;
  bins_.fill(&end_);
}
BlockPool::~BlockPool() = default;

inline std::size_t BlockPool::BinOf(std::uint64_t size) {
  const std::uint64_t quanta = size / kQuantum;
  // Of the bin's width; the first two 64 are of one quantum each.
  const auto exponent = static_cast<std::size_t>(57 - std::countl_zero(quanta | kLinearBins));
  const std::size_t linear = quanta < kLinearBins ? 0 : kLinearBins;
  return linear + (exponent << 6) + ((quanta >> exponent) & 63);
}

void BlockPool::AddChunk() {
  Chunk& chunk = *chunks_.emplace_back(std::make_unique<Chunk>());
  chunk.pool = this;
  for (auto block = chunk.blocks.rbegin(); block != chunk.blocks.rend(); ++block) Recycle(&*block);
}

inline Block* BlockPool::NewBlock(std::uint64_t address, std::uint64_t size, Block::State state) {
  if (spare_ == nullptr) [[unlikely]] {
    AddChunk();
  }
  Block* const block = spare_;
  spare_ = block->after;
  block->address = address;
  block->size = size;
  block->state = state;
  return block;
}

inline void BlockPool::Recycle(Block* block) {
  block->after = spare_;
  spare_ = block;
}

inline void BlockPool::Insert(Block* block) {
  const std::size_t bin = BinOf(block->size);
  block->state = Block::State::kFree;
  block->bin = static_cast<std::uint16_t>(bin);
  block->link = &bins_[bin];
  block->next = bins_[bin];
  block->next->link = &block->next;
  bins_[bin] = block;
  words_[bin / 64] |= std::uint64_t{1} << (bin % 64);
  summary_ |= std::uint64_t{1} << (bin / 64);
}

inline void BlockPool::Erase(Block* block) {
  const std::size_t bin = block->bin;
  block->next->link = block->link;
  *block->link = block->next;
  std::uint64_t& word = words_[bin / 64];
  word &= ~(std::uint64_t{bins_[bin] == &end_} << (bin % 64));
  summary_ &= ~(std::uint64_t{word == 0} << (bin / 64));
}

// How much larger than the request a block is; more than anything that is free if it does not fit.
inline std::uint64_t ExcessOf(const Block& block, std::uint64_t size) { return block.size - size; }

template <class Look>
inline Block* BlockPool::BetterOfTwo(Block* first, std::uint64_t size, const Look& look) const {
  look(2);
  Block* const second = first->next;
  const std::uint64_t excess = ExcessOf(*first, size);
  const std::uint64_t other = ExcessOf(*second, size);
  // Sizes are far enough apart for the address to decide only among equals.
  const std::uint64_t lower = second->address < first->address ? 1 : 0;
  return Choose(other < excess + lower, second, first);
}

// Nothing larger: then what is in the request's own bin is worth a closer look.
template <class Look>
Block* BlockPool::SearchBin(std::size_t bin, std::uint64_t size, std::size_t most,
                            const Look& look) const {
  Block* best = nullptr;
  for (Block* block = bins_[bin]; block != End() && most != 0; block = block->next, --most) {
    look(1);
    if (block->size < size) continue;
    if (best == nullptr || block->size < best->size ||
        (block->size == best->size && block->address < best->address)) {
      best = block;
    }
  }
  return best;
}

template <class Look>
inline Block* BlockPool::FindFitInline(std::uint64_t size, const Look& look) const {
  const std::size_t bin = BinOf(size);
  // Every block of a later bin fits.
  std::size_t word = bin / 64;
  std::uint64_t bits = words_[word] & (~std::uint64_t{1} << (bin % 64));
  if (bits == 0) {
    const std::uint64_t words = summary_ & ~((std::uint64_t{2} << word) - 1);
    if (words == 0) [[unlikely]] {
      return SearchBin(bin, size, kMostLooks, look);
    }
    word = static_cast<std::size_t>(std::countr_zero(words));
    bits = words_[word];
  }
  const std::size_t later = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
  Block* const own = BetterOfTwo(bins_[bin], size, look);
  Block* const other = BetterOfTwo(bins_[later], size, look);
  return Choose(own->size >= size, own, other);
}

Block* BlockPool::FindFit(std::uint64_t size) const { return FindFitInline(size, NobodyCounts()); }

Block* BlockPool::FindFitAmongAll(std::uint64_t size) const {
  if (Block* const fit = FindFit(size); fit != nullptr) return fit;
  return SearchBin(BinOf(size), size, ~std::size_t{0}, NobodyCounts());
}

Block* BlockPool::AllocateAmongAll(std::uint64_t size, std::uint64_t alignment) {
  Block* const fit = FindFitAmongAll(alignment > kQuantum ? size + alignment - kQuantum : size);
  if (fit == nullptr) return nullptr;
  return Take(fit, (fit->address + alignment - 1) & ~(alignment - 1), size);
}

std::size_t BlockPool::CountLooks(std::uint64_t size) const {
  std::size_t count = 0;
  static_cast<void>(FindFitInline(size, [&](std::size_t looks) { count += looks; }));
  return count;
}

inline Block* BlockPool::MergeFree(Block* block) {
  if (Block* const before = block->before; before->free()) {
    Erase(before);
    before->size += block->size;
    before->epoch = std::max(before->epoch.get(), block->epoch.get());
    before->date = Later(before->date, block->date);
    before->after = block->after;
    block->after->before = before;
    Recycle(block);
    block = before;
  }
  if (Block* const after = block->after; after->free()) {
    Erase(after);
    block->size += after->size;
    block->epoch = std::max(block->epoch.get(), after->epoch.get());
    block->date = Later(block->date, after->date);
    block->after = after->after;
    after->after->before = block;
    Recycle(after);
  }
  Insert(block);
  return block;
}

Block* BlockPool::BorderAt(std::uint64_t address) {
  return NewBlock(address, 0, Block::State::kBorder);
}

Block* BlockPool::Add(std::uint64_t address, std::uint64_t size, std::uint64_t epoch,
                      Meeting meeting, std::uint32_t date) {
  assert(size != 0 && address % kQuantum == 0 && size % kQuantum == 0);
  Block* const block = NewBlock(address, size, Block::State::kTaken);
  block->epoch = epoch;
  block->date = date;
  bytes_ += size;
  free_bytes_ += size;
  const auto after = spans_.lower_bound(address);
  assert(after == spans_.end() || address + size <= after->first);
  const auto before = after == spans_.begin() ? spans_.end() : std::prev(after);
  assert(before == spans_.end() || before->second.end <= address);
  const bool joins = meeting == Meeting::kJoin;
  const bool meets_after = joins && after != spans_.end() && after->first == address + size;
  Span* span = nullptr;
  if (joins && before != spans_.end() && before->second.end == address) {
    span = &before->second;
    block->before = span->back->before;
    block->before->after = block;
    block->after = span->back;
    span->back->before = block;
    span->back->address = span->end = address + size;
  } else {
    span = &spans_[address];
    *span = {address, address + size, BorderAt(address), BorderAt(address + size)};
    span->front->after = span->back->before = block;
    block->before = span->front;
    block->after = span->back;
  }
  if (meets_after) {
    Span& joined = after->second;
    block->after = joined.first();
    joined.first()->before = block;
    Recycle(span->back);
    Recycle(joined.front);
    span->back = joined.back;
    span->end = joined.end;
    spans_.erase(after);
  }
  return MergeFree(block);
}

inline Block* BlockPool::SplitAt(Block* block, std::uint64_t address) {
  Block* const rest = NewBlock(address, block->end() - address, Block::State::kFree);
  rest->epoch = block->epoch;
  rest->date = block->date;
  rest->before = block;
  rest->after = block->after;
  block->after->before = rest;
  block->after = rest;
  block->size = address - block->address;
  return rest;
}

inline Block* BlockPool::CutOut(Block* free, std::uint64_t address, std::uint64_t size) {
  assert(free->address <= address && address + size <= free->end());
  Block* middle = free;
  if (free->address < address) {
    middle = SplitAt(free, address);
    Insert(free);
  }
  if (size < middle->size) Insert(SplitAt(middle, address + size));
  return middle;
}

void BlockPool::Remove(Block* free, std::uint64_t address, std::uint64_t size) {
  assert(free->free());
  Erase(free);
  Block* const gone = CutOut(free, address, size);
  const auto found = std::prev(spans_.upper_bound(address));
  Span& span = found->second;
  bytes_ -= size;
  free_bytes_ -= size;
  Block* const before = gone->before;
  Block* const after = gone->after;
  Recycle(gone);
  const bool left = span.begin < address;
  const bool right = address + size < span.end;
  if (left && right) {
    Span second{address + size, span.end, BorderAt(address + size), span.back};
    second.front->after = after;
    after->before = second.front;
    span.back = BorderAt(address);
    span.end = address;
    span.back->before = before;
    before->after = span.back;
    spans_.emplace(second.begin, second);
  } else if (left) {
    span.end = span.back->address = address;
    span.back->before = before;
    before->after = span.back;
  } else if (right) {
    Span moved = span;
    moved.begin = moved.front->address = address + size;
    moved.front->after = after;
    after->before = moved.front;
    spans_.erase(found);
    spans_.emplace(moved.begin, moved);
  } else {
    Recycle(span.front);
    Recycle(span.back);
    spans_.erase(found);
  }
}

inline void BlockPool::MarkTaken(Block* block) {
  block->state = Block::State::kTaken;
  block->mark = 0;
  block->attachment = nullptr;
  free_bytes_ -= block->size;
  ++taken_;
}

Block* BlockPool::Take(Block* free, std::uint64_t address, std::uint64_t size) {
  assert(free->free());
  Erase(free);
  Block* const block = CutOut(free, address, size);
  MarkTaken(block);
  return block;
}

Block* BlockPool::AllocateAligned(std::uint64_t size, std::uint64_t alignment) {
  Block* const fit = FindFit(size + alignment - kQuantum);
  if (fit == nullptr) return nullptr;
  return Take(fit, (fit->address + alignment - 1) & ~(alignment - 1), size);
}

Block* BlockPool::Allocate(std::uint64_t size, std::uint64_t alignment, std::uint64_t slack) {
  assert(size != 0 && size % kQuantum == 0 && std::has_single_bit(alignment));
  if (alignment > kQuantum) [[unlikely]] {
    return AllocateAligned(size, alignment);
  }
  Block* const fit = FindFitInline(size, NobodyCounts());
  if (fit == nullptr) return nullptr;
  Erase(fit);
  if (fit->size - size > slack) Insert(SplitAt(fit, fit->address + size));
  MarkTaken(fit);
  return fit;
}

Block* BlockPool::Free(Block* block, std::uint64_t epoch, std::uint32_t date) {
  assert(block->state == Block::State::kTaken);
  block->epoch = epoch;
  block->date = date;
  free_bytes_ += block->size;
  --taken_;
  return MergeFree(block);
}

std::size_t BlockPool::CountFree() const {
  std::size_t count = 0;
  ForEachFree(0, [&](const Block* /*block*/) {
    ++count;
    return true;
  });
  return count;
}

void BlockPool::ForEachFree(std::uint64_t size, const std::function<bool(Block*)>& visit) const {
  const std::size_t least = BinOf(std::max(size, kQuantum));
  for (std::size_t word = kWords; word-- > least / 64;) {
    for (std::uint64_t bits = words_[word]; bits != 0;) {
      const auto bit = static_cast<std::size_t>(63 - std::countl_zero(bits));
      bits &= ~(std::uint64_t{1} << bit);
      for (Block* block = bins_[word * 64 + bit]; block != End(); block = block->next) {
        if (block->size >= size && !visit(block)) return;
      }
    }
  }
}

Block* BlockPool::Find(std::uint64_t address) const {
  auto span = spans_.upper_bound(address);
  if (span == spans_.begin()) return nullptr;
  --span;
  if (address >= span->second.end) return nullptr;
  Block* block = span->second.first();
  while (block->end() <= address) block = block->after;
  return block;
}

const Block* BlockPool::Largest() const {
  const Block* largest = nullptr;
  if (summary_ == 0) return nullptr;
  const auto word = static_cast<std::size_t>(63 - std::countl_zero(summary_));
  const auto bit = static_cast<std::size_t>(63 - std::countl_zero(words_[word]));
  for (const Block* block = bins_[word * 64 + bit]; block != End(); block = block->next) {
    if (largest == nullptr || block->size > largest->size) largest = block;
  }
  return largest;
}

std::string BlockPool::Check() const {
  std::uint64_t bytes = 0;
  std::uint64_t free_bytes = 0;
  std::size_t taken = 0;
  std::size_t free = 0;
  std::uint64_t previous_end = 0;
  for (const auto& [begin, span] : spans_) {
    if (begin != span.begin) return fmt::format("the span at {:#x} is filed wrongly", begin);
    if (!(span.begin < span.end)) return fmt::format("the span at {:#x} is empty", begin);
    if (bytes != 0 && begin < previous_end) {
      return fmt::format("the span at {:#x} overlaps the one before it", begin);
    }
    previous_end = span.end;
    bytes += span.end - span.begin;
    if (span.front->address != span.begin || span.back->address != span.end) {
      return fmt::format("a border of the span at {:#x} is elsewhere", begin);
    }
    std::uint64_t at = span.begin;
    const Block* before = span.front;
    for (const Block* block = span.first(); block != span.back; block = block->after) {
      if (block->address != at || block->size == 0) {
        return fmt::format("blocks do not tile the span at {:#x}: {:#x} instead of {:#x}", begin,
                           block->address, at);
      }
      if (block->before != before || block->pool() != this) {
        return fmt::format("the block at {:#x} is linked wrongly", at);
      }
      if (block->free()) {
        if (before->free()) return fmt::format("two free neighbours meet at {:#x}", at);
        if (block->bin != BinOf(block->size)) return fmt::format("{:#x} is in a wrong bin", at);
        ++free;
        free_bytes += block->size;
      } else {
        ++taken;
      }
      at = block->end();
      before = block;
    }
    if (at != span.end || span.back->before != before) {
      return fmt::format("blocks do not tile the end of the span at {:#x}", begin);
    }
  }
  std::size_t filed = 0;
  for (std::size_t bin = 0; bin < kBins; ++bin) {
    const bool bit = (words_[bin / 64] >> (bin % 64) & 1) != 0;
    if (bit != (bins_[bin] != End())) return fmt::format("the bit of bin {} is wrong", bin);
    if (bit && (summary_ >> (bin / 64) & 1) == 0) return fmt::format("bin {} is hidden", bin);
    for (const Block* block = bins_[bin]; block != End(); block = block->next) {
      if (!block->free() || block->bin != bin) return fmt::format("bin {} has a stranger", bin);
      ++filed;
    }
  }
  if (filed != free || taken != taken_ || bytes != bytes_ || free_bytes != free_bytes_) {
    return fmt::format(
        "counters: {} filed of {} free, {} taken of {}, {} bytes of {}, {} free of {}", filed, free,
        taken, taken_, bytes, bytes_, free_bytes, free_bytes_);
  }
  return {};
}

}  // namespace keel::memory
