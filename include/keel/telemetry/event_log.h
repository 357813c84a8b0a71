// EventLog: the newest N things that happened to memory, in order of time.
//
// Off, Record costs one relaxed load. On, it costs a look at the processor's counter (or the clock)
// and a lock that the thread owns, which takes it no atomic exchange: up to 64 living threads have
// a stripe each, write into chunks of their own and meet only when a chunk is full. Threads beyond
// them, and a thread in its last moments, share 8 more stripes, with a lock that does. Read,
// recorded and Clear stop all of them for microseconds.
// Memory is bounded: the capacity in whole chunks of 1024 events, and two chunks more for each of
// the at most 72 stripes that were written into.
//
// What is kept has no holes: when room runs out the oldest events go, and Read returns nothing
// from before the newest that went. At least the capacity's worth of newest events is always
// there, once so many were recorded.
//
// Order: times are of the monotonic clock, so an event that another one led to comes before it,
// across threads too. A caller that records the free before the block can be handed out again, and
// the allocation after it was, gets a history in which no address lives twice.
//
// Any thread, any time, for every function.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "keel/base/bytes.h"
#include "keel/base/export.h"
#include "keel/base/result.h"
#include "keel/hal/types.h"
#include "keel/telemetry/stacks.h"
#include "keel/telemetry/tags.h"

namespace keel::telemetry {

// As PyTorch's traces name them.
enum class EventAction : std::uint8_t {
  kAlloc,
  kFreeRequested,  // the program gave it back
  kFreeCompleted,  // and no work on other streams uses it any more
  kSegmentAlloc,   // the allocator took memory from the device
  kSegmentFree,
  kSegmentMap,  // the same for parts of an expandable segment
  kSegmentUnmap,
  kOom,
  kSnapshot,
};
// "alloc", "free_requested", ...
KEEL_EXPORT std::string_view EventActionName(EventAction action);

struct MemoryEvent {
  EventAction action = EventAction::kAlloc;
  hal::DeviceId device = hal::DeviceId::kNone;  // kNone: host memory
  DeviceAddress address;                        // of kOom: see device_free
  Bytes size;                                   // of alloc and free: as asked for, not rounded
  std::uint64_t stream = 0;
  TagId tag = TagId::kNone;
  StackId stack = StackId::kNone;  // filled in by Record: see ScopedStack
  std::int64_t time_ns = 0;        // filled in by Read: of EventLog::Now, to a microsecond

  // Of kOom: how many bytes the device had free, kept where others have their address.
  Bytes device_free() const { return Bytes(address.value()); }
};

class KEEL_EXPORT EventLog {
 public:
  struct Options {
    std::size_t capacity = 100'000;  // 1 to kMaxCapacity
    bool stacks = false;             // capture the stack of every event: microseconds each
  };
  static constexpr std::size_t kMaxCapacity = 100'000'000;

  EventLog();
  // Nobody may be inside a call.
  ~EventLog();
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  // The log of the process, which every allocator writes into unless it is given another. Lives
  // for ever.
  static EventLog& Global();

  // Starts recording, or changes the options of a running recording. What is there stays, up to
  // the new capacity. Takes no memory for the capacity in advance.
  Status Enable(const Options& options);
  // Stops recording. What is there can still be read. An event that another thread is recording
  // at this moment may still come.
  void Disable();
  // Forgets all events, and recorded() starts again at zero.
  void Clear();

  bool enabled() const { return enabled_.load(std::memory_order_relaxed); }

  // Adds `event` with the present time and, if asked for, the stack. Nothing while off.
  void Record(const MemoryEvent& event) {
    if (enabled()) RecordAlways(event);
  }

  // The newest events, at most `newest` of them and at most the capacity, oldest first.
  std::vector<MemoryEvent> Read(std::size_t newest = kMaxCapacity) const;

  // How many events were recorded since the last Clear, also those that Read no longer returns.
  std::uint64_t recorded() const;

  // The clock of time_ns: nanoseconds of CLOCK_MONOTONIC.
  static std::int64_t Now();

 private:
  struct Impl;
  void RecordAlways(const MemoryEvent& event);

  std::atomic<bool> enabled_{false};
  const std::shared_ptr<Impl> impl_;
};

}  // namespace keel::telemetry
