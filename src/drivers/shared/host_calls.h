// HostCalls: the functions that devices run on a host thread, each in a wrapper that marks the
// thread (hal/host_call_scope.h).
//
// A library passes one pointer to a host function, so the caller's function and its data travel in
// a thunk, of one of two kinds:
//
//   kept   for a pair of function and data, for ever. Nobody writes it again, so any number of
//          calls share it and no memory goes back and forth between the thread that queues and the
//          one that runs. A pair that a graph's node calls, which runs any number of times, always
//          has one; others get one when they come again, as long as there are few of them.
//   lent   for one call on a stream, until it begins. They are kept for the next calls, so that
//          there are as many as were ever queued at once. (If the device is lost, calls that were
//          queued never begin, and their thunks stay.)
//
// A steady program allocates nothing. It belongs to the library, not to a device: a call that is
// queued may outlive the device that queued it. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <deque>
#include <map>
#include <utility>

#include "keel/base/mutex.h"
#include "keel/hal/command.h"

namespace keel::vendor {

class HostCalls {
 public:
  // Apart from its neighbours: other threads write those.
  struct alignas(64) Thunk {
    hal::HostCall call;
    HostCalls* lender = nullptr;  // null: kept
    Thunk* next = nullptr;        // of those that are free
  };

  // What the library calls, with a thunk as its data.
  static void Run(void* thunk);

  // The thunk that the pair has, if it is one of those that are found quickly; otherwise null.
  // Takes no lock.
  Thunk* Find(const hal::HostCall& call) const;
  // For one call on a stream of a pair that Find does not know; if it came before, that may be a
  // kept one, which Find knows from then on.
  Thunk* Lend(const hal::HostCall& call) KEEL_EXCLUDES(mutex_);
  // For a node of a graph.
  Thunk* Keep(const hal::HostCall& call) KEEL_EXCLUDES(mutex_);
  // The library did not take it. Nothing if it is kept.
  static void GiveBack(Thunk* thunk);

  // How many there are, in use or not.
  std::size_t size() const KEEL_EXCLUDES(mutex_);

 private:
  using Pair = std::pair<hal::HostFunction, void*>;
  static constexpr std::size_t kSlots = 256;
  static constexpr std::size_t kMostFound = 192;  // so that looking for one ends soon
  static std::size_t SlotOf(const Pair& pair);
  Thunk* KeepLocked(const Pair& pair) KEEL_REQUIRES(mutex_);

  // Some of the kept ones, each in its slot or in the next ones that were free: only ever filled.
  std::array<std::atomic<Thunk*>, kSlots> found_{};

  mutable Mutex mutex_;
  std::size_t found_count_ KEEL_GUARDED_BY(mutex_) = 0;
  std::map<Pair, Thunk> kept_ KEEL_GUARDED_BY(mutex_);
  // The pair that was lent a thunk last, of those with the same slot.
  std::array<Pair, kSlots> last_ KEEL_GUARDED_BY(mutex_){};
  std::deque<Thunk> lent_ KEEL_GUARDED_BY(mutex_);
  Thunk* free_ KEEL_GUARDED_BY(mutex_) = nullptr;
  // Given back by the threads that run the functions, and fetched all at once when `free_` is
  // empty: the two sides hardly ever touch the same memory.
  std::atomic<Thunk*> returned_{nullptr};
};

}  // namespace keel::vendor
