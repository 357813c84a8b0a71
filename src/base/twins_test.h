// What tests of locks share: data that shows whether two threads were inside, and stores that make
// a processor late.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/spin_pause.h"

namespace keel {

// Stores that take their time: what the thread stores next waits behind them, on its processor.
class SlowStores {
 public:
  void Store() {
    for (int i = 0; i < 4; ++i) {
      at_ = (at_ + 4099 * 64) % memory_.size();
      memory_[at_].store(1, std::memory_order_relaxed);
    }
  }

 private:
  std::size_t at_ = 0;
  std::vector<std::atomic<char>> memory_ = std::vector<std::atomic<char>>(32 << 20);
};

// Two numbers that are equal for who has the lock. Plain: a race would tear them or lose some, and
// ThreadSanitizer would see it.
class Twins {
 public:
  // Whether nobody else was inside. Takes its time, so that somebody else could be.
  bool Increase() {
    const std::uint64_t before = first_;
    bool alone = second_ == before;
    first_ = before + 1;
    Stay();
    alone = alone && first_ == before + 1 && second_ == before;
    second_ = before + 1;
    return alone;
  }
  bool Are(std::uint64_t value) const { return first_ == value && second_ == value; }

 private:
  static void Stay() {
    for (int i = 0; i < 10; ++i) SpinPause();
    std::atomic_signal_fence(std::memory_order_seq_cst);  // what is there now
  }

  std::uint64_t first_ = 0;
  std::uint64_t second_ = 0;
};

}  // namespace keel
