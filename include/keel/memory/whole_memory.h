// WholeMemory: physical memory of a device that its owner maps himself, where and as often as he
// likes.
//
// It is no block of the allocator: nothing else is in its pages, and its size is that of the
// handle. But it is the allocator's to give: it is taken under its limit, free memory of the
// allocator goes back to the device if there is no other way, and its statistics count it as
// reserved and by its tag.
//
// Move-only. Mappings of it must be gone before it is: a mapping keeps the memory, but not its
// place in the books. Thread-safe as far as different objects go.
#pragma once

#include <memory>
#include <vector>

#include "keel/base/export.h"
#include "keel/base/result.h"
#include "keel/hal/memory.h"
#include "keel/memory/device_allocator.h"
#include "keel/telemetry/tags.h"

namespace keel::memory {

class KEEL_EXPORT WholeMemory {
 public:
  // `size` is rounded up to the device's granularity. kResourceExhausted: the limit, or the device
  // has no more; kUnimplemented: it has no virtual memory.
  static Result<WholeMemory> Create(DeviceAllocator& allocator, Bytes size,
                                    telemetry::TagId tag = telemetry::TagId::kNone);
  WholeMemory() = default;
  WholeMemory(WholeMemory&& other) noexcept;
  WholeMemory& operator=(WholeMemory&& other) noexcept;
  ~WholeMemory();

  explicit operator bool() const { return static_cast<bool>(memory_); }
  const hal::PhysicalMemory& memory() const { return memory_; }
  Bytes size() const { return size_; }
  // For a mapping of it: the device itself, and the peers that the allocator has now.
  std::vector<hal::AccessGrant> GrantsFor(hal::Access access) const;
  // kFailedPrecondition while a Mapping uses it, and nothing changed. OK for one that has nothing.
  Status Close();

 private:
  void GiveBack() noexcept;

  std::shared_ptr<AllocatorCore> core_;
  hal::PhysicalMemory memory_;
  Bytes size_;
  telemetry::TagId tag_ = telemetry::TagId::kNone;
};

}  // namespace keel::memory
