// Snapshot: what an allocator held at one moment, and what it did before, event by event.
//
// The one model of this layer: what Keel's own allocators report, what every reader of another
// tool's file gives (snapshot_file.h), what the writers write, a summary counts (summary.h) and a
// replay runs. A recording without segments (a log of allocations) or without events (a picture of
// the moment) is a Snapshot with that part empty.
//
// A history has millions of events, so an event is small: what repeats, call stacks and tags, is
// kept once in a table and referred to by its index. Index 0 of both means "none". Whoever makes a
// Snapshot fills the tables through SnapshotInterner, which also keeps them free of duplicates.
//
// Plain values; as for any value, several threads may read one that nobody changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "keel/base/export.h"
#include "keel/base/status.h"

namespace keel::trace {

enum class Action : std::uint8_t {
  kAlloc,
  kFreeRequested,  // the program gave it back
  kFreeCompleted,  // and no work on other streams uses it any more
  kSegmentAlloc,   // the allocator took memory from the device, or gave it back
  kSegmentFree,
  kSegmentMap,  // the same in parts of an expandable segment
  kSegmentUnmap,
  kSnapshot,
  kOutOfMemory,
};
// "alloc", "free_requested", ...: as in PyTorch's files.
KEEL_EXPORT std::string_view ActionName(Action action);
KEEL_EXPORT std::optional<Action> FindAction(std::string_view name);

struct Event {
  std::uint64_t address = 0;  // of kOutOfMemory: how many bytes the device had free
  std::uint64_t size = 0;     // as the program asked for it, not rounded
  std::uint64_t stream = 0;
  std::int64_t time_us = 0;
  std::uint32_t stack = 0;  // in Snapshot::stacks
  std::uint32_t tag = 0;    // in Snapshot::tags
  Action action = Action::kAlloc;

  friend bool operator==(const Event&, const Event&) = default;
};

enum class BlockState : std::uint8_t {
  kAllocated,
  kPendingFree,  // given back, but work on other streams may still use it
  kInactive,
};
// "active_allocated", "active_pending_free", "inactive".
KEEL_EXPORT std::string_view BlockStateName(BlockState state);
KEEL_EXPORT std::optional<BlockState> FindBlockState(std::string_view name);

struct Block {
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::uint64_t requested_size = 0;
  BlockState state = BlockState::kInactive;
  std::uint32_t stack = 0;
  std::uint32_t tag = 0;

  friend bool operator==(const Block&, const Block&) = default;
};

// Which pool a segment belongs to. The pair {0, 0} is the default one.
struct PoolId {
  std::uint64_t owner = 0;
  std::uint64_t number = 0;

  friend bool operator==(const PoolId&, const PoolId&) = default;
};

struct Segment {
  int device = 0;
  std::uint64_t address = 0;
  std::uint64_t total_size = 0;
  std::uint64_t allocated_size = 0;  // of blocks in use
  std::uint64_t active_size = 0;     // of those, and of blocks that wait to become free
  std::uint64_t requested_size = 0;  // what the program asked for in the active ones
  std::uint64_t stream = 0;
  PoolId pool;
  std::uint32_t stack = 0;
  bool is_small = false;
  bool is_expandable = false;
  std::vector<Block> blocks;  // in order of address, without gaps: they tile the segment

  friend bool operator==(const Segment&, const Segment&) = default;
};

struct Frame {
  std::string function;
  std::string file;
  std::int64_t line = 0;

  friend bool operator==(const Frame&, const Frame&) = default;
};

// The start or the end of a phase that the program named.
struct Annotation {
  std::string name;
  bool starts = true;
  int device = 0;
  std::int64_t time_us = 0;

  friend bool operator==(const Annotation&, const Annotation&) = default;
};

// One setting of the allocator that was recorded.
struct Setting {
  std::string name;
  std::variant<bool, std::int64_t, double, std::string, std::vector<Setting>> value;

  friend bool operator==(const Setting&, const Setting&) = default;
};

struct Snapshot {
  std::vector<Segment> segments;            // in order of address
  std::vector<std::vector<Event>> devices;  // by the device's number, in order of time
  std::vector<Annotation> annotations;
  std::vector<Setting> settings;
  std::vector<std::string> tags = {""};
  std::vector<Frame> frames;
  std::vector<std::vector<std::uint32_t>> stacks = {{}};  // of frames, the innermost first

  std::size_t event_count() const {
    std::size_t count = 0;
    for (const std::vector<Event>& events : devices) count += events.size();
    return count;
  }

  friend bool operator==(const Snapshot&, const Snapshot&) = default;
};

// Devices are numbered below this, so that a number in a file cannot ask for memory.
inline constexpr int kMaxDevices = 1024;

// The configuration string of the allocator that was recorded ("expandable_segments:True"), in
// PyTorch's language; empty if it had its defaults, or is unknown.
KEEL_EXPORT std::string_view Configuration(const Snapshot& snapshot);

// kInvalidArgument names the first thing that breaks what is promised above: an index outside its
// table, a device that cannot be, blocks that do not tile their segment.
KEEL_EXPORT Status CheckSnapshot(const Snapshot& snapshot);

// Fills the tables of a snapshot. What is in them when it is made is found again. Not thread-safe;
// the snapshot must outlive it and nobody else may change the tables meanwhile. A lookup costs a
// hash of what is looked up.
class KEEL_EXPORT SnapshotInterner {
 public:
  explicit SnapshotInterner(Snapshot& snapshot);
  ~SnapshotInterner();
  SnapshotInterner(const SnapshotInterner&) = delete;
  SnapshotInterner& operator=(const SnapshotInterner&) = delete;

  std::uint32_t Tag(std::string_view tag);
  std::uint32_t Frame(std::string_view function, std::string_view file, std::int64_t line);
  // Of frames, by what Frame returned.
  std::uint32_t Stack(std::span<const std::uint32_t> frames);

 private:
  class Index;
  Snapshot& snapshot_;
  std::unique_ptr<Index> tags_, frames_, stacks_;
};

}  // namespace keel::trace
