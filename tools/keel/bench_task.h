// keel bench task: what a task costs beside its work, by transport, measured by what the least is
// that two threads, processes or ranks of an MPI run need to call and answer each other.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bare_peer.h"
#include "keel/base/result.h"
#include "measure.h"

namespace keel::cli {

struct TaskCost {
  std::string transport;      // "thread"
  std::string what;           // "submit and wait"; stable
  std::string orchestration;  // who runs the code: "host", "device"; empty: nobody
  std::uint32_t workers = 0;
  double ns = 0;
  double bare_ns = 0;  // the bare round trip of the transport, measured beside this
  double ratio = 0;    // of the two, within a turn
};

struct TaskCase {
  std::string title;
  std::function<Result<std::vector<TaskCost>>()> run;
};

// All there are, in the order in which they are measured.
std::vector<std::string> TransportNames();

// Whether it is among those that are named. None: all that need nobody to launch the program.
bool IsChosen(std::string_view transport, const std::vector<std::string>& transports);

// One case for each transport that is chosen. `process` is the peer of the bare round trip between
// processes, which is started before the program has threads; null: they are not chosen. Ranks
// bounce a word between the threads that have MPI (mpi_worker.h).
std::vector<TaskCase> TaskCases(const BenchSetting& setting,
                                const std::vector<std::string>& transports,
                                const std::shared_ptr<BarePeer>& process);

}  // namespace keel::cli
