// Limits, statistics, snapshots and history of the C interface; keel/c.h has the contracts.
#include <fmt/format.h>

#include <cstring>
#include <string>

#include "capi/handles.h"
#include "capi/last_error.h"
#include "capi/sized_struct.h"
#include "keel/c.h"
#include "keel/telemetry/event_log.h"
#include "keel/telemetry/memory_stats.h"
#include "keel/trace/live_snapshot.h"
#include "keel/trace/snapshot_file.h"

namespace keel::capi {
namespace {

// A call about one device's memory.
template <class Body>
keel_status OnMemory(const char* function, keel_device device, Body body) {
  return Guard(function, [&]() -> Status {
    KEEL_ASSIGN(const std::shared_ptr<DeviceMemory> memory, Find(device));
    return body(*memory);
  });
}

Status Visit(const telemetry::FlatStats& stats, keel_stat_visitor visit, void* data) {
  for (const auto& [key, value] : stats) visit(key.c_str(), value, data);
  return OkStatus();
}

Result<trace::SnapshotFormat> FormatOf(keel_snapshot_format format) {
  if (format == KEEL_SNAPSHOT_JSON) return trace::SnapshotFormat::kJson;
  if (format == KEEL_SNAPSHOT_PICKLE) return trace::SnapshotFormat::kPickle;
  return InvalidArgument(fmt::format("there is no format {} of snapshots", format));
}

Result<trace::Snapshot> TakeOf(keel_device device) {
  if (device == nullptr) return trace::TakeProcessSnapshot();
  KEEL_ASSIGN(const std::shared_ptr<DeviceMemory> memory, Find(device));
  memory::DeviceAllocator* const allocators[] = {&memory->allocator()};
  return trace::TakeSnapshot(allocators);
}

}  // namespace
}  // namespace keel::capi

namespace capi = keel::capi;
using keel::Bytes;
using keel::OkStatus;
using keel::Status;
using keel::capi::DeviceMemory;
using keel::telemetry::EventLog;

