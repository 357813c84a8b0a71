// DeviceAllocator: the memory of one device, handed out and taken back in the order of streams.
//
// Stream-ordered. A block belongs to the stream that it was allocated for. Freed, it can be handed
// out again for that stream at once, because what the stream does with it next comes after what it
// did before; for other streams only when that work is known to be done. Another stream that works
// with the block is named by RecordUse: then the block is kept until that work is done too.
//
// Three tiers (docs/memory.md). A cache of the calling thread answers small requests of a size that
// was freed before, without a lock; an arena for each stream, with an index of its holes, answers
// the rest; a source of segments gets memory from the device when no hole fits. Nothing waits for
// the device unless the alternative is failure.
//
// Any thread may call anything, and free what another allocated. Addresses may be used by the
// device until Free returns on the stream, as ordered there. Streams must outlive the memory that
// was allocated or recorded for them; tell ForgetStream before one goes.
//
// When memory is short a request goes through these steps, and fails with kResourceExhausted only
// after the last: blocks whose recorded work is done; what threads keep; free memory elsewhere; new
// memory; waiting for work that holds freed memory; the callbacks; giving all that is free back to
// the device; a hole in the memory of another stream. The last three again, as long as other
// threads free something meanwhile. The message says what was asked, what is held, what is free and
// in what pieces. A failed request changes no live block.
//
// In debug mode (key `debug`; docs/memory.md, "Finding memory errors") writes outside of a block
// and after its free are found, and every wrong call names the block that it is about: its tag,
// where it was allocated and where it was freed. A finding is in the log, in Findings(), and
// returned as kOutOfRange by the call that made it, if that is Free, Trim or CheckMemory, which has
// done its work all the same. Calls then wait for the block's stream; work on other streams must
// come after the allocation there, as always.
//
// After the device is lost, what needs the driver returns kDeviceLost; freeing still works. In a
// forked child everything returns kFailedPrecondition.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "keel/base/bytes.h"
#include "keel/base/deadline.h"
#include "keel/base/export.h"
#include "keel/base/result.h"
#include "keel/hal/device.h"
#include "keel/memory/allocator_config.h"
#include "keel/memory/memory_snapshot.h"
#include "keel/telemetry/event_log.h"
#include "keel/telemetry/memory_stats.h"
#include "keel/telemetry/tags.h"

namespace keel::memory {

class AllocatorCore;
class WholeMemory;

// A pool of its own, for the memory of recorded graphs; 0 is everybody's.
using PoolId = std::uint64_t;

struct AllocationOptions {
  Bytes alignment{};  // a power of two; zero: 512 bytes
  // kNone: the calling thread's (telemetry::ScopedTag).
  telemetry::TagId tag = telemetry::TagId::kNone;
  // Where memory is short: until when streams are waited for, at most a minute. If some are not
  // done by then, and nothing else helped, it is kDeadlineExceeded, and after the minute
  // kResourceExhausted.
  Deadline deadline = Deadline::Never();
};

struct AllocationInfo {
  DeviceAddress address;  // its first byte
  Bytes size;             // rounded
  Bytes requested;
  hal::StreamHandle stream;
  telemetry::TagId tag = telemetry::TagId::kNone;
  PoolId pool = 0;
};

// A live block of a pool, as PoolBlocks found it.
struct PoolBlock {
  DeviceAddress address;
  Bytes size;  // rounded
  Bytes requested;
  telemetry::TagId tag = telemetry::TagId::kNone;
};

// What the debug mode found so far.
struct DebugFindings {
  std::uint64_t found = 0;           // errors of the program
  std::vector<std::string> reports;  // the first 100 of them, oldest first
  // How often a block was not filled, or not compared, because its stream was being captured, the
  // device was lost, or the driver refused.
  std::uint64_t unchecked = 0;
  // Freed blocks that are kept back, to see whether somebody still writes to them.
  std::uint64_t kept_blocks = 0;
  Bytes kept;
};

struct DeviceAllocatorOptions {
  AllocatorConfig config;
  // Devices that shall read and write this one's memory, as far as they can.
  std::vector<std::shared_ptr<hal::Device>> peers;
  // Where events go; null: EventLog::Global().
  telemetry::EventLog* log = nullptr;
  // The clock that upkeep is measured with; empty: the steady one.
  std::function<std::int64_t()> now_ns;
};

class KEEL_EXPORT DeviceAllocator {
 public:
  // Takes no memory yet.
  static Result<std::unique_ptr<DeviceAllocator>> Create(std::shared_ptr<hal::Device> device,
                                                         DeviceAllocatorOptions options = {});
  // Gives everything back, live blocks too, after waiting for the streams that it knows.
  ~DeviceAllocator();
  DeviceAllocator(const DeviceAllocator&) = delete;
  DeviceAllocator& operator=(const DeviceAllocator&) = delete;

  const std::shared_ptr<hal::Device>& device() const;
  const AllocatorConfig& config() const;

