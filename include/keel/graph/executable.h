// Executable: a program on one device, recorded into N slots and replayed for ever.
//
//   KEEL_ASSIGN(auto exec, Executable::Create(program, memory, {.slots = 2}));
//   KEEL_TRY(exec->Bind(weights, {.address = w, .size = w_size}));     // until it is bound again
//   for (...) {
//     KEEL_ASSIGN(Lease lease, exec->Acquire(stream, Deadline::After(1s)));
//     KEEL_TRY(lease.Bind(x, {.address = batch, .size = batch_size}));  // for this step
//     KEEL_TRY(lease.Launch());
//   }
//
// A slot is a set of recorded graphs, the memory that they work in, and a timeline: one unit, in
// one step at a time. With N > 1 a step can begin on one stream while another runs on a second, and
// results can be held while the next step runs.
//
// Steps of one stream run in its order, also when they use the same slot: nobody waits for the
// device unless memory has to be mapped, the slot was last used on another stream, or a table that
// its last step may be reading has to be rewritten. There is such a table only where the addresses
// of what is copied cannot go with the launch: see `copy` in docs/graphs.md. The functions of
// traced and eager commands are called for one step at a time: a step that records, and every step
// of a program with eager commands, waits for another one that does so. A steady step without eager
// commands calls none, and waits for nobody. Such waits are bounded by the deadline, do not burn a
// core, and are in the step's report.
//
// Completion is a count that the graph itself writes into pinned memory when it ends; reading it is
// no call of the driver. In the steady state a step makes one driver call: the launch. If something
// that is copied is elsewhere than in the slot's last step, there is one more. Each output that is
// held adds two when it is let go (whether its stream is being captured, and an event), and
// one to a next step on another stream.
//
// Steps. Where the program has traced commands, the first step runs eagerly, because libraries want
// to have run before they are captured; the next one records, for all slots, also for those whose
// steps run and whose outputs are held. Without traced commands the first step records. A lease
// that was taken before that and launches later records its own slot. After that nothing is
// recorded again, but for traced commands: of bindings with the policy `retrace` when they move,
// and of those with `auto` on purpose, later, when it finds that a binding which it copied stays
// where it is.
//
// Threads. Any thread may call anything of an executable; a lease and a held output are one
// thread's at a time. Streams must outlive the steps that were launched on them.
//
// Failure. A step that fails has given its slot back, and the next one repairs what it left. When
// the device is lost every lease and wait ends with kDeviceLost. In a forked child everything that
// needs the device returns kFailedPrecondition, and nothing waits. An executable that goes while
// steps run waits for them, for as long as `patience` says; what still runs then keeps its memory
// until the device's retry list finds it done (retry_list.h). Leases and held outputs keep what
// they need.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "keel/base/deadline.h"
#include "keel/base/export.h"
#include "keel/base/result.h"
#include "keel/graph/binding.h"
#include "keel/graph/primitive_costs.h"
#include "keel/graph/program.h"
#include "keel/graph/replay_report.h"
#include "keel/memory/process_memory.h"

namespace keel::graph {

class ExecutableState;
class MemoryBudget;
class ScratchArena;
class Slot;

enum class Mode : std::uint8_t {
  kGraph,  // record and replay
  kEager,  // every command on the stream, every time: the same results without any graph
};

struct ExecutableOptions {
  int slots = 2;  // 1 to 64
  Mode mode = Mode::kGraph;
  // How long the end of the executable waits for steps that run.
  std::chrono::milliseconds patience{10'000};
  // Graphs of a traced command that are kept in each slot, for as many sets of addresses.
  int kept_traces = 8;
  // Eager steps before the first recording; -1: one if the program has traced commands, else none.
  int warm_up = -1;
  // Where scratch bindings of several executables are; null: in the slots. See scratch_arena.h.
  std::shared_ptr<ScratchArena> scratch;
  // Shared by executables that together may hold so much; null: as much as there is. See
  // memory_budget.h.
  std::shared_ptr<MemoryBudget> budget;
  // Outputs that stay in the slots are read at another address than they are written at: the same
  // memory, mapped a second time and read-only, so that whoever holds one cannot spoil it. Costs no
  // copy and no call in a step, and memory of each slot in whole handles (2 MiB on most devices).
  // Only for the policy in-place. Peers read it too, those that the allocator has when the first
  // step makes the slots. kUnimplemented where the device has no virtual memory.
  bool alias_outputs = false;
  // What `auto` reckons with; nothing: measured on the device, once per process. See Create.
  std::optional<PrimitiveCosts> costs;
};

// An output that was made in the slot's own memory, and stays as it is until this is gone: the slot
// takes no step meanwhile. Move-only; outlives the lease and the executable.
class KEEL_EXPORT HeldOutput {
 public:
  HeldOutput() = default;
  HeldOutput(HeldOutput&& other) noexcept;
  HeldOutput& operator=(HeldOutput&& other) noexcept;
  ~HeldOutput();

  explicit operator bool() const { return state_ != nullptr; }
  // In the slot's own memory: to be read, not written. With ExecutableOptions::alias_outputs it is
  // a second address of it, where a write is a fault.
  DeviceAddress address() const { return address_; }
  Bytes size() const { return size_; }
  // Another stream than the step's reads it: the slot's next step comes after what that stream, and
  // the step's own, have queued when this output is let go. Neither has to live longer than
  // that, unless it is being captured then: such a stream lives until the slot's next step.
  Status RecordUse(hal::StreamHandle stream);
  // Lets go, whatever it returns; a destructor and an assignment do so too, and say in the log what
  // went wrong. OK for one that holds nothing. Also while one of those streams is being captured,
  // and without becoming a part of that; a step on another stream then fails with
  // kFailedPrecondition until the capture has ended.
  Status Close();

