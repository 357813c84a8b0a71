#include "task/worker_blocks.h"

#include <fmt/format.h>

#include <atomic>
#include <utility>

namespace keel::task {

Status Block::Usable() const {
  if (lost) {
    return Unavailable(fmt::format(
        "the {} at {:#x} of worker {} were lost with it; the worker was started again without them",
        ToString(size), address.value(), worker));
  }
  if (freed) {
    return InvalidArgument(fmt::format("the {} at {:#x} of worker {} were freed", ToString(size),
                                       address.value(), worker));
  }
  return OkStatus();
}

Status CheckIs(const std::shared_ptr<Block>& block, BlockId meant, WorkerId worker,
               DeviceAddress address) {
  if (meant == 0 || (block != nullptr && block->id == meant)) return OkStatus();
  return Unavailable(fmt::format("the block at {:#x} of worker {} was freed or lost{}",
                                 address.value(), worker,
                                 block == nullptr ? "" : ", and another one is there now"));
}

WorkerBlocks::Map::const_iterator WorkerBlocks::FirstAfter(DeviceAddress address) const {
  auto at = blocks_.upper_bound(address);
  if (at == blocks_.begin()) return at;
  const auto before = std::prev(at);
  return before->second->address + before->second->size > address ? before : at;
}

std::shared_ptr<Block> WorkerBlocks::Add(WorkerId worker, DeviceAddress address, Bytes size) {
  for (auto at = FirstAfter(address); at != blocks_.end() && at->first < address + size;) {
    at = blocks_.erase(at);
  }
  auto block = std::make_shared<Block>();
  static std::atomic<BlockId> last_id = 0;
  block->id = ++last_id;
  block->worker = worker;
  block->address = address;
  block->size = size;
  blocks_[address] = block;
  return block;
}

Result<std::shared_ptr<Block>> WorkerBlocks::AddRegistered(WorkerId worker, DeviceAddress address,
                                                           Bytes size) {
  if (size.empty() || !address || address + size < address) {
    return InvalidArgument(fmt::format("{} at {:#x} cannot be registered with worker {}: no memory",
                                       ToString(size), address.value(), worker));
  }
  for (auto at = FirstAfter(address); at != blocks_.end() && at->first < address + size; ++at) {
    const Block& other = *at->second;
    if (other.lost) continue;
    return AlreadyExists(fmt::format(
        "{} at {:#x} cannot be registered with worker {}: they overlap the {} at {:#x} that {}",
        ToString(size), address.value(), worker, ToString(other.size), other.address.value(),
        other.registered ? "are registered; unregister them first" : "were allocated there"));
  }
  std::shared_ptr<Block> block = Add(worker, address, size);
  block->registered = true;
  return block;
}

const std::shared_ptr<Block>& WorkerBlocks::Find(DeviceAddress address, Bytes size) const {
  static const std::shared_ptr<Block> none;
  const auto at = FirstAfter(address);
  if (at == blocks_.end() || at->first > address) return none;
  const Block& block = *at->second;
  return size <= block.size - (address - block.address) ? at->second : none;
}

std::shared_ptr<Block> WorkerBlocks::FindAt(DeviceAddress address) const {
  const auto at = blocks_.find(address);
  return at == blocks_.end() ? nullptr : at->second;
}

void WorkerBlocks::Remove(const Block& block) {
  const auto at = blocks_.find(block.address);
  if (at != blocks_.end() && at->second.get() == &block) blocks_.erase(at);
}

void WorkerBlocks::Lose() {
  for (auto& [address, block] : blocks_) block->lost = true;
}

}  // namespace keel::task
