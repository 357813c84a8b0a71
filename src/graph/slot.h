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
#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "graph/aliased_block.h"
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
  hal::KernelHandle fetch_kernel;
  hal::KernelHandle copy_in_kernel;  // of rows in a table, or by value
  hal::KernelHandle copy_out_kernel;
  hal::KernelHandle mark_kernel;
  hal::StreamHandle capture_stream;  // one thread's at a time: the executable's recording lock
  // What memory is allocated on. Never captured: whoever looks for memory may put an event there.
  hal::StreamHandle memory_stream;
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
  bool warmed_up = false;       // the lease's step is queued, eagerly
  bool recording = false;       // for steps to come, by another's lease
  int held = 0;                 // outputs
  std::uint64_t caught_up = 0;  // with what was bound: a position in the executable's log
  bool fresh = true;            // knows nothing of what was bound
  bool taken() const { return leased || recording; }
  // The lease's.
  ReplayReport report;
  std::uint64_t mark = 0;                       // of its step; 0: none was launched
  hal::StreamHandle stream;                     // that it goes to
  std::chrono::steady_clock::time_point asked;  // the device, whether the step is done
  // How often a binding was looked at: for tests, because nothing else shows a look in vain.
  std::uint64_t looks = 0;
};

class Slot {
 public:
  Slot(const SlotContext& context, std::uint32_t index);
  // Must be idle, or the device lost.
  ~Slot();
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

  // Takes its memory, and queues on the memory's stream what makes it ready. What was taken when it
  // fails goes with the slot.
  Status Allocate(Deadline deadline);
  Bytes bytes() const { return Bytes(held_.load(std::memory_order_relaxed)); }
  std::uint32_t index() const { return index_; }

  // --- Bindings ----------------------------------------------------------------------------

  // A lease begins: what the last one bound for its own step is bound by default again, unless this
  // one binds it too.
  void BeginLease();
  // For every step that does not say otherwise. Null: not bound.
  void SetDefault(std::uint32_t binding, const Buffer* buffer);
  // For the lease's own step.
  void BindStep(std::uint32_t binding, const Buffer& buffer) {
    ++use.looks;
    if (bound_[binding].origin != Origin::kStep) {
      bound_[binding].origin = Origin::kStep;
      strays_.push_back(binding);
    }
    if (!Moves(binding, buffer)) Rebind(binding, &buffer);
  }
  // All is bound that will be.
  void EndBinding() {
    if (!stale_.empty()) RestoreDefaults();
  }
  // `auto` reaches it otherwise now.
  void Reconsider(std::uint32_t binding) { MarkBinding(binding); }
  const Buffer* bound(std::uint32_t binding) const {
    return bound_[binding].has ? &bound_[binding].buffer : nullptr;
  }
  // Of the slot's own memory; zero if it has none.
  DeviceAddress home(std::uint32_t binding) const { return homes_[binding]; }
  // Where what the step left in the slot is read: there, or through the alias.
  DeviceAddress read_at(std::uint32_t binding) const {
    const BindingLayout& layout = context_.layout.bindings[binding];
    return layout.aliased ? aliased_.alias() + layout.offset : homes_[binding];
  }
  // Whether the step leaves the binding's bytes in the slot, and nowhere else.
  bool in_slot(std::uint32_t binding) const {
    const BindingLayout& layout = context_.layout.bindings[binding];
    return layout.policy == Policy::kInPlace || (layout.optional && !bound_[binding].has);
  }

  // --- A step, in this order ---------------------------------------------------------------

  // Works off the bindings. Waits for the slot's last step if a table or a mapping must change.
  Status Apply(Deadline deadline, ReplayReport& report);
  // Likewise, but what the last step is in the way of is left to the next Apply: for a recording,
  // which needs addresses and neither rows nor mappings.
  Status ApplyWithoutWaiting(ReplayReport& report);
  bool recorded() const { return recorded_; }
  // All graphs, from what Apply found. With the recording lock.
  Status Record(Reason reason, ReplayReport& report);
  bool needs_trace() { return !Now().marked_traces.empty(); }
  // Rewrites the commands whose addresses changed, and the rows where they are values. With the
  // recording lock if needs_trace().
  Status Patch(ReplayReport& report);
  Status Launch(hal::StreamHandle stream, ReplayReport& report);
  Status RunEagerly(hal::StreamHandle stream, ReplayReport& report);

