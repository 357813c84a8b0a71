// What the steps of several callers have to take turns at.
#pragma once

#include "keel/base/deadline.h"
#include "keel/base/timed_mutex.h"
#include "keel/graph/replay_report.h"
#include "keel/hal/device.h"

namespace keel::graph {

// Locks `mutex`, and reports having waited for it, and why. False: the deadline has passed, or the
// device is lost.
bool TakeTurn(TimedMutex& mutex, const hal::Device& device, Deadline deadline, Reason reason,
              ReplayReport& report) KEEL_TRY_ACQUIRE(true, mutex);

}  // namespace keel::graph
