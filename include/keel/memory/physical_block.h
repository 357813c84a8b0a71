// PhysicalBlock: physical memory of a device in one whole handle, which its owner works in at an
// address of its own while others map the same memory elsewhere: a graph under the address that it
// was recorded with (graph::Policy::kRemap).
//
// As WholeMemory it is the allocator's to give, under its limit and in its statistics, and is no
// block of it: nothing else is in its pages.
//
// Who maps it elsewhere holds `memory()`, and the memory lives until the last of these and the
// block are gone. The address goes with the block, and only when the device's own streams are past
// what they had queued then; work on streams that somebody else made is theirs to have ended.
//
// Move-only. Thread-safe as far as different objects go.
#pragma once

#include <memory>

#include "keel/base/deadline.h"
#include "keel/base/export.h"
#include "keel/base/result.h"
#include "keel/hal/memory.h"
#include "keel/memory/device_allocator.h"
#include "keel/telemetry/tags.h"

namespace keel::memory {

class KEEL_EXPORT PhysicalBlock {
 public:
  // kInvalidArgument: `size` is no multiple of the device's granularity; kResourceExhausted: the
  // limit, or the device has no more; kUnimplemented: it has no virtual memory.
  static Result<PhysicalBlock> Create(const std::shared_ptr<hal::Device>& device,
                                      DeviceAllocator& allocator, Bytes size,
                                      telemetry::TagId tag = telemetry::TagId::kNone);
  PhysicalBlock() = default;
  // Waits as Close does, for ten seconds at most; what then still runs keeps the memory until the
  // device's retry list finds it done (retry_list.h).
  ~PhysicalBlock() = default;
  PhysicalBlock(PhysicalBlock&&) noexcept = default;
  PhysicalBlock& operator=(PhysicalBlock&&) noexcept = default;

  explicit operator bool() const { return state_ != nullptr; }
  // Of what there is; nothing of these for one that was closed.
  DeviceAddress address() const;
  Bytes size() const;
  std::shared_ptr<const hal::PhysicalMemory> memory() const;

  // kDeadlineExceeded: work still runs, and nothing changed; the same for kFailedPrecondition,
  // while somebody's capture keeps the device from being asked. OK for one that has nothing.
  Status Close(Deadline deadline);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace keel::memory
