// What keel.memory is made of: an allocator's limits and books, snapshots, the history.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <vector>

#include "device.h"
#include "errors.h"
#include "keel/telemetry/event_log.h"
#include "keel/trace/live_snapshot.h"
#include "keel/trace/snapshot_file.h"

namespace keel::python {
namespace {

nb::dict ToDict(const telemetry::FlatStats& stats) {
  nb::dict dict;
  for (const auto& [key, value] : stats) dict[key.c_str()] = value;
  return dict;
}

// What a device that nobody uses has.
nb::dict NoStats() { return ToDict(telemetry::MemoryStats().Flatten()); }
nb::dict NoHostStats() { return ToDict(telemetry::HostMemoryStats().Flatten()); }

nb::dict Stats(const DeviceRef& device) {
  return ToDict(WithoutInterpreter([&] { return device.memory->allocator().Stats(); }).Flatten());
}

nb::dict HostStats(const DeviceRef& device) {
  return ToDict(WithoutInterpreter([&] { return device.memory->host().stats(); }).memory.Flatten());
}

// (allocated, its peak, reserved, its peak): what is asked for most, without the other hundred.
nb::tuple Usage(const DeviceRef& device) {
  const telemetry::MemoryStats stats =
      WithoutInterpreter([&] { return device.memory->allocator().Stats(); });
  const telemetry::Stat& allocated = stats.allocated_bytes.all;
  const telemetry::Stat& reserved = stats.reserved_bytes.all;
  return nb::make_tuple(allocated.current, allocated.peak, reserved.current, reserved.peak);
}

void ResetPeaks(const DeviceRef& device) {
  WithoutInterpreter([&] {
    device.memory->allocator().ResetPeakStats();
    device.memory->host().ResetPeakStats();
  });
}

void ResetAccumulated(const DeviceRef& device) {
  WithoutInterpreter([&] {
    device.memory->allocator().ResetAccumulatedStats();
    device.memory->host().ResetAccumulatedStats();
  });
}

void EmptyCache(const DeviceRef& device) {
  Check(WithoutInterpreter([&]() -> Status {
    KEEL_TRY(device.memory->allocator().EmptyCache());
    return device.memory->host().EmptyCache();
  }));
}

nb::tuple MemoryInfo(const DeviceRef& device) {
  const hal::MemoryInfo info =
      Take(WithoutInterpreter([&] { return device.device()->GetMemoryInfo(); }));
  return nb::make_tuple(info.free.count(), info.total.count());
}

const char* Backend() {
  const Result<memory::AllocatorConfig>& config = memory::AllocatorConfig::FromEnvironment();
  Check(config.status());
  switch (config->backend) {
    case memory::AllocatorConfig::Backend::kNative:
      return "native";
    case memory::AllocatorConfig::Backend::kPassthrough:
      return "passthrough";
  }
  return "unknown";
}

Result<trace::Snapshot> SnapshotOf(const std::vector<DeviceRef>& devices) {
  std::vector<memory::DeviceAllocator*> allocators;
  allocators.reserve(devices.size());
  for (const DeviceRef& device : devices) allocators.push_back(&device.memory->allocator());
  return trace::TakeSnapshot(allocators);
}

trace::SnapshotFormat FormatOf(bool json) {
  return json ? trace::SnapshotFormat::kJson : trace::SnapshotFormat::kPickle;
}

nb::bytes SnapshotBytes(const std::vector<DeviceRef>& devices, bool json) {
  auto bytes = WithoutInterpreter([&]() -> Result<std::string> {
    KEEL_ASSIGN(const trace::Snapshot snapshot, SnapshotOf(devices));
    return trace::WriteSnapshot(snapshot, FormatOf(json));
  });
  const std::string text = Take(std::move(bytes));
  return nb::bytes(text.data(), text.size());
}

void WriteSnapshot(const std::vector<DeviceRef>& devices, const std::string& path, bool json) {
  Check(WithoutInterpreter([&]() -> Status {
    KEEL_ASSIGN(const trace::Snapshot snapshot, SnapshotOf(devices));
    return trace::WriteSnapshotFile(path, snapshot, FormatOf(json));
  }));
}

void StartHistory(std::size_t capacity, bool stacks) {
  Check(telemetry::EventLog::Global().Enable({.capacity = capacity, .stacks = stacks}));
}

}  // namespace

void BindMemory(nb::module_& m) {
  auto device = nb::borrow<nb::class_<DeviceRef>>(nb::type<DeviceRef>());
  device.def("stats", &Stats)
      .def("host_stats", &HostStats)
      .def("usage", &Usage)
      .def("reset_peaks", &ResetPeaks)
      .def("reset_accumulated", &ResetAccumulated)
      .def("empty_cache", &EmptyCache)
      .def("memory_info", &MemoryInfo)
      .def(
          "set_fraction",
          [](const DeviceRef& self, double fraction) {
            Check(
                WithoutInterpreter([&] { return self.memory->allocator().SetFraction(fraction); }));
          },
          nb::arg("fraction"))
      .def_prop_ro("limit",
                   [](const DeviceRef& self) { return self.memory->allocator().limit().count(); })
      .def("report", [](const DeviceRef& self) {
        return WithoutInterpreter([&] { return self.memory->allocator().Report(); });
      });

  m.def("no_stats", &NoStats);
  m.def("no_host_stats", &NoHostStats);
  m.def("backend", &Backend);
  m.def("snapshot_bytes", &SnapshotBytes, nb::arg("devices"), nb::arg("json"));
  m.def("write_snapshot", &WriteSnapshot, nb::arg("devices"), nb::arg("path"), nb::arg("json"));
  m.def("start_history", &StartHistory, nb::arg("capacity"), nb::arg("stacks"));
  m.def("stop_history", [] { telemetry::EventLog::Global().Disable(); });
  m.def("clear_history", [] { telemetry::EventLog::Global().Clear(); });
  m.attr("MAX_HISTORY") = telemetry::EventLog::kMaxCapacity;
}

}  // namespace keel::python
