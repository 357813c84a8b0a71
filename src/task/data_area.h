// DataArea: the places in a region's data that hold the bytes of tasks under way, and the window,
// which holds those of one control call. Only the orchestrator's side has one.
//
// Pages that were used stay, so that the next task does not pay for them again, until nothing was
// used for a while; then all are given back to the system.
//
// Any thread.
#pragma once

#include <cstdint>
#include <functional>

#include "keel/base/mutex.h"
#include "keel/base/result.h"
#include "memory/block_pool.h"
#include "task/region.h"

namespace keel::task {

class DataArea {
 public:
  // The region outlives it. `on_use` is called when pages come into use after all were given back:
  // whoever is told calls EmptyIfIdle from time to time, until that says that there is no need.
  DataArea(Region& region, std::function<void()> on_use);

  // What a tensor of this size takes.
  static std::uint64_t Rounded(std::uint64_t size) { return memory::RoundToQuantum(size); }
  std::uint64_t size() const { return size_; }

  // Null: no hole is large enough now. Precondition: size is not 0.
  memory::Block* Take(std::uint64_t size);
  void Give(memory::Block* block);
  // The window is the business of whoever makes control calls, one at a time.
  void UseWindow();
  void LeaveWindow();

  // Gives the pages back if nothing is in use now, and nothing was since the last call. False:
  // nothing is left to give back.
  bool EmptyIfIdle();

 private:
  void UsedLocked() KEEL_REQUIRES(mutex_);

  Region& region_;
  const std::function<void()> on_use_;
  const std::uint64_t size_;
  Mutex mutex_;
  memory::BlockPool pool_ KEEL_GUARDED_BY(mutex_);
  bool window_ KEEL_GUARDED_BY(mutex_) = false;
  bool dirty_ KEEL_GUARDED_BY(mutex_) = false;     // pages may be there
  bool recently_ KEEL_GUARDED_BY(mutex_) = false;  // used since the last EmptyIfIdle
};

}  // namespace keel::task
