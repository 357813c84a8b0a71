#include "keel/trace/snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <unordered_map>
#include <utility>

#include "keel/base/result.h"

namespace keel::trace {
namespace {

constexpr std::array<std::pair<std::string_view, Action>, 9> kActions = {{
    {"alloc", Action::kAlloc},
    {"free_requested", Action::kFreeRequested},
    {"free_completed", Action::kFreeCompleted},
    {"segment_alloc", Action::kSegmentAlloc},
    {"segment_free", Action::kSegmentFree},
    {"segment_map", Action::kSegmentMap},
    {"segment_unmap", Action::kSegmentUnmap},
    {"snapshot", Action::kSnapshot},
    {"oom", Action::kOutOfMemory},
}};

// The first name of a state is the one that is written; PyTorch has used both for the second.
constexpr std::array<std::pair<std::string_view, BlockState>, 4> kStates = {{
    {"active_allocated", BlockState::kAllocated},
    {"active_pending_free", BlockState::kPendingFree},
    {"active_awaiting_free", BlockState::kPendingFree},
    {"inactive", BlockState::kInactive},
}};

template <class Table, class Enum>
std::string_view NameIn(const Table& table, Enum wanted) {
  for (const auto& [name, value] : table) {
    if (value == wanted) return name;
  }
  return "unknown";
}

template <class Enum, class Table>
std::optional<Enum> FindIn(const Table& table, std::string_view wanted) {
  for (const auto& [name, value] : table) {
    if (name == wanted) return value;
  }
  return std::nullopt;
}

Status CheckOrigin(const Snapshot& snapshot, std::uint32_t stack, std::uint32_t tag) {
  if (stack >= snapshot.stacks.size()) {
    return InvalidArgument(fmt::format("there is no stack {}", stack));
  }
  if (tag >= snapshot.tags.size()) return InvalidArgument(fmt::format("there is no tag {}", tag));
  return OkStatus();
}

Status CheckSegment(const Snapshot& snapshot, const Segment& segment) {
  if (segment.device < 0 || segment.device >= kMaxDevices) {
    return InvalidArgument(fmt::format("there is no device {}", segment.device));
  }
  KEEL_TRY(CheckOrigin(snapshot, segment.stack, 0));
  std::uint64_t covered = 0;
  for (const Block& block : segment.blocks) {
    KEEL_TRY(CheckOrigin(snapshot, block.stack, block.tag));
    if (block.address - segment.address != covered || block.size > segment.total_size - covered) {
      return InvalidArgument(fmt::format(
          "its blocks do not tile it: {} bytes at {:#x}, where {:#x} and at most {} are due",
          block.size, block.address, segment.address + covered, segment.total_size - covered));
    }
    covered += block.size;
  }
  if (covered != segment.total_size) {
    return InvalidArgument(fmt::format("its blocks do not tile it: they cover {} of {} bytes",
                                       covered, segment.total_size));
  }
  return OkStatus();
}

void Combine(std::size_t& hash, std::size_t more) {
  hash ^= more + 0x9e3779b97f4a7c15 + (hash << 6) + (hash >> 2);
}

std::size_t HashOf(std::string_view text) { return std::hash<std::string_view>()(text); }

std::size_t HashOf(std::string_view function, std::string_view file, std::int64_t line) {
  std::size_t hash = HashOf(function);
  Combine(hash, HashOf(file));
  Combine(hash, std::hash<std::int64_t>()(line));
  return hash;
}

std::size_t HashOf(std::span<const std::uint32_t> frames) {
  std::size_t hash = frames.size();
  for (const std::uint32_t frame : frames) Combine(hash, frame);
  return hash;
}

}  // namespace

std::string_view ActionName(Action action) { return NameIn(kActions, action); }
std::optional<Action> FindAction(std::string_view name) { return FindIn<Action>(kActions, name); }
std::string_view BlockStateName(BlockState state) { return NameIn(kStates, state); }
std::optional<BlockState> FindBlockState(std::string_view name) {
  return FindIn<BlockState>(kStates, name);
}

std::string_view Configuration(const Snapshot& snapshot) {
  for (const std::string_view name : {"KEEL_ALLOC_CONF", "PYTORCH_ALLOC_CONF",
                                      "PYTORCH_CUDA_ALLOC_CONF"}) {  // vendor-ok: PyTorch's name
    for (const Setting& setting : snapshot.settings) {
      const auto* text = std::get_if<std::string>(&setting.value);
      if (setting.name == name && text != nullptr && !text->empty()) return *text;
    }
  }
  return "";
}

Status CheckSnapshot(const Snapshot& snapshot) {
  if (snapshot.devices.size() > static_cast<std::size_t>(kMaxDevices)) {
    return InvalidArgument(fmt::format("{} devices are too many", snapshot.devices.size()));
  }
  for (std::size_t i = 0; i < snapshot.stacks.size(); ++i) {
    for (const std::uint32_t frame : snapshot.stacks[i]) {
      if (frame >= snapshot.frames.size()) {
        return InvalidArgument(fmt::format("stack {}: there is no frame {}", i, frame));
      }
    }
  }
  for (std::size_t i = 0; i < snapshot.segments.size(); ++i) {
    KEEL_TRY(CheckSegment(snapshot, snapshot.segments[i]).Annotate(fmt::format("segment {}", i)));
  }
  for (std::size_t device = 0; device < snapshot.devices.size(); ++device) {
    const std::vector<Event>& events = snapshot.devices[device];
    for (std::size_t i = 0; i < events.size(); ++i) {
      if (Status status = CheckOrigin(snapshot, events[i].stack, events[i].tag); !status.ok()) {
        return std::move(status).Annotate(fmt::format("device {}, event {}", device, i));
      }
    }
  }
  return OkStatus();
}

// Indices of a table, found by the hash of what is there.
class SnapshotInterner::Index {
 public:
  // The one of those with this hash for which `is_it(index)`, or `next` after `add()`.
  template <class IsIt, class Add>
  std::uint32_t FindOrAdd(std::size_t hash, std::size_t next, IsIt is_it, Add add) {
    const auto [first, last] = indices_.equal_range(hash);
    for (auto it = first; it != last; ++it) {
      if (is_it(it->second)) return it->second;
    }
    add();
    Insert(hash, next);
    return static_cast<std::uint32_t>(next);
  }

