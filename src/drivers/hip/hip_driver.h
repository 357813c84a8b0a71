// The HIP driver, for the list of drivers.
#pragma once

#include <memory>

#include "keel/hal/driver.h"

namespace keel::hip {

// Costs nothing until it is used; libamdhip64.so is looked for then.
std::unique_ptr<hal::Driver> CreateDriver();

}  // namespace keel::hip
