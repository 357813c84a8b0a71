// The built-in simulated driver, for the list of drivers.
#pragma once

#include <memory>

#include "keel/hal/driver.h"

namespace keel::sim {

// Reads KEEL_SIM. A mistake in it does not hide the driver: Enumerate and Open return the error.
std::unique_ptr<hal::Driver> CreateBuiltinSimDriver();

}  // namespace keel::sim
