// Slot: recorded graphs, the memory that they work in and the timeline of their steps, as one unit.
//
// Whoever has the lease has the slot to itself; there is no lock in it. What must be done before a
// step is kept as marks: bindings that were bound otherwise, commands whose addresses changed. A
// step works off the marks and clears each when its work is done, so that one that fails half way
// leaves to the next exactly what is missing.
//
// Device memory is stream-ordered nowhere here: a slot is freed when its timeline is idle.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "graph/auto_policy.h"
#include "graph/layout.h"
#include "graph/timeline.h"
#include "keel/base/deadline.h"
#include "keel/graph/program.h"
#include "keel/graph/replay_report.h"
#include "keel/hal/graph.h"
#include "keel/hal/memory.h"
#include "keel/memory/event_pool.h"
#include "keel/memory/process_memory.h"

namespace keel::graph {

// What the slots of an executable share. Outlives them.
struct SlotContext {
  const Program& program;
  const Layout& layout;
  AutoPolicy& choices;
  memory::DeviceMemory& memory;
  hal::KernelHandle copy_kernel;
  hal::KernelHandle mark_kernel;
  hal::StreamHandle capture_stream;  // one thread's at a time: the executable's recording lock
  DeviceAddress pieces;  // of the copies in, then of those out, then the one that fetches the rows
  DeviceAddress arena;   // of scratch that is shared
  telemetry::TagId tag = telemetry::TagId::kNone;
  std::size_t kept_traces = 8;

  hal::Device& device() const { return *memory.device(); }
};

// Who has a slot, and for what.
struct SlotUse {
  // Under the executable's lock.
  bool leased = false;
  int held = 0;                 // outputs
  std::uint64_t caught_up = 0;  // with what was bound: a position in the executable's log
  bool fresh = true;            // knows nothing of what was bound
  // The lease's.
  std::vector<std::uint32_t> strays;  // bindings that it bound for itself alone
  ReplayReport report;
  std::uint64_t mark = 0;    // of its step; 0: none was launched
  hal::StreamHandle stream;  // that it goes to
};

class Slot {
 public:
  Slot(const SlotContext& context, std::uint32_t index);
  // Must be idle, or the device lost.
  ~Slot();
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

  // Takes its memory, and queues on the capture stream what makes it ready. What was taken when it
  // fails goes with the slot.
  Status Allocate();
  Bytes bytes() const { return Bytes(held_.load(std::memory_order_relaxed)); }
  std::uint32_t index() const { return index_; }

  // --- Bindings ----------------------------------------------------------------------------

  // Null: not bound.
  void Rebind(std::uint32_t binding, const Buffer* buffer);
  // `auto` reaches it otherwise now.
  void Reconsider(std::uint32_t binding) { MarkBinding(binding); }
  const Buffer* bound(std::uint32_t binding) const {
    return bound_[binding] ? &*bound_[binding] : nullptr;
  }
  // Of the slot's own memory; zero if it has none.
  DeviceAddress home(std::uint32_t binding) const { return homes_[binding]; }
  // Whether the step leaves the binding's bytes in the slot, and nowhere else.
  bool in_slot(std::uint32_t binding) const {
    const BindingLayout& layout = context_.layout.bindings[binding];
    return layout.policy == Policy::kInPlace || (layout.optional && !bound_[binding]);
  }

  // --- A step, in this order ---------------------------------------------------------------

  // Works off the bindings. Waits for the slot's last step if the table or a mapping must change.
  Status Apply(Deadline deadline, ReplayReport& report);
  bool recorded() const { return recorded_; }
  // All graphs, from what Apply found. With the recording lock.
  Status Record(Reason reason, ReplayReport& report);
  bool needs_trace() const { return !marked_traces_.empty(); }
  // Rewrites the commands whose addresses changed. With the recording lock if needs_trace().
  Status Patch(ReplayReport& report);
  Status Launch(hal::StreamHandle stream, ReplayReport& report);
  Status RunEagerly(hal::StreamHandle stream, ReplayReport& report);

  // The dynamic bindings whose commands had to be patched, for whoever judges that.
  std::vector<std::uint32_t>& patched_bindings() { return patched_bindings_; }

  // The next step comes after this, which was recorded on `stream`; and so does the end of the
  // slot.
  void WaitBeforeNext(memory::PooledEvent event, hal::StreamHandle stream) {
    before_next_.push_back({std::move(event), stream});
  }

