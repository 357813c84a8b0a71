// Which transports a test of all of them runs with: threads and processes, or what
// KEEL_TEST_TRANSPORT says, which tests/mpi does. What a launcher leaves in the environment says
// nothing: a shell within a job of a batch system has it, too.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "keel/task/orchestrator.h"

namespace keel::task {

inline std::vector<Transport> Transports() {
  const char* const chosen = std::getenv("KEEL_TEST_TRANSPORT");
  if (chosen != nullptr && std::string_view(chosen) == "mpi") return {Transport::kMpi};
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
