#include "drivers/shared/host_calls.h"

#include <algorithm>

#include "hal/host_call_scope.h"

namespace keel::vendor {

void HostCalls::RunQueued(void* data) {
  auto* thunk = static_cast<Thunk*>(data);
  const hal::HostCall call = thunk->call;
  Drop(thunk);  // and with that it may be freed
  hal::HostCallScope scope;
  call.function(call.data);
}

void HostCalls::RunNode(void* data) {
  const hal::HostCall& call = static_cast<Thunk*>(data)->call;
  hal::HostCallScope scope;
  call.function(call.data);
}

HostCalls::Thunk& HostCalls::FindLocked(const hal::HostCall& call) {
  if (thunks_.size() >= sweep_at_) {
    std::erase_if(thunks_, [](const auto& entry) { return entry.second->pending.load() == 0; });
    sweep_at_ = std::max(kKept, thunks_.size() * 2);
  }
  std::unique_ptr<Thunk>& thunk = thunks_[{call.function, call.data}];
  if (thunk == nullptr) {
    thunk = std::make_unique<Thunk>();
    thunk->call = call;
  }
  return *thunk;
}

HostCalls::Thunk* HostCalls::Queue(const hal::HostCall& call) {
  MutexLock lock(mutex_);
  Thunk& thunk = FindLocked(call);
  thunk.pending.fetch_add(1);
  return &thunk;
}

HostCalls::Thunk* HostCalls::ForNode(const hal::HostCall& call) {
  MutexLock lock(mutex_);
  Thunk& thunk = FindLocked(call);
  if (!thunk.of_node) {
    thunk.of_node = true;
    thunk.pending.fetch_add(1);
  }
  return &thunk;
}

std::size_t HostCalls::size() const {
  MutexLock lock(mutex_);
  return thunks_.size();
}

}  // namespace keel::vendor
