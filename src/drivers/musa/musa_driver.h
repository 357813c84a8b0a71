// The MUSA driver, for the list of drivers.
#pragma once

#include <memory>

#include "keel/hal/driver.h"

namespace keel::musa {

// Costs nothing until it is used; libmusa.so is looked for then.
std::unique_ptr<hal::Driver> CreateDriver();

}  // namespace keel::musa
