#include "drivers/cuda/cuda_driver.h"

#include "drivers/cuda/cuda_api.h"
#include "drivers/shared/vendor_driver.h"

namespace keel::cuda {

std::unique_ptr<hal::Driver> CreateDriver() {
  return std::make_unique<vendor::VendorDriver>("cuda", LoadApi);
}

}  // namespace keel::cuda
