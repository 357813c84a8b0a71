#include "choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "terminal.h"

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

std::string CheckOrdinal(const std::string& text) {
  int value = -1;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && rest == end && value >= 0) return {};
  return fmt::format("must be a whole number from 0, not '{}'", text);
}

}  // namespace

void AddDriverOption(CLI::App& app, std::string& driver, const std::string& what) {
  app.add_option("--driver", driver, what)->type_name("NAME");
}

void AddDeviceOption(CLI::App& app, int& device) {
  app.add_option("--device", device, "The device's number, as 'keel info' lists it (default 0)")
      ->type_name("N")
      ->check(CLI::Validator(CheckOrdinal, "", "ordinal"));
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
  hal::Driver* driver = nullptr;
  if (choice.driver.empty()) {
    KEEL_ASSIGN(driver, DefaultDriver());
  } else {
    KEEL_ASSIGN(driver, FindDriver(choice.driver));
  }
  KEEL_ASSIGN(const std::vector<hal::DeviceInfo> devices, driver->Enumerate());
  if (devices.empty()) {
    return Unavailable(fmt::format("driver {} has no device here; 'keel info' shows what there is",
                                   driver->name()));
  }
  const auto is_chosen = [&](const hal::DeviceInfo& info) { return info.ordinal == choice.device; };
  if (std::none_of(devices.begin(), devices.end(), is_chosen)) {
    std::string ordinals;
    for (const hal::DeviceInfo& info : devices) {
      ordinals += fmt::format("{}{}", ordinals.empty() ? "" : ", ", info.ordinal);
    }
    return NotFound(fmt::format("driver {} has no device {}; choose --device from: {}",
                                driver->name(), choice.device, ordinals));
  }
  return driver->Open(choice.device);
}

ExitCode ReportChoiceError(std::string_view command, const Status& status) {
  const bool usage =
      status.code() == StatusCode::kInvalidArgument || status.code() == StatusCode::kNotFound;
  // A mistake in an argument needs no code to be understood; for a failure it is what one looks up.
  PrintError(command, usage ? std::string(status.message()) : status.ToString());
  return usage ? kUsage : kFailure;
}

}  // namespace keel::cli
