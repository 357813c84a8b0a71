// What the handles of keel/c_task.h stand for.
#pragma once

#include <memory>

#include "capi/handles.h"
#include "keel/base/mutex.h"
#include "keel/task/orchestrator.h"

namespace keel::capi {

struct OrchestratorObject {
  std::unique_ptr<task::Orchestrator> orchestrator;
};

struct TaskObject {
  task::TaskHandle task;
};

// Lent to a function for a call; another thread may still look at it when that ends.
struct TaskCallObject {
  Mutex mutex;
  task::HostCall* call KEEL_GUARDED_BY(mutex) = nullptr;  // null: over
};

}  // namespace keel::capi
