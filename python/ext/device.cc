#include "device.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "errors.h"
#include "keel/drivers/sim.h"

namespace keel::python {
namespace {

hal::DeviceName Parse(const std::string& name) { return Take(hal::DeviceName::Parse(name)); }

nb::dict Describe(const hal::DeviceInfo& info) {
  nb::dict dict;
  dict["driver"] = info.driver;
  dict["ordinal"] = info.ordinal;
  dict["name"] = info.name;
  dict["identity"] = info.identity;
  dict["architecture"] = info.architecture;
  dict["total_memory"] = info.memory.count();
  dict["numa_node"] = info.numa_node;
  dict["simulated"] = info.simulated;
  return dict;
}

nb::dict Describe(const hal::Capabilities& capabilities) {
  nb::dict dict;
  dict["virtual_memory"] = capabilities.virtual_memory;
  dict["granularity"] = capabilities.granularity.minimum.count();
  dict["exportable_memory"] = capabilities.exportable_memory;
  dict["rdma_memory"] = capabilities.rdma_memory;
  dict["host_registration"] = capabilities.host_registration;
  dict["unified_addresses"] = capabilities.unified_addresses;
  dict["kernels"] = capabilities.kernels;
  dict["orchestration"] = capabilities.orchestration;
  dict["host_calls"] = capabilities.host_calls;
  dict["value_writes"] = capabilities.value_writes;
  dict["value_waits"] = capabilities.value_waits;
  dict["event_timing"] = capabilities.event_timing;
  dict["graphs"] = capabilities.graphs;
  dict["graph_update"] = capabilities.graph_update;
  dict["node_update"] = capabilities.node_update;
  return dict;
}

std::vector<std::string> Drivers() {
  std::vector<std::string> names;
  for (const hal::Driver* driver : hal::Registry::Global().drivers()) {
    names.emplace_back(driver->name());
  }
  return names;
}

std::string DefaultDriver() {
  auto driver = WithoutInterpreter([] { return hal::Registry::Global().Default(); });
  return std::string(Take(std::move(driver))->name());
}

// The driver's devices; of a driver that cannot be used here, UnavailableError with the reason.
nb::list Enumerate(const std::string& driver) {
  auto devices = WithoutInterpreter([&]() -> Result<std::vector<hal::DeviceInfo>> {
    KEEL_ASSIGN(hal::Driver * found, hal::Registry::Global().Find(driver));
    return found->Enumerate();
  });
  nb::list list;
  for (const hal::DeviceInfo& info : Take(std::move(devices))) list.append(Describe(info));
  return list;
}

std::string FullName(const std::string& text) {
  const hal::DeviceName name = Parse(text);
  auto full = WithoutInterpreter([&] { return memory::ProcessMemory::Global().FullName(name); });
  return Take(std::move(full)).ToString();
}

DeviceRef Open(const std::string& text) {
  const hal::DeviceName name = Parse(text);
  auto memory = WithoutInterpreter([&] { return memory::ProcessMemory::Global().For(name); });
  DeviceRef device{Take(std::move(memory))};
  NoteDeviceUse();
  return device;
}

std::vector<DeviceRef> InUse() {
  auto sets = WithoutInterpreter([] { return memory::ProcessMemory::Global().List(); });
  std::vector<DeviceRef> devices;
  for (auto& set : Take(std::move(sets))) devices.push_back({std::move(set)});
  return devices;
}

void Forget(const std::string& text) {
  const hal::DeviceName name = Parse(text);
  Check(WithoutInterpreter([&] { return memory::ProcessMemory::Global().Forget(name); }));
}

bool CanAccessPeer(const DeviceRef& device, const DeviceRef& peer) {
  if (device.device()->info().driver != peer.device()->info().driver) return false;
  auto can =
      WithoutInterpreter([&] { return device.device()->CanAccessPeer(peer.device()->id()); });
  return Take(std::move(can));
}

void EnablePeerAccess(const DeviceRef& device, const DeviceRef& peer) {
  Check(WithoutInterpreter([&]() -> Status {
    KEEL_TRY(device.device()->EnablePeerAccess(peer.device()->id()));
    return peer.memory->allocator().AddPeer(device.device());
  }));
}

void LoseDevice(const DeviceRef& device, const std::string& reason) {
  sim::Controls* const controls = sim::FindControls(*device.device());
  if (controls == nullptr) {
    Check(InvalidArgument("only a simulated device can be lost at will, not " + device.name()));
  }
  controls->Lose(reason);
}

}  // namespace

void BindDevice(nb::module_& m) {
  m.def("drivers", &Drivers);
  m.def("default_driver", &DefaultDriver);
  m.def("enumerate_devices", &Enumerate, nb::arg("driver"));
  m.def("full_name", &FullName, nb::arg("name"));
  m.def("open_device", &Open, nb::arg("name"));
  m.def("devices_in_use", &InUse);
  m.def("forget_device", &Forget, nb::arg("name"));

  nb::class_<DeviceRef>(m, "Device")
      .def_prop_ro("name", &DeviceRef::name)
      .def("info", [](const DeviceRef& self) { return Describe(self.device()->info()); })
      .def("capabilities",
           [](const DeviceRef& self) { return Describe(self.device()->capabilities()); })
      .def("check", [](const DeviceRef& self) { Check(self.device()->Health()); })
      .def("can_access_peer", &CanAccessPeer, nb::arg("peer"))
      .def("enable_peer_access", &EnablePeerAccess, nb::arg("peer"))
      .def("lose", &LoseDevice, nb::arg("reason"));
}

}  // namespace keel::python
