// OrchestratorCore: what is behind an Orchestrator: the table of tasks, the workers, and who moves
// tasks on.
//
// One lock guards all of it. No call to a worker that can wait is made under it.
//
// Who drives. Submit posts what is ready to the workers itself, and in a row of submits it collects
// now and then, so that the workers go on. After that somebody must collect results, resolve
// dependencies and post what has become ready: "pump". A thread that waits for a task pumps, and
// sleeps until an answer of a worker is there, or the doorbell that all workers ring; of several
// waiting threads one leads and wakes the others. When nobody waits the keeper does, a thread of
// the core. It need not be told of every task: while it sleeps it looks every kTick whether it is
// needed, and only after kIdleTicks without need does it sleep until it is woken. It looks without
// the lock, which its owner would pay for, as long as the program looks after all workers by
// itself; but every kTicksPerLook with it, because only the keeper looks for tasks that take too
// long. So a program that submits and waits pays for no thread but the worker's. While neither an
// answer is there nor the doorbell has rung since the last pump there is nothing to collect, and a
// thread that waits sleeps at once. The mender is a second thread of the core, for what takes long:
// starting lost workers again, and freeing and unregistering what was in use when it was asked for.
//
// Loss. When a worker is lost, the task that it was running ends with the worker's error. Those
// that were posted behind it were never begun; they are ready again, here or elsewhere, but for
// those with tensors on that worker, which end with kUnavailable. Of a thread it cannot be known
// that they were not begun, and it may go on in the caller's memory: there they all end with
// kUnavailable, unless its last answer said that it ends. A worker that cannot be started
// kMaxStarts times in a row, or is lost as often right after it was started and without a task, is
// given up: what can run only there ends with that error.
//
// Timeouts. The time of a task begins when those before it on its worker have ended, and the worker
// is told a moment: so a task with a timeout is posted behind others only if these have one too,
// and is allowed the time of all of them, at most kTimedAhead.
//
// Stop. Nothing can hurry the start of a worker. If the mender is still at one when the time is up,
// it is left behind with the core, ends that worker when the start returns, and then itself.
//
// In a forked child every call is kFailedPrecondition.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/biased_mutex.h"
#include "base/fork.h"
#include "keel/task/orchestrator.h"
#include "task/dependencies.h"
#include "task/fixed_queue.h"
#include "task/nap.h"
#include "task/scheduler.h"
#include "task/task_keys.h"
#include "task/task_state.h"
#include "task/worker.h"
#include "task/worker_blocks.h"

namespace keel::task {

struct RegisteredCallable {
  std::uint64_t id = 0;
  HostCode code;
  std::vector<std::optional<std::uint64_t>> numbers;  // of each worker; none: not there
  std::vector<bool> taken;                            // whether it was there before it was lost
  std::uint64_t uses = 0;                             // tasks
  bool unregistered = false;
};

class OrchestratorCore : public std::enable_shared_from_this<OrchestratorCore> {
 public:
  using StartWorker =
      std::function<Result<std::unique_ptr<Worker>>(const WorkerStart& start, Deadline deadline)>;
  using Task = TaskHandle::State;
  static constexpr int kMaxStarts = 3;
  // Until a worker that was busy is asked again to free something, or to forget a callable.
  static constexpr std::chrono::milliseconds kFreePause{100};
  // Of a worker, for Report.
  static constexpr std::chrono::seconds kReportPatience{1};
  static constexpr int kMaxRegisterLosses = 2;
  static constexpr std::chrono::milliseconds kTick{1};
  static constexpr unsigned kSubmitsPerLook = 16;
  static constexpr int kIdleTicks = 16;
  static constexpr int kTicksPerLook = 8;
  static constexpr std::size_t kTimedAhead = 8;
  static constexpr std::chrono::seconds kAtOnce{10};
  static constexpr std::chrono::milliseconds kRestartPause{20};
  static constexpr std::chrono::seconds kLongestSleep{1};
  static constexpr std::chrono::milliseconds kStopGrace{100};

  static Result<std::shared_ptr<OrchestratorCore>> Create(OrchestratorOptions options,
                                                          const StartWorker& start);
  explicit OrchestratorCore(OrchestratorOptions options);
  // ~Orchestrator. Once.
  void Stop() KEEL_EXCLUDES(mutex_);

