// The ways of a block in debug mode, and of requests and addresses that are wrong: what the common
// calls leave to others.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "memory/allocator_core.h"

namespace keel::memory {
namespace {

// What freed blocks may hold back: a part of what may be held at all, and never more than this.
constexpr std::uint64_t kQuarantinePart = 16;
constexpr std::uint64_t kMostQuarantine = std::uint64_t{1} << 30;

}  // namespace

void AllocatorCore::StartDebugMode() {
  using Debug = AllocatorConfig::Debug;
  debug_ = std::make_unique<DebugMemory>(
      device,
      DebugOptions{.guards = config.debug != Debug::kPoison,
                   .poison = config.debug != Debug::kGuards,
                   .quarantine = std::min(std::min(limit.limit(), capacity_) / kQuarantinePart,
                                          kMostQuarantine)},
      [this](Block* block) { return Return(block); });
}

Result<DeviceAddress> AllocatorCore::AllocateRarely(Bytes size, hal::StreamHandle stream,
                                                    const AllocationOptions& options,
                                                    telemetry::TagId tag) {
  Request request{.size = size.count(),
                  .asked = size,
                  .stream = stream,
                  .tag = tag,
                  .deadline = options.deadline};
  if (!options.alignment.empty()) {
    KEEL_TRY(CheckAlignment(options.alignment));
    request.alignment = std::max(options.alignment.count(), kQuantum);
  }
  if (size.count() > capacity_) {
    return OutOfMemory(request, ResourceExhausted("the device is smaller than the request"));
  }
  if (debug_ != nullptr) return AllocateChecked(request);
  // Which every block has.
  if (request.alignment == kQuantum) {
    return Allocate(size, stream, {.tag = tag, .deadline = options.deadline});
  }
  request.size = Round(request.size);
  ThreadCache& cache = Local();
  CountMiss(cache);
  return AllocateFrom(Route(cache, stream, KindOf(request.size)), cache, request);
}

Result<DeviceAddress> AllocatorCore::AllocateChecked(Request request) {
  const Bytes asked = request.asked;
  const DebugMemory::Layout layout = debug_->LayOut(Round(asked.count()), request.alignment);
  request.size = layout.size;
  ThreadCache& cache = Local();
  Arena& arena = Route(cache, request.stream, KindOf(request.size));
  CountMiss(cache);
  KEEL_ASSIGN(Block* const block, Obtain(arena, request));
  const Result<DeviceAddress> address =
      debug_->Add(block, layout, asked, request.tag, telemetry::CaptureStack());
  if (!address.ok()) {
    Status returned = Return(block);
    return returned.ok() ? address.status()
                         : Status(address.status()).Annotate(returned.ToString());
  }
  HandOut(*cache.shard, *block, arena.kind, asked, request.tag);
  Record(telemetry::EventAction::kAlloc, address->value(), asked.count(), request.stream,
         request.tag);
  return *address;
}

Status AllocatorCore::FreeRarely(DeviceAddress address, const Bytes* size) {
  if (debug_ == nullptr) {
    return InvalidArgument(fmt::format(
        "no live block begins at {}: it was never allocated here, or freed before (KEEL_ALLOC_CONF "
        "debug:full tells where)",
        ToString(address)));
  }
  KEEL_ASSIGN(const DebugMemory::Allocation freed,
              debug_->Claim(address, size, telemetry::CaptureStack()));
  Block* const block = freed.block;
  Arena& arena = Arena::Of(*block);
  telemetry::BlockCounters::Shard& shard = *Local().shard;
  const auto bytes = static_cast<std::int64_t>(block->size);
  const auto requested = static_cast<std::int64_t>(block->requested.get());
  Record(telemetry::EventAction::kFreeRequested, address.value(), freed.requested,
         arena.clock.stream(), freed.tag);
  if (freed.uses.empty()) {
    shard.Freed(arena.kind, bytes, requested);
  } else {
    shard.Deferred(arena.kind, bytes, requested);
  }
  Status found = debug_->Compare(freed);
  Status others;
  if (freed.uses.empty()) {
    others = RetireChecked(block);
  } else {
    Defer(block, freed.uses);
    FreeCollected(pending_.Collect(PendingFrees::Effort::kGlance), &others);
  }
  return found.ok() ? others : found;
}

Status AllocatorCore::RetireChecked(Block* block) {
  const Arena& arena = Arena::Of(*block);
  Record(telemetry::EventAction::kFreeCompleted, block->address + debug_->FrontOf(*block),
         block->requested, arena.clock.stream(), telemetry::TagId{block->tag.get()});
  block->mark = kCached;
  return debug_->Retire(block);
}

Status AllocatorCore::RecordUseRarely(DeviceAddress address, hal::StreamHandle stream) {
  if (debug_ != nullptr) return debug_->AddUse(address, arenas_.Clock(stream));
  return InvalidArgument(
      fmt::format("no live block begins at {}; RecordUse comes before Free", ToString(address)));
}

Status AllocatorCore::CheckMemory() {
  if (debug_ != nullptr) return debug_->CheckAll();
  return FailedPrecondition(
      "the debug mode is off: KEEL_ALLOC_CONF debug:guards, poison or full turns it on");
}

DebugFindings AllocatorCore::Findings() {
  return debug_ == nullptr ? DebugFindings() : debug_->findings();
}

}  // namespace keel::memory
