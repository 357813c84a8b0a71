// PinnedRanges: the host memory that was pinned through a library's devices.
//
// What a driver knows to be pinned it need not ask the library about: a copy of pinned memory may
// become a part of a graph, whether or not the stream is being captured. A range that is not here
// may be pinned all the same, by somebody else.
//
// Has remembers, for each thread, the range that it found last: programs copy from the same buffers
// over and over. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>

#include "keel/base/bytes.h"
#include "keel/base/mutex.h"
#include "keel/hal/types.h"

namespace keel::vendor {

class PinnedRanges {
 public:
  PinnedRanges();
  PinnedRanges(const PinnedRanges&) = delete;
  PinnedRanges& operator=(const PinnedRanges&) = delete;

  void Add(hal::DeviceId owner, const void* pointer, Bytes size) KEEL_EXCLUDES(mutex_);
  // Before the memory goes. What was there; of size zero: nothing. Add it again if it stays.
  struct Range {
    hal::DeviceId owner = hal::DeviceId::kNone;
    Bytes size;
  };
  Range Take(const void* pointer) KEEL_EXCLUDES(mutex_);
  // Whether all of these bytes are in one range.
  bool Has(const void* pointer, Bytes size) const KEEL_EXCLUDES(mutex_);
  // Of a device that is closed.
  void Forget(hal::DeviceId owner) KEEL_EXCLUDES(mutex_);

 private:
  void ChangedLocked() KEEL_REQUIRES(mutex_);

  // Of what threads remember. Never the same for two states of any PinnedRanges of the process.
  std::atomic<std::uint64_t> state_;
  mutable Mutex mutex_;
  std::map<std::uint64_t, Range> ranges_ KEEL_GUARDED_BY(mutex_);  // by address
};

}  // namespace keel::vendor
