// VendorDevice: plain, virtual and host memory, and peers.

#include <fmt/format.h>

#include "drivers/shared/current_scope.h"
#include "drivers/shared/vendor_device.h"

namespace keel::vendor {

using hal::Primitive;

Result<hal::MemoryInfo> VendorDevice::GetMemoryInfo() {
  KEEL_TRY(Enter());
  CurrentScope current(api_, context_);
  std::size_t free = 0;
  std::size_t total = 0;
  KEEL_TRY(Check("GetMemoryInfo", api_.memory_info(&free, &total)));
  return hal::MemoryInfo{Bytes(free), Bytes(total)};
}

Result<DeviceAddress> VendorDevice::AllocatePlain(Bytes size) {
  KEEL_TRY(Enter());
  if (size.empty()) return InvalidArgument("plain memory of 0 bytes");
  CurrentScope current(api_, context_);
  CaptureModeScope mode(api_);
  std::uint64_t address = 0;
  KEEL_TRY(Check("AllocatePlain", api_.memory_allocate(&address, size.count())));
  return DeviceAddress(address);
}

Status VendorDevice::FreePlain(DeviceAddress address) {
  KEEL_TRY(Enter());
  // The library takes a null address for nothing to do.
  if (!address) return InvalidArgument("a null address is not plain memory");
  CurrentScope current(api_, context_);
  CaptureModeScope mode(api_);
  return Check("FreePlain", api_.memory_free(address.value()));
}

Result<hal::MemoryHandle> VendorDevice::CreateMemory(Bytes size,
                                                     const hal::MemoryOptions& options) {
  KEEL_TRY(Enter(capabilities_.virtual_memory, Primitive::kCreateMemory));
  KEEL_TRY(Enter(!options.exportable || capabilities_.exportable_memory, Primitive::kExportMemory));
  if (options.rdma && !capabilities_.rdma_memory) {
    return Unimplemented(fmt::format("{} has no memory for other hardware (rdma)", info_.name));
  }
  if (size.empty() || !IsAligned(size, capabilities_.granularity.minimum)) {
    return InvalidArgument(
        fmt::format("the size of physical memory must be a non-zero multiple of {}, not {}",
                    ToString(capabilities_.granularity.minimum), size.count()));
  }
  std::uint64_t handle = 0;
  KEEL_TRY(Check("CreateMemory", api_.memory_create(&handle, size.count(), device_,
                                                    options.exportable, options.rdma)));
  return hal::MemoryHandle{handle};
}

Status VendorDevice::ReleaseMemory(hal::MemoryHandle memory) {
  KEEL_TRY(Enter(capabilities_.virtual_memory, Primitive::kReleaseMemory));
  if (!memory) return InvalidArgument("a null handle is not physical memory");
  return Check("ReleaseMemory", api_.memory_release(memory.value));
}

Result<UniqueFd> VendorDevice::ExportMemory(hal::MemoryHandle memory) {
  KEEL_TRY(Enter(capabilities_.exportable_memory, Primitive::kExportMemory));
  if (!memory) return InvalidArgument("a null handle is not physical memory");
  int descriptor = -1;
  KEEL_TRY(Check("ExportMemory", api_.memory_export(&descriptor, memory.value)));
  return UniqueFd(descriptor);
}

Result<hal::MemoryHandle> VendorDevice::ImportMemory(int descriptor, Bytes size) {
  KEEL_TRY(Enter(capabilities_.exportable_memory, Primitive::kImportMemory));
  if (descriptor < 0) return InvalidArgument(fmt::format("{} is not a descriptor", descriptor));
  if (size.empty() || !IsAligned(size, capabilities_.granularity.minimum)) {
    return InvalidArgument(
        fmt::format("imported memory of {} bytes does not fit the granularity", size.count()));
  }
  CurrentScope current(api_, context_);
  std::uint64_t handle = 0;
  Status status = Check("ImportMemory", api_.memory_import(&handle, descriptor));
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
  KEEL_TRY(Enter(capabilities_.virtual_memory, Primitive::kReserveAddress));
  if (size.empty() || !IsAligned(size, capabilities_.granularity.minimum)) {
    return InvalidArgument(fmt::format("the size of a reservation must be a multiple of {}, not {}",
                                       ToString(capabilities_.granularity.minimum), size.count()));
  }
  if (!alignment.empty() && !IsPowerOfTwo(alignment)) {
    return InvalidArgument(fmt::format(
        "the alignment of a reservation must be a power of two, not {}", alignment.count()));
  }
  std::uint64_t address = 0;
  KEEL_TRY(Check("ReserveAddress",
                 api_.address_reserve(&address, size.count(), alignment.count(), hint.value(), 0)));
  return DeviceAddress(address);
}

Status VendorDevice::FreeAddress(DeviceAddress address, Bytes size) {
  KEEL_TRY(Enter(capabilities_.virtual_memory, Primitive::kFreeAddress));
  return Check("FreeAddress", api_.address_free(address.value(), size.count()));
}

Status VendorDevice::Map(DeviceAddress address, Bytes size, Offset offset,
                         hal::MemoryHandle memory) {
  KEEL_TRY(Enter(capabilities_.virtual_memory, Primitive::kMap));
  if (!memory) return InvalidArgument("a null handle is not physical memory");
  if (offset != Offset(0)) {
    return InvalidArgument(fmt::format("memory is mapped whole: offset 0, not {}", offset.value()));
  }
  Status status = Check("Map", api_.map(address.value(), size.count(), 0, memory.value, 0));
  // A part of a memory is "not supported" to a library; to a caller it is a wrong argument.
  if (status.code() == StatusCode::kUnimplemented) {
    return InvalidArgument(fmt::format("memory is mapped whole, not {} of it", ToString(size)))
        .WithVendor(status.vendor_code(), status.vendor_name());
  }
  return status;
}

Status VendorDevice::Unmap(DeviceAddress address, Bytes size) {
  KEEL_TRY(Enter(capabilities_.virtual_memory, Primitive::kUnmap));
  return Check("Unmap", api_.unmap(address.value(), size.count()));
}

Status VendorDevice::SetAccess(DeviceAddress address, Bytes size,
                               std::span<const hal::AccessGrant> grants) {
  KEEL_TRY(Enter(capabilities_.virtual_memory, Primitive::kSetAccess));
  std::vector<AccessPair> pairs;
  pairs.reserve(grants.size());
  for (const hal::AccessGrant& grant : grants) {
    if (grant.access == hal::Access::kWrite) {
      return InvalidArgument("access is none, read, or read and write; never write alone");
    }
    KEEL_ASSIGN(const OpenDevices::Entry other, open_->Find(grant.device));
    if (grant.device != id_ && grant.access != hal::Access::kNone) {
      int can = 0;
      KEEL_TRY(Check("SetAccess", api_.can_access_peer(&can, other.device, device_)));
      if (can == 0) {
        return FailedPrecondition(
            fmt::format("device {} cannot be given access to memory of device {}; ask "
                        "CanAccessPeer first",
                        other.device, device_));
      }
    }
    pairs.push_back({other.device, grant.access});
  }
  return Check("SetAccess",
               api_.set_access(address.value(), size.count(), pairs.data(), pairs.size()));
}

Result<hal::Access> VendorDevice::GetAccess(DeviceAddress address, hal::DeviceId device) {
  KEEL_TRY(Enter(capabilities_.virtual_memory, Primitive::kGetAccess));
  KEEL_ASSIGN(const OpenDevices::Entry other, open_->Find(device));
  hal::Access access = hal::Access::kNone;
  KEEL_TRY(Check("GetAccess", api_.get_access(&access, address.value(), other.device)));
  return access;
}

Result<void*> VendorDevice::AllocateHost(Bytes size, const hal::HostOptions& options) {
  KEEL_TRY(Enter());
  if (size.empty()) return InvalidArgument("host memory of 0 bytes");
  CurrentScope current(api_, context_);
  CaptureModeScope mode(api_);
  void* pointer = nullptr;
  KEEL_TRY(
      Check("AllocateHost", api_.host_allocate(&pointer, size.count(), options.write_combined)));
  return pointer;
}

Status VendorDevice::FreeHost(void* pointer) {
  KEEL_TRY(Enter());
  if (pointer == nullptr) return InvalidArgument("a null pointer is not pinned memory");
  CurrentScope current(api_, context_);
  CaptureModeScope mode(api_);
  return Check("FreeHost", api_.host_free(pointer));
}

Status VendorDevice::RegisterHost(void* pointer, Bytes size) {
  KEEL_TRY(Enter(capabilities_.host_registration, Primitive::kRegisterHost));
  if (pointer == nullptr || size.empty()) {
    return InvalidArgument(
        fmt::format("{} bytes at {} are not host memory", size.count(), pointer));
  }
  CurrentScope current(api_, context_);
  CaptureModeScope mode(api_);
  return Check("RegisterHost", api_.host_register(pointer, size.count()));
}

Status VendorDevice::UnregisterHost(void* pointer) {
  KEEL_TRY(Enter(capabilities_.host_registration, Primitive::kUnregisterHost));
  CurrentScope current(api_, context_);
  CaptureModeScope mode(api_);
  return Check("UnregisterHost", api_.host_unregister(pointer));
}

Result<DeviceAddress> VendorDevice::GetHostAddress(const void* pointer) {
  KEEL_TRY(Enter());
  CurrentScope current(api_, context_);
  std::uint64_t address = 0;
  KEEL_TRY(Check("GetHostAddress", api_.host_address(&address, const_cast<void*>(pointer), 0)));
  return DeviceAddress(address);
}

Result<bool> VendorDevice::CanAccessPeer(hal::DeviceId peer) {
  KEEL_TRY(Enter());
  if (peer == id_) return true;
  KEEL_ASSIGN(const OpenDevices::Entry other, open_->Find(peer));
  int can = 0;
  KEEL_TRY(Check("CanAccessPeer", api_.can_access_peer(&can, device_, other.device)));
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
  return code == api_.already_enabled ? OkStatus() : Check("EnablePeerAccess", code);
}

Status VendorDevice::DisablePeerAccess(hal::DeviceId peer) {
  KEEL_TRY(Enter());
  KEEL_ASSIGN(const OpenDevices::Entry other, open_->Find(peer));
  if (peer == id_) return OkStatus();
  CurrentScope current(api_, context_);
  const Code code = api_.disable_peer(other.context);
  return code == api_.not_enabled ? OkStatus() : Check("DisablePeerAccess", code);
}

}  // namespace keel::vendor
