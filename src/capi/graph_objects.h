// What the handles of keel/c_graph.h stand for.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capi/handles.h"
#include "capi/known_range.h"
#include "keel/graph/executable.h"
#include "keel/graph/memory_budget.h"
#include "keel/graph/program.h"
#include "keel/graph/rerecorder.h"
#include "keel/graph/scratch_arena.h"
#include "keel/hal/module.h"
#include "keel/memory/physical_block.h"

namespace keel::capi {

struct ModuleObject {
  std::shared_ptr<DeviceMemory> memory;
  hal::Module module;
};

struct KernelObject {
  std::shared_ptr<DeviceMemory> memory;
  std::shared_ptr<ModuleObject> module;  // null: borrowed
  hal::KernelHandle kernel;
};

// One call at a time, and the others are refused: waiting for their turn they could wait for
// themselves, in a function that a launch calls.
class OneAtATime {
 public:
  template <class Body>
  Status Do(const char* what, Body body) {
    if (busy_.exchange(true, std::memory_order_acquire)) {
      return FailedPrecondition(std::string("another call works with this ") + what);
    }
    const struct Ending {
      std::atomic<bool>& busy;
      ~Ending() { busy.store(false, std::memory_order_release); }
    } ending{busy_};
    return body();
  }

 private:
  std::atomic<bool> busy_{false};
};

struct BuilderObject {
  std::shared_ptr<DeviceMemory> memory;
  std::shared_ptr<keel_device> device;  // for the functions of its commands
  std::optional<graph::ProgramBuilder> builder;
  OneAtATime calls;
};

struct ProgramObject {
  std::shared_ptr<DeviceMemory> memory;
  std::shared_ptr<const graph::Program> program;
};

struct ArenaObject {
  std::shared_ptr<graph::ScratchArena> arena;
};

struct BudgetObject {
  std::shared_ptr<graph::MemoryBudget> budget;
};

struct PhysicalMemoryObject {
  std::shared_ptr<DeviceMemory> memory;
  Mutex mutex;
  memory::PhysicalBlock block KEEL_GUARDED_BY(mutex);  // none: another thread closed it
  KnownRange range KEEL_GUARDED_BY(mutex);
};

struct ExecutableObject {
  std::shared_ptr<DeviceMemory> memory;
  bool aliased = false;  // its outputs are held at addresses that the allocator does not know
  std::unique_ptr<graph::Executable> executable;
};

struct LeaseObject {
  std::shared_ptr<DeviceMemory> memory;
  std::shared_ptr<StreamObject> stream;
  bool aliased = false;
  graph::Lease lease;
  OneAtATime calls;
};

struct OutputObject {
  std::shared_ptr<DeviceMemory> memory;
  // Its step's, and those that read it: it is let go on them.
  std::vector<std::shared_ptr<StreamObject>> streams;
  graph::HeldOutput output;
  KnownRange range;  // empty: in a block of the allocator
  OneAtATime calls;
};

struct RerecorderObject {
  std::shared_ptr<DeviceMemory> memory;
  std::vector<std::shared_ptr<StreamObject>> streams;  // that have steps of it
  std::unique_ptr<graph::Rerecorder> rerecorder;
  OneAtATime calls;
};

}  // namespace keel::capi
