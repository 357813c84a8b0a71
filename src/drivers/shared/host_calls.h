// HostCalls: the functions that devices run on a host thread, each in a wrapper that marks the
// thread (hal/host_call_scope.h).
//
// A library passes one pointer to a host function, so the caller's function and its data travel in
// a thunk. There is one thunk for each pair of function and data, made when it is first used: a
// program that queues the same calls again and again allocates nothing. Thunks of calls that have
// all begun are freed when the table has grown; those of nodes of graphs, which run any number of
// times, stay.
//
// It belongs to the library, not to a device: a call that is queued may outlive the device that
// queued it. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>

#include "keel/base/mutex.h"
#include "keel/hal/command.h"

namespace keel::vendor {

class HostCalls {
 public:
  struct Thunk {
    hal::HostCall call;
    // How many times it was queued and has not begun; one more for ever once a node has it.
    std::atomic<int> pending{0};
    bool of_node = false;
  };

  // What the library calls, with a thunk as its data: for a call on a stream, and for a node.
  static void RunQueued(void* thunk);
  static void RunNode(void* thunk);

  Thunk* Queue(const hal::HostCall& call) KEEL_EXCLUDES(mutex_);
  // The library did not take it.
  static void Drop(Thunk* thunk) { thunk->pending.fetch_sub(1); }
  Thunk* ForNode(const hal::HostCall& call) KEEL_EXCLUDES(mutex_);

  std::size_t size() const KEEL_EXCLUDES(mutex_);

 private:
  using Key = std::pair<hal::HostFunction, void*>;
  struct Hash {
    std::size_t operator()(const Key& key) const {
      return std::hash<void*>()(key.second) ^
             (std::hash<void*>()(reinterpret_cast<void*>(key.first)) << 1);
    }
  };
  Thunk& FindLocked(const hal::HostCall& call) KEEL_REQUIRES(mutex_);

  static constexpr std::size_t kKept = 1024;
  mutable Mutex mutex_;
  std::unordered_map<Key, std::unique_ptr<Thunk>, Hash> thunks_ KEEL_GUARDED_BY(mutex_);
  std::size_t sweep_at_ KEEL_GUARDED_BY(mutex_) = kKept;
};

}  // namespace keel::vendor
