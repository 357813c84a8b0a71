// A stand-in for the HIP runtime, for tests: its entry points on the simulated device. This file
// has the library, devices and memory; two more that it includes have the rest.

#include "drivers/hip/hip_standin.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "drivers/standin/assembly.h"
#include "drivers/standin/context_translation.h"

namespace keel::hip {
namespace {

thread_local abi::Result last_error = 0;
thread_local int current_device = 0;

}  // namespace

abi::Result Remember(abi::Result code) {
  if (code != 0 || kStandinVersion < 70'000'000) last_error = code;
  return code;
}

Cause ContextOfDevice(int device, void** context) {
  static std::vector<void*> contexts(64);  // by device, when they are needed
  static std::mutex mutex;
  if (device < 0 || device >= standin::DeviceCount()) return Cause::kInvalidDevice;
  const std::lock_guard lock(mutex);
  void*& retained = contexts[static_cast<std::size_t>(device)];
  if (retained == nullptr) {
    const Cause cause = standin::RetainPrimary(&retained, device);
    if (cause != Cause::kOk) return cause;
  }
  *context = retained;
  return Cause::kOk;
}

Cause UseCurrentDevice() {
  if (standin::DeviceCount() == 0) return Cause::kNoDevice;
  void* context = nullptr;
  const Cause cause = ContextOfDevice(current_device, &context);
  return cause == Cause::kOk ? standin::SetCurrent(context) : cause;
}

abi::Result ResultOf(Cause cause) {
  // It has no word of its own for it.
  return standin::CodeOf(cause == Cause::kNotPermitted ? Cause::kNotSupported : cause);
}

}  // namespace keel::hip

