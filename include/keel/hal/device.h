// Device: the primitives of one accelerator. Everything above this layer is written against this
// class and nothing else; everything that knows a vendor is below it.
//
// What it is: an abstract class of primitives over plain handles. What it is not: an allocator, a
// scheduler, or an owner of what it hands out. Whoever creates gives back; the classes in
// stream.h, event.h, memory.h, graph.h and module.h do that by themselves.
//
// Rules that hold for every primitive unless it says otherwise:
//  - It does not throw. It returns Status or Result with a code, a message that names the bad
//    argument and, from a vendor's library, the vendor's code. A failed call changes nothing.
//  - It may be called from any thread, at any time, and does not depend on or disturb any
//    thread-local state of the vendor's library (the current device or context, its capture mode).
//  - A handle of zero, of another driver, or one that was given back is kInvalidArgument. (A real
//    driver cannot always tell; the simulated one always does.)
//  - A primitive that puts work on a stream returns when the work is queued. Only Synchronize*
//    and the pageable copies wait; plain frees, unpinning and modules may: see each.
//  - After the device is lost every primitive returns kDeviceLost with the message of the fault,
//    except info(), capabilities(), id() and the retry list.
//  - In a forked child a device of the parent returns kFailedPrecondition and does nothing, also
//    when it is destroyed; the child opens its own.
//  - From inside a HostCall every primitive returns kFailedPrecondition.
//
// Loss. A fault that happens while work runs (a kernel touches a page that is not mapped, or a
// peer's page without access) loses the device: this one only, in all its streams. What can be
// seen when the call is made (a copy to a range that is not mapped) fails at once, as
// kInvalidArgument, and harms nothing. Nothing brings a lost device back but closing it (dropping
// the last reference) and opening it again; its memory is gone. Some libraries keep the loss for
// the whole process: Driver::Open then returns kDeviceLost, and only a new process helps. What was
// running or queued elsewhere on the device when it happened ends, as a loss or, on a real device,
// perhaps as if nothing were; only then may the loss be seen.
//
// Captures. A stream that captures records commands instead of running them. Some calls are
// *unsafe* while a capture is open; they are marked below. An unsafe call from a thread whose
// capture mode (capture_mode.h) obeys an open capture is refused with kFailedPrecondition and
// invalidates that capture. In the default mode, kRelaxed, it is simply carried out and no
// capture notices. Whatever the mode, a call that contradicts the capture of its own argument
// (synchronising or querying a stream that captures, launching a graph on it, querying or
// synchronising an event that was last recorded in a capture) is refused and invalidates the
// capture it names. An event of a capture that is over stays refused (kFailedPrecondition, or
// kInvalidArgument from drivers that do not tell) until it is recorded again.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "keel/base/deadline.h"
#include "keel/base/export.h"
#include "keel/base/result.h"
#include "keel/base/unique_fd.h"
#include "keel/hal/capabilities.h"
#include "keel/hal/command.h"
#include "keel/hal/module_source.h"
#include "keel/hal/retry_list.h"
#include "keel/hal/types.h"

namespace keel::hal {

// Why an instantiated graph could not be updated. An expected outcome, not an error.
struct UpdateReport {
  bool updated = false;
  std::string reason;              // empty when updated: "topology changed", ...
  std::optional<NodeHandle> node;  // of the new graph, where one is to blame
};

// One node of a graph, as GetNodes lists it. `kind` is the index in Command.
struct NodeInfo {
  NodeHandle node;
  std::size_t kind = 0;
  std::vector<NodeHandle> dependencies;
};

class KEEL_EXPORT Device {
 public:
  Device() = default;
  virtual ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  virtual const DeviceInfo& info() const = 0;
  virtual const Capabilities& capabilities() const = 0;
  virtual DeviceId id() const = 0;
  // OK, or kDeviceLost with the message of the fault, or kFailedPrecondition in a child that was
  // forked after the device was opened, where everything is refused. Costs no driver call where the
  // loss is already known; does not look for one that is not.
  virtual Status Health() const = 0;

  // Kernels that Keel itself brings for this device (keel/hal/standard_kernels.h lists them).
  // kUnimplemented without Capabilities::kernels.
  virtual Result<ModuleSource> StandardKernels() const = 0;

  // What could not be given back yet. Not a primitive; see retry_list.h.
  RetryList& retries() { return retries_; }