  void Insert(std::size_t hash, std::size_t index) {
    indices_.emplace(hash, static_cast<std::uint32_t>(index));
  }

 private:
  std::unordered_multimap<std::size_t, std::uint32_t> indices_;
};

SnapshotInterner::SnapshotInterner(Snapshot& snapshot)
    : snapshot_(snapshot),
      tags_(std::make_unique<Index>()),
      frames_(std::make_unique<Index>()),
      stacks_(std::make_unique<Index>()) {
  for (std::size_t i = 0; i < snapshot.tags.size(); ++i) tags_->Insert(HashOf(snapshot.tags[i]), i);
  for (std::size_t i = 0; i < snapshot.frames.size(); ++i) {
    const trace::Frame& frame = snapshot.frames[i];
    frames_->Insert(HashOf(frame.function, frame.file, frame.line), i);
  }
  for (std::size_t i = 0; i < snapshot.stacks.size(); ++i) {
    stacks_->Insert(HashOf(std::span<const std::uint32_t>(snapshot.stacks[i])), i);
  }
}

SnapshotInterner::~SnapshotInterner() = default;

std::uint32_t SnapshotInterner::Tag(std::string_view tag) {
  if (tag.empty()) return 0;
  return tags_->FindOrAdd(
      HashOf(tag), snapshot_.tags.size(), [&](std::uint32_t i) { return snapshot_.tags[i] == tag; },
      [&] { snapshot_.tags.emplace_back(tag); });
}

std::uint32_t SnapshotInterner::Frame(std::string_view function, std::string_view file,
                                      std::int64_t line) {
  return frames_->FindOrAdd(
      HashOf(function, file, line), snapshot_.frames.size(),
      [&](std::uint32_t i) {
        const trace::Frame& known = snapshot_.frames[i];
        return known.line == line && known.function == function && known.file == file;
      },
      [&] { snapshot_.frames.push_back({std::string(function), std::string(file), line}); });
}

std::uint32_t SnapshotInterner::Stack(std::span<const std::uint32_t> frames) {
  if (frames.empty()) return 0;
  return stacks_->FindOrAdd(
      HashOf(frames), snapshot_.stacks.size(),
      [&](std::uint32_t i) { return std::ranges::equal(snapshot_.stacks[i], frames); },
      [&] { snapshot_.stacks.emplace_back(frames.begin(), frames.end()); });
}

}  // namespace keel::trace
