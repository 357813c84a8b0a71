// keel bench churn: random requests by several threads on several streams, and what must hold of an
// allocator whatever is asked of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "keel/base/bytes.h"
#include "keel/base/result.h"
#include "measure.h"

namespace keel::cli {

struct ChurnOptions {
  int threads = 4;
  int streams = 3;
  std::uint64_t operations = 50'000;  // requests of each thread
  std::uint64_t seed = 1;
};

struct Invariant {
  std::string_view name;
  bool holds = false;
  std::string found;  // the numbers that say so
};

struct ChurnReport {
  Bytes limit;    // of the allocator: twice what is ever live
  double ns = 0;  // per request and its free
  std::vector<Invariant> invariants;

  bool passed() const;
};

// Blocks of 512 bytes to 32 MiB, half of what the allocator may hold at most; a part is used on
// other streams, a part freed by other threads. Then all are freed, and the cache emptied. An error
// is of the device or of the allocator; that an invariant does not hold is no error.
Result<ChurnReport> RunChurn(const BenchSetting& setting, const ChurnOptions& options);

}  // namespace keel::cli
