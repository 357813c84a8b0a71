// Staging: copies between pageable host memory and a device, through pinned buffers.
//
// A driver copies pageable memory with one thread and waits in between. Staging cuts the copy into
// chunks, copies them with several host threads into (or out of) a pinned buffer of a
// HostAllocator, and lets the device transfer one chunk while the host copies the next. The caller
// copies as well, and queues each transfer as soon as its chunk is there, whoever copied it.
//
// Order is that of the stream. CopyToDevice returns when the source may be reused; the bytes reach
// the device in the stream's order. CopyToHost returns when the bytes are in the destination, after
// everything that was queued on the stream before.
//
// A place in the buffer is used again only when its transfer is known to be done. If the event that
// would tell cannot be taken, the stream is synchronised instead; if that fails as well, the buffer
// is kept aside until one of them works.
//
// Goes to the driver's own path, and never fails for lack of buffers: small copies, streams that
// capture (a graph must not hold a buffer of ours), and when the allocator has no memory.
//
// With a RegistrationCache, host memory that is seen again is pinned and transferred without any
// buffer; see there what its owner must promise. Whoever finds that the limit of the cache is in
// the way makes room after its own copy (RegistrationCache::Maintain), which may wait for the
// device. In a capture, memory that a cache has pinned is refused: kFailedPrecondition.
//
// On an error a part of the destination may have been written. Thread-safe: any number of callers,
// on any streams of the device. Calls must have returned before it is destroyed.
#pragma once

#include <cstdint>
#include <memory>

#include "keel/base/bytes.h"
#include "keel/base/deadline.h"
#include "keel/base/export.h"
#include "keel/base/status.h"
#include "keel/hal/types.h"
#include "keel/memory/allocator_config.h"
#include "keel/memory/host_allocator.h"
#include "keel/memory/parallel_copy.h"
#include "keel/memory/registration_cache.h"

namespace keel::memory {

struct StagingOptions {
  // Copies below are the driver's.
  Bytes to_device_threshold = 1_MiB;
  Bytes to_host_threshold = 256_KiB;
  // A copy is cut into `pieces`, but no chunk is smaller or larger than these.
  int pieces = 8;
  Bytes least_chunk = 256_KiB;
  Bytes most_chunk = 4_MiB;
  // The pinned memory of one copy is at most this many of the largest chunks. A copy that fits into
  // it never waits for the device.
  int buffers = 3;

  // From the threshold to 8 MiB the first copies of each power of two, on streams that have nothing
  // else to do, go both ways, five times each, and wait until the bytes are there; then the faster
  // way is kept.
  bool measure = false;

  // As staging_threshold and staging_chunk say; with the threshold on auto it measures.
  KEEL_EXPORT static StagingOptions From(const AllocatorConfig& config);
};

// What a Staging is made of.
struct StagingParts {
  std::shared_ptr<HostAllocator> allocator;            // must be there
  std::shared_ptr<ParallelCopy> copy;                  // null: ParallelCopy::Shared()
  std::shared_ptr<RegistrationCache> registrations{};  // null: nothing is pinned
};

class KEEL_EXPORT Staging {
 public:
  struct Stats {
    // Bytes by the way that they went.
    std::uint64_t staged = 0;
    std::uint64_t direct = 0;  // the driver's own path
    std::uint64_t pinned = 0;  // without a buffer, from memory that was pinned
    // Copies that were timed, and how many powers of two above the threshold are the driver's for
    // it.
    std::uint64_t measured = 0;
    std::uint64_t overruled = 0;
  };

  explicit Staging(StagingParts parts, const StagingOptions& options = {});
  // As staging_threshold, staging_chunk, staging_threads and staging_pin_limit say.
  Staging(std::shared_ptr<HostAllocator> allocator, const AllocatorConfig& config);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // The deadline is for waiting until a buffer is free again.
  Status CopyToDevice(hal::StreamHandle stream, DeviceAddress destination, const void* source,
                      Bytes size, Deadline deadline = Deadline::Never());
  // The deadline is for waiting until chunks have arrived; the driver's own path has none.
  Status CopyToHost(hal::StreamHandle stream, void* destination, DeviceAddress source, Bytes size,
                    Deadline deadline = Deadline::Never());

  Stats stats() const;
  // Null: nothing is pinned.
  const std::shared_ptr<RegistrationCache>& registrations() const;

 private:
  class Line;
  const std::shared_ptr<Line> line_;
};

}  // namespace keel::memory
