#include "base/futex_wait.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <ctime>

namespace keel {
namespace {

void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace

bool SpinBriefly(const FutexWord& word, std::uint32_t seen) {
  for (int i = 0; i < 32; ++i) {
    if (word.value.load(std::memory_order_acquire) != seen) return true;
    Pause();
  }
  return false;
}

namespace {

bool SpinWhile(const FutexWord& word, std::uint32_t seen) {
  if (SpinBriefly(word, seen)) return true;
  constexpr auto kSpin = std::chrono::microseconds(30);
  const auto until = std::chrono::steady_clock::now() + kSpin;
  do {
    sched_yield();
    if (SpinBriefly(word, seen)) return true;
  } while (std::chrono::steady_clock::now() < until);
  return word.value.load(std::memory_order_acquire) != seen;
}

}  // namespace

bool WaitWhile(FutexWord& word, std::uint32_t seen, Deadline deadline) {
  if (word.value.load(std::memory_order_acquire) != seen) return true;
  if (deadline.Passed()) return false;
  if (SpinWhile(word, seen)) return true;
  // Before the value is looked at again, by the kernel: Ring changes it first and looks here next.
  word.sleepers.fetch_add(1, std::memory_order_seq_cst);
  bool changed = false;
  for (;;) {
    changed = word.value.load(std::memory_order_seq_cst) != seen;
    if (changed || deadline.Passed()) break;
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
  word.sleepers.fetch_sub(1, std::memory_order_seq_cst);
  return changed;
}

void Ring(FutexWord& word) {
  word.value.fetch_add(1, std::memory_order_seq_cst);
  if (word.sleepers.load(std::memory_order_seq_cst) == 0) return;
  syscall(SYS_futex, &word.value, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace keel
