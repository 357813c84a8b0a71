#include "base/futex_wait.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <ctime>
#include <thread>

namespace keel {
namespace {

// Between processes, unlike those of an OwnerLock.
bool Membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0) == 0; }

// Of every running thread of the processes that ring without fences.
void FenceEverywhere() {
  if (Membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED)) return;
  // A kernel without it has promised it to nobody. But it may be forbidden to this process and not
  // to others, by a sandbox: no processor holds back a store for nearly as long as this.
  if (errno == ENOSYS || errno == EINVAL) return;
  constexpr std::chrono::milliseconds kStoresAreOut{10};
  std::this_thread::sleep_for(kStoresAreOut);
}

}  // namespace

void RingWithoutFence() {
#if !defined(__SANITIZE_THREAD__)  // which knows no barriers
  const std::uint64_t here = ForkGeneration() + 1;
  if (futex_wait::unfenced.load(std::memory_order_relaxed) == here) return;
  if (!Membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED)) return;
  futex_wait::unfenced.store(here, std::memory_order_relaxed);
#endif
}

namespace futex_wait {

void Fence() {
#if defined(__SANITIZE_THREAD__)
  // Which does not know fences.
  static std::atomic<std::uint32_t> order;
  order.fetch_add(1, std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

void Yield() { sched_yield(); }

void Enter(FutexWord& word) {
  word.sleepers.fetch_add(1, std::memory_order_seq_cst);
  Fence();
  FenceEverywhere();
}

void Leave(FutexWord& word) { word.sleepers.fetch_sub(1, std::memory_order_seq_cst); }

void Sleep(FutexWord& word, std::uint32_t seen, Deadline deadline) {
  timespec until{};
  if (!deadline.never()) {
    const auto since =
        std::chrono::duration_cast<std::chrono::nanoseconds>(deadline.when().time_since_epoch());
    until.tv_sec = static_cast<time_t>(since.count() / 1'000'000'000);
    until.tv_nsec = static_cast<long>(since.count() % 1'000'000'000);
  }
  // The kernel's monotonic clock is std::chrono's steady one.
  syscall(SYS_futex, &word.value, FUTEX_WAIT_BITSET, seen, deadline.never() ? nullptr : &until,
          nullptr, FUTEX_BITSET_MATCH_ANY);
}

}  // namespace futex_wait

void Ring(FutexWord& word) {
  word.value.fetch_add(1, std::memory_order_seq_cst);
  if (word.sleepers.load(std::memory_order_seq_cst) == 0) return;
  syscall(SYS_futex, &word.value, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace keel
