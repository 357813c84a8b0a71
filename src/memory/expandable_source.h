// ExpandableSource: address ranges of which only what is needed has memory, and memory that goes
// where it is needed.
//
// Each arena has ranges of addresses, far larger than it will fill. Physical memory comes in
// handles, each mapped whole at some address (an extent). A request that fits into no hole gets a
// place among the addresses: the gap between live blocks that needs the least memory added. What is
// missing there is filled, in this order, with
//   1. a handle that was mapped there before and is free where it is now: no call of the driver;
//   2. free handles from elsewhere, the largest that fit;
//   3. new ones; and if a free handle was there that is too large, it is given back for that.
// So the bytes held are those that live blocks touch, plus what was free and could not move.
//
// A handle that goes to another address stays mapped at the old one as well (a ghost). That makes
// coming back free, and it makes going possible at once: nothing that still runs loses its memory,
// and the stream that freed it may use it under its new address because what it does next comes
// later. Only another stream has to wait until the work before the free is done, and so has whoever
// wants to unmap a ghost: to put other memory there, or to give the handle back. Memory of a
// private pool never leaves it, and pinned ranges (Pin) never move.
//
// How large is a handle? Large ones are cheap per byte, and stuck as soon as one small block is in
// them. Small ones can go everywhere, and each costs about 40 us on a real device. The source looks
// at what it has spent: as long as the calls cost less than `upkeep` of the time since it began,
// new handles are as small as the device allows, else up to `handle_size`
// (docs/essays/how-large-a-handle.md).
//
// A program whose requests never repeat could make the source move memory all the time. When moving
// has taken more than a twentieth of the time, or memory was moved for many requests shortly one
// after the other, it takes new memory instead of moving, and a part more than asked for, until
// requests find holes again or the limit is reached.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "keel/base/mutex.h"
#include "keel/hal/memory.h"
#include "memory/address_index.h"
#include "memory/memory_limit.h"
#include "memory/segment_source.h"

namespace keel::memory {

// Every arena of an allocator, as they are at the call.
using ListArenas = std::function<std::vector<Arena*>()>;

struct ExpandableOptions {
  std::uint64_t handle_size = 16 << 20;  // the largest, for large requests
  double upkeep = 0.02;                  // part of the time that may go into finer handles
  std::uint64_t reserve = 0;             // addresses per range; 0: as much as the device has, an
                                         // eighth of it for small requests
  std::uint32_t max_ghosts = 16'384;     // in all
  hal::MemoryOptions memory{};
  std::function<std::int64_t()> now_ns;  // a clock; empty: the steady one
};

class ExpandableSource : public SegmentSource {
 public:
  struct Stats {
    std::uint64_t created = 0;   // handles
    std::uint64_t released = 0;  //
    std::uint64_t moved = 0;     // by mapping them elsewhere
    std::uint64_t returned = 0;  // to where they were mapped already
    std::uint64_t unmapped = 0;  // ghosts
    std::int64_t driver_ns = 0;  // spent in calls of the driver
    std::int64_t move_ns = 0;    // and of that, in moving
  };

  ExpandableSource(std::shared_ptr<hal::Device> device, AddressIndex& index, MemoryLimit& limit,
                   ListArenas arenas, SegmentListener& listener, ExpandableOptions options);
  ~ExpandableSource() override;

  Result<Block*> Grow(Arena& arena, std::uint64_t size, std::uint64_t alignment) override
      KEEL_EXCLUDES(mutex_);
  Status Trim(std::uint64_t target) override KEEL_EXCLUDES(mutex_);
  Status CollectGarbage(std::uint64_t bytes) override KEEL_EXCLUDES(mutex_);

  // The memory at these addresses stays there, free or not, until Unpin. kInvalidArgument: some of
  // it is not there.
  Status Pin(std::uint64_t address, std::uint64_t size) KEEL_EXCLUDES(mutex_);
  Status Unpin(std::uint64_t address, std::uint64_t size) KEEL_EXCLUDES(mutex_);

