// What a TaskHandle and the core share about one task, or group. One allocation, which counts who
// holds it: whoever has a handle, and the core's table until the task is done. Then nothing is left
// in it but the outcome. A task that ended without having run, while it still waited for others,
// stays in the table as a ghost until these are done: what comes after it must come after them.
//
// What nobody holds any more is kept for the next task (TaskPool).
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/fork.h"
#include "keel/base/mutex.h"
#include "keel/task/orchestrator.h"
#include "task/task_keys.h"
#include "task/worker_blocks.h"

namespace keel::task {

class OrchestratorCore;
struct RegisteredCallable;

// Somebody who waits; on the waiter's stack. Guarded by the core's lock.
struct Waiter {
  bool ready = false;
  bool for_gone = false;           // until the task has left the table, not only until it is done
  Waiter* next = nullptr;          // of the same task
  std::optional<CondVar> changed;  // of one that does not lead
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

  // One with so many holders, as new. One thread at a time, and none after Close: the core's lock.
  inline State* Take(OrchestratorCore& core, std::uint32_t holders);
  // Any thread. Precondition: nobody holds it.
  void Return(State* state);
  // Gives back what is here; what comes later it gives back at once. With the core's lock.
  void Close();

 private:
  // What `returned_` is after Close.
  static State* Closed();
  // What came back, or new ones, for free_.
  void Refill(OrchestratorCore& core);

  State* free_ = nullptr;                  // the core's lock
  std::size_t made_ = 0;                   // of those that are kept
  std::atomic<State*> returned_{nullptr};  // since free_ was empty
};

struct alignas(64) TaskHandle::State {
  void Hold() { holders_.fetch_add(1, std::memory_order_relaxed); }
  void Release() {
    // Who is alone is told so by a look.
    if (holders_.load(std::memory_order_acquire) != 1 &&
        holders_.fetch_sub(1, std::memory_order_acq_rel) != 1) {
      return;
    }
    if (home_.here()) ReturnToPool();
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
  std::atomic<std::uint32_t> holders_{0};
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
  State* next_ = nullptr;  // in the pool
  const Home home_;        // in a forked child it stays as it is

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
  void ReturnToPool();
  // Of one that has ended, or was never submitted.
  void Renew(std::uint32_t holders) {
    holders_.store(holders, std::memory_order_relaxed);
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

TaskPool::State* TaskPool::Take(OrchestratorCore& core, std::uint32_t holders) {
  if (free_ == nullptr) [[unlikely]] {
    Refill(core);
  }
  State* const state = std::exchange(free_, free_->next_);
  state->Renew(holders);
  return state;
}

// Holds a task's state.
class TaskRef {
 public:
  TaskRef() = default;
  TaskRef(std::nullptr_t) {}  // NOLINT: as pointers do
  // Takes over what one holder had.
  explicit TaskRef(TaskHandle::State* held) : state_(held) {}
  TaskRef(const TaskRef& other) : state_(other.state_) {
    if (state_ != nullptr) state_->Hold();
  }
  TaskRef(TaskRef&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  TaskRef& operator=(TaskRef other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~TaskRef() {
    if (state_ != nullptr) state_->Release();
  }

  TaskHandle::State& operator*() const { return *state_; }
  TaskHandle::State* operator->() const { return state_; }
  bool operator==(std::nullptr_t) const { return state_ == nullptr; }

 private:
  TaskHandle::State* state_ = nullptr;
};

}  // namespace keel::task
