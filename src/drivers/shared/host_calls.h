// HostCalls: the functions that devices run on a host thread, each in a wrapper that marks the
// thread (hal/host_call_scope.h).
//
// A library passes one pointer to a host function, so the caller's function and its data travel in
// a thunk. A call on a stream has a thunk until it begins; thunks are kept for the next calls, so
// that there are as many as were ever queued at once and a steady program allocates nothing. (If
// the device is lost, calls that were queued never begin, and their thunks stay.) A node of a graph
// runs any number of times: one thunk for each pair of function and data, for ever.
//
// It belongs to the library, not to a device: a call that is queued may outlive the device that
// queued it. Thread-safe.
#pragma once

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
  struct Thunk {
    hal::HostCall call;
    HostCalls* owner = nullptr;
    Thunk* next = nullptr;  // of those that are free
  };

  // What the library calls, with a thunk as its data: for a call on a stream, and for a node.
  static void RunQueued(void* thunk);
  static void RunNode(void* thunk);

  Thunk* Queue(const hal::HostCall& call) KEEL_EXCLUDES(mutex_);
  // The library did not take it.
  void Drop(Thunk* thunk);
  Thunk* ForNode(const hal::HostCall& call) KEEL_EXCLUDES(mutex_);

  // How many there are, in use or not.
  std::size_t size() const KEEL_EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  std::deque<Thunk> queued_ KEEL_GUARDED_BY(mutex_);
  std::map<std::pair<hal::HostFunction, void*>, Thunk> nodes_ KEEL_GUARDED_BY(mutex_);
  Thunk* free_ KEEL_GUARDED_BY(mutex_) = nullptr;
  // Given back by the threads that run the functions, and fetched all at once when `free_` is
  // empty: the two sides hardly ever touch the same memory.
  std::atomic<Thunk*> returned_{nullptr};
};

}  // namespace keel::vendor
