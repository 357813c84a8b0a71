// SlotSet: the slots of an executable and what they share, from the first step to the end, or until
// the memory budget takes them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "graph/slot.h"
#include "keel/hal/module.h"
#include "keel/hal/stream.h"

namespace keel::graph {

class SlotSet {
 public:
  // Takes all memory, and waits for the device to be ready with it. `arena` is where shared scratch
  // is. kDeadlineExceeded: the device was not ready in time; the memory is left to its retry list.
  static Result<std::unique_ptr<SlotSet>> Create(std::shared_ptr<const Program> program,
                                                 std::shared_ptr<const Layout> layout,
                                                 std::shared_ptr<AutoPolicy> choices,
                                                 std::shared_ptr<memory::DeviceMemory> memory,
                                                 int slots, int kept_traces, DeviceAddress arena,
                                                 Deadline deadline);
  // What still runs then keeps its memory: it is left to the device's retry list.
  static void Retire(std::unique_ptr<SlotSet> set, Deadline deadline) noexcept;
  // Every slot must be idle, or the device lost.
  ~SlotSet();
  SlotSet(const SlotSet&) = delete;
  SlotSet& operator=(const SlotSet&) = delete;

  // What Create would take of the device, about.
  static Bytes BytesFor(const Layout& layout, const hal::Capabilities& capabilities, int slots);

  std::vector<std::unique_ptr<Slot>>& slots() { return slots_; }
  const std::vector<std::unique_ptr<Slot>>& slots() const { return slots_; }
  // See Slot::Idle.
  bool Idle();
  Status WaitIdle(Deadline deadline);
  Bytes bytes() const;
  hal::Device& device() const { return *memory_->device(); }

 private:
  SlotSet(std::shared_ptr<const Program> program, std::shared_ptr<const Layout> layout,
          std::shared_ptr<AutoPolicy> choices, std::shared_ptr<memory::DeviceMemory> memory);
  Status Make(int slots, int kept_traces, DeviceAddress arena, Deadline deadline);
  Status UploadPieces(Deadline deadline);

  const std::shared_ptr<const Program> program_;
  const std::shared_ptr<const Layout> layout_;
  const std::shared_ptr<AutoPolicy> choices_;
  const std::shared_ptr<memory::DeviceMemory> memory_;
  hal::Module module_;
  hal::Stream capture_stream_;
  bool ready_ = false;  // nothing that made it is on the capture stream any more
  SlotContext context_;
  std::vector<std::unique_ptr<Slot>> slots_;
};

}  // namespace keel::graph
