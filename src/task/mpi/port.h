// Port: this process among the ranks of an MPI run. Messages as bytes between ranks; nothing waits.
//
// One in a process, and for the one thread that opened it. Errors of MPI are kUnavailable with its
// own words; after one the run cannot go on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "keel/base/result.h"
#include "task/mpi/table.h"

namespace keel::task::mpi {

// The rank that a launcher (mpirun, srun) has given to this process, by its environment; nothing if
// it was started by hand.
std::optional<int> LaunchedRank();

// Loads libkeel-mpi.so, from beside the library or ../lib. kUnimplemented: it is not there, with
// where it was looked for and what to install. Any thread.
Result<const KeelMpiTable*> LoadTable();

// Says so to whoever runs this program as rank 0, if somebody does: program.cc. Any thread.
void NoteStart();

class Port {
 public:
  // Waits until all ranks have come here. kFailedPrecondition: the program has initialised MPI
  // itself.
  static Result<std::unique_ptr<Port>> Open(const KeelMpiTable& table);
  // Waits until all ranks do.
  void Close() { table_.finish(); }
  // Ends all ranks; does not return.
  [[noreturn]] void Abort(int code);

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  // Begin; Done says when they have ended. Bytes stay where they are, and unchanged, until then.
  Result<KeelMpiHandle> Send(std::span<const std::byte> bytes, int rank, int tag);
  Result<KeelMpiHandle> Receive(std::span<std::byte> bytes, int rank, int tag);
  // What a receive got, when it has ended.
  Result<std::optional<std::size_t>> Done(KeelMpiHandle& request);

  // Whether a message of anybody is there.
  Result<bool> Peek();
  struct Matched {
    std::size_t size = 0;
    KeelMpiHandle handle{};
  };
  // Whoever takes one must receive it.
  Result<std::optional<Matched>> Match(int rank, int tag);
  Result<KeelMpiHandle> Receive(std::span<std::byte> bytes, Matched& message);

 private:
  Port(const KeelMpiTable& table, int rank, int ranks)
      : table_(table), rank_(rank), ranks_(ranks) {}

  const KeelMpiTable& table_;
  const int rank_;
  const int ranks_;
};

}  // namespace keel::task::mpi