  // The device may read and write all memory, present and future. On an error nothing changed.
  Status Grant(hal::DeviceId device) KEEL_EXCLUDES(mutex_);
  // Future memory is not for it any more; what is mapped stays as it is.
  void Revoke(hal::DeviceId device) KEEL_EXCLUDES(mutex_);

  Stats stats() KEEL_EXCLUDES(mutex_);

 private:
  struct Handle {
    hal::PhysicalMemory memory;
    std::uint64_t size = 0;
    std::uint64_t at = 0;  // where it is; 0: nowhere at this moment
    Arena* arena = nullptr;
    std::uint64_t epoch = 0;  // while it is nowhere: when it was freed, on its last arena's clock
    std::uint32_t date = 0;   // and as Block::date
    std::uint32_t pins = 0;
    std::vector<std::uint64_t> ghosts;  // addresses
  };
  // A handle's mapping. Present: the bytes are in the arena's pool. Else a ghost.
  struct Extent {
    Handle* handle = nullptr;
    hal::Mapping mapping;
    bool present = false;
    Arena* arena = nullptr;
    std::uint64_t epoch = 0;  // of a ghost, on its arena's clock: nobody uses it after that
    std::uint64_t end() const { return mapping.address().value() + mapping.size().count(); }
  };
  struct Range {
    hal::AddressRange addresses;
    Arena* arena = nullptr;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };
  struct Interval {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t size() const { return end - begin; }
  };
  struct Candidate {
    Block* block = nullptr;
    Handle* handle = nullptr;
    bool was_here = false;  // mapped where memory is needed now
  };

  std::uint64_t PageDown(std::uint64_t address) const { return address - address % granule_; }
  std::uint64_t PageUp(std::uint64_t address) const { return PageDown(address + granule_ - 1); }

  // Where a request could go: its first address, and the free blocks that are there.
  struct Place {
    std::uint64_t address = 0;
    std::uint64_t end = 0;  // of the gap that it is in
    std::vector<Block*> blocks;
  };
  struct Gap {  // between live blocks, and what of it is there
    Interval addresses;
    std::vector<Block*> blocks;
    bool open = false;  // the last of its range
  };
  // The place that needs the least memory; makes a range if none has room.
  Result<Place> FindPlace(Arena& arena, std::uint64_t size, std::uint64_t alignment)
      KEEL_REQUIRES(mutex_, arena.mutex);
  static std::vector<Gap> GapsOf(const Range& range, const BlockPool& blocks);
  // What is missing below whole pages around [begin, end).
  std::vector<Interval> Missing(std::uint64_t begin, std::uint64_t end) const KEEL_REQUIRES(mutex_);
  std::uint64_t MissingBytes(std::uint64_t begin, std::uint64_t end) const KEEL_REQUIRES(mutex_);
  bool AllThere(std::uint64_t address, std::uint64_t size) const KEEL_REQUIRES(mutex_);
  // Whether a ghost there may still be in use.
  bool Haunted(std::uint64_t begin, std::uint64_t end) KEEL_REQUIRES(mutex_);
  Status AddRange(Arena& arena, std::uint64_t size) KEEL_REQUIRES(mutex_);

