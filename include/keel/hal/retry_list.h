// RetryList: what a destructor could not give back.
//
// An owning handle whose give-back fails in its destructor has nobody to tell. It logs, and leaves
// the give-back here, in the list of its device. The list is drained, oldest first and as often as
// it makes progress, by the next Close() of any handle of the device, by an allocator that trims,
// and when the device is closed. So a failure that passes costs nothing for ever, and one that
// does not is on record.
//
// On a device that is lost there is nothing to give back: entries are dropped.
//
// Thread-safe. An attempt runs without the list's lock held; two threads that drain at once work
// on different entries.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "keel/base/export.h"
#include "keel/base/mutex.h"
#include "keel/base/status.h"

namespace keel::hal {

class KEEL_EXPORT RetryList {
 public:
  struct Entry {
    std::string what;                 // "Unmap of 2 MiB at 0x..."
    std::function<Status()> attempt;  // may be called again until it returns OK or kDeviceLost
  };

  void Add(Entry entry) KEEL_EXCLUDES(mutex_);
  // Tries every entry once, and again while some succeed. OK when nothing is left; otherwise the
  // error of the oldest that is, and how many are.
  Status Drain() KEEL_EXCLUDES(mutex_);
  // One atomic load.
  bool empty() const { return size_.load(std::memory_order_acquire) == 0; }
  std::size_t size() const { return size_.load(std::memory_order_acquire); }
  // Oldest first; without those that another thread is trying now.
  std::vector<std::string> List() const KEEL_EXCLUDES(mutex_);
  // For closing a device: drops every entry untried, also what dropping one adds, and says what
  // they were.
  std::vector<std::string> Abandon() KEEL_EXCLUDES(mutex_);

 private:
  // By age. Nodes move out and back in, so that trying an entry allocates nothing.
  using Entries = std::map<std::uint64_t, Entry>;

  // The oldest entry in [first, end), or an empty node.
  Entries::node_type TakeFrom(std::uint64_t first, std::uint64_t end) KEEL_EXCLUDES(mutex_);

  mutable Mutex mutex_;
  Entries entries_ KEEL_GUARDED_BY(mutex_);
  std::uint64_t next_number_ KEEL_GUARDED_BY(mutex_) = 0;
  std::atomic<std::size_t> size_{0};  // entries, those under way included
};

}  // namespace keel::hal
