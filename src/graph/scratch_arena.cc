#include "keel/graph/scratch_arena.h"

#include <chrono>
#include <utility>

#include "keel/base/log.h"
#include "keel/telemetry/tags.h"

namespace keel::graph {
namespace {

constexpr std::chrono::seconds kPatience{60};

}  // namespace

Result<std::shared_ptr<ScratchArena>> ScratchArena::Create(
    std::shared_ptr<memory::DeviceMemory> memory, Bytes size) {
  if (memory == nullptr) return InvalidArgument("a scratch arena needs a device's memory");
  if (size.empty()) return InvalidArgument("a scratch arena of no bytes");
  KEEL_ASSIGN(hal::Stream stream, hal::Stream::Create(memory->device()));
  std::shared_ptr<ScratchArena> arena(new ScratchArena(std::move(memory), std::move(stream)));
  KEEL_ASSIGN(arena->address_,
              arena->memory_->allocator().Allocate(size, arena->stream_.get(),
                                                   {.tag = telemetry::InternTag("graph:scratch")}));
  arena->size_ = size;
  return arena;
}

ScratchArena::~ScratchArena() {
  if (!address_) return;
  hal::Device& device = *memory_->device();
  const MutexLock lock(mutex_);
  Status status;
  if (last_) status = device.SynchronizeStream(last_, Deadline::After(kPatience));
  // Under work that does not end, the memory is lost to others rather than shared with them.
  if (status.ok()) status = memory_->allocator().Free(address_);
  if (status.ok()) status = memory_->allocator().ForgetStream(stream_.get());
  // On a lost device, and in a forked child, there is nothing to free.
  if (!status.ok() && device.Health().ok()) {
    Log(LogLevel::kWarn, "a scratch arena could not be freed: " + status.ToString());
  }
}

Status ScratchArena::InTurn(hal::StreamHandle stream, const std::function<Status()>& queue_step) {
  const MutexLock lock(mutex_);
  if (last_ && last_ != stream) {
    KEEL_ASSIGN(const memory::PooledEvent event, memory_->events().Acquire());
    KEEL_TRY(event.Record(last_));
    KEEL_TRY(memory_->device()->WaitEvent(stream, event.get()));
  }
  // Whether or not all of the step could be queued, some of it may be.
  last_ = stream;
  return queue_step();
}

}  // namespace keel::graph
