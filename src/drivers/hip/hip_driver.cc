#include "drivers/hip/hip_driver.h"

#include "drivers/hip/hip_api.h"
#include "drivers/shared/vendor_driver.h"

namespace keel::hip {

std::unique_ptr<hal::Driver> CreateDriver() {
  return std::make_unique<vendor::VendorDriver>("hip", LoadApi);
}

}  // namespace keel::hip
