// For tests: what rank 0 runs if it has an MPI of its own. Ends with 1 and the error of Keel.
#include <mpi.h>

#include <cstdio>

#include "keel/task/orchestrator.h"

int main(int argc, char** argv) {
  using namespace keel;  // NOLINT
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  task::OrchestratorOptions options;
  options.transport = task::Transport::kMpi;
  options.workers.resize(1);
  const auto orchestrator = task::Orchestrator::Create(options);
  std::fprintf(stderr, "error: %s\n", orchestrator.status().ToString().c_str());
  return orchestrator.ok() ? 0 : 1;
}
