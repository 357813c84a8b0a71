// The HIP runtime as a VendorApi.
#pragma once

#include "drivers/shared/vendor_api.h"
#include "keel/base/result.h"

namespace keel::hip {

// Opens libamdhip64.so, once. kUnavailable says what is missing.
Result<const vendor::VendorApi*> LoadApi();

}  // namespace keel::hip