  // The dynamic bindings whose commands had to be patched, and those that moved without that: whose
  // rows were rewritten, or other memory mapped. For whoever judges that.
  std::vector<std::uint32_t>& patched_bindings() { return patched_bindings_; }
  std::vector<std::uint32_t>& rebound_bindings() { return rebound_bindings_; }

  // The next step comes after this, which was recorded on `stream`; and so does the end of the
  // slot. No event: the stream was being captured, and is asked itself when that has ended.
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
  // Physical memory of the caller's under an address of the slot's.
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
  // Of one stretch. Nothing, if it is eager or has no nodes.
  struct Recording {
    hal::Graph graph;
    hal::GraphExec exec;
    std::vector<hal::NodeHandle> nodes;  // of its commands, in their order
    hal::NodeHandle copy_in;             // what begins the first one with copies
  };
  // A step as it was recorded, and the commands whose addresses changed since.
  struct Take {
    std::vector<Recording> recordings;  // by stretch
    std::vector<std::uint32_t> marked_commands;
    std::vector<std::uint32_t> marked_traces;
    std::vector<std::optional<Reason>> command_marked;  // why
  };
  // What working off the bindings of a step shares.
  struct Applying {
    Deadline deadline;
    ReplayReport& report;
  };
  // Somebody who read what the slot held.
  struct Reader {
    memory::PooledEvent event;  // none: see WaitBeforeNext
    hal::StreamHandle stream;
  };
  // Who said where a binding's bytes are.
  enum class Origin : std::uint8_t {
    kDefault,
    kStep,   // the lease, for its own step
    kStale,  // a lease before it
  };
  // What was bound, and by whom.
  struct Bound {
    Buffer buffer;
    bool has = false;
    bool marked = false;  // to be worked off
    bool copied = false;  // its rows are what `buffer` says, unless it is marked
    Origin origin = Origin::kDefault;
  };
  // What is at `control_`.
  struct Control {
    std::array<std::uint64_t, Layout::kMostMarks> counts{};  // of the marks
    CopyRow fetch;                                           // the row that fetches the rows
  };
  static_assert(sizeof(Control) <= Layout::kAlignment.count());
  // Where a command was recorded.
  struct Recorded {
    hal::ExecHandle exec;
    hal::NodeHandle node;
  };

