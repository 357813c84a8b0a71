// PrimitiveCosts: what this device takes for the things that the policies are made of.
//
// `auto` compares policies by these figures. They are measured once for a device in a process, on
// the first use, in about a millisecond, and kept.
#pragma once

#include <limits>
#include <memory>

#include "keel/base/deadline.h"
#include "keel/base/export.h"
#include "keel/base/result.h"
#include "keel/memory/process_memory.h"

namespace keel::graph {

struct PrimitiveCosts {
  double patch_us = 0.5;                 // the host's, to rewrite one command
  double copy_bytes_per_us = 1'000'000;  // the device's, read and written
  double copy_step_us = 0;  // the device's, for the kernels of a step that copies anything
  double trace_us = 100;    // the host's, to exchange a traced command; learnt from those that were
  // The host's, to map other memory where some was, in one small handle: a binding's own is learnt.
  // A device that cannot: for ever.
  double remap_us = std::numeric_limits<double>::infinity();

  // Of one step, both sides added up.
  double PatchedStep(double moves_per_step, double commands) const {
    return moves_per_step * commands * patch_us;
  }
  double TracedStep(double moves_per_step, double commands) const {
    return moves_per_step * commands * trace_us;
  }
  static double RemappedStep(double moves_per_step, double binding_us) {
    return moves_per_step == 0 ? 0 : moves_per_step * binding_us;
  }
  double CopiedStep(double bytes) const { return bytes / copy_bytes_per_us; }
};

// Measured now. Waits for the device a few times, briefly, and until the deadline in all:
// kDeadlineExceeded, and what the device still works with is kept until it is done (retry_list.h).
// Calls that a driver itself does not bound, as loading a module on a device that hangs, are not.
KEEL_EXPORT Result<PrimitiveCosts> MeasurePrimitiveCosts(
    const std::shared_ptr<memory::DeviceMemory>& memory, Deadline deadline);
// Measured before, or now; callers wait for each other only for the same device, and until the
// deadline. What failed is not kept: the next one measures.
KEEL_EXPORT Result<PrimitiveCosts> CostsOf(const std::shared_ptr<memory::DeviceMemory>& memory,
                                           Deadline deadline);

}  // namespace keel::graph
