// Near misses: which of the known words somebody probably meant.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace keel {

// The one of `known` that is nearest to `word` in single-character mistakes (one too many, one
// missing, one wrong, two swapped), or "" if none is near: at most one mistake in three letters.
// The first of several. Case does not count.
std::string_view NearMiss(std::string_view word, std::span<const std::string> known);

}  // namespace keel
