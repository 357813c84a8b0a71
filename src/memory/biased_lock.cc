#include "memory/biased_lock.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

namespace keel::memory {
namespace {

bool RegisterBarrier() {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

}  // namespace

// Until it is set, during the initialisation of statics, the owner's fence is a real one and the
// other's barrier is one too: both right.
const std::atomic<bool> BiasedLock::kAsymmetric{RegisterBarrier()};

void BiasedLock::WaitForOther() {
  do {
    inside_.store(false, std::memory_order_release);
    others_.Lock();  // until the other is through
    others_.Unlock();
    inside_.store(true, std::memory_order_seq_cst);
  } while (asked_.load(std::memory_order_seq_cst));
}

void BiasedLock::OtherLock() {
  others_.Lock();
  asked_.store(true, std::memory_order_seq_cst);
  if (kAsymmetric.load(std::memory_order_relaxed)) {
    syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
  }
  while (inside_.load(std::memory_order_seq_cst)) std::this_thread::yield();
}

void BiasedLock::OtherUnlock() {
  asked_.store(false, std::memory_order_release);
  others_.Unlock();
}

}  // namespace keel::memory
