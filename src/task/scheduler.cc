#include "task/scheduler.h"

#include <algorithm>
#include <utility>

namespace keel::task {

void Scheduler::Queue::Push(const Entry& entry) {
  ++size_;
  if (line_.empty() || line_.back().order < entry.order) {
    line_.push_back(entry);
    return;
  }
  heap_.push_back(entry);
  std::push_heap(heap_.begin(), heap_.end(), Later);
}

void Scheduler::Queue::Pop() {
  --size_;
  if (InLine()) {
    line_.pop_front();
    return;
  }
  std::pop_heap(heap_.begin(), heap_.end(), Later);
  heap_.pop_back();
}

std::size_t Scheduler::Queue::EraseIf(const std::function<bool(const Entry&)>& gone) {
  std::size_t erased = std::erase_if(heap_, gone);
  if (erased != 0) std::make_heap(heap_.begin(), heap_.end(), Later);
  erased += std::erase_if(line_, gone);
  size_ -= erased;
  return erased;
}

bool Scheduler::Add(TaskKey task, std::uint64_t order, std::optional<WorkerId> worker) {
  if (worker.has_value()) {
    if (workers_[*worker].given_up) return false;
    workers_[*worker].bound.Push({order, task});
    stuck_ = false;
  } else {
    if (std::all_of(workers_.begin(), workers_.end(),
                    [](const WorkerState& state) { return state.given_up; })) {
      return false;
    }
    free_.Push({order, task});
    // With more of them than workers some are posted ahead; and the oldest may go before a group.
    if (free_.size() <= workers_.size() + 1 || free_.front().task == task) stuck_ = false;
  }
  ++ready_;
  return true;
}

bool Scheduler::AddGroup(TaskKey task, std::uint64_t order,
                         std::span<const std::optional<WorkerId>> members) {
  Group group{order, {}, false};
  group.members.reserve(members.size());
  for (const std::optional<WorkerId>& worker : members) {
    group.members.push_back({worker.value_or(0), worker.has_value()});
  }
  if (!Bind(task, group)) return false;
  groups_.emplace(task, std::move(group));
  stuck_ = false;
  ++ready_;
  return true;
}

bool Scheduler::Bind(TaskKey task, Group& group) {
  std::vector<bool> taken(workers_.size(), false);
  for (const Member& member : group.members) {
    if (!member.named) continue;
    if (workers_[member.worker].given_up) return false;
    taken[member.worker] = true;
  }
  for (Member& member : group.members) {
    if (member.named) continue;
    std::optional<WorkerId> best;
    for (WorkerId w = 0; w < workers_.size(); ++w) {
      if (taken[w] || workers_[w].given_up) continue;
      // Rather a busy one than one that is down.
      if (!best.has_value() || std::pair(!workers_[w].up, Load(workers_[w])) <
                                   std::pair(!workers_[*best].up, Load(workers_[*best]))) {
        best = w;
      }
    }
    if (!best.has_value()) return false;
    member.worker = *best;
    taken[*best] = true;
  }
  group.aside = std::any_of(group.members.begin(), group.members.end(),
                            [this](const Member& member) { return !workers_[member.worker].up; });
  if (!group.aside) {
    const bool open = std::any_of(group.members.begin(), group.members.end(),
                                  [](const Member& member) { return !member.named; });
    for (const Member& member : group.members) {
      workers_[member.worker].bound.Push({group.order, task, true, open});
    }
  }
  return true;
}

std::optional<Scheduler::Start> Scheduler::Next(Time now) {
  if (ready_ == 0 || stuck_) return std::nullopt;
  for (WorkerId w = 0; w < workers_.size(); ++w) {
    WorkerState& worker = workers_[w];
    if (worker.bound.empty() || !Takes(worker) || worker.posted >= capacity_) continue;
    const Entry entry = worker.bound.front();
    start_.clear();
    if (!entry.group) {
      worker.bound.Pop();
      start_.push_back(w);
    } else {
      if (!free_.empty() && IsBehind(entry, free_.front().order)) continue;
      const auto group = groups_.find(entry.task);
      if (!CanStart(entry.task, group->second)) continue;
      for (const Member& member : group->second.members) {
        workers_[member.worker].bound.Pop();
        start_.push_back(member.worker);
      }
      groups_.erase(group);
    }
    for (const WorkerId started : start_) Post(started, now);
    --ready_;
    return Start{entry.task, start_};
  }
  const WorkerId worker =
      free_.empty() ? kNobody : WorkerForFree(free_.size(), free_.front().order, now);
  stuck_ = worker == kNobody;
  if (stuck_) return std::nullopt;
  const TaskKey task = free_.front().task;
  free_.Pop();
  start_.assign(1, worker);
  Post(worker, now);
  --ready_;
  return Start{task, start_};
}

bool Scheduler::CanStart(TaskKey task, const Group& group) const {
  return std::all_of(group.members.begin(), group.members.end(), [&](const Member& member) {
    const WorkerState& worker = workers_[member.worker];
    return Takes(worker) && worker.posted == 0 && worker.bound.front().task == task;
  });
}

void Scheduler::Ended(WorkerId worker, Time now, std::size_t count) {
  WorkerState& state = workers_[worker];
  state.posted -= count;
  state.refused = false;
  stuck_ = false;
  state.progress = now;
  state.ended += count;
  const auto passed = now - state.slice;
  if (passed < kSlice) return;
  const auto slices = static_cast<std::size_t>(passed / kSlice);
  state.ahead = std::clamp<std::size_t>(state.ended / slices, 1, capacity_);
  state.ended = 0;
  state.slice = now;
}

void Scheduler::Refused(WorkerId worker) {
  --workers_[worker].posted;
  workers_[worker].refused = true;
}

bool Scheduler::NeedsRetry() const {
  return std::any_of(workers_.begin(), workers_.end(), [](const WorkerState& state) {
    return state.up && state.refused && state.posted == 0;
  });
}

void Scheduler::Retry() {
  for (WorkerState& state : workers_) {
    if (state.posted == 0 && std::exchange(state.refused, false)) stuck_ = false;
  }
}

void Scheduler::SetUp(WorkerId worker) {
  if (!std::exchange(workers_[worker].up, true)) ++up_;
  workers_[worker].refused = false;
  Rebind(worker, nullptr);
}

void Scheduler::SetDown(WorkerId worker) {
  if (std::exchange(workers_[worker].up, false)) --up_;
  Rebind(worker, nullptr);
}

void Scheduler::GiveUp(WorkerId worker, std::vector<TaskKey>& stranded) {
  if (std::exchange(workers_[worker].up, false)) --up_;
  if (!std::exchange(workers_[worker].given_up, true)) --left_;
  Rebind(worker, &stranded);
  const auto strand = [&](Queue& queue) {
    ready_ -= queue.EraseIf([&](const Entry& entry) {
      stranded.push_back(entry.task);
      return true;
    });
  };
  strand(workers_[worker].bound);
  if (std::all_of(workers_.begin(), workers_.end(),
                  [](const WorkerState& state) { return state.given_up; })) {
    strand(free_);
  }
}

void Scheduler::Rebind(WorkerId worker, std::vector<TaskKey>* stranded) {
  stuck_ = false;
  std::vector<std::pair<std::uint64_t, TaskKey>> moving;
  bool queued = false;
  for (auto& [task, group] : groups_) {
    if (group.aside || std::any_of(group.members.begin(), group.members.end(),
                                   [&](const Member& member) { return member.worker == worker; })) {
      group.moving = true;
      queued |= !group.aside;
      moving.emplace_back(group.order, task);
    }
  }
  if (queued) {
    for (WorkerState& state : workers_) {
      state.bound.EraseIf([this](const Entry& entry) {
        return entry.group && groups_.find(entry.task)->second.moving;
      });
    }
  }
  // The oldest chooses first.
  std::sort(moving.begin(), moving.end());
  for (const auto& [order, task] : moving) {
    const auto at = groups_.find(task);
    at->second.moving = false;
    if (Bind(task, at->second)) continue;
    if (stranded != nullptr) stranded->push_back(task);
    groups_.erase(at);
    --ready_;
  }
}

void Scheduler::RemoveIf(const std::function<bool(TaskKey)>& gone) {
  stuck_ = false;
  const auto erase = [&](Queue& queue) {
    queue.EraseIf([&](const Entry& entry) {
      if (!gone(entry.task)) return false;
      if (!entry.group) --ready_;
      return true;
    });
  };
  for (WorkerState& state : workers_) erase(state.bound);
  erase(free_);
  ready_ -= std::erase_if(groups_, [&](const auto& each) { return gone(each.first); });
}

}  // namespace keel::task
