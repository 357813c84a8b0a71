// What a worker process does with the orchestrator's doorbell.
#pragma once

#include <memory>

#include "keel/base/result.h"
#include "keel/base/unique_fd.h"
#include "task/worker.h"

namespace keel::task {

// The doorbell of another process, by a descriptor that was inherited from it.
Result<std::shared_ptr<Doorbell>> OpenDoorbell(UniqueFd file);

}  // namespace keel::task