 private:
  friend class Lease;
  // For those who can tell nobody: what went wrong is in the log.
  void CloseOrWarn() noexcept;
  std::shared_ptr<ExecutableState> state_;
  Slot* slot_ = nullptr;
  DeviceAddress address_;
  Bytes size_;
  std::vector<hal::StreamHandle> readers_;
};

// One step, from choosing a slot to having launched it. Move-only; gives the slot back when it
// goes, whatever happened.
class KEEL_EXPORT Lease {
 public:
  Lease() = default;
  Lease(Lease&& other) noexcept;
  Lease& operator=(Lease&& other) noexcept;
  ~Lease();

  explicit operator bool() const { return state_ != nullptr; }
  std::uint32_t slot() const;

  // The slot's own memory of a binding that is worked on in place, or of scratch: to be written and
  // read by work on the lease's stream, or ordered with it. kFailedPrecondition for a binding that
  // has none.
  Result<DeviceAddress> address(BindingId binding) const;
  // For this step, instead of what Executable::Bind said.
  Status Bind(BindingId binding, const Buffer& buffer);
  // Queues the step on the stream, once; when it fails it may be tried again. kFailedPrecondition
  // names a binding that is not bound, and one that was promised not to move and did. `deadline`
  // bounds waiting for the slot's last step, and for another step that records, calls the functions
  // of commands or has the same scratch arena, where that is needed: kDeadlineExceeded, and nothing
  // was launched. It does not bound the functions that this step calls.
  //
  // A stream that is being captured takes no step: kFailedPrecondition, and nothing was queued. The
  // capture stays as it is where the step warms up, records or runs without graphs, and in a
  // program with eager commands. Other steps do not ask, because that would be a second call of the
  // driver: their launch is refused by it, which breaks the capture.
  Status Launch(Deadline deadline = Deadline::Never());
  // Of what Launch did, also when it failed.
  const ReplayReport& report() const;
  // After Launch: keeps an output of the policy in-place. kFailedPrecondition: it has another.
  Result<HeldOutput> Hold(BindingId binding);

  // Whether the step that was launched has ended, also with its device: Wait says which. Asks the
  // device now and then while it has not, because a loss that nobody has seen shows only then.
  bool done() const;
  Status Wait(Deadline deadline);

 private:
  friend class Executable;
  friend struct LeaseTestPeer;  // how much the step looked at
  void Release() noexcept;
  std::shared_ptr<ExecutableState> state_;
  Slot* slot_ = nullptr;
};

class KEEL_EXPORT Executable {
 public:
  // Takes memory with the first step. kInvalidArgument names what is wrong with the options;
  // kUnimplemented what the device lacks for a policy.
  //
  // The first with bindings of the policy `auto`, and without costs in its options, measures the
  // device: mostly for a millisecond, but it waits for what it measures, and for others who measure
  // the same device; not longer than 3 seconds in all, if the driver itself returns. A device that
  // is not ready by then hangs or is busy: `auto` reckons with the defaults of PrimitiveCosts, the
  // log says so, and the next Create measures again.
  static Result<std::unique_ptr<Executable>> Create(std::shared_ptr<const Program> program,
                                                    std::shared_ptr<memory::DeviceMemory> memory,
                                                    ExecutableOptions options = {});
  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  const Program& program() const;
  const std::shared_ptr<memory::DeviceMemory>& memory() const;

  // From the next Acquire on, for every step that does not say otherwise. Costs the same however
  // many bindings there are, and so does a step: only what was bound anew is looked at.
  // kInvalidArgument: too small, no memory to remap, not aligned; kFailedPrecondition: a binding
  // that is worked on in place has no address of the caller's. Bindings that share memory (see
  // Buffer) are not looked for here, nor in a steady step, because that would be a look at all
  // others: a step that records warns of them in the log, once, if `auto` reaches one.
  Status Bind(BindingId binding, Buffer buffer);

  // A slot, for a step on this stream. Prefers one that is idle, then one that was last used on
  // this stream (both alike, where no policy ever rewrites what a running step reads); waits for
  // one of the others. The first one takes memory and waits for the device to be ready with it; if
  // that is not in time, the next one goes on with the same memory.
  // kDeadlineExceeded says what the slots are doing; kResourceExhausted: no memory for the slots,
  // of the device or of the budget.
  Result<Lease> Acquire(hal::StreamHandle stream, Deadline deadline);

  // What a binding is reached by now; kAuto never.
  Policy policy(BindingId binding) const;
  ExecutableStats stats() const;

  // Until every step that was launched is done.
  Status Synchronize(Deadline deadline);
  // Gives everything back. kDeadlineExceeded: steps still run; kFailedPrecondition: leases or
  // outputs are held. Nothing changed then, and it may be tried again. kDeviceLost: steps were
  // lost; everything is given back. A step after it takes memory and records again.
  Status Close(Deadline deadline);

 private:
  explicit Executable(std::shared_ptr<ExecutableState> state);
  std::shared_ptr<ExecutableState> state_;
};

}  // namespace keel::graph
