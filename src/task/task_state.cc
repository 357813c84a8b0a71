#include "task/task_state.h"

#include "task/orchestrator_core.h"

namespace keel::task {

void TaskHandle::State::ReturnToPool() { core->Return(this); }

void TaskHandle::State::ReleaseInTable() {
  if (!home_.here()) return;
  // It may have what keeps the core.
  const std::shared_ptr<OrchestratorCore> held = core;
  held->Release(this);
}

void TaskHandle::State::RenewMembers() {
  plain = true;
  group = false;
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

void TaskPool::Refill(OrchestratorCore& core) {
  if (returned_.load(std::memory_order_relaxed) != nullptr) {
    free_ = returned_.exchange(nullptr, std::memory_order_acquire);
    return;
  }
  const auto make = [&](bool kept) {
    auto* const state = new State(core.shared_from_this(), kept);
    state->next_ = std::exchange(free_, state);
  };
  if (made_ == kKept) make(false);
  for (std::size_t i = 0; i < kAtATime && made_ < kKept; ++i, ++made_) make(true);
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
  closed_ = true;
  give_back(std::exchange(free_, nullptr));
  give_back(returned_.exchange(Closed(), std::memory_order_acquire));
}

}  // namespace keel::task
