#include "task/orchestrator_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

namespace keel::task {
namespace {

bool IsInBlock(const Tensor& tensor) { return tensor.resident() && !tensor.size().empty(); }

// The block that is meant for the resident tensor of that number; 0: any.
BlockId MeantFor(std::span<const BlockId> meant, std::size_t number) {
  return meant.empty() ? 0 : meant[number];
}

Status Destroyed() {
  return Status(StatusCode::kCancelled, "it was not run: its orchestrator was destroyed");
}

}  // namespace

OrchestratorCore::OrchestratorCore(OrchestratorOptions options)
    : options_(std::move(options)),
      dependencies_(keys_, 1 + options_.workers.size()),
      scheduler_(options_.workers.size(), Worker::kCapacity) {}

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
  started.reserve(worker_count());
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

bool OrchestratorCore::SharesSpaceLocked(WorkerId worker) const {
  return std::ranges::count(slots_, slots_[worker].space, &Slot::space) > 1;
}

void OrchestratorCore::Stop() {
  if (!home_.here()) return;
  const Deadline deadline = Deadline::After(options_.stop_timeout);
  {
    const BiasedMutexLock lock(mutex_);
    stopping_ = true;
    recent_callable_ = nullptr;
    scheduler_.RemoveIf([](TaskKey) { return true; });
    std::vector<TaskKey> cancelled;
    for (const Task* const task : tasks_) {
      if (task == nullptr || task->phase == Task::Phase::kPosted || task->done) continue;
      cancelled.push_back(task->key);
    }
    // All of them are cancelled; none because of another.
    for (const TaskKey key : cancelled) {
      Task& task = *FindLocked(key);
      PublishLocked(task, Destroyed().Annotate(fmt::format("task {}", task.id)));
    }
    for (const TaskKey key : cancelled) {
      Task* const task = FindLocked(key);
      if (task != nullptr && task->waits_for == 0) PassLocked(*task);
    }
    static_cast<void>(WaitForAllLocked(last_id_, deadline));
    keeper_nap_.Ring();
    mender_ring_.NotifyAll();
    workers_changed_.NotifyAll();
    doorbell_->Ring();
  }
  if (keeper_.joinable()) keeper_.join();

  {
    const BiasedMutexLock lock(mutex_);
    for (WorkerId w = 0; w < slots_.size(); ++w) {
      if (slots_[w].standing == Standing::kStarting) continue;  // the mender ends it
      // Together with the lock: a thread in Wait may still pump.
      slots_[w].worker->Stop(deadline);
      if (slots_[w].posted_count() > 0) CollectLocked(w, Clock::now());
      slots_[w].standing = Standing::kGivenUp;
    }
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      if (tasks_[i] == nullptr) continue;
      FinishLocked(tasks_[i]->key,
                   Status(StatusCode::kCancelled,
                          "it was still running when its orchestrator was destroyed"));
    }
    if (mender_.joinable()) {
      const Time until = std::max(deadline.when(), Clock::now() + kStopGrace);
      while (!mended_ && Clock::now() < until) {
        static_cast<void>(mender_ended_.WaitUntil(mutex_, until));
      }
      if (!mended_) {
        orphan_ = shared_from_this();
        mender_.detach();
      }
    }
  }
  if (mender_.joinable()) mender_.join();

  // No task has one any more. What they are made of may be the program's, and goes without the
  // lock.
  std::unordered_map<std::uint64_t, RegisteredCallable> callables;
  std::vector<DeferredUnregister> unregisters;
  const BiasedMutexLock lock(mutex_);
  callables.swap(callables_);
  unregisters.swap(unregisters_);
  // They were rung, and look at the words of workers until they have noticed.
  while (sleepers_ > 0) {
    doorbell_->Ring();
    static_cast<void>(workers_changed_.WaitUntil(mutex_, Clock::now() + kTick));
  }
  for (Slot& slot : slots_) {
    slot.posted.clear();  // nobody looks for results any more
    // What somebody is still in goes with the core.
    if (slot.standing == Standing::kGivenUp && slot.controls == 0) slot.worker.reset();
  }
  pool_.Close();
}

Status OrchestratorCore::Elsewhere() {
  return FailedPrecondition(
      "this orchestrator was made before the process forked; make another one in the child");
}

Status OrchestratorCore::CheckWorker(WorkerId worker) const {
  KEEL_TRY(Here());
  if (worker < worker_count()) return OkStatus();
  return InvalidArgument(fmt::format("there is no worker {}: they are numbered from 0 to {}",
                                     worker, worker_count() - 1));
}