  WorkerId worker_count() const { return static_cast<WorkerId>(options_.workers.size()); }

  // As Orchestrator's.
  Result<DeviceAddress> Malloc(WorkerId worker, Bytes size, BlockId* block = nullptr)
      KEEL_EXCLUDES(mutex_);
  Status Free(WorkerId worker, DeviceAddress address, BlockId id = 0) KEEL_EXCLUDES(mutex_);
  Status CopyTo(WorkerId worker, DeviceAddress destination, const void* source, Bytes size,
                BlockId block = 0) KEEL_EXCLUDES(mutex_);
  Status CopyFrom(WorkerId worker, void* destination, DeviceAddress source, Bytes size,
                  BlockId block = 0) KEEL_EXCLUDES(mutex_);
  Status RegisterMemory(WorkerId worker, DeviceAddress address, Bytes size,
                        BlockId* block = nullptr) KEEL_EXCLUDES(mutex_);
  Status UnregisterMemory(WorkerId worker, DeviceAddress address, BlockId id = 0)
      KEEL_EXCLUDES(mutex_);
  Result<Callable> Register(const HostCode& code) KEEL_EXCLUDES(mutex_);
  Result<Callable> Register(const Image& image) KEEL_EXCLUDES(mutex_) {
    return Register(HostCode{nullptr, image, nullptr});
  }
  Status Unregister(Callable callable) KEEL_EXCLUDES(mutex_);
  Result<TaskHandle> Submit(Callable callable, const Arguments& arguments,
                            const SubmitOptions& options) KEEL_EXCLUDES(mutex_) {
    // One without arguments, for any worker, needs nothing but a place in the table and a message.
    if (arguments.empty() && !options.worker.has_value() && options.blocks.empty()) {
      return SubmitPlain(callable, options.timeout);
    }
    return SubmitMembers(callable, {&arguments, 1}, /*group=*/false, {}, options);
  }
  Result<TaskHandle> SubmitGroup(Callable callable, std::span<const Arguments> members,
                                 std::span<const WorkerId> workers, const SubmitOptions& options)
      KEEL_EXCLUDES(mutex_) {
    return SubmitMembers(callable, members, /*group=*/true, workers, options);
  }
  Status Wait(Task& task, Deadline deadline) KEEL_EXCLUDES(mutex_);
  Status WaitAll(Deadline deadline, std::optional<std::uint64_t> last = {}) KEEL_EXCLUDES(mutex_);
  std::uint64_t last_task() KEEL_EXCLUDES(mutex_);
  std::vector<WorkerReport> Report() KEEL_EXCLUDES(mutex_);
  Result<WorkerReport> Report(WorkerId worker) KEEL_EXCLUDES(mutex_);
  std::size_t live_tasks() KEEL_EXCLUDES(mutex_);
  // Of a task that nobody has any more. Without the lock the core may go with it.
  void Return(Task* task) KEEL_EXCLUDES(mutex_) {
    if (mutex_.TryLockAsOwner()) {
      const bool returned = pool_.TryReturnLocked(task);
      mutex_.Unlock();
      if (returned) return;
    }
    pool_.Return(task);
  }
  // Of a handle whose task is in the table, or was. The caller keeps the core.
  void Release(Task* task) KEEL_EXCLUDES(mutex_) {
    const BiasedMutexLock lock(mutex_);
    ReleaseLocked(task);
  }
  // For tests: of the dependencies.
  std::size_t segments() KEEL_EXCLUDES(mutex_);

 private:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;
  enum class Standing : std::uint8_t { kUp, kLost, kStarting, kGivenUp };

