// The handles of the C interface, and what is behind them.
//
// A handle is a number in the shape of a pointer, which nobody ever follows: it says what kind it
// is, in which process it was made, and which one it is; a table has the rest. So a handle that was
// closed, comes from the other side of a fork, or is none at all is an error and never an access to
// memory. Numbers are not used twice.
#pragma once

#include <memory>

#include "keel/base/result.h"
#include "keel/c.h"
#include "keel/hal/stream.h"
#include "keel/memory/process_memory.h"

namespace keel::capi {

using memory::DeviceMemory;

// What keel_stream stands for. Whoever uses it holds it: the stream is closed with the last.
struct StreamObject {
  std::shared_ptr<DeviceMemory> memory;
  hal::Stream stream;
};

// What the handles of keel/c_graph.h stand for: graph_objects.h.
struct ModuleObject;
struct KernelObject;
struct BuilderObject;
struct ProgramObject;
struct ArenaObject;
struct BudgetObject;
struct PhysicalMemoryObject;
struct ExecutableObject;
struct LeaseObject;
struct OutputObject;
struct RerecorderObject;
// And those of keel/c_task.h: task_objects.h.
struct OrchestratorObject;
struct TaskObject;
struct TaskCallObject;

template <class Handle>
struct Behind;
template <>
struct Behind<keel_device> {
  using Object = DeviceMemory;
};
template <>
struct Behind<keel_stream> {
  using Object = StreamObject;
};
template <>
struct Behind<keel_module> {
  using Object = ModuleObject;
};
template <>
struct Behind<keel_kernel> {
  using Object = KernelObject;
};
template <>
struct Behind<keel_program_builder> {
  using Object = BuilderObject;
};
template <>
struct Behind<keel_program> {
  using Object = ProgramObject;
};
template <>
struct Behind<keel_scratch_arena> {
  using Object = ArenaObject;
};
template <>
struct Behind<keel_memory_budget> {
  using Object = BudgetObject;
};
template <>
struct Behind<keel_executable> {
  using Object = ExecutableObject;
};
template <>
struct Behind<keel_lease> {
  using Object = LeaseObject;
};
template <>
struct Behind<keel_output> {
  using Object = OutputObject;
};
template <>
struct Behind<keel_physical_memory> {
  using Object = PhysicalMemoryObject;
};
template <>
struct Behind<keel_rerecorder> {
  using Object = RerecorderObject;
};
template <>
struct Behind<keel_orchestrator> {
  using Object = OrchestratorObject;
};
template <>
struct Behind<keel_task> {
  using Object = TaskObject;
};
template <>
struct Behind<keel_task_call> {
  using Object = TaskCallObject;
};
template <class Handle>
using ObjectOf = typename Behind<Handle>::Object;

template <class Handle>
Result<Handle> Add(std::shared_ptr<ObjectOf<Handle>> object);

// kInvalidArgument says what the handle is instead; kFailedPrecondition: it is of the parent
// process.
template <class Handle>
Result<std::shared_ptr<ObjectOf<Handle>>> Find(Handle handle);
// The handle, or for NULL the default stream, of this device. kInvalidArgument: it is another's.
Result<std::shared_ptr<StreamObject>> Find(const std::shared_ptr<DeviceMemory>& memory,
                                           keel_stream stream);

// As Find, and the handle is none any more.
template <class Handle>
Result<std::shared_ptr<ObjectOf<Handle>>> Remove(Handle handle);

}  // namespace keel::capi