  // The device inside a wrapper such as Instrumented; itself otherwise.
  virtual Device& Innermost() { return *this; }

  // --- Memory -----------------------------------------------------------------------------

  virtual Result<MemoryInfo> GetMemoryInfo() = 0;

  // Plain device memory, aligned to at least 256. Contents are undefined. `size` > 0. Unsafe in a
  // capture. kResourceExhausted: capacity.
  virtual Result<DeviceAddress> AllocatePlain(Bytes size) = 0;
  // `address` is what AllocatePlain returned. May wait for all work of the device (real drivers
  // do). Unsafe in a capture.
  virtual Status FreePlain(DeviceAddress address) = 0;

  // --- Virtual memory. Legal in every capture, and none of it waits for running work ---------

  // Physical memory, which has no address. `size` is a non-zero multiple of the minimum
  // granularity. Contents are undefined. kResourceExhausted: capacity.
  virtual Result<MemoryHandle> CreateMemory(Bytes size, const MemoryOptions& options) = 0;
  // Gives the handle back. Bytes that are still mapped, or imported elsewhere, live until the last
  // mapping is gone.
  virtual Status ReleaseMemory(MemoryHandle memory) = 0;
  // A descriptor that another process can import. The memory must have been created exportable.
  // The caller owns the descriptor; the memory lives while it is open.
  virtual Result<UniqueFd> ExportMemory(MemoryHandle memory) = 0;
  // Memory that ExportMemory, here or in another process on a device of the same kind, exported.
  // The descriptor stays the caller's. `size` must be the size it was created with (a driver that
  // cannot tell finds out at Map). The new handle is released like any other. A descriptor of
  // anything else is kInvalidArgument.
  virtual Result<MemoryHandle> ImportMemory(int descriptor, Bytes size) = 0;

  // A range of addresses with nothing behind it. `size` is a non-zero multiple of the minimum
  // granularity; `alignment` is zero or a power of two. `hint` is a wish. kResourceExhausted: no
  // room in the address space.
  virtual Result<DeviceAddress> ReserveAddress(Bytes size, Bytes alignment, DeviceAddress hint) = 0;
  // The whole reservation, as it was returned; kFailedPrecondition while anything is mapped in it.
  virtual Status FreeAddress(DeviceAddress address, Bytes size) = 0;

  // Maps memory whole at `address`: `offset` must be 0 and `size` the memory's full size, or
  // kInvalidArgument. The range must lie in one reservation (kInvalidArgument) and hold no mapping
  // (kFailedPrecondition). The same memory may be mapped at several addresses; they are then one
  // memory. Nobody has access until SetAccess. The memory may be that of another device of the
  // driver where addresses are unified.
  virtual Status Map(DeviceAddress address, Bytes size, Offset offset, MemoryHandle memory) = 0;
  // One or several adjacent whole mappings; a part of one is kInvalidArgument and changes
  // nothing. Does not wait: work that touches the range after this, or is running on it now, is
  // the caller's mistake and may lose the device. Access is lost with it.
  virtual Status Unmap(DeviceAddress address, Bytes size) = 0;
  // Sets what the listed devices may do with one or several adjacent whole mappings; devices that
  // are not listed keep what they had. kFailedPrecondition for a device that can have no access
  // (CanAccessPeer says so), and then nothing changes for any.
  virtual Status SetAccess(DeviceAddress address, Bytes size,
                           std::span<const AccessGrant> grants) = 0;
  // What `device` may do at `address`; kInvalidArgument where nothing is mapped.
  virtual Result<Access> GetAccess(DeviceAddress address, DeviceId device) = 0;

  // --- Host memory ---------------------------------------------------------------------------

  // Pinned host memory, page-aligned, usable by the host, by every device of the driver at the
  // address that GetHostAddress tells, and by asynchronous copies. `size` > 0. Unsafe in a capture.
  virtual Result<void*> AllocateHost(Bytes size, const HostOptions& options) = 0;
  // May wait for all work of the device. Unsafe in a capture.
  virtual Status FreeHost(void* pointer) = 0;
  // Pins memory that exists. The range must not overlap one that is pinned (kAlreadyExists). It
  // must be unregistered before it is unmapped or freed. Unsafe in a capture.
  virtual Status RegisterHost(void* pointer, Bytes size) = 0;
  // May wait for all work of the device. Unsafe in a capture.
  virtual Status UnregisterHost(void* pointer) = 0;
  // The address under which this device sees a byte of pinned memory (interior pointers too).
  // kInvalidArgument for memory that is not pinned.
  virtual Result<DeviceAddress> GetHostAddress(const void* pointer) = 0;