  struct Posted {
    std::uint64_t id = 0;  // of the task, by which the worker and its messages call it
    TaskKey task = 0;
    std::size_t member = 0;
    std::chrono::nanoseconds timeout{0};
  };
  struct Slot {
    std::string name;  // "worker 1 (sim:1)"
    std::string device;
    std::unique_ptr<Worker> worker;
    Space space = 0;  // of its memory; several workers may have one
    WorkerBlocks blocks;
    Standing standing = Standing::kUp;
    Status lost;                   // the last time
    std::uint64_t generation = 0;  // how often it was lost
    std::uint64_t restarts = 0;
    std::uint64_t tasks = 0;
    int failed_starts = 0;  // in a row
    bool used = false;      // it was sent a task since it was started, as far as is known
    Time started{};
    Time start_at{};                               // not before
    std::size_t controls = 0;                      // control calls under way, and sleepers
    EngineStats stats;                             // the last that was heard
    EngineStats earlier;                           // of those that were lost
    FixedQueue<Posted, Worker::kCapacity> posted;  // in that order
    std::size_t endless = 0;                       // of those posted, without a timeout
    std::chrono::nanoseconds posted_time{0};       // the timeouts of the others
    bool last_answer = false;                      // it said that it ends
    Time free_again{};                             // nothing is freed there sooner: it was busy
    std::size_t posted_count() const { return posted.size(); }
  };
  // What a thread that sleeps waits for. Kept for its memory.
  struct Sleeper {
    std::vector<Sign> answers;
    std::vector<WorkerId> workers;  // whose they are
  };
  // A task that stays whatever happens, for a while and with the lock.
  class Held {
   public:
    Held(OrchestratorCore& core, Task& task) : core_(&core), task_(&task) { task.Hold(); }
    Held(Held&& other) noexcept : core_(other.core_), task_(std::exchange(other.task_, nullptr)) {}
    Held& operator=(Held&&) = delete;
    ~Held() KEEL_NO_THREAD_SAFETY_ANALYSIS {
      if (task_ != nullptr) core_->ReleaseLocked(task_);
    }
    Task& operator*() const { return *task_; }
    Task* operator->() const { return task_; }

   private:
    OrchestratorCore* core_;
    Task* task_;
  };
  struct Ending {
    TaskKey task = 0;
    Status status;
  };
  struct AllWaiter {
    std::uint64_t last_id = 0;
    std::size_t left = 0;
    Waiter waiter;
  };
  struct DeferredUnregister {
    std::shared_ptr<const HostFunction> function;       // goes without the lock
    std::vector<std::optional<std::uint64_t>> numbers;  // where it is still to be done
    std::vector<std::uint64_t> generations;
    Time again{};  // not before: a worker was busy
  };

  Status Here() const {
    if (home_.here()) return OkStatus();
    return Elsewhere();
  }
  // Why nothing works here.
  static Status Elsewhere();
  Status CheckWorker(WorkerId worker) const;
  Deadline ControlDeadline() const { return Deadline::After(options_.control_timeout); }
  // Why a worker that was given up takes nothing.
  Status GivenUpLocked(WorkerId worker) const KEEL_REQUIRES(mutex_);
  Status NobodyLocked() const KEEL_REQUIRES(mutex_);

  // --- The start: orchestrator_core.cc ---------------------------------------------------------

  // Every worker at the same time, and what came of each. `start` is called by several threads.
  std::vector<Result<std::unique_ptr<Worker>>> StartAll(const StartWorker& start,
                                                        Deadline deadline) const;
  // Whose bytes a worker's addresses are: threads may share a memory. `slots` has it, and all
  // before it.
  Space SpaceOf(WorkerId worker, std::span<const Slot> slots) const;

  // --- Tasks: orchestrator_core.cc ---------------------------------------------------------