  // Whether nothing on the device uses the slot's memory: its steps, and who read what it held. For
  // who has the lease, or the lock that leases are given under.
  bool Idle();
  Status WaitIdle(Deadline deadline);

  Timeline& timeline() { return timeline_; }
  const Timeline& timeline() const { return timeline_; }

  SlotUse use;

 private:
  // Physical memory of the caller's under the slot's address.
  struct Window {
    hal::AddressRange range;
    hal::Mapping mapping;
    std::shared_ptr<const hal::PhysicalMemory> memory;
    std::uint64_t generation = 0;
  };
  // A traced command, captured for some addresses.
  struct Trace {
    std::vector<std::uint64_t> key;
    hal::Graph graph;
  };
  // Of one stretch.
  struct Recording {
    hal::Graph graph;
    hal::GraphExec exec;
    std::vector<hal::NodeHandle> nodes;  // of its commands, in their order
  };
  // Somebody who read what the slot held.
  struct Reader {
    memory::PooledEvent event;
    hal::StreamHandle stream;
  };
  // Where a command was recorded.
  struct Recorded {
    hal::ExecHandle exec;
    hal::NodeHandle node;
  };

  bool needs_buffer(std::uint32_t binding) const;
  void MarkBinding(std::uint32_t binding);
  Status ApplyOne(std::uint32_t binding, Deadline deadline, ReplayReport& report);
  Status NeedHome(std::uint32_t binding);
  Status NeedIdle(Deadline deadline, Reason reason, ReplayReport& report);
  Status Remap(std::uint32_t binding, const Buffer& buffer, Deadline deadline,
               ReplayReport& report);
  // The commands that use the binding work at this address from now on.
  void Aim(std::uint32_t binding, DeviceAddress address, bool trace_again);
  bool SetRow(std::uint32_t row, const CopyRow& value);
  std::vector<std::uint64_t> TraceKey(std::uint32_t command) const;
  Result<hal::GraphHandle> FindOrTrace(std::uint32_t command, Reason reason, ReplayReport& report);
  // One that the command's function made.
  Result<hal::GraphHandle> TakeGraph(const command::Traced& traced, Reason reason,
                                     ReplayReport& report);
  Result<Recording> RecordStretch(std::size_t stretch, Reason reason, ReplayReport& report);
  Recorded At(std::uint32_t command) const;
  hal::KernelLaunch CopyLaunch(bool in, std::array<hal::KernelArg, 3>& arguments) const;
  hal::KernelLaunch FetchLaunch(std::array<hal::KernelArg, 3>& arguments) const;
  DeviceAddress rows_address() const;  // in the host's memory
  hal::KernelLaunch MarkLaunch(std::array<hal::KernelArg, 2>& arguments) const;
  Status QueueWaits(hal::StreamHandle stream);

  const SlotContext& context_;
  const std::uint32_t index_;
  Timeline timeline_;

  // Memory.
  DeviceAddress block_;    // homes, then the control block
  DeviceAddress control_;  // the count of the marks; 16 bytes on, the row that fetches the rows
  DeviceAddress near_;     // where they are fetched to
  void* pinned_ = nullptr;
  DeviceAddress pinned_address_;
  CopyRow* rows_ = nullptr;
  std::vector<DeviceAddress> homes_;
  std::vector<DeviceAddress> late_homes_;  // of `auto`, allocated when first copied
  std::vector<std::unique_ptr<Window>> windows_;
  std::atomic<std::uint64_t> held_{0};  // bytes; statistics read it

  // What the commands work with, and what the caller has bound.
  std::vector<DeviceAddress> addresses_;
  std::vector<std::uint64_t> generations_;
  std::vector<std::optional<Buffer>> bound_;
  std::uint32_t missing_ = 0;
  Bytes copied_in_;
  Bytes copied_out_;

  // Work to do.
  std::vector<std::uint32_t> marked_bindings_;
  std::vector<bool> binding_marked_;
  std::vector<std::uint32_t> marked_commands_;
  std::vector<bool> command_marked_;
  std::vector<std::uint32_t> marked_traces_;
  std::vector<Reason> trace_reasons_;  // by command, of those in marked_traces_
  std::vector<Reader> before_next_;
  std::vector<std::uint32_t> patched_bindings_;

  bool recorded_ = false;
  std::vector<Recording> recordings_;      // by stretch; empty for an eager one
  std::vector<std::uint32_t> stretch_of_;  // by command
  std::vector<std::list<Trace>> traces_;   // by command, most recent first
  std::vector<hal::KernelArg> arguments_;  // room for one command's
};

}  // namespace keel::graph