  // Null: not bound.
  void Rebind(std::uint32_t binding, const Buffer* buffer);
  // What most steps do: true if a binding that is copied is elsewhere now, and its rows could be
  // rewritten at once.
  bool Moves(std::uint32_t binding, const Buffer& buffer);
  void RestoreDefaults();
  void MarkBinding(std::uint32_t binding) {
    if (bound_[binding].marked) return;
    bound_[binding].marked = true;
    marked_bindings_.push_back(binding);
  }
  Status NotBound() const;
  Status ApplyOne(std::uint32_t binding, Applying& applying);
  Status ApplyResident(std::uint32_t binding, const Buffer& buffer);
  Status NeedHome(std::uint32_t binding, Deadline deadline);
  Status NeedIdle(Applying& applying);
  // Something of a step that failed may be on the stream.
  void LostTrack(hal::StreamHandle stream) {
    timeline_.LostTrack(stream);
    idle_ = false;
  }
  // Whether the caller's memory can be mapped in the slot.
  bool CanMap(std::uint32_t binding, const Buffer& buffer) const {
    const Bytes window = context_.layout.bindings[binding].window;
    return buffer.memory != nullptr && !window.empty() && *buffer.memory &&
           buffer.memory->size() == window &&
           buffer.memory->device()->id() == context_.device().id();
  }
  Status NeedWindow(std::uint32_t binding);
  // Whether the commands find the binding in its window.
  bool in_window(std::uint32_t binding) const {
    return windows_[binding] != nullptr &&
           addresses_[binding] == windows_[binding]->range.address();
  }
  Status Remap(std::uint32_t binding, const Buffer& buffer, Applying& applying);
  // The same for `auto`, which gives up what fails.
  Status RemapDynamic(std::uint32_t binding, const Buffer& buffer, Applying& applying);
  // `auto` reaches it otherwise now: the caller's memory is let go.
  Status EndRemap(std::uint32_t binding, Applying& applying);
  // Whether the caller gave other memory than was there at the same address.
  bool OtherGeneration(std::uint32_t binding, const Buffer& buffer) const {
    // A generation that is not known says nothing.
    const std::uint64_t known = generations_[binding];
    return buffer.generation != 0 && known != 0 && known != buffer.generation;
  }
  // The commands that use the binding work at this address from now on. kReallocated: they are
  // traced again also if it is the same.
  void Aim(std::uint32_t binding, DeviceAddress address, Reason reason);
  bool SetRow(std::uint32_t row, const CopyRow& value);
  // Whether rows can be rewritten at once: what was launched does not look at them.
  bool RowsAreFree() {
    if (!context_.layout.by_value) idle_ = idle_ || timeline_.Idle();
    return context_.layout.by_value || idle_;
  }
  std::vector<std::uint64_t> TraceKey(std::uint32_t command) const;
  Result<hal::GraphHandle> FindOrTrace(std::uint32_t command, Reason reason, ReplayReport& report);
  // One that the command's function made.
  Result<hal::GraphHandle> TakeGraph(const command::Traced& traced, Reason reason,
                                     ReplayReport& report);
  Result<Recording> RecordStretch(std::size_t stretch, bool copies, Reason reason,
                                  ReplayReport& report);
  Status PatchCommands(Take& take, ReplayReport& report);
  Status PatchRows(const Take& take, ReplayReport& report);
  Status PatchTraces(Take& take, ReplayReport& report);
  Recorded At(const Take& take, std::uint32_t command) const;
  bool copies() const { return !copied_in_.empty() || !copied_out_.empty(); }
  // What the next step is launched from, as the bindings are now.
  Take& Now() { return takes_[takes_.size() == 2 && !copies() ? 1 : 0]; }
  using Arguments = std::array<hal::KernelArg, 7>;  // room for a kernel's
  // What begins a step that copies, and what ends one that does or does not: `put` takes a launch.
  template <class Put>
  Status PutBegin(Put put) const;
  template <class Put>
  Status PutEnd(bool copies, Put put) const;
  hal::KernelLaunch FetchLaunch(Arguments& arguments) const;
  hal::KernelLaunch CopyInLaunch(Arguments& arguments) const;
  hal::KernelLaunch CopyInRowsLaunch(Arguments& arguments) const;
  hal::KernelLaunch CopyOutLaunch(Arguments& arguments) const;
  hal::KernelLaunch MarkLaunch(Arguments& arguments) const;
  DeviceAddress rows_address() const;  // in the host's memory
  Status QueueWaits(hal::StreamHandle stream);
  // Gives a reader without an event one, if its stream is not being captured any more.
  Status NeedEvent(Reader& reader);

  const SlotContext& context_;
  const std::uint32_t index_;
  Timeline timeline_;

  // Memory.
  DeviceAddress block_;   // homes, then the control block
  AliasedBlock aliased_;  // homes that are mapped twice
  DeviceAddress control_;
  DeviceAddress near_;  // where they are fetched to
  void* pinned_ = nullptr;
  DeviceAddress pinned_address_;
  std::unique_ptr<CopyRows> row_values_;  // where they are values
  CopyRow* rows_ = nullptr;               // these, or the table in the pinned memory
  std::vector<DeviceAddress> homes_;
  std::vector<DeviceAddress> late_homes_;  // of `auto`, allocated when first copied
  std::vector<std::unique_ptr<Window>> windows_;
  std::atomic<std::uint64_t> held_{0};  // bytes; statistics read it

  // What the commands work with, and what the caller has bound.
  std::vector<DeviceAddress> addresses_;
  std::vector<std::uint64_t> generations_;
  std::vector<Bound> bound_;
  std::vector<std::optional<Buffer>> defaults_;
  std::vector<std::uint32_t> strays_;  // those of the lease's own
  std::vector<std::uint32_t> stale_;   // those of the lease before it, and perhaps its own too
  bool idle_ = false;                  // the slot's last step is known to have ended
  std::uint32_t missing_ = 0;
  Bytes copied_in_;
  Bytes copied_out_;

  // Work to do.
  bool rows_changed_ = false;  // by value, since they were last given to the graph
  std::vector<std::uint32_t> marked_bindings_;
  std::vector<Reason> trace_reasons_;  // by command, of those that are marked
  std::vector<Reader> before_next_;
  std::vector<std::uint32_t> patched_bindings_;
  std::vector<std::uint32_t> rebound_bindings_;

  bool recorded_ = false;
  // With the copies; and without, where a step may have none.
  std::vector<Take> takes_;
  std::vector<std::uint32_t> stretch_of_;  // by command
  std::vector<std::list<Trace>> traces_;   // by command, most recent first
  std::vector<hal::KernelArg> arguments_;  // room for one command's
};

}  // namespace keel::graph
