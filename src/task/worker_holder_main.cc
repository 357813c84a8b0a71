// For tests: has workers that are processes, and waits to be killed.
//
//   task_worker_holder WORKER_PROGRAM idle    one, and says which
//   task_worker_holder WORKER_PROGRAM spin    the same, with a task that takes a minute
//   task_worker_holder WORKER_PROGRAM tasks   two, of an orchestrator, with tasks without end
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>
#include <string_view>

#include "keel/task/orchestrator.h"
#include "task/images_test.h"
#include "task/lane_worker.h"

namespace keel::task {
namespace {

Deadline Long() { return Deadline::After(std::chrono::seconds(60)); }

Status Spin(Worker& worker) {
  KEEL_ASSIGN(const std::uint64_t spin, worker.Register(SpinImage(), Long()));
  KEEL_ASSIGN(const DeviceAddress flag, worker.Allocate(8_B, Long()));
  const std::uint64_t zero = 0;
  KEEL_TRY(worker.CopyTo(flag, &zero, 8_B, Long()));
  const std::array<std::uint32_t, 1> one{1};
  Arguments arguments;
  arguments.Add(Tag::kInOut, Tensor::Resident(flag, DataType::kUInt64, one))
      .AddScalar(std::uint64_t{60'000'000});
  KEEL_TRY(worker.Post(1, spin, arguments, Deadline::Never()));
  worker.Wake();
  return OkStatus();
}

Status HoldOne(const char* program, bool spin) {
  // As services do; its number is then the next descriptor's.
  close(0);
  KEEL_ASSIGN(const auto doorbell, Doorbell::Create());
  KEEL_ASSIGN(const auto worker,
              StartProcessWorker({.options = {.device = "sim:0", .memory = nullptr},
                                  .program = program,
                                  .doorbell = doorbell},
                                 Long()));
  if (spin) KEEL_TRY(Spin(*worker));
  std::printf("worker=%d\n", dynamic_cast<LaneWorker&>(*worker).peer().process());
  std::fflush(stdout);
  for (;;) pause();
}

Status KeepBusy(const char* program) {
  OrchestratorOptions options;
  options.transport = Transport::kProcess;
  options.worker_program = program;
  options.workers.assign(2, {.device = "sim:0", .memory = nullptr});
  KEEL_ASSIGN(const auto orchestrator, Orchestrator::Create(std::move(options)));
  KEEL_ASSIGN(const Callable callable, orchestrator->Register(NoopImage()));
  for (;;) {
    for (int i = 0; i < 100; ++i) KEEL_TRY(orchestrator->Submit(callable, {}).status());
    KEEL_TRY(orchestrator->WaitAll(Long()));
  }
}

}  // namespace
}  // namespace keel::task

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string_view what = argv[2];
  const keel::Status status = what == "tasks" ? keel::task::KeepBusy(argv[1])
                                              : keel::task::HoldOne(argv[1], what == "spin");
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}
