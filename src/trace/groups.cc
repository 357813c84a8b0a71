#include "keel/trace/groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "keel/base/bytes.h"

namespace keel::trace {
namespace {

bool IsPython(const Frame& frame) { return frame.file.ends_with(".py"); }

// Of a library that is installed, as opposed to the program's own.
bool IsInstalled(const Frame& frame) {
  return frame.file.find("/site-packages/") != std::string::npos ||
         frame.file.find("/dist-packages/") != std::string::npos ||
         frame.file.find("/lib/python") != std::string::npos;
}

bool HasName(const Frame& frame) { return !frame.function.empty() && frame.function != "??"; }

std::string_view BaseName(std::string_view path) {
  const std::size_t slash = path.find_last_of('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string FrameName(const Frame& frame) {
  const std::string_view file = frame.file == "??" ? "" : BaseName(frame.file);
  if (file.empty()) return frame.function.empty() ? "(unknown)" : frame.function;
  std::string name(file);
  if (frame.line > 0) name += fmt::format(":{}", frame.line);
  if (HasName(frame)) name += " " + frame.function;
  return name;
}

std::string SizeName(std::uint64_t size) {
  std::string name = ToString(Bytes(size));
  const auto parsed = ParseBytes(name);
  if (parsed.ok() && parsed->count() == size) return name;
  return fmt::format("{} ({} bytes)", name, size);
}

}  // namespace

std::string_view GroupKindName(GroupKind kind) {
  switch (kind) {
    case GroupKind::kFrame:
      return "frame";
    case GroupKind::kTag:
      return "tag";
    case GroupKind::kSize:
      return "size";
  }
  return "unknown";
}

Grouping::Grouping(const Snapshot& snapshot)
    : snapshot_(&snapshot), frames_(snapshot.stacks.size(), kUnseen) {}

std::uint32_t Grouping::FrameOf(std::uint32_t stack) {
  if (stack >= frames_.size()) return kNoFrame;
  std::uint32_t& frame = frames_[stack];
  if (frame != kUnseen) return frame;
  frame = kNoFrame;
  int best = 0;
  for (const std::uint32_t candidate : snapshot_->stacks[stack]) {
    const Frame& each = snapshot_->frames[candidate];
    const int rank = IsPython(each) ? (IsInstalled(each) ? 2 : 3) : HasName(each) ? 1 : 0;
    if (rank > best) {
      best = rank;
      frame = candidate;
    }
  }
  return frame;
}

std::uint32_t Grouping::Find(const Allocation& allocation) {
  Key key{GroupKind::kSize, allocation.size};
  if (const std::uint32_t frame = FrameOf(allocation.stack); frame != kNoFrame) {
    key = {GroupKind::kFrame, frame};
  } else if (allocation.tag != 0) {
    key = {GroupKind::kTag, allocation.tag};
  }
  const auto [found, is_new] = numbers_.try_emplace(key, size());
  if (is_new) keys_.push_back(key);
  return found->second;
}

std::string Grouping::Name(std::uint32_t group) const {
  const Key& key = keys_[group];
  switch (key.kind) {
    case GroupKind::kFrame:
      return FrameName(snapshot_->frames[key.value]);
    case GroupKind::kTag:
      return snapshot_->tags[key.value];
    case GroupKind::kSize:
      return SizeName(key.value);
  }
  return {};
}

std::vector<GroupShare> GroupsAt(const Timeline& timeline, Moment moment, Grouping& grouping) {
  std::unordered_map<std::uint32_t, GroupShare> shares;
  for (const Allocation& allocation : timeline.allocations) {
    if (!allocation.live_at(moment)) continue;
    const std::uint32_t group = grouping.Find(allocation);
    GroupShare& share = shares.try_emplace(group, GroupShare{.group = group}).first->second;
    // What does not fit in 64 bits is cut, as everywhere.
    share.bytes =
        share.bytes > UINT64_MAX - allocation.size ? UINT64_MAX : share.bytes + allocation.size;
    ++share.blocks;
    share.largest = std::max(share.largest, allocation.size);
  }
  std::vector<GroupShare> sorted;
  sorted.reserve(shares.size());
  for (const auto& [group, share] : shares) sorted.push_back(share);
  std::sort(sorted.begin(), sorted.end(), [](const GroupShare& a, const GroupShare& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.group < b.group;
  });
  return sorted;
}

}  // namespace keel::trace
