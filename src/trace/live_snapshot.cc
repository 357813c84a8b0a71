#include "keel/trace/live_snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/ranges.h"
#include "keel/base/version.h"
#include "keel/memory/process_memory.h"

namespace keel::trace {
namespace {

using memory::AllocatorConfig;
using memory::BlockSnapshot;
using memory::DeviceAllocator;
using telemetry::EventAction;
using telemetry::EventLog;

Action ActionOf(EventAction action) {
  switch (action) {
    case EventAction::kAlloc:
      return Action::kAlloc;
    case EventAction::kFreeRequested:
      return Action::kFreeRequested;
    case EventAction::kFreeCompleted:
      return Action::kFreeCompleted;
    case EventAction::kSegmentAlloc:
      return Action::kSegmentAlloc;
    case EventAction::kSegmentFree:
      return Action::kSegmentFree;
    case EventAction::kSegmentMap:
      return Action::kSegmentMap;
    case EventAction::kSegmentUnmap:
      return Action::kSegmentUnmap;
    case EventAction::kOom:
      return Action::kOutOfMemory;
    case EventAction::kSnapshot:
      return Action::kSnapshot;
  }
  return Action::kSnapshot;
}

BlockState StateOf(BlockSnapshot::State state) {
  switch (state) {
    case BlockSnapshot::State::kAllocated:
      return BlockState::kAllocated;
    case BlockSnapshot::State::kPendingFree:
      return BlockState::kPendingFree;
    case BlockSnapshot::State::kFree:
      return BlockState::kInactive;
  }
  return BlockState::kInactive;
}

// The times of events are exact to this.
constexpr std::int64_t kClockNs = 1000;

// From the log's clock to that of the wall.
std::int64_t WallOffset() {
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(wall).count() - EventLog::Now();
}

std::vector<Setting> SettingsOf(const DeviceAllocator& allocator) {
  const AllocatorConfig& config = allocator.config();
  std::vector<Setting> divisions;
  divisions.reserve(config.roundup_power2_divisions.size());
  for (std::size_t i = 0; i < config.roundup_power2_divisions.size(); ++i) {
    divisions.push_back({.name = std::to_string(std::uint64_t{1} << i),
                         .value = std::int64_t{config.roundup_power2_divisions[i]}});
  }
  const std::int64_t split = config.max_split_size == memory::kUnlimited
                                 ? -1
                                 : static_cast<std::int64_t>(config.max_split_size.count());
  return {{.name = "KEEL_ALLOC_CONF", .value = config.ToString()},
          {.name = "max_split_size", .value = split},
          {.name = "garbage_collection_threshold", .value = config.garbage_collection_threshold},
          {.name = "expandable_segments", .value = config.expandable_segments},
          {.name = "roundup_power2_divisions", .value = std::move(divisions)},
          {.name = "limit", .value = static_cast<std::int64_t>(allocator.limit().count())}};
}

// One device of the snapshot that is being made.
struct Device {
  int number = 0;
  hal::DeviceId id = hal::DeviceId::kNone;
  std::string name;
  bool marked = false;  // its history has been read to the end
  // The newest event that made a block, or a piece of a segment, at an address.
  std::unordered_map<std::uint64_t, telemetry::MemoryEvent> blocks;
  std::unordered_map<std::uint64_t, telemetry::StackId> segments;
};

class Taker {
 public:
  explicit Taker(EventLog& log) : log_(log), interner_(snapshot_) {}

  Result<Snapshot> Take(std::span<DeviceAllocator* const> allocators, std::size_t newest) {
    std::vector<memory::MemorySnapshot> held;
    for (DeviceAllocator* const allocator : allocators) {
      if (allocator == nullptr) return InvalidArgument("a snapshot of no allocator");
      held.push_back(allocator->Snapshot());
      if (held.back().device == hal::DeviceId::kNone) {
        return FailedPrecondition("device memory cannot be looked at in a forked child");
      }
      KEEL_TRY(AddDevice(*allocator->device()));
    }
    const std::int64_t looked_ns = EventLog::Now();
    for (const auto& [number, device] : devices_) {
      log_.Record({.action = EventAction::kSnapshot, .device = device.id});
    }
    ReadHistory(newest, looked_ns);
    for (const memory::MemorySnapshot& each : held) AddSegments(each);
    std::sort(snapshot_.segments.begin(), snapshot_.segments.end(),
              [](const Segment& a, const Segment& b) {
                return std::pair(a.device, a.address) < std::pair(b.device, b.address);
              });
    AddSettings(allocators);
    return std::move(snapshot_);
  }

 private:
  Status AddDevice(const hal::Device& device) {
    const hal::DeviceInfo& info = device.info();
    const std::string name = fmt::format("{}:{}", info.driver, info.ordinal);
    const auto [known, is_new] = devices_.emplace(
        info.ordinal, Device{.number = info.ordinal, .id = device.id(), .name = name});
    if (!is_new && known->second.id != device.id()) {
      return InvalidArgument(
          fmt::format("devices {} and {} have the same number; take a snapshot of each",
                      known->second.name, name));
    }
    if (info.ordinal < 0 || info.ordinal >= kMaxDevices) {
      return InvalidArgument(fmt::format("device {}: the number is out of range", name));
    }
    return OkStatus();
  }

  Device* Find(hal::DeviceId id) {
    for (auto& [number, device] : devices_) {
      if (device.id == id) return &device;
    }
    return nullptr;
  }

