// The MUSA driver's library as a VendorApi.
#pragma once

#include "drivers/shared/vendor_api.h"
#include "keel/base/result.h"

namespace keel::musa {

// Opens libmusa.so, once. kUnavailable says what is missing.
Result<const vendor::VendorApi*> LoadApi();

}  // namespace keel::musa
