// Workers under MPI: what a rank that serves an orchestrator does. `keel worker` is this, and a
// program may be its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "keel/base/deadline.h"
#include "keel/base/export.h"
#include "keel/base/result.h"
#include "keel/base/unique_fd.h"

namespace keel::task {

// The rank that a launcher (mpirun) has given to this process, as its environment says; nothing if
// the process was started by hand. Does not start MPI.
KEEL_EXPORT std::optional<int> MpiRank();

struct MpiWorkerOptions {
  // For an orchestrator that names none (WorkerOptions::device); empty: the default device.
  // {worker} in it is the number of the worker, {local} the number of the rank on its machine.
  std::string device;
  // How long the program of rank 0 may take until it first asks for workers. If it exits without
  // ever doing so nobody is told: without a bound the ranks would wait for ever. Zero: they do.
  std::chrono::nanoseconds start_timeout = std::chrono::minutes(10);
};

// Serves the orchestrators of rank 0, one after the other (Transport::kMpi), each with a worker
// process of its own, until the process of rank 0 exits. Initialises MPI, and finalises it. For the
// program's first thread, which makes all calls of MPI.
//
// kUnimplemented: there is no MPI. kFailedPrecondition: nobody has launched this as a rank, or as
// rank 0; MPI is initialised already; or nobody says what {local} is. kUnavailable: rank 0 is gone,
// or MPI failed; the process should then exit, with an error: MPI is not finalised, and has memory.
//
// Ends the process (exit code 1, with a line in the log) if what launched it ends while MPI starts
// or ends, if MPI has not started within start_timeout, or if MPI's end takes a minute.
KEEL_EXPORT Status ServeMpi(const MpiWorkerOptions& options);

// The least that a worker under MPI can cost, for benchmarks: so many times, one after the other, a
// word of a few hundred bytes that means nothing to a rank and back, between the threads that have
// MPI on both sides, which wait as they always do. For the program of rank 0; starts MPI if nothing
// has. Any thread; counts of several threads are added up.
//
// kUnimplemented, kFailedPrecondition: as for an orchestrator. kOutOfRange: there is no such rank.
// kDeadlineExceeded: the rest is made all the same. kUnavailable: the rank is lost.
KEEL_EXPORT Status MpiRoundTrips(int rank, std::uint64_t count, Deadline deadline);

// For what runs a program as rank 0. A program that exits without ever having had an orchestrator
// leaves the other ranks waiting for it in vain.
class KEEL_EXPORT MpiProgram {
 public:
  // Before the program is started, which inherits a descriptor, and where it is by the environment.
  static Result<MpiProgram> Create();
  // Whether the program has started MPI.
  bool started() const;
  // In its place: starts MPI, and lets the other ranks end when this process exits.
  static Status Release();

 private:
  explicit MpiProgram(UniqueFd note) : note_(std::move(note)) {}
  UniqueFd note_;
};

}  // namespace keel::task
