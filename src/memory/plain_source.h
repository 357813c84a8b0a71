// PlainSource: segments as the device gives them, each one allocation: for devices without virtual
// memory, and for comparison. Sizes follow the rules that PyTorch's allocator made common: 2 MiB
// for small requests, `large_segment_size` for those below 10 MiB, else the request rounded to 2
// MiB.
//
// A segment goes back to the device only when all of it is free and the work on it is done: the
// driver's own free may wait for that, or not.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "keel/base/mutex.h"
#include "keel/hal/memory.h"
#include "memory/address_index.h"
#include "memory/memory_limit.h"
#include "memory/segment_source.h"

namespace keel::memory {

struct PlainOptions {
  std::uint64_t large_segment_size = 20 << 20;
  bool exact = false;  // a segment for each request, of its size
};

class PlainSource : public SegmentSource {
 public:
  PlainSource(std::shared_ptr<hal::Device> device, AddressIndex& index, MemoryLimit& limit,
              SegmentListener& listener, const PlainOptions& options)
      : device_(std::move(device)),
        index_(index),
        limit_(limit),
        listener_(listener),
        options_(options) {}
  ~PlainSource() override;

  Result<Block*> Grow(Arena& arena, std::uint64_t size, std::uint64_t alignment) override
      KEEL_EXCLUDES(mutex_);
  Status Trim(std::uint64_t target) override KEEL_EXCLUDES(mutex_);
  // Frees a block, with the date `epoch`, and gives its segment back if all of it is free and
  // nothing uses it any more. In one step: nobody gets the hole in between.
  Status Release(Block* block, std::uint64_t epoch) KEEL_EXCLUDES(mutex_);

 private:
  struct Segment {
    hal::PlainMemory memory;
    Arena* arena = nullptr;
  };
  using SegmentMap = std::map<std::uint64_t, Segment>;
  // Whether all of a segment is free.
  static bool IsFree(const SegmentMap::iterator& segment);
  // Takes a free segment out of its arena; false: it is not, or was freed after the epoch `passed`.
  static bool TakeOut(const SegmentMap::iterator& segment, Arena& arena, std::uint64_t passed)
      KEEL_REQUIRES(arena.mutex);
  Status Close(SegmentMap::iterator segment) KEEL_REQUIRES(mutex_);
  std::uint64_t SegmentSize(const Arena& arena, std::uint64_t size) const;

  const std::shared_ptr<hal::Device> device_;
  AddressIndex& index_;
  MemoryLimit& limit_;
  SegmentListener& listener_;
  const PlainOptions options_;
  Mutex mutex_;
  SegmentMap segments_ KEEL_GUARDED_BY(mutex_);  // by address
};

}  // namespace keel::memory
