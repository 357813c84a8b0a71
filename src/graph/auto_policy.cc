#include "graph/auto_policy.h"

#include <algorithm>

namespace keel::graph {

AutoPolicy::AutoPolicy(const Layout& layout, const PrimitiveCosts& costs)
    : costs_(costs),
      dynamic_(layout.dynamic != 0),
      policies_(std::make_unique<std::atomic<Policy>[]>(layout.bindings.size())) {
  const MutexLock lock(mutex_);
  watches_.resize(layout.bindings.size());
  for (std::size_t i = 0; i < layout.bindings.size(); ++i) {
    const BindingLayout& binding = layout.bindings[i];
    policies_[i].store(binding.policy, std::memory_order_relaxed);
    watches_[i].commands = static_cast<double>(binding.explicit_uses.size());
    watches_[i].copied_bytes =
        static_cast<double>(binding.size.count()) * (binding.in + binding.out);
  }
}

bool AutoPolicy::Patched(std::uint32_t binding, std::uint64_t step) {
  const MutexLock lock(mutex_);
  Watch& watch = watches_[binding];
  // Which change comes next decides how many moves it takes.
  if (++watch.moves < kMovesToJudge << std::min(watch.changes, kMostChanges)) return false;
  const auto steps = static_cast<double>(step > watch.since ? step - watch.since : 1);
  const double rate = static_cast<double>(watch.moves) / steps;
  watch.since = step;
  watch.moves = 0;
  if (watch.changes >= kMostChanges ||
      costs_.PatchedStep(rate, watch.commands) <= costs_.CopiedStep(watch.copied_bytes)) {
    return false;
  }
  ++watch.changes;
  policies_[binding].store(Policy::kCopy, std::memory_order_relaxed);
  return true;
}

void AutoPolicy::Rebound(std::uint32_t binding) {
  const MutexLock lock(mutex_);
  ++watches_[binding].moves;
}

std::vector<std::uint32_t> AutoPolicy::Settle(std::uint64_t step) {
  std::vector<std::uint32_t> settled;
  const MutexLock lock(mutex_);
  for (std::uint32_t i = 0; i < watches_.size(); ++i) {
    Watch& watch = watches_[i];
    if (at(i) != Policy::kCopy || watch.changes == 0 || watch.changes >= kMostChanges) continue;
    // Another thread's step may be judged first although it is a later one.
    if (step < watch.since || step - watch.since < kSettleEvery << watch.changes) continue;
    const double rate = static_cast<double>(watch.moves) / static_cast<double>(step - watch.since);
    watch.since = step;
    watch.moves = 0;
    if (2 * costs_.PatchedStep(rate, watch.commands) >= costs_.CopiedStep(watch.copied_bytes)) {
      continue;
    }
    ++watch.changes;
    policies_[i].store(Policy::kPatch, std::memory_order_relaxed);
    settled.push_back(i);
  }
  return settled;
}

}  // namespace keel::graph
