// Watchdog: ends this process if a call that has no deadline of its own does not return: the start
// and the end of MPI, which wait for all other ranks. For as long as it exists.
//
// A thread of its own. If there can be none, nothing is watched, and the log says so.
#pragma once

#include <string>
#include <thread>

#include "keel/base/deadline.h"
#include "keel/base/unique_fd.h"

namespace keel::task::mpi {

class Watchdog {
 public:
  // `what` did not end, for the log. `process`: a descriptor that is readable when a process that
  // this one cannot do without has ended; borrowed; -1: none.
  Watchdog(std::string what, Deadline deadline, int process = -1);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void Main() const;

  const std::string what_;
  const Deadline deadline_;
  const int process_;
  const UniqueFd stop_;
  std::thread thread_;
};

}  // namespace keel::task::mpi
