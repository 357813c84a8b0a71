// The driver and the device that the user chose, with errors that say what to choose instead.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "command.h"
#include "keel/base/result.h"
#include "keel/hal/device.h"
#include "keel/hal/driver.h"

namespace keel::cli {

// --driver NAME and --device N.
struct Choice {
  std::string driver;  // empty: the default
  int device = 0;
};

void AddDriverOption(CLI::App& app, std::string& driver, const std::string& what);
void AddDeviceOption(CLI::App& app, int& device);

// kNotFound lists the drivers there are.
Result<hal::Driver*> FindDriver(const std::string& name);
// The registry's default; kInvalidArgument where there is none because of a mistake in the
// configuration of a driver.
Result<hal::Driver*> DefaultDriver();
// kNotFound lists the drivers, or the devices, there are.
Result<std::shared_ptr<hal::Device>> OpenChosen(const Choice& choice);

// Reports why a driver or device could not be chosen or opened. What an argument or an environment
// variable got wrong is kUsage, anything else kFailure.
ExitCode ReportChoiceError(std::string_view command, const Status& status);

}  // namespace keel::cli
