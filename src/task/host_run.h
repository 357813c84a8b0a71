// Orchestration by the host, for one task: the code of an image, or a function of this process. The
// kernels go to the stream as it launches them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "keel/base/deadline.h"
#include "keel/memory/process_memory.h"
#include "keel/task/host_function.h"
#include "task/own_stream.h"
#include "task/stored_callable.h"

namespace keel::task {

// What code returned, as a status. Three codes are the engine's to say: whoever sees them gives the
// device up.
Status OutcomeOf(std::int32_t code, std::string_view message);

struct HostRun {
  const std::shared_ptr<memory::DeviceMemory>& memory;
  const std::shared_ptr<OwnStream>& stream;
  const StoredCallable& callable;
  const HostFunction* function;  // null: the callable's own code
  Deadline deadline;
  bool& queued;  // set if something may be on the stream: a kernel, or what a function did there
  const std::atomic<bool>* killed;  // the task is over for everybody else; null: never
};

// Calls it. `arguments` are encoded, with addresses of the device. What was launched is not waited
// for, also after an error.
Status RunOnHost(const HostRun& run, std::span<const std::byte> arguments);

}  // namespace keel::task
