// The simulated device's controller: runs orchestration code (keel/hal/orchestration.h) that lies
// in the device's memory. Called on a stream's own thread; the kernels that the code launches run
// inline, each with all the checks of a launch.
#pragma once

#include "drivers/sim/program.h"
#include "keel/base/status.h"

namespace keel::sim {

class SimStream;

// `launch` is of a kernel that LoadOrchestration made. An error is a fault, as in execute.h: what
// the code returned, or a launch that was refused, is in the outcome.
Status RunOrchestration(const StoredKernel& launch, int ordinal, SimStream& stream);

}  // namespace keel::sim
