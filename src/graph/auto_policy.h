// AutoPolicy: for bindings of the policy `auto`, whether their bytes are copied or their commands
// reach them where they are: patched, or traced again where a library uses them.
//
// Both are there from the start, so that changing over records nothing: aimed at the slot's own
// memory, with a row in the table, a binding is copied; aimed at the caller's, it is not. What
// explicit commands use begins uncopied, what a library uses begins copied. A binding is copied
// once reaching it where it is has cost more than copying would have, over some moves; and no
// longer once it moves so seldom that the copies cost twice as much. Each change takes longer to
// come than the last, so that nothing swings.
//
// A step that copies anything runs two more kernels than one that copies nothing. What that costs
// is not one binding's: while nothing is copied, those that churn are judged together.
//
// Thread-safe. Called only when something moved, and now and then.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "graph/layout.h"
#include "keel/base/mutex.h"
#include "keel/graph/primitive_costs.h"

namespace keel::graph {

class AutoPolicy {
 public:
  AutoPolicy(const Layout& layout, const PrimitiveCosts& costs);

  // kCopy, kPatch or kRetrace for a dynamic binding; its own policy for any other.
  Policy at(std::uint32_t binding) const {
    return policies_[binding].load(std::memory_order_relaxed);
  }
  // The bindings' commands were rewritten in a slot, `commands` of them: one that several bindings
  // share is rewritten once. Returns those that are copied from now on.
  std::vector<std::uint32_t> Patched(std::span<const std::uint32_t> bindings,
                                     std::uint64_t commands, std::uint64_t step)
      KEEL_EXCLUDES(mutex_);
  // Their rows were rewritten.
  void Rebound(std::span<const std::uint32_t> bindings) KEEL_EXCLUDES(mutex_);
  // What one traced command took to be exchanged.
  void TraceTook(double us) KEEL_EXCLUDES(mutex_);
  // Once every so many steps: the bindings that are not copied from now on.
  std::vector<std::uint32_t> Settle(std::uint64_t step) KEEL_EXCLUDES(mutex_);
  bool ShouldSettle(std::uint64_t step) const { return dynamic_ && step % kSettleEvery == 0; }

 private:
  static constexpr std::uint64_t kMovesToJudge = 8;
  static constexpr std::uint64_t kSettleEvery = 32;
  static constexpr std::uint64_t kStepsToSettle = 256;
  static constexpr int kMostChanges = 6;

  struct Watch {
    bool dynamic = false;
    Policy direct = Policy::kPatch;
    std::uint64_t since = 0;  // the step that the window began with
    std::uint64_t moves = 0;
    int changes = 0;
    double commands = 0;      // explicit ones
    double share = 1;         // of the cost of rewriting them, when it moved last
    double traces = 0;        // traced ones
    double copied_bytes = 0;  // in a step
  };
  // In a step, in microseconds of both sides.
  double DirectStep(const Watch& watch, std::uint64_t step) const KEEL_REQUIRES(mutex_);
  double CopiedStep(const Watch& watch) const KEEL_REQUIRES(mutex_) {
    return costs_.CopiedStep(watch.copied_bytes);
  }
  bool Enough(const Watch& watch) const {
    return watch.moves >= kMovesToJudge
                              << (watch.changes < kMostChanges ? watch.changes : kMostChanges);
  }
  void Change(std::uint32_t binding, Policy to, std::uint64_t step) KEEL_REQUIRES(mutex_);

  const bool dynamic_;
  const bool always_copies_;  // other bindings see to it that the kernels are there
  std::unique_ptr<std::atomic<Policy>[]> policies_;
  Mutex mutex_;
  PrimitiveCosts costs_ KEEL_GUARDED_BY(mutex_);
  bool traced_ KEEL_GUARDED_BY(mutex_) = false;
  std::uint32_t copied_ KEEL_GUARDED_BY(mutex_) = 0;  // dynamic bindings
  std::vector<Watch> watches_ KEEL_GUARDED_BY(mutex_);
};

}  // namespace keel::graph