  // What may fill a place: any memory, or new memory only.
  enum class From : std::uint8_t { kAnywhere, kDevice };
  Status Fill(Arena& arena, const std::vector<Interval>& missing, From from,
              std::vector<Handle*>& filled) KEEL_REQUIRES(mutex_);
  // kResourceExhausted where it is clear that there is not so much; nothing is said of a little.
  Status CheckRoom(const std::vector<Interval>& missing, const std::vector<Handle*>& donors)
      KEEL_REQUIRES(mutex_);
  Status OverLimit(std::uint64_t more) const;
  Status FillInterval(Arena& arena, Interval interval, From from, std::vector<Handle*>& donors,
                      std::vector<Handle*>& filled) KEEL_REQUIRES(mutex_);
  bool MovesTooMuch() const KEEL_REQUIRES(mutex_);
  // Requests for which memory moved, less one for each time in which one may.
  double RecentMoves() const KEEL_REQUIRES(mutex_);
  // Takes free handles out of their arenas, for `missing`: at most as many bytes as that.
  void TakeDonors(const Arena& arena, const std::vector<Interval>& missing,
                  std::vector<Handle*>& donors) KEEL_REQUIRES(mutex_);
  // The handles wholly inside free blocks of an arena that were freed at `epoch` or before.
  std::vector<Candidate> CandidatesOf(Arena& from, std::uint64_t epoch)
      KEEL_REQUIRES(mutex_, from.mutex);
  // Takes one out of its arena; its mapping becomes a ghost. Of several in one block, the highest
  // address first.
  void Detach(Arena& from, const Candidate& candidate) KEEL_REQUIRES(mutex_, from.mutex);
  // Undoes Detach where the handle found no place.
  void PutBack(Handle* handle) KEEL_REQUIRES(mutex_);
  Status MapAt(Handle* handle, Arena& arena, std::uint64_t address) KEEL_REQUIRES(mutex_);
  Result<Handle*> Create(std::uint64_t size) KEEL_REQUIRES(mutex_);
  Status UnmapGhosts(std::uint64_t begin, std::uint64_t end) KEEL_REQUIRES(mutex_);
  Status UnmapGhost(std::map<std::uint64_t, Extent>::iterator extent) KEEL_REQUIRES(mutex_);
  void LimitGhosts() KEEL_REQUIRES(mutex_);
  // Gives a detached handle back to the device.
  Status Release(Handle* handle) KEEL_REQUIRES(mutex_);
  // Gives back those of the arena that nothing uses any more and `choose` picks. It is asked once
  // about each, by address downwards.
  Status ReleaseChosen(Arena& from, const std::function<bool(const Candidate&)>& choose)
      KEEL_REQUIRES(mutex_);
  Candidate SmallestLargerThan(std::uint64_t size, Arena& from, std::uint64_t epoch)
      KEEL_REQUIRES(mutex_, from.mutex);
  // Gives back the smallest free handle that is larger than `size`; false: there is none.
  bool ReleaseLargerThan(std::uint64_t size) KEEL_REQUIRES(mutex_);
  std::uint64_t NewHandleSize(const Arena& arena, std::uint64_t size) const KEEL_REQUIRES(mutex_);
  // Whether nothing can touch the handle through any of its ghosts.
  bool Idle(const Handle& handle) KEEL_REQUIRES(mutex_);
  const hal::AddressRange& RangeOf(std::uint64_t address) const KEEL_REQUIRES(mutex_);
  std::int64_t Now() const;
  // Runs a call of the driver and adds its time to what was spent.
  template <class Call>
  auto Timed(Call call) KEEL_REQUIRES(mutex_) {
    const std::int64_t before = Now();
    auto result = call();
    stats_.driver_ns += Now() - before;
    return result;
  }

  const std::shared_ptr<hal::Device> device_;
  AddressIndex& index_;
  MemoryLimit& limit_;
  const ListArenas arenas_;
  SegmentListener& listener_;
  const ExpandableOptions options_;
  const std::uint64_t granule_;
  const std::uint64_t handle_size_;
  const std::uint64_t small_handle_size_;  // the largest, for small requests
  const std::int64_t began_ns_;

  Mutex mutex_;
  std::vector<Range> ranges_ KEEL_GUARDED_BY(mutex_);
  std::map<Handle*, std::unique_ptr<Handle>> handles_ KEEL_GUARDED_BY(mutex_);
  std::map<std::uint64_t, Extent> extents_ KEEL_GUARDED_BY(mutex_);  // by address
  std::vector<hal::AccessGrant> grants_ KEEL_GUARDED_BY(mutex_);     // the owner and its peers
  std::uint32_t ghosts_ KEEL_GUARDED_BY(mutex_) = 0;
  // To create and map one: an average.
  std::int64_t handle_cost_ns_ KEEL_GUARDED_BY(mutex_) = 40'000;
  double recent_moves_ KEEL_GUARDED_BY(mutex_) = 0;  // as of `moved_at_ns_`
  std::int64_t moved_at_ns_ KEEL_GUARDED_BY(mutex_) = 0;
  Stats stats_ KEEL_GUARDED_BY(mutex_);
};

}  // namespace keel::memory
