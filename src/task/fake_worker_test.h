// A worker that does what a test tells it, for the tests of what drives workers.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "keel/base/mutex.h"
#include "task/worker.h"

namespace keel::task {

// Any thread may call the functions of the test's side.
class FakeWorker final : public Worker {
 public:
  explicit FakeWorker(std::shared_ptr<Doorbell> doorbell) : doorbell_(std::move(doorbell)) {}

  // --- The test's side -------------------------------------------------------------------------

  // How many tasks were posted, and not answered.
  std::size_t posted() const {
    const MutexLock lock(mutex_);
    return posted_.size();
  }
  std::size_t ever_posted() const {
    const MutexLock lock(mutex_);
    return ever_posted_;
  }
  // Answers the oldest. `late`: its results took longer than those of tasks behind it.
  void Answer(Status status = OkStatus(), bool late = false) {
    {
      const MutexLock lock(mutex_);
      results_.push_back({.task = posted_.front().task, .status = std::move(status), .late = late});
      posted_.pop_front();
    }
    doorbell_->Ring();
  }
  // From now on what is lost was never sent: its tensors are on their way.
  void SendNothing() {
    const MutexLock lock(mutex_);
    sends_ = false;
  }
  // Answers the oldest, and is gone with it.
  void AnswerAndLose(Status status) {
    {
      const MutexLock lock(mutex_);
      results_.push_back({.task = posted_.front().task, .status = std::move(status)});
      posted_.pop_front();
      lost_ = Unavailable("it ended");
    }
    doorbell_->Ring();
  }
  void Lose(Status why) {
    {
      const MutexLock lock(mutex_);
      lost_ = std::move(why);
    }
    doorbell_->Ring();
  }
  // From now on every task is answered when it is posted.
  void SetEager(bool eager) {
    const MutexLock lock(mutex_);
    eager_ = eager;
  }
  // The same, and what tells of answers is a word, as of a real worker while nobody sleeps.
  void SetQuiet() {
    const MutexLock lock(mutex_);
    eager_ = quiet_ = true;
  }
  // What the next posts, frees, registrations and restarts return.
  void FailPost(Status status) {
    const MutexLock lock(mutex_);
    post_ = std::move(status);
  }
  // From now on Post does not come back until it is let go.
  void HoldPost(bool hold) {
    const MutexLock lock(mutex_);
    hold_post_ = hold;
    post_held_.NotifyAll();
  }
  bool IsHeldInPost() const {
    const MutexLock lock(mutex_);
    return in_held_post_;
  }
  void FailFits(Status status) {
    const MutexLock lock(mutex_);
    fits_ = std::move(status);
  }
  void FailFree(Status status) {
    const MutexLock lock(mutex_);
    free_ = std::move(status);
  }
  void FailUnregister(Status status) {
    const MutexLock lock(mutex_);
    unregister_ = std::move(status);
  }
  void FailRegister(Status status) {
    const MutexLock lock(mutex_);
    register_ = std::move(status);
  }
  // The registration after so many fails, once.
  void FailRegisterAfter(int count) {
    const MutexLock lock(mutex_);
    fail_register_in_ = count + 1;
  }
  void FailRestart(Status status) {
    const MutexLock lock(mutex_);
    restart_ = std::move(status);
  }
  // From now on Restart does not come back until it is let go.
  void HoldRestart(bool hold) {
    const MutexLock lock(mutex_);
    hold_restart_ = hold;
    restart_held_.NotifyAll();
  }
  int restarts() const {
    const MutexLock lock(mutex_);
    return restarts_;
  }
  std::vector<DeviceAddress> freed() const {
    const MutexLock lock(mutex_);
    return freed_;
  }
  // Of the last call.
  Deadline stats_deadline() const {
    const MutexLock lock(mutex_);
    return stats_deadline_;
  }
  std::size_t callables() const {
    const MutexLock lock(mutex_);
    return callables_.size();
  }

  // --- Worker ------------------------------------------------------------------------------------

