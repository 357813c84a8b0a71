// SegmentSource: where arenas get their bytes from, and where they go back to. One for a device.
//
// Two of them: PlainSource takes each segment from the device as it is, ExpandableSource maps
// physical memory where it is needed (plain_source.h, expandable_source.h).
//
// Thread-safe. Calls of the driver happen under the source's own lock, never under an arena's.
#pragma once

#include <cstdint>

#include "keel/base/result.h"
#include "memory/arena.h"

namespace keel::memory {

// What a source tells about; called under the source's lock.
class SegmentListener {
 public:
  virtual ~SegmentListener() = default;
  // The device gave memory that is now at `address`; or will take it back, if not `whole`, and did
  // so if it is. `whole`: a segment of its own rather than a part of an expandable one.
  virtual void OnMapped(const Arena& arena, std::uint64_t address, std::uint64_t size,
                        bool whole) = 0;
  virtual void OnUnmapped(const Arena& arena, std::uint64_t address, std::uint64_t size,
                          bool whole) = 0;
  // Memory that was free at one address now is at another.
  virtual void OnMoved(const Arena& from, std::uint64_t from_address, const Arena& to,
                       std::uint64_t to_address, std::uint64_t size) = 0;
};

class SegmentSource {
 public:
  virtual ~SegmentSource() = default;

  // A taken block of `size` bytes in the arena, for which it gets new memory if need be. On failure
  // every live block is as before; the arena may have more free memory. kResourceExhausted: the
  // limit, or the device, has no more; memory that pending work still uses is left alone.
  virtual Result<Block*> Grow(Arena& arena, std::uint64_t size, std::uint64_t alignment) = 0;

  // Gives free memory back to the device until at most `target` bytes are held, or nothing more is
  // free. Waits for nothing: memory that pending work may touch is left, and so are arenas that are
  // not open.
  virtual Status Trim(std::uint64_t target) = 0;
  // The same for about `bytes`, of what was not used for longest (garbage.h).
  virtual Status CollectGarbage(std::uint64_t bytes) = 0;
};

}  // namespace keel::memory
