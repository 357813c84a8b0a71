#include "keel/telemetry/event_log.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "base/fork.h"
#include "base/owner_lock.h"
#include "base/prefetch.h"
#include "base/short_lock.h"
#include "base/tick_clock.h"
#include "telemetry/thread_stripe.h"

namespace keel::telemetry {
namespace {

// So many that threads seldom meet over a full one (telemetry_bench, events/on with several).
constexpr std::size_t kChunkEvents = 1024;
constexpr std::size_t kPrefetched = 8;  // events ahead
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();

// Room for events of one stripe in order of time. Nothing is there until it is put there: clearing
// it first would cost as much as filling it.
class Chunk {
 public:
  MemoryEvent* Put(std::size_t index, const MemoryEvent& event) {
    return std::construct_at(reinterpret_cast<MemoryEvent*>(bytes_) + index, event);
  }
  std::span<const MemoryEvent> events(std::size_t count) const {
    return {std::launder(reinterpret_cast<const MemoryEvent*>(bytes_)), count};
  }

 private:
  alignas(MemoryEvent) std::byte bytes_[kChunkEvents * sizeof(MemoryEvent)];
};
static_assert(std::is_trivially_copyable_v<MemoryEvent>);

struct FullChunk {
  std::shared_ptr<Chunk> chunk;
  std::int64_t last_ticks;
};

// What one stripe has.
struct Events {
  std::shared_ptr<Chunk> chunk;  // the one being filled; null before use
  std::size_t count = 0;         // of events in it
  std::uint64_t recorded = 0;
  std::int64_t last_ticks = kNever;
};

// Two lines apart: processors fetch lines in pairs.
struct alignas(128) OwnedStripe {
  OwnerLock mutex;
  Events events KEEL_GUARDED_BY(mutex);
};
struct alignas(128) SharedStripe {
  ShortLock mutex;
  Events events KEEL_GUARDED_BY(mutex);
};

}  // namespace

// Locks: a stripe's, several in order of their index and the owned ones first, then `mutex`.
struct EventLog::Impl {
  // An event that is kept has ticks where it is read with nanoseconds.
  const TickClock clock;
  std::array<OwnedStripe, kOwnedStripes> owned;
  std::array<SharedStripe, kSharedStripes> shared;
  std::atomic<bool> stacks{false};

  // Not a Mutex: a thread that finds one taken sleeps, and recording an event must not.
  ShortLock mutex;
  std::size_t capacity KEEL_GUARDED_BY(mutex) = Options().capacity;
  // Full chunks, not written while they are here, ordered by the time of their last event.
  std::deque<FullChunk> full KEEL_GUARDED_BY(mutex);
  std::size_t stripes_used KEEL_GUARDED_BY(mutex) = 0;
  std::int64_t lost_until KEEL_GUARDED_BY(mutex) = kNever;  // events up to here have holes
  // Calls of Read that hold chunks, which may have gone from `full` meanwhile.
  std::size_t readers KEEL_GUARDED_BY(mutex) = 0;

  // All stripes at one moment.
  class AllStripes;

  // With the lock of the stripe that has `events`.
  void Add(Events& events, const MemoryEvent& event, StackId stack) KEEL_EXCLUDES(mutex);
  // The last chunk that went, if any did.
  std::shared_ptr<Chunk> TrimLocked() KEEL_REQUIRES(mutex);
  // A chunk to be filled next, if one went for it that nobody reads; else null.
  std::shared_ptr<Chunk> Keep(FullChunk chunk) KEEL_EXCLUDES(mutex);
};

// Holds the locks of all stripes. The analysis cannot follow locks in a loop.
class EventLog::Impl::AllStripes {
 public:
  explicit AllStripes(Impl& impl) KEEL_NO_THREAD_SAFETY_ANALYSIS : impl_(impl) {
    for (OwnedStripe& stripe : impl_.owned) stripe.mutex.Ask();
    OwnerLock::Barrier();
    for (OwnedStripe& stripe : impl_.owned) stripe.mutex.Enter();
    for (SharedStripe& stripe : impl_.shared) stripe.mutex.Lock();
  }
  ~AllStripes() KEEL_NO_THREAD_SAFETY_ANALYSIS {
    for (OwnedStripe& stripe : impl_.owned) stripe.mutex.Unlock();
    for (SharedStripe& stripe : impl_.shared) stripe.mutex.Unlock();
  }
  AllStripes(const AllStripes&) = delete;
  AllStripes& operator=(const AllStripes&) = delete;

