// cuda_bench: plain, host and virtual memory.

#include <sys/mman.h>
#include <unistd.h>

#include "drivers/cuda/cuda_bench.h"

namespace keel::cuda::benchmarks {
namespace {

void Memory() {
  Operation(
      "GetMemoryInfo",
      [](Bench& b) {
        std::size_t free = 0, total = 0;
        return b.cu.memory_info(&free, &total);
      },
      [](Bench& b) { return b.device->GetMemoryInfo(); });
  for (const std::size_t size : {2 * kMiB, 64 * kMiB}) {
    Operation(
        Sized("AllocatePlain + FreePlain", size),
        [size](Bench& b) {
          std::uint64_t address = 0;
          const Code code = b.cu.memory_allocate(&address, size);
          return Both(code, b.cu.memory_free(address));
        },
        [size](Bench& b) -> Status {
          KEEL_ASSIGN(const DeviceAddress address, b.device->AllocatePlain(Bytes(size)));
          return b.device->FreePlain(address);
        },
        {.calls = 2});
  }
  for (const std::size_t size : {64 * kKiB, 64 * kMiB}) {
    Operation(
        Sized("AllocateHost + FreeHost", size),
        [size](Bench& b) {
          void* pointer = nullptr;
          const Code code =
              b.raw.host_allocate(&pointer, size, abi::kHostPortable | abi::kHostDeviceMap);
          return Both(code, b.cu.host_free(pointer));
        },
        [size](Bench& b) -> Status {
          KEEL_ASSIGN(void* const pointer, b.device->AllocateHost(Bytes(size), {}));
          return b.device->FreeHost(pointer);
        },
        {.calls = 2});
  }
  static void* const pages =
      mmap(nullptr, 64 * kKiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Operation(
      "RegisterHost + UnregisterHost 64 KiB",
      [](Bench& b) {
        const Code code =
            b.raw.host_register(pages, 64 * kKiB, abi::kHostPortable | abi::kHostDeviceMap);
        return Both(code, b.cu.host_unregister(pages));
      },
      [](Bench& b) -> Status {
        KEEL_TRY(b.device->RegisterHost(pages, 64_KiB));
        return b.device->UnregisterHost(pages);
      },
      {.calls = 2});
  Operation(
      "GetHostAddress",
      [](Bench& b) {
        std::uint64_t address = 0;
        return b.cu.host_address(&address, b.pinned, 0);
      },
      [](Bench& b) { return b.device->GetHostAddress(b.pinned); });
  Operation(
      "CanAccessPeer",
      [](Bench& b) {
        int can = 0;
        return b.cu.can_access_peer(&can, 0, 0);
      },
      [](Bench& b) { return b.device->CanAccessPeer(b.device->id()); });
}

void VirtualMemory() {
  for (const std::size_t size : {2 * kMiB, 64 * kMiB, kGiB}) {
    Operation(
        Sized("CreateMemory + ReleaseMemory", size),
        [size](Bench& b) {
          std::uint64_t handle = 0;
          const abi::AllocationProp prop = b.prop();
          const Code code = b.raw.create(&handle, size, &prop, 0);
          return Both(code, b.cu.memory_release(handle));
        },
        [size](Bench& b) -> Status {
          KEEL_ASSIGN(const hal::MemoryHandle handle, b.device->CreateMemory(Bytes(size), {}));
          return b.device->ReleaseMemory(handle);
        },
        {.calls = 2});
    // One range and one memory, for both ways.
    const hal::MemoryHandle memory =
        Must(bench->device->CreateMemory(Bytes(size), {}), "physical memory");
    const DeviceAddress at =
        Must(bench->device->ReserveAddress(Bytes(size), Bytes(0), {}), "addresses");
    Operation(
        Sized("Map + SetAccess + Unmap", size),
        [=](Bench& b) {
          abi::AccessDesc access;
          access.flags = 3;
          Code code = b.cu.map(at.value(), size, 0, memory.value, 0);
          code = Both(code, b.raw.set_access(at.value(), size, &access, 1));
          return Both(code, b.cu.unmap(at.value(), size));
        },
        [=](Bench& b) -> Status {
          const std::array grants = {hal::AccessGrant{b.device->id(), hal::Access::kReadWrite}};
          KEEL_TRY(b.device->Map(at, Bytes(size), Offset(0), memory));
          KEEL_TRY(b.device->SetAccess(at, Bytes(size), grants));
          return b.device->Unmap(at, Bytes(size));
        },
        {.calls = 3});
  }
  Operation(
      "ReserveAddress + FreeAddress 256 GiB",
      [](Bench& b) {
        std::uint64_t address = 0;
        const Code code = b.cu.address_reserve(&address, 256 * kGiB, 0, 0, 0);
        return Both(code, b.cu.address_free(address, 256 * kGiB));
      },
      [](Bench& b) -> Status {
        KEEL_ASSIGN(const DeviceAddress address,
                    b.device->ReserveAddress(Bytes(256 * kGiB), Bytes(0), {}));
        return b.device->FreeAddress(address, Bytes(256 * kGiB));
      },
      {.calls = 2});

  const Bytes size(2 * kMiB);
  const hal::MemoryHandle memory =
      Must(bench->device->CreateMemory(size, {.exportable = true}), "physical memory");
  const DeviceAddress at = Must(bench->device->ReserveAddress(size, Bytes(0), {}), "addresses");
  const std::array grants = {hal::AccessGrant{bench->device->id(), hal::Access::kReadWrite}};
  if (!bench->device->Map(at, size, Offset(0), memory).ok() ||
      !bench->device->SetAccess(at, size, grants).ok()) {
    std::exit(1);
  }
  Operation(
      "SetAccess again",
      [=](Bench& b) {
        abi::AccessDesc access;
        access.flags = 3;
        return b.raw.set_access(at.value(), size.count(), &access, 1);
      },
      [=](Bench& b) { return b.device->SetAccess(at, size, grants); });
  Operation(
      "GetAccess",
      [=](Bench& b) {
        unsigned long long flags = 0;
        const abi::Location location;
        return b.raw.get_access(&flags, &location, at.value());
      },
      [=](Bench& b) { return b.device->GetAccess(at, b.device->id()); });
  Operation(
      "ExportMemory",
      [=](Bench& b) {
        int descriptor = -1;
        const Code code =
            b.raw.export_handle(&descriptor, memory.value, abi::kHandlePosixDescriptor, 0);
        close(descriptor);
        return code;
      },
      [=](Bench& b) { return b.device->ExportMemory(memory); });
  static const UniqueFd exported = Must(bench->device->ExportMemory(memory), "a descriptor");
  Operation(
      "ImportMemory + ReleaseMemory",
      [](Bench& b) {
        std::uint64_t handle = 0;
        const Code code =
            b.raw.import_handle(&handle, Pointer(static_cast<std::uint64_t>(exported.get())),
                                abi::kHandlePosixDescriptor);
        return Both(code, b.cu.memory_release(handle));
      },
      [size](Bench& b) -> Status {
        KEEL_ASSIGN(const hal::MemoryHandle handle, b.device->ImportMemory(exported.get(), size));
        return b.device->ReleaseMemory(handle);
      },
      {.calls = 2});
}

}  // namespace

void AddMemory() {
  Memory();
  VirtualMemory();
}

}  // namespace keel::cuda::benchmarks
