// Live snapshots: what allocators hold at this moment, and what they did before, as a Snapshot that
// snapshot_file.h writes, summary.h counts and replay.h runs.
//
//   KEEL_ASSIGN(const trace::Snapshot snapshot, trace::TakeProcessSnapshot());
//   KEEL_TRY(trace::WriteSnapshotFile("memory.pickle", snapshot, trace::SnapshotFormat::kPickle));
//
// A device's number is its ordinal. Times are microseconds since 1970, as PyTorch has them. Blocks
// and segments have the stack of the event that made them, where the history still has that and
// recorded stacks; without symbols a frame is a file and an offset in it ("libx.so+0x1f30"), for
// addr2line.
//
// Allocators go on meanwhile. What other threads do between the look at the segments and the end of
// the history (the event `snapshot`) may be in one and not in the other; without such threads the
// two agree exactly.
//
// Any thread. Costs a walk over all blocks, under the locks of their arenas one at a time, and a
// copy of the history.
#pragma once

#include <cstddef>
#include <span>

#include "keel/base/export.h"
#include "keel/base/result.h"
#include "keel/memory/device_allocator.h"
#include "keel/telemetry/event_log.h"
#include "keel/trace/snapshot.h"

namespace keel::trace {

struct LiveSnapshotOptions {
  // What the allocators write into; null: EventLog::Global(). Off, it has what it had.
  telemetry::EventLog* log = nullptr;
  // Of the history, the newest; the events of other devices count too.
  std::size_t events = telemetry::EventLog::kMaxCapacity;
};

// Of these allocators, and of the history of their devices. kInvalidArgument: two devices with the
// same ordinal, of different drivers: take one at a time. kFailedPrecondition in a forked child.
KEEL_EXPORT Result<Snapshot> TakeSnapshot(std::span<memory::DeviceAllocator* const> allocators,
                                          const LiveSnapshotOptions& options = {});

// Of all that memory::ProcessMemory::Global() has.
KEEL_EXPORT Result<Snapshot> TakeProcessSnapshot(const LiveSnapshotOptions& options = {});

}  // namespace keel::trace
