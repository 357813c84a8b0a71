// TickClock: the time, as cheaply as a thread can read it.
//
// A tick is one of the processor's own counter where the kernel keeps its time by that counter too:
// then it runs evenly, and alike on every processor. Elsewhere it is a nanosecond of
// CLOCK_MONOTONIC, which costs two to three times as much to read.
//
// In order across threads: what is read after something that another thread did, and saw, is later
// than what that thread had read before it.
#pragma once

#include <time.h>

#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace keel {

inline std::int64_t MonotonicNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

class TickClock {
 public:
  TickClock();

  std::int64_t Ticks() const {
#if defined(__x86_64__)
    if (counter_) {
      _mm_lfence();  // or it would be read before what comes before it is done
      return static_cast<std::int64_t>(__rdtsc());
    }
#endif
    return MonotonicNs();
  }

  // From ticks to nanoseconds of CLOCK_MONOTONIC, to within a microsecond for what was read between
  // the clock's making and the scale's.
  class Scale {
   public:
    std::int64_t ToNs(std::int64_t ticks) const {
      return ns_ + static_cast<std::int64_t>(static_cast<double>(ticks - ticks_) * ns_per_tick_);
    }

   private:
    friend class TickClock;
    std::int64_t ticks_ = 0;
    std::int64_t ns_ = 0;
    double ns_per_tick_ = 1;
  };
  Scale ScaleNow() const;

 private:
  struct Moment {
    std::int64_t ticks = 0;
    std::int64_t ns = 0;
  };
  Moment Look() const;

  bool counter_ = false;
  Moment made_;
};

}  // namespace keel
