// PlainSource: segments as the device gives them, each one allocation: for devices without virtual
// memory, and for comparison. Sizes follow the rules that PyTorch's allocator made common: 2 MiB
// for small requests, `large_segment_size` for those below 10 MiB, else the request rounded to 2
// MiB. Where the device has no more, a request that would share a segment gets one of its size.
//
// Oversize segments (arena.h) are the first to go when the limit is reached, and only as many as
// it takes. Every segment goes back to the device only when all of it is free and the work on it is
// done: the driver's own free may wait for that, or not.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
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
  std::uint64_t oversize = ~std::uint64_t{0};
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
  Status CollectGarbage(std::uint64_t bytes) override KEEL_EXCLUDES(mutex_);
  // Frees a block, with the date `epoch`, and gives its segment back if all of it is free and
  // nothing uses it any more. In one step: nobody gets the hole in between.
  Status Release(Block* block, std::uint64_t epoch) KEEL_EXCLUDES(mutex_);

 private:
  struct Segment {
    hal::PlainMemory memory;
    Arena* arena = nullptr;
  };
  using SegmentMap = std::map<std::uint64_t, Segment>;
  // A segment that may go.
  struct Unused {
    SegmentMap::iterator segment;
    std::uint64_t passed = 0;  // what is known of its stream
    std::uint32_t age = 0;
    std::uint64_t size() const { return segment->second.memory.size().count(); }
  };
  // How long all of a segment has been free; nothing: it is not.
  static std::optional<std::uint32_t> AgeOf(const SegmentMap::iterator& segment);
  // By address. Of those that are freed by then; whether they are is seen when they go.
  Result<std::vector<Unused>> FindUnused() KEEL_REQUIRES(mutex_);
  // Takes a free segment out of its arena; false: it is not, or was freed after the epoch `passed`.
  static bool TakeOut(const SegmentMap::iterator& segment, Arena& arena, std::uint64_t passed)
      KEEL_REQUIRES(arena.mutex);
  // Gives it back if it still may go. 0: it may not.
  Result<std::uint64_t> GiveBack(const Unused& unused) KEEL_REQUIRES(mutex_);
  Status Close(SegmentMap::iterator segment) KEEL_REQUIRES(mutex_);
  // Oversize segments, so that `bytes` can be had; the smallest one that suffices, or the largest.
  Status ReleaseOversize(std::uint64_t bytes) KEEL_REQUIRES(mutex_);
  Result<hal::PlainMemory> Create(std::uint64_t bytes) KEEL_REQUIRES(mutex_);
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
