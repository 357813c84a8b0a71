// Device and host memory of the C interface; keel/c.h has the contracts.
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "capi/handles.h"
#include "capi/known_range.h"
#include "capi/last_error.h"
#include "capi/sized_struct.h"
#include "keel/c.h"
#include "keel/hal/command.h"
#include "keel/memory/registration_cache.h"
#include "keel/telemetry/tags.h"

namespace keel::capi {
namespace {

// The live block that has the byte at `address`, or what is known beside the allocator's blocks.
Result<AddressSpan> BlockAt(DeviceMemory& memory, std::uint64_t address, const char* name) {
  const Result<memory::AllocationInfo> block = memory.allocator().Find(DeviceAddress(address));
  if (block.ok()) return AddressSpan{block->address, block->requested};
  if (block.status().code() != StatusCode::kNotFound) return block.status();
  if (const auto known = KnownRange::Find(*memory.device(), DeviceAddress(address))) return *known;
  return InvalidArgument(
      fmt::format("the {}, {:#x}, is in no live block of device {}: it was "
                  "freed, or never allocated there",
                  name, address, memory.name().ToString()));
}

// OK if the bytes are inside one of these.
Status CheckInside(DeviceMemory& memory, std::uint64_t address, std::uint64_t size,
                   const char* name) {
  KEEL_ASSIGN(const AddressSpan block, BlockAt(memory, address, name));
  const std::uint64_t offset = address - block.address.value();
  if (offset <= block.size.count() && size <= block.size.count() - offset) return OkStatus();
  return InvalidArgument(
      fmt::format("{} bytes from the {} on, {:#x}, are not inside its block, which has {} bytes at "
                  "{:#x}",
                  size, name, address, block.size.count(), block.address.value()));
}

// A call that puts work on a stream: finds both and runs it.
template <class Work>
keel_status OnStream(const char* function, keel_device device, keel_stream stream, Work work) {
  return Guard(function, [&]() -> Status {
    KEEL_ASSIGN(const std::shared_ptr<DeviceMemory> memory, Find(device));
    KEEL_ASSIGN(const std::shared_ptr<StreamObject> object, Find(memory, stream));
    return work(*memory, object->stream.get());
  });
}

}  // namespace
}  // namespace keel::capi

namespace capi = keel::capi;
using keel::Bytes;
using keel::DeviceAddress;
using keel::OkStatus;
using keel::Status;
using keel::capi::DeviceMemory;
using keel::hal::StreamHandle;

