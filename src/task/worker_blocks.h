// WorkerBlocks: the memory of one worker that resident tensors may be in, ordered by address: what
// was allocated there, and what somebody else has and registered.
//
// A block that was lost with its worker is remembered as lost, so that its use gets an error that
// says so, until it is removed or another block takes its place.
//
// Blocks are shared with the tasks that use them: `uses` counts these. Not thread-safe: the owner
// has a lock.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "keel/base/bytes.h"
#include "keel/task/orchestrator.h"

namespace keel::task {

struct Block {
  BlockId id = 0;  // no other block of the process has it
  WorkerId worker = 0;
  DeviceAddress address;
  Bytes size;
  bool registered = false;  // somebody else's
  bool freed = false;       // Free was called; it goes with the last use
  bool lost = false;
  std::uint64_t uses = 0;

  // kUnavailable: lost. kInvalidArgument: freed. Both name the address.
  Status Usable() const;
};

// Whether it is the block that is meant, or any will do (0). kUnavailable: that one is gone, and
// another one, or none (null), is at its address.
Status CheckIs(const std::shared_ptr<Block>& block, BlockId meant, WorkerId worker,
               DeviceAddress address);

class WorkerBlocks {
 public:
  // What was there before and overlaps is forgotten: it cannot be there any more.
  std::shared_ptr<Block> Add(WorkerId worker, DeviceAddress address, Bytes size);
  // kAlreadyExists if it overlaps a block that is not lost; kInvalidArgument: empty, or it wraps.
  Result<std::shared_ptr<Block>> AddRegistered(WorkerId worker, DeviceAddress address, Bytes size);
  // The block in which [address, address + size) lies as a whole; null. Until the next change.
  const std::shared_ptr<Block>& Find(DeviceAddress address, Bytes size) const;
  // The block that begins there; null.
  std::shared_ptr<Block> FindAt(DeviceAddress address) const;
  void Remove(const Block& block);
  // All that is there now.
  void Lose();

 private:
  using Map = std::map<DeviceAddress, std::shared_ptr<Block>>;
  // The first block that ends after `address`.
  Map::const_iterator FirstAfter(DeviceAddress address) const;

  Map blocks_;
};

}  // namespace keel::task
