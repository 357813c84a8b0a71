// For tests: has workers that are processes, and waits to be killed.
//
//   task_worker_holder WORKER_PROGRAM               one, and says which
//   task_worker_holder WORKER_PROGRAM ORCHESTRATION two, of an orchestrator, with tasks of that
//   code
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "keel/task/orchestrator.h"
#include "task/lane_worker.h"

namespace keel::task {
namespace {

Status HoldOne(const char* program) {
  // As services do; its number is then the next descriptor's.
  close(0);
  KEEL_ASSIGN(const auto doorbell, Doorbell::Create());
  KEEL_ASSIGN(const auto worker,
              StartProcessWorker({.options = {.device = "sim:0", .memory = nullptr},
                                  .program = program,
                                  .doorbell = doorbell},
                                 Deadline::After(std::chrono::seconds(60))));
  std::printf("worker=%d\n", dynamic_cast<LaneWorker&>(*worker).peer().process());
  std::fflush(stdout);
  for (;;) pause();
}

Status KeepBusy(const char* program, const char* orchestration) {
  std::ifstream file(orchestration, std::ios::binary);
  const std::string code((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto* const first = reinterpret_cast<const std::byte*>(code.data());
  KEEL_ASSIGN(
      const Image image,
      ImageBuilder().SetOrchestration(std::vector<std::byte>(first, first + code.size())).Build());
  OrchestratorOptions options;
  options.transport = Transport::kProcess;
  options.worker_program = program;
  options.workers.assign(2, {.device = "sim:0", .memory = nullptr});
  KEEL_ASSIGN(const auto orchestrator, Orchestrator::Create(std::move(options)));
  KEEL_ASSIGN(const Callable callable, orchestrator->Register(image));
  for (;;) {
    for (int i = 0; i < 100; ++i) KEEL_TRY(orchestrator->Submit(callable, {}).status());
    KEEL_TRY(orchestrator->WaitAll(Deadline::After(std::chrono::seconds(60))));
  }
}

}  // namespace
}  // namespace keel::task

int main(int argc, char** argv) {
  const keel::Status status =
      argc > 2 ? keel::task::KeepBusy(argv[1], argv[2]) : keel::task::HoldOne(argv[1]);
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}
