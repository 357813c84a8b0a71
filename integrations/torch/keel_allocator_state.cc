// What KeelAllocator says about itself: statistics, snapshots, histories.
#include <c10/cuda/CUDAFunctions.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "keel_allocator.h"

namespace keel::torch {
namespace {

using Stat = c10::CachingAllocator::Stat;
using StatArray = c10::CachingAllocator::StatArray;
using StatType = c10::CachingAllocator::StatType;

Stat Translate(const telemetry::Stat& stat) {
  Stat out;
  out.current = stat.current;
  out.peak = stat.peak;
  out.allocated = stat.allocated;
  out.freed = stat.freed;
  return out;
}

StatArray Translate(const telemetry::PoolStat& stat) {
  StatArray out;
  out[static_cast<std::size_t>(StatType::AGGREGATE)] = Translate(stat.all);
  out[static_cast<std::size_t>(StatType::SMALL_POOL)] = Translate(stat.small_pool);
  out[static_cast<std::size_t>(StatType::LARGE_POOL)] = Translate(stat.large_pool);
  return out;
}

caching::TraceEntry::Action Translate(telemetry::EventAction action) {
  using Theirs = caching::TraceEntry::Action;
  using Ours = telemetry::EventAction;
  switch (action) {
    case Ours::kAlloc:
      return Theirs::ALLOC;
    case Ours::kFreeRequested:
      return Theirs::FREE_REQUESTED;
    case Ours::kFreeCompleted:
      return Theirs::FREE_COMPLETED;
    case Ours::kSegmentAlloc:
      return Theirs::SEGMENT_ALLOC;
    case Ours::kSegmentFree:
      return Theirs::SEGMENT_FREE;
    case Ours::kSegmentMap:
      return Theirs::SEGMENT_MAP;
    case Ours::kSegmentUnmap:
      return Theirs::SEGMENT_UNMAP;
    case Ours::kOom:
      return Theirs::OOM;
    case Ours::kSnapshot:
      return Theirs::SNAPSHOT;
  }
  return Theirs::SNAPSHOT;
}

std::int64_t WallMicroseconds() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

cudaStream_t StreamOf(std::uint64_t value) {
  const auto stream = reinterpret_cast<cudaStream_t>(value);  // NOLINT(performance-no-int-to-ptr)
  return stream == cudaStreamLegacy ? nullptr : stream;
}

// Releases before 2.10 have no such member.
template <class Entry>
void SetUserMetadata(Entry& entry, std::string metadata) {
  if constexpr (requires { entry.user_metadata_; }) entry.user_metadata_ = std::move(metadata);
}

}  // namespace

caching::DeviceStats KeelAllocator::getDeviceStats(c10::DeviceIndex index) {
  caching::DeviceStats out;
  Device* const device = Find(index);
  if (device == nullptr) return out;
  const telemetry::MemoryStats stats = device->allocator().Stats();
  out.allocation = Translate(stats.allocation);
  out.segment = Translate(stats.segment);
  out.active = Translate(stats.active);
  out.inactive_split = Translate(stats.inactive_split);
  out.allocated_bytes = Translate(stats.allocated_bytes);
  out.reserved_bytes = Translate(stats.reserved_bytes);
  out.active_bytes = Translate(stats.active_bytes);
  out.inactive_split_bytes = Translate(stats.inactive_split_bytes);
  out.requested_bytes = Translate(stats.requested_bytes);
  out.oversize_allocations = Translate(stats.oversize_allocations);
  out.oversize_segments = Translate(stats.oversize_segments);
  out.num_alloc_retries = stats.num_alloc_retries;
  out.num_ooms = stats.num_ooms;
  out.num_sync_all_streams = stats.num_sync_all_streams;
  out.num_device_alloc = stats.num_device_alloc;
  out.num_device_free = stats.num_device_free;
  out.max_split_size = stats.max_split_size;
  return out;
}

void KeelAllocator::resetAccumulatedStats(c10::DeviceIndex index) {
  if (Device* const device = Find(index)) device->allocator().ResetAccumulatedStats();
}

void KeelAllocator::resetPeakStats(c10::DeviceIndex index) {
  if (Device* const device = Find(index)) device->allocator().ResetPeakStats();
}

void KeelAllocator::cacheInfo(c10::DeviceIndex index, std::size_t* largest) {
  Device& device = Get(index);
  // What the device itself has free can be had in one piece.
  const auto info = device.hal()->GetMemoryInfo();
  if (info.ok()) *largest = std::max<std::size_t>(*largest, info->free.count());
  for (const auto& segment : device.allocator().Snapshot().segments) {
    for (const auto& block : segment.blocks) {
      if (block.state != memory::BlockSnapshot::State::kFree) continue;
      *largest = std::max<std::size_t>(*largest, block.size.count());
    }
  }
}

std::vector<caching::StreamSegmentSize> KeelAllocator::getExpandableSegmentSizes(
    c10::DeviceIndex index) {
  std::map<std::pair<std::uint64_t, bool>, std::size_t> sizes;
  if (Device* const device = Find(index)) {
    for (const auto& segment : device->allocator().Snapshot().segments) {
      if (!segment.expandable) continue;
      sizes[{segment.stream.value, segment.kind == telemetry::Pool::kSmall}] +=
          segment.size.count();
    }
  }
  std::vector<caching::StreamSegmentSize> out;
  for (const auto& [key, size] : sizes) out.emplace_back(StreamOf(key.first), key.second, size);
  return out;
}

bool KeelAllocator::checkPoolLiveAllocations(c10::DeviceIndex index, c10::MempoolId_t pool,
                                             const std::unordered_set<void*>& expected) {
  Device& device = Get(index);
  std::unordered_set<void*> live;
  for (const auto& segment : device.allocator().Snapshot().segments) {
    if (segment.pool == 0 || device.NameOf(segment.pool) != pool) continue;
    for (const auto& block : segment.blocks) {
      if (block.state != memory::BlockSnapshot::State::kAllocated) continue;
      live.insert(PointerTo(block.address));
    }
  }
  return live == expected;
}

// --- Snapshots --------------------------------------------------------------------------------

void KeelAllocator::AddSegments(c10::DeviceIndex index, c10::MempoolId_t pool,
                                caching::SnapshotInfo& info) {
  Device& device = *Find(index);
  for (const auto& segment : device.allocator().Snapshot().segments) {
    const c10::MempoolId_t owner = device.NameOf(segment.pool);
    if (pool != c10::MempoolId_t{0, 0} && owner != pool) continue;
    caching::SegmentInfo out;
    out.device = index;
    out.address = segment.address.value();
    out.total_size = segment.size.count();
    out.stream = StreamOf(segment.stream.value);
    out.is_large = segment.kind == telemetry::Pool::kLarge;
    out.is_expandable = segment.expandable;
    out.owner_private_pool_id = owner;
    for (const auto& block : segment.blocks) {
      caching::BlockInfo& kept = out.blocks.emplace_back();
      kept.size = block.size.count();
      kept.allocated = block.state == memory::BlockSnapshot::State::kAllocated;
      kept.active = block.state != memory::BlockSnapshot::State::kFree;
      if (kept.active) {
        kept.requested_size = block.requested.count();
        kept.context_when_allocated = contexts_.OfBlock(block.address.value());
        out.active_size += kept.size;
        out.requested_size += kept.requested_size;
      }
      if (kept.allocated) out.allocated_size += kept.size;
    }
    info.segments.push_back(std::move(out));
  }
}

void KeelAllocator::AddTraces(caching::SnapshotInfo& info) {
  std::map<hal::DeviceId, c10::DeviceIndex> indices;
  std::map<std::uint64_t, std::pair<std::uint64_t, c10::MempoolId_t>> pools;  // begin: end, owner
  for (int i = 0; i < device_count_; ++i) {
    const auto index = static_cast<c10::DeviceIndex>(i);
    if (Device* const device = Find(index)) indices.emplace(device->hal()->id(), index);
  }
  for (const auto& segment : info.segments) {
    pools[segment.address] = {segment.address + segment.total_size, segment.owner_private_pool_id};
  }
  // The log's clock is monotonic; PyTorch's is that of the wall.
  const std::int64_t offset = WallMicroseconds() - telemetry::EventLog::Now() / 1000;
  for (const telemetry::MemoryEvent& event : telemetry::EventLog::Global().Read()) {
    const auto device = indices.find(event.device);
    if (device == indices.end() || contexts_.Skips(event.action)) continue;
    c10::MempoolId_t owner{0, 0};
    auto segment = pools.upper_bound(event.address.value());
    if (segment != pools.begin() && event.address.value() < (--segment)->second.first) {
      owner = segment->second.second;
    }
    Context context = contexts_.Of(event.stack);
    caching::TraceEntry entry(Translate(event.action), device->second, event.address.value(),
                              event.size.count(), StreamOf(event.stream), owner, {},
                              std::move(context.frames), std::move(context.compile_context));
    entry.time_.t_ = offset + event.time_ns / 1000;
    SetUserMetadata(entry, std::move(context.user_metadata));
    info.device_traces.at(device->second).push_back(std::move(entry));
  }
}

void KeelAllocator::RecordSnapshot() {
  const std::optional<telemetry::ScopedStack> scope = NameEvents();
  for (int i = 0; i < device_count_; ++i) {
    Device* const device = Find(static_cast<c10::DeviceIndex>(i));
    if (device == nullptr) continue;
    telemetry::MemoryEvent event;
    event.action = telemetry::EventAction::kSnapshot;
    event.device = device->hal()->id();
    telemetry::EventLog::Global().Record(event);
  }
}

caching::SnapshotInfo KeelAllocator::snapshot(c10::MempoolId_t pool, bool traces) {
  caching::SnapshotInfo info;
  info.device_traces.resize(std::max(device_count_, 0));
  const memory::AllocatorConfig* config = nullptr;
  for (int i = 0; i < device_count_; ++i) {
    const auto index = static_cast<c10::DeviceIndex>(i);
    Device* const device = Find(index);
    if (device == nullptr) continue;
    config = &device->allocator().config();
    AddSegments(index, pool, info);
  }
  if (traces) AddTraces(info);
  RecordSnapshot();
  {
    const std::lock_guard lock(mutex_);
    info.external_annotations = {annotations_.begin(), annotations_.end()};
  }
  auto& settings = info.config_metadata;
  settings = {};
  if (config != nullptr) {
    settings.garbage_collection_threshold = config->garbage_collection_threshold;
    settings.max_split_size = config->max_split_size.count();
    settings.pinned_num_register_threads =
        static_cast<std::size_t>(config->pinned_num_register_threads);
    settings.expandable_segments = config->expandable_segments;
    settings.pinned_use_host_register = config->pinned_use_host_register;
    settings.last_allocator_settings = config->ToString();
    settings.roundup_power2_divisions = {config->roundup_power2_divisions.begin(),
                                         config->roundup_power2_divisions.end()};
  }
  return info;
}

// --- History ----------------------------------------------------------------------------------

void KeelAllocator::recordHistory(bool enabled, caching::CreateContextFn recorder,
                                  std::size_t capacity, caching::RecordContext when, bool clear,
                                  const std::vector<std::string>& skipped_actions) {
  TORCH_CHECK(when == caching::RecordContext::NEVER || recorder != nullptr,
              "frames are to be recorded, and there is nothing that records them");
  if (enabled) {
    contexts_.Enable(recorder, capacity, when, skipped_actions);
  } else {
    contexts_.Disable();
  }
  if (!enabled || clear) {
    contexts_.Clear();
    const std::lock_guard lock(mutex_);
    annotations_.clear();
  }
}

void KeelAllocator::recordAnnotation(
    const std::vector<std::pair<std::string, std::string>>& metadata) {
  if (!contexts_.recording()) return;
  Annotation annotation(c10::cuda::current_device(), {});
  annotation.time_.t_ = WallMicroseconds();
  for (const auto& [key, value] : metadata) annotation.recordUserMetadata(key, value);
  const std::lock_guard lock(mutex_);
  annotations_.push_back(std::move(annotation));
  while (annotations_.size() > contexts_.capacity()) annotations_.pop_front();
}

void KeelAllocator::pushCompileContext(std::string& context) {
  Contexts::CompileContexts().push_back(context);
}

void KeelAllocator::popCompileContext() {
  if (!Contexts::CompileContexts().empty()) Contexts::CompileContexts().pop_back();
}

void KeelAllocator::setUserMetadata(const std::string& metadata) {
  Contexts::UserMetadata() = metadata;
}

std::string KeelAllocator::getUserMetadata() { return Contexts::UserMetadata(); }

void KeelAllocator::attachOutOfMemoryObserver(caching::OutOfMemoryObserver observer) {
  const std::lock_guard lock(mutex_);
  observers_.push_back(std::move(observer));
}

}  // namespace keel::torch
