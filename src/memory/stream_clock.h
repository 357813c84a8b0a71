// StreamClock: how far a stream has come, for those who wait for memory that it may still use.
//
// Time on a stream is cut into epochs. What is freed gets the present epoch as its date, which
// costs a load. Somebody who needs to know whether the work before a free is done ends the epoch:
// an event is recorded behind everything that the stream has by now, and when it is reached all
// earlier dates are past. So there is an event for each question, not for each free.
//
// Nothing can be asked about a stream that is being captured: marks fail with kFailedPrecondition.
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>

#include "keel/base/deadline.h"
#include "keel/base/mutex.h"
#include "keel/base/result.h"
#include "keel/hal/device.h"
#include "keel/memory/event_pool.h"

namespace keel::memory {

class StreamClock {
 public:
  StreamClock(std::shared_ptr<hal::Device> device, EventPool& events, hal::StreamHandle stream)
      : device_(std::move(device)), events_(events), stream_(stream) {}
  StreamClock(const StreamClock&) = delete;
  StreamClock& operator=(const StreamClock&) = delete;

  hal::StreamHandle stream() const { return stream_; }

  // The date of what is freed now.
  std::uint64_t now() const { return now_.load(std::memory_order_relaxed); }

  // Makes sure that `epoch` has an end to wait for. No driver call if it has one already.
  Status Mark(std::uint64_t epoch) KEEL_EXCLUDES(mutex_);
  // Whether all work before the end of `epoch` is done. An epoch without a mark is not.
  // kDeviceLost, and every other error of the event, is an error and not "not yet". An event that
  // cannot be asked is given up: its epoch needs a new mark.
  Result<bool> Passed(std::uint64_t epoch) KEEL_EXCLUDES(mutex_);
  // The last epoch that is known to have passed, after asking about those that are marked.
  Result<std::uint64_t> Poll() KEEL_EXCLUDES(mutex_);
  // The stream is gone, and was idle: every date is past from now on, and it is asked no more.
  void Retire() { retired_.store(true, std::memory_order_release); }
  // A new stream has the handle.
  void Revive() { retired_.store(false, std::memory_order_release); }
  bool retired() const { return retired_.load(std::memory_order_acquire); }
  // Marks and waits, without a lock that others need meanwhile.
  Status Wait(std::uint64_t epoch, Deadline deadline) KEEL_EXCLUDES(mutex_);

 private:
  struct End {
    std::uint64_t epoch = 0;
    PooledEvent event;
  };
  Status CheckNotCaptured() const;
  // Ends the present epoch.
  Status RecordLocked() KEEL_REQUIRES(mutex_);
  void PassLocked(std::uint64_t epoch) KEEL_REQUIRES(mutex_);
  // An end that is no longer in ends_ could not be asked: unless the device is lost, later marks
  // stand for its epoch too.
  void ForgetEndLocked(const Status& status) KEEL_REQUIRES(mutex_);

  const std::shared_ptr<hal::Device> device_;
  EventPool& events_;
  const hal::StreamHandle stream_;
  std::atomic<std::uint64_t> now_{1};
  std::atomic<bool> retired_{false};
  std::atomic<std::uint64_t> passed_{0};  // this epoch and all before it
  Mutex mutex_;
  std::uint64_t marked_ KEEL_GUARDED_BY(mutex_) = 0;  // this epoch and all before it have an end
  // Not known to be reached, in order; without those that somebody waits for now.
  std::deque<End> ends_ KEEL_GUARDED_BY(mutex_);
};

}  // namespace keel::memory
