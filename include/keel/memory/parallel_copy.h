// ParallelCopy: copying host memory with several threads.
//
// One thread does not reach the bandwidth of a server's memory; several do. A ParallelCopy owns a
// few workers that all its callers share. Any number of callers may copy at once: each copy is a
// job of its own, the caller works on its own job and so never depends on a worker being free, and
// workers join the jobs that are there.
//
// Whoever is awake, the caller or a worker, takes the next slice of a copy; so a caller waits for
// slices that are being copied, and never for a worker to wake or to get a core.
//
// Workers start with the first copy that is large enough. One without work looks for more for a
// short time (`linger`) and then sleeps; an idle ParallelCopy costs nothing. A copy that follows
// another within that time finds them awake; the first after a pause has them woken, and they join
// when they are there. If no thread can be started, copies are the caller's alone: never an error.
//
// In a forked child, which has none of the threads, a copy is done by the caller, and destroying
// the object does nothing; Shared() makes new ones there. Destroying it joins the workers; no copy
// may be under way then.
//
// Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "keel/base/bytes.h"
#include "keel/base/export.h"
#include "keel/memory/allocator_config.h"

namespace keel::memory {

struct ParallelCopyOptions {
  // That work on one copy at most, the caller included. 0: as many as there are cores, up to 8.
  // 1: no workers.
  int threads = 0;
  // Copies up to this size are the caller's alone: waking others takes longer.
  Bytes inline_limit = 128_KiB;
  // What is worth a further thread.
  Bytes share = 128_KiB;
  // What a thread takes at a time, at most.
  Bytes slice = 256_KiB;
  // How long a worker looks for the next job before it sleeps, and a caller for the last slice.
  std::chrono::microseconds linger{50};

  // As staging_threads says.
  KEEL_EXPORT static ParallelCopyOptions From(const AllocatorConfig& config);
};

class CopyCrew;

class KEEL_EXPORT ParallelCopy {
 public:
  struct Stats {
    std::uint64_t wakes = 0;  // calls of the kernel to wake a worker, by copies
    std::uint64_t alone = 0;  // copies without workers, because too many others were under way
  };

  explicit ParallelCopy(const ParallelCopyOptions& options = {});
  ~ParallelCopy();
  ParallelCopy(const ParallelCopy&) = delete;
  ParallelCopy& operator=(const ParallelCopy&) = delete;

  // One with default options that lives while anybody holds it.
  static std::shared_ptr<ParallelCopy> Shared();

  // As memcpy: the ranges must not overlap. Returns when all bytes are there, and are visible to
  // whatever the caller does next. `meanwhile`, if there is one, is called once, by the caller's
  // thread, after the workers were told to start and before the caller copies itself.
  void Copy(void* destination, const void* source, Bytes size,
            const std::function<void()>& meanwhile = nullptr);

  // That one copy can use here, the caller included.
  int threads() const;
  Stats stats() const;

 private:
  friend class PiecewiseCopy;
  const std::shared_ptr<CopyCrew> crew_;
};

}  // namespace keel::memory