Status OrchestratorCore::GivenUpLocked(WorkerId worker) const {
  return Unavailable(
      fmt::format("{} was given up: {}", slots_[worker].name, slots_[worker].lost.message()));
}

Status OrchestratorCore::NobodyLocked() const {
  for (WorkerId w = 0; w < slots_.size(); ++w) {
    if (slots_[w].standing == Standing::kGivenUp) return GivenUpLocked(w);
  }
  return Unavailable("no worker is left");
}

// --- Where a task can run ------------------------------------------------------------------

bool OrchestratorCore::HoldsLocked(WorkerId worker, const Arguments& arguments,
                                   std::span<const BlockId> meant) const {
  std::size_t number = 0;
  for (const Tensor& tensor : arguments.tensors()) {
    if (!IsInBlock(tensor)) continue;
    const auto& block = slots_[worker].blocks.Find(DeviceAddress(tensor.address), tensor.size());
    if (block == nullptr || block->lost || block->freed) return false;
    if (const BlockId id = MeantFor(meant, number++); id != 0 && block->id != id) return false;
  }
  return true;
}

Status OrchestratorCore::WhyNowhereLocked(const Arguments& arguments, std::optional<WorkerId> named,
                                          std::span<const BlockId> meant) const {
  std::string places;
  std::size_t number = 0;
  for (std::size_t i = 0; i < arguments.tensors().size(); ++i) {
    const Tensor& tensor = arguments.tensors()[i];
    if (!IsInBlock(tensor)) continue;
    const BlockId id = MeantFor(meant, number++);
    std::optional<WorkerId> holder;
    Status unusable;
    for (WorkerId w = 0; w < slots_.size(); ++w) {
      const auto& block = slots_[w].blocks.Find(DeviceAddress(tensor.address), tensor.size());
      if (block == nullptr || (id != 0 && block->id != id)) continue;
      Status usable = block->Usable();
      // What another worker has at an equal address is not what was meant.
      if (!usable.ok() && named == w) {
        return std::move(usable).Annotate(fmt::format("argument {}", i));
      }
      if (usable.ok() && (!holder.has_value() || named == w)) holder = w;
      if (!usable.ok() && unusable.ok()) unusable = usable;
    }
    if (named.has_value() && holder == named) continue;
    if (!unusable.ok() && !holder.has_value()) {
      return std::move(unusable).Annotate(fmt::format("argument {}", i));
    }
    if (!holder.has_value() && id != 0) {
      return Unavailable(fmt::format(
          "argument {}: the block of number {} that had the {} at {:#x} was freed or lost", i, id,
          ToString(tensor.size()), tensor.address));
    }
    if (!holder.has_value()) {
      return InvalidArgument(fmt::format(
          "argument {}: the {} at {:#x} are resident in no block of a worker; allocate them with "
          "Malloc, or name them with RegisterMemory",
          i, ToString(tensor.size()), tensor.address));
    }
    if (named.has_value()) {
      return InvalidArgument(
          fmt::format("argument {}: it is resident on worker {}, and the task names worker {}", i,
                      *holder, *named));
    }
    places += fmt::format("{}argument {} on worker {}", places.empty() ? "" : ", ", i, *holder);
  }
  return InvalidArgument(
      fmt::format("the resident tensors are on several workers: {}; copy them to one", places));
}

Status OrchestratorCore::PlaceLocked(const Arguments& arguments, std::optional<WorkerId>& worker,
                                     std::span<const BlockId> meant,
                                     std::vector<std::shared_ptr<Block>>& blocks) {
  if (std::ranges::none_of(arguments.tensors(), IsInBlock)) return OkStatus();
  std::optional<WorkerId> found;
  for (WorkerId w = worker.value_or(0); w < slots_.size(); ++w) {
    if (HoldsLocked(w, arguments, meant)) {
      if (found.has_value()) {
        return InvalidArgument(fmt::format(
            "the addresses of the resident tensors are those of blocks of worker {} and of worker "
            "{}; name the worker in SubmitOptions",
            *found, w));
      }
      found = w;
    }
    if (worker.has_value()) break;
  }
  if (!found.has_value()) return WhyNowhereLocked(arguments, worker, meant);
  worker = found;
  for (const Tensor& tensor : arguments.tensors()) {
    if (!IsInBlock(tensor)) continue;
    blocks.push_back(slots_[*found].blocks.Find(DeviceAddress(tensor.address), tensor.size()));
  }
  return OkStatus();
}

