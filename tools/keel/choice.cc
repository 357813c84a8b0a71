#include "choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "keel/hal/device_name.h"

namespace keel::cli {
namespace {

std::string DriverNames() {
  std::string names;
  for (const hal::Driver* driver : hal::Registry::Global().drivers()) {
    if (!names.empty()) names += ", ";
    names += driver->name();
  }
  return names.empty() ? "none" : names;
}

std::string CheckDeviceName(const std::string& text) {
  if (text.empty()) return "must not be empty";
  return std::string(hal::DeviceName::Parse(text).status().message());
}

}  // namespace

void AddDriverOption(CLI::App& app, std::string& driver, const std::string& what) {
  app.add_option("--driver", driver, what)->type_name("NAME");
}

CLI::Option* AddDeviceOption(CLI::App& app, std::string& device) {
  return app
      .add_option("--device", device,
                  "The device's number, as 'keel info' lists it (default 0); or with its\n"
                  "driver, such as sim:0")
      ->type_name("[NAME:]N")
      ->check(CLI::Validator(CheckDeviceName, "", "device"));
}

void AddTransportOption(CLI::App& app, std::string& transport) {
  app.add_option("--transport", transport,
                 "What the workers of the tasks are: thread (the default), process or mpi")
      ->type_name("NAME");
}

Result<task::Transport> ParseTransport(const std::string& name) {
  if (name == "thread") return task::Transport::kThread;
  if (name == "process") return task::Transport::kProcess;
  if (name == "mpi") return task::Transport::kMpi;
  return InvalidArgument(fmt::format(
      "there is no transport '{}'; choose --transport from: thread, process, mpi", name));
}

Result<hal::Driver*> FindDriver(const std::string& name) {
  for (hal::Driver* driver : hal::Registry::Global().drivers()) {
    if (driver->name() == name) return driver;
  }
  return NotFound(
      fmt::format("there is no driver '{}'; choose --driver from: {}", name, DriverNames()));
}

Result<std::shared_ptr<hal::Device>> OpenChosen(const Choice& choice) {
  KEEL_ASSIGN(hal::DeviceName name, hal::DeviceName::Parse(choice.device));
  if (!choice.driver.empty() && !name.driver.empty() && choice.driver != name.driver) {
    return InvalidArgument(fmt::format("--device {} is not a device of --driver {}; leave one out",
                                       choice.device, choice.driver));
  }
  if (name.driver.empty()) name.driver = choice.driver;
  hal::Driver* driver = nullptr;
  if (name.driver.empty()) {
    KEEL_ASSIGN(driver, hal::Registry::Global().Default());
  } else {
    KEEL_ASSIGN(driver, FindDriver(name.driver));
  }
  KEEL_ASSIGN(const std::vector<hal::DeviceInfo> devices, driver->Enumerate());
  if (devices.empty()) {
    return Unavailable(fmt::format("driver {} has no device here; 'keel info' shows what there is",
                                   driver->name()));
  }
  const auto is_chosen = [&](const hal::DeviceInfo& info) { return info.ordinal == name.ordinal; };
  if (std::none_of(devices.begin(), devices.end(), is_chosen)) {
    std::string ordinals;
    for (const hal::DeviceInfo& info : devices) {
      ordinals += fmt::format("{}{}", ordinals.empty() ? "" : ", ", info.ordinal);
    }
    return NotFound(fmt::format("driver {} has no device {}; choose --device from: {}",
                                driver->name(), name.ordinal, ordinals));
  }
  return driver->Open(name.ordinal);
}

}  // namespace keel::cli
