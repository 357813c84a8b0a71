// Deadline: until when a call may wait. Every call of Keel that can wait takes one, so that no
// wait is without end unless the caller wrote Deadline::Never().
#pragma once

#include <chrono>

namespace keel {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  static Deadline Never() { return Deadline(Clock::time_point::max()); }
  // Already passed: look once, never wait.
  static Deadline Now() { return Deadline(Clock::time_point::min()); }
  static Deadline At(Clock::time_point when) { return Deadline(when); }
  // Durations too long for the clock are Never.
  template <class Rep, class Period>
  static Deadline After(std::chrono::duration<Rep, Period> wait) {
    // As double: in the caller's own type the comparison, or the sum, could overflow.
    if (std::chrono::duration<double>(wait) >= std::chrono::hours(24 * 365 * 10)) return Never();
    if (wait <= wait.zero()) return Now();
    return Deadline(Clock::now() + std::chrono::duration_cast<Clock::duration>(wait));
  }

  bool never() const { return when_ == Clock::time_point::max(); }
  bool Passed() const { return !never() && Clock::now() >= when_; }
  Clock::time_point when() const { return when_; }

 private:
  explicit Deadline(Clock::time_point when) : when_(when) {}
  Clock::time_point when_;
};

}  // namespace keel
