// The state of a private pool: which blocks are live in it, and making it so again.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "memory/allocator_core.h"

namespace keel::memory {
namespace {

std::uint64_t EndOf(const PoolBlock& block) { return block.address.value() + block.size.count(); }

// In a list by address.
using Wanted = std::span<const PoolBlock>;

Wanted::iterator FirstFrom(Wanted wanted, std::uint64_t address) {
  return std::lower_bound(
      wanted.begin(), wanted.end(), address,
      [](const PoolBlock& each, std::uint64_t at) { return each.address.value() < at; });
}

bool IsThatOf(const PoolBlock& wanted, const Block& block) {
  return wanted.address.value() == block.address && wanted.size.count() == block.size &&
         wanted.requested.count() == block.requested;
}

Status CheckBlocks(Wanted wanted) {
  std::uint64_t end = 0;
  for (const PoolBlock& each : wanted) {
    if (each.size.empty() || each.size.count() % kQuantum != 0 ||
        each.address.value() % kQuantum != 0 || each.requested > each.size ||
        EndOf(each) < each.address.value()) {
      return InvalidArgument(fmt::format("{} bytes at {} were never a block", each.size.count(),
                                         ToString(each.address)));
    }
    if (each.address.value() < end) {
      return InvalidArgument(
          fmt::format("the block at {} overlaps the one before it", ToString(each.address)));
    }
    end = EndOf(each);
  }
  return OkStatus();
}

}  // namespace

Result<std::vector<Arena*>> AllocatorCore::ArenasOf(PoolId pool) {
  // Neither has memory that stays where it is once it is free.
  if (debug_ != nullptr) return Unimplemented("in debug mode a pool has no state to return to");
  if (passthrough_ != nullptr) {
    return Unimplemented("with backend:passthrough a pool has no state to return to");
  }
  {
    const MutexLock lock(pools_mutex_);
    if (!pools_.contains(pool)) {
      return InvalidArgument(fmt::format("there is no pool {}, or it was released", pool));
    }
  }
  std::vector<Arena*> arenas = arenas_.List();
  std::erase_if(arenas, [pool](const Arena* arena) { return arena->pool != pool; });
  return arenas;
}

Result<std::vector<PoolBlock>> AllocatorCore::PoolBlocks(PoolId pool) {
  KEEL_ASSIGN(const std::vector<Arena*> arenas, ArenasOf(pool));
  std::vector<PoolBlock> blocks;
  for (Arena* const arena : arenas) {
    const ShortLockGuard lock(arena->mutex);
    for (const auto& [begin, span] : arena->blocks.spans()) {
      for (const Block* block = span.first(); block != span.back; block = block->after) {
        if (block->free() || block->mark != kLive) continue;
        blocks.push_back({.address = DeviceAddress(block->address),
                          .size = Bytes(block->size),
                          .requested = Bytes(block->requested),
                          .tag = telemetry::TagId{block->tag.get()}});
      }
    }
  }
  std::sort(blocks.begin(), blocks.end(),
            [](const PoolBlock& a, const PoolBlock& b) { return a.address < b.address; });
  return blocks;
}

void AllocatorCore::PlanArena(Arena& arena, std::span<const PoolBlock> wanted, PoolPlan& plan) {
  const ShortLockGuard lock(arena.mutex);
  for (const auto& [begin, span] : arena.blocks.spans()) {
    auto want = FirstFrom(wanted, begin);
    for (auto each = want; each != wanted.end() && EndOf(*each) <= span.end; ++each) ++plan.found;
    for (const Block* block = span.first(); block != span.back; block = block->after) {
      while (want != wanted.end() && EndOf(*want) <= block->address) ++want;
      const bool meets = want != wanted.end() && want->address.value() < block->end();
      if (block->free()) continue;
      if (block->mark == kLive) {
        plan.live.emplace_back(block->address);
        if (meets && IsThatOf(*want, *block)) continue;
        plan.leaving.emplace_back(block->address);
        if (StreamClock* const only = OnlyUse(block->attachment); only != nullptr) {
          plan.busy.push_back(only);
        } else if (const Uses* const uses = ListOfUses(block->attachment); uses != nullptr) {
          plan.busy.insert(plan.busy.end(), uses->clocks.begin(), uses->clocks.end());
        }
      } else if (meets) {
        plan.in_the_way = DeviceAddress(block->address);
      }
    }
  }
}

Result<AllocatorCore::PoolPlan> AllocatorCore::PlanPool(const std::vector<Arena*>& arenas,
                                                        std::span<const PoolBlock> wanted) {
  PoolPlan plan;
  for (Arena* const arena : arenas) PlanArena(*arena, wanted, plan);
  if (plan.found != wanted.size()) {
    return InvalidArgument(fmt::format("{} of {} blocks are not in the memory of the pool",
                                       wanted.size() - plan.found, wanted.size()));
  }
  return plan;
}

Result<std::vector<DeviceAddress>> AllocatorCore::RestorePool(PoolId pool,
                                                              std::span<const PoolBlock> blocks) {
  std::vector<PoolBlock> wanted(blocks.begin(), blocks.end());
  std::sort(wanted.begin(), wanted.end(),
            [](const PoolBlock& a, const PoolBlock& b) { return a.address < b.address; });
  KEEL_TRY(CheckBlocks(wanted));
  KEEL_ASSIGN(const std::vector<Arena*> arenas, ArenasOf(pool));
  KEEL_ASSIGN(PoolPlan plan, PlanPool(arenas, wanted));
  if (!plan.busy.empty() || plan.in_the_way) {
    // Before anything changes: a stream that is being captured cannot be waited for.
    const Deadline deadline = Deadline::After(kPatience);
    for (StreamClock* const clock : plan.busy) KEEL_TRY(clock->Wait(clock->now(), deadline));
    FreeCollected(pending_.CollectAll(deadline));
    KEEL_ASSIGN(plan, PlanPool(arenas, wanted));
    if (plan.in_the_way) {
      return FailedPrecondition(fmt::format(
          "the block at {} was freed while another stream used it, and cannot be waited for",
          ToString(plan.in_the_way)));
    }
  }
  for (const DeviceAddress address : plan.leaving) {
    ForgetUses(address);
    KEEL_TRY(Free(address, nullptr));
  }
  for (Arena* const arena : arenas) KEEL_TRY(TakeAgain(*arena, wanted));
  std::sort(plan.live.begin(), plan.live.end());
  return std::move(plan.live);
}

void AllocatorCore::ForgetUses(DeviceAddress address) {
  Block* const block = index_.Find(address.value());
  if (block == nullptr) return;
  const ShortLockGuard lock(Arena::Of(*block).mutex);
  delete ListOfUses(std::exchange(block->attachment, nullptr));
}

Status AllocatorCore::TakeAgain(Arena& arena, std::span<const PoolBlock> wanted) {
  telemetry::BlockCounters::Shard& shard = *Local().shard;
  const ShortLockGuard lock(arena.mutex);
  for (const auto& [begin, span] : arena.blocks.spans()) {
    Block* block = span.first();
    for (auto want = FirstFrom(wanted, begin); want != wanted.end() && EndOf(*want) <= span.end;
         ++want) {
      const std::uint64_t address = want->address.value();
      while (block->end() <= address) block = block->after;
      if (!block->free() && block->mark == kLive && IsThatOf(*want, *block)) continue;
      if (!block->free() || EndOf(*want) > block->end()) {
        return FailedPrecondition(
            fmt::format("the pool was used while it was restored: the block at {} is taken",
                        ToString(want->address)));
      }
      block = arena.blocks.Take(block, address, want->size.count());
      Publish(block);
      HandOut(shard, *block, arena.kind, want->requested, want->tag);
      Record(telemetry::EventAction::kAlloc, block->address, want->requested.count(),
             arena.clock.stream(), want->tag);
    }
  }
  return OkStatus();
}

}  // namespace keel::memory
