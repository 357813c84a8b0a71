#include "graph/auto_policy.h"

#include <algorithm>
#include <limits>

namespace keel::graph {

AutoPolicy::AutoPolicy(const Layout& layout, const PrimitiveCosts& costs)
    : dynamic_(layout.dynamic != 0),
      always_copies_(std::any_of(layout.bindings.begin(), layout.bindings.end(),
                                 [](const BindingLayout& binding) {
                                   return binding.policy == Policy::kCopy && !binding.dynamic;
                                 })),
      policies_(std::make_unique<std::atomic<Policy>[]>(layout.bindings.size())),
      mappable_(std::make_unique<std::atomic<bool>[]>(layout.bindings.size())),
      costs_(costs) {
  const MutexLock lock(mutex_);
  watches_.resize(layout.bindings.size());
  for (std::size_t i = 0; i < layout.bindings.size(); ++i) {
    const BindingLayout& binding = layout.bindings[i];
    policies_[i].store(binding.policy, std::memory_order_relaxed);
    Watch& watch = watches_[i];
    watch.dynamic = binding.dynamic;
    watch.direct = binding.direct;
    watch.commands = static_cast<double>(binding.explicit_uses.size());
    watch.traces = static_cast<double>(binding.traced_uses.size());
    watch.copied_bytes = static_cast<double>(binding.size.count()) * (binding.in + binding.out);
    watch.remap_us = costs.remap_us;
    copied_ += binding.dynamic && binding.policy == Policy::kCopy ? 1 : 0;
  }
}

double AutoPolicy::Rate(const Watch& watch, std::uint64_t step) {
  const auto steps = static_cast<double>(step > watch.since ? step - watch.since : 1);
  return static_cast<double>(watch.moves) / steps;
}

double AutoPolicy::DirectStep(const Watch& watch, std::uint64_t step) const {
  const double rate = Rate(watch, step);
  return costs_.PatchedStep(rate, watch.commands * watch.share) +
         costs_.TracedStep(rate, watch.traces);
}

double AutoPolicy::RemappedStep(std::uint32_t binding, std::uint64_t step) const {
  if (!mappable_[binding].load(std::memory_order_relaxed)) {
    return std::numeric_limits<double>::infinity();
  }
  const Watch& watch = watches_[binding];
  return PrimitiveCosts::RemappedStep(Rate(watch, step), watch.remap_us);
}

void AutoPolicy::Change(std::uint32_t binding, Policy to, std::uint64_t step) {
  Watch& watch = watches_[binding];
  const Policy from = at(binding);
  ++watch.changes;
  BeginWindow(watch, step);
  copied_ += to == Policy::kCopy ? 1 : 0;
  copied_ -= from == Policy::kCopy ? 1 : 0;
  // Only who has the lock writes it.
  remapped_.store(remapped_.load(std::memory_order_relaxed) + (to == Policy::kRemap ? 1 : 0) -
                      (from == Policy::kRemap ? 1 : 0),
                  std::memory_order_relaxed);
  policies_[binding].store(to, std::memory_order_relaxed);
}

AutoPolicy::Choices AutoPolicy::Patched(std::span<const std::uint32_t> bindings,
                                        std::uint64_t commands, std::uint64_t step) {
  Choices chosen;
  const MutexLock lock(mutex_);
  bool judge = false;
  double uses = 0;
  for (const std::uint32_t binding : bindings) uses += watches_[binding].commands;
  const double share = uses > 0 ? std::min(static_cast<double>(commands) / uses, 1.0) : 1.0;
  for (const std::uint32_t binding : bindings) {
    Watch& watch = watches_[binding];
    // A step that is tried again has rewritten them before, and says nothing of what it cost.
    if (commands != 0 || uses <= 0) watch.share = share;
    if (at(binding) == Policy::kRemap) {
      // With memory it is a step that had begun before somebody else's was judged.
      if (mappable_[binding].load(std::memory_order_relaxed)) continue;
      Change(binding, watch.direct, step);
      chosen.push_back({binding, Reason::kNoMemory});
      continue;
    }
    ++watch.moves;
    judge |= Enough(watch);
  }
  if (!judge) return chosen;
  // All that have shown enough by now, together: what the kernels cost, they share.
  std::vector<std::uint32_t> copied;
  double saved = 0;
  for (std::uint32_t i = 0; i < watches_.size(); ++i) {
    Watch& watch = watches_[i];
    if (!watch.dynamic || at(i) != watch.direct || !Enough(watch)) continue;
    const double direct = DirectStep(watch, step);
    const double copies = CopiedStep(watch);
    if (watch.changes < kMostChanges) {
      if (RemappedStep(i, step) < std::min(direct, copies)) {
        Change(i, Policy::kRemap, step);
        chosen.push_back({i, Reason::kMappable});
        continue;
      }
      if (copies < direct) {
        saved += direct - copies;
        copied.push_back(i);
        continue;
      }
    }
    BeginWindow(watch, step);
  }
  const bool kernels_run = always_copies_ || copied_ != 0;
  for (const std::uint32_t i : copied) {
    if (kernels_run || saved > costs_.copy_step_us) {
      Change(i, Policy::kCopy, step);
      chosen.push_back({i, Reason::kChurns});
    } else if (RemappedStep(i, step) < DirectStep(watches_[i], step)) {
      Change(i, Policy::kRemap, step);
      chosen.push_back({i, Reason::kMappable});
    } else {
      BeginWindow(watches_[i], step);
    }
  }
  return chosen;
}

AutoPolicy::Choices AutoPolicy::Rebound(std::span<const std::uint32_t> bindings,
                                        std::uint64_t step) {
  Choices chosen;
  const MutexLock lock(mutex_);
  for (const std::uint32_t binding : bindings) {
    Watch& watch = watches_[binding];
    ++watch.moves;
    // What is copied costs the same however often it moves.
    if (at(binding) != Policy::kRemap || !Enough(watch)) continue;
    const double direct = DirectStep(watch, step);
    const double copies = CopiedStep(watch) + (always_copies_ ? 0 : costs_.copy_step_us);
    if (watch.changes < kMostChanges &&
        2 * std::min(direct, copies) < RemappedStep(binding, step)) {
      Change(binding, copies < direct ? Policy::kCopy : watch.direct, step);
      chosen.push_back({binding, Reason::kMappingDear});
    } else {
      BeginWindow(watch, step);
    }
  }
  return chosen;
}

bool AutoPolicy::CannotMap(std::uint32_t binding) {
  const MutexLock lock(mutex_);
  if (at(binding) != Policy::kRemap) return false;
  Change(binding, watches_[binding].direct, watches_[binding].since);
  return true;
}

void AutoPolicy::TraceTook(double us) {
  const MutexLock lock(mutex_);
  // The first one is worth more than a guess, and later ones shift it slowly.
  costs_.trace_us = traced_ ? (7 * costs_.trace_us + us) / 8 : us;
  traced_ = true;
}

void AutoPolicy::RemapTook(std::uint32_t binding, double us) {
  const MutexLock lock(mutex_);
  Watch& watch = watches_[binding];
  watch.remap_us = (3 * watch.remap_us + us) / 4;
}

AutoPolicy::Choices AutoPolicy::Settle(std::uint64_t step) {
  Choices settled;
  Choices rest;  // that would settle if the kernels went with them
  const MutexLock lock(mutex_);
  double saved = 0;  // by the rest
  for (std::uint32_t i = 0; i < watches_.size(); ++i) {
    Watch& watch = watches_[i];
    if (!watch.dynamic || at(i) != Policy::kCopy || watch.changes >= kMostChanges) continue;
    // What begins copied has shown nothing yet, and is looked at soon.
    const std::uint64_t window =
        watch.changes == 0 ? kSettleEvery : kStepsToSettle << watch.changes;
    // Another thread's step may be judged first although it is a later one.
    if (step < watch.since || step - watch.since < window) continue;
    const double direct = DirectStep(watch, step);
    const double remapped = RemappedStep(i, step);
    const Reason reason = remapped < direct ? Reason::kMappable : Reason::kSettled;
    const double gain = CopiedStep(watch) - 2 * std::min(direct, remapped);
    if (gain > 0 || watch.moves == 0) {
      settled.push_back({i, reason});
    } else {
      rest.push_back({i, reason});
      saved += gain;
      BeginWindow(watch, step);
    }
  }
  // The last ones take the kernels with them.
  if (!always_copies_ && settled.size() + rest.size() == copied_ &&
      saved + costs_.copy_step_us > 0) {
    settled.insert(settled.end(), rest.begin(), rest.end());
  }
  for (const Choice& choice : settled) {
    const Policy direct = watches_[choice.binding].direct;
    Change(choice.binding, choice.reason == Reason::kMappable ? Policy::kRemap : direct, step);
  }
  return settled;
}

}  // namespace keel::graph
