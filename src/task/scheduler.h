// Scheduler: which ready task goes to which worker next. Pure bookkeeping: no thread, no device, no
// clock but the one that the caller reads.
//
// Work is bound to a worker (a task that names one, or has its tensors there), bound to several (a
// group), or free. Of each kind the order is that of Submit. A group is open if a member of it
// names no worker.
// - Bound work comes before free work on its worker, but an open group only before what was
//   submitted later: it could have gone elsewhere, as free work can. A worker that is busy delays
//   only what is bound to it.
// - A free task goes to the worker that has least, among those without ready bound work, or whose
//   oldest is an open group that is younger than the task.
// - A group is bound when it gets ready: members without a worker get those that have least. It
//   starts when all of its workers have nothing posted, it is the oldest ready work of each and, if
//   it is open, no older free task is ready; then on all of them in one step. A worker whose oldest
//   ready work is a group takes nothing else until the group has started, but for older free tasks
//   if it is open: it is reserved.
//
// Promised: every ready task starts, if tasks that started end and its workers come up again.
// Why it cannot deadlock: the oldest bound work is the oldest of each of its workers, so all of
// these are reserved for it, get idle as what they run ends, and it starts; then the next is the
// oldest. Before it go at most the free tasks that are older, of which there is a last one: an open
// group that they keep from starting has workers that take them. Work that comes later never goes
// before it. For the same reason neither groups nor bound tasks starve. Free work waits as long as
// all workers have work that names them: that is what "before" means. Open groups do not starve it:
// those that are older than a free task come to an end, and the others let it go first. A group one
// of whose workers is down reserves nothing: its members without a worker of their own go
// elsewhere, or it is set aside until the worker is up.
//
// Posting ahead. So that a worker need not wait for the next task, bound tasks are posted up to the
// worker's capacity. Free tasks are, only while more are ready than workers are up, or if there is
// but one worker, and no more than the worker ended in the last half millisecond: a long task
// should not have others behind it while another worker is idle.
//
// Costs O(workers + log ready) for each task. Not thread-safe: the owner has a lock.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "keel/task/orchestrator.h"
#include "task/task_keys.h"

namespace keel::task {

class Scheduler {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr WorkerId kNobody = ~WorkerId{0};

  // All workers are up and have nothing. `capacity`: the most tasks posted to one.
  Scheduler(std::size_t workers, std::size_t capacity)
      : capacity_(capacity), workers_(workers), up_(workers), left_(workers) {}

  // --- Ready work. `order` is unique, and smaller for what was submitted earlier. ---------------

  // False: the worker (or, of a free task, every worker) has been given up.
  bool Add(TaskKey task, std::uint64_t order, std::optional<WorkerId> worker);
  // One element for each member. False: a worker that it names was given up, or there are fewer
  // workers than members. Precondition: the workers that are named are different ones.
  bool AddGroup(TaskKey task, std::uint64_t order,
                std::span<const std::optional<WorkerId>> members);

  // --- Starting ----------------------------------------------------------------------------

  struct Start {
    TaskKey task = 0;
    std::span<const WorkerId> workers;  // one for each member; valid until the next call
  };
  // What to post next; it counts as posted now.
  std::optional<Start> Next(Time now);
  // Add and Next of a task that is no group, in one step: the worker that takes it at once, because
  // nothing else is ready. kNobody: none does, and nothing has changed.
  WorkerId StartAtOnce(std::optional<WorkerId> worker, Time now) {
    if (ready_ != 0) return kNobody;
    WorkerId chosen = kNobody;
    if (!worker.has_value()) {
      chosen = WorkerForFree(1, 0, now);
    } else if (Takes(workers_[*worker]) && workers_[*worker].posted < capacity_) {
      chosen = *worker;
    }
    if (chosen != kNobody) Post(chosen, now);
    return chosen;
  }
  // So many tasks that were posted to the worker have ended.
  void Ended(WorkerId worker, Time now, std::size_t count = 1);
  // What Next returned could not be posted there now. Add it again: the worker takes nothing until
  // something there has ended, or Retry.
  void Refused(WorkerId worker);
  // Whether a worker that has nothing posted refused a task, so that nothing will end there.
  bool NeedsRetry() const;
  void Retry();

  // --- Workers -----------------------------------------------------------------------------

