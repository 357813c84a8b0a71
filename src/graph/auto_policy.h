// AutoPolicy: for bindings of the policy `auto`, whether their bytes are copied, their memory is
// mapped where the commands find it, or the commands reach them where they are: patched, or traced
// again where a library uses them.
//
// All ways are there from the start, so that changing over records nothing: aimed at the slot's own
// memory, with a row in the table, a binding is copied; aimed at a window of the slot's, it is
// remapped, if its buffers bring their physical memory; aimed at the caller's, it is neither. What
// explicit commands use begins uncopied, what a library uses begins copied. A binding is copied, or
// remapped, once reaching it where it is has cost more than that would have, over some moves; and
// no longer once it moves so seldom that the copies cost twice as much, or mapping takes so long
// that another way would cost half. Each change takes longer to come than the last, so that nothing
// swings.
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
#include "keel/graph/replay_report.h"

namespace keel::graph {

class AutoPolicy {
 public:
  // A binding that is reached otherwise from now on, and why.
  struct Choice {
    std::uint32_t binding = 0;
    Reason reason = Reason::kChurns;
    friend bool operator==(const Choice&, const Choice&) = default;
  };
  using Choices = std::vector<Choice>;

  AutoPolicy(const Layout& layout, const PrimitiveCosts& costs);

  // kCopy, kRemap, kPatch or kRetrace for a dynamic binding; its own policy for any other.
  Policy at(std::uint32_t binding) const {
    return policies_[binding].load(std::memory_order_relaxed);
  }
  // Whether a dynamic binding is remapped: its slot's last step must have ended then.
  bool remaps() const { return remapped_.load(std::memory_order_relaxed) != 0; }
  // Whether the binding's buffer brings memory that can be mapped.
  void SetMappable(std::uint32_t binding, bool can) {
    mappable_[binding].store(can, std::memory_order_relaxed);
  }
  // The bindings' commands were rewritten in a slot, `commands` of them: one that several bindings
  // share is rewritten once. Of those that are remapped, one that brought no memory.
  Choices Patched(std::span<const std::uint32_t> bindings, std::uint64_t commands,
                  std::uint64_t step) KEEL_EXCLUDES(mutex_);
  // Their rows were rewritten, or other memory mapped.
  Choices Rebound(std::span<const std::uint32_t> bindings, std::uint64_t step)
      KEEL_EXCLUDES(mutex_);
  // Mapping failed: it is reached where the caller has it from now on. False: it was not remapped.
  bool CannotMap(std::uint32_t binding) KEEL_EXCLUDES(mutex_);
  // What one traced command took to be exchanged.
  void TraceTook(double us) KEEL_EXCLUDES(mutex_);
  // What it took until other memory of the binding's was mapped.
  void RemapTook(std::uint32_t binding, double us) KEEL_EXCLUDES(mutex_);
  // Once every so many steps: what moves seldom.
  Choices Settle(std::uint64_t step) KEEL_EXCLUDES(mutex_);
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
    double remap_us = 0;      // one move
  };
  // In a step, in microseconds of both sides.
  static double Rate(const Watch& watch, std::uint64_t step);
  double DirectStep(const Watch& watch, std::uint64_t step) const KEEL_REQUIRES(mutex_);
  double CopiedStep(const Watch& watch) const KEEL_REQUIRES(mutex_) {
    return costs_.CopiedStep(watch.copied_bytes);
  }
  // For ever, if it cannot be.
  double RemappedStep(std::uint32_t binding, std::uint64_t step) const KEEL_REQUIRES(mutex_);
  bool Enough(const Watch& watch) const {
    return watch.moves >= kMovesToJudge
                              << (watch.changes < kMostChanges ? watch.changes : kMostChanges);
  }
  void BeginWindow(Watch& watch, std::uint64_t step) const {
    watch.since = step;
    watch.moves = 0;
  }
  void Change(std::uint32_t binding, Policy to, std::uint64_t step) KEEL_REQUIRES(mutex_);

  const bool dynamic_;
  const bool always_copies_;  // other bindings see to it that the kernels are there
  std::unique_ptr<std::atomic<Policy>[]> policies_;
  std::unique_ptr<std::atomic<bool>[]> mappable_;
  std::atomic<std::uint32_t> remapped_{0};  // dynamic bindings
  Mutex mutex_;
  PrimitiveCosts costs_ KEEL_GUARDED_BY(mutex_);
  bool traced_ KEEL_GUARDED_BY(mutex_) = false;
  std::uint32_t copied_ KEEL_GUARDED_BY(mutex_) = 0;  // dynamic bindings
  std::vector<Watch> watches_ KEEL_GUARDED_BY(mutex_);
};

}  // namespace keel::graph
