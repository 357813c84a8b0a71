// FutexWord: a 32-bit word that threads, also of several processes, can wait for. It lies in memory
// of its owner, private or shared; all zeros is a valid word.
//
// A wait spins for some 30 us, yielding the core in between, because a peer that answers that soon
// is worth it and more would steal its core where there are few; then it sleeps in the kernel. A
// wake costs a system call only if somebody sleeps.
//
// Who wakes stores something and then looks whether somebody sleeps; who goes to sleep says so and
// then looks for what was stored. One of the two must see the other, so on both sides the store
// comes before the look. Wakes are many and sleeps are few: who goes to sleep has every running
// thread execute a fence (membarrier), and who wakes needs none, which otherwise would wait until
// the other core has given its cache line away. A process takes part by RingWithoutFence(); until
// then, and where the kernel has no such call, each wake has a fence of its own.
//
// A process that dies asleep leaves the count of sleepers too high, which costs its peers a system
// call for each wake and nothing else. A peer that damages the count can make a wake get lost:
// whoever does not trust its peer gives a deadline and looks again.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/fork.h"
#include "base/spin_pause.h"
#include "keel/base/deadline.h"

namespace keel {

struct FutexWord {
  std::atomic<std::uint32_t> value;
  std::atomic<std::uint32_t> sleepers;
};
static_assert(sizeof(FutexWord) == 8 && std::atomic<std::uint32_t>::is_always_lock_free);

// Adds one to the value and wakes everybody. What was written before is seen by who wakes.
void Ring(FutexWord& word);

namespace futex_wait {
// The process that rings without fences, as one more than its ForkGeneration(); 0: none.
inline constinit std::atomic<std::uint64_t> unfenced{0};
void Fence();
// Lets others run. For who has spun for a while.
void Yield();
// Once, until the word is rung or the deadline passes, or for no reason.
void Sleep(FutexWord& word, std::uint32_t seen, Deadline deadline);
void Enter(FutexWord& word);
void Leave(FutexWord& word);
}  // namespace futex_wait

// For a process that will ring often: the one-time cost is a system call. Again: nothing.
void RingWithoutFence();

// Ring if somebody sleeps, and nothing otherwise. For who has changed something else, that the ones
// who wait look at.
inline void RingSleepers(FutexWord& word) {
  if (futex_wait::unfenced.load(std::memory_order_relaxed) == ForkGeneration() + 1) [[likely]] {
    std::atomic_signal_fence(std::memory_order_seq_cst);  // the compiler's order
  } else {
    futex_wait::Fence();
  }
  if (word.sleepers.load(std::memory_order_seq_cst) != 0) Ring(word);
}

// Until `ready()`, for half a microsecond or so, without a look at the clock: for who would
// otherwise first find out how long to wait. False: it is not.
template <class Ready>
bool SpinUntil(const Ready& ready) {
  for (int i = 0; i < 32; ++i) {
    if (ready()) return true;
    SpinPause();
  }
  return false;
}

// Until `ready()`. False: the deadline. Any number of threads. Whoever makes it ready calls Ring or
// RingSleepers next.
template <class Ready>
bool WaitUntil(FutexWord& word, const Ready& ready, Deadline deadline) {
  if (ready()) return true;
  if (deadline.Passed()) return false;
  constexpr auto kSpin = std::chrono::microseconds(30);
  const auto until = Deadline::Clock::now() + kSpin;
  do {
    if (SpinUntil(ready)) return true;
    futex_wait::Yield();
  } while (Deadline::Clock::now() < until);
  futex_wait::Enter(word);
  bool is_ready = false;
  for (;;) {
    const std::uint32_t seen = word.value.load(std::memory_order_seq_cst);
    is_ready = ready();
    if (is_ready || deadline.Passed()) break;
    futex_wait::Sleep(word, seen, deadline);
  }
  futex_wait::Leave(word);
  return is_ready;
}

// Until the value differs from `seen`.
inline bool SpinBriefly(const FutexWord& word, std::uint32_t seen) {
  return SpinUntil([&] { return word.value.load(std::memory_order_acquire) != seen; });
}
inline bool WaitWhile(FutexWord& word, std::uint32_t seen, Deadline deadline) {
  return WaitUntil(
      word, [&] { return word.value.load(std::memory_order_acquire) != seen; }, deadline);
}

}  // namespace keel
