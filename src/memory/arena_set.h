// ArenaSet: every arena of an allocator, and the clocks of their streams. Arenas live as long as
// the set. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "keel/base/mutex.h"
#include "memory/arena.h"

namespace keel::memory {

class ArenaSet {
 public:
  // `front`: what a thread may keep of an arena for small requests, unless it is a private pool's.
  // `large`: of arenas for large requests. The others waste nothing.
  ArenaSet(std::shared_ptr<hal::Device> device, EventPool& events, std::uint64_t front,
           const Cutting& large)
      : device_(std::move(device)), events_(events), front_(front), large_(large) {}

  // A request came: what was freed before is a little older.
  void CountRequest() { requests_.fetch_add(1, std::memory_order_relaxed); }

  // Both take a stream that was retired for a new one with the same handle.
  Arena& Find(hal::StreamHandle stream, telemetry::Pool kind, PoolId pool) KEEL_EXCLUDES(mutex_);
  StreamClock& Clock(hal::StreamHandle stream) KEEL_EXCLUDES(mutex_);
  // Null: nobody asked for it so far.
  StreamClock* FindClock(hal::StreamHandle stream) const KEEL_EXCLUDES(mutex_);
  // In the order of their making.
  std::vector<Arena*> List() const KEEL_EXCLUDES(mutex_);
  std::vector<StreamClock*> Clocks() const KEEL_EXCLUDES(mutex_);

 private:
  StreamClock& ClockLocked(hal::StreamHandle stream) KEEL_REQUIRES(mutex_);
  // An arena of a pool that was released, without live blocks and with nothing in it that pending
  // work uses: it has addresses, which pools that come and go must not use up. Null: there is none.
  Arena* FindUnusedLocked(StreamClock& clock, telemetry::Pool kind, PoolId pool)
      KEEL_REQUIRES(mutex_);

  const std::shared_ptr<hal::Device> device_;
  EventPool& events_;
  const std::uint64_t front_;
  const Cutting large_;
  std::atomic<std::uint32_t> requests_{0};
  mutable Mutex mutex_;
  std::map<hal::StreamHandle, std::unique_ptr<StreamClock>> clocks_ KEEL_GUARDED_BY(mutex_);
  std::map<std::tuple<hal::StreamHandle, telemetry::Pool, PoolId>, Arena*> by_key_
      KEEL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Arena>> arenas_ KEEL_GUARDED_BY(mutex_);
};

}  // namespace keel::memory
