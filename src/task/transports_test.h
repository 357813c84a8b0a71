// Which transports a test of all of them runs with: threads and processes, and in a program that
// mpirun has started (tests/mpi) ranks alone.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "keel/task/mpi_worker.h"
#include "keel/task/orchestrator.h"

namespace keel::task {

inline std::vector<Transport> Transports() {
  if (MpiRank().has_value()) return {Transport::kMpi};
  return {Transport::kThread, Transport::kProcess};
}

inline std::string TransportName(const ::testing::TestParamInfo<Transport>& instance) {
  switch (instance.param) {
    case Transport::kThread:
      return "Thread";
    case Transport::kProcess:
      return "Process";
    case Transport::kMpi:
      return "Mpi";
  }
  return "";
}

}  // namespace keel::task
