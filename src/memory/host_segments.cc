#include "memory/host_segments.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace keel::memory {

Result<Block*> HostSegments::Add(PinnedMemory memory, Kind kind) {
  const auto address = reinterpret_cast<std::uint64_t>(memory.data());
  const std::uint64_t size = memory.size().count();
  KEEL_TRY(index_.Cover(address, size));
  memory_[address] = std::move(memory);
  BlockPool& pool = kind == Kind::kReserve ? reserve_ : kind == Kind::kSmall ? small_ : large_;
  return pool.Add(address, size, 0, BlockPool::Meeting::kApart);
}

PinnedMemory HostSegments::Remove(Block* whole) {
  const auto found = memory_.find(whole->address);
  whole->pool()->Remove(whole, whole->address, whole->size);
  PinnedMemory memory = std::move(found->second);
  memory_.erase(found);
  return memory;
}

std::vector<PinnedMemory> HostSegments::RemoveAll() {
  std::vector<PinnedMemory> all;
  all.reserve(memory_.size());
  for (auto& [address, memory] : memory_) all.push_back(std::move(memory));
  memory_.clear();
  return all;
}

Block* HostSegments::TakeLarge(std::uint64_t size) {
  Block* const fit = large_.FindFit(size);
  return fit != nullptr && fit->size - size <= size / 3 ? TakeFrom(fit, size) : nullptr;
}

Block* HostSegments::TakeAny(std::uint64_t size, std::uint64_t alignment) {
  if (Block* const reserved = reserve_.AllocateAmongAll(size, alignment)) return reserved;
  if (Block* const small = small_.AllocateAmongAll(size, alignment)) return small;
  const std::uint64_t pages = RoundToPages(size);
  Block* const fit = large_.FindFitAmongAll(pages);
  return fit == nullptr ? nullptr : TakeFrom(fit, pages);
}

std::vector<Block*> HostSegments::WholeBlocks() const {
  std::vector<Block*> whole;
  for (const BlockPool* const pool : {&small_, &large_}) {
    for (const auto& [begin, span] : pool->spans()) {
      if (span.first() == span.last() && span.first()->free()) whole.push_back(span.first());
    }
  }
  return whole;
}

Block* HostSegments::FindInside(const void* pointer) const {
  if (Block* const block = Find(pointer); block != nullptr) return block;
  for (const BlockPool* const pool : {&reserve_, &small_, &large_}) {
    Block* const block = pool->Find(reinterpret_cast<std::uint64_t>(pointer));
    if (block != nullptr && index_.Find(block->address) == block) return block;
  }
  return nullptr;
}

std::uint64_t HostSegments::largest_free() const {
  std::uint64_t largest = 0;
  for (const BlockPool* const pool : {&reserve_, &small_, &large_}) {
    if (const Block* const block = pool->Largest()) largest = std::max(largest, block->size);
  }
  return largest;
}

std::string HostSegments::Check() const {
  std::string wrong = reserve_.Check();
  if (wrong.empty()) wrong = small_.Check();
  if (wrong.empty()) wrong = large_.Check();
  const std::size_t spans = reserve_.spans().size() + small_.spans().size() + large_.spans().size();
  if (wrong.empty() && spans != memory_.size()) wrong = "segments that are in no pool, or in two";
  return wrong;
}

}  // namespace keel::memory
