#include "drivers/musa/musa_driver.h"

#include "drivers/musa/musa_api.h"
#include "drivers/shared/vendor_driver.h"

namespace keel::musa {

std::unique_ptr<hal::Driver> CreateDriver() {
  return std::make_unique<vendor::VendorDriver>("musa", LoadApi);
}

}  // namespace keel::musa
