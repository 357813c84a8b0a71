// BarePeer: a thread, or a process, that answers each change of one word in shared memory with a
// change of another, and does nothing else. Both sides write, wait and wake as the lanes of a
// worker do (lane.h, futex_wait.h).
//
// One thread at a time makes round trips.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <thread>

#include "keel/base/result.h"

namespace keel::cli {

class BarePeer {
 public:
  static Result<std::shared_ptr<BarePeer>> StartThread();
  // Forks. Precondition: the program has one thread, so that nothing in it is half done.
  static Result<std::shared_ptr<BarePeer>> StartProcess();
  // Ends it.
  ~BarePeer();
  BarePeer(const BarePeer&) = delete;
  BarePeer& operator=(const BarePeer&) = delete;

  // kUnavailable: it does not answer.
  Status RoundTrips(std::uint64_t count);

 private:
  struct Words;
  explicit BarePeer(Words* words) : words_(words) {}
  static Result<std::shared_ptr<BarePeer>> Create();
  static void Serve(Words& words);

  Words* const words_;
  std::thread thread_;
  pid_t process_ = 0;
  std::uint32_t calls_ = 0;
};

}  // namespace keel::cli