  // Null: it is no longer in the table.
  Task* FindLocked(TaskKey key) KEEL_REQUIRES(mutex_) {
    return keys_.alive(key) ? tasks_[TaskKeys::SlotOf(key)] : nullptr;
  }
  void ReleaseLocked(Task* task) KEEL_REQUIRES(mutex_) {
    if (task->ReleaseLocked()) ReturnLocked(task);
  }
  // The caller keeps the core.
  void ReturnLocked(Task* task) KEEL_REQUIRES(mutex_) {
    if (!pool_.TryReturnLocked(task)) pool_.Return(task);
  }
  Result<TaskHandle> SubmitPlain(Callable callable, std::optional<std::chrono::nanoseconds> timeout)
      KEEL_EXCLUDES(mutex_);
  Result<TaskHandle> SubmitMembers(Callable callable, std::span<const Arguments> members,
                                   bool group, std::span<const WorkerId> workers,
                                   const SubmitOptions& options) KEEL_EXCLUDES(mutex_);
  // Takes what is as good as for ever for that. kInvalidArgument: it is negative.
  static Status CheckTimeout(std::chrono::nanoseconds& timeout);
  // For a task. Most have the callable of the one before.
  Status CallableLocked(Callable callable, RegisteredCallable*& found) KEEL_REQUIRES(mutex_) {
    found = recent_callable_;
    if (found != nullptr && found->id == callable.id) return OkStatus();
    return FindCallableLocked(callable, found);
  }
  Status FindCallableLocked(Callable callable, RegisteredCallable*& found) KEEL_REQUIRES(mutex_);
  // Takes a task up that nothing is wrong with.
  void NumberLocked(Task& task, RegisteredCallable& callable) KEEL_REQUIRES(mutex_) {
    task.callable = &callable;
    ++callable.uses;
    task.id = ++last_id_;
    task.key = keys_.Take();
    if (TaskKeys::SlotOf(task.key) >= tasks_.size()) [[unlikely]] {
      tasks_.resize(keys_.slots());
    }
  }
  // What is wrong with a group, whatever the state.
  Status CheckGroupCall(std::span<const Arguments> members, std::span<const WorkerId> workers,
                        const SubmitOptions& options) const;
  // Of a task that is not plain: its members, where they run, and what they touch (touches_).
  Status PrepareLocked(Task& task, std::span<const Arguments> members,
                       std::span<const WorkerId> workers, const SubmitOptions& options)
      KEEL_REQUIRES(mutex_);
  // Where a member must run because of its resident tensors, and the blocks they are in. `meant`
  // begins with the numbers that are given of these, or is empty.
  Status PlaceLocked(const Arguments& arguments, std::optional<WorkerId>& worker,
                     std::span<const BlockId> meant, std::vector<std::shared_ptr<Block>>& blocks)
      KEEL_REQUIRES(mutex_);
  bool HoldsLocked(WorkerId worker, const Arguments& arguments,
                   std::span<const BlockId> meant) const KEEL_REQUIRES(mutex_);
  Status WhyNowhereLocked(const Arguments& arguments, std::optional<WorkerId> named,
                          std::span<const BlockId> meant) const KEEL_REQUIRES(mutex_);
  Status CheckGroupLocked(Task& task) KEEL_REQUIRES(mutex_);
  void TouchesLocked(Task& task) KEEL_REQUIRES(mutex_);
  void ReadyLocked(Task& task) KEEL_REQUIRES(mutex_);
  // Ends a task, and with an error those that depend on it. May be called again from within: it
  // works through a list, whatever the depth of a chain.
  void FinishLocked(TaskKey key, Status status) KEEL_REQUIRES(mutex_);
  void EndLocked(TaskKey key, Status status) KEEL_REQUIRES(mutex_);
  // Of a task in the table that was not done.
  void EndWellLocked(Task& task) KEEL_REQUIRES(mutex_) {
    PublishLocked(task);
    PassLocked(task);
  }
  // Makes the outcome known, and gives back what the task had. It stays in the table.
  void PublishLocked(Task& task, Status outcome) KEEL_REQUIRES(mutex_) {
    task.outcome = std::move(outcome);
    PublishLocked(task);
  }
  // With the outcome that it has.
  void PublishLocked(Task& task) KEEL_REQUIRES(mutex_) {
    ++ghosts_;
    if (!task.plain) ForgetMembersLocked(task);
    RegisteredCallable& callable = *task.callable;
    if (--callable.uses == 0 && callable.unregistered) LastUseLocked(callable);
    task.callable = nullptr;
    task.done.store(true, std::memory_order_release);
    if (task.waiters != nullptr || !all_waiters_.empty()) TellDoneLocked(task);
  }
  void ForgetMembersLocked(Task& task) KEEL_REQUIRES(mutex_);
  void LastUseLocked(const RegisteredCallable& callable) KEEL_REQUIRES(mutex_);
  void TellDoneLocked(Task& task) KEEL_REQUIRES(mutex_);
  // Takes a task that is done and waits for nothing out of the table, and lets those after it go
  // on: they are ready, or, if they are ghosts, go with it. It may be another task then.
  void PassLocked(Task& task) KEEL_REQUIRES(mutex_) {
    if (!task.dependents.empty()) {
      PassOnLocked(task);
    } else {
      LeaveTableLocked(task);
    }
  }
  void PassOnLocked(Task& first) KEEL_REQUIRES(mutex_);
  // The part of it that concerns the task alone.
  void LeaveTableLocked(Task& task) KEEL_REQUIRES(mutex_) {
    tasks_[TaskKeys::SlotOf(task.key)] = nullptr;
    keys_.Release(task.key);
    --ghosts_;
    if (task.waiters != nullptr) TellGoneLocked(task);
    if (task.LeaveTableLocked()) ReturnLocked(&task);
  }
  void TellGoneLocked(Task& task) KEEL_REQUIRES(mutex_);
  std::size_t UndoneLocked() const KEEL_REQUIRES(mutex_) { return keys_.size() - ghosts_; }
  void ReleaseLocked(const std::shared_ptr<Block>& block) KEEL_REQUIRES(mutex_);
  void ReadyWaiterLocked(Waiter& waiter) KEEL_REQUIRES(mutex_);