  // --- Peers: other devices of the same driver ----------------------------------------------

  // Whether this device can be given access to memory of `peer`. True for itself.
  virtual Result<bool> CanAccessPeer(DeviceId peer) = 0;
  // Lets this device use plain memory of `peer`, present and future. Idempotent.
  // kFailedPrecondition if it cannot. (Virtual memory has SetAccess.)
  virtual Status EnablePeerAccess(DeviceId peer) = 0;
  // Idempotent. Work that still uses the peer's memory is the caller's mistake.
  virtual Status DisablePeerAccess(DeviceId peer) = 0;

  // --- Streams -------------------------------------------------------------------------------

  // Commands on one stream run in order; between streams there is no order but what events, value
  // waits and synchronisation ask for. Never synchronises with the legacy default stream.
  virtual Result<StreamHandle> CreateStream(const StreamOptions& options) = 0;
  // Work that is queued still runs; the call does not wait for it. kFailedPrecondition for a
  // stream that captures and for a default stream. A borrowed stream is its owner's to destroy.
  virtual Status DestroyStream(StreamHandle stream) = 0;
  // Not an owner of anything; never destroyed.
  virtual Result<StreamHandle> GetDefaultStream(DefaultStream which) = 0;
  // Uses a stream that somebody else made with the vendor's library, by its native value. The
  // stream must belong to this device and outlive its use; using it after its owner destroyed it
  // is an error where the vendor can tell, and undefined where it cannot. Costs nothing to drop.
  virtual Result<StreamHandle> BorrowStream(std::uint64_t native) = 0;
  // Unsafe in a capture.
  virtual Result<Completion> QueryStream(StreamHandle stream) = 0;
  // Waits until everything queued so far is done, without burning a core. kDeadlineExceeded when
  // the deadline comes first; the work goes on. Unsafe in a capture.
  virtual Status SynchronizeStream(StreamHandle stream, Deadline deadline) = 0;
  // The same for all streams that this device made, those that were destroyed with work on them
  // included, and the legacy default stream (kFailedPrecondition while a capture keeps that from
  // being asked). Streams that somebody else made with the vendor's
  // library are theirs to wait for: waiting for everything breaks captures that others have open.
  virtual Status Synchronize(Deadline deadline) = 0;

  // --- Events --------------------------------------------------------------------------------

  virtual Result<EventHandle> CreateEvent(const EventOptions& options) = 0;
  // Does not wait. A stream that waits for the event still does.
  virtual Status DestroyEvent(EventHandle event) = 0;
  // The event stands for what is queued on the stream now. Recording again replaces that; who
  // already waits keeps waiting for what it was. The stream must be of the event's device.
  virtual Status RecordEvent(EventHandle event, StreamHandle stream) = 0;
  // Later work of the stream runs after what the event stands for now; a no-op for one that was
  // never recorded. The event may be of another device of the driver. In a capture this is how a
  // stream joins (fork), and how its work comes back (join); waiting there for an event that was
  // recorded outside of the capture is refused (kFailedPrecondition) and breaks the capture.
  virtual Status WaitEvent(StreamHandle stream, EventHandle event) = 0;
  // kDone for one that was never recorded. A fault is an error, never kPending. Unsafe in a
  // capture.
  virtual Result<Completion> QueryEvent(EventHandle event) = 0;
  // As SynchronizeStream. Unsafe in a capture.
  virtual Status SynchronizeEvent(EventHandle event, Deadline deadline) = 0;
  // Both were created with timing, were recorded and are done (kFailedPrecondition).
  virtual Result<double> ElapsedMilliseconds(EventHandle start, EventHandle end) = 0;

  // --- Commands ------------------------------------------------------------------------------

