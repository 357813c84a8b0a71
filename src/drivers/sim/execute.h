// Running commands: the simulated device's execution unit. Called on a stream's own thread.
//
// An error is a fault: it says what was done at which address, and the device is lost by it.
#pragma once

#include "drivers/sim/program.h"
#include "keel/base/status.h"

namespace keel::sim {

class SimStream;

// `ordinal`: of the device whose addresses the command means; the stream's own but in a graph that
// was captured over several devices.
Status RunCommand(const StoredCommand& command, int ordinal, SimStream& stream);
// All nodes, each after its dependencies; with random delays also in a random order among those
// that are allowed.
Status RunProgram(const Program& program, SimStream& stream);

}  // namespace keel::sim
