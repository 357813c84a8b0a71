// Devices and streams of the C interface; keel/c.h has the contracts.
#include <string>
#include <string_view>
#include <utility>

#include "capi/handles.h"
#include "capi/last_error.h"
#include "capi/sized_struct.h"
#include "keel/c.h"
#include "keel/hal/driver.h"

namespace keel::capi {
namespace {

keel_device_info InfoOf(const hal::DeviceInfo& from) {
  keel_device_info info{};
  info.struct_size = sizeof info;
  Put(from.driver, info.driver);
  info.ordinal = from.ordinal;
  info.simulated = from.simulated ? 1 : 0;
  Put(from.name, info.name);
  Put(from.identity, info.identity);
  info.memory = from.memory.count();
  info.numa_node = from.numa_node;
  return info;
}

Status AddStream(const std::shared_ptr<DeviceMemory>& memory, Result<hal::Stream> made,
                 keel_stream* stream) {
  KEEL_TRY(made.status());
  KEEL_ASSIGN(*stream, Add<keel_stream>(std::make_shared<StreamObject>(memory, *std::move(made))));
  return OkStatus();
}

}  // namespace
}  // namespace keel::capi

namespace capi = keel::capi;
using keel::OkStatus;
using keel::Status;

extern "C" {

keel_status keel_for_each_device(keel_device_visitor visit, void* data) {
  return capi::Guard(__func__, [&]() -> Status {
    KEEL_TRY(capi::NotNull(visit, "visit"));
    for (keel::hal::Driver* const driver : keel::hal::Registry::Global().drivers()) {
      const auto devices = driver->Enumerate();
      // A driver that cannot be used has no devices; one that is configured wrongly says so.
      if (!devices.ok() && devices.status().code() == keel::StatusCode::kInvalidArgument) {
        return devices.status();
      }
      if (!devices.ok()) continue;
      for (const keel::hal::DeviceInfo& each : *devices) {
        const keel_device_info info = capi::InfoOf(each);
        visit(&info, data);
      }
    }
    return OkStatus();
  });
}

keel_status keel_device_open(const char* name, keel_device* device) {
  return capi::Guard(__func__, [&]() -> Status {
    KEEL_TRY(capi::NotNull(device, "device"));
    KEEL_ASSIGN(const auto parsed, keel::hal::DeviceName::Parse(name == nullptr ? "" : name));
    KEEL_ASSIGN(auto memory, keel::memory::ProcessMemory::Global().For(parsed));
    KEEL_ASSIGN(*device, capi::Add<keel_device>(std::move(memory)));
    return OkStatus();
  });
}

keel_status keel_device_close(keel_device device) {
  return capi::Guard(__func__, [&] { return capi::Remove(device).status(); });
}

keel_status keel_device_forget(keel_device device) {
  return capi::Guard(__func__, [&]() -> Status {
    KEEL_ASSIGN(const auto memory, capi::Remove(device));
    auto& process = keel::memory::ProcessMemory::Global();
    KEEL_ASSIGN(const auto sets, process.List());
    // Somebody may have done so before, and the process have a new set.
    for (const auto& set : sets) {
      if (set == memory) return process.Forget(memory->name());
    }
    return OkStatus();
  });
}

keel_status keel_device_get_info(keel_device device, keel_device_info* info) {
  return capi::Guard(__func__, [&]() -> Status {
    KEEL_TRY(capi::CheckSize(info, "info"));
    KEEL_ASSIGN(const auto memory, capi::Find(device));
    capi::Give(capi::InfoOf(memory->device()->info()), info);
    return OkStatus();
  });
}

keel_status keel_device_get_memory(keel_device device, uint64_t* free_bytes,
                                   uint64_t* total_bytes) {
  return capi::Guard(__func__, [&]() -> Status {
    KEEL_TRY(capi::NotNull(free_bytes, "free_bytes"));
    KEEL_TRY(capi::NotNull(total_bytes, "total_bytes"));
    KEEL_ASSIGN(const auto memory, capi::Find(device));
    KEEL_ASSIGN(const auto info, memory->device()->GetMemoryInfo());
    *free_bytes = info.free.count();
    *total_bytes = info.total.count();
    return OkStatus();
  });
}

keel_status keel_stream_create(keel_device device, keel_stream* stream) {
  return capi::Guard(__func__, [&]() -> Status {
    KEEL_TRY(capi::NotNull(stream, "stream"));
    KEEL_ASSIGN(const auto memory, capi::Find(device));
    return capi::AddStream(memory, keel::hal::Stream::Create(memory->device()), stream);
  });
}

keel_status keel_stream_borrow(keel_device device, uint64_t native, keel_stream* stream) {
  return capi::Guard(__func__, [&]() -> Status {
    KEEL_TRY(capi::NotNull(stream, "stream"));
    KEEL_ASSIGN(const auto memory, capi::Find(device));
    return capi::AddStream(memory, keel::hal::Stream::Borrow(memory->device(), native), stream);
  });
}

keel_status keel_stream_destroy(keel_stream stream) {
  return capi::Guard(__func__, [&]() -> Status {
    KEEL_ASSIGN(const std::shared_ptr<capi::StreamObject> object, capi::Remove(stream));
    Status forgotten = object->memory->allocator().ForgetStream(object->stream.get());
    // A call that is under way in another thread keeps it until it is over.
    Status closed = object.use_count() == 1 ? object->stream.Close() : OkStatus();
    const auto error = [](const Status& status) {
      return !status.ok() && status.code() != keel::StatusCode::kDeviceLost;
    };
    return error(closed) ? closed : error(forgotten) ? forgotten : OkStatus();
  });
}

keel_status keel_stream_synchronize(keel_device device, keel_stream stream, int64_t timeout_ns) {
  return capi::Guard(__func__, [&]() -> Status {
    KEEL_ASSIGN(const auto memory, capi::Find(device));
    KEEL_ASSIGN(const auto object, capi::Find(memory, stream));
    return object->stream.Synchronize(capi::DeadlineOf(timeout_ns));
  });
}

keel_status keel_stream_get_native(keel_device device, keel_stream stream, uint64_t* native) {
  return capi::Guard(__func__, [&]() -> Status {
    KEEL_TRY(capi::NotNull(native, "native"));
    KEEL_ASSIGN(const auto memory, capi::Find(device));
    KEEL_ASSIGN(const auto object, capi::Find(memory, stream));
    *native = object->stream.get().value;
    return OkStatus();
  });
}

}  // extern "C"
