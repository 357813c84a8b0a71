#include "keel/hal/memory.h"

#include <algorithm>
#include <utility>

#include "hal/describe.h"

namespace keel::hal {

// --- Plain and host memory -------------------------------------------------------------------

Status PlainMemoryTraits::GiveBack(Device& device, const Handle& handle) {
  return device.FreePlain(handle.address);
}

std::string PlainMemoryTraits::Describe(const Handle& handle) {
  return DescribeRange("FreePlain", handle.address.value(), handle.size);
}

Result<PlainMemory> PlainMemory::Create(std::shared_ptr<Device> device, Bytes size) {
  KEEL_ASSIGN(const DeviceAddress address, device->AllocatePlain(size));
  return PlainMemory(std::move(device), {.address = address, .size = size});
}

Status HostMemoryTraits::GiveBack(Device& device, const Handle& handle) {
  return device.FreeHost(handle.pointer);
}

std::string HostMemoryTraits::Describe(const Handle& handle) {
  return DescribeRange("FreeHost", reinterpret_cast<std::uintptr_t>(handle.pointer), handle.size);
}

Result<HostMemory> HostMemory::Create(std::shared_ptr<Device> device, Bytes size,
                                      const HostOptions& options) {
  KEEL_ASSIGN(void* const pointer, device->AllocateHost(size, options));
  return HostMemory(std::move(device), {.pointer = pointer, .size = size});
}

Result<DeviceAddress> HostMemory::address() const {
  if (!*this) return InvalidArgument("this HostMemory owns no memory");
  return device()->GetHostAddress(data());
}

Status HostRegistrationTraits::GiveBack(Device& device, const Handle& handle) {
  return device.UnregisterHost(handle.pointer);
}

std::string HostRegistrationTraits::Describe(const Handle& handle) {
  return DescribeRange("UnregisterHost", reinterpret_cast<std::uintptr_t>(handle.pointer),
                       handle.size);
}

Result<HostRegistration> HostRegistration::Create(std::shared_ptr<Device> device, void* pointer,
                                                  Bytes size) {
  KEEL_TRY(device->RegisterHost(pointer, size));
  return HostRegistration(std::move(device), {.pointer = pointer, .size = size});
}

// --- Virtual memory ----------------------------------------------------------------------------

namespace internal {

// Both states point to their device without keeping it open: they may sit on its retry list, and
// a device that its own list keeps open is never closed. Every owner of a state keeps the device
// open beside it, and lets go of the state first.
struct MemoryState {
  MemoryState(Device* owner, MemoryHandle memory, Bytes bytes)
      : device(owner), handle(memory), size(bytes) {}
  MemoryState(const MemoryState&) = delete;
  MemoryState& operator=(const MemoryState&) = delete;
  ~MemoryState() {
    if (!handle) return;
    GiveBackOrRetry(
        *device, [this] { return DescribeHandle("ReleaseMemory", handle.value); },
        [to = device, memory = handle] { return to->ReleaseMemory(memory); });
  }

  Device* device;
  MemoryHandle handle;  // zero: given back
  Bytes size;
};

struct RangeState {
  RangeState(Device* owner, DeviceAddress start, Bytes bytes)
      : device(owner), address(start), size(bytes) {}
  RangeState(const RangeState&) = delete;
  RangeState& operator=(const RangeState&) = delete;
  ~RangeState() {
    if (!address) return;
    GiveBackOrRetry(
        *device, [this] { return DescribeRange("FreeAddress", address.value(), size); },
        [to = device, start = address, bytes = size] { return to->FreeAddress(start, bytes); });
  }