// --- Submit --------------------------------------------------------------------------------

Status OrchestratorCore::CheckGroupCall(std::span<const Arguments> members,
                                        std::span<const WorkerId> workers,
                                        const SubmitOptions& options) const {
  if (members.empty()) return InvalidArgument("a group needs at least one member");
  if (members.size() > worker_count()) {
    return InvalidArgument(fmt::format("a group of {} members needs as many workers; there are {}",
                                       members.size(), worker_count()));
  }
  if (!workers.empty() && workers.size() != members.size()) {
    return InvalidArgument(fmt::format(
        "{} workers are named for {} members: name one for each, or any (kAnyWorker), or none",
        workers.size(), members.size()));
  }
  if (options.worker.has_value()) {
    return InvalidArgument("a group names its workers one by one, not in SubmitOptions");
  }
  for (std::size_t i = 0; i < workers.size(); ++i) {
    if (workers[i] == kAnyWorker) continue;
    KEEL_TRY(CheckWorker(workers[i]).Annotate(fmt::format("member {}", i)));
  }
  return OkStatus();
}

Status OrchestratorCore::PrepareLocked(Task& task, std::span<const Arguments> members,
                                       std::span<const WorkerId> workers,
                                       const SubmitOptions& options) {
  const auto named = [&](std::size_t i) -> std::optional<WorkerId> {
    if (workers.empty()) return options.worker;  // a group has none
    return workers[i] == kAnyWorker ? std::nullopt : std::optional(workers[i]);
  };
  task.first.arguments = members[0];
  task.first.worker = named(0);
  for (std::size_t i = 1; i < members.size(); ++i) task.rest.push_back({members[i], named(i)});
  std::span<const BlockId> meant = options.blocks;
  if (!meant.empty()) {
    std::size_t residents = 0;
    for (const Arguments& member : members) {
      residents += static_cast<std::size_t>(std::ranges::count_if(member.tensors(), IsInBlock));
    }
    if (meant.size() != residents) {
      return InvalidArgument(
          fmt::format("{} blocks are named for {} resident tensors", meant.size(), residents));
    }
  }
  for (std::size_t i = 0; i < members.size(); ++i) {
    Task::Member& member = task.member(i);
    const std::size_t before = task.blocks.size();
    Status status = PlaceLocked(member.arguments, member.worker, meant, task.blocks);
    if (!meant.empty()) meant = meant.subspan(task.blocks.size() - before);
    if (status.ok() && member.worker.has_value() &&
        slots_[*member.worker].standing == Standing::kGivenUp) {
      status = GivenUpLocked(*member.worker);
    }
    if (!status.ok()) {
      return task.group ? std::move(status).Annotate(fmt::format("member {}", i))
                        : std::move(status);
    }
  }
  TouchesLocked(task);
  return task.group ? CheckGroupLocked(task) : OkStatus();
}

Status OrchestratorCore::CheckTimeout(std::chrono::nanoseconds& timeout) {
  if (timeout < timeout.zero()) {
    return InvalidArgument("the timeout of a task is negative; zero means for ever");
  }
  // Sums of timeouts stay within their type.
  if (Deadline::After(timeout).never()) timeout = timeout.zero();
  return OkStatus();
}

Status OrchestratorCore::FindCallableLocked(Callable callable, RegisteredCallable*& found) {
  if (stopping_) return Status(StatusCode::kCancelled, "the orchestrator is being destroyed");
  const auto at = callables_.find(callable.id);
  if (at == callables_.end() || at->second.unregistered) {
    return NotFound(fmt::format("callable {} is not registered, or no longer", callable.id));
  }
  found = recent_callable_ = &at->second;
  return OkStatus();
}

Result<TaskHandle> OrchestratorCore::SubmitPlain(Callable callable,
                                                 std::optional<std::chrono::nanoseconds> timeout) {
  KEEL_TRY(Here());
  std::chrono::nanoseconds time = timeout.value_or(options_.task_timeout);
  if (time.count() != 0) KEEL_TRY(CheckTimeout(time));

  const BiasedMutexLock lock(mutex_);
  RegisteredCallable* called = nullptr;
  KEEL_TRY(CallableLocked(callable, called));
  Task* const task = pool_.Take(*this);
  task->timeout = time;
  NumberLocked(*task, *called);
  EnterLocked(*task);
  return TaskHandle(task);
}

