// The drivers that this build of the library contains, in the order in which a default is looked
// for: real ones first, the simulated one last. Defined in src/drivers, which knows them; declared
// here, so that the registry needs to know none.
#pragma once

#include <memory>
#include <vector>

#include "keel/hal/driver.h"

namespace keel::hal {

std::vector<std::unique_ptr<Driver>> BuiltinDrivers();

}  // namespace keel::hal