  Device* device;
  DeviceAddress address;  // zero: given back
  Bytes size;
};

}  // namespace internal

PhysicalMemory& PhysicalMemory::operator=(PhysicalMemory&& other) noexcept {
  if (this != &other) {
    state_ = std::move(other.state_);
    device_ = std::move(other.device_);
  }
  return *this;
}

PhysicalMemory::~PhysicalMemory() = default;

Result<PhysicalMemory> PhysicalMemory::Create(std::shared_ptr<Device> device, Bytes size,
                                              const MemoryOptions& options) {
  KEEL_ASSIGN(const MemoryHandle handle, device->CreateMemory(size, options));
  PhysicalMemory memory;
  memory.device_ = std::move(device);
  memory.state_ = std::make_shared<internal::MemoryState>(memory.device_.get(), handle, size);
  return memory;
}

Result<PhysicalMemory> PhysicalMemory::Import(std::shared_ptr<Device> device, int descriptor,
                                              Bytes size) {
  KEEL_ASSIGN(const MemoryHandle handle, device->ImportMemory(descriptor, size));
  PhysicalMemory memory;
  memory.device_ = std::move(device);
  memory.state_ = std::make_shared<internal::MemoryState>(memory.device_.get(), handle, size);
  return memory;
}

MemoryHandle PhysicalMemory::handle() const {
  return state_ == nullptr ? MemoryHandle{} : state_->handle;
}

Bytes PhysicalMemory::size() const { return state_ == nullptr ? Bytes(0) : state_->size; }

Result<UniqueFd> PhysicalMemory::Export() const {
  if (state_ == nullptr) return InvalidArgument("this PhysicalMemory owns no memory");
  return device_->ExportMemory(state_->handle);
}

Status PhysicalMemory::Close() {
  if (state_ == nullptr) return OkStatus();
  internal::DrainBeforeClose(*device_);
  if (state_.use_count() > 1) {
    return FailedPrecondition(DescribeHandle("ReleaseMemory", state_->handle.value) +
                              ": the memory is still mapped");
  }
  Status status = device_->ReleaseMemory(state_->handle);
  if (status.ok() || status.code() == StatusCode::kDeviceLost) {
    state_->handle = {};
    state_ = nullptr;
    device_ = nullptr;
  }
  return status;
}

AddressRange& AddressRange::operator=(AddressRange&& other) noexcept {
  if (this != &other) {
    state_ = std::move(other.state_);
    device_ = std::move(other.device_);
  }
  return *this;
}

AddressRange::~AddressRange() = default;

Result<AddressRange> AddressRange::Create(std::shared_ptr<Device> device, Bytes size,
                                          Bytes alignment, DeviceAddress hint) {
  KEEL_ASSIGN(const DeviceAddress address, device->ReserveAddress(size, alignment, hint));
  AddressRange range;
  range.device_ = std::move(device);
  range.state_ = std::make_shared<internal::RangeState>(range.device_.get(), address, size);
  return range;
}

DeviceAddress AddressRange::address() const {
  return state_ == nullptr ? DeviceAddress() : state_->address;
}

Bytes AddressRange::size() const { return state_ == nullptr ? Bytes(0) : state_->size; }

Status AddressRange::Close() {
  if (state_ == nullptr) return OkStatus();
  internal::DrainBeforeClose(*device_);
  if (state_.use_count() > 1) {
    return FailedPrecondition(DescribeRange("FreeAddress", state_->address.value(), state_->size) +
                              ": something is still mapped in it");
  }
  Status status = device_->FreeAddress(state_->address, state_->size);
  if (status.ok() || status.code() == StatusCode::kDeviceLost) {
    state_->address = {};
    state_ = nullptr;
    device_ = nullptr;
  }
  return status;
}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  if (this != &other) {
    GiveBack();
    device_ = std::move(other.device_);
    memory_device_ = std::move(other.memory_device_);
    range_ = std::move(other.range_);
    memory_ = std::move(other.memory_);
    address_ = other.address_;
    size_ = other.size_;
  }
  return *this;
}

Mapping::~Mapping() { GiveBack(); }