  // One side or both may be on another device of the driver. Ranges on devices must be mapped and
  // accessible when the call is made. Asynchronous between devices and pinned host memory. From
  // pageable memory the source was read when the call returns; to pageable memory the call
  // returns when the bytes are there (such a copy waits for the stream, and cannot be captured:
  // kFailedPrecondition). In a capture the ranges are checked when the graph runs. Zero bytes are
  // nothing to do. Ranges must not overlap.
  virtual Status EnqueueCopy(StreamHandle stream, const Copy& copy) = 0;
  // The range must be mapped and accessible when the call is made (kInvalidArgument); in a capture
  // that is seen when the graph is instantiated or runs.
  virtual Status EnqueueFill(StreamHandle stream, const Fill& fill) = 0;
  virtual Status WriteValue(StreamHandle stream, const ValueWrite& write) = 0;
  virtual Status WaitValue(StreamHandle stream, const ValueWait& wait) = 0;
  virtual Status CallHost(StreamHandle stream, const HostCall& call) = 0;

  // --- Kernels -------------------------------------------------------------------------------

  // May wait for all work of the device (real drivers do).
  virtual Result<ModuleHandle> LoadModule(const ModuleSource& source) = 0;
  // No work that uses it may be queued or running. Its kernels are gone with it. May wait as well.
  virtual Status UnloadModule(ModuleHandle module) = 0;
  // kNotFound names the kernel.
  virtual Result<KernelHandle> FindKernel(ModuleHandle module, std::string_view name) = 0;
  // The arguments' number and sizes must be those of the kernel (kInvalidArgument names the
  // argument where the driver can tell), and together no more than KernelArg::kMaxArguments
  // (kInvalidArgument). Buffers are not checked here: a bad one is a fault.
  virtual Status LaunchKernel(StreamHandle stream, const KernelLaunch& launch) = 0;

  // --- Graphs --------------------------------------------------------------------------------

  // The stream records from now on. kFailedPrecondition if it does already. The legacy default
  // stream cannot capture (kInvalidArgument).
  virtual Status BeginCapture(StreamHandle stream, CaptureMode mode) = 0;
  // Ends the capture that began on this stream, from the same thread unless it is relaxed, and
  // returns the graph. An empty one is a graph without nodes. kFailedPrecondition, and the capture
  // is over and its graph gone: it was invalidated (the message says by which call), or a stream
  // that joined was not joined back. kFailedPrecondition, and nothing changed: the stream captures
  // nothing, only joined a capture, or this is the wrong thread.
  virtual Result<GraphHandle> EndCapture(StreamHandle stream) = 0;
  virtual Result<CaptureState> GetCaptureState(StreamHandle stream) = 0;
  // The nodes that the next command on this capturing stream will depend on; directly after a
  // command, that command's node. The nodes belong to the graph that EndCapture returns.
  virtual Result<std::vector<NodeHandle>> GetCaptureFrontier(StreamHandle stream) = 0;

  virtual Result<GraphHandle> CreateGraph() = 0;
  // Instantiations of it live on.
  virtual Status DestroyGraph(GraphHandle graph) = 0;
  // `dependencies` are nodes of the same graph. Arguments are copied.
  virtual Result<NodeHandle> AddNode(GraphHandle graph, std::span<const NodeHandle> dependencies,
                                     const Command& command) = 0;
  virtual Result<std::vector<NodeInfo>> GetNodes(GraphHandle graph) = 0;

  // An empty graph is fine. The graph may be destroyed or changed afterwards. Unsafe in a capture.
  virtual Result<ExecHandle> Instantiate(GraphHandle graph) = 0;
  // Launches that are queued still run.
  virtual Status DestroyExec(ExecHandle exec) = 0;
  // Gives every node the parameters of the graph's node in the same place. Launches that are
  // queued keep the old ones. Changes nothing when it refuses.
  virtual Result<UpdateReport> UpdateExec(ExecHandle exec, GraphHandle graph) = 0;
  // `node` is a node of the graph that was instantiated; `command` is of the same kind, for a
  // kernel of the same kernel, and for a child graph one with the same nodes, as to kind and order
  // (an error, and the graph is as before). Launches that are queued keep the old parameters.
  virtual Status SetNodeParams(ExecHandle exec, NodeHandle node, const Command& command) = 0;
  // Runs the whole graph as one command of the stream. Launches of one exec do not overlap each
  // other. On a stream that captures it is refused and breaks the capture, as on real drivers; a
  // graph inside another is a ChildGraph node.
  virtual Status LaunchGraph(ExecHandle exec, StreamHandle stream) = 0;

 private:
  RetryList retries_;
};

}  // namespace keel::hal
