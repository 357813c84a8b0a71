#include "base/near_miss.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/quote.h"

namespace keel {
namespace {

// Edit distance with swaps of neighbours; rows of the usual table, of which three are needed.
std::size_t Mistakes(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = a[i - 1] == b[j - 1];
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    before_last.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

}  // namespace

std::string_view NearMiss(std::string_view word, std::span<const std::string> known) {
  // Longer than anything known: also keeps the table small, whatever the text.
  constexpr std::size_t kLongest = 64;
  if (word.size() > kLongest) return "";
  const std::string wanted = Lower(word);
  std::string_view nearest;
  std::size_t fewest = wanted.size() / 3 + 1;
  for (const std::string& candidate : known) {
    const std::size_t mistakes = Mistakes(wanted, Lower(candidate));
    if (mistakes >= fewest) continue;
    fewest = mistakes;
    nearest = candidate;
  }
  return nearest;
}

}  // namespace keel
