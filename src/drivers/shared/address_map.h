// AddressMap: which addresses the devices of one library have reserved and mapped.
//
// Vendors' libraries differ in what they let through (a mapping over the border of two
// reservations, an unmap over a hole, half a mapping) and have one code for every refusal. The
// device layer's contract is stricter and tells them apart, so the driver keeps its own books. They
// cost well under a microsecond on calls that take tens of them.
//
// Books are changed before the library is called, and changed back if it refuses: of two threads
// that want the same range one is told here. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "keel/base/bytes.h"
#include "keel/base/mutex.h"
#include "keel/base/status.h"
#include "keel/hal/types.h"

namespace keel::vendor {

class AddressMap {
 public:
  struct Mapped {
    std::uint64_t address = 0;
    std::uint64_t size = 0;
    hal::DeviceId owner = hal::DeviceId::kNone;  // through which it was mapped
  };

  // --- Reservations ------------------------------------------------------------------------------
  void AddReservation(hal::DeviceId owner, DeviceAddress address, Bytes size) KEEL_EXCLUDES(mutex_);
  // kInvalidArgument unless it is a whole reservation; kFailedPrecondition while something is
  // mapped in it.
  Status TakeReservation(DeviceAddress address, Bytes size) KEEL_EXCLUDES(mutex_);

  // --- Mappings ----------------------------------------------------------------------------------
  // kInvalidArgument outside of one reservation; kFailedPrecondition over a mapping.
  Status AddMapping(hal::DeviceId owner, DeviceAddress address, Bytes size) KEEL_EXCLUDES(mutex_);
  // That mappings fill the range from end to end; kInvalidArgument if there is a hole, or a part of
  // one.
  Status CheckWhole(DeviceAddress address, Bytes size) const KEEL_EXCLUDES(mutex_);
  // The same, and they are gone from the books. Put back what the library refused to unmap.
  Result<std::vector<Mapped>> TakeMappings(DeviceAddress address, Bytes size) KEEL_EXCLUDES(mutex_);
  void PutBack(const std::vector<Mapped>& mappings) KEEL_EXCLUDES(mutex_);

  // Forgets what a device that is closed left behind.
  void Forget(hal::DeviceId owner) KEEL_EXCLUDES(mutex_);

 private:
  struct Extent {
    std::uint64_t size = 0;
    hal::DeviceId owner = hal::DeviceId::kNone;
  };
  using Extents = std::map<std::uint64_t, Extent>;
  // The first mapping that ends behind `address`.
  Extents::const_iterator FirstMappingLocked(std::uint64_t address) const KEEL_REQUIRES(mutex_);
  // Calls `visit` for the mappings that fill the range; the error where they do not, which may
  // come after some were visited.
  template <class Visit>
  Status WalkWholeLocked(DeviceAddress address, Bytes size, Visit visit) const
      KEEL_REQUIRES(mutex_);

  mutable Mutex mutex_;
  Extents reservations_ KEEL_GUARDED_BY(mutex_);
  Extents mappings_ KEEL_GUARDED_BY(mutex_);
};

}  // namespace keel::vendor
