#include "keel/graph/scratch_arena.h"

#include <chrono>
#include <utility>

#include "base/fork.h"
#include "graph/turn.h"
#include "keel/base/log.h"
#include "keel/hal/owned_handle.h"
#include "keel/telemetry/tags.h"

namespace keel::graph {

Result<std::shared_ptr<ScratchArena>> ScratchArena::Create(
    std::shared_ptr<memory::DeviceMemory> memory, Bytes size, std::chrono::milliseconds patience) {
  if (memory == nullptr) return InvalidArgument("a scratch arena needs a device's memory");
  if (size.empty()) return InvalidArgument("a scratch arena of no bytes");
  KEEL_ASSIGN(hal::Stream stream, hal::Stream::Create(memory->device()));
  std::shared_ptr<ScratchArena> arena(
      new ScratchArena(std::move(memory), std::move(stream), patience), DeleteHere());
  KEEL_ASSIGN(arena->address_,
              arena->memory_->allocator().Allocate(size, arena->stream_.get(),
                                                   {.tag = telemetry::InternTag("graph:scratch")}));
  arena->size_ = size;
  return arena;
}

Result<memory::PooledEvent> ScratchArena::MarkLast() {
  mutex_.Lock();
  const TimedMutexUnlocker unlocker(mutex_);
  if (!last_) return memory::PooledEvent();
  KEEL_ASSIGN(const hal::CaptureState capture, memory_->device()->GetCaptureState(last_));
  if (capture != hal::CaptureState::kNone) {
    return FailedPrecondition("the stream of its last step is being captured");
  }
  KEEL_ASSIGN(memory::PooledEvent event, memory_->events().Acquire());
  KEEL_TRY(event.Record(last_));
  return event;
}

Status ScratchArena::GiveBack(memory::DeviceMemory& memory, DeviceAddress address,
                              hal::StreamHandle stream) {
  KEEL_TRY(memory.allocator().Free(address));
  return memory.allocator().ForgetStream(stream);
}

ScratchArena::~ScratchArena() {
  if (!address_) return;
  // On a lost device there is nothing to free.
  const auto warn = [this](const Status& status) {
    if (status.ok() || !memory_->device()->Health().ok()) return;
    Log(LogLevel::kWarn, "a scratch arena could not be freed: " + status.ToString());
  };
  Result<memory::PooledEvent> last = MarkLast();
  // Under work of which nothing is known, the memory is lost to others rather than shared with
  // them.
  if (!last.ok()) {
    warn(last.status());
    return;
  }
  Status status = *last ? last->Synchronize(Deadline::After(patience_)) : OkStatus();
  if (status.ok() || status.code() == StatusCode::kDeviceLost) {
    warn(GiveBack(*memory_, address_, stream_.get()));
    return;
  }
  struct Kept {
    std::shared_ptr<memory::DeviceMemory> memory;
    hal::Stream stream;
    memory::PooledEvent last;
  };
  auto kept = std::make_shared<Kept>(Kept{memory_, std::move(stream_), *std::move(last)});
  hal::internal::LeaveForRetry(*memory_->device(), status,
                               "scratch of " + keel::ToString(size_) + ", which a step still uses",
                               [kept, address = address_]() mutable -> Status {
                                 if (kept == nullptr) return OkStatus();
                                 KEEL_TRY(kept->last.Synchronize(Deadline::Now()));
                                 const auto done = std::exchange(kept, nullptr);
                                 return GiveBack(*done->memory, address, done->stream.get());
                               });
}

Status ScratchArena::InTurn(hal::StreamHandle stream, Deadline deadline, ReplayReport& report,
                            const std::function<Status()>& queue_step) {
  if (!TakeTurn(mutex_, *memory_->device(), deadline, Reason::kScratchBusy, report)) {
    KEEL_TRY(memory_->device()->Health());
    return DeadlineExceeded(
        "another step with the same scratch arena was not queued in time: give the launch more "
        "time, or the executables arenas of their own");
  }
  const TimedMutexUnlocker turn(mutex_);
  if (last_ && last_ != stream) {
    KEEL_ASSIGN(const hal::CaptureState capture, memory_->device()->GetCaptureState(last_));
    if (capture != hal::CaptureState::kNone) {
      return FailedPrecondition(
          "the stream of the scratch arena's last step is being captured: end the capture first");
    }
    KEEL_ASSIGN(const memory::PooledEvent event, memory_->events().Acquire());
    KEEL_TRY(event.Record(last_));
    KEEL_TRY(memory_->device()->WaitEvent(stream, event.get()));
  }
  // Whether or not all of the step could be queued, some of it may be.
  last_ = stream;
  return queue_step();
}

}  // namespace keel::graph
