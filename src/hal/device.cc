#include "keel/hal/device.h"

namespace keel::hal {

Device::~Device() = default;

}  // namespace keel::hal
