// Bridge: the orchestrators of this process among the ranks of an MPI run. Rank 0 is this process;
// every other one is a `keel worker` (rank.h), and serves one session (session.h) at a time.
//
// One in a process, from the first worker that asks for it until the process exits; then sessions
// end, what is under way arrives, the ranks are told to end, and MPI is finalised. A thread of its
// own makes all calls of MPI, looks after the lanes of the sessions, and sees which ranks are
// there.
//
// A rank that is lost (its process has ended, or was silent for too long) ends the run: its session
// ends with the reason, which is logged, and all ranks are ended kGrace later, or when the process
// exits, if mpirun has not done so before.
//
// Any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "keel/base/deadline.h"
#include "keel/base/result.h"
#include "task/mpi/session.h"
#include "task/worker.h"

namespace keel::task::mpi {

class Bridge {
 public:
  // What a program has left to say what went wrong.
  static constexpr std::chrono::seconds kGrace{3};

  // Starts MPI the first time, which waits until all ranks have. kUnimplemented: there is no MPI.
  // kFailedPrecondition: nobody has launched this as rank 0, or the program has initialised MPI.
  static Result<Bridge*> Get(Deadline deadline);

  int ranks() const;
  // "rank 2 on node1". Waits for it to say so.
  Result<std::string> NameOf(int rank, Deadline deadline);
  // A worker on a rank. If the one before it was killed, waits until it is over. kOutOfRange: no
  // such rank. kFailedPrecondition: it has another worker.
  Result<std::shared_ptr<Session>> Start(int rank, const WorkerStart& start, Deadline deadline);
  // So many times, one after the other, a word that means nothing to a rank and back.
  Status RoundTrips(int rank, std::uint64_t count, Deadline deadline);
  // Does not wait: see Session.
  void Kill(const std::shared_ptr<Session>& session);
  ~Bridge() = delete;  // never: the process ends with it

 private:
  class Impl;
  explicit Bridge(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace keel::task::mpi
