#include "drivers/shared/host_calls.h"

#include "hal/host_call_scope.h"

namespace keel::vendor {

class HostCalls::Thunk {
 public:
  Thunk(HostCalls& owner, const hal::HostCall& call) : owner_(owner), call_(call) {}

  HostCalls& owner() const { return owner_; }
  const hal::HostCall& call() const { return call_; }

 private:
  HostCalls& owner_;
  const hal::HostCall call_;
};

HostCalls::HostCalls() = default;
HostCalls::~HostCalls() = default;

void HostCalls::RunOnce(void* data) {
  auto* thunk = static_cast<Thunk*>(data);
  const hal::HostCall call = thunk->call();
  // Before the call: it may be what lets the device be closed, and this object goes with it.
  thunk->owner().Drop(thunk);
  hal::HostCallScope scope;
  call.function(call.data);
}

void HostCalls::RunAgain(void* data) {
  const hal::HostCall call = static_cast<Thunk*>(data)->call();
  hal::HostCallScope scope;
  call.function(call.data);
}

HostCalls::Thunk* HostCalls::ForStream(const hal::HostCall& call) {
  auto thunk = std::make_unique<Thunk>(*this, call);
  Thunk* const pointer = thunk.get();
  MutexLock lock(mutex_);
  queued_.emplace(pointer, std::move(thunk));
  return pointer;
}

void HostCalls::Drop(Thunk* thunk) {
  MutexLock lock(mutex_);
  queued_.erase(thunk);
}

HostCalls::Thunk* HostCalls::ForNode(const hal::HostCall& call) {
  MutexLock lock(mutex_);
  std::unique_ptr<Thunk>& thunk = nodes_[{call.function, call.data}];
  if (thunk == nullptr) thunk = std::make_unique<Thunk>(*this, call);
  return thunk.get();
}

std::size_t HostCalls::queued() const {
  MutexLock lock(mutex_);
  return queued_.size();
}

}  // namespace keel::vendor
