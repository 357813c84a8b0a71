// AutoPolicy: for bindings of the policy `auto` that only explicit commands use, whether their
// commands are patched or their bytes copied.
//
// Both are there from the start, so that changing over records nothing: patched to the slot's own
// memory, with a row in the table, a binding is copied; patched to the caller's, it is not. A
// binding begins patched. It is copied once patching cost more than copying would have, over some
// moves; and patched again once it moves so seldom that the copies cost twice as much. Each change
// takes longer to come than the last, so that nothing swings.
//
// Thread-safe. Called only when something moved, and now and then.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "graph/layout.h"
#include "keel/base/mutex.h"
#include "keel/graph/primitive_costs.h"

namespace keel::graph {

class AutoPolicy {
 public:
  AutoPolicy(const Layout& layout, const PrimitiveCosts& costs);

  // kPatch or kCopy for a dynamic binding; its own policy for any other.
  Policy at(std::uint32_t binding) const {
    return policies_[binding].load(std::memory_order_relaxed);
  }
  // The binding's commands were patched in a slot. True: it is copied from now on.
  bool Patched(std::uint32_t binding, std::uint64_t step) KEEL_EXCLUDES(mutex_);
  // Its row was rewritten.
  void Rebound(std::uint32_t binding) KEEL_EXCLUDES(mutex_);
  // Once every so many steps: the bindings that are patched from now on.
  std::vector<std::uint32_t> Settle(std::uint64_t step) KEEL_EXCLUDES(mutex_);
  bool ShouldSettle(std::uint64_t step) const { return dynamic_ && step % kSettleEvery == 0; }

 private:
  static constexpr std::uint64_t kMovesToJudge = 8;
  static constexpr std::uint64_t kSettleEvery = 256;
  static constexpr int kMostChanges = 6;

  struct Watch {
    std::uint64_t since = 0;  // the step that the window began with
    std::uint64_t moves = 0;
    int changes = 0;
    double commands = 0;
    double copied_bytes = 0;  // in a step
  };

  const PrimitiveCosts costs_;
  const bool dynamic_;
  std::unique_ptr<std::atomic<Policy>[]> policies_;
  Mutex mutex_;
  std::vector<Watch> watches_ KEEL_GUARDED_BY(mutex_);
};

}  // namespace keel::graph