Result<TaskHandle> OrchestratorCore::SubmitMembers(Callable callable,
                                                   std::span<const Arguments> members, bool group,
                                                   std::span<const WorkerId> workers,
                                                   const SubmitOptions& options) {
  KEEL_TRY(Here());
  if (group) KEEL_TRY(CheckGroupCall(members, workers, options));
  if (options.worker.has_value()) KEEL_TRY(CheckWorker(*options.worker));
  std::chrono::nanoseconds timeout = options.timeout.value_or(options_.task_timeout);
  if (timeout.count() != 0) KEEL_TRY(CheckTimeout(timeout));
  for (std::size_t i = 0; i < members.size(); ++i) {
    Status status = members[i].Check();
    if (status.ok()) continue;
    return group ? std::move(status).Annotate(fmt::format("member {}", i)) : std::move(status);
  }

  const BiasedMutexLock lock(mutex_);
  RegisteredCallable* called = nullptr;
  KEEL_TRY(CallableLocked(callable, called));
  Task* const task = pool_.Take(*this);
  task->timeout = timeout;
  task->group = group;
  task->plain = false;
  if (Status prepared = PrepareLocked(*task, members, workers, options); !prepared.ok()) {
    ReturnLocked(task);
    return prepared;
  }

  // Nothing fails from here on.
  NumberLocked(*task, *called);
  for (const std::shared_ptr<Block>& block : task->blocks) ++block->uses;
  waits_for_.clear();
  dependencies_.Add(task->key, touches_, waits_for_);
  task->waits_for = static_cast<std::uint32_t>(waits_for_.size());
  for (const TaskKey before : waits_for_) FindLocked(before)->dependents.push_back(task->key);
  EnterLocked(*task);
  return TaskHandle(task);
}

Status OrchestratorCore::CheckGroupLocked(Task& task) {
  std::vector<bool> taken(slots_.size(), false);
  for (std::size_t i = 0; i < task.member_count(); ++i) {
    const std::optional<WorkerId> worker = task.member(i).worker;
    if (!worker.has_value()) continue;
    if (taken[*worker]) {
      return InvalidArgument(
          fmt::format("member {}: worker {} has a member of the group already", i, *worker));
    }
    taken[*worker] = true;
  }
  const std::size_t conflict = FindConflict(touches_, touch_members_);
  if (conflict == touches_.size()) return OkStatus();
  return InvalidArgument(fmt::format(
      "member {}: argument {}: the {} at {:#x} overlap those of another member, and one of the two "
      "writes them; members of a group run at the same time",
      touch_members_[conflict], touch_arguments_[conflict],
      ToString(Bytes(touches_[conflict].end - touches_[conflict].begin)),
      touches_[conflict].begin));
}

void OrchestratorCore::TouchesLocked(Task& task) {
  touches_.clear();
  touch_members_.clear();
  touch_arguments_.clear();
  const std::size_t members = task.member_count();
  for (std::size_t i = 0; i < members; ++i) {
    const Task::Member& member = task.member(i);
    for (std::size_t t = 0; t < member.arguments.tensors().size(); ++t) {
      const Tensor& tensor = member.arguments.tensors()[t];
      const std::uint64_t size = tensor.size().count();
      if (size == 0) continue;
      const Space space = tensor.resident() ? slots_[*member.worker].space : 0;
      touches_.push_back(
          {space, tensor.address, tensor.address + size, Writes(member.arguments.tags()[t])});
      touch_members_.push_back(i);
      touch_arguments_.push_back(t);
    }
  }
}

void OrchestratorCore::ReadyLocked(Task& task) {
  task.phase = Task::Phase::kReady;
  if (stopping_) {
    FinishLocked(task.key, Destroyed());
    return;
  }
  bool accepted = false;
  if (task.group) {
    std::vector<std::optional<WorkerId>> workers;
    workers.reserve(task.member_count());
    for (std::size_t i = 0; i < task.member_count(); ++i) workers.push_back(task.member(i).worker);
    accepted = scheduler_.AddGroup(task.key, task.id, workers);
  } else {
    accepted = scheduler_.Add(task.key, task.id, task.plain ? std::nullopt : task.first.worker);
  }
  if (accepted) return;
  for (std::size_t i = 0; i < task.member_count(); ++i) {
    const std::optional<WorkerId> worker = task.member(i).worker;
    if (!worker.has_value() || slots_[*worker].standing != Standing::kGivenUp) continue;
    FinishLocked(task.key, GivenUpLocked(*worker));
    return;
  }
  FinishLocked(task.key, NobodyLocked());
}