  void SetUp(WorkerId worker);
  // What is posted there still counts, until Ended. Bound work waits.
  void SetDown(WorkerId worker);
  // For ever. Appends to `stranded`, and forgets, the work that now can run nowhere.
  void GiveUp(WorkerId worker, std::vector<TaskKey>& stranded);

  // Forgets ready work. O(ready).
  void RemoveIf(const std::function<bool(TaskKey)>& gone);

  std::size_t ready() const { return ready_; }
  std::size_t posted(WorkerId worker) const { return workers_[worker].posted; }

 private:
  struct Entry {
    std::uint64_t order = 0;
    TaskKey task = 0;
    bool group = false;
    bool open = false;  // a group of which a member names no worker
  };
  // The smallest order first. Most come in that order, and cost no search.
  class Queue {
   public:
    bool empty() const { return size_ == 0; }
    std::size_t size() const { return size_; }
    const Entry& front() const { return InLine() ? line_.front() : heap_.front(); }
    void Push(const Entry& entry);
    void Pop();
    std::size_t EraseIf(const std::function<bool(const Entry&)>& gone);

   private:
    // Whether the first is there, and not in the heap.
    bool InLine() const {
      return heap_.empty() || (!line_.empty() && line_.front().order < heap_.front().order);
    }
    static bool Later(const Entry& a, const Entry& b) { return a.order > b.order; }

    std::size_t size_ = 0;     // of both, because it is asked all the time
    std::deque<Entry> line_;   // each came with a larger order than those before it
    std::vector<Entry> heap_;  // the others
  };
  struct WorkerState {
    std::size_t posted = 0;
    bool up = true;
    bool given_up = false;
    bool refused = false;
    // How many tasks end there in kSlice, measured over the last one; at most the capacity.
    std::size_t ahead = 1;
    std::size_t ended = 0;
    Time slice{};
    Time progress{};
    Queue bound;
  };
  struct Member {
    WorkerId worker = 0;
    bool named = false;
  };
  struct Group {
    std::uint64_t order = 0;
    std::vector<Member> members;
    bool aside = false;   // in no queue: one of its workers is down
    bool moving = false;  // about to be bound again
  };
  static constexpr std::chrono::microseconds kSlice{500};

  bool Takes(const WorkerState& worker) const { return worker.up && !worker.refused; }
  // Whether it lets a free task go first.
  static bool IsBehind(const Entry& entry, std::uint64_t free_task) {
    return entry.open && free_task < entry.order;
  }
  // For the oldest of so many free ones that are ready. kNobody: none takes one.
  WorkerId WorkerForFree(std::size_t ready, std::uint64_t order, Time now) const {
    // Where there is one worker nobody else could take it sooner.
    const bool many = ready > up_ || left_ == 1;
    WorkerId best = kNobody;
    std::size_t least = 0;  // posted there
    WorkerId w = 0;
    for (const WorkerState& worker : workers_) {
      const bool ahead = many && now - worker.progress < kSlice;
      const bool takes = Takes(worker) && worker.posted < (ahead ? worker.ahead : 1) &&
                         (worker.bound.empty() || IsBehind(worker.bound.front(), order)) &&
                         (best == kNobody || worker.posted < least);
      if (takes) {
        best = w;
        least = worker.posted;
      }
      ++w;
    }
    return best;
  }
  bool CanStart(TaskKey task, const Group& group) const;
  void Post(WorkerId worker, Time now) {
    WorkerState& state = workers_[worker];
    if (state.posted == 0) state.progress = now;
    ++state.posted;
  }
  // Chooses workers for the members that name none, and queues the group or sets it aside. False:
  // it cannot run any more.
  bool Bind(TaskKey task, Group& group);
  // Binds those again that `worker` belongs to, or that are aside. Appends those that cannot run.
  // O(ready).
  void Rebind(WorkerId worker, std::vector<TaskKey>* stranded);
  std::size_t Load(const WorkerState& worker) const { return worker.posted + worker.bound.size(); }

  const std::size_t capacity_;
  std::vector<WorkerState> workers_;
  std::size_t up_;    // of them
  std::size_t left_;  // that were not given up
  Queue free_;
  std::unordered_map<TaskKey, Group> groups_;  // ready ones
  std::vector<WorkerId> start_;
  std::size_t ready_ = 0;
  // Next found nothing, and nothing has changed since that would make it find something.
  bool stuck_ = false;
};

}  // namespace keel::task
