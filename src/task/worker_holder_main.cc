// For tests: has a worker process, says which, and waits to be killed.
#include <unistd.h>

#include <cstdio>

#include "task/lane_worker.h"

int main(int, char** argv) {
  using namespace keel;  // NOLINT
  // As services do; its number is then the next descriptor's.
  close(0);
  const auto doorbell = task::Doorbell::Create();
  if (!doorbell.ok()) return 1;
  const auto worker = task::StartProcessWorker({.options = {.device = "sim:0", .memory = nullptr},
                                                .program = argv[1],
                                                .doorbell = *doorbell},
                                               Deadline::After(std::chrono::seconds(60)));
  if (!worker.ok()) return 1;
  std::printf("worker=%d\n", dynamic_cast<task::LaneWorker&>(**worker).peer().process());
  std::fflush(stdout);
  for (;;) pause();
}
