// KnownRange: device memory that is no block of the allocator, and that the functions of the C
// interface work with all the same: physical memory, and outputs that are held at a second address.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "keel/base/bytes.h"
#include "keel/hal/device.h"

namespace keel::capi {

struct AddressSpan {
  DeviceAddress address;
  Bytes size;
};

// Known as long as this is there. Move-only. Any thread may look while others come and go.
class KnownRange {
 public:
  KnownRange() = default;
  KnownRange(std::shared_ptr<hal::Device> device, AddressSpan span);
  KnownRange(KnownRange&& other) noexcept
      : device_(std::move(other.device_)), address_(other.address_) {}
  KnownRange& operator=(KnownRange&& other) noexcept;
  ~KnownRange() { Forget(); }

  // The one that has the byte at `address`.
  static std::optional<AddressSpan> Find(const hal::Device& device, DeviceAddress address);

 private:
  void Forget();
  std::shared_ptr<hal::Device> device_;  // null: nothing
  DeviceAddress address_;
};

}  // namespace keel::capi
