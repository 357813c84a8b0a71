#include "keel/memory/event_pool.h"

#include <vector>

#include "base/fork.h"
#include "keel/base/mutex.h"
#include "keel/hal/event.h"

namespace keel::memory {

namespace internal {

class EventPoolState {
 public:
  EventPoolState(std::shared_ptr<hal::Device> device, const EventPoolOptions& options)
      : device_(std::move(device)), options_(options) {
    // Here, so that giving back never allocates.
    idle_.reserve(options.max_idle);
  }
  ~EventPoolState() { static_cast<void>(Trim(0)); }
  EventPoolState(const EventPoolState&) = delete;
  EventPoolState& operator=(const EventPoolState&) = delete;

  hal::Device& device() const { return *device_; }

  Result<hal::EventHandle> Acquire() KEEL_EXCLUDES(mutex_);
  void GiveBack(hal::EventHandle event) noexcept KEEL_EXCLUDES(mutex_);
  Status Trim(std::size_t keep) KEEL_EXCLUDES(mutex_);
  EventPool::Stats stats() const KEEL_EXCLUDES(mutex_);

 private:
  const std::shared_ptr<hal::Device> device_;
  const EventPoolOptions options_;
  const Home home_;
  mutable Mutex mutex_;
  std::vector<hal::EventHandle> idle_ KEEL_GUARDED_BY(mutex_);
  EventPool::Stats stats_ KEEL_GUARDED_BY(mutex_);
};

Result<hal::EventHandle> EventPoolState::Acquire() {
  // Before the lock, which in a child may be held by a thread that is not there.
  if (Status health = device_->Health(); !health.ok()) {
    if (home_.here()) static_cast<void>(Trim(0));
    return health;
  }
  {
    MutexLock lock(mutex_);
    if (!idle_.empty()) {
      const hal::EventHandle event = idle_.back();
      idle_.pop_back();
      ++stats_.reused;
      ++stats_.in_use;
      return event;
    }
  }
  KEEL_ASSIGN(const hal::EventHandle event, device_->CreateEvent(options_.event));
  MutexLock lock(mutex_);
  ++stats_.created;
  ++stats_.in_use;
  return event;
}

void EventPoolState::GiveBack(hal::EventHandle event) noexcept {
  if (!home_.here()) return;
  {
    MutexLock lock(mutex_);
    --stats_.in_use;
    if (idle_.size() < options_.max_idle) {
      idle_.push_back(event);
      return;
    }
  }
  const hal::Event destroyed(device_, event);
}

Status EventPoolState::Trim(std::size_t keep) {
  KEEL_TRY(home_.here() ? OkStatus() : device_->Health());
  Status first;
  for (;;) {
    hal::EventHandle event;
    {
      MutexLock lock(mutex_);
      if (idle_.size() <= keep) return first;
      event = idle_.back();
      idle_.pop_back();
    }
    // One that cannot be closed goes on the retry list with its owner.
    Status status = hal::Event(device_, event).Close();
    if (first.ok()) first = std::move(status);
  }
}

EventPool::Stats EventPoolState::stats() const {
  if (!home_.here()) return {};
  MutexLock lock(mutex_);
  EventPool::Stats stats = stats_;
  stats.idle = idle_.size();
  return stats;
}

}  // namespace internal

Status PooledEvent::Record(hal::StreamHandle stream) const {
  if (!*this) return InvalidArgument("this PooledEvent owns no event");
  return pool_->device().RecordEvent(event_, stream);
}

Result<hal::Completion> PooledEvent::Query() const {
  if (!*this) return InvalidArgument("this PooledEvent owns no event");
  return pool_->device().QueryEvent(event_);
}

Status PooledEvent::Synchronize(Deadline deadline) const {
  if (!*this) return InvalidArgument("this PooledEvent owns no event");
  return pool_->device().SynchronizeEvent(event_, deadline);
}

void PooledEvent::GiveBack() noexcept { pool_->GiveBack(event_); }

EventPool::EventPool(std::shared_ptr<hal::Device> device, const EventPoolOptions& options)
    : state_(MakeSharedHere<internal::EventPoolState>(std::move(device), options)) {}

EventPool::~EventPool() = default;

Result<PooledEvent> EventPool::Acquire() {
  KEEL_ASSIGN(const hal::EventHandle event, state_->Acquire());
  return PooledEvent(state_, event);
}

Status EventPool::Trim(std::size_t keep) { return state_->Trim(keep); }

EventPool::Stats EventPool::stats() const { return state_->stats(); }

}  // namespace keel::memory
