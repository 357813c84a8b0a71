// Which free memory goes when `garbage_collection_threshold` is passed: what was not used for
// longest.
//
// By the rule that PyTorch's allocator has: what is at least as old as the average of all goes, and
// again, until enough has gone. Such a round is never cut short, or the next request would collect
// again. Age is the number of requests since the free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace keel::memory {

struct Garbage {
  std::uint64_t size = 0;
  std::uint32_t age = 0;
};

// The positions, in order, of those that go so that at least `bytes` do; of all of them, if they
// are less.
std::vector<std::size_t> ChooseGarbage(std::span<const Garbage> all, std::uint64_t bytes);

}  // namespace keel::memory
