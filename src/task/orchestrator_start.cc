// The start of an orchestrator: of its workers, and of its own threads.
#include <fmt/format.h>

#include <system_error>
#include <thread>
#include <utility>

#include "task/orchestrator_core.h"

namespace keel::task {

Result<std::shared_ptr<OrchestratorCore>> OrchestratorCore::Create(OrchestratorOptions options,
                                                                   const StartWorker& start) {
  if (options.workers.empty()) return InvalidArgument("an orchestrator needs at least one worker");
  const Deadline deadline = Deadline::After(options.start_timeout);
  auto core = MakeSharedHere<OrchestratorCore>(std::move(options));
  KEEL_ASSIGN(core->doorbell_, Doorbell::Create());
  std::vector<Result<std::unique_ptr<Worker>>> started = core->StartAll(start, deadline);
  std::vector<Slot> slots;
  for (WorkerId w = 0; w < core->worker_count(); ++w) {
    const WorkerOptions& worker = core->options_.workers[w];
    Slot& slot = slots.emplace_back();
    slot.device = worker.device.empty() ? "default" : worker.device;
    slot.name = fmt::format("worker {} ({})", w, slot.device);
    if (!started[w].ok()) return std::move(started[w]).status().Annotate(slot.name);
    slot.worker = *std::move(started[w]);
    if (std::string opened = slot.worker->device(); !opened.empty()) {
      slot.device = std::move(opened);
      slot.name = fmt::format("worker {} ({})", w, slot.device);
    }
    slot.started = Clock::now();
    slot.space = core->SpaceOf(w, slots);
  }
  {
    const BiasedMutexLock lock(core->mutex_);
    core->slots_ = std::move(slots);
  }
  try {
    core->keeper_ = std::thread([core = core.get()] { core->Keep(); });
    core->mender_ = std::thread([core = core.get()] { static_cast<void>(core->Mend()); });
  } catch (const std::system_error& error) {
    core->Stop();
    return SystemError("the threads of an orchestrator", error.code().value());
  }
  return core;
}

std::vector<Result<std::unique_ptr<Worker>>> OrchestratorCore::StartAll(const StartWorker& start,
                                                                        Deadline deadline) const {
  std::vector<Result<std::unique_ptr<Worker>>> started;
  for (WorkerId w = 0; w < worker_count(); ++w) started.emplace_back(Internal("not started"));
  const auto start_one = [&](WorkerId w) {
    WorkerStart how;
    how.index = w;
    how.options = options_.workers[w];
    how.orchestration = options_.orchestration;
    how.shared_memory = options_.shared_memory;
    how.call_grace = options_.control_timeout;
    how.program = options_.worker_program;
    how.arguments = options_.worker_arguments;
    how.doorbell = doorbell_;
    started[w] = start(how, deadline);
  };
  // One that is slow must not take the others' time.
  std::vector<std::thread> threads;
  threads.reserve(worker_count());
  for (WorkerId w = 1; w < worker_count(); ++w) {
    try {
      threads.emplace_back(start_one, w);
    } catch (const std::system_error&) {
      start_one(w);
    }
  }
  start_one(0);
  for (std::thread& thread : threads) thread.join();
  return started;
}

Space OrchestratorCore::SpaceOf(WorkerId worker, std::span<const Slot> slots) const {
  for (WorkerId other = 0; options_.transport == Transport::kThread && other < worker; ++other) {
    // What they have opened, and not what they were given: that may be the process's by another
    // name. Without one it is the process's: if the device is lost both will open another,
    // together.
    const memory::DeviceMemory* const memory = slots[worker].worker->memory();
    const bool same = memory != nullptr && memory == slots[other].worker->memory();
    const bool both = options_.workers[worker].memory == options_.workers[other].memory &&
                      slots[worker].device == slots[other].device;
    if (same || both) return slots[other].space;
  }
  return 1 + worker;
}

}  // namespace keel::task
