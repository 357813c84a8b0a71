// Telling a forked child from its parent. A child has none of the parent's threads, its locks may
// be held for ever, and a vendor's library does not work in it: whoever holds such things compares
// generations and steps aside.
#pragma once

#include <cstdint>

namespace keel {

// How many forks lie between this process and the one that first asked. One relaxed load.
std::uint64_t ForkGeneration();

}  // namespace keel
