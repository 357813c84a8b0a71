// The driver and the device that the user chose, with errors that say what to choose instead.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "command.h"
#include "keel/base/result.h"
#include "keel/hal/device.h"
#include "keel/hal/driver.h"
#include "keel/task/orchestrator.h"

namespace keel::cli {

// --driver NAME and --device [NAME:]N.
struct Choice {
  std::string driver;  // empty: the default
  std::string device;  // "1", or "sim:1"; empty: 0

  bool made() const { return !driver.empty() || !device.empty(); }
};

void AddDriverOption(CLI::App& app, std::string& driver, const std::string& what);
CLI::Option* AddDeviceOption(CLI::App& app, std::string& device);
// --transport thread|process|mpi, for ParseTransport.
void AddTransportOption(CLI::App& app, std::string& transport);
// kInvalidArgument lists the transports there are; kUnimplemented: this program has not that one.
Result<task::Transport> ParseTransport(const std::string& name);

// kNotFound lists the drivers there are.
Result<hal::Driver*> FindDriver(const std::string& name);
// kNotFound lists the drivers, or the devices, there are; kInvalidArgument says that the two
// options name different drivers.
Result<std::shared_ptr<hal::Device>> OpenChosen(const Choice& choice);

}  // namespace keel::cli
