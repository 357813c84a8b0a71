// Who moves tasks on, and what happens when a worker is lost.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "keel/base/log.h"
#include "task/orchestrator_core.h"

namespace keel::task {

bool OrchestratorCore::LookNowAndThenLocked() {
  if (++submits_ < kSubmitsPerLook) return false;
  submits_ = 0;
  now_ = Clock::now();
  if (leader_ != nullptr) return false;
  looks_.store(looks_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return AnsweredLocked();
}

void OrchestratorCore::EnterLocked(Task& task) {
  bool pump = LookNowAndThenLocked();
  tasks_[TaskKeys::SlotOf(task.key)] = &task;
  WorkerId at_once = Scheduler::kNobody;
  if (task.waits_for == 0 && !task.group) {
    at_once = scheduler_.StartAtOnce(task.plain ? std::nullopt : task.first.worker, now_);
  }
  if (at_once != Scheduler::kNobody) {
    // The worker has it first, and begins while the rest is written down: nobody looks for the
    // answer before the lock is given back.
    const bool sent = TrySendLocked(task, at_once);
    StartLocked(task, at_once);
    if (sent) {
      slots_[at_once].worker->Wake();
    } else {
      if (Status status = SendLocked(task, 0, at_once); !status.ok()) {
        NotSentLocked(task, at_once, std::move(status), now_);
      }
      if (slots_[at_once].standing == Standing::kUp) slots_[at_once].worker->Wake();
    }
  } else if (task.waits_for == 0) {
    ReadyLocked(task);
    // What has ended makes room for it.
    pump = pump || (leader_ == nullptr && AnsweredLocked());
  }
  if (pump) {
    PumpLocked();
  } else if (scheduler_.ready() > 0) {
    DispatchLocked(now_);
  }
  if (leader_ == nullptr) NeedKeeperLocked();
}

bool OrchestratorCore::AnsweredLocked() const {
  if (doorbell_->value() != pumped_) return true;
  return std::ranges::any_of(slots_, [](const Slot& slot) {
    return slot.posted_count() > 0 && slot.worker->NextAnswer().there();
  });
}

void OrchestratorCore::PumpLocked() {
  pumped_ = doorbell_->value();
  for (WorkerId w = 0; w < slots_.size(); ++w) {
    if (slots_[w].posted_count() > 0) CollectLocked(w, now_);
  }
  scheduler_.Retry();
  if (scheduler_.ready() > 0) DispatchLocked(now_);
}

void OrchestratorCore::DoneLocked(WorkerId worker, std::size_t count, Time now) {
  Slot& slot = slots_[worker];
  slot.last_answer = false;
  slot.used = true;
  slot.tasks += count;
  scheduler_.Ended(worker, now, count);
  for (; count > 0; --count) {
    const Posted& first = slot.posted.front();
    // Sums of timeouts may be as good as for ever, so that even these are not all without one.
    slot.posted_time -= first.timeout;
    if (first.timeout.count() == 0) --slot.endless;
    Task* const task = FindLocked(first.task);
    slot.posted.Drop(1);
    if (task == nullptr) continue;
    if (task->running != 1 || !task->outcome.ok()) {
      MemberEndedLocked(*task, OkStatus());
    } else {
      EndWellLocked(*task);
    }
  }
}

void OrchestratorCore::CollectLocked(WorkerId worker, Time now) {
  Slot& slot = slots_[worker];
  if (const std::size_t done = slot.worker->TakeDone(); done != 0) {
    DoneLocked(worker, done, now);
    return;
  }
  // What follows may collect again.
  std::vector<TaskResult> results = std::move(results_);
  results.clear();
  slot.worker->Collect(results);

  Status health;
  const auto suspicious = [](const TaskResult& result) {
    return result.status.code() == StatusCode::kUnavailable ||
           result.status.code() == StatusCode::kDeadlineExceeded;
  };
  // A worker runs one task at a time, in the order of posting: of those that it did not answer only
  // the first was begun. (A process that began the next before it was killed took with it whatever
  // that did.)
  const auto unanswered = [&](const TaskResult& result) {
    return !health.ok() && suspicious(result);
  };
  const TaskResult* begun = nullptr;
  if (!results.empty() &&
      std::ranges::all_of(results, [](const auto& result) { return result.status.ok(); })) {
    if (!results.back().late) slot.last_answer = false;
  } else {
    if (results.empty() || std::ranges::any_of(results, suspicious)) {
      health = slot.worker->Health();
    }
    // After an answer that ends the worker not even that.
    for (const TaskResult& result : results) {
      if (unanswered(result)) {
        if (result.sent && !slot.last_answer && begun == nullptr) begun = &result;
      } else if (!result.late) {
        slot.last_answer = result.status.code() == StatusCode::kDeviceLost ||
                           result.status.code() == StatusCode::kDeadlineExceeded;
      }
    }
  }
  std::vector<TaskKey> again;
  for (TaskResult& result : results) {
    // The first, but for a worker that is out of order.
    std::size_t at = 0;
    while (at < slot.posted.size() && slot.posted[at].id != result.task) ++at;
    if (at == slot.posted.size()) {
      Log(LogLevel::kError, fmt::format("{} answered a task that it was not given", slot.name));
      continue;
    }
    const Posted posted = slot.posted.Take(at);
    slot.used |= result.sent;
    scheduler_.Ended(worker, now);
    slot.posted_time -= posted.timeout;
    if (posted.timeout.count() == 0) --slot.endless;
    Task* const task = FindLocked(posted.task);
    if (task == nullptr) continue;
    if (unanswered(result) && &result != begun &&
        result.status.code() == StatusCode::kUnavailable && !task->group) {
      if (options_.transport != Transport::kThread || begun == nullptr) {
        again.push_back(posted.task);
        continue;
      }
      result.status = std::move(result.status)
                          .Annotate("it was posted to a thread that was lost, and may have begun");
    }
    if (!result.status.ok() && task->group) {
      result.status = std::move(result.status).Annotate(fmt::format("member {}", posted.member));
    }
    ++slot.tasks;
    MemberEndedLocked(*task, std::move(result.status));
  }
  results_ = std::move(results);
  if (!health.ok()) LostLocked(worker, std::move(health));
  for (const TaskKey key : again) {
    if (Task* const task = FindLocked(key)) AgainLocked(*task);
  }
}

void OrchestratorCore::MemberEndedLocked(Task& task, Status status) {
  if (!status.ok() && task.outcome.ok()) task.outcome = std::move(status);
  if (--task.running > 0) return;
  FinishLocked(task.key, std::move(task.outcome));
}

void OrchestratorCore::AgainLocked(Task& task) {
  task.running = 0;
  task.worker.store(-1, std::memory_order_relaxed);
  for (const std::shared_ptr<Block>& block : task.blocks) {
    if (!block->lost) continue;
    FinishLocked(task.key, block->Usable());
    return;
  }
  ReadyLocked(task);
}

void OrchestratorCore::DispatchLocked(Time now) {
  while (const auto start = scheduler_.Next(now)) {
    Task& task = *FindLocked(start->task);
    StartLocked(task, start->workers[0]);
    if (!task.group) {
      PostLocked(task, 0, start->workers[0], now);
      continue;
    }
    // Held: a task whose members all fail at once is forgotten on the way.
    const Held held(*this, task);
    const std::vector<WorkerId> workers(start->workers.begin(), start->workers.end());
    if (!CanStartLocked(task, workers, now)) continue;
    for (std::size_t i = 0; i < workers.size(); ++i) PostLocked(task, i, workers[i], now);
  }
  for (Slot& slot : slots_) {
    if (slot.standing == Standing::kUp) slot.worker->Wake();
  }
}

bool OrchestratorCore::CanStartLocked(Task& group, std::span<const WorkerId> workers, Time now) {
  bool up = true;
  Status fits;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    up &= !CheckHealthLocked(workers[i]);
    if (!up || !fits.ok()) continue;
    fits = slots_[workers[i]].worker->Fits(group.member(i).arguments);
    if (!fits.ok()) fits = std::move(fits).Annotate(fmt::format("member {}", i));
  }
  if (up && fits.ok()) return true;
  for (const WorkerId worker : workers) scheduler_.Ended(worker, now);
  if (!up) {
    AgainLocked(group);
    return false;
  }
  group.running = 0;
  group.worker.store(-1, std::memory_order_relaxed);
  FinishLocked(group.key, std::move(fits));
  return false;
}

void OrchestratorCore::PostLocked(Task& task, std::size_t member, WorkerId worker, Time now) {
  if (!task.outcome.ok()) {
    // A member of the group before this one could not be posted, so this one is not either.
    scheduler_.Ended(worker, now);
    MemberEndedLocked(task, OkStatus());
    return;
  }
  if (TrySendLocked(task, worker)) return;
  if (Status sent = SendLocked(task, member, worker); !sent.ok()) {
    NotSentLocked(task, worker, std::move(sent), now);
  }
}

Status OrchestratorCore::SendLocked(Task& task, std::size_t member, WorkerId worker) {
  Slot& slot = slots_[worker];
  // It was found to be lost on the way.
  if (slot.standing != Standing::kUp) return Unavailable(std::string(slot.lost.message()));
  Deadline deadline = Deadline::Never();
  if (task.timeout.count() > 0) {
    if (slot.endless > 0 || slot.posted_count() >= kTimedAhead) {
      return ResourceExhausted("its time could not be told");
    }
    deadline = Deadline::After(slot.posted_time + task.timeout);
  }
  // Whoever sleeps does not look for an answer of a worker that had nothing to do: before it can
  // come.
  if (sleepers_ > 0 && slot.posted.empty()) doorbell_->Ring();
  const std::optional<std::uint64_t> number = task.callable->numbers[worker];
  if (!number.has_value()) {
    return Internal(fmt::format("callable {} is not on {}", task.callable->id, slot.name));
  }
  KEEL_TRY(slot.worker->Post(task.id, *number,
                             task.plain ? no_arguments_ : task.member(member).arguments, deadline));
  NotePostedLocked(slot, task, member);
  // Whoever sleeps knows of nothing so early.
  if (sleepers_ > 0 && deadline.when() < wake_.when()) doorbell_->Ring();
  return OkStatus();
}

void OrchestratorCore::NotSentLocked(Task& task, WorkerId worker, Status why, Time now) {
  if (why.code() == StatusCode::kResourceExhausted && !task.group) {
    scheduler_.Refused(worker);
    task.running = 0;
    task.worker.store(-1, std::memory_order_relaxed);
    ReadyLocked(task);
    return;
  }
  const Held held(*this, task);
  scheduler_.Ended(worker, now);
  const bool was_up = slots_[worker].standing == Standing::kUp;
  if (was_up && why.code() == StatusCode::kUnavailable && CheckHealthLocked(worker) &&
      !task.group) {
    AgainLocked(task);
    return;
  }
  MemberEndedLocked(task, std::move(why));
}

// --- Loss ------------------------------------------------------------------------------------

bool OrchestratorCore::CheckHealthLocked(WorkerId worker) {
  Slot& slot = slots_[worker];
  if (slot.standing != Standing::kUp) return true;
  Status health = slot.worker->Health();
  if (health.ok()) return false;
  LostLocked(worker, std::move(health));
  return true;
}

void OrchestratorCore::LostLocked(WorkerId worker, Status why) {
  Slot& slot = slots_[worker];
  if (slot.standing != Standing::kUp) return;
  Log(LogLevel::kWarn, fmt::format("{} is lost: {}", slot.name, why.message()));
  slot.standing = Standing::kLost;
  slot.lost = std::move(why);
  ++slot.generation;
  slot.earlier.bytes_to_device += std::exchange(slot.stats.bytes_to_device, 0);
  slot.earlier.bytes_from_device += std::exchange(slot.stats.bytes_from_device, 0);
  slot.earlier.uploads += std::exchange(slot.stats.uploads, 0);
  slot.stats.callables = 0;
  slot.blocks.Lose();
  std::erase_if(frees_, [worker](const auto& block) { return block->worker == worker; });
  if (!SharesSpaceLocked(worker)) dependencies_.Clear(slot.space);
  for (auto& [id, callable] : callables_) callable.numbers[worker].reset();
  scheduler_.SetDown(worker);
  if (slot.posted_count() > 0) CollectLocked(worker, Clock::now());
  const bool at_once = !slot.used && Clock::now() - slot.started < kAtOnce;
  slot.failed_starts = at_once ? slot.failed_starts + 1 : 0;

  // What has not started and needs what was there.
  std::vector<TaskKey> hopeless;
  for (const Task* const task : tasks_) {
    if (task == nullptr || task->phase == Task::Phase::kPosted || task->done) continue;
    for (const std::shared_ptr<Block>& block : task->blocks) {
      if (block->worker != worker || !block->lost) continue;
      hopeless.push_back(task->key);
      break;
    }
  }
  if (!hopeless.empty()) {
    std::sort(hopeless.begin(), hopeless.end());
    scheduler_.RemoveIf(
        [&](TaskKey key) { return std::binary_search(hopeless.begin(), hopeless.end(), key); });
    for (const TaskKey key : hopeless) {
      const Task* const task = FindLocked(key);
      if (task == nullptr) continue;  // it depended on one of the others
      Status status;
      for (const std::shared_ptr<Block>& block : task->blocks) {
        if (block->lost) status = block->Usable();
      }
      FinishLocked(key, std::move(status));
    }
  }
  if (slot.failed_starts >= kMaxStarts) {
    GiveUpLocked(worker);
  } else {
    mender_ring_.NotifyOne();
  }
}

void OrchestratorCore::GiveUpLocked(WorkerId worker) {
  Slot& slot = slots_[worker];
  slot.standing = Standing::kGivenUp;
  Log(LogLevel::kError, fmt::format("{} was given up after {} attempts in a row to start it: {}",
                                    slot.name, slot.failed_starts, slot.lost.message()));
  std::vector<TaskKey> stranded;
  scheduler_.GiveUp(worker, stranded);
  for (const TaskKey key : stranded) FinishLocked(key, GivenUpLocked(worker));
  workers_changed_.NotifyAll();
}

// --- Waiting ---------------------------------------------------------------------------------

Deadline OrchestratorCore::NextWakeLocked() const {
  Time next = Time::max();
  for (const Slot& slot : slots_) {
    if (slot.posted_count() == 0) continue;
    next = std::min(next, slot.worker->NextDeadline().when());
  }
  if (scheduler_.NeedsRetry()) next = std::min(next, Clock::now() + kTick);
  return Deadline::At(next);
}

void OrchestratorCore::SleepLocked(Sleeper& sleeper, std::uint32_t seen, Deadline deadline) {
  // Most answers come before it is known how long to wait for them.
  wake_ = Deadline::Never();
  ++sleepers_;
  sleeper.answers.clear();
  sleeper.workers.clear();
  for (WorkerId w = 0; w < slots_.size(); ++w) {
    Slot& slot = slots_[w];
    if (slot.posted_count() == 0) continue;
    sleeper.answers.push_back(slot.worker->NextAnswer());
    sleeper.workers.push_back(w);
    ++slot.controls;  // nobody takes the word away
  }
  mutex_.Unlock();
  const bool rang = doorbell_->SpinWhile(seen, sleeper.answers);
  mutex_.Lock();
  if (!rang) {
    wake_ = NextWakeLocked();
    // A worker process that damaged the doorbell could keep it from ringing: looked at once a
    // second.
    const Deadline until =
        Deadline::At(std::min({wake_.when(), deadline.when(), Clock::now() + kLongestSleep}));
    mutex_.Unlock();
    static_cast<void>(doorbell_->WaitWhile(seen, sleeper.answers, until));
    mutex_.Lock();
    now_ = Clock::now();
    submits_ = 0;
  }
  for (const WorkerId w : sleeper.workers) LeaveLocked(w, OkStatus());
  if (--sleepers_ == 0 && stopping_) workers_changed_.NotifyAll();
}

bool OrchestratorCore::WaitLocked(Waiter& waiter, Deadline deadline) {
  while (!waiter.ready) {
    if (leader_ == nullptr) {
      leader_ = &waiter;
      // Of a deadline that is not known to have passed SleepLocked finds out, if need be.
      bool look = deadline.when() <= now_ || AnsweredLocked();
      for (;; look = true) {
        if (look) {
          PumpLocked();
          if (waiter.ready || deadline.Passed()) break;
        }
        SleepLocked(leader_sleep_, pumped_, deadline);
        if (waiter.ready) break;
      }
      leader_ = nullptr;
      break;
    }
    followers_.push_back(&waiter);
    waiter.changed.emplace();
    bool in_time = true;
    if (deadline.never()) {
      waiter.changed->Wait(mutex_);
    } else {
      in_time = waiter.changed->WaitUntil(mutex_, deadline.when());
    }
    waiter.changed.reset();
    std::erase(followers_, &waiter);
    if (!in_time) break;
  }
  // Somebody must lead.
  if (leader_ == nullptr) {
    if (!followers_.empty()) {
      followers_.front()->changed->NotifyOne();
    } else if (keys_.size() > 0) {
      NeedKeeperLocked();
    }
  }
  return waiter.ready;
}

bool OrchestratorCore::CollectSoonLocked(Task& task) {
  const std::int32_t at = task.worker.load(std::memory_order_relaxed);
  if (at < 0 || leader_ != nullptr) return false;
  const auto worker = static_cast<WorkerId>(at);
  Slot& slot = slots_[worker];
  if (slot.posted.empty()) return false;
  const Sign answer = slot.worker->NextAnswer();
  ++slot.controls;  // nobody takes the word away
  mutex_.Unlock();
  const bool answered = SpinUntil([&] { return answer.there(); });
  mutex_.Lock();
  LeaveLocked(worker, OkStatus());
  if (answered && !slot.posted.empty() && leader_ == nullptr) {
    CollectLocked(worker, now_);
    if (scheduler_.ready() > 0) DispatchLocked(now_);
  }
  return task.done.load(std::memory_order_relaxed);
}

bool OrchestratorCore::WaitForTaskLocked(Task& task, Deadline deadline) {
  if (task.done.load(std::memory_order_relaxed) || CollectSoonLocked(task)) return true;
  Waiter waiter;
  task.AddWaiter(waiter);
  const bool ready = WaitLocked(waiter, deadline);
  task.RemoveWaiter(waiter);
  return ready;
}

bool OrchestratorCore::WaitForGoneLocked(Task& task, Deadline deadline) {
  if (!keys_.alive(task.key)) return true;
  Waiter waiter;
  waiter.for_gone = true;
  task.AddWaiter(waiter);
  const bool ready = WaitLocked(waiter, deadline);
  task.RemoveWaiter(waiter);
  return ready;
}

bool OrchestratorCore::WaitForAllLocked(std::uint64_t last, Deadline deadline) {
  std::size_t undone = UndoneLocked();
  if (last < last_id_) {
    undone = static_cast<std::size_t>(std::ranges::count_if(tasks_, [last](const auto& task) {
      return task != nullptr && !task->done && task->id <= last;
    }));
  }
  if (undone == 0) return true;
  AllWaiter& all = all_waiters_.emplace_back();
  all.last_id = last;
  all.left = undone;
  const bool ready = WaitLocked(all.waiter, deadline);
  for (auto at = all_waiters_.begin(); at != all_waiters_.end(); ++at) {
    if (&*at != &all) continue;
    all_waiters_.erase(at);
    break;
  }
  return ready;
}

Status OrchestratorCore::Wait(Task& task, Deadline deadline) {
  if (!task.done.load(std::memory_order_acquire)) {
    KEEL_TRY(Here());
    const BiasedMutexLock lock(mutex_);
    if (!WaitForTaskLocked(task, deadline)) {
      return DeadlineExceeded(fmt::format("task {} is not done yet; it goes on", task.id));
    }
  }
  // A copy of what is mostly nothing.
  return task.outcome.ok() ? OkStatus() : task.outcome;
}

Status OrchestratorCore::WaitAll(Deadline deadline, std::optional<std::uint64_t> last) {
  KEEL_TRY(Here());
  const BiasedMutexLock lock(mutex_);
  if (WaitForAllLocked(last.value_or(last_id_), deadline)) return OkStatus();
  return DeadlineExceeded(fmt::format("{} tasks are not done yet; they go on", UndoneLocked()));
}

// --- The keeper --------------------------------------------------------------------------------

void OrchestratorCore::Keep() {
  for (int idle = 0;;) {
    bool asleep = false;
    {
      const BiasedMutexLock lock(mutex_);
      if (stopping_) return;
      if (leader_ == nullptr && keys_.size() > 0) {
        idle = 0;
        PumpLocked();
        if (leader_ == nullptr && keys_.size() > 0) {
          SleepLocked(keeper_sleep_, pumped_, Deadline::Never());
        }
        continue;
      }
      asleep = keeper_asleep_ = ++idle > kIdleTicks;
    }
    if (asleep) {
      keeper_nap_.Sleep();
      idle = 0;
    }
    // Also after a ring: whoever submitted is likely to wait for it next.
    std::uint64_t looks = looks_.load(std::memory_order_relaxed);
    for (int tick = 0; tick < kTicksPerLook; ++tick) {
      if (keeper_nap_.SleepFor(kTick)) break;
      const std::uint64_t before = std::exchange(looks, looks_.load(std::memory_order_relaxed));
      if (looks == before) break;
    }
  }
}

}  // namespace keel::task
