// The CUDA driver's library as a VendorApi.
#pragma once

#include "drivers/shared/vendor_api.h"
#include "keel/base/result.h"

namespace keel::cuda {

// Opens libcuda.so.1, once. kUnavailable says what is missing.
Result<const vendor::VendorApi*> LoadApi();

}  // namespace keel::cuda
