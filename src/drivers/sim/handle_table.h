// HandleTable: turns the device layer's plain 64-bit handles into objects, and tells a stale
// handle from a live one.
//
// A handle is (kind, generation, index). The generation of an index changes when its object is
// removed, so a handle that was given back is not found again (until 2^32 reuses of one index),
// and the kind keeps an event from being taken for a stream. Look-up takes a shared lock and
// copies a shared_ptr: whoever found an object keeps it, also when another thread removes it.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "keel/base/mutex.h"

namespace keel::sim {

enum class HandleKind : std::uint8_t {
  kStream = 1,
  kEvent,
  kMemory,
  kModule,
  kKernel,
  kGraph,
  kExec,
};

template <class Object, HandleKind kKind>
class HandleTable {
 public:
  std::uint64_t Insert(std::shared_ptr<Object> object) KEEL_EXCLUDES(mutex_) {
    WriterLock lock(mutex_);
    std::uint32_t index = 0;
    if (free_.empty()) {
      index = static_cast<std::uint32_t>(entries_.size());
      entries_.emplace_back();
    } else {
      index = free_.back();
      free_.pop_back();
    }
    entries_[index].object = std::move(object);
    return Encode(index, entries_[index].generation);
  }

  // Null for anything that is not the handle of a live object of this kind.
  std::shared_ptr<Object> Find(std::uint64_t handle) const KEEL_EXCLUDES(mutex_) {
    ReaderLock lock(mutex_);
    const Entry* entry = FindLocked(handle);
    return entry == nullptr ? nullptr : entry->object;
  }

  // Null if it is not there: of two threads that remove one handle, one gets the object.
  std::shared_ptr<Object> Remove(std::uint64_t handle) KEEL_EXCLUDES(mutex_) {
    WriterLock lock(mutex_);
    Entry* entry = const_cast<Entry*>(FindLocked(handle));
    if (entry == nullptr) return nullptr;
    ++entry->generation;
    free_.push_back(static_cast<std::uint32_t>(handle & kIndexMask));
    return std::exchange(entry->object, nullptr);
  }

  // Removes those for which `match` is true, and returns them.
  template <class Match>
  std::vector<std::shared_ptr<Object>> RemoveIf(Match match) KEEL_EXCLUDES(mutex_) {
    std::vector<std::shared_ptr<Object>> removed;
    WriterLock lock(mutex_);
    for (std::size_t index = 0; index < entries_.size(); ++index) {
      Entry& entry = entries_[index];
      if (entry.object == nullptr || !match(*entry.object)) continue;
      ++entry.generation;
      free_.push_back(static_cast<std::uint32_t>(index));
      removed.push_back(std::exchange(entry.object, nullptr));
    }
    return removed;
  }

 private:
  // 8 bits kind, 32 bits generation, 24 bits index.
  static constexpr std::uint64_t kIndexBits = 24;
  static constexpr std::uint64_t kIndexMask = (std::uint64_t{1} << kIndexBits) - 1;

  struct Entry {
    std::shared_ptr<Object> object;
    std::uint32_t generation = 1;
  };

  static std::uint64_t Encode(std::uint32_t index, std::uint32_t generation) {
    return (static_cast<std::uint64_t>(kKind) << 56) |
           (static_cast<std::uint64_t>(generation) << kIndexBits) | index;
  }

  const Entry* FindLocked(std::uint64_t handle) const KEEL_REQUIRES_SHARED(mutex_) {
    const std::uint64_t index = handle & kIndexMask;
    if (index >= entries_.size()) return nullptr;
    const Entry& entry = entries_[index];
    if (entry.object == nullptr) return nullptr;
    return Encode(static_cast<std::uint32_t>(index), entry.generation) == handle ? &entry : nullptr;
  }

  mutable SharedMutex mutex_;
  std::vector<Entry> entries_ KEEL_GUARDED_BY(mutex_);
  std::vector<std::uint32_t> free_ KEEL_GUARDED_BY(mutex_);
};

}  // namespace keel::sim
