// DeferredBlocks: blocks that were freed while streams may still work on them.
//
// A block that streams were recorded for is freed in two steps: Defer() puts it behind an event on
// each of its streams, Collect() finds those whose events were reached. Events are shared: one for
// all blocks that are deferred together, and, with `batch` > 1, one for that many frees of a
// stream; then the event is taken with the last of them or when memory is short, so that it stands
// for more than it must, never for less.
//
// An event that could not be taken (the call failed, or the stream is capturing, where an event
// would become part of the recording) is taken later; until one was taken and reached, or the
// stream was synchronised, the blocks stay. An event that reports an error is not "not yet": the
// error is returned and another event is taken. On a lost device nothing runs any more: everything
// is done.
//
// Not thread-safe: the owner has the lock, but for Wait(). Uses of a taken block: `tag` counts the
// streams that it waits for.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "keel/base/deadline.h"
#include "keel/base/result.h"
#include "keel/hal/device.h"
#include "keel/memory/event_pool.h"
#include "memory/block_pool.h"

namespace keel::memory {

class DeferredBlocks {
 public:
  // Blocks that wait for one point of one stream.
  struct Batch {
    hal::StreamHandle stream;
    std::shared_ptr<const PooledEvent> event;  // null: not taken yet
    std::vector<Block*> blocks;
    bool reached = false;
  };

  DeferredBlocks(std::shared_ptr<hal::Device> device, std::size_t batch)
      : device_(std::move(device)), events_(device_), batch_(batch) {}

  // A stream uses the block; the same stream twice is once.
  void AddUse(Block* block, hal::StreamHandle stream);
  // The blocks are free once their streams have passed this point. Each must have a use.
  void Defer(std::span<Block* const> blocks);
  // Appends the blocks that are free now. The first error, which may go with some of them.
  Status Collect(std::vector<Block*>* done);
  // Takes the events that wait for more frees to share them.
  void Flush();

  bool empty() const { return queues_.empty(); }
  std::uint64_t record_failures() const { return record_failures_; }
  EventPool& events() { return events_; }

  // Something to wait for. It keeps what it needs, whatever happens to the queues meanwhile.
  struct Waiting {
    std::shared_ptr<Batch> batch;
    std::shared_ptr<const PooledEvent> event;
  };
  // What was deferred longest ago on a stream, if possible one that has an event. Its batch is null
  // if nothing is pending.
  Waiting Oldest() const;
  // Until it is reached; kFailedPrecondition for a stream that is capturing. To be called without
  // the owner's lock. With an OK, set the batch's `reached` under the lock and collect.
  static Status Wait(hal::Device& device, const Waiting& waiting, Deadline deadline);

 private:
  struct Queue {
    std::deque<std::shared_ptr<Batch>> batches;  // the last may be open for more blocks
    bool open = false;
  };

  // Takes the batch's event, if that is possible now.
  Status Record(Batch& batch);
  void Release(Batch& batch, std::vector<Block*>* done);
  Result<bool> Reached(Batch& batch);

  const std::shared_ptr<hal::Device> device_;
  EventPool events_;
  const std::size_t batch_;
  std::unordered_map<Block*, std::vector<hal::StreamHandle>> uses_;
  std::unordered_map<std::uint64_t, Queue> queues_;  // by stream; none is empty
  std::uint64_t record_failures_ = 0;
};

}  // namespace keel::memory