namespace {

namespace abi = keel::hip::abi;
namespace hal = keel::hal;
namespace standin = keel::standin;
using keel::DeviceAddress;
using keel::hip::AddressOf;
using keel::hip::Answer;
using keel::hip::AnswerStream;
using keel::hip::AnyNull;
using keel::hip::Cause;
using keel::hip::kStandinVersion;

standin::Place Host(const void* pointer) {
  return {standin::Place::Side::kHost, AddressOf(pointer), nullptr};
}

standin::Place OnDevice(const void* pointer, void* context = nullptr) {
  return {standin::Place::Side::kDevice, AddressOf(pointer), context};
}

// A copy of a kind; nullopt for one that is none.
std::optional<standin::Transfer> TransferOf(void* to, const void* from, std::size_t size,
                                            int kind) {
  switch (kind) {
    case abi::kCopyHostToHost:
      return standin::Transfer{Host(to), Host(from), size};
    case abi::kCopyHostToDevice:
      return standin::Transfer{OnDevice(to), Host(from), size};
    case abi::kCopyDeviceToHost:
      return standin::Transfer{Host(to), OnDevice(from), size};
    case abi::kCopyDeviceToDevice:
      return standin::Transfer{OnDevice(to), OnDevice(from), size};
    default:
      return std::nullopt;
  }
}

std::optional<hal::WaitCondition> ConditionOf(unsigned flags) {
  switch (flags) {
    case abi::kWaitGeq:
      return hal::WaitCondition::kGreaterOrEqual;
    case abi::kWaitEq:
      return hal::WaitCondition::kEqual;
    case abi::kWaitAnd:
      return hal::WaitCondition::kAnd;
    default:
      return std::nullopt;
  }
}

hal::LaunchDims DimsOf(const abi::Dim3& grid, const abi::Dim3& block, unsigned shared) {
  return {{grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, keel::Bytes(shared)};
}

void PutText(std::string_view text, char* to, std::size_t size) {
  to[text.copy(to, size - 1)] = '\0';
}

}  // namespace

// --- The library and its devices -----------------------------------------------------------------

HIP_EXPORT(hipInit)(unsigned flags) {
  standin::Gate gate = standin::Enter(__func__, standin::Needs::kNothing);
  if (!gate.code && gate.cause == Cause::kOk) {
    if (flags != 0) return keel::hip::Remember(abi::kInvalidValue);
    gate = standin::Initialize();
    // Without a device the runtime does not initialise.
    if (!gate.code && gate.cause == Cause::kOk && standin::DeviceCount() == 0) {
      gate.cause = Cause::kInvalidDevice;
    }
  }
  return keel::hip::Remember(gate.code ? *gate.code : keel::hip::ResultOf(gate.cause));
}

HIP_EXPORT(hipRuntimeGetVersion)(int* version) {
  *version = kStandinVersion;
  return keel::hip::Remember(0);
}

extern "C" __attribute__((visibility("default"))) const char* hipGetErrorName(abi::Result code) {
  thread_local std::string name;
  name = fmt::format("hipError{}", code);
  return name.c_str();
}

extern "C" __attribute__((visibility("default"))) const char* hipGetErrorString(abi::Result code) {
  return hipGetErrorName(code);
}

HIP_EXPORT(hipGetLastError)() { return std::exchange(keel::hip::last_error, 0); }

HIP_EXPORT(hipGetDeviceCount)(int* count) {
  return Answer(__func__, [&] {
    *count = standin::DeviceCount();
    return Cause::kOk;
  });
}

HIP_EXPORT(hipDeviceGet)(abi::Device* device, int ordinal) {
  return Answer(__func__, [&] {
    *device = ordinal;
    return ordinal >= 0 && ordinal < standin::DeviceCount() ? Cause::kOk : Cause::kInvalidDevice;
  });
}

HIP_EXPORT(hipDeviceGetName)(char* name, int size, abi::Device device) {
  return Answer(__func__, [&] {
    hal::DeviceInfo info;
    const Cause cause = standin::DescribeDevice(device, &info);
    if (cause == Cause::kOk) PutText(info.name, name, static_cast<std::size_t>(size));
    return cause;
  });
}

HIP_EXPORT(hipDeviceGetUuid)(abi::Uuid* uuid, abi::Device device) {
  return Answer(__func__, [&] {
    // Text that fills all bytes: there is no end.
    const std::string text = fmt::format("5eed5eed{:08x}", device);
    static_assert(sizeof(uuid->bytes) == 16);
    text.copy(uuid->bytes, sizeof(uuid->bytes));
    return Cause::kOk;
  });
}

HIP_EXPORT(hipDeviceGetPCIBusId)(char* text, int size, int device) {
  return Answer(__func__, [&] {
    PutText(fmt::format("ffff:ff:{:02x}.0", device), text, static_cast<std::size_t>(size));
    return Cause::kOk;
  });
}

HIP_EXPORT(hipDeviceTotalMem)(std::size_t* bytes, abi::Device device) {
  return Answer(__func__, [&] {
    hal::DeviceInfo info;
    const Cause cause = standin::DescribeDevice(device, &info);
    *bytes = info.memory.count();
    return cause;
  });
}

HIP_EXPORT(hipGetDeviceProperties)(abi::PropertiesBefore6* properties, int) {
  return Answer(__func__, [&] {
    PutText("gfx90a:sramecc+:xnack-", properties->architecture, sizeof(properties->architecture));
    return Cause::kOk;
  });
}

HIP_EXPORT(hipGetDevicePropertiesR0600)(abi::Properties* properties, int) {
  return Answer(__func__, [&] {
    PutText("gfx942:sramecc+:xnack-", properties->architecture, sizeof(properties->architecture));
    return Cause::kOk;
  });
}

HIP_EXPORT(hipDeviceGetAttribute)(int* value, int attribute, int device) {
  return Answer(__func__, [&] {
    hal::Capabilities capabilities;
    const Cause cause = standin::DeviceCapabilities(device, &capabilities);
    if (cause != Cause::kOk) return cause;
    switch (attribute) {
      case abi::kUnifiedAddressing:
        *value = capabilities.unified_addresses ? 1 : 0;
        return cause;
      case abi::kVirtualMemoryManagementSupported:
        *value = capabilities.virtual_memory ? 1 : 0;
        return cause;
      case abi::kHostRegisterSupported:
        *value = capabilities.host_registration ? 1 : 0;
        return kStandinVersion >= abi::kVersion6_0 ? cause : Cause::kInvalidValue;
      case abi::kCanUseStreamWaitValue:
        *value = capabilities.value_waits ? 1 : 0;
        return cause;
      default:
        return Cause::kInvalidValue;
    }
  });
}

HIP_EXPORT(hipGetDevice)(int* device) {
  return Answer(__func__, [&] {
    *device = keel::hip::current_device;
    return Cause::kOk;
  });
}

HIP_EXPORT(hipSetDevice)(int device) {
  return Answer(__func__, [&] {
    if (device < 0 || device >= standin::DeviceCount()) return Cause::kInvalidDevice;
    keel::hip::current_device = device;
    return Cause::kOk;
  });
}

HIP_EXPORT(hipDeviceGetStreamPriorityRange)(int* least, int* greatest) {
  return Answer(__func__, [&] {
    *least = 1;
    *greatest = -1;
    return Cause::kOk;
  });
}

HIP_EXPORT(hipDeviceCanAccessPeer)(int* can, int device, int peer) {
  return Answer(__func__, [&] {
    bool answer = false;
    const Cause cause = standin::CanAccessPeer(&answer, device, peer);
    *can = answer ? 1 : 0;
    return cause;
  });
}

HIP_EXPORT(hipDeviceEnablePeerAccess)(int peer, unsigned flags) {
  return Answer(__func__, [&] {
    void* context = nullptr;
    const Cause cause = keel::hip::ContextOfDevice(peer, &context);
    if (cause != Cause::kOk) return cause;
    if (flags != 0) return Cause::kInvalidValue;
    const Cause enabled = standin::EnablePeer(context);
    return enabled == Cause::kPeerUnsupported ? Cause::kInvalidDevice : enabled;
  });
}

HIP_EXPORT(hipDeviceDisablePeerAccess)(int peer) {
  return Answer(__func__, [&] {
    void* context = nullptr;
    const Cause cause = keel::hip::ContextOfDevice(peer, &context);
    return cause == Cause::kOk ? standin::DisablePeer(context) : cause;
  });
}

// --- Memory --------------------------------------------------------------------------------------

HIP_EXPORT(hipMemGetInfo)(std::size_t* free, std::size_t* total) {
  return Answer(__func__, [&] { return standin::GetMemoryInfo(free, total); });
}

HIP_EXPORT(hipMalloc)(void** pointer, std::size_t size) {
  return Answer(__func__, [&] {
    standin::Address address = 0;
    const Cause cause = standin::AllocatePlain(&address, size);
    *pointer = reinterpret_cast<void*>(address);
    return cause;
  });
}

HIP_EXPORT(hipFree)(void* pointer) {
  return Answer(__func__, [&] { return standin::FreePlain(AddressOf(pointer)); });
}

HIP_EXPORT(hipMemGetAllocationGranularity)(std::size_t* size, const abi::AllocationProp* prop,
                                           int option) {
  return Answer(__func__, [&] {
    if (AnyNull(size, prop) || prop->type != abi::kAllocationPinned) return Cause::kInvalidValue;
    hal::Capabilities capabilities;
    const Cause cause = standin::DeviceCapabilities(prop->location.id, &capabilities);
    const hal::Granularity& granularity = capabilities.granularity;
    *size = (option == abi::kGranularityMinimum ? granularity.minimum : granularity.recommended)
                .count();
    return cause;
  });
}

HIP_EXPORT(hipMemCreate)(abi::MemoryHandle* handle, std::size_t size,
                         const abi::AllocationProp* prop, unsigned long long flags) {
  return Answer(__func__, [&] {
    if (AnyNull(handle, prop) || flags != 0 || prop->type != abi::kAllocationPinned ||
        prop->location.type != abi::kLocationDevice) {
      return Cause::kInvalidValue;
    }
    std::uint64_t created = 0;
    const Cause cause = standin::CreateMemory(
        &created, size, prop->location.id,
        {.exportable = prop->requested_handle_type == abi::kHandlePosixDescriptor,
         .rdma = prop->flags.gpu_direct_rdma_capable != 0});
    *handle = reinterpret_cast<abi::MemoryHandle>(created);
    return cause;
  });
}

HIP_EXPORT(hipMemRelease)(abi::MemoryHandle handle) {
  return Answer(__func__, [&] { return standin::ReleaseMemory(AddressOf(handle)); });
}

HIP_EXPORT(hipMemExportToShareableHandle)(void* shareable, abi::MemoryHandle handle, int type,
                                          unsigned long long flags) {
  return Answer(__func__, [&] {
    if (shareable == nullptr || type != abi::kHandlePosixDescriptor || flags != 0) {
      return Cause::kInvalidValue;
    }
    return standin::ExportMemory(static_cast<int*>(shareable), AddressOf(handle));
  });
}

HIP_EXPORT(hipMemImportFromShareableHandle)(abi::MemoryHandle* handle, void* shareable, int type) {
  return Answer(__func__, [&] {
    if (AnyNull(handle, shareable) || type != abi::kHandlePosixDescriptor) {
      return Cause::kInvalidValue;
    }
    const int descriptor = kStandinVersion >= abi::kVersion7_1
                               ? static_cast<int>(reinterpret_cast<std::intptr_t>(shareable))
                               : *static_cast<const int*>(shareable);
    std::uint64_t imported = 0;
    const Cause cause = standin::ImportMemory(&imported, descriptor);
    *handle = reinterpret_cast<abi::MemoryHandle>(imported);
    return cause == Cause::kUnknown ? Cause::kInvalidValue : cause;
  });
}

HIP_EXPORT(hipMemAddressReserve)(void** pointer, std::size_t size, std::size_t alignment,
                                 void* hint, unsigned long long flags) {
  return Answer(__func__, [&] {
    if (pointer == nullptr || flags != 0) return Cause::kInvalidValue;
    standin::Address address = 0;
    const Cause cause = standin::ReserveAddress(&address, size, alignment, AddressOf(hint));
    *pointer = reinterpret_cast<void*>(address);
    return cause;
  });
}

HIP_EXPORT(hipMemAddressFree)(void* address, std::size_t size) {
  return Answer(__func__, [&] { return standin::FreeAddress(AddressOf(address), size); });
}

HIP_EXPORT(hipMemMap)(void* address, std::size_t size, std::size_t offset, abi::MemoryHandle handle,
                      unsigned long long flags) {
  return Answer(__func__, [&] {
    if (flags != 0) return Cause::kInvalidValue;
    return standin::Map(AddressOf(address), size, offset, AddressOf(handle));
  });
}

HIP_EXPORT(hipMemUnmap)(void* address, std::size_t size) {
  return Answer(__func__, [&] { return standin::Unmap(AddressOf(address), size); });
}

HIP_EXPORT(hipMemSetAccess)(void* address, std::size_t size, const abi::AccessDesc* descs,
                            std::size_t count) {
  return Answer(__func__, [&] {
    if (descs == nullptr || count == 0) return Cause::kInvalidValue;
    std::vector<standin::Grant> grants;
    grants.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      grants.push_back({descs[i].location.id, static_cast<hal::Access>(descs[i].flags)});
    }
    return standin::SetAccess(AddressOf(address), size, grants);
  });
}

