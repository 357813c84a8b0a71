// HostAllocator: pinned host memory of one device, cached.
//
// Asking the driver for pinned memory costs milliseconds, and giving it back waits for all work of
// the device. So memory that is freed is kept and handed out again: from the cache, Allocate and
// Free make no driver call.
//
// Little is wasted. Sizes are rounded to 512 bytes, from `small_limit` on to pages, never to powers
// of two. Small requests are cut from segments of their own; a large one has a segment of its size,
// or takes a free block that is at most a third larger and leaves the rest. What the cache holds is
// kept within `overhead` of the most that was ever in use at once: before it grows past that, it
// gives segments back that are free, or uses blocks that are larger.
//
// Stream-ordered. RecordUse(pointer, stream) for every stream that works on the memory; Free may
// then be called at once, and the memory is reused when all of these have passed that point. Nobody
// waits for a stream unless the alternative is to fail. A stream must live until the Free of what
// it used (with `event_batch` > 1, until the next Trim). Work of a graph is no work of a stream:
// memory that was recorded for a stream while that was capturing belongs to the graph, and after
// its Free it is kept apart until ReleaseCaptured().
//
// At the limit, in this order: events that were reached, free segments given back, any free block
// however large, waiting for streams; then kResourceExhausted with a message that says what is held
// and why. A failed request changes no block and no counter of live memory; the cache may have
// shrunk.
//
// After the device is lost Allocate and RecordUse return kDeviceLost; Free works. In a forked child
// everything returns kFailedPrecondition and destruction does nothing.
//
// Thread-safe. Blocks must be freed before the allocator goes; those that are not are logged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "keel/base/bytes.h"
#include "keel/base/deadline.h"
#include "keel/base/export.h"
#include "keel/base/result.h"
#include "keel/hal/device.h"
#include "keel/memory/allocator_config.h"
#include "keel/telemetry/memory_stats.h"

namespace keel::memory {

struct HostAllocatorOptions {
  // False: every request is a call of the driver, and every Free too.
  bool cache = true;
  // Held from the driver at most, whatever for. 0: no limit.
  Bytes limit{};
  // The cache grows up to this; what goes beyond is the driver's: allocated for one request, given
  // back with its Free. 0: no limit.
  Bytes cache_limit{};
  // How much more than the most that was in use the cache may hold before it gives back.
  double overhead = 0.10;
  // Requests up to this share segments.
  Bytes small_limit = 1_MiB;
  // So many frees of a stream share an event. More than 1 lengthens how long streams must live.
  std::size_t event_batch = 1;
  // A thread keeps this much free for small requests, and has touched its pages, so that they need
  // wait neither for the driver nor for the system. 0: no thread.
  Bytes background_reserve{};
  // Taken in one piece with the first request, for requests of all sizes, and kept to the end. One
  // that cannot be had, or is more than the limit, is logged and left out.
  Bytes reserve{};
  // A thread collects memory that was freed as soon as streams have passed, so that it is there
  // when somebody asks. Else whoever finds no memory looks.
  bool background_collection = false;
  // Ordinary memory is registered with the driver, rather than allocated by it. `host` does not
  // hold for it.
  bool registered = false;
  // Pages are written once before memory is handed out, so that the first use need not wait.
  bool prefault = false;
  // Threads that do it. With more than 1, before memory is registered too, which is faster.
  int touch_threads = 1;
  hal::HostOptions host{};
  // Of the memory. Nothing: the device's own; -1: wherever the system takes it from.
  std::optional<int> numa_node{};

  // As the keys for host memory say: host_limit, host_cache,
  // host_background_reserve, prefault and pinned_*.
  KEEL_EXPORT static HostAllocatorOptions From(const AllocatorConfig& config);
};

struct HostAllocatorStats {
  // Keys, names and meanings of PyTorch. `allocations` are segments held from the driver and
  // `allocated_bytes` their bytes; `active` are the blocks handed out, in bytes as rounded.
  telemetry::HostMemoryStats memory;
  telemetry::Stat requested_bytes;   // of the blocks handed out, as asked for
  std::int64_t pending_bytes = 0;    // freed, but streams may still use them
  std::int64_t captured_bytes = 0;   // freed, but graphs may use them
  std::int64_t record_failures = 0;  // events that could not be taken when they were due
};

// A block that is handed out.
struct HostBlock {
  void* data = nullptr;
  Bytes size;       // usable
  Bytes requested;  // asked for
};

class KEEL_EXPORT HostAllocator {
 public:
  // Of every pointer; more can be asked for.
  static constexpr Bytes kAlignment{512};
  static constexpr Bytes kMostAlignment{4096};

  explicit HostAllocator(std::shared_ptr<hal::Device> device,
                         const HostAllocatorOptions& options = {});
  ~HostAllocator();
  HostAllocator(const HostAllocator&) = delete;
  HostAllocator& operator=(const HostAllocator&) = delete;

  const std::shared_ptr<hal::Device>& device() const;

  // `size` > 0; `alignment` a power of two up to kMostAlignment. Contents are undefined. Waits only
  // where the alternative is to fail, for streams that are not done with what was freed: until the
  // deadline (kDeadlineExceeded), at most a minute (kResourceExhausted).
  Result<void*> Allocate(Bytes size, Bytes alignment = kAlignment,
                         Deadline deadline = Deadline::Never());
  // The stream has work on the block of this byte (interior pointers too), queued before this call
  // or before the Free. On an error nothing was recorded.
  Status RecordUse(const void* pointer, hal::StreamHandle stream);
  // `pointer` is what Allocate returned. kInvalidArgument: it is not, or was freed; nothing
  // happens. Any other error is that of a driver that would not take back what is not cached: the
  // block is free, and its memory on the device's retry list.
  Status Free(void* pointer);
  // All of them or none; those that streams use share their events.
  Status FreeAll(std::span<void* const> pointers);

  // The live block of a byte. kNotFound: there is none.
  Result<HostBlock> Find(const void* pointer) const;

  // Gives free segments back to the driver, the largest first, until at most `target` is held. May
  // wait for the device; does not wait for what is pending. The first error; what could not be
  // given back is on the device's retry list.
  Status Trim(Bytes target);
  Status EmptyCache() { return Trim(Bytes(0)); }
  // No graph uses memory any more that was freed after a capture used it.
  Status ReleaseCaptured();
  // Lowering it disturbs no live memory. 0: no limit.
  Status SetLimit(Bytes limit);

  HostAllocatorStats stats() const;
  void ResetPeakStats();
  void ResetAccumulatedStats();

 private:
  class State;
  const std::shared_ptr<State> state_;
};

}  // namespace keel::memory
