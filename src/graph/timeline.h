// Timeline: how far a slot's steps are, as counts that the device writes into pinned memory.
//
// Monotonic: every step that is launched adds one to each count, at its end, and a step is reached
// when it is in all of them: several parts of the device that end it need not wait for each other
// then. Steps of one slot come in order. Reading it is a load of each. Waiting looks often at first
// and then seldom, never burns a core, and sees to it that a lost device ends it. A stream that
// captures is never asked: that would break the capture.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>

#include "keel/base/deadline.h"
#include "keel/base/result.h"
#include "keel/hal/device.h"

namespace keel::graph {

// Launched, LostTrack, Look and Wait are the lease's, or whoever's has the lock that leases are
// given under; Reached and Idle are anybody's.
class Timeline {
 public:
  Timeline() = default;
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  // `seen` is pinned memory, not empty, and zero. Before anything else.
  void Watch(std::span<std::uint64_t> seen) { seen_ = seen; }

  std::uint64_t launched() const { return launched_.load(std::memory_order_acquire); }
  hal::StreamHandle stream() const { return {stream_.load(std::memory_order_relaxed)}; }
  // A step with a mark is on the stream.
  void Launched(hal::StreamHandle stream) {
    stream_.store(stream.value, std::memory_order_relaxed);
    launched_.store(launched() + 1, std::memory_order_release);
  }
  // Work is on the stream whose end nothing marks: only the stream itself can tell.
  void LostTrack(hal::StreamHandle stream) {
    stream_.store(stream.value, std::memory_order_relaxed);
    lost_track_.store(true, std::memory_order_release);
  }

  bool Reached(std::uint64_t mark) const { return !lost_track() && (mark == 0 || Seen() >= mark); }
  bool Idle() const { return Reached(launched()); }

  // Looks whether the stream is done, if only it can tell. For who polls Idle().
  Status Look(hal::Device& device);
  // Whether everything on the stream is done; false while it is being captured. Anybody's.
  Result<bool> StreamDone(hal::Device& device) const;
  // Asks the stream in any case: a loss that nobody has seen yet shows then. For who polls long.
  Status Ask(hal::Device& device);
  bool lost_track() const { return lost_track_.load(std::memory_order_acquire); }
  // OK, kDeadlineExceeded, kDeviceLost, or why the stream could not be asked where only it can
  // tell.
  Status Wait(hal::Device& device, std::uint64_t mark, Deadline deadline);

 private:
  void FoundDone() {
    // What was marked is seen; what was not launched is not waited for.
    launched_.store(Seen(), std::memory_order_release);
    lost_track_.store(false, std::memory_order_release);
  }
  std::uint64_t Seen() const {
    std::uint64_t least = ~std::uint64_t{0};
    for (std::uint64_t& seen : seen_) {
      least = std::min(least, std::atomic_ref(seen).load(std::memory_order_acquire));
    }
    return least;
  }

  std::span<std::uint64_t> seen_;
  std::atomic<std::uint64_t> launched_{0};
  std::atomic<std::uint64_t> stream_{0};
  std::atomic<bool> lost_track_{false};
};

}  // namespace keel::graph