  Status Post(std::uint64_t task, std::uint64_t callable, const Arguments& /*arguments*/,
              Deadline deadline) override {
    {
      const MutexLock lock(mutex_);
      in_held_post_ = hold_post_;
      while (hold_post_) post_held_.Wait(mutex_);
      in_held_post_ = false;
      if (!lost_.ok()) return lost_;
      if (!post_.ok()) return post_;
      if (posted_.size() >= kCapacity) return ResourceExhausted("full");
      if (std::find(callables_.begin(), callables_.end(), callable) == callables_.end()) {
        return NotFound("no such callable");
      }
      ++ever_posted_;
      if (!eager_) {
        posted_.push_back({task, deadline});
        return OkStatus();
      }
      results_.push_back({.task = task, .status = OkStatus()});
      std::atomic_ref(answered_).store(ever_posted_, std::memory_order_release);
      if (quiet_) return OkStatus();
    }
    doorbell_->Ring();
    return OkStatus();
  }
  Sign NextAnswer() const override {
    const MutexLock lock(mutex_);
    if (!quiet_) return {};
    return {&answered_, static_cast<std::uint32_t>(ever_posted_ - results_.size() + 1)};
  }
  Status Fits(const Arguments& /*arguments*/) const override {
    const MutexLock lock(mutex_);
    return fits_;
  }
  // As a real one: nothing, if there is anything to be said of a task.
  std::size_t TakeDone() override {
    const MutexLock lock(mutex_);
    const auto well = [](const TaskResult& result) { return result.status.ok(); };
    if (!lost_.ok() || !std::ranges::all_of(results_, well)) return 0;
    if (std::ranges::any_of(results_, &TaskResult::late)) return 0;
    const std::size_t count = results_.size();
    results_.clear();
    return count;
  }
  void Collect(std::vector<TaskResult>& results) override {
    const MutexLock lock(mutex_);
    for (TaskResult& result : results_) results.push_back(std::move(result));
    results_.clear();
    if (lost_.ok() && !posted_.empty() && posted_.front().deadline.Passed()) {
      lost_ = Unavailable("too slow");
      results.push_back({.task = posted_.front().task, .status = DeadlineExceeded("too slow")});
      posted_.pop_front();
    }
    if (lost_.ok()) return;
    for (const Posted& each : posted_) {
      results.push_back({.task = each.task, .status = lost_, .sent = sends_});
    }
    posted_.clear();
  }
  Deadline NextDeadline() const override {
    const MutexLock lock(mutex_);
    Deadline next = Deadline::Never();
    for (const Posted& each : posted_) {
      if (each.deadline.when() < next.when()) next = each.deadline;
    }
    return next;
  }
  Result<DeviceAddress> Allocate(Bytes /*size*/, Deadline /*deadline*/) override {
    const MutexLock lock(mutex_);
    KEEL_TRY(lost_);
    next_address_ = next_address_ + 1_MiB;
    return next_address_;
  }
  Status Free(DeviceAddress address, Deadline /*deadline*/) override {
    const MutexLock lock(mutex_);
    KEEL_TRY(lost_);
    KEEL_TRY(free_);
    freed_.push_back(address);
    return OkStatus();
  }
  Status CopyTo(DeviceAddress /*destination*/, const void* /*source*/, Bytes /*size*/,
                Deadline /*deadline*/) override {
    return Health();
  }
  Status CopyFrom(void* /*destination*/, DeviceAddress /*source*/, Bytes /*size*/,
                  Deadline /*deadline*/) override {
    return Health();
  }
  Result<std::uint64_t> Register(const Image& /*image*/, Deadline /*deadline*/) override {
    const MutexLock lock(mutex_);
    KEEL_TRY(lost_);
    KEEL_TRY(register_);
    if (fail_register_in_ > 0 && --fail_register_in_ == 0) return ResourceExhausted("no room");
    callables_.push_back(++last_callable_);
    return last_callable_;
  }
  Status Unregister(std::uint64_t callable, Deadline /*deadline*/) override {
    const MutexLock lock(mutex_);
    KEEL_TRY(lost_);
    KEEL_TRY(unregister_);
    return std::erase(callables_, callable) == 1 ? OkStatus() : NotFound("no such callable");
  }
  Result<EngineStats> Stats(Deadline deadline) override {
    const MutexLock lock(mutex_);
    stats_deadline_ = deadline;
    KEEL_TRY(lost_);
    EngineStats stats;
    stats.bytes_to_device = 100;
    return stats;
  }
  Status Health() const override {
    const MutexLock lock(mutex_);
    return lost_;
  }
  Status Restart(Deadline /*deadline*/) override {
    const MutexLock lock(mutex_);
    if (!posted_.empty() || !results_.empty()) return FailedPrecondition("not collected");
    ++restarts_;
    while (hold_restart_) restart_held_.Wait(mutex_);
    KEEL_TRY(restart_);
    lost_ = OkStatus();
    callables_.clear();
    next_address_ = DeviceAddress(0x1000'0000);  // they are free again
    return OkStatus();
  }
  void Stop(Deadline /*deadline*/) override {
    const MutexLock lock(mutex_);
    if (lost_.ok()) lost_ = Unavailable("stopped");
  }

 private:
  struct Posted {
    std::uint64_t task = 0;
    Deadline deadline = Deadline::Never();
  };

  const std::shared_ptr<Doorbell> doorbell_;
  mutable Mutex mutex_;
  std::deque<Posted> posted_ KEEL_GUARDED_BY(mutex_);
  std::vector<TaskResult> results_ KEEL_GUARDED_BY(mutex_);
  std::size_t ever_posted_ KEEL_GUARDED_BY(mutex_) = 0;
  bool eager_ KEEL_GUARDED_BY(mutex_) = false;
  bool quiet_ KEEL_GUARDED_BY(mutex_) = false;
  mutable std::uint64_t answered_ = 0;  // of a quiet one: tasks
  Status lost_ KEEL_GUARDED_BY(mutex_);
  Status post_ KEEL_GUARDED_BY(mutex_);
  bool sends_ KEEL_GUARDED_BY(mutex_) = true;
  bool hold_post_ KEEL_GUARDED_BY(mutex_) = false;
  bool in_held_post_ KEEL_GUARDED_BY(mutex_) = false;
  CondVar post_held_;
  Status fits_ KEEL_GUARDED_BY(mutex_);
  Status free_ KEEL_GUARDED_BY(mutex_);
  Status unregister_ KEEL_GUARDED_BY(mutex_);
  Deadline stats_deadline_ KEEL_GUARDED_BY(mutex_) = Deadline::Never();
  Status register_ KEEL_GUARDED_BY(mutex_);
  int fail_register_in_ KEEL_GUARDED_BY(mutex_) = 0;
  Status restart_ KEEL_GUARDED_BY(mutex_);
  int restarts_ KEEL_GUARDED_BY(mutex_) = 0;
  bool hold_restart_ KEEL_GUARDED_BY(mutex_) = false;
  CondVar restart_held_;
  DeviceAddress next_address_ KEEL_GUARDED_BY(mutex_){0x1000'0000};
  std::vector<DeviceAddress> freed_ KEEL_GUARDED_BY(mutex_);
  std::vector<std::uint64_t> callables_ KEEL_GUARDED_BY(mutex_);
  std::uint64_t last_callable_ KEEL_GUARDED_BY(mutex_) = 0;
};

}  // namespace keel::task
