#include "graph/auto_policy.h"

#include <algorithm>

namespace keel::graph {

AutoPolicy::AutoPolicy(const Layout& layout, const PrimitiveCosts& costs)
    : dynamic_(layout.dynamic != 0),
      always_copies_(std::any_of(layout.bindings.begin(), layout.bindings.end(),
                                 [](const BindingLayout& binding) {
                                   return binding.policy == Policy::kCopy && !binding.dynamic;
                                 })),
      policies_(std::make_unique<std::atomic<Policy>[]>(layout.bindings.size())),
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
    copied_ += binding.dynamic && binding.policy == Policy::kCopy ? 1 : 0;
  }
}

double AutoPolicy::DirectStep(const Watch& watch, std::uint64_t step) const {
  const auto steps = static_cast<double>(step > watch.since ? step - watch.since : 1);
  const double rate = static_cast<double>(watch.moves) / steps;
  return costs_.PatchedStep(rate, watch.commands * watch.share) +
         costs_.TracedStep(rate, watch.traces);
}

void AutoPolicy::Change(std::uint32_t binding, Policy to, std::uint64_t step) {
  Watch& watch = watches_[binding];
  ++watch.changes;
  watch.since = step;
  watch.moves = 0;
  copied_ += to == Policy::kCopy ? 1 : -1;
  policies_[binding].store(to, std::memory_order_relaxed);
}

std::vector<std::uint32_t> AutoPolicy::Patched(std::span<const std::uint32_t> bindings,
                                               std::uint64_t commands, std::uint64_t step) {
  std::vector<std::uint32_t> changed;
  const MutexLock lock(mutex_);
  bool judge = false;
  double uses = 0;
  for (const std::uint32_t binding : bindings) uses += watches_[binding].commands;
  const double share = uses > 0 ? std::min(static_cast<double>(commands) / uses, 1.0) : 1.0;
  for (const std::uint32_t binding : bindings) {
    // A step that is tried again has rewritten them before, and says nothing of what it cost.
    if (commands != 0 || uses <= 0) watches_[binding].share = share;
    ++watches_[binding].moves;
    judge |= Enough(watches_[binding]);
  }
  if (!judge) return changed;
  // All that have shown enough by now, together: what the kernels cost, they share.
  double saved = 0;
  for (std::uint32_t i = 0; i < watches_.size(); ++i) {
    Watch& watch = watches_[i];
    if (!watch.dynamic || at(i) == Policy::kCopy || !Enough(watch)) continue;
    const double gain = DirectStep(watch, step) - CopiedStep(watch);
    if (gain > 0 && watch.changes < kMostChanges) {
      saved += gain;
      changed.push_back(i);
    } else {
      watch.since = step;
      watch.moves = 0;
    }
  }
  const bool kernels_run = always_copies_ || copied_ != 0;
  if (!kernels_run && saved <= costs_.copy_step_us) {
    for (const std::uint32_t binding : changed) {
      watches_[binding].since = step;
      watches_[binding].moves = 0;
    }
    changed.clear();
  }
  for (const std::uint32_t binding : changed) Change(binding, Policy::kCopy, step);
  return changed;
}

void AutoPolicy::Rebound(std::span<const std::uint32_t> bindings) {
  const MutexLock lock(mutex_);
  for (const std::uint32_t binding : bindings) ++watches_[binding].moves;
}

void AutoPolicy::TraceTook(double us) {
  const MutexLock lock(mutex_);
  // The first one is worth more than a guess, and later ones shift it slowly.
  costs_.trace_us = traced_ ? (7 * costs_.trace_us + us) / 8 : us;
  traced_ = true;
}

std::vector<std::uint32_t> AutoPolicy::Settle(std::uint64_t step) {
  std::vector<std::uint32_t> settled;
  std::vector<std::uint32_t> rest;  // that would settle if the kernels went with them
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
    const double gain = CopiedStep(watch) - 2 * DirectStep(watch, step);
    if (gain > 0 || watch.moves == 0) {
      settled.push_back(i);
    } else {
      rest.push_back(i);
      saved += gain;
    }
    if (gain <= 0) {
      watch.since = step;
      watch.moves = 0;
    }
  }
  // The last ones take the kernels with them.
  if (!always_copies_ && settled.size() + rest.size() == copied_ &&
      saved + costs_.copy_step_us > 0) {
    settled.insert(settled.end(), rest.begin(), rest.end());
  }
  for (const std::uint32_t binding : settled) Change(binding, watches_[binding].direct, step);
  return settled;
}

}  // namespace keel::graph
