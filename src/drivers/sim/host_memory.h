// HostMemoryTable: the host memory that devices may use, because it was allocated pinned or
// registered. All devices of a machine see all of it, at its host address.
//
// A range that an operation is using while it is freed stays until the operation ends: allocated
// memory by reference count, registered memory, which is not ours, by making UnregisterHost wait.
// Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "keel/base/bytes.h"
#include "keel/base/mutex.h"
#include "keel/base/result.h"

namespace keel::sim {

class HostRange {
 public:
  HostRange(std::byte* start, Bytes size, bool owned) : start_(start), size_(size), owned_(owned) {}
  ~HostRange();
  HostRange(const HostRange&) = delete;
  HostRange& operator=(const HostRange&) = delete;

  std::byte* start() const { return start_; }
  Bytes size() const { return size_; }
  bool owned() const { return owned_; }

  // Operations that are running on it.
  std::atomic<int>& users() { return users_; }

 private:
  std::atomic<int> users_{0};
  std::byte* const start_;
  const Bytes size_;
  const bool owned_;
};

class HostMemoryTable {
 public:
  // Page-aligned, zeroed, locked in memory as far as the process may.
  Result<void*> Allocate(Bytes size) KEEL_EXCLUDES(mutex_);
  Status Free(void* pointer) KEEL_EXCLUDES(mutex_);
  Status Register(void* pointer, Bytes size) KEEL_EXCLUDES(mutex_);
  Status Unregister(void* pointer) KEEL_EXCLUDES(mutex_);

  // What an operation uses while it runs. Null if the range is not pinned as a whole.
  std::shared_ptr<HostRange> Use(std::uint64_t address, Bytes size) KEEL_EXCLUDES(mutex_);
  bool Contains(std::uint64_t address, Bytes size) KEEL_EXCLUDES(mutex_);

 private:
  std::shared_ptr<HostRange> FindLocked(std::uint64_t address, Bytes size) KEEL_REQUIRES(mutex_);
  Status InsertLocked(std::shared_ptr<HostRange> range) KEEL_REQUIRES(mutex_);

  Mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<HostRange>> ranges_ KEEL_GUARDED_BY(mutex_);
};

}  // namespace keel::sim
