// EventPool: the events of one device, reused.
//
// Who orders memory by streams needs an event for every free, and asking the device for one each
// time costs a call and, at worst, a wait. The pool keeps events that were given back, up to
// `max_idle`; more are destroyed. When one is idle, Acquire makes no driver call.
//
// A PooledEvent is an owner: it gives its event back when it goes, whatever the event still stands
// for. The next owner records it anew, so whoever must know that the old work is done keeps the
// PooledEvent until then. Pool and events keep the device open; events may outlive the pool.
//
// After the device is lost Acquire returns kDeviceLost and what is idle is dropped. In a forked
// child it returns kFailedPrecondition, and giving back does nothing.
//
// Thread-safe; a PooledEvent itself is one thread's at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "keel/base/deadline.h"
#include "keel/base/export.h"
#include "keel/base/result.h"
#include "keel/hal/device.h"

namespace keel::memory {

namespace internal {
class EventPoolState;
}  // namespace internal

class KEEL_EXPORT PooledEvent {
 public:
  PooledEvent() = default;
  PooledEvent(PooledEvent&& other) noexcept
      : pool_(std::move(other.pool_)), event_(std::exchange(other.event_, {})) {}
  PooledEvent& operator=(PooledEvent&& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(event_, other.event_);
    return *this;
  }
  ~PooledEvent() {
    if (event_) GiveBack();
  }

  explicit operator bool() const { return static_cast<bool>(event_); }
  hal::EventHandle get() const { return event_; }

  // As the device's primitives; kInvalidArgument for an owner of nothing.
  Status Record(hal::StreamHandle stream) const;
  Result<hal::Completion> Query() const;
  Status Synchronize(Deadline deadline) const;

 private:
  friend class EventPool;
  PooledEvent(std::shared_ptr<internal::EventPoolState> pool, hal::EventHandle event)
      : pool_(std::move(pool)), event_(event) {}
  void GiveBack() noexcept;

  std::shared_ptr<internal::EventPoolState> pool_;
  hal::EventHandle event_;
};

struct EventPoolOptions {
  std::size_t max_idle = 1024;
  hal::EventOptions event{};
};

class KEEL_EXPORT EventPool {
 public:
  struct Stats {
    std::size_t idle = 0;
    std::size_t in_use = 0;
    std::uint64_t created = 0;
    std::uint64_t reused = 0;
  };

  explicit EventPool(std::shared_ptr<hal::Device> device, const EventPoolOptions& options = {});
  ~EventPool();
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;

  Result<PooledEvent> Acquire();
  // Destroys idle events until at most `keep` are left. The first error; an event that could not be
  // destroyed is on the device's retry list.
  Status Trim(std::size_t keep = 0);
  Stats stats() const;

 private:
  std::shared_ptr<internal::EventPoolState> state_;
};

}  // namespace keel::memory
