// FutexWord: a 32-bit word that threads, also of several processes, can wait for. It lies in memory
// of its owner, private or shared; all zeros is a valid word.
//
// A wait spins for some 30 us, yielding the core in between, because a peer that answers that soon
// is worth it and more would steal its core where there are few; then it sleeps in the kernel. A
// wake costs a system call only if somebody sleeps.
//
// A process that dies asleep leaves the count of sleepers too high, which costs its peers a system
// call for each wake and nothing else. A peer that damages the count can make a wake get lost:
// whoever does not trust its peer gives a deadline and looks again.
#pragma once

#include <atomic>
#include <cstdint>

#include "keel/base/deadline.h"

namespace keel {

struct FutexWord {
  std::atomic<std::uint32_t> value;
  std::atomic<std::uint32_t> sleepers;
};
static_assert(sizeof(FutexWord) == 8 && std::atomic<std::uint32_t>::is_always_lock_free);

// Until the value differs from `seen`, for half a microsecond or so, without a look at the clock:
// for who would otherwise first find out how long to wait. False: it did not.
bool SpinBriefly(const FutexWord& word, std::uint32_t seen);

// Until the value differs from `seen`. False: the deadline. Any number of threads.
bool WaitWhile(FutexWord& word, std::uint32_t seen, Deadline deadline);

// Adds one to the value and wakes everybody. What was written before is seen by who wakes.
void Ring(FutexWord& word);

}  // namespace keel
