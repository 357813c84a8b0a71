// Memory and callables: calls that go to a worker and come back, without the lock.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "keel/base/log.h"
#include "task/orchestrator_core.h"

namespace keel::task {

Status OrchestratorCore::EnterLocked(WorkerId worker, Deadline deadline) {
  Slot& slot = slots_[worker];
  for (;;) {
    if (stopping_) return Status(StatusCode::kCancelled, "the orchestrator is being destroyed");
    if (slot.standing == Standing::kGivenUp) return GivenUpLocked(worker);
    if (slot.standing == Standing::kUp) {
      ++slot.controls;
      return OkStatus();
    }
    if (deadline.Passed()) {
      return Unavailable(fmt::format("{} is being started again, because it was lost: {}",
                                     slot.name, slot.lost.message()));
    }
    if (deadline.never()) {
      workers_changed_.Wait(mutex_);
    } else {
      static_cast<void>(workers_changed_.WaitUntil(mutex_, deadline.when()));
    }
  }
}

void OrchestratorCore::LeaveLocked(WorkerId worker, const Status& outcome) {
  Slot& slot = slots_[worker];
  --slot.controls;
  if (outcome.code() == StatusCode::kUnavailable) static_cast<void>(CheckHealthLocked(worker));
  if (slot.standing == Standing::kLost && slot.controls == 0) mender_ring_.NotifyOne();
}

// --- Memory ----------------------------------------------------------------------------------

Result<DeviceAddress> OrchestratorCore::Malloc(WorkerId worker, Bytes size, BlockId* block) {
  KEEL_TRY(CheckWorker(worker));
  if (size.empty()) return InvalidArgument("no block has a size of 0 bytes");
  const Deadline deadline = ControlDeadline();
  const BiasedMutexLock lock(mutex_);
  KEEL_TRY(EnterLocked(worker, deadline));
  Slot& slot = slots_[worker];
  Worker& target = *slot.worker;
  const std::uint64_t generation = slot.generation;
  mutex_.Unlock();
  Result<DeviceAddress> address = target.Allocate(size, deadline);
  mutex_.Lock();
  LeaveLocked(worker, address.status());
  if (!address.ok()) return std::move(address).status().Annotate(slot.name);
  if (slot.generation != generation) {
    return Unavailable(
        fmt::format("{} was lost with the memory: {}", slot.name, slot.lost.message()));
  }
  const std::shared_ptr<Block> added = slot.blocks.Add(worker, *address, size);
  if (block != nullptr) *block = added->id;
  return address;
}

Status OrchestratorCore::Free(WorkerId worker, DeviceAddress address, BlockId id) {
  KEEL_TRY(CheckWorker(worker));
  const BiasedMutexLock lock(mutex_);
  WorkerBlocks& blocks = slots_[worker].blocks;
  const std::shared_ptr<Block> block = blocks.FindAt(address);
  KEEL_TRY(CheckIs(block, id, worker, address));
  if (block == nullptr || block->registered) {
    return InvalidArgument(fmt::format(
        "{:#x} of worker {} {}", address.value(), worker,
        block == nullptr ? "is not what Malloc returned, or was freed before"
                         : "was registered and not allocated here; use UnregisterMemory"));
  }
  Status usable = block->Usable();
  if (!usable.ok()) {
    if (block->lost) blocks.Remove(*block);
    return usable;
  }
  block->freed = true;
  if (block->uses > 0) return OkStatus();
  blocks.Remove(*block);
  return FreeNowLocked(block);
}

Status OrchestratorCore::FreeNowLocked(const std::shared_ptr<Block>& block) {
  const WorkerId worker = block->worker;
  const Deadline deadline = ControlDeadline();
  Slot& slot = slots_[worker];
  if (slot.standing != Standing::kUp || block->lost) return OkStatus();  // gone with the worker
  KEEL_TRY(EnterLocked(worker, deadline));
  Worker& target = *slot.worker;
  mutex_.Unlock();
  Status status = target.Free(block->address, deadline);
  mutex_.Lock();
  LeaveLocked(worker, status);
  if (status.ok()) return status;
  if (slot.standing != Standing::kUp) return OkStatus();
  // Not begun: the mender tries again.
  if (status.code() == StatusCode::kResourceExhausted) {
    frees_.push_back(block);
    slot.free_again = Clock::now() + kFreePause;
    mender_ring_.NotifyOne();
    return OkStatus();
  }
  // The block is gone all the same (engine.h), or, after kDeadlineExceeded, will be: somebody else
  // may have the address.
  return std::move(status).Annotate(slot.name);
}

Status OrchestratorCore::BeginCopyLocked(WorkerId worker, DeviceAddress address, const void* host,
                                         Bytes size, bool writes, BlockId id, Deadline deadline,
                                         std::shared_ptr<Block>& block) {
  block = slots_[worker].blocks.Find(address, size);
  KEEL_TRY(CheckIs(block, id, worker, address));
  if (block == nullptr) {
    return InvalidArgument(
        fmt::format("the {} at {:#x} of worker {} do not lie in one block that "
                    "was allocated or registered there",
                    ToString(size), address.value(), worker));
  }
  KEEL_TRY(block->Usable());
  ++block->uses;
  std::vector<TaskKey> before;
  std::vector<Held> tasks;
  const auto add = [&](Space space, std::uint64_t begin, bool written) KEEL_REQUIRES(mutex_) {
    dependencies_.Find({space, begin, begin + size.count(), written}, before);
    for (const TaskKey key : before) tasks.emplace_back(*this, *FindLocked(key));
  };
  add(slots_[worker].space, address.value(), writes);
  add(0, reinterpret_cast<std::uintptr_t>(host), !writes);
  Status status;
  for (const Held& task : tasks) {
    if (!WaitForGoneLocked(*task, deadline)) {
      status = DeadlineExceeded(fmt::format("task {} uses the memory and is not done", task->id));
      break;
    }
  }
  if (status.ok() && block->lost) status = block->Usable();
  if (status.ok()) status = EnterLocked(worker, deadline);
  if (!status.ok()) ReleaseLocked(block);
  return status;
}

template <class CopyBytes>
Status OrchestratorCore::Copy(WorkerId worker, DeviceAddress address, const void* host, Bytes size,
                              bool writes, BlockId id, CopyBytes copy) {
  KEEL_TRY(CheckWorker(worker));
  if (size.empty()) return OkStatus();
  const Deadline deadline = ControlDeadline();
  const BiasedMutexLock lock(mutex_);
  std::shared_ptr<Block> block;
  KEEL_TRY(BeginCopyLocked(worker, address, host, size, writes, id, deadline, block));
  Worker& target = *slots_[worker].worker;
  mutex_.Unlock();
  Status status = copy(target, deadline);
  mutex_.Lock();
  LeaveLocked(worker, status);
  ReleaseLocked(block);
  return std::move(status).Annotate(slots_[worker].name);
}

Status OrchestratorCore::CopyTo(WorkerId worker, DeviceAddress destination, const void* source,
                                Bytes size, BlockId block) {
  return Copy(worker, destination, source, size, true, block,
              [&](Worker& target, Deadline deadline) {
                return target.CopyTo(destination, source, size, deadline);
              });
}

Status OrchestratorCore::CopyFrom(WorkerId worker, void* destination, DeviceAddress source,
                                  Bytes size, BlockId block) {
  return Copy(worker, source, destination, size, false, block,
              [&](Worker& target, Deadline deadline) {
                return target.CopyFrom(destination, source, size, deadline);
              });
}

Status OrchestratorCore::RegisterMemory(WorkerId worker, DeviceAddress address, Bytes size,
                                        BlockId* block) {
  KEEL_TRY(CheckWorker(worker));
  const BiasedMutexLock lock(mutex_);
  KEEL_ASSIGN(const std::shared_ptr<Block> added,
              slots_[worker].blocks.AddRegistered(worker, address, size));
  if (block != nullptr) *block = added->id;
  return OkStatus();
}

Status OrchestratorCore::UnregisterMemory(WorkerId worker, DeviceAddress address, BlockId id) {
  KEEL_TRY(CheckWorker(worker));
  const BiasedMutexLock lock(mutex_);
  const std::shared_ptr<Block> block = slots_[worker].blocks.FindAt(address);
  KEEL_TRY(CheckIs(block, id, worker, address));
  if (block == nullptr || !block->registered) {
    return InvalidArgument(
        fmt::format("{:#x} of worker {} {}", address.value(), worker,
                    block == nullptr ? "was not registered" : "was allocated here; use Free"));
  }
  if (block->uses > 0) {
    return FailedPrecondition(
        fmt::format("{} tasks and copies still use the {} at {:#x} of worker "
                    "{}; wait for them first",
                    block->uses, ToString(block->size), address.value(), worker));
  }
  slots_[worker].blocks.Remove(*block);
  return OkStatus();
}

// --- Callables ---------------------------------------------------------------------------------

Result<Callable> OrchestratorCore::Register(const HostCode& code) {
  KEEL_TRY(Here());
  if (code.function != nullptr && options_.transport != Transport::kThread) {
    return Unimplemented(
        "a function of this process runs in workers that are threads; for other transports "
        "register an image with orchestration code, or, for processes, a function of the workers' "
        "program");
  }
  if (code.reference != nullptr && options_.transport != Transport::kProcess) {
    return Unimplemented(
        options_.transport == Transport::kThread
            ? "workers that are threads have no program of their own: register the function itself"
            : "ranks run no program but keel-worker, which has no functions: register an image "
              "with orchestration code");
  }
  Callable callable;
  {
    const BiasedMutexLock lock(mutex_);
    callable.id = ++last_callable_;
    RegisteredCallable entry{callable.id, code, {}, {}, 0, false};
    entry.numbers.resize(slots_.size());
    entry.taken.resize(slots_.size());
    callables_.emplace(callable.id, std::move(entry));
  }
  for (WorkerId w = 0; w < worker_count(); ++w) {
    Status status = RegisterOn(w, callable.id, code);
    if (status.ok()) continue;
    const BiasedMutexLock lock(mutex_);
    const Status undone = UnregisterNowLocked(ForgetLocked(callable.id));
    if (!undone.ok()) Log(LogLevel::kWarn, undone.ToString());
    return std::move(status).Annotate(slots_[w].name);
  }
  return callable;
}

Result<std::uint64_t> OrchestratorCore::RegisterWith(Worker& worker, const HostCode& code,
                                                     Deadline deadline) {
  if (code.function != nullptr) return worker.RegisterFunction(code, deadline);
  if (code.reference != nullptr) return worker.RegisterReference(code, deadline);
  return worker.Register(code.kernels, deadline);
}

Status OrchestratorCore::RegisterOn(WorkerId worker, std::uint64_t callable, const HostCode& code) {
  const Deadline deadline = ControlDeadline();
  const BiasedMutexLock lock(mutex_);
  Slot& slot = slots_[worker];
  for (int losses = 0;;) {
    Status entered = EnterLocked(worker, deadline);
    if (!entered.ok()) {
      if (stopping_) return entered;
      // The others can still run it.
      for (const Slot& other : slots_) {
        if (slot.standing == Standing::kGivenUp && other.standing != Standing::kGivenUp) {
          return OkStatus();
        }
      }
      return entered;
    }
    const std::uint64_t generation = slot.generation;
    Worker& target = *slot.worker;
    mutex_.Unlock();
    const Result<std::uint64_t> number = RegisterWith(target, code, deadline);
    mutex_.Lock();
    LeaveLocked(worker, number.status());
    if (slot.generation != generation) {
      // It may be the callable that ends it: once more, and no worker is given up for it.
      if (++losses < kMaxRegisterLosses && !deadline.Passed()) continue;
      return Unavailable(fmt::format("it was lost {} times while it took the callable: {}", losses,
                                     slot.lost.message()));
    }
    const auto at = callables_.find(callable);
    // Close() took the table meanwhile.
    if (at == callables_.end()) {
      return Status(StatusCode::kCancelled, "the orchestrator is being destroyed");
    }
    if (number.ok()) {
      at->second.numbers[worker] = *number;
      at->second.taken[worker] = true;
    }
    return number.status();
  }
}

OrchestratorCore::DeferredUnregister OrchestratorCore::ForgetLocked(std::uint64_t callable) {
  const auto at = callables_.find(callable);
  DeferredUnregister deferred;
  if (at == callables_.end()) {
    deferred.numbers.resize(slots_.size());
  } else {
    deferred.function = std::move(at->second.code.function);
    deferred.numbers = std::move(at->second.numbers);
    if (recent_callable_ == &at->second) recent_callable_ = nullptr;
    callables_.erase(at);
  }
  for (const Slot& slot : slots_) deferred.generations.push_back(slot.generation);
  return deferred;
}

Status OrchestratorCore::UnregisterNowLocked(DeferredUnregister callable) {
  Status first;
  bool busy = false;
  for (WorkerId w = 0; w < slots_.size(); ++w) {
    Slot& slot = slots_[w];
    // What was on a worker that was lost is gone.
    if (!callable.numbers[w].has_value() || slot.generation != callable.generations[w]) continue;
    const std::uint64_t number = *std::exchange(callable.numbers[w], std::nullopt);
    const Deadline deadline = ControlDeadline();
    Status status = EnterLocked(w, deadline);
    if (status.ok()) {
      Worker& target = *slot.worker;
      mutex_.Unlock();
      status = target.Unregister(number, deadline);
      mutex_.Lock();
      LeaveLocked(w, status);
    }
    if (slot.generation != callable.generations[w]) continue;
    if (status.code() == StatusCode::kResourceExhausted) {
      callable.numbers[w] = number;
      busy = true;
    } else if (!status.ok() && first.ok()) {
      first = std::move(status).Annotate(slot.name);
    }
  }
  if (callable.function != nullptr) {
    // Its end is the program's, and may do anything.
    mutex_.Unlock();
    callable.function.reset();
    mutex_.Lock();
  }
  if (busy && !stopping_) {
    callable.again = Clock::now() + kFreePause;
    unregisters_.push_back(std::move(callable));
    mender_ring_.NotifyOne();
  }
  return first;
}

Status OrchestratorCore::Unregister(Callable callable) {
  KEEL_TRY(Here());
  const BiasedMutexLock lock(mutex_);
  const auto at = callables_.find(callable.id);
  if (at == callables_.end() || at->second.unregistered) {
    return NotFound(fmt::format("callable {} is not registered, or no longer", callable.id));
  }
  at->second.unregistered = true;
  if (recent_callable_ == &at->second) recent_callable_ = nullptr;
  if (at->second.uses > 0) return OkStatus();
  return UnregisterNowLocked(ForgetLocked(callable.id));
}

// --- Report --------------------------------------------------------------------------------

std::vector<WorkerReport> OrchestratorCore::Report() {
  std::vector<WorkerReport> reports;
  if (!home_.here()) return reports;
  const BiasedMutexLock lock(mutex_);
  for (WorkerId w = 0; w < slots_.size(); ++w) reports.push_back(ReportLocked(w));
  return reports;
}

Result<WorkerReport> OrchestratorCore::Report(WorkerId worker) {
  KEEL_TRY(CheckWorker(worker));
  const BiasedMutexLock lock(mutex_);
  return ReportLocked(worker);
}

WorkerReport OrchestratorCore::ReportLocked(WorkerId worker) {
  Slot& slot = slots_[worker];
  if (!CheckHealthLocked(worker) && EnterLocked(worker, Deadline::Now()).ok()) {
    Worker& target = *slot.worker;
    const std::uint64_t generation = slot.generation;
    mutex_.Unlock();
    // One that is busy says nothing new.
    const Result<EngineStats> stats = target.Stats(Deadline::After(
        std::min<std::chrono::nanoseconds>(options_.control_timeout, kReportPatience)));
    mutex_.Lock();
    LeaveLocked(worker, stats.status());
    if (stats.ok() && slot.generation == generation) slot.stats = *stats;
  }
  WorkerReport report;
  report.worker = worker;
  report.device = slot.device;
  report.up = slot.standing == Standing::kUp;
  report.lost = slot.lost;
  report.restarts = slot.restarts;
  report.tasks = slot.tasks;
  report.bytes_to_device = slot.earlier.bytes_to_device + slot.stats.bytes_to_device;
  report.bytes_from_device = slot.earlier.bytes_from_device + slot.stats.bytes_from_device;
  report.uploads = slot.earlier.uploads + slot.stats.uploads;
  report.callables = slot.stats.callables;
  return report;
}

}  // namespace keel::task
