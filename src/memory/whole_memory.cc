#include "keel/memory/whole_memory.h"

#include <utility>

#include "memory/allocator_core.h"

namespace keel::memory {

Result<WholeMemory> WholeMemory::Create(DeviceAllocator& allocator, Bytes size,
                                        telemetry::TagId tag) {
  const std::shared_ptr<AllocatorCore>& core = allocator.core_;
  KEEL_TRY(core->Here());
  const hal::Capabilities& can = core->device->capabilities();
  if (!can.virtual_memory) return Unimplemented("this device has no virtual memory");
  if (size.empty()) return InvalidArgument("whole memory of no bytes");
  const auto rounded = AlignUp(size, can.granularity.minimum);
  if (!rounded) {
    return InvalidArgument(ToString(size) + " is more than there are addresses for");
  }
  KEEL_TRY(core->TakeWhole(rounded->count(), tag));
  Result<hal::PhysicalMemory> memory = hal::PhysicalMemory::Create(core->device, *rounded);
  if (memory.status().code() == StatusCode::kResourceExhausted && core->Trim(0).ok()) {
    memory = hal::PhysicalMemory::Create(core->device, *rounded);
  }
  if (!memory.ok()) {
    core->GiveBackWhole(rounded->count(), tag);
    return memory.status();
  }
  WholeMemory whole;
  whole.core_ = core;
  whole.memory_ = *std::move(memory);
  whole.size_ = *rounded;
  whole.tag_ = tag;
  return whole;
}

WholeMemory::WholeMemory(WholeMemory&& other) noexcept
    : core_(std::move(other.core_)),
      memory_(std::move(other.memory_)),
      size_(std::exchange(other.size_, {})),
      tag_(other.tag_) {}

WholeMemory& WholeMemory::operator=(WholeMemory&& other) noexcept {
  if (this != &other) {
    GiveBack();
    core_ = std::move(other.core_);
    memory_ = std::move(other.memory_);
    size_ = std::exchange(other.size_, {});
    tag_ = other.tag_;
  }
  return *this;
}

WholeMemory::~WholeMemory() { GiveBack(); }

void WholeMemory::GiveBack() noexcept {
  if (core_ == nullptr) return;
  memory_ = {};  // what cannot be given back is on the device's retry list
  if (core_->Here().ok()) core_->GiveBackWhole(size_.count(), tag_);
  core_.reset();
}

std::vector<hal::AccessGrant> WholeMemory::GrantsFor(hal::Access access) const {
  return core_ != nullptr ? core_->GrantsFor(access) : std::vector<hal::AccessGrant>();
}

Status WholeMemory::Close() {
  if (core_ == nullptr) return OkStatus();
  KEEL_TRY(memory_.Close());
  GiveBack();
  return OkStatus();
}

}  // namespace keel::memory
