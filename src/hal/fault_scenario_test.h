// A scenario that uses every primitive of a device, for sweeps in which each call fails once, on
// whatever driver the devices are.
#pragma once

#include <functional>
#include <memory>

#include "keel/base/status.h"
#include "keel/hal/device.h"
#include "keel/hal/instrumented.h"

namespace keel::hal {

// Two devices of one driver that can access each other.
struct Devices {
  std::shared_ptr<Device> device;
  std::shared_ptr<Device> peer;
};

// Calls every primitive of `device` and checks what came of it. The first error ends it; everything
// that it made is given back, or on the retry list, when it returns.
Status UseEverything(const Devices& on);

// Owns one of each thing that can be given back, and gives all of them back by destructors.
Status OwnOneOfEach(const Devices& on);

// Runs UseEverything once for each of its primitives, with that one failing, and again without.
// `expect_given_back` is called when nothing may be left.
void SweepPrimitives(const std::shared_ptr<InstrumentedDevice>& device,
                     const std::shared_ptr<Device>& peer,
                     const std::function<void()>& expect_given_back);

}  // namespace keel::hal
