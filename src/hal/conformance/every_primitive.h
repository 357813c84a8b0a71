// Uses every primitive of a device once, as a program would: for the claims "this does not wait"
// and "this disturbs no capture".
#pragma once

#include "hal/conformance/context.h"

namespace keel::hal::conformance {

enum class Waiting {
  kAllowed,
  kForbidden,  // leaves out what may wait: synchronising, pageable copies, plain frees
};

// What could not be freed because that may wait. Give it back by destroying it.
struct Leftovers {
  std::vector<PlainMemory> plain;
  std::vector<HostMemory> host;
};

// Every call must succeed; a failure is reported. Fails too when it leaves a primitive out that the
// device has: the claim would then say less than it seems to.
Leftovers UseEveryPrimitive(CaseContext& context, Waiting waiting, int i = 0);

}  // namespace keel::hal::conformance
