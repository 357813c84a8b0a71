// SimGraph and SimExec: a recorded graph, and one that can be launched.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "drivers/sim/program.h"
#include "drivers/sim/ticket.h"
#include "keel/base/mutex.h"
#include "keel/base/result.h"
#include "keel/hal/device.h"

namespace keel::sim {

// Thread-safe.
class SimGraph {
 public:
  // Dependencies must be nodes of this graph (kInvalidArgument).
  // `ordinal`: of the device whose addresses the command means.
  Result<hal::NodeHandle> Add(std::span<const hal::NodeHandle> dependencies, StoredCommand command,
                              int ordinal) KEEL_EXCLUDES(mutex_);
  std::vector<hal::NodeInfo> List() const KEEL_EXCLUDES(mutex_);
  // Whether every node comes before, or is, one of these.
  bool AllReach(std::span<const hal::NodeHandle> last) const KEEL_EXCLUDES(mutex_);

  struct Snapshot {
    Program program;
    std::vector<hal::NodeHandle> handles;  // of the nodes, in order; ascending
  };
  Snapshot Copy() const KEEL_EXCLUDES(mutex_);

 private:
  Result<std::uint32_t> IndexLocked(hal::NodeHandle node) const KEEL_REQUIRES(mutex_);

  mutable Mutex mutex_;
  Snapshot content_ KEEL_GUARDED_BY(mutex_);
};

// Thread-safe. Launches that are queued hold the program that they were launched with; a change
// makes a new one if there are any.
class SimExec {
 public:
  explicit SimExec(SimGraph::Snapshot content);

  struct Launch {
    std::shared_ptr<const Program> program;
    std::shared_ptr<Ticket> previous;  // launches of one exec do not overlap; null: none before
    std::shared_ptr<Ticket> done;
  };
  Launch NewLaunch() KEEL_EXCLUDES(mutex_);

  hal::UpdateReport Update(const SimGraph& graph) KEEL_EXCLUDES(mutex_);
  Status SetParams(hal::NodeHandle node, StoredCommand command) KEEL_EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  std::shared_ptr<Program> program_ KEEL_GUARDED_BY(mutex_);
  const std::vector<hal::NodeHandle> handles_;
  std::shared_ptr<Ticket> last_launch_ KEEL_GUARDED_BY(mutex_);
};

}  // namespace keel::sim
