// TaskKeys: which tasks are under way, by small numbers that are used again.
//
// A key is a slot and how often the slot was taken. Of a task that is done it is known for ever
// that it is, in constant time, and as many slots exist as there were tasks under way at one time.
// So whoever keeps keys (dependencies.h, scheduler.h) may keep them for longer than the tasks.
//
// Not thread-safe: the owner has a lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace keel::task {

// 0 is no task.
using TaskKey = std::uint64_t;

class TaskKeys {
 public:
  static std::uint32_t SlotOf(TaskKey key) { return static_cast<std::uint32_t>(key); }

  // Amortised constant time. The lowest slots are not preferred; the last one released is.
  TaskKey Take() {
    if (free_count_ == 0) [[unlikely]] {
      Grow();
    }
    const std::uint32_t slot = free_[--free_count_];
    // Odd while it is taken.
    return TaskKey{++turns_[slot]} << 32 | slot;
  }
  // Precondition: alive(key).
  void Release(TaskKey key) {
    ++turns_[SlotOf(key)];
    free_[free_count_++] = SlotOf(key);
  }
  bool alive(TaskKey key) const {
    const std::uint32_t slot = SlotOf(key);
    return slot < turns_.size() && turns_[slot] == key >> 32 && (key >> 32) % 2 == 1;
  }
  std::size_t size() const { return turns_.size() - free_count_; }
  // Slots that were ever in use; slots are below it.
  std::size_t slots() const { return turns_.size(); }

 private:
  // One more slot.
  void Grow();

  std::vector<std::uint32_t> turns_;
  std::vector<std::uint32_t> free_;  // room for all; the first free_count_ of them are slots
  std::size_t free_count_ = 0;
};

}  // namespace keel::task
