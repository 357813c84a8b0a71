// The CUDA driver, for the list of drivers.
#pragma once

#include <memory>

#include "keel/hal/driver.h"

namespace keel::cuda {

// Costs nothing until it is used; libcuda.so.1 is looked for then.
std::unique_ptr<hal::Driver> CreateDriver();

}  // namespace keel::cuda
