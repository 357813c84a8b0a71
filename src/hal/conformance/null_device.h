// NullDevice: a device that can do nothing beyond the primitives that every device has, and those
// only in name. For tests of the suite itself: of its runner, and of what it asks of a device
// without capabilities.
#pragma once

#include <memory>

#include "keel/hal/device.h"

namespace keel::hal::conformance {

std::shared_ptr<Device> NewNullDevice();

}  // namespace keel::hal::conformance
