// What a worker process and whoever starts it agree on, beside the region.
#pragma once

#include <string>

#include "keel/task/orchestrator.h"

namespace keel::task {

// keel-worker REGION DOORBELL PARENT ORCHESTRATION DEVICE: three descriptors that it inherits (the
// third is a pidfd of the process that starts it), a number, a name.
struct WorkerArguments {
  int region = -1;
  int doorbell = -1;
  int parent = -1;
  Orchestration orchestration = Orchestration::kAuto;
  std::string device;
};

inline constexpr int kUsageExit = 2;
inline constexpr int kGaveUpExit = 3;  // RegionHeader::last_words says why
inline constexpr int kOrphanExit = 4;

}  // namespace keel::task