  // --- Moving on: orchestrator_pump.cc -----------------------------------------------------

  void PumpLocked() KEEL_REQUIRES(mutex_);
  // Whether there may be something to collect.
  bool AnsweredLocked() const KEEL_REQUIRES(mutex_);
  // In a row of submits: looks at the clock now and then, which the scheduler needs only to guess.
  // Whether to collect as well.
  bool LookNowAndThenLocked() KEEL_REQUIRES(mutex_);
  // Puts a task into the table, and lets it run if it need not wait.
  void EnterLocked(Task& task) KEEL_REQUIRES(mutex_);
  void StartLocked(Task& task, WorkerId first) KEEL_REQUIRES(mutex_) {
    task.phase = Task::Phase::kPosted;
    task.running = static_cast<std::uint32_t>(task.member_count());
    task.worker.store(static_cast<std::int32_t>(first), std::memory_order_relaxed);
  }
  void CollectLocked(WorkerId worker, Time now) KEEL_REQUIRES(mutex_);
  // So many of those posted first have ended well.
  void DoneLocked(WorkerId worker, std::size_t count, Time now) KEEL_REQUIRES(mutex_);
  void DispatchLocked(Time now) KEEL_REQUIRES(mutex_);
  // All members or none: false if a worker is lost or can never take its member; then the group is
  // ready again, or has ended.
  bool CanStartLocked(Task& group, std::span<const WorkerId> workers, Time now)
      KEEL_REQUIRES(mutex_);
  void PostLocked(Task& task, std::size_t member, WorkerId worker, Time now) KEEL_REQUIRES(mutex_);
  // Gives a member to its worker, which the scheduler has chosen. kResourceExhausted: not now.
  Status SendLocked(Task& task, std::size_t member, WorkerId worker) KEEL_REQUIRES(mutex_);
  // The short way for what is most. False: SendLocked tells.
  bool TrySendLocked(Task& task, WorkerId worker) KEEL_REQUIRES(mutex_) {
    Slot& slot = slots_[worker];
    if (!task.plain || task.timeout.count() != 0 || slot.standing != Standing::kUp ||
        sleepers_ != 0) {
      return false;
    }
    const std::optional<std::uint64_t>& number = task.callable->numbers[worker];
    if (!number.has_value() || !slot.worker->TryPost(task.id, *number)) return false;
    NotePostedLocked(slot, task, 0);
    return true;
  }
  void NotePostedLocked(Slot& slot, const Task& task, std::size_t member) KEEL_REQUIRES(mutex_) {
    Posted& posted = slot.posted.Append();
    posted.id = task.id;
    posted.task = task.key;
    posted.member = member;
    posted.timeout = task.timeout;
    slot.posted_time += task.timeout;
    if (task.timeout.count() == 0) ++slot.endless;
  }
  // What follows if it could not.
  void NotSentLocked(Task& task, WorkerId worker, Status why, Time now) KEEL_REQUIRES(mutex_);
  void MemberEndedLocked(Task& task, Status status) KEEL_REQUIRES(mutex_);
  // Ready again: it was not begun.
  void AgainLocked(Task& task) KEEL_REQUIRES(mutex_);
  // Looks, and if the worker is lost does everything that follows.
  bool CheckHealthLocked(WorkerId worker) KEEL_REQUIRES(mutex_);
  void LostLocked(WorkerId worker, Status why) KEEL_REQUIRES(mutex_);
  void GiveUpLocked(WorkerId worker) KEEL_REQUIRES(mutex_);
  Deadline NextWakeLocked() const KEEL_REQUIRES(mutex_);
  // Pumps, or lets another thread do so, until the waiter is ready. False: the deadline.
  bool WaitLocked(Waiter& waiter, Deadline deadline) KEEL_REQUIRES(mutex_);
  bool WaitForTaskLocked(Task& task, Deadline deadline) KEEL_REQUIRES(mutex_);
  // Looks briefly for the answer of the worker that has the task, and collects it: most tasks that
  // somebody waits for are about to end. Whether it is done.
  bool CollectSoonLocked(Task& task) KEEL_REQUIRES(mutex_);
  // Until what a ghost waits for is done as well.
  bool WaitForGoneLocked(Task& task, Deadline deadline) KEEL_REQUIRES(mutex_);
  bool WaitForAllLocked(std::uint64_t last, Deadline deadline) KEEL_REQUIRES(mutex_);
  void SleepLocked(Sleeper& sleeper, std::uint32_t seen, Deadline deadline) KEEL_REQUIRES(mutex_);
  void NeedKeeperLocked() KEEL_REQUIRES(mutex_) {
    if (!keeper_asleep_) return;
    keeper_asleep_ = false;
    keeper_nap_.Ring();
  }
  void Keep() KEEL_EXCLUDES(mutex_);

