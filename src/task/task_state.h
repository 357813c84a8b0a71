// What a TaskHandle and the core share about one task, or group. One allocation; whoever has a
// handle keeps it, and the core's table does until the task is done. Then nothing is left in it but
// the outcome. A task that ended without having run, while it still waited for others, stays in the
// table as a ghost until these are done: what comes after it must come after them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

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
  bool for_gone = false;   // until the task has left the table, not only until it is done
  Waiter* next = nullptr;  // of the same task
  CondVar changed;
};

struct TaskHandle::State {
  struct Member {
    Arguments arguments;
    std::optional<WorkerId> worker;  // if only that one will do
  };
  enum class Phase : std::uint8_t { kWaits, kReady, kPosted };

  // Set by Submit, and never again.
  std::shared_ptr<OrchestratorCore> core;
  std::uint64_t id = 0;

  // Any thread. `outcome` is written before `done` is set, and never after.
  std::atomic<bool> done{false};
  std::atomic<std::int64_t> worker{-1};
  Status outcome;

  // Under the core's lock.
  TaskKey key = 0;
  RegisteredCallable* callable = nullptr;
  std::chrono::nanoseconds timeout{0};
  Member first;
  std::vector<Member> rest;  // of a group
  bool group = false;
  Phase phase = Phase::kWaits;
  std::uint32_t waits_for = 0;  // tasks
  std::uint32_t running = 0;    // members
  Status error;                 // the first of a member
  std::vector<TaskKey> dependents;
  std::vector<std::shared_ptr<Block>> blocks;
  Waiter* waiters = nullptr;

  std::size_t member_count() const { return 1 + rest.size(); }
  Member& member(std::size_t i) { return i == 0 ? first : rest[i - 1]; }
  void AddWaiter(Waiter& waiter) { waiter.next = std::exchange(waiters, &waiter); }
  void RemoveWaiter(const Waiter& waiter) {
    Waiter** at = &waiters;
    while (*at != &waiter) at = &(*at)->next;
    *at = waiter.next;
  }
};

}  // namespace keel::task
