// What a TaskHandle and the core share about one task, or group. One allocation, which is there as
// long as somebody has a handle or it is in the core's table, which it leaves when it is done. Then
// nothing is left in it but the outcome. A task that ended without having run, while it still
// waited for others, stays in the table as a ghost until these are done: what comes after it must
// come after them.
//
// Handles are counted. The table is not, which would cost every task an atomic exchange: it leaves
// a mark in a task that it lets go (`gone_`), and while that is not there the last handle is given
// up under the core's lock, so that the table knows whether it is alone. Of several any but the
// last is given up without it: nobody may be kept waiting by whoever has that lock for long, as
// Close does, who needs no more than a number changed.
//
// What nobody has any more is kept for the next task (TaskPool).
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/biased_mutex.h"
#include "base/fork.h"
#include "keel/task/orchestrator.h"
#include "task/task_keys.h"
#include "task/worker_blocks.h"

namespace keel::task {

class OrchestratorCore;
struct RegisteredCallable;

// Somebody who waits; on the waiter's stack. Guarded by the core's lock.
struct Waiter {
  bool ready = false;
  bool for_gone = false;   // until the task has left the table, not only until it is done
  Waiter* next = nullptr;  // of the same task
  std::optional<BiasedCondVar> changed;  // of one that does not lead
};

// States of tasks, of which the first kKept are used again and again: a task then costs neither the
// memory's allocator nor a count of the core's holders. They are made several at a time, so that
// most are taken without a look at what was returned. Each of them holds the core, also while it
// is here: only after Close does the core go with its last holder.
class TaskPool {
 public:
  using State = TaskHandle::State;
  static constexpr std::size_t kKept = 4096;
  static constexpr std::size_t kAtATime = 32;

  // One with one handle, as new. One thread at a time, and none after Close: the core's lock.
  inline State* Take(OrchestratorCore& core);
  // Any thread. Precondition: nobody has it.
  void Return(State* state);
  // The same with the core's lock, if it is kept. False: Return, without the lock: the core may go
  // with it.
  inline bool TryReturnLocked(State* state);
  // Gives back what is here; what comes later it gives back at once. With the core's lock.
  void Close();

 private:
  // What `returned_` is after Close.
  static State* Closed();
  // What came back, or new ones, for free_.
  void Refill(OrchestratorCore& core);

  // Under the core's lock.
  State* free_ = nullptr;
  bool closed_ = false;
  std::size_t made_ = 0;                   // of those that are kept
  std::atomic<State*> returned_{nullptr};  // since free_ was empty
};

struct alignas(64) TaskHandle::State {
  // For whoever has one handle already, or the core's lock while it is in the table.
  void Hold() { handles_.fetch_add(1, std::memory_order_relaxed); }
  // Without the core's lock.
  void Release() {
    if (!gone_.load(std::memory_order_acquire)) [[unlikely]] {
      if (!ReleaseOneOfSeveral()) ReleaseInTable();
    } else if ((handles_.load(std::memory_order_acquire) == 1 ||  // alone, as a look tells
                handles_.fetch_sub(1, std::memory_order_acq_rel) == 1) &&
               home_.here()) {
      ReturnToPool();
    }
  }
  // With it. True: nobody has it any more, and the caller returns it to the pool.
  [[nodiscard]] bool ReleaseLocked() {
    return handles_.fetch_sub(1, std::memory_order_acq_rel) == 1 &&
           gone_.load(std::memory_order_relaxed);
  }
  // Any thread that has a handle.
  bool gone() const { return gone_.load(std::memory_order_acquire); }
  // When it leaves the table; likewise. If it is false it may be another task by now.
  [[nodiscard]] bool LeaveTableLocked() {
    if (handles_.load(std::memory_order_acquire) == 0) return true;
    gone_.store(true, std::memory_order_release);
    return false;
  }

  struct Member {
    Arguments arguments;
    std::optional<WorkerId> worker;  // if only that one will do
  };
  enum class Phase : std::uint8_t { kWaits, kReady, kPosted };

  // What a plain task needs is on two lines of the cache: of a thousand that are under way none is
  // near when its turn comes.
 private:
  friend class TaskPool;
  std::atomic<std::uint32_t> handles_{0};
  const bool kept_;

 public:
  // Any thread. `outcome` is not touched after `done` was set.
  std::atomic<bool> done{false};
  // Under the core's lock, from here on, but where it says otherwise.
  bool group = false;
  bool plain = true;  // one member, without arguments, for any worker: `first` is as it was made
  Phase phase = Phase::kWaits;
  std::atomic<std::int32_t> worker{-1};  // any thread

 private:
  std::atomic<bool> gone_{true};  // it is not in the table, and never will be again
  State* next_ = nullptr;         // in the pool
  const Home home_;               // in a forked child it stays as it is

 public:
  // Never changes.
  const std::shared_ptr<OrchestratorCore> core;
  // Set by Submit.
  std::uint64_t id = 0;
  Status outcome;  // before it is done: the first error of a member

  TaskKey key = 0;
  RegisteredCallable* callable = nullptr;
  Waiter* waiters = nullptr;
  std::vector<TaskKey> dependents;
  std::uint32_t waits_for = 0;  // tasks
  std::uint32_t running = 0;    // members
  std::chrono::nanoseconds timeout{0};

  // Of a task that is not plain.
  Member first;
  std::vector<Member> rest;  // of a group
  std::vector<std::shared_ptr<Block>> blocks;

  // Arguments and blocks, but for the memory of a few, which serves the next task.
  void ForgetMembers();
  std::size_t member_count() const { return plain ? 1 : 1 + rest.size(); }
  Member& member(std::size_t i) { return i == 0 ? first : rest[i - 1]; }
  void AddWaiter(Waiter& waiter) { waiter.next = std::exchange(waiters, &waiter); }
  void RemoveWaiter(const Waiter& waiter) {
    Waiter** at = &waiters;
    while (*at != &waiter) at = &(*at)->next;
    *at = waiter.next;
  }

 private:
  State(std::shared_ptr<OrchestratorCore> its_core, bool kept)
      : kept_(kept), core(std::move(its_core)) {}
  ~State() = default;
  // False: it may be the last one.
  bool ReleaseOneOfSeveral() {
    std::uint32_t handles = handles_.load(std::memory_order_relaxed);
    while (handles > 1) {
      if (handles_.compare_exchange_weak(handles, handles - 1, std::memory_order_acq_rel,
                                         std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }
  void ReleaseInTable();
  void ReturnToPool();
  // Of one that has ended, or was never submitted.
  void Renew() {
    handles_.store(1, std::memory_order_relaxed);
    gone_.store(false, std::memory_order_relaxed);
    done.store(false, std::memory_order_relaxed);
    worker.store(-1, std::memory_order_relaxed);
    phase = Phase::kWaits;
    waits_for = 0;
    running = 0;
    // Of a task that was submitted nothing else is left.
    callable = nullptr;
    if (!outcome.ok()) [[unlikely]] {
      outcome = OkStatus();
    }
    if (!plain) [[unlikely]] {
      RenewMembers();
    }
  }
  void RenewMembers();
};

bool TaskPool::TryReturnLocked(State* state) {
  if (!state->kept_ || closed_) [[unlikely]] {
    return false;
  }
  state->next_ = std::exchange(free_, state);
  return true;
}

TaskPool::State* TaskPool::Take(OrchestratorCore& core) {
  if (free_ == nullptr) [[unlikely]] {
    Refill(core);
  }
  State* const state = std::exchange(free_, free_->next_);
  state->Renew();
  return state;
}

}  // namespace keel::task