Result<Mapping> Mapping::Create(const AddressRange& range, Offset at, const PhysicalMemory& memory,
                                std::span<const AccessGrant> grants) {
  if (!range) return InvalidArgument("this AddressRange owns no range");
  if (!memory) return InvalidArgument("this PhysicalMemory owns no memory");
  // The device would accept a place that happens to lie in another reservation.
  if (memory.size() > range.size() || Bytes(at.value()) > range.size() - memory.size()) {
    return InvalidArgument(ToString(memory.size()) + " at offset " + std::to_string(at.value()) +
                           " do not lie in a range of " + ToString(range.size()));
  }
  const DeviceAddress address = range.address() + Bytes(at.value());
  KEEL_TRY(range.device_->Map(address, memory.size(), Offset(0), memory.handle()));
  Mapping mapping;
  mapping.device_ = range.device_;
  mapping.memory_device_ = memory.device_;
  mapping.range_ = range.state_;
  mapping.memory_ = memory.state_;
  mapping.address_ = address;
  mapping.size_ = memory.size();
  if (!grants.empty()) KEEL_TRY(mapping.SetAccess(grants));
  return mapping;
}

Status Mapping::SetAccess(std::span<const AccessGrant> grants) const {
  if (!*this) return InvalidArgument("this Mapping owns no mapping");
  return device_->SetAccess(address_, size_, grants);
}

Status Mapping::Close() {
  if (device_ == nullptr) return OkStatus();
  internal::DrainBeforeClose(*device_);
  Status status = device_->Unmap(address_, size_);
  if (status.ok() || status.code() == StatusCode::kDeviceLost) Forget();
  return status;
}

void Mapping::GiveBack() noexcept {
  if (device_ == nullptr) return;
  // An unmap that must be retried keeps the range and the memory, so that they are given back
  // after it. Not the memory of another device: that device may be closed before the retry, and to
  // keep it open from here could close a circle of two lists. Its handle is released while mapped,
  // which is legal.
  std::shared_ptr<internal::MemoryState> memory = memory_device_ == device_ ? memory_ : nullptr;
  internal::GiveBackOrRetry(
      *device_, [this] { return DescribeRange("Unmap", address_.value(), size_); },
      [device = device_.get(), address = address_, size = size_, range = range_,
       memory = std::move(memory)] { return device->Unmap(address, size); });
  Forget();
}

void Mapping::Forget() {
  // The states give back through the devices: they go first.
  memory_ = nullptr;
  range_ = nullptr;
  memory_device_ = nullptr;
  device_ = nullptr;
}

Result<MappedMemory> MappedMemory::Create(std::shared_ptr<Device> device, Bytes size,
                                          std::span<const AccessGrant> grants,
                                          const MemoryOptions& options) {
  const Capabilities& can = device->capabilities();
  if (!can.virtual_memory) return Unimplemented("this device has no virtual memory");
  const std::optional<Bytes> rounded = AlignUp(size, can.granularity.minimum);
  if (!rounded.has_value()) {
    return InvalidArgument(ToString(size) + " cannot be rounded up to the granularity");
  }
  const AccessGrant own[] = {{.device = device->id(), .access = Access::kReadWrite}};
  MappedMemory mapped;
  KEEL_ASSIGN(mapped.memory_, PhysicalMemory::Create(device, *rounded, options));
  KEEL_ASSIGN(mapped.range_, AddressRange::Create(std::move(device), *rounded));
  KEEL_ASSIGN(mapped.mapping_,
              Mapping::Create(mapped.range_, Offset(0), mapped.memory_,
                              grants.empty() ? std::span<const AccessGrant>(own) : grants));
  return mapped;
}

Status MappedMemory::Close() {
  Status first = mapping_.Close();
  // Still mapped: the other two could only be refused.
  if (mapping_) return first;
  for (Status status : {range_.Close(), memory_.Close()}) {
    if (first.ok()) first = std::move(status);
  }
  return first;
}

Result<std::vector<AccessGrant>> GrantsForPeers(Device& owner, std::span<Device* const> peers) {
  std::vector<AccessGrant> grants = {{.device = owner.id(), .access = Access::kReadWrite}};
  for (Device* peer : peers) {
    const auto listed = [&](const AccessGrant& grant) { return grant.device == peer->id(); };
    if (std::any_of(grants.begin(), grants.end(), listed)) continue;
    KEEL_ASSIGN(const bool can, peer->CanAccessPeer(owner.id()));
    if (can) grants.push_back({.device = peer->id(), .access = Access::kReadWrite});
  }
  return grants;
}

}  // namespace keel::hal
