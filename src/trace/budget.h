// Budget: how much memory a reader may still use for what it makes of a file. A file from anywhere
// can say "the same list again" in two bytes; so what is made is counted, not what is read.
#pragma once

#include <cstdint>

#include "keel/base/bytes.h"

namespace keel::trace {

class Budget {
 public:
  explicit Budget(Bytes limit) : limit_(limit), left_(limit.count()) {}

  // False if it is spent; it stays so.
  bool Take(std::uint64_t bytes) {
    const bool enough = bytes <= left_;
    left_ = enough ? left_ - bytes : 0;
    return enough;
  }
  Bytes limit() const { return limit_; }

 private:
  Bytes limit_;
  std::uint64_t left_;
};

}  // namespace keel::trace
