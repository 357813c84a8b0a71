// The mender: starts lost workers again, and gives back what was in use when it was asked for.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/ranges.h"
#include "keel/base/log.h"
#include "task/orchestrator_core.h"

namespace keel::task {

std::shared_ptr<OrchestratorCore> OrchestratorCore::Mend() {
  const BiasedMutexLock lock(mutex_);
  while (!stopping_) {
    // First what tasks wait for.
    Time next = Time::max();
    const Time now = Clock::now();
    WorkerId lost = worker_count();
    for (WorkerId w = 0; w < slots_.size(); ++w) {
      const Slot& slot = slots_[w];
      if (slot.standing != Standing::kLost || slot.controls > 0) continue;
      if (slot.posted_count() > 0) {
        next = std::min(next, now + kTick);
      } else if (slot.start_at > now) {
        next = std::min(next, slot.start_at);
      } else {
        lost = w;
      }
    }
    // Of a worker that was busy later.
    auto due = frees_.begin();
    for (; due != frees_.end(); ++due) {
      const Time again = slots_[(*due)->worker].free_again;
      if (again <= now) break;
      next = std::min(next, again);
    }
    auto unregister = unregisters_.begin();
    for (; unregister != unregisters_.end() && unregister->again > now; ++unregister) {
      next = std::min(next, unregister->again);
    }
    if (lost < worker_count()) {
      RestartLocked(lost);
    } else if (due != frees_.end()) {
      const std::shared_ptr<Block> block = std::move(*due);
      frees_.erase(due);
      const Status status = FreeNowLocked(block);
      if (!status.ok()) Log(LogLevel::kError, status.ToString());
    } else if (unregister != unregisters_.end()) {
      DeferredUnregister callable = std::move(*unregister);
      unregisters_.erase(unregister);
      const Status status = UnregisterNowLocked(std::move(callable));
      if (!status.ok()) Log(LogLevel::kError, status.ToString());
    } else if (next == Time::max()) {
      mender_ring_.Wait(mutex_);
    } else {
      static_cast<void>(mender_ring_.WaitUntil(mutex_, next));
    }
  }
  mended_ = true;
  mender_ended_.NotifyAll();
  return std::move(orphan_);
}

void OrchestratorCore::RestartLocked(WorkerId worker) {
  const ScopedRange range("restart a worker");
  Slot& slot = slots_[worker];
  slot.standing = Standing::kStarting;
  std::vector<std::pair<std::uint64_t, HostCode>> callables;
  callables.reserve(callables_.size());
  for (const auto& [id, callable] : callables_) {
    // What it has not taken yet may be what ended it: for Register, which is at it.
    if (callable.taken[worker]) callables.emplace_back(id, callable.code);
  }
  Worker& target = *slot.worker;
  mutex_.Unlock();
  auto started = StartAgain(target, callables);
  callables.clear();  // perhaps the last that has a function
  mutex_.Lock();
  if (stopping_) {
    target.Stop(Deadline::Now());
    slot.standing = Standing::kGivenUp;
    return;
  }
  if (!started.ok()) {
    slot.lost = std::move(started).status().Annotate("it could not be started again");
    slot.standing = Standing::kLost;
    slot.start_at = Clock::now() + kRestartPause;
    if (++slot.failed_starts >= kMaxStarts) GiveUpLocked(worker);
    return;
  }
  ++slot.restarts;
  slot.used = false;
  slot.last_answer = false;
  slot.started = Clock::now();
  slot.standing = Standing::kUp;
  for (const auto& [id, number] : *started) {
    const auto at = callables_.find(id);
    if (at != callables_.end()) {
      at->second.numbers[worker] = number;
      continue;
    }
    // Unregistered meanwhile.
    DeferredUnregister gone;
    gone.numbers.resize(slots_.size());
    gone.numbers[worker] = number;
    for (const Slot& other : slots_) gone.generations.push_back(other.generation);
    unregisters_.push_back(std::move(gone));
  }
  scheduler_.SetUp(worker);
  workers_changed_.NotifyAll();
  DispatchLocked(Clock::now());
}

Result<std::vector<std::pair<std::uint64_t, std::uint64_t>>> OrchestratorCore::StartAgain(
    Worker& worker, const std::vector<std::pair<std::uint64_t, HostCode>>& callables) {
  // It may be up already: the attempt before failed at a callable.
  if (!worker.Health().ok()) KEEL_TRY(worker.Restart(Deadline::After(options_.start_timeout)));
  std::vector<std::pair<std::uint64_t, std::uint64_t>> numbers;
  for (const auto& [id, code] : callables) {
    {
      const BiasedMutexLock lock(mutex_);
      if (stopping_) return Status(StatusCode::kCancelled, "the orchestrator is being destroyed");
    }
    Result<std::uint64_t> number = RegisterWith(worker, code, ControlDeadline());
    if (!number.ok()) {
      // The next attempt begins with the first again.
      for (const auto& [done, registered] : numbers) {
        const Status undone = worker.Unregister(registered, ControlDeadline());
        if (!undone.ok()) Log(LogLevel::kWarn, undone.ToString());
      }
      return std::move(number).status();
    }
    numbers.emplace_back(id, *number);
  }
  return numbers;
}

}  // namespace keel::task
