// The owners of memory: plain, physical, a range of addresses, a mapping of one in the other, and
// pinned host memory.
//
// Order of giving back: a mapping is unmapped before its physical memory is released and before
// its range is freed. The owners see to it: a mapping keeps both alive, so destroying them in any
// order is right, and closing one that is still used by a mapping is refused
// (kFailedPrecondition) and changes nothing.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "keel/hal/owned_handle.h"

namespace keel::hal {

// --- Plain device memory -------------------------------------------------------------------------

struct KEEL_EXPORT PlainMemoryTraits {
  struct Handle {
    DeviceAddress address;
    Bytes size;
  };
  static Status GiveBack(Device& device, const Handle& handle);
  static std::string Describe(const Handle& handle);
};

class KEEL_EXPORT PlainMemory : public OwnedHandle<PlainMemoryTraits> {
 public:
  using OwnedHandle::OwnedHandle;
  static Result<PlainMemory> Create(std::shared_ptr<Device> device, Bytes size);
  DeviceAddress address() const { return handle().address; }
  Bytes size() const { return handle().size; }
};

// --- Virtual memory --------------------------------------------------------------------------

namespace internal {
struct MemoryState;  // gives physical memory back when the last of its users is gone
struct RangeState;   // the same for a range of addresses
}  // namespace internal

class KEEL_EXPORT PhysicalMemory {
 public:
  PhysicalMemory() = default;
  PhysicalMemory(PhysicalMemory&&) noexcept = default;
  PhysicalMemory& operator=(PhysicalMemory&& other) noexcept;
  ~PhysicalMemory();

  static Result<PhysicalMemory> Create(std::shared_ptr<Device> device, Bytes size,
                                       const MemoryOptions& options = {});
  static Result<PhysicalMemory> Import(std::shared_ptr<Device> device, int descriptor, Bytes size);

  explicit operator bool() const { return state_ != nullptr; }
  MemoryHandle handle() const;
  Bytes size() const;
  const std::shared_ptr<Device>& device() const { return device_; }
  Result<UniqueFd> Export() const;
  // kFailedPrecondition while a Mapping uses it.
  Status Close();

 private:
  friend class Mapping;
  std::shared_ptr<Device> device_;  // after state_ in destruction: see ~PhysicalMemory
  std::shared_ptr<internal::MemoryState> state_;
};

class KEEL_EXPORT AddressRange {
 public:
  AddressRange() = default;
  AddressRange(AddressRange&&) noexcept = default;
  AddressRange& operator=(AddressRange&& other) noexcept;
  ~AddressRange();

  static Result<AddressRange> Create(std::shared_ptr<Device> device, Bytes size,
                                     Bytes alignment = Bytes(0), DeviceAddress hint = {});

  explicit operator bool() const { return state_ != nullptr; }
  DeviceAddress address() const;
  Bytes size() const;
  const std::shared_ptr<Device>& device() const { return device_; }
  // kFailedPrecondition while a Mapping is in it.
  Status Close();

 private:
  friend class Mapping;
  std::shared_ptr<Device> device_;
  std::shared_ptr<internal::RangeState> state_;
};

// One physical memory, whole, at one place of a range.
class KEEL_EXPORT Mapping {
 public:
  Mapping() = default;
  Mapping(Mapping&&) noexcept = default;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  // Maps, and sets the access of `grants` if there are any; when that fails the mapping is undone.
  static Result<Mapping> Create(const AddressRange& range, Offset at, const PhysicalMemory& memory,
                                std::span<const AccessGrant> grants = {});

  explicit operator bool() const { return device_ != nullptr; }
  DeviceAddress address() const { return address_; }
  Bytes size() const { return size_; }
  const std::shared_ptr<Device>& device() const { return device_; }
  Status SetAccess(std::span<const AccessGrant> grants) const;
  // Unmaps. Does not wait for work that uses the range: that is the caller's to know.
  Status Close();

 private:
  void GiveBack() noexcept;
  void Forget();

  std::shared_ptr<Device> device_;         // of the range
  std::shared_ptr<Device> memory_device_;  // of the memory: the same, or a peer
  std::shared_ptr<internal::RangeState> range_;
  std::shared_ptr<internal::MemoryState> memory_;
  DeviceAddress address_;
  Bytes size_;
};

// The four steps (create, reserve, map, set access) as one owner; a failure of any gives back the
// earlier ones.
class KEEL_EXPORT MappedMemory {
 public:
  MappedMemory() = default;
  // `size` is rounded up to the granularity. Without `grants`, the device itself gets read and
  // write.
  static Result<MappedMemory> Create(std::shared_ptr<Device> device, Bytes size,
                                     std::span<const AccessGrant> grants = {},
                                     const MemoryOptions& options = {});

  explicit operator bool() const { return static_cast<bool>(mapping_); }
  DeviceAddress address() const { return mapping_.address(); }
  Bytes size() const { return mapping_.size(); }
  const PhysicalMemory& memory() const { return memory_; }
  const Mapping& mapping() const { return mapping_; }
  // The first error; what could not be closed stays owned, and may be closed again.
  Status Close();

 private:
  PhysicalMemory memory_;
  AddressRange range_;
  Mapping mapping_;
};

// Read and write for `owner` and for every one of `peers` that can have access to its memory;
// those that cannot are left out.
KEEL_EXPORT Result<std::vector<AccessGrant>> GrantsForPeers(Device& owner,
                                                            std::span<Device* const> peers);

// --- Host memory -----------------------------------------------------------------------------

struct KEEL_EXPORT HostMemoryTraits {
  struct Handle {
    void* pointer = nullptr;
    Bytes size;
  };
  static Status GiveBack(Device& device, const Handle& handle);
  static std::string Describe(const Handle& handle);
};

class KEEL_EXPORT HostMemory : public OwnedHandle<HostMemoryTraits> {
 public:
  using OwnedHandle::OwnedHandle;
  static Result<HostMemory> Create(std::shared_ptr<Device> device, Bytes size,
                                   const HostOptions& options = {});
  void* data() const { return handle().pointer; }
  Bytes size() const { return handle().size; }
  // Where the device sees it.
  Result<DeviceAddress> address() const;
};

struct KEEL_EXPORT HostRegistrationTraits {
  using Handle = HostMemoryTraits::Handle;
  static Status GiveBack(Device& device, const Handle& handle);
  static std::string Describe(const Handle& handle);
};

// Pins memory that somebody else owns. Must go before the memory does.
class KEEL_EXPORT HostRegistration : public OwnedHandle<HostRegistrationTraits> {
 public:
  using OwnedHandle::OwnedHandle;
  static Result<HostRegistration> Create(std::shared_ptr<Device> device, void* pointer, Bytes size);
  void* data() const { return handle().pointer; }
  Bytes size() const { return handle().size; }
};

}  // namespace keel::hal
