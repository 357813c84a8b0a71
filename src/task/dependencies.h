// Dependencies: which earlier tasks a task must wait for, by the bytes that they touch.
//
// A task runs after every earlier one that touches a byte which it touches, if one of the two
// writes it. Bytes belong to a space: the host's memory, or that of a worker, or of several which
// share it. Spaces never mix, so that equal addresses of two workers are different bytes.
//
// For each space there is an ordered map of disjoint segments, each with its last writer and the
// readers since. A range costs O(log n + what it touches). Of what is found only tasks that are
// still under way count. Those that are done are forgotten by and by: a list of readers, and the
// map, are swept when they have doubled since the last time, so that the memory follows the tasks
// under way, and not those that ever were. Segments that were one share the readers from before
// they were split, so that a split costs no copy, and who touches several of them sees these once.
//
// Owns no task. Not thread-safe: the owner has a lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "task/task_keys.h"

namespace keel::task {

// 0 is the host, 1 + n worker n and those that share its memory.
using Space = std::uint32_t;

// What a task does with the bytes [begin, end).
struct Touch {
  Space space = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool writes = false;
};

class Dependencies {
 public:
  // `keys` says who is under way, and must outlive this.
  Dependencies(const TaskKeys& keys, std::size_t spaces) : keys_(keys), spaces_(spaces) {}

  // Adds a task that comes after all that were added before, and sets `waits_for` to those that it
  // must wait for: in no order, each once, and never itself. Empty ranges touch nothing.
  void Add(TaskKey task, std::span<const Touch> touches, std::vector<TaskKey>& waits_for);
  // Sets `tasks` to what a task that did `touch` would wait for.
  void Find(const Touch& touch, std::vector<TaskKey>& tasks) const;
  // Forgets everything about a space, whose memory is gone. Tasks that touched it are no longer
  // found by it.
  void Clear(Space space) { spaces_[space].segments.clear(); }

  // For tests: how many segments there are, and how many keys in them.
  std::size_t segments() const;
  std::size_t entries() const;

 private:
  // Readers that several segments have in common, after those of `before`.
  struct Common {
    ~Common();  // a long chain without recursion
    std::vector<TaskKey> readers;
    std::shared_ptr<Common> before;
    std::uint64_t pass = 0;  // the last one that came by
  };
  struct Segment {
    std::uint64_t end = 0;
    TaskKey writer = 0;
    std::vector<TaskKey> readers;    // of this one alone
    std::shared_ptr<Common> common;  // earlier ones
    std::size_t sweep_at = kFirstSweep;
  };
  using Segments = std::map<std::uint64_t, Segment>;
  struct SpaceState {
    Segments segments;
    std::size_t sweep_at = kFirstSweep;
  };
  static constexpr std::size_t kFirstSweep = 16;

  // Sees to it that no segment lies on both sides of `at`.
  static void SplitAt(Segments& segments, std::uint64_t at);
  // One pass sees each list of common readers once.
  void Collect(const Segment& segment, bool writes, std::vector<TaskKey>& tasks,
               std::uint64_t pass) const;
  void Read(Segments& segments, TaskKey task, const Touch& touch, std::vector<TaskKey>& waits_for);
  void Write(Segments& segments, TaskKey task, const Touch& touch, std::vector<TaskKey>& waits_for);
  void AddReader(Segment& segment, TaskKey task) const;
  void Sweep(SpaceState& space) const;
  void EraseDone(std::vector<TaskKey>& tasks) const;

  const TaskKeys& keys_;
  mutable std::uint64_t passes_ = 0;
  std::vector<SpaceState> spaces_;
};

// The place in `touches` of a range that overlaps one of another group (`groups[i]` is the group of
// touches[i]) in the same space, where one of the two writes; touches.size() if there is none.
// O(n log n).
std::size_t FindConflict(std::span<const Touch> touches, std::span<const std::size_t> groups);

}  // namespace keel::task
