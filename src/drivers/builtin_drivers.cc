// The list of drivers that the library brings, in the order in which a default is looked for.

#include "hal/builtin_drivers.h"

#include "drivers/cuda/cuda_driver.h"  // vendor-ok: the list of drivers
#include "drivers/hip/hip_driver.h"    // vendor-ok: the list of drivers
#include "drivers/musa/musa_driver.h"  // vendor-ok: the list of drivers
#include "drivers/sim/sim_driver.h"

namespace keel::hal {

std::vector<std::unique_ptr<Driver>> BuiltinDrivers() {
  std::vector<std::unique_ptr<Driver>> drivers;
  drivers.push_back(cuda::CreateDriver());  // vendor-ok: the list of drivers
  drivers.push_back(hip::CreateDriver());   // vendor-ok: the list of drivers
  drivers.push_back(musa::CreateDriver());  // vendor-ok: the list of drivers
  drivers.push_back(sim::CreateBuiltinSimDriver());
  return drivers;
}

}  // namespace keel::hal