  // Zero bytes have the address 0, which may be freed.
  Result<DeviceAddress> Allocate(Bytes size, hal::StreamHandle stream,
                                 const AllocationOptions& options = {});
  // kInvalidArgument: no live block begins there (never allocated, or freed before). With a size:
  // it must be the one that was asked for. Of two threads that free the same block at the same
  // moment one gets this; but for small blocks (1 MiB and less) only in debug mode, because seeing
  // it costs the common free too much.
  Status Free(DeviceAddress address);
  Status Free(DeviceAddress address, Bytes size);
  // Work that is on `stream` now, or comes there before Free, uses the block. Nothing to do for the
  // address 0.
  Status RecordUse(DeviceAddress address, hal::StreamHandle stream);
  // The live block that has this byte. Walks: for messages and tools.
  Result<AllocationInfo> Find(DeviceAddress address);
  // The live block that begins there, which nobody may be freeing. A lookup, but in debug mode.
  std::optional<AllocationInfo> FindBlock(DeviceAddress address);
  // The stream will be destroyed. Waits for it; what it freed may then be used by others. Its live
  // blocks stay, and are freed as if on a stream that is idle. A new stream may have its handle.
  Status ForgetStream(hal::StreamHandle stream);

  // Gives free memory back to the device, until at most `target` is held. Waits for work that may
  // still touch it.
  Status Trim(Bytes target);
  Status EmptyCache() { return Trim(Bytes(0)); }
  // Lowering the limit disturbs no live block; what is free is given back first when needed.
  void SetLimit(Bytes limit);
  // Of the device's memory; kInvalidArgument outside [0, 1]. Zero: what is held is all there is.
  Status SetFraction(double fraction);
  Bytes limit() const;
  // What Stats() says is reserved and allocated now, without what it costs: no walk.
  Bytes reserved() const;
  Bytes allocated();

  // Called, in order, when a request would fail: with its size. Whatever it frees is tried before
  // the failure. It may call this allocator, except from several threads that wait for each other.
  using OutOfMemoryCallback = std::function<void(Bytes size)>;
  std::uint64_t AddOutOfMemoryCallback(OutOfMemoryCallback callback);
  void RemoveOutOfMemoryCallback(std::uint64_t id);

  // Memory for a graph that is being recorded: from Begin to End, requests for streams that
  // `filter` accepts come from the pool; of several, from the one that was begun last. What is
  // freed there is reused there only, and stays until Release, because the graph uses these
  // addresses at every replay. Safe in every capture mode.
  PoolId CreatePool();
  Status BeginPool(PoolId pool, std::function<bool(hal::StreamHandle)> filter);
  Status EndPool(PoolId pool);
  // The graph is gone and its last run is done: what is free in the pool is as everybody's from now
  // on.
  Status ReleasePool(PoolId pool);

  // The state of a pool, for graphs that are recorded one after the other into the same memory: the
  // blocks that are live there now, by address. Both walk the pool, and return kUnimplemented in
  // debug mode and with backend:passthrough.
  Result<std::vector<PoolBlock>> PoolBlocks(PoolId pool);
  // Makes the pool's live blocks those that PoolBlocks returned at some time since its making:
  // others are freed, and those that were freed are allocated again, at their addresses and with
  // whatever is there. A block that is the same then and now is left alone. Returns what was live
  // before.
  //
  // Blocks that leave while streams were recorded for them, and freed ones that such streams keep,
  // are waited for. Nobody else may use the pool meanwhile. On failure nothing has changed:
  // kInvalidArgument: there is no such pool, or blocks are not in its memory; kFailedPrecondition:
  // a stream that was to be waited for is being captured.
  Result<std::vector<DeviceAddress>> RestorePool(PoolId pool, std::span<const PoolBlock> blocks);

  // The pages below stay where they are, also when free, until Unpin: somebody has registered them
  // elsewhere (a network card).
  Status Pin(DeviceAddress address, Bytes size);
  Status Unpin(DeviceAddress address, Bytes size);
  // Told, before it happens, that pages that were free leave an address. Called with a lock held:
  // it must not call the allocator.
  using MoveListener = std::function<void(DeviceAddress address, Bytes size)>;
  void SetMoveListener(MoveListener listener);

  // The peer, another device of the driver, reads and writes this device's memory from now on, what
  // there is and what will be. Keeps it open. Nothing to do for one that can have no access.
  Status AddPeer(std::shared_ptr<hal::Device> peer);
  // It gets no new memory and may be closed. What it can reach it can reach still: it must not.
  void RemovePeer(hal::DeviceId peer);

  // Debug mode: looks at the guards of every live block and at every freed block that is kept,
  // after waiting for their streams. kOutOfRange: the first thing that was found.
  // kFailedPrecondition: the mode is off.
  Status CheckMemory();
  DebugFindings Findings();

  telemetry::MemoryStats Stats();
  void ResetPeakStats();
  void ResetAccumulatedStats();
  MemorySnapshot Snapshot();
  // What a failed request says about the state, for whoever wants it at another time.
  std::string Report();

  // Nothing, or what is wrong with the books. For tests. Check adds up, and must be alone:
  // a request that is under way has taken memory that is in no pool yet. CheckPools looks at what
  // each pool has, and holds at every moment.
  std::string Check();
  std::string CheckPools();

 private:
  friend class WholeMemory;  // whole_memory.h
  explicit DeviceAllocator(std::shared_ptr<AllocatorCore> core);
  std::shared_ptr<AllocatorCore> core_;
};

}  // namespace keel::memory
