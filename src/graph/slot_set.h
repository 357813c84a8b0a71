// SlotSet: the slots of an executable and what they share, from the first step to the end, or until
// the memory budget takes them.
//
// One thread's at a time; the slots are their leases'.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "graph/slot.h"
#include "keel/graph/memory_budget.h"
#include "keel/hal/module.h"
#include "keel/hal/stream.h"

namespace keel::graph {

class SlotSet {
 public:
  // Takes nothing yet. `arena` is where shared scratch is.
  SlotSet(std::shared_ptr<const Program> program, std::shared_ptr<const Layout> layout,
          std::shared_ptr<AutoPolicy> choices, std::shared_ptr<memory::DeviceMemory> memory,
          int slots, int kept_traces, DeviceAddress arena);
  // Takes all memory, and waits for the device to be ready with it. kDeadlineExceeded: it was not
  // in time; what was taken is kept, and the next call goes on from there. After any other error
  // the set is of no use: Retire it.
  Status Make(Deadline deadline);
  // Ends the set, and then its user's share of the budget, if there is one. What still runs keeps
  // its memory: it is left to the device's retry list, and stays on the budget until it is freed.
  static void Retire(std::unique_ptr<SlotSet> set, Deadline deadline,
                     const std::shared_ptr<MemoryBudget>& budget,
                     const MemoryBudget::User* user) noexcept;
  // Every slot must be idle, or the device lost.
  ~SlotSet();
  SlotSet(const SlotSet&) = delete;
  SlotSet& operator=(const SlotSet&) = delete;

  // What Make would take of the device, about.
  static Bytes BytesFor(const Layout& layout, const hal::Capabilities& capabilities, int slots);

  std::vector<std::unique_ptr<Slot>>& slots() { return slots_; }
  const std::vector<std::unique_ptr<Slot>>& slots() const { return slots_; }
  // See Slot::Idle.
  bool Idle();
  Status WaitIdle(Deadline deadline);
  Bytes bytes() const;
  hal::Device& device() const { return *memory_->device(); }

 private:
  Status Begin();
  Status UploadPieces(Deadline deadline);

  const std::shared_ptr<const Program> program_;
  const std::shared_ptr<const Layout> layout_;
  const std::shared_ptr<AutoPolicy> choices_;
  const std::shared_ptr<memory::DeviceMemory> memory_;
  const std::size_t count_;
  hal::Module module_;
  hal::Stream capture_stream_;
  hal::Stream memory_stream_;  // made last
  bool uploaded_ = false;      // the pieces
  std::size_t made_ = 0;       // slots; one more may be there in part
  bool ready_ = false;         // nothing that made it is on the memory's stream any more
  SlotContext context_;
  std::vector<std::unique_ptr<Slot>> slots_;
};

}  // namespace keel::graph
