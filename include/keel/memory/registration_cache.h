// RegistrationCache: host memory of others, pinned on demand and kept pinned.
//
// Pinning a range costs a driver call that takes long, and unpinning one that may wait for all work
// of the device. Who copies from the same buffers again and again pins them once: the cache
// remembers ranges, in whole pages, up to a limit.
//
// Lease() returns a hold on a pinned range; while one is held the range stays pinned. Hold it until
// the device is done with the memory. A request inside a range that is known costs no driver call.
// One that overlaps ranges replaces them by their union, if nobody holds them.
//
// The owner of memory must tell before it goes (is unmapped, or freed by an allocator that may
// unmap): Invalidate(), or MemoryGone() from an allocator's hook, which tells every cache of the
// process. A range that stays pinned after its memory went is a mistake that nobody can see: copies
// from what is mapped there next read the old pages.
//
// Nothing unpins behind a Lease() but the union: when the limit is reached the ranges that were
// used longest ago are only marked, and Maintain() unpins them; call it where a wait does no harm.
// Until then a request that does not fit gets kResourceExhausted.
//
// After the device is lost its pins are gone: Lease returns kDeviceLost and the ranges are
// forgotten. In a forked child everything returns kFailedPrecondition.
//
// Thread-safe. No lock is held during a driver call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "keel/base/bytes.h"
#include "keel/base/export.h"
#include "keel/base/result.h"
#include "keel/hal/device.h"

namespace keel::memory {

namespace internal {
class RegistrationTable;
}  // namespace internal

// One hold on a pinned range.
class KEEL_EXPORT RegistrationLease {
 public:
  RegistrationLease() = default;
  RegistrationLease(RegistrationLease&& other) noexcept
      : table_(std::move(other.table_)), key_(std::exchange(other.key_, 0)) {
    other.table_ = nullptr;
  }
  RegistrationLease& operator=(RegistrationLease&& other) noexcept {
    std::swap(table_, other.table_);
    std::swap(key_, other.key_);
    return *this;
  }
  ~RegistrationLease() {
    if (table_ != nullptr) Release();
  }
  explicit operator bool() const { return table_ != nullptr; }

 private:
  friend class RegistrationCache;
  RegistrationLease(std::shared_ptr<internal::RegistrationTable> table, std::uint64_t key)
      : table_(std::move(table)), key_(key) {}
  void Release() noexcept;

  std::shared_ptr<internal::RegistrationTable> table_;
  std::uint64_t key_ = 0;  // where the range ends
};

struct RegistrationCacheOptions {
  Bytes limit = 4_GiB;            // pinned at most
  std::size_t max_ranges = 4096;  // at most
  // LeaseIfSeen() pins a range the n-th time it sees it.
  int pin_after = 2;
};

class KEEL_EXPORT RegistrationCache {
 public:
  struct Stats {
    std::size_t ranges = 0;
    Bytes bytes;  // pinned now
    Bytes peak_bytes;
    std::uint64_t hits = 0;           // leases of ranges that were there
    std::uint64_t registrations = 0;  // driver calls that pinned
    std::uint64_t releases = 0;       // driver calls that unpinned
    std::uint64_t merges = 0;         // ranges that went into a union
    std::uint64_t evictions = 0;      // ranges that made room
  };

  explicit RegistrationCache(std::shared_ptr<hal::Device> device,
                             const RegistrationCacheOptions& options = {});
  // Unpins everything. Leases must be gone.
  ~RegistrationCache();
  RegistrationCache(const RegistrationCache&) = delete;
  RegistrationCache& operator=(const RegistrationCache&) = delete;

  // Pins the range if it is not pinned. kResourceExhausted: the limit, see above. kUnavailable: it
  // overlaps a range that somebody holds, or that is being pinned or unpinned. kAlreadyExists:
  // somebody else has pinned a part of it. kInvalidArgument: nothing there that could be pinned.
  Result<RegistrationLease> Lease(const void* pointer, Bytes size);
  // A range that is pinned: no driver call. An empty lease if it is not.
  RegistrationLease Find(const void* pointer, Bytes size);
  // Whether a byte of it is in a range that is pinned, or is being pinned or unpinned. The driver
  // takes such memory for pinned, although it is so only while a lease is held.
  bool Overlaps(const void* pointer, Bytes size);
  // As Find, and as Lease when this range was asked for often enough. An empty lease is no error:
  // not seen often enough, or it cannot be pinned now.
  RegistrationLease LeaseIfSeen(const void* pointer, Bytes size);

  // The memory is about to go: unpins every range that overlaps it. Waits for their leases (so the
  // caller must hold none) and perhaps for the device.
  Status Invalidate(const void* pointer, Bytes size);
  // Unpins what was marked to make room; costs nothing if nothing was. The first error; what failed
  // stays, and may be tried again.
  Status Maintain();
  // Unpins what nobody holds, the range used longest ago first, until at most `target` is pinned.
  Status Trim(Bytes target = Bytes(0));

  Stats stats() const;

 private:
  std::shared_ptr<internal::RegistrationTable> table_;
};

// Whether any cache of the process Overlaps() this: a pin is the process's, so that the drivers of
// other devices take such memory for pinned as well. One atomic load when there is no cache.
KEEL_EXPORT bool IsLentByACache(const void* pointer, Bytes size);

// For an allocator's hook: tells every cache of the process that this memory is about to go. One
// atomic load when there is no cache. The first error: then a part of it may still be pinned; call
// it again.
KEEL_EXPORT Status MemoryGone(const void* pointer, Bytes size);

}  // namespace keel::memory
