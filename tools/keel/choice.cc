#include "choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

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

struct DeviceName {
  std::string driver;  // empty: not named
  int ordinal = 0;
};

std::optional<DeviceName> ParseDeviceName(std::string_view text) {
  DeviceName name;
  if (const std::size_t colon = text.find(':'); colon != std::string_view::npos) {
    name.driver = text.substr(0, colon);
    if (name.driver.empty()) return std::nullopt;
    text.remove_prefix(colon + 1);
  }
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [rest, error] = std::from_chars(begin, end, name.ordinal);
  if (error != std::errc() || rest != end || name.ordinal < 0) return std::nullopt;
  return name;
}

std::string CheckDeviceName(const std::string& text) {
  if (ParseDeviceName(text).has_value()) return {};
  return fmt::format("must be a whole number from 0, alone or as in 'sim:0', not '{}'", text);
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

Result<hal::Driver*> FindDriver(const std::string& name) {
  for (hal::Driver* driver : hal::Registry::Global().drivers()) {
    if (driver->name() == name) return driver;
  }
  return NotFound(
      fmt::format("there is no driver '{}'; choose --driver from: {}", name, DriverNames()));
}

Result<hal::Driver*> DefaultDriver() {
  auto chosen = hal::Registry::Global().Default();
  if (chosen.ok()) return chosen;
  // That nothing works may be because something was configured wrongly; then that is the error.
  for (hal::Driver* driver : hal::Registry::Global().drivers()) {
    Status status = driver->Enumerate().status();
    if (status.code() == StatusCode::kInvalidArgument) return status;
  }
  return chosen;
}

Result<std::shared_ptr<hal::Device>> OpenChosen(const Choice& choice) {
  DeviceName name;
  if (!choice.device.empty()) {
    const std::optional<DeviceName> parsed = ParseDeviceName(choice.device);
    if (!parsed.has_value()) return InvalidArgument("--device: " + CheckDeviceName(choice.device));
    name = *parsed;
  }
  if (!choice.driver.empty() && !name.driver.empty() && choice.driver != name.driver) {
    return InvalidArgument(fmt::format("--device {} is not a device of --driver {}; leave one out",
                                       choice.device, choice.driver));
  }
  if (name.driver.empty()) name.driver = choice.driver;
  hal::Driver* driver = nullptr;
  if (name.driver.empty()) {
    KEEL_ASSIGN(driver, DefaultDriver());
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