  // Up to the mark that was made after the look at the segments.
  void ReadHistory(std::size_t newest, std::int64_t looked_ns) {
    if (!devices_.empty()) {
      snapshot_.devices.resize(static_cast<std::size_t>(devices_.rbegin()->first) + 1);
    }
    const std::int64_t offset = WallOffset();
    for (const telemetry::MemoryEvent& event : log_.Read(newest)) {
      Device* const device = Find(event.device);
      if (device == nullptr || device->marked) continue;
      device->marked =
          event.action == EventAction::kSnapshot && event.time_ns >= looked_ns - kClockNs;
      if (event.action == EventAction::kAlloc) {
        device->blocks[event.address.value()] = event;
      } else if (event.action == EventAction::kSegmentAlloc ||
                 event.action == EventAction::kSegmentMap) {
        device->segments[event.address.value()] = event.stack;
      }
      snapshot_.devices[static_cast<std::size_t>(device->number)].push_back(
          {.address = event.address.value(),
           .size = event.size.count(),
           .stream = event.stream,
           .time_us = (event.time_ns + offset) / 1000,
           .stack = StackOf(event.stack),
           .tag = interner_.Tag(telemetry::TagName(event.tag)),
           .action = ActionOf(event.action)});
    }
  }

  void AddSegments(const memory::MemorySnapshot& held) {
    const Device& device = *Find(held.device);
    for (const memory::SegmentSnapshot& from : held.segments) {
      Segment segment{.device = device.number,
                      .address = from.address.value(),
                      .total_size = from.size.count(),
                      .stream = from.stream.value,
                      .pool = {.owner = 0, .number = from.pool},
                      .is_small = from.kind == telemetry::Pool::kSmall,
                      .is_expandable = from.expandable};
      if (const auto made = device.segments.find(segment.address); made != device.segments.end()) {
        segment.stack = StackOf(made->second);
      }
      segment.blocks.reserve(from.blocks.size());
      for (const BlockSnapshot& block : from.blocks) AddBlock(device, block, segment);
      snapshot_.segments.push_back(std::move(segment));
    }
  }

  void AddBlock(const Device& device, const BlockSnapshot& from, Segment& segment) {
    Block block{.address = from.address.value(),
                .size = from.size.count(),
                .requested_size = from.requested.count(),
                .state = StateOf(from.state),
                .tag = interner_.Tag(telemetry::TagName(from.tag))};
    if (block.state != BlockState::kInactive) {
      // The size tells whether it is this one, or one that came to the address since.
      const auto made = device.blocks.find(block.address);
      if (made != device.blocks.end() && made->second.size == from.requested) {
        block.stack = StackOf(made->second.stack);
      }
      segment.active_size += block.size;
      segment.requested_size += block.requested_size;
    }
    if (block.state == BlockState::kAllocated) segment.allocated_size += block.size;
    segment.blocks.push_back(block);
  }

  void AddSettings(std::span<DeviceAllocator* const> allocators) {
    snapshot_.settings.push_back({.name = "keel_version", .value = KEEL_VERSION_STRING});
    if (allocators.empty()) return;
    std::vector<Setting> first = SettingsOf(*allocators.front());
    const bool alike =
        std::all_of(allocators.begin(), allocators.end(),
                    [&](const DeviceAllocator* each) { return SettingsOf(*each) == first; });
    if (alike) {
      std::move(first.begin(), first.end(), std::back_inserter(snapshot_.settings));
      return;
    }
    for (const DeviceAllocator* const each : allocators) {
      snapshot_.settings.push_back(
          {.name = devices_.at(each->device()->info().ordinal).name, .value = SettingsOf(*each)});
    }
  }

  std::uint32_t StackOf(telemetry::StackId id) {
    if (id == telemetry::StackId::kNone) return 0;
    const auto [known, is_new] = stacks_.emplace(id, 0);
    if (!is_new) return known->second;
    std::vector<std::uint32_t> frames;
    for (const telemetry::Frame& frame : telemetry::ReadStack(id)) {
      frames.push_back(interner_.Frame(frame.function.empty() ? "??" : frame.function,
                                       frame.object.empty()
                                           ? fmt::format("{:#x}", frame.address)
                                           : fmt::format("{}+{:#x}", frame.object, frame.offset),
                                       0));
    }
    return known->second = interner_.Stack(frames);
  }

  EventLog& log_;
  Snapshot snapshot_;
  SnapshotInterner interner_;
  std::map<int, Device> devices_;
  std::unordered_map<telemetry::StackId, std::uint32_t> stacks_;
};

}  // namespace

Result<Snapshot> TakeSnapshot(std::span<DeviceAllocator* const> allocators,
                              const LiveSnapshotOptions& options) {
  const ScopedRange range("take a snapshot");
  Taker taker(options.log != nullptr ? *options.log : EventLog::Global());
  return taker.Take(allocators, options.events);
}

Result<Snapshot> TakeProcessSnapshot(const LiveSnapshotOptions& options) {
  KEEL_ASSIGN(const auto sets, memory::ProcessMemory::Global().List());
  std::vector<DeviceAllocator*> allocators;
  allocators.reserve(sets.size());
  for (const auto& set : sets) allocators.push_back(&set->allocator());
  return TakeSnapshot(allocators, options);
}

}  // namespace keel::trace
