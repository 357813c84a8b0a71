// The parts of Main that can be tested: what a join must look like, and how one case is run.
#pragma once

#include <string>
#include <vector>

#include "hal/conformance/case.h"
#include "hal/conformance/conformance.h"

namespace keel::hal::conformance {

// What is wrong with a join: names that no case has, entries without a reason or in both lists,
// hooks that are missing. Empty when it is fine.
std::vector<std::string> CheckJoin(const Join& join, const std::vector<Case>& cases);

// What a case needs and a device does not have, by name.
std::vector<std::string> MissingNeeds(const Case& test, const Join& join,
                                      const Capabilities& capabilities);

// Runs one case inside a GoogleTest test, as the lists of the join ask for. `capabilities` are
// those of the driver's first device.
void RunCase(const Case& test, const Join& join, const Capabilities& capabilities);

// "virtual_memory".
std::string CapabilityName(bool Capabilities::* member);
// Every capability that is a bool.
const std::vector<bool Capabilities::*>& AllCapabilities();

}  // namespace keel::hal::conformance
