#include "drivers/shared/host_calls.h"

#include <cstdint>

#include "hal/host_call_scope.h"

namespace keel::vendor {

void HostCalls::Run(void* data) {
  auto* thunk = static_cast<Thunk*>(data);
  const hal::HostCall call = thunk->call;
  GiveBack(thunk);
  hal::HostCallScope scope;
  call.function(call.data);
}

std::size_t HostCalls::SlotOf(const Pair& pair) {
  const auto function = reinterpret_cast<std::uint64_t>(pair.first);
  const auto data = reinterpret_cast<std::uint64_t>(pair.second);
  return ((function + data * 31) * 0x9e3779b97f4a7c15u >> 32) % kSlots;
}

HostCalls::Thunk* HostCalls::Find(const hal::HostCall& call) const {
  for (std::size_t slot = SlotOf({call.function, call.data});; slot = (slot + 1) % kSlots) {
    Thunk* const thunk = found_[slot].load(std::memory_order_acquire);
    if (thunk == nullptr) return nullptr;
    if (thunk->call.function == call.function && thunk->call.data == call.data) return thunk;
  }
}

HostCalls::Thunk* HostCalls::KeepLocked(const Pair& pair) {
  const auto [kept, is_new] = kept_.try_emplace(pair);
  Thunk* const thunk = &kept->second;
  if (!is_new) return thunk;
  thunk->call = {pair.first, pair.second};
  if (found_count_ == kMostFound) return thunk;
  ++found_count_;
  std::size_t slot = SlotOf(pair);
  while (found_[slot].load(std::memory_order_relaxed) != nullptr) slot = (slot + 1) % kSlots;
  found_[slot].store(thunk, std::memory_order_release);
  return thunk;
}

HostCalls::Thunk* HostCalls::Keep(const hal::HostCall& call) {
  MutexLock lock(mutex_);
  return KeepLocked({call.function, call.data});
}

HostCalls::Thunk* HostCalls::Lend(const hal::HostCall& call) {
  const Pair pair(call.function, call.data);
  MutexLock lock(mutex_);
  if (Pair& last = last_[SlotOf(pair)]; last != pair) {
    last = pair;
  } else if (found_count_ < kMostFound) {
    return KeepLocked(pair);
  }
  if (free_ == nullptr) free_ = returned_.exchange(nullptr, std::memory_order_acquire);
  Thunk* thunk = free_;
  if (thunk == nullptr) {
    thunk = &lent_.emplace_back();
  } else {
    free_ = thunk->next;
  }
  *thunk = {call, this, nullptr};
  return thunk;
}

void HostCalls::GiveBack(Thunk* thunk) {
  if (thunk->lender == nullptr) return;
  std::atomic<Thunk*>& returned = thunk->lender->returned_;
  thunk->next = returned.load(std::memory_order_relaxed);
  while (!returned.compare_exchange_weak(thunk->next, thunk, std::memory_order_release,
                                         std::memory_order_relaxed)) {
  }
}

std::size_t HostCalls::size() const {
  MutexLock lock(mutex_);
  return lent_.size() + kept_.size();
}

}  // namespace keel::vendor
