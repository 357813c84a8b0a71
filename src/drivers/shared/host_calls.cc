#include "drivers/shared/host_calls.h"

#include "hal/host_call_scope.h"

namespace keel::vendor {

void HostCalls::RunQueued(void* data) {
  auto* thunk = static_cast<Thunk*>(data);
  const hal::HostCall call = thunk->call;
  thunk->owner->Drop(thunk);
  hal::HostCallScope scope;
  call.function(call.data);
}

void HostCalls::RunNode(void* data) {
  const hal::HostCall& call = static_cast<Thunk*>(data)->call;
  hal::HostCallScope scope;
  call.function(call.data);
}

HostCalls::Thunk* HostCalls::Queue(const hal::HostCall& call) {
  MutexLock lock(mutex_);
  if (free_ == nullptr) free_ = returned_.exchange(nullptr, std::memory_order_acquire);
  Thunk* thunk = free_;
  if (thunk == nullptr) {
    thunk = &queued_.emplace_back();
  } else {
    free_ = thunk->next;
  }
  *thunk = {call, this, nullptr};
  return thunk;
}

void HostCalls::Drop(Thunk* thunk) {
  thunk->next = returned_.load(std::memory_order_relaxed);
  while (!returned_.compare_exchange_weak(thunk->next, thunk, std::memory_order_release,
                                          std::memory_order_relaxed)) {
  }
}

HostCalls::Thunk* HostCalls::ForNode(const hal::HostCall& call) {
  MutexLock lock(mutex_);
  Thunk& thunk = nodes_[{call.function, call.data}];
  thunk.call = call;
  return &thunk;
}

std::size_t HostCalls::size() const {
  MutexLock lock(mutex_);
  return queued_.size() + nodes_.size();
}

}  // namespace keel::vendor