  template <class Look>
  void ForEach(const Look& look) const KEEL_NO_THREAD_SAFETY_ANALYSIS {
    for (OwnedStripe& stripe : impl_.owned) look(stripe.events);
    for (SharedStripe& stripe : impl_.shared) look(stripe.events);
  }

 private:
  Impl& impl_;
};

// All that is kept beyond the capacity is one chunk per stripe: of a stripe's chunks only the
// oldest can have events from before lost_until, so at least `capacity` events come after it.
std::shared_ptr<Chunk> EventLog::Impl::TrimLocked() {
  const std::size_t chunks = (capacity + kChunkEvents - 1) / kChunkEvents + stripes_used;
  std::shared_ptr<Chunk> last;
  while (full.size() > chunks) {
    // A thread may come late with a chunk that is older than what went before.
    lost_until = std::max(lost_until, full.front().last_ticks);
    last = std::move(full.front().chunk);
    full.pop_front();
  }
  return last;
}

std::shared_ptr<Chunk> EventLog::Impl::Keep(FullChunk chunk) {
  std::shared_ptr<Chunk> gone;  // and given back without the lock
  const ShortLockGuard lock(mutex);
  // Threads arrive here nearly in order.
  auto place = full.end();
  while (place != full.begin() && std::prev(place)->last_ticks > chunk.last_ticks) --place;
  full.insert(place, std::move(chunk));
  gone = TrimLocked();
  return readers == 0 ? std::move(gone) : nullptr;
}

std::string_view EventActionName(EventAction action) {
  switch (action) {
    case EventAction::kAlloc:
      return "alloc";
    case EventAction::kFreeRequested:
      return "free_requested";
    case EventAction::kFreeCompleted:
      return "free_completed";
    case EventAction::kSegmentAlloc:
      return "segment_alloc";
    case EventAction::kSegmentFree:
      return "segment_free";
    case EventAction::kSegmentMap:
      return "segment_map";
    case EventAction::kSegmentUnmap:
      return "segment_unmap";
    case EventAction::kOom:
      return "oom";
    case EventAction::kSnapshot:
      return "snapshot";
  }
  return "unknown";
}

EventLog::EventLog() : impl_(MakeSharedHere<Impl>()) {}
EventLog::~EventLog() = default;

EventLog& EventLog::Global() {
  // Leaked: allocators of static objects write into it until the end.
  static EventLog* const log = new EventLog;
  return *log;
}

std::int64_t EventLog::Now() { return MonotonicNs(); }

Status EventLog::Enable(const Options& options) {
  if (options.capacity < 1 || options.capacity > kMaxCapacity) {
    return InvalidArgument("event log: a capacity of " + std::to_string(options.capacity) +
                           " events is not from 1 to " + std::to_string(kMaxCapacity));
  }
  // The first walk over a stack loads a library: better here than inside an allocation.
  if (options.stacks) (void)CaptureStack();
  impl_->stacks.store(options.stacks, std::memory_order_relaxed);
  {
    const ShortLockGuard lock(impl_->mutex);
    impl_->capacity = options.capacity;
    static_cast<void>(impl_->TrimLocked());
  }
  enabled_.store(true, std::memory_order_relaxed);
  return OkStatus();
}

void EventLog::Disable() { enabled_.store(false, std::memory_order_relaxed); }

void EventLog::Clear() {
  const Impl::AllStripes stripes(*impl_);
  stripes.ForEach([](Events& events) {
    events.chunk = nullptr;
    events.count = 0;
    events.recorded = 0;
  });
  const ShortLockGuard lock(impl_->mutex);
  impl_->full.clear();
  impl_->stripes_used = 0;
  impl_->lost_until = kNever;
}

// Part of RecordAlways for both kinds of stripes.
[[gnu::always_inline]] inline void EventLog::Impl::Add(Events& events, const MemoryEvent& event,
                                                       StackId stack) {
  if (events.chunk == nullptr) {
    events.chunk = std::make_shared_for_overwrite<Chunk>();
    // The first of this stripe since the last Clear.
    if (events.recorded == 0) {
      const ShortLockGuard lock(mutex);
      ++stripes_used;
    }
  }
  MemoryEvent* kept = events.chunk->Put(events.count, event);
  kept->stack = stack;
  // Under the lock, and never twice the same: a thread's events stay in order when sorted by time.
  kept->time_ns = events.last_ticks = std::max(clock.Ticks(), events.last_ticks + 1);
  // The chunk was last written long ago: the lines are fetched ahead.
  PrefetchForWrite(kept + kPrefetched);
  ++events.count;
  ++events.recorded;
  if (events.count < kChunkEvents) return;
  const std::int64_t ticks = kept->time_ns;
  events.count = 0;  // first: there may be no memory to keep it
  events.chunk = Keep({std::exchange(events.chunk, nullptr), ticks});
}

void EventLog::RecordAlways(const MemoryEvent& event) {
  StackId stack = CurrentStack();
  if (stack == StackId::kNone && impl_->stacks.load(std::memory_order_relaxed)) {
    stack = CaptureStack(1);
  }
  const std::size_t number = ThreadStripe();
  if (number < kOwnedStripes) [[likely]] {
    OwnedStripe& stripe = impl_->owned[number];
    const OwnerGuard lock(stripe.mutex);
    impl_->Add(stripe.events, event, stack);
  } else {
    SharedStripe& stripe = impl_->shared[number - kOwnedStripes];
    const ShortLockGuard lock(stripe.mutex);
    impl_->Add(stripe.events, event, stack);
  }
}

std::vector<MemoryEvent> EventLog::Read(std::size_t newest) const {
  std::vector<MemoryEvent> unfinished;
  std::vector<FullChunk> full;
  std::int64_t lost_until = kNever;
  {
    // All at one moment, or an event could be missing whose consequence is there. Full chunks are
    // copied later: nobody waits for that.
    const Impl::AllStripes stripes(*impl_);
    stripes.ForEach([&](const Events& of_stripe) {
      if (of_stripe.chunk == nullptr) return;
      const auto events = of_stripe.chunk->events(of_stripe.count);
      unfinished.insert(unfinished.end(), events.begin(), events.end());
    });
    const ShortLockGuard lock(impl_->mutex);
    ++impl_->readers;
    full.assign(impl_->full.begin(), impl_->full.end());
    lost_until = impl_->lost_until;
    newest = std::min(newest, impl_->capacity);
  }

  std::vector<MemoryEvent> events;
  events.reserve(full.size() * kChunkEvents + unfinished.size());
  for (const FullChunk& chunk : full) {
    const auto all = chunk.chunk->events(kChunkEvents);
    events.insert(events.end(), all.begin(), all.end());
  }
  {
    const ShortLockGuard lock(impl_->mutex);
    --impl_->readers;
  }
  events.insert(events.end(), unfinished.begin(), unfinished.end());
  std::erase_if(events, [=](const MemoryEvent& event) { return event.time_ns <= lost_until; });
  std::sort(events.begin(), events.end(),
            [](const MemoryEvent& a, const MemoryEvent& b) { return a.time_ns < b.time_ns; });
  if (events.size() > newest) {
    events.erase(events.begin(), events.end() - static_cast<std::ptrdiff_t>(newest));
  }
  const TickClock::Scale scale = impl_->clock.ScaleNow();
  for (MemoryEvent& event : events) event.time_ns = scale.ToNs(event.time_ns);
  return events;
}

std::uint64_t EventLog::recorded() const {
  std::uint64_t sum = 0;
  Impl::AllStripes(*impl_).ForEach([&](const Events& events) { sum += events.recorded; });
  return sum;
}

}  // namespace keel::telemetry
