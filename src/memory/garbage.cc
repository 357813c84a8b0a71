#include "memory/garbage.h"

#include <numeric>

namespace keel::memory {

std::vector<std::size_t> ChooseGarbage(std::span<const Garbage> all, std::uint64_t bytes) {
  std::vector<bool> goes(all.size(), false);
  std::uint64_t chosen = 0;
  std::size_t left = all.size();
  std::uint64_t ages =
      std::accumulate(all.begin(), all.end(), std::uint64_t{0},
                      [](std::uint64_t sum, const Garbage& each) { return sum + each.age; });
  while (chosen < bytes && left != 0) {
    // The average is sum / count; there is always one that reaches it.
    const std::uint64_t sum = ages;
    const std::uint64_t count = left;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (goes[i] || all[i].age * count < sum) continue;
      goes[i] = true;
      chosen += all[i].size;
      ages -= all[i].age;
      --left;
    }
  }
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (goes[i]) positions.push_back(i);
  }
  return positions;
}

}  // namespace keel::memory
