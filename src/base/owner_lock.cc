#include "base/owner_lock.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace keel {
namespace {

bool Membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0) == 0; }

}  // namespace

bool OwnerLock::RegisterBarrier() { return Membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED); }

OwnerLock::Order OwnerLock::OrderOfProcess() {
  static const Order order = RegisterBarrier() ? Order::kOthers : Order::kOwner;
  return order;
}

void OwnerLock::Barrier() {
  if (OrderOfProcess() == Order::kOwner) return;
  if (Membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return;
  // Forbidden since it was registered, by a sandbox. No processor holds back a store for nearly as
  // long as this.
  constexpr std::chrono::milliseconds kStoresAreOut{10};
  std::this_thread::sleep_for(kStoresAreOut);
}

// Whoever has others_ has also unset wanted_ before it was given back, and whoever takes it next
// sees busy_.
void OwnerLock::WaitAsOwner() {
  busy_.store(false, std::memory_order_release);
  const ShortLockGuard lock(others_);
  busy_.store(true, std::memory_order_relaxed);
}

void OwnerLock::Ask() KEEL_NO_THREAD_SAFETY_ANALYSIS {
  others_.Lock();
  wanted_.store(true, std::memory_order_seq_cst);
}

void OwnerLock::Enter() KEEL_NO_THREAD_SAFETY_ANALYSIS {
  ShortWait wait;
  while (busy_.load(std::memory_order_seq_cst)) wait.Pause();
}

void OwnerLock::Unlock() KEEL_NO_THREAD_SAFETY_ANALYSIS {
  wanted_.store(false, std::memory_order_release);
  others_.Unlock();
}

}  // namespace keel
