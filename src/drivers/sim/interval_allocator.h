// IntervalAllocator: bookkeeping of free intervals of [start, end): best fit, lowest address among
// equals, neighbours merged. Serves address ranges and offsets in memory files. Not thread-safe:
// its owner locks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace keel::sim {

class IntervalAllocator {
 public:
  IntervalAllocator(std::uint64_t start, std::uint64_t end);

  // `alignment` is at least 1, any power of two. Logarithmic when the best-fitting interval is
  // aligned well enough, as it is for requests of like granularity.
  std::optional<std::uint64_t> Allocate(std::uint64_t size, std::uint64_t alignment);
  // Exactly there, or not at all.
  bool AllocateAt(std::uint64_t start, std::uint64_t size);
  // Precondition: allocated, as a whole.
  void Free(std::uint64_t start, std::uint64_t size);

 private:
  using Free_ = std::map<std::uint64_t, std::uint64_t>;  // start -> size
  void Take(Free_::iterator interval, std::uint64_t start, std::uint64_t size);
  void Insert(std::uint64_t start, std::uint64_t size);
  void Erase(Free_::iterator interval);

  Free_ free_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> by_size_;  // (size, start)
};

}  // namespace keel::sim