extern "C" {

keel_status keel_malloc(keel_device device, keel_stream stream, uint64_t size,
                        const keel_malloc_options* options, uint64_t* address) {
  return capi::OnStream(
      __func__, device, stream, [&](DeviceMemory& memory, StreamHandle on) -> Status {
        KEEL_TRY(capi::NotNull(address, "address"));
        keel_malloc_options given{};
        if (options != nullptr) KEEL_TRY(capi::Read(options, "options", given));
        keel::memory::AllocationOptions wanted{.alignment = Bytes(given.alignment)};
        if (given.tag != nullptr) {
          wanted.tag = keel::telemetry::InternTag(given.tag);
        }
        KEEL_ASSIGN(const DeviceAddress block,
                    memory.allocator().Allocate(Bytes(size), on, wanted));
        *address = block.value();
        return OkStatus();
      });
}

keel_status keel_free(keel_device device, uint64_t address) {
  return capi::Guard(__func__, [&]() -> Status {
    KEEL_ASSIGN(const auto memory, capi::Find(device));
    return memory->allocator().Free(DeviceAddress(address));
  });
}

keel_status keel_record_use(keel_device device, uint64_t address, keel_stream stream) {
  return capi::OnStream(__func__, device, stream, [&](DeviceMemory& memory, StreamHandle on) {
    return memory.allocator().RecordUse(DeviceAddress(address), on);
  });
}

keel_status keel_find(keel_device device, uint64_t address, keel_block_info* info) {
  return capi::Guard(__func__, [&]() -> Status {
    KEEL_TRY(capi::CheckSize(info, "info"));
    KEEL_ASSIGN(const auto memory, capi::Find(device));
    KEEL_ASSIGN(const auto block, memory->allocator().Find(DeviceAddress(address)));
    keel_block_info found{};
    found.address = block.address.value();
    found.size = block.size.count();
    found.requested = block.requested.count();
    capi::Put(TagName(block.tag), found.tag);
    capi::Give(found, info);
    return OkStatus();
  });
}

keel_status keel_copy_to_device(keel_device device, keel_stream stream, uint64_t destination,
                                const void* source, uint64_t size) {
  return capi::OnStream(
      __func__, device, stream, [&](DeviceMemory& memory, StreamHandle on) -> Status {
        if (size == 0) return OkStatus();
        KEEL_TRY(capi::NotNull(source, "source"));
        KEEL_TRY(capi::CheckInside(memory, destination, size, "destination"));
        return memory.CopyToDevice(on, DeviceAddress(destination), source, Bytes(size));
      });
}

keel_status keel_copy_to_host(keel_device device, keel_stream stream, void* destination,
                              uint64_t source, uint64_t size) {
  return capi::OnStream(
      __func__, device, stream, [&](DeviceMemory& memory, StreamHandle on) -> Status {
        if (size == 0) return OkStatus();
        KEEL_TRY(capi::NotNull(destination, "destination"));
        KEEL_TRY(capi::CheckInside(memory, source, size, "source"));
        return memory.CopyToHost(on, destination, DeviceAddress(source), Bytes(size));
      });
}

keel_status keel_enqueue_copy_to_device(keel_device device, keel_stream stream,
                                        uint64_t destination, const void* source, uint64_t size) {
  return capi::OnStream(
      __func__, device, stream, [&](DeviceMemory& memory, StreamHandle on) -> Status {
        if (size == 0) return OkStatus();
        KEEL_TRY(capi::NotNull(source, "source"));
        KEEL_TRY(capi::CheckInside(memory, destination, size, "destination"));
        return memory.EnqueueCopyToDevice(on, DeviceAddress(destination), source, Bytes(size));
      });
}

keel_status keel_enqueue_copy_to_host(keel_device device, keel_stream stream, void* destination,
                                      uint64_t source, uint64_t size) {
  return capi::OnStream(
      __func__, device, stream, [&](DeviceMemory& memory, StreamHandle on) -> Status {
        if (size == 0) return OkStatus();
        KEEL_TRY(capi::NotNull(destination, "destination"));
        KEEL_TRY(capi::CheckInside(memory, source, size, "source"));
        return memory.EnqueueCopyToHost(on, destination, DeviceAddress(source), Bytes(size));
      });
}

keel_status keel_enqueue_copy(keel_device device, keel_stream stream, uint64_t destination,
                              uint64_t source, uint64_t size) {
  return capi::OnStream(
      __func__, device, stream, [&](DeviceMemory& memory, StreamHandle on) -> Status {
        if (size == 0) return OkStatus();
        KEEL_TRY(capi::CheckInside(memory, destination, size, "destination"));
        KEEL_TRY(capi::CheckInside(memory, source, size, "source"));
        if (destination < source + size && source < destination + size) {
          return keel::InvalidArgument(
              fmt::format("{} bytes at {:#x} and at {:#x} overlap", size, destination, source));
        }
        const keel::hal::DeviceId id = memory.device()->id();
        return memory.device()->EnqueueCopy(
            on, {.destination = keel::hal::Location::On(id, DeviceAddress(destination)),
                 .source = keel::hal::Location::On(id, DeviceAddress(source)),
                 .size = Bytes(size)});
      });
}

keel_status keel_enqueue_fill(keel_device device, keel_stream stream, uint64_t address,
                              uint32_t value, uint32_t width, uint64_t count) {
  return capi::OnStream(
      __func__, device, stream, [&](DeviceMemory& memory, StreamHandle on) -> Status {
        if (width != 1 && width != 2 && width != 4) {
          return keel::InvalidArgument(fmt::format("width is {}, not 1, 2 or 4", width));
        }
        if (count == 0) return OkStatus();
        const std::optional<Bytes> size = keel::CheckedMultiply(Bytes(width), count);
        if (!size) {
          return keel::InvalidArgument(fmt::format("count is {}: more than any block has", count));
        }
        KEEL_TRY(capi::CheckInside(memory, address, size->count(), "address"));
        return memory.device()->EnqueueFill(on, {.destination = DeviceAddress(address),
                                                 .value = value,
                                                 .width = width,
                                                 .count = count});
      });
}

keel_status keel_host_malloc(keel_device device, uint64_t size, void** pointer) {
  return capi::Guard(__func__, [&]() -> Status {
    KEEL_TRY(capi::NotNull(pointer, "pointer"));
    KEEL_ASSIGN(const auto memory, capi::Find(device));
    KEEL_ASSIGN(*pointer, memory->host().Allocate(Bytes(size)));
    return OkStatus();
  });
}

keel_status keel_host_free(keel_device device, void* pointer) {
  return capi::Guard(__func__, [&]() -> Status {
    KEEL_ASSIGN(const auto memory, capi::Find(device));
    return pointer == nullptr ? OkStatus() : memory->host().Free(pointer);
  });
}

keel_status keel_host_memory_gone(const void* pointer, uint64_t size) {
  return capi::Guard(__func__,
                     [&]() -> Status { return keel::memory::MemoryGone(pointer, Bytes(size)); });
}

keel_status keel_host_record_use(keel_device device, const void* pointer, keel_stream stream) {
  return capi::OnStream(__func__, device, stream,
                        [&](DeviceMemory& memory, StreamHandle on) -> Status {
                          KEEL_TRY(capi::NotNull(pointer, "pointer"));
                          return memory.host().RecordUse(pointer, on);
                        });
}

}  // extern "C"