  // --- Memory and callables: orchestrator_control.cc ----------------------------------------

  // Counts a control call in, which keeps the worker from being started again. Waits for a worker
  // that is being started.
  Status EnterLocked(WorkerId worker, Deadline deadline) KEEL_REQUIRES(mutex_);
  // `outcome` may say that the worker is lost.
  void LeaveLocked(WorkerId worker, const Status& outcome) KEEL_REQUIRES(mutex_);
  // `copy` is called without the lock.
  template <class CopyBytes>
  Status Copy(WorkerId worker, DeviceAddress address, const void* host, Bytes size, bool writes,
              BlockId id, CopyBytes copy) KEEL_EXCLUDES(mutex_);
  // Finds the block and waits for the tasks that are in the way. The block has a use more.
  Status BeginCopyLocked(WorkerId worker, DeviceAddress address, const void* host, Bytes size,
                         bool writes, BlockId id, Deadline deadline, std::shared_ptr<Block>& block)
      KEEL_REQUIRES(mutex_);
  Status FreeNowLocked(const std::shared_ptr<Block>& block) KEEL_REQUIRES(mutex_);
  Status RegisterOn(WorkerId worker, std::uint64_t callable, const HostCode& code)
      KEEL_EXCLUDES(mutex_);
  static Result<std::uint64_t> RegisterWith(Worker& worker, const HostCode& code,
                                            Deadline deadline);
  // Takes the callable out of the table; of one that is not there nothing is left to do.
  DeferredUnregister ForgetLocked(std::uint64_t callable) KEEL_REQUIRES(mutex_);
  // What a worker is too busy for is left to the mender.
  Status UnregisterNowLocked(DeferredUnregister callable) KEEL_REQUIRES(mutex_);
  // Asks the worker, if it has time.
  WorkerReport ReportLocked(WorkerId worker) KEEL_REQUIRES(mutex_);
  // Whether another worker has the same memory.
  bool SharesSpaceLocked(WorkerId worker) const KEEL_REQUIRES(mutex_);

  // --- The mender: orchestrator_mender.cc ---------------------------------------------------

  // Returns what must outlive the thread, if it was left behind.
  std::shared_ptr<OrchestratorCore> Mend() KEEL_EXCLUDES(mutex_);
  void RestartLocked(WorkerId worker) KEEL_REQUIRES(mutex_);
  Result<std::vector<std::pair<std::uint64_t, std::uint64_t>>> StartAgain(
      Worker& worker, const std::vector<std::pair<std::uint64_t, HostCode>>& callables)
      KEEL_EXCLUDES(mutex_);