extern "C" {

keel_status keel_set_limit(keel_device device, uint64_t bytes) {
  return capi::OnMemory(__func__, device, [&](DeviceMemory& memory) {
    memory.allocator().SetLimit(Bytes(bytes));
    return OkStatus();
  });
}

keel_status keel_set_fraction(keel_device device, double fraction) {
  return capi::OnMemory(__func__, device, [&](DeviceMemory& memory) {
    return memory.allocator().SetFraction(fraction);
  });
}

keel_status keel_get_limit(keel_device device, uint64_t* bytes) {
  return capi::OnMemory(__func__, device, [&](DeviceMemory& memory) -> Status {
    KEEL_TRY(capi::NotNull(bytes, "bytes"));
    *bytes = memory.allocator().limit().count();
    return OkStatus();
  });
}

keel_status keel_host_set_limit(keel_device device, uint64_t bytes) {
  return capi::OnMemory(__func__, device,
                        [&](DeviceMemory& memory) { return memory.host().SetLimit(Bytes(bytes)); });
}

keel_status keel_trim(keel_device device, uint64_t target) {
  return capi::OnMemory(__func__, device, [&](DeviceMemory& memory) {
    return memory.allocator().Trim(Bytes(target));
  });
}

keel_status keel_host_trim(keel_device device, uint64_t target) {
  return capi::OnMemory(__func__, device,
                        [&](DeviceMemory& memory) { return memory.host().Trim(Bytes(target)); });
}

keel_status keel_get_stats(keel_device device, keel_memory_stats* stats) {
  return capi::OnMemory(__func__, device, [&](DeviceMemory& memory) -> Status {
    KEEL_TRY(capi::CheckSize(stats, "stats"));
    const keel::telemetry::MemoryStats from = memory.allocator().Stats();
    keel_memory_stats to{};
    to.allocated_bytes = from.allocated_bytes.all.current;
    to.allocated_bytes_peak = from.allocated_bytes.all.peak;
    to.requested_bytes = from.requested_bytes.all.current;
    to.requested_bytes_peak = from.requested_bytes.all.peak;
    to.reserved_bytes = from.reserved_bytes.all.current;
    to.reserved_bytes_peak = from.reserved_bytes.all.peak;
    to.active_bytes = from.active_bytes.all.current;
    to.active_bytes_peak = from.active_bytes.all.peak;
    to.blocks = from.allocation.all.current;
    to.blocks_peak = from.allocation.all.peak;
    to.allocations = from.allocation.all.allocated;
    to.frees = from.allocation.all.freed;
    to.out_of_memory_count = from.num_ooms;
    to.driver_allocations = from.num_device_alloc;
    to.driver_frees = from.num_device_free;
    capi::Give(to, stats);
    return OkStatus();
  });
}

keel_status keel_for_each_stat(keel_device device, keel_stat_visitor visit, void* data) {
  return capi::OnMemory(__func__, device, [&](DeviceMemory& memory) -> Status {
    KEEL_TRY(capi::NotNull(visit, "visit"));
    return capi::Visit(memory.allocator().Stats().Flatten(), visit, data);
  });
}

keel_status keel_host_for_each_stat(keel_device device, keel_stat_visitor visit, void* data) {
  return capi::OnMemory(__func__, device, [&](DeviceMemory& memory) -> Status {
    KEEL_TRY(capi::NotNull(visit, "visit"));
    return capi::Visit(memory.host().stats().memory.Flatten(), visit, data);
  });
}

keel_status keel_reset_peak_stats(keel_device device) {
  return capi::OnMemory(__func__, device, [&](DeviceMemory& memory) {
    memory.allocator().ResetPeakStats();
    memory.host().ResetPeakStats();
    return OkStatus();
  });
}

keel_status keel_reset_accumulated_stats(keel_device device) {
  return capi::OnMemory(__func__, device, [&](DeviceMemory& memory) {
    memory.allocator().ResetAccumulatedStats();
    memory.host().ResetAccumulatedStats();
    return OkStatus();
  });
}

keel_status keel_report(keel_device device, char* buffer, size_t* size) {
  return capi::OnMemory(__func__, device, [&](DeviceMemory& memory) -> Status {
    KEEL_TRY(capi::NotNull(size, "size"));
    const std::string text = memory.allocator().Report();
    const std::size_t room = *size;
    *size = text.size() + 1;
    if (buffer == nullptr) return OkStatus();
    if (room < text.size() + 1) {
      return keel::OutOfRange(fmt::format("the report needs {} bytes, and there is room for {}",
                                          text.size() + 1, room));
    }
    std::memcpy(buffer, text.c_str(), text.size() + 1);
    return OkStatus();
  });
}

keel_status keel_write_snapshot(keel_device device, const char* path, keel_snapshot_format format) {
  return capi::Guard(__func__, [&]() -> Status {
    KEEL_TRY(capi::NotNull(path, "path"));
    KEEL_ASSIGN(const auto wanted, capi::FormatOf(format));
    KEEL_ASSIGN(const auto snapshot, capi::TakeOf(device));
    return keel::trace::WriteSnapshotFile(path, snapshot, wanted);
  });
}

keel_status keel_history_enable(uint64_t capacity, int32_t stacks) {
  return capi::Guard(__func__, [&] {
    return EventLog::Global().Enable(
        {.capacity = static_cast<std::size_t>(capacity), .stacks = stacks != 0});
  });
}

keel_status keel_history_disable(void) {
  return capi::Guard(__func__, [&] {
    EventLog::Global().Disable();
    return OkStatus();
  });
}

keel_status keel_history_clear(void) {
  return capi::Guard(__func__, [&] {
    EventLog::Global().Clear();
    return OkStatus();
  });
}

keel_status keel_history_get_count(uint64_t* count) {
  return capi::Guard(__func__, [&]() -> Status {
    KEEL_TRY(capi::NotNull(count, "count"));
    *count = EventLog::Global().recorded();
    return OkStatus();
  });
}

}  // extern "C"
