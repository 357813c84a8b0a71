#include "base/futex_wait.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace keel {
namespace {

// Between what a thread has written and what it looks at next, on both sides: one of two who do
// the same with each other's words sees the other's.
void Fence() {
#if defined(__SANITIZE_THREAD__)
  // Which does not know fences.
  static std::atomic<std::uint32_t> order;
  order.fetch_add(1, std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace

namespace futex_wait {

void Yield() { sched_yield(); }

void Enter(FutexWord& word) {
  word.sleepers.fetch_add(1, std::memory_order_seq_cst);
  Fence();
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

void RingSleepers(FutexWord& word) {
  Fence();
  if (word.sleepers.load(std::memory_order_seq_cst) == 0) return;
  Ring(word);
}

}  // namespace keel