  const OrchestratorOptions options_;
  const Home home_;
  const Arguments no_arguments_;
  std::shared_ptr<Doorbell> doorbell_;  // set by Create

  TaskPool pool_;

  BiasedMutex mutex_;
  TaskKeys keys_ KEEL_GUARDED_BY(mutex_);
  Dependencies dependencies_ KEEL_GUARDED_BY(mutex_);
  Scheduler scheduler_ KEEL_GUARDED_BY(mutex_);
  std::vector<Task*> tasks_ KEEL_GUARDED_BY(mutex_);  // by the slot of the key; or null
  std::vector<Slot> slots_ KEEL_GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, RegisteredCallable> callables_ KEEL_GUARDED_BY(mutex_);
  std::uint64_t last_callable_ KEEL_GUARDED_BY(mutex_) = 0;
  // The last that a task was submitted with; null after it was unregistered.
  RegisteredCallable* recent_callable_ KEEL_GUARDED_BY(mutex_) = nullptr;
  std::uint64_t last_id_ KEEL_GUARDED_BY(mutex_) = 0;
  bool stopping_ KEEL_GUARDED_BY(mutex_) = false;
  std::size_t ghosts_ KEEL_GUARDED_BY(mutex_) = 0;  // done, and still in the table

  std::vector<Ending> endings_ KEEL_GUARDED_BY(mutex_);
  bool ending_ KEEL_GUARDED_BY(mutex_) = false;
  // Kept for their memory.
  std::vector<Touch> touches_ KEEL_GUARDED_BY(mutex_);
  std::vector<std::size_t> touch_members_ KEEL_GUARDED_BY(mutex_);
  std::vector<std::size_t> touch_arguments_ KEEL_GUARDED_BY(mutex_);
  std::vector<TaskKey> waits_for_ KEEL_GUARDED_BY(mutex_);
  std::vector<TaskResult> results_ KEEL_GUARDED_BY(mutex_);

  Waiter* leader_ KEEL_GUARDED_BY(mutex_) = nullptr;
  std::vector<Waiter*> followers_ KEEL_GUARDED_BY(mutex_);
  std::list<AllWaiter> all_waiters_ KEEL_GUARDED_BY(mutex_);
  // Threads that sleep on the doorbell, and when they wake by themselves at the latest.
  int sleepers_ KEEL_GUARDED_BY(mutex_) = 0;
  Sleeper leader_sleep_;  // the leader's
  Sleeper keeper_sleep_;  // the keeper's
  Deadline wake_ KEEL_GUARDED_BY(mutex_) = Deadline::Never();
  Time now_ KEEL_GUARDED_BY(mutex_) = Clock::now();   // the last look at the clock
  unsigned submits_ KEEL_GUARDED_BY(mutex_) = 0;      // since then
  std::uint32_t pumped_ KEEL_GUARDED_BY(mutex_) = 0;  // the doorbell at the last pump

  BiasedCondVar workers_changed_;
  // How often a thread that submits has looked after all workers.
  std::atomic<std::uint64_t> looks_ = 0;
  Nap keeper_nap_;
  bool keeper_asleep_ KEEL_GUARDED_BY(mutex_) = false;  // until it is rung
  BiasedCondVar mender_ring_;
  bool mended_ KEEL_GUARDED_BY(mutex_) = false;  // the mender has ended
  BiasedCondVar mender_ended_;
  std::shared_ptr<OrchestratorCore> orphan_ KEEL_GUARDED_BY(mutex_);  // for a mender left behind
  std::vector<std::shared_ptr<Block>> frees_ KEEL_GUARDED_BY(mutex_);
  std::vector<DeferredUnregister> unregisters_ KEEL_GUARDED_BY(mutex_);
  std::thread keeper_;
  std::thread mender_;
};

// What users have of a core. The only one of it.
std::unique_ptr<Orchestrator> OrchestratorOf(std::shared_ptr<OrchestratorCore> core);

}  // namespace keel::task
