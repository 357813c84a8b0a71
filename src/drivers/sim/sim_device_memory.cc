// SimDevice: plain, virtual and host memory, and peers.

#include <fmt/format.h>

#include <utility>

#include "drivers/sim/sim_device.h"

namespace keel::sim {

using hal::Primitive;

Result<hal::MemoryInfo> SimDevice::GetMemoryInfo() {
  KEEL_TRY(Enter(Primitive::kGetMemoryInfo));
  const Bytes total = machine_->FileOf(ordinal_)->capacity();
  return hal::MemoryInfo{total - used(), total};
}

Result<DeviceAddress> SimDevice::AllocatePlain(Bytes size) {
  KEEL_TRY(Enter(Primitive::kAllocatePlain, Safety::kUnsafeInCapture));
  if (size.empty()) return InvalidArgument("plain memory of 0 bytes");
  const std::optional<Bytes> whole = AlignUp(size, 4_KiB);
  if (!whole) {
    return ResourceExhausted(
        fmt::format("{} bytes of plain memory are more than any device has", size.count()));
  }
  KEEL_ASSIGN(auto block, PhysicalBlock::Create(machine_->FileOf(ordinal_), *whole,
                                                /*exportable=*/false));
  return machine_->SpaceOf(ordinal_).MapPlain(machine_->ArenaOf(ordinal_), ordinal_,
                                              std::move(block));
}

Status SimDevice::FreePlain(DeviceAddress address) {
  KEEL_TRY(Enter(Primitive::kFreePlain, Safety::kUnsafeInCapture));
  return machine_->SpaceOf(ordinal_).UnmapPlain(address, ordinal_);
}

Result<hal::MemoryHandle> SimDevice::CreateMemory(Bytes size, const hal::MemoryOptions& options) {
  KEEL_TRY(Enter(Primitive::kCreateMemory));
  const Bytes granularity = machine_->config().granularity;
  if (size.empty() || !IsAligned(size, granularity)) {
    return InvalidArgument(
        fmt::format("the size of physical memory must be a non-zero multiple of {}, not {}",
                    ToString(granularity), size.count()));
  }
  if (options.rdma) {
    return Unimplemented("the simulated device has no memory for other hardware (rdma)");
  }
  KEEL_ASSIGN(auto block,
              PhysicalBlock::Create(machine_->FileOf(ordinal_), size, options.exportable));
  return hal::MemoryHandle{machine_->memories.Insert(
      std::make_shared<MemoryObject>(MemoryObject{std::move(block), ordinal_}))};
}

Result<std::shared_ptr<PhysicalBlock>> SimDevice::FindMemory(hal::MemoryHandle memory) const {
  const std::shared_ptr<MemoryObject> object = machine_->memories.Find(memory.value);
  if (object == nullptr) {
    return InvalidArgument(
        fmt::format("{:#x} is not the handle of physical memory, or was released", memory.value));
  }
  return object->block;
}

Status SimDevice::ReleaseMemory(hal::MemoryHandle memory) {
  KEEL_TRY(Enter(Primitive::kReleaseMemory));
  const std::shared_ptr<MemoryObject> object = machine_->memories.Find(memory.value);
  if (object != nullptr && object->ordinal != ordinal_) {
    return InvalidArgument(fmt::format("memory {:#x} belongs to device {}, not to device {}",
                                       memory.value, object->ordinal, ordinal_));
  }
  if (machine_->memories.Remove(memory.value) == nullptr) return FindMemory(memory).status();
  return OkStatus();
}

Result<UniqueFd> SimDevice::ExportMemory(hal::MemoryHandle memory) {
  KEEL_TRY(Enter(Primitive::kExportMemory));
  KEEL_ASSIGN(const auto block, FindMemory(memory));
  return block->Export();
}

Result<hal::MemoryHandle> SimDevice::ImportMemory(int descriptor, Bytes size) {
  KEEL_TRY(Enter(Primitive::kImportMemory));
  if (size.empty() || !IsAligned(size, machine_->config().granularity)) {
    return InvalidArgument(
        fmt::format("imported memory of {} bytes does not fit the granularity of {}", size.count(),
                    ToString(machine_->config().granularity)));
  }
  KEEL_ASSIGN(auto block, PhysicalBlock::Import(machine_->FileOf(ordinal_), descriptor, size));
  return hal::MemoryHandle{machine_->memories.Insert(
      std::make_shared<MemoryObject>(MemoryObject{std::move(block), ordinal_}))};
}

Result<DeviceAddress> SimDevice::ReserveAddress(Bytes size, Bytes alignment, DeviceAddress hint) {
  KEEL_TRY(Enter(Primitive::kReserveAddress));
  return machine_->SpaceOf(ordinal_).Reserve(machine_->ArenaOf(ordinal_), size, alignment, hint);
}

Status SimDevice::FreeAddress(DeviceAddress address, Bytes size) {
  KEEL_TRY(Enter(Primitive::kFreeAddress));
  return machine_->SpaceOf(ordinal_).FreeReservation(address, size);
}

Status SimDevice::Map(DeviceAddress address, Bytes size, Offset offset, hal::MemoryHandle memory) {
  KEEL_TRY(Enter(Primitive::kMap));
  KEEL_ASSIGN(auto block, FindMemory(memory));
  if (offset != Offset(0) || size != block->size()) {
    return InvalidArgument(
        fmt::format("memory is mapped whole: offset 0 and {}, not offset {} and {}",
                    ToString(block->size()), offset.value(), ToString(size)));
  }
  if (!machine_->config().unified && block->ordinal() != ordinal_) {
    return InvalidArgument(
        fmt::format("memory of device {} cannot be mapped in the separate address space of device "
                    "{}",
                    block->ordinal(), ordinal_));
  }
  return machine_->SpaceOf(ordinal_).Map(address, std::move(block));
}

Status SimDevice::Unmap(DeviceAddress address, Bytes size) {
  KEEL_TRY(Enter(Primitive::kUnmap));
  return machine_->SpaceOf(ordinal_).Unmap(address, size);
}

Status SimDevice::SetAccess(DeviceAddress address, Bytes size,
                            std::span<const hal::AccessGrant> grants) {
  KEEL_TRY(Enter(Primitive::kSetAccess));
  std::vector<AddressSpace::Grant> by_ordinal;
  for (const hal::AccessGrant& grant : grants) {
    KEEL_ASSIGN(const int other, FindPeer(grant.device));
    if (grant.access == hal::Access::kWrite) {
      return InvalidArgument("access is none, read, or read and write; never write alone");
    }
    by_ordinal.push_back({other, grant.access});
  }
  return machine_->SpaceOf(ordinal_).SetAccess(
      address, size, by_ordinal,
      [this](int device, int owner) { return machine_->CanAccess(device, owner); });
}

Result<hal::Access> SimDevice::GetAccess(DeviceAddress address, hal::DeviceId device) {
  KEEL_TRY(Enter(Primitive::kGetAccess));
  KEEL_ASSIGN(const int other, FindPeer(device));
  return machine_->SpaceOf(ordinal_).GetAccess(address, other);
}

Result<void*> SimDevice::AllocateHost(Bytes size, const hal::HostOptions&) {
  KEEL_TRY(Enter(Primitive::kAllocateHost, Safety::kUnsafeInCapture));
  if (size.empty()) return InvalidArgument("host memory of 0 bytes");
  return machine_->host.Allocate(size);
}

Status SimDevice::FreeHost(void* pointer) {
  KEEL_TRY(Enter(Primitive::kFreeHost, Safety::kUnsafeInCapture));
  return machine_->host.Free(pointer);
}

Status SimDevice::RegisterHost(void* pointer, Bytes size) {
  KEEL_TRY(Enter(Primitive::kRegisterHost, Safety::kUnsafeInCapture));
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  if (pointer == nullptr || size.empty() || size.count() > ~std::uint64_t{0} - address) {
    return InvalidArgument(
        fmt::format("{} bytes at {} are not host memory", size.count(), pointer));
  }
  for (int device = 0; device < machine_->config().devices; ++device) {
    if (machine_->SpaceOf(device).Contains(address)) {
      return InvalidArgument(fmt::format("{} is a device address, not host memory", pointer));
    }
  }
  return machine_->host.Register(pointer, size);
}

Status SimDevice::UnregisterHost(void* pointer) {
  KEEL_TRY(Enter(Primitive::kUnregisterHost, Safety::kUnsafeInCapture));
  return machine_->host.Unregister(pointer);
}

Result<DeviceAddress> SimDevice::GetHostAddress(const void* pointer) {
  KEEL_TRY(Enter(Primitive::kGetHostAddress));
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  if (!machine_->host.Contains(address, Bytes(1))) {
    return InvalidArgument(fmt::format("{} is not pinned host memory", pointer));
  }
  return DeviceAddress(address);
}

Result<bool> SimDevice::CanAccessPeer(hal::DeviceId peer) {
  KEEL_TRY(Enter(Primitive::kCanAccessPeer));
  KEEL_ASSIGN(const int other, FindPeer(peer));
  return machine_->CanAccess(ordinal_, other);
}

Status SimDevice::EnablePeerAccess(hal::DeviceId peer) {
  KEEL_TRY(Enter(Primitive::kEnablePeerAccess));
  KEEL_ASSIGN(const int other, FindPeer(peer));
  if (!machine_->CanAccess(ordinal_, other)) {
    return FailedPrecondition(
        fmt::format("device {} cannot access memory of device {}", ordinal_, other));
  }
  machine_->SpaceOf(other).SetPlainAccess(other, ordinal_, true);
  return OkStatus();
}

Status SimDevice::DisablePeerAccess(hal::DeviceId peer) {
  KEEL_TRY(Enter(Primitive::kDisablePeerAccess));
  KEEL_ASSIGN(const int other, FindPeer(peer));
  machine_->SpaceOf(other).SetPlainAccess(other, ordinal_, false);
  return OkStatus();
}

}  // namespace keel::sim
