#include "task/task_state.h"

#include "task/orchestrator_core.h"

namespace keel::task {

void TaskHandle::State::ReturnToPool() { core->pool().Return(this); }

void TaskHandle::State::Renew(std::uint32_t holders) {
  holders_.store(holders, std::memory_order_relaxed);
  done.store(false, std::memory_order_relaxed);
  worker.store(-1, std::memory_order_relaxed);
  outcome = OkStatus();
  phase = Phase::kWaits;
  waits_for = 0;
  running = 0;
  // Of a task that was submitted nothing else is left.
  callable = nullptr;
  if (plain) return;
  plain = true;
  first.worker.reset();
  ForgetMembers();
}

void TaskHandle::State::ForgetMembers() {
  constexpr std::size_t kFew = 16;
  if (first.arguments.tensors().size() <= kFew && first.arguments.scalars().size() <= kFew) {
    first.arguments.Clear();
  } else {
    first.arguments = Arguments();
  }
  rest.clear();
  blocks.clear();
}

TaskPool::State* TaskPool::Take(OrchestratorCore& core, std::uint32_t holders) {
  if (free_ == nullptr && returned_.load(std::memory_order_relaxed) != nullptr) {
    free_ = returned_.exchange(nullptr, std::memory_order_acquire);
  }
  State* const state = free_ != nullptr ? std::exchange(free_, free_->next_) : Make(core);
  state->Renew(holders);
  return state;
}

TaskPool::State* TaskPool::Make(OrchestratorCore& core) {
  for (std::size_t i = 1; i < kAtATime && made_ < kKept; ++i, ++made_) {
    auto* const more = new State(core.shared_from_this(), true);
    more->next_ = std::exchange(free_, more);
  }
  const bool kept = made_ < kKept;
  if (kept) ++made_;
  return new State(core.shared_from_this(), kept);
}

TaskPool::State* TaskPool::Closed() {
  // The address of something that is no state.
  static char mark;
  return reinterpret_cast<State*>(&mark);
}

void TaskPool::Return(State* state) {
  State* last = state->kept_ ? returned_.load(std::memory_order_relaxed) : Closed();
  do {
    if (last == Closed()) {
      delete state;
      return;
    }
    state->next_ = last;
  } while (!returned_.compare_exchange_weak(last, state, std::memory_order_release,
                                            std::memory_order_relaxed));
}

void TaskPool::Close() {
  const auto give_back = [](State* state) {
    while (state != nullptr) delete std::exchange(state, state->next_);
  };
  give_back(std::exchange(free_, nullptr));
  give_back(returned_.exchange(Closed(), std::memory_order_acquire));
}

}  // namespace keel::task