// --- The end of a task ---------------------------------------------------------------------

void OrchestratorCore::FinishLocked(TaskKey key, Status status) {
  if (ending_) {
    endings_.push_back({key, std::move(status)});
    return;
  }
  ending_ = true;
  EndLocked(key, std::move(status));
  while (!endings_.empty()) {
    Ending ending = std::move(endings_.back());
    endings_.pop_back();
    EndLocked(ending.task, std::move(ending.status));
  }
  ending_ = false;
}

void OrchestratorCore::EndLocked(TaskKey key, Status status) {
  Task* const found = FindLocked(key);
  if (found == nullptr || found->done) return;
  if (status.ok()) {
    EndWellLocked(*found);
    return;
  }
  const Held task(*this, *found);
  // Everything that comes after it, with this one as the reason.
  const std::string reason(status.message());
  PublishLocked(*task, std::move(status).Annotate(fmt::format("task {}", task->id)));
  std::vector<TaskKey> after = task->dependents;
  while (!after.empty()) {
    const TaskKey next = after.back();
    after.pop_back();
    Task* const other = FindLocked(next);
    if (other == nullptr || other->done) continue;
    Task& aborted = *other;
    after.insert(after.end(), aborted.dependents.begin(), aborted.dependents.end());
    PublishLocked(
        aborted, Status(StatusCode::kAborted,
                        fmt::format("task {} was not run: task {}, which it depends on, failed: {}",
                                    aborted.id, task->id, reason)));
  }
  if (task->waits_for == 0) PassLocked(*task);
}

void OrchestratorCore::ForgetMembersLocked(Task& task) {
  for (const std::shared_ptr<Block>& block : task.blocks) ReleaseLocked(block);
  task.ForgetMembers();
}

void OrchestratorCore::LastUseLocked(const RegisteredCallable& callable) {
  unregisters_.push_back(ForgetLocked(callable.id));
  mender_ring_.NotifyOne();
}

void OrchestratorCore::TellDoneLocked(Task& task) {
  for (Waiter* waiter = task.waiters; waiter != nullptr; waiter = waiter->next) {
    if (!waiter->for_gone) ReadyWaiterLocked(*waiter);
  }
  for (AllWaiter& all : all_waiters_) {
    if (task.id <= all.last_id && --all.left == 0) ReadyWaiterLocked(all.waiter);
  }
}

void OrchestratorCore::TellGoneLocked(Task& task) {
  for (Waiter* waiter = task.waiters; waiter != nullptr; waiter = waiter->next) {
    if (waiter->for_gone) ReadyWaiterLocked(*waiter);
  }
}

void OrchestratorCore::PassOnLocked(Task& first) {
  std::vector<TaskKey> after = std::exchange(first.dependents, {});
  LeaveTableLocked(first);
  for (std::size_t i = 0; i < after.size(); ++i) {
    Task* const task = FindLocked(after[i]);
    if (task == nullptr || --task->waits_for > 0) continue;
    if (!task->done) {
      ReadyLocked(*task);
      continue;
    }
    after.insert(after.end(), task->dependents.begin(), task->dependents.end());
    task->dependents.clear();
    LeaveTableLocked(*task);
  }
}

void OrchestratorCore::ReadyWaiterLocked(Waiter& waiter) {
  waiter.ready = true;
  if (waiter.changed.has_value()) {
    waiter.changed->NotifyOne();
  } else if (sleepers_ > 0) {
    doorbell_->Ring();
  }
}

void OrchestratorCore::ReleaseLocked(const std::shared_ptr<Block>& block) {
  if (--block->uses > 0 || !block->freed) return;
  slots_[block->worker].blocks.Remove(*block);
  if (block->lost) return;
  frees_.push_back(block);
  mender_ring_.NotifyOne();
}

std::size_t OrchestratorCore::live_tasks() {
  if (!home_.here()) return 0;
  const BiasedMutexLock lock(mutex_);
  return keys_.size();
}

std::uint64_t OrchestratorCore::last_task() {
  if (!home_.here()) return 0;
  const BiasedMutexLock lock(mutex_);
  return last_id_;
}

std::size_t OrchestratorCore::segments() {
  const BiasedMutexLock lock(mutex_);
  return dependencies_.segments();
}

}  // namespace keel::task
