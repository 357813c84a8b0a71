// HostCalls: the functions that one device runs on a host thread, each in a wrapper that marks the
// thread (hal/host_call_scope.h).
//
// A library passes one pointer to a host function, so the caller's function and its data travel in
// a Thunk. For a call on a stream the thunk is freed when it has run; if the device is lost first
// it never runs, and is freed with this object. A node of a graph runs any number of times: its
// thunk is shared by all nodes with the same function and data, and lives as long as this object.
// Thread-safe.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <utility>

#include "keel/base/mutex.h"
#include "keel/hal/command.h"

namespace keel::vendor {

class HostCalls {
 public:
  class Thunk;

  HostCalls();
  ~HostCalls();
  HostCalls(const HostCalls&) = delete;
  HostCalls& operator=(const HostCalls&) = delete;

  // What the library calls, with a thunk as its data.
  static void RunOnce(void* thunk);
  static void RunAgain(void* thunk);

  Thunk* ForStream(const hal::HostCall& call) KEEL_EXCLUDES(mutex_);
  // The library did not take it.
  void Drop(Thunk* thunk) KEEL_EXCLUDES(mutex_);
  Thunk* ForNode(const hal::HostCall& call) KEEL_EXCLUDES(mutex_);
  // Calls on streams that have not begun.
  std::size_t queued() const KEEL_EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  std::map<Thunk*, std::unique_ptr<Thunk>> queued_ KEEL_GUARDED_BY(mutex_);
  std::map<std::pair<hal::HostFunction, void*>, std::unique_ptr<Thunk>> nodes_
      KEEL_GUARDED_BY(mutex_);
};

}  // namespace keel::vendor
