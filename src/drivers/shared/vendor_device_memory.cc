// VendorDevice: plain, virtual and host memory, and peers.

#include <fmt/format.h>

#include "drivers/shared/current_scope.h"
#include "drivers/shared/short_list.h"
#include "drivers/shared/vendor_device.h"

namespace keel::vendor {

using hal::Primitive;

Result<hal::MemoryInfo> VendorDevice::GetMemoryInfo() {
  KEEL_TRY(Enter(Primitive::kGetMemoryInfo));
  CurrentScope current(api_, context_);
  std::size_t free = 0;
  std::size_t total = 0;
  KEEL_TRY(Check(Primitive::kGetMemoryInfo, api_.memory_info(&free, &total)));
  return hal::MemoryInfo{Bytes(free), Bytes(total)};
}

Result<DeviceAddress> VendorDevice::AllocatePlain(Bytes size) {
  KEEL_TRY(Enter(Primitive::kAllocatePlain));
  if (size.empty()) return InvalidArgument("plain memory of 0 bytes");
  CurrentScope current(api_, context_);
  CaptureModeScope mode(api_);
  std::uint64_t address = 0;
  KEEL_TRY(Check(Primitive::kAllocatePlain, api_.memory_allocate(&address, size.count())));
  return DeviceAddress(address);
}

Status VendorDevice::FreePlain(DeviceAddress address) {
  KEEL_TRY(Enter(Primitive::kFreePlain));
  // The library takes a null address for nothing to do.
  if (!address) return InvalidArgument("a null address is not plain memory");
  CurrentScope current(api_, context_);
  CaptureModeScope mode(api_);
  return Check(Primitive::kFreePlain, api_.memory_free(address.value()));
}

Result<hal::MemoryHandle> VendorDevice::CreateMemory(Bytes size,
                                                     const hal::MemoryOptions& options) {
  KEEL_TRY(Enter(Primitive::kCreateMemory, capabilities_.virtual_memory));
  KEEL_TRY(Enter(Primitive::kExportMemory, !options.exportable || capabilities_.exportable_memory));
  if (options.rdma && !capabilities_.rdma_memory) {
    return Unimplemented(fmt::format("{} has no memory for other hardware (rdma)", info_.name));
  }
  if (size.empty() || !IsAligned(size, capabilities_.granularity.minimum)) {
    return InvalidArgument(
        fmt::format("the size of physical memory must be a non-zero multiple of {}, not {}",
                    ToString(capabilities_.granularity.minimum), size.count()));
  }
  std::uint64_t handle = 0;
  KEEL_TRY(Check(Primitive::kCreateMemory, api_.memory_create(&handle, size.count(), device_,
                                                              options.exportable, options.rdma)));
  return hal::MemoryHandle{handle};
}

Status VendorDevice::ReleaseMemory(hal::MemoryHandle memory) {
  KEEL_TRY(Enter(Primitive::kReleaseMemory, capabilities_.virtual_memory));
  if (!memory) return InvalidArgument("a null handle is not physical memory");
  return Check(Primitive::kReleaseMemory, api_.memory_release(memory.value));
}

Result<UniqueFd> VendorDevice::ExportMemory(hal::MemoryHandle memory) {
  KEEL_TRY(Enter(Primitive::kExportMemory, capabilities_.exportable_memory));
  if (!memory) return InvalidArgument("a null handle is not physical memory");
  int descriptor = -1;
  KEEL_TRY(Check(Primitive::kExportMemory, api_.memory_export(&descriptor, memory.value)));
  return UniqueFd(descriptor);
}

Result<hal::MemoryHandle> VendorDevice::ImportMemory(int descriptor, Bytes size) {
  KEEL_TRY(Enter(Primitive::kImportMemory, capabilities_.exportable_memory));
  if (descriptor < 0) return InvalidArgument(fmt::format("{} is not a descriptor", descriptor));
  if (size.empty() || !IsAligned(size, capabilities_.granularity.minimum)) {
    return InvalidArgument(
        fmt::format("imported memory of {} bytes does not fit the granularity", size.count()));
  }
  CurrentScope current(api_, context_);
  std::uint64_t handle = 0;
  Status status = Check(Primitive::kImportMemory, api_.memory_import(&handle, descriptor));
  // Libraries have no word for "that is no memory"; whatever they say of it, the argument is wrong.
  if (status.code() == StatusCode::kInternal) {
    return InvalidArgument(
               fmt::format("descriptor {} is not memory that a device exported", descriptor))
        .WithVendor(status.vendor_code(), status.vendor_name());
  }
  KEEL_TRY(std::move(status));
  return hal::MemoryHandle{handle};
}

Result<DeviceAddress> VendorDevice::ReserveAddress(Bytes size, Bytes alignment,
                                                   DeviceAddress hint) {
  KEEL_TRY(Enter(Primitive::kReserveAddress, capabilities_.virtual_memory));
  if (size.empty() || !IsAligned(size, capabilities_.granularity.minimum)) {
    return InvalidArgument(fmt::format("the size of a reservation must be a multiple of {}, not {}",
                                       ToString(capabilities_.granularity.minimum), size.count()));
  }
  if (!alignment.empty() && !IsPowerOfTwo(alignment)) {
    return InvalidArgument(fmt::format(
        "the alignment of a reservation must be a power of two, not {}", alignment.count()));
  }
  std::uint64_t address = 0;
  const auto reserve = [&](DeviceAddress wish) {
    return Check(Primitive::kReserveAddress,
                 api_.address_reserve(&address, size.count(), alignment.count(), wish.value(), 0));
  };
  Status status = reserve(hint);
  // A hint is a wish; libraries refuse some of them.
  if (status.code() == StatusCode::kInvalidArgument && hint) status = reserve(DeviceAddress());
  // Size and alignment are in order, so what the library dislikes is how large they are.
  if (status.code() == StatusCode::kInvalidArgument) {
    return ResourceExhausted(fmt::format("there is no range of {} aligned to {}", ToString(size),
                                         ToString(alignment)))
        .WithVendor(status.vendor_code(), status.vendor_name());
  }
  KEEL_TRY(std::move(status));
  open_->addresses().AddReservation(id_, DeviceAddress(address), size);
  return DeviceAddress(address);
}

Status VendorDevice::FreeAddress(DeviceAddress address, Bytes size) {
  KEEL_TRY(Enter(Primitive::kFreeAddress, capabilities_.virtual_memory));
  AddressMap& addresses = open_->addresses();
  KEEL_TRY(addresses.TakeReservation(address, size));
  Status status = Check(Primitive::kFreeAddress, api_.address_free(address.value(), size.count()));
  if (!status.ok()) addresses.AddReservation(id_, address, size);
  return status;
}

Status VendorDevice::Map(DeviceAddress address, Bytes size, Offset offset,
                         hal::MemoryHandle memory) {
  KEEL_TRY(Enter(Primitive::kMap, capabilities_.virtual_memory));
  if (!memory) return InvalidArgument("a null handle is not physical memory");
  if (offset != Offset(0)) {
    return InvalidArgument(fmt::format("memory is mapped whole: offset 0, not {}", offset.value()));
  }
  AddressMap& addresses = open_->addresses();
  KEEL_TRY(addresses.AddMapping(id_, address, size));
  Status status =
      Check(Primitive::kMap, api_.map(address.value(), size.count(), 0, memory.value, 0));
  if (!status.ok()) (void)addresses.TakeMappings(address, size);
  // A part of a memory is "not supported" to a library; to a caller it is a wrong argument.
  if (status.code() == StatusCode::kUnimplemented) {
    return InvalidArgument(fmt::format("memory is mapped whole, not {} of it", ToString(size)))
        .WithVendor(status.vendor_code(), status.vendor_name());
  }
  return status;
}

Status VendorDevice::Unmap(DeviceAddress address, Bytes size) {
  KEEL_TRY(Enter(Primitive::kUnmap, capabilities_.virtual_memory));
  AddressMap& addresses = open_->addresses();
  KEEL_ASSIGN(const std::vector<AddressMap::Mapped> taken, addresses.TakeMappings(address, size));
  Status status = Check(Primitive::kUnmap, api_.unmap(address.value(), size.count()));
  if (!status.ok()) addresses.PutBack(taken);
  return status;
}

Status VendorDevice::SetAccess(DeviceAddress address, Bytes size,
                               std::span<const hal::AccessGrant> grants) {
  KEEL_TRY(Enter(Primitive::kSetAccess, capabilities_.virtual_memory));
  KEEL_TRY(open_->addresses().CheckWhole(address, size));
  for (const hal::AccessGrant& grant : grants) {
    if (grant.access == hal::Access::kWrite) {
      return InvalidArgument("access is none, read, or read and write; never write alone");
    }
    if (grant.device == id_) continue;
    KEEL_ASSIGN(const OpenDevices::Entry other, open_->Find(grant.device));
    if (grant.access == hal::Access::kNone) continue;
    int can = 0;
    KEEL_TRY(Check(Primitive::kSetAccess, api_.can_access_peer(&can, other.device, device_)));
    if (can == 0) {
      return FailedPrecondition(
          fmt::format("device {} cannot be given access to memory of device {}; ask "
                      "CanAccessPeer first",
                      other.device, device_));
    }
  }
  ShortList<abi::AccessDesc> descs(grants, [&](const hal::AccessGrant& grant) {
    abi::AccessDesc desc;
    desc.location.id = grant.device == id_ ? device_ : open_->Find(grant.device)->device;
    desc.flags = static_cast<int>(grant.access);
    return desc;
  });
  return Check(Primitive::kSetAccess,
               api_.set_access(address.value(), size.count(), descs.data(), descs.size()));
}

Result<hal::Access> VendorDevice::GetAccess(DeviceAddress address, hal::DeviceId device) {
  KEEL_TRY(Enter(Primitive::kGetAccess, capabilities_.virtual_memory));
  int number = device_;
  if (device != id_) {
    KEEL_ASSIGN(const OpenDevices::Entry other, open_->Find(device));
    number = other.device;
  }
  hal::Access access = hal::Access::kNone;
  KEEL_TRY(Check(Primitive::kGetAccess, api_.get_access(&access, address.value(), number)));
  return access;
}

Result<void*> VendorDevice::AllocateHost(Bytes size, const hal::HostOptions& options) {
  KEEL_TRY(Enter(Primitive::kAllocateHost));
  if (size.empty()) return InvalidArgument("host memory of 0 bytes");
  CurrentScope current(api_, context_);
  CaptureModeScope mode(api_);
  void* pointer = nullptr;
  KEEL_TRY(Check(Primitive::kAllocateHost,
                 api_.host_allocate(&pointer, size.count(), options.write_combined)));
  open_->pinned().Add(id_, pointer, size);
  return pointer;
}

Status VendorDevice::FreeHost(void* pointer) {
  KEEL_TRY(Enter(Primitive::kFreeHost));
  if (pointer == nullptr) return InvalidArgument("a null pointer is not pinned memory");
  CurrentScope current(api_, context_);
  CaptureModeScope mode(api_);
  const PinnedRanges::Range range = open_->pinned().Take(pointer);
  Status status = Check(Primitive::kFreeHost, api_.host_free(pointer));
  if (!status.ok() && !range.size.empty()) open_->pinned().Add(range.owner, pointer, range.size);
  return status;
}

Status VendorDevice::RegisterHost(void* pointer, Bytes size) {
  KEEL_TRY(Enter(Primitive::kRegisterHost, capabilities_.host_registration));
  if (pointer == nullptr || size.empty()) {
    return InvalidArgument(
        fmt::format("{} bytes at {} are not host memory", size.count(), pointer));
  }
  CurrentScope current(api_, context_);
  CaptureModeScope mode(api_);
  Status status = Check(Primitive::kRegisterHost, api_.host_register(pointer, size.count()));
  if (status.code() == StatusCode::kInvalidArgument && AnyPinned(pointer, size)) {
    return AlreadyExists(
               fmt::format("some of the {} at {} is pinned already", ToString(size), pointer))
        .WithVendor(status.vendor_code(), status.vendor_name());
  }
  if (status.ok()) open_->pinned().Add(id_, pointer, size);
  return status;
}

bool VendorDevice::AnyPinned(const void* pointer, Bytes size) const {
  constexpr std::uint64_t kPage = 4096;
  const std::uint64_t end = Value(pointer) + size.count();
  for (std::uint64_t at = Value(pointer); at < end; at = (at / kPage + 1) * kPage) {
    if (api_.is_pinned(Pointer(at))) return true;
  }
  return false;
}

Status VendorDevice::UnregisterHost(void* pointer) {
  KEEL_TRY(Enter(Primitive::kUnregisterHost, capabilities_.host_registration));
  CurrentScope current(api_, context_);
  CaptureModeScope mode(api_);
  const PinnedRanges::Range range = open_->pinned().Take(pointer);
  Status status = Check(Primitive::kUnregisterHost, api_.host_unregister(pointer));
  if (!status.ok() && !range.size.empty()) open_->pinned().Add(range.owner, pointer, range.size);
  return status;
}

Result<DeviceAddress> VendorDevice::GetHostAddress(const void* pointer) {
  KEEL_TRY(Enter(Primitive::kGetHostAddress));
  CurrentScope current(api_, context_);
  std::uint64_t address = 0;
  KEEL_TRY(Check(Primitive::kGetHostAddress,
                 api_.host_address(&address, const_cast<void*>(pointer), 0)));
  return DeviceAddress(address);
}

Result<bool> VendorDevice::CanAccessPeer(hal::DeviceId peer) {
  KEEL_TRY(Enter(Primitive::kCanAccessPeer));
  if (peer == id_) return true;
  KEEL_ASSIGN(const OpenDevices::Entry other, open_->Find(peer));
  int can = 0;
  KEEL_TRY(Check(Primitive::kCanAccessPeer, api_.can_access_peer(&can, device_, other.device)));
  return can != 0;
}

Status VendorDevice::EnablePeerAccess(hal::DeviceId peer) {
  KEEL_ASSIGN(const bool can, CanAccessPeer(peer));
  if (peer == id_) return OkStatus();
  KEEL_ASSIGN(const OpenDevices::Entry other, open_->Find(peer));
  if (!can) {
    return FailedPrecondition(
        fmt::format("device {} cannot access memory of device {}", device_, other.device));
  }
  CurrentScope current(api_, context_);
  const Code code = api_.enable_peer(other.context, 0);
  return code == api_.already_enabled ? OkStatus() : Check(Primitive::kEnablePeerAccess, code);
}

Status VendorDevice::DisablePeerAccess(hal::DeviceId peer) {
  KEEL_TRY(Enter(Primitive::kDisablePeerAccess));
  KEEL_ASSIGN(const OpenDevices::Entry other, open_->Find(peer));
  if (peer == id_) return OkStatus();
  CurrentScope current(api_, context_);
  const Code code = api_.disable_peer(other.context);
  return code == api_.not_enabled ? OkStatus() : Check(Primitive::kDisablePeerAccess, code);
}

}  // namespace keel::vendor