HIP_EXPORT(hipMemGetAccess)(unsigned long long* flags, const abi::Location* location,
                            void* address) {
  return Answer(__func__, [&] {
    hal::Access access = hal::Access::kNone;
    const Cause cause = standin::GetAccess(&access, AddressOf(address), location->id);
    *flags = static_cast<unsigned long long>(access);
    return cause;
  });
}

HIP_EXPORT(hipHostMalloc)(void** pointer, std::size_t size, unsigned flags) {
  return Answer(__func__, [&] {
    return standin::AllocateHost(pointer, size, (flags & abi::kHostWriteCombined) != 0);
  });
}

HIP_EXPORT(hipHostFree)(void* pointer) {
  return Answer(__func__, [&] { return standin::FreeHost(pointer); });
}

HIP_EXPORT(hipHostRegister)(void* pointer, std::size_t size, unsigned) {
  return Answer(__func__, [&] { return standin::RegisterHost(pointer, size); });
}

HIP_EXPORT(hipHostUnregister)(void* pointer) {
  return Answer(__func__, [&] { return standin::UnregisterHost(pointer); });
}

HIP_EXPORT(hipHostGetDevicePointer)(void** device, void* pointer, unsigned flags) {
  return Answer(__func__, [&] {
    if (flags != 0) return Cause::kInvalidValue;
    standin::Address address = 0;
    const Cause cause = standin::GetHostAddress(&address, pointer);
    *device = reinterpret_cast<void*>(address);
    return cause;
  });
}

HIP_EXPORT(hipPointerGetAttribute)(void* value, int attribute, void* pointer) {
  return Answer(__func__, [&] {
    if (AnyNull(value, pointer) || attribute != abi::kPointerAttributeMemoryType) {
      return Cause::kInvalidValue;
    }
    constexpr bool kNew = kStandinVersion >= abi::kVersion6_0;
    constexpr int kHost = kNew ? abi::kMemoryTypeHost : abi::kMemoryTypeHostBefore6;
    constexpr int kDevice = kNew ? abi::kMemoryTypeDevice : abi::kMemoryTypeDeviceBefore6;
    const standin::MemoryKind kind = standin::KindOf(AddressOf(pointer));
    if (kind == standin::MemoryKind::kPageable) return Cause::kInvalidValue;
    *static_cast<int*>(value) = kind == standin::MemoryKind::kPinned ? kHost : kDevice;
    return Cause::kOk;
  });
}

#include "drivers/hip/hip_standin_graph.inc"
#include "drivers/hip/hip_standin_work.inc"
