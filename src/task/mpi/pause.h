// Pause: what a thread that must look at MPI does while there is nothing to do. Yields for a
// moment, then sleeps, longer each time, but never so long that it would matter.
#pragma once

#include <chrono>
#include <vector>

namespace keel::task::mpi {

class Pause {
 public:
  // Also wakes when one of these is readable.
  void Add(int descriptor);
  void Remove(int descriptor);
  // Something was done: look again at once next time.
  void Reset() { idle_since_ = {}; }
  // `awaiting`: somebody waits for what comes next. Returns whether a descriptor is readable.
  bool Wait(bool awaiting);

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point idle_since_{};
  std::chrono::nanoseconds sleep_{0};
  std::vector<int> descriptors_;
};

}  // namespace keel::task::mpi
