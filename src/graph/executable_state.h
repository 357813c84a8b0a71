// ExecutableState: what is behind Executable, its leases and its held outputs;
// keel/graph/executable.h has the contracts.
//
// Locks, from the outside in: the budget's; the scratch arena's; recording_mutex_; mutex_. A slot
// that is leased is its lease's and needs none, and so are slots that are made or ended
// (changing_): that may take long, and whoever waits for it does so until a deadline. Callbacks of
// the program are called with recording_mutex_ held, one at a time, and never with mutex_; it and
// the arena's may be held for long and are waited for until the step's deadline.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fork.h"
#include "graph/slot_set.h"
#include "keel/base/mutex.h"
#include "keel/base/timed_mutex.h"
#include "keel/graph/executable.h"
#include "keel/graph/memory_budget.h"

namespace keel::graph {

class ExecutableState : public MemoryBudget::User,
                        public std::enable_shared_from_this<ExecutableState> {
 public:
  ExecutableState(std::shared_ptr<const Program> program,
                  std::shared_ptr<memory::DeviceMemory> memory, ExecutableOptions options,
                  std::shared_ptr<const Layout> layout, std::shared_ptr<AutoPolicy> choices);
  ~ExecutableState() override;

  Status Bind(std::uint32_t binding, Buffer buffer) KEEL_EXCLUDES(mutex_);
  Result<Slot*> Acquire(hal::StreamHandle stream, Deadline deadline) KEEL_EXCLUDES(mutex_);
  Status BindStep(Slot& slot, std::uint32_t binding, const Buffer& buffer) {
    if (!Fits(binding, buffer)) KEEL_TRY(Check(binding, buffer));
    slot.BindStep(binding, buffer);
    return OkStatus();
  }
  Status Launch(Slot& slot, Deadline deadline) KEEL_EXCLUDES(mutex_, recording_mutex_);
  void Release(Slot& slot) noexcept KEEL_EXCLUDES(mutex_);
  Status Hold(Slot& slot, std::uint32_t binding) KEEL_EXCLUDES(mutex_);
  // `readers`: streams that the slot's next step comes after.
  Status LetGo(Slot& slot, std::span<const hal::StreamHandle> readers) KEEL_EXCLUDES(mutex_);
  Status Wait(Slot& slot, Deadline deadline);
  // Of the step that was launched: done, or lost with its device.
  bool Ended(Slot& slot);

  ExecutableStats Stats() const KEEL_EXCLUDES(mutex_);
  Status Synchronize(Deadline deadline) KEEL_EXCLUDES(mutex_);
  Status Close(Deadline deadline) KEEL_EXCLUDES(mutex_);

  std::string BudgetName() const override { return program->name(); }
  bool TryGiveUp() override KEEL_EXCLUDES(mutex_);
  std::uint64_t LastUse() const override { return last_use_.load(std::memory_order_relaxed); }

  // Whether nothing is wrong with a buffer for this binding; false says nothing.
  bool Fits(std::uint32_t binding, const Buffer& buffer) const {
    if (binding >= layout->bindings.size()) return false;
    const BindingLayout& its = layout->bindings[binding];
    const std::uint64_t address = buffer.address.value();
    return its.plain && address != 0 && (address & (its.alignment - 1)) == 0 &&
           buffer.size >= its.size;
  }
  // OK, or what is wrong with it.
  Status Check(std::uint32_t binding, const Buffer& buffer) const;
  Status CheckId(std::uint32_t binding) const;

  const std::shared_ptr<const Program> program;
  const std::shared_ptr<memory::DeviceMemory> memory;
  const ExecutableOptions options;
  const std::shared_ptr<const Layout> layout;
  const std::shared_ptr<AutoPolicy> choices;

 private:
  hal::Device& device() const { return *memory->device(); }
  // OK, but in a forked child: there nothing that a lock guards can be looked at.
  Status Here() const { return home_.here() ? OkStatus() : device().Health(); }
  // The slots, made if there are none.
  Status NeedSlots(Deadline deadline) KEEL_EXCLUDES(mutex_, recording_mutex_);
  // From what an earlier try has left, if anything, which is kept where this one was not in time.
  Result<std::unique_ptr<SlotSet>> CreateSlots(std::unique_ptr<SlotSet>& half_made,
                                               Deadline deadline) KEEL_EXCLUDES(mutex_);
  Slot* PickLocked(hal::StreamHandle stream) KEEL_REQUIRES(mutex_);
  std::size_t After(std::size_t slot) const KEEL_REQUIRES(mutex_) {
    return slot + 1 < set_->slots().size() ? slot + 1 : 0;
  }
  void CatchUpLocked(Slot& slot) KEEL_REQUIRES(mutex_);
  void ChangedLocked(std::uint32_t binding) KEEL_REQUIRES(mutex_);
  // What the slots that are not to be had are there for: by number, from the lowest bit.
  struct InTheWay {
    std::uint64_t leased = 0;
    std::uint64_t held = 0;
    Reason Of(const Slot& slot) const {
      const std::uint64_t bit = std::uint64_t{1} << slot.index();
      return (leased & bit) != 0 ? Reason::kSlotLeased
             : (held & bit) != 0 ? Reason::kSlotHeld
                                 : Reason::kSlotBusy;
    }
  };
  InTheWay LookLocked() const KEEL_REQUIRES(mutex_);
  std::string DescribeLocked() const KEEL_REQUIRES(mutex_);
  bool InUseLocked() const KEEL_REQUIRES(mutex_);
  // Until something is given back, for `look` at most, which grows.
  void RestLocked(std::chrono::microseconds& look, Deadline deadline) KEEL_REQUIRES(mutex_);
  // OK, or why waiting for the slots is in vain. Asks the device now and then.
  Status AskLocked(std::chrono::steady_clock::time_point& asked) KEEL_REQUIRES(mutex_);
  // Those that are made, or half made. Null: in use, or there are none.
  std::unique_ptr<SlotSet> TakeUnusedLocked() KEEL_REQUIRES(mutex_);
  // OK, or somebody captures the step's stream; not asked where the step is a launch and no more.
  Status CheckNotCaptured(Slot& slot);
  Status QueueStep(Slot& slot, Deadline deadline) KEEL_EXCLUDES(mutex_, recording_mutex_);
  // Whether the step records, or calls functions of the caller's; a steady one mostly does not.
  bool NeedsTurn(Slot& slot) const;
  Status QueueInTurn(Slot& slot) KEEL_EXCLUDES(mutex_) KEEL_REQUIRES(recording_mutex_);
  // With recording_mutex_, if the program is opaque.
  Status QueueEagerly(Slot& slot, Reason reason);
  // Says in the log, once, which bindings share memory although `auto` may change what they see.
  void WarnOfSharedMemory(const Slot& slot) KEEL_REQUIRES(recording_mutex_);
  // The other slots, for the addresses of this one, though their steps run and their outputs are
  // held; but not one whose lease has launched nothing yet, which records by itself.
  void RecordOthers(Slot& like) KEEL_EXCLUDES(mutex_) KEEL_REQUIRES(recording_mutex_);
  // After a step: what moved in it, and whether that changes a choice.
  void Judge(Slot& slot) KEEL_EXCLUDES(mutex_);

  const Home home_;
  const bool opaque_;  // has commands that are functions of the caller's
  const bool eager_;   // of those, some that every step calls
  std::atomic<std::uint64_t> last_use_{0};
  std::atomic<int> warm_up_;
  std::atomic<std::uint64_t> steps_{0};

  TimedMutex recording_mutex_;
  bool warned_ KEEL_GUARDED_BY(recording_mutex_) = false;  // of shared memory

  mutable Mutex mutex_;
  CondVar released_;
  int waiting_ KEEL_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<SlotSet> set_ KEEL_GUARDED_BY(mutex_);
  // That the device was not ready with in time: the next try goes on with it. While there is no
  // set.
  std::unique_ptr<SlotSet> half_made_ KEEL_GUARDED_BY(mutex_);
  bool changing_ KEEL_GUARDED_BY(mutex_) = false;  // somebody makes slots, or ends them
  bool evicted_ KEEL_GUARDED_BY(mutex_) = false;
  std::size_t next_ KEEL_GUARDED_BY(mutex_) = 0;
  std::vector<std::optional<Buffer>> defaults_ KEEL_GUARDED_BY(mutex_);
  // The bindings that were bound, or chosen otherwise, one after the other; the first is number
  // log_begin_. A slot remembers how far it has read.
  std::vector<std::uint32_t> log_ KEEL_GUARDED_BY(mutex_);
  std::uint64_t log_begin_ KEEL_GUARDED_BY(mutex_) = 0;
  ExecutableStats totals_ KEEL_GUARDED_BY(mutex_);
};

}  // namespace keel::graph
