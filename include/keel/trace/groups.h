// Groups: blocks by where they came from, so that thousands of them can be told in a few lines.
//
// A block belongs to the frame that tells most about it: the innermost one in the program's own
// Python files, else the innermost in any Python file, else the innermost that has a name. A block
// without a stack belongs to its tag, and one without either to its size.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "keel/base/export.h"
#include "keel/trace/snapshot.h"
#include "keel/trace/timeline.h"

namespace keel::trace {

enum class GroupKind : std::uint8_t { kFrame, kTag, kSize };
// "frame", "tag", "size".
KEEL_EXPORT std::string_view GroupKindName(GroupKind kind);

// Numbers groups in the order in which they are first asked for. Not thread-safe; the snapshot must
// outlive it, unchanged. A lookup is logarithmic in the groups.
class KEEL_EXPORT Grouping {
 public:
  explicit Grouping(const Snapshot& snapshot);

  std::uint32_t Find(const Allocation& allocation);

  std::uint32_t size() const { return static_cast<std::uint32_t>(keys_.size()); }
  GroupKind kind(std::uint32_t group) const { return keys_[group].kind; }
  // "model.py:42 forward"; the tag; "16 MiB", with the bytes where that is not exact.
  std::string Name(std::uint32_t group) const;

 private:
  struct Key {
    GroupKind kind = GroupKind::kSize;
    std::uint64_t value = 0;  // a frame's index, a tag's index, a size

    friend auto operator<=>(const Key&, const Key&) = default;
  };

  static constexpr std::uint32_t kNoFrame = UINT32_MAX;
  static constexpr std::uint32_t kUnseen = UINT32_MAX - 1;
  std::uint32_t FrameOf(std::uint32_t stack);

  const Snapshot* snapshot_;
  std::vector<std::uint32_t> frames_;  // by stack, as far as it was looked at
  std::vector<Key> keys_;
  std::map<Key, std::uint32_t> numbers_;
};

// A group's part of what is live at one moment.
struct GroupShare {
  std::uint32_t group = 0;
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
  std::uint64_t largest = 0;  // block

  friend bool operator==(const GroupShare&, const GroupShare&) = default;
};

// Largest first.
KEEL_EXPORT std::vector<GroupShare> GroupsAt(const Timeline& timeline, Moment moment,
                                             Grouping& grouping);

}  // namespace keel::trace
