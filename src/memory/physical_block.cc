#include "keel/memory/physical_block.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "base/fork.h"
#include "keel/hal/owned_handle.h"
#include "keel/memory/whole_memory.h"

namespace keel::memory {
namespace {

constexpr std::chrono::seconds kPatience(10);

// What goes together, the last first.
struct Parts {
  std::shared_ptr<WholeMemory> whole;
  hal::AddressRange range;
  hal::Mapping mapping;
};

}  // namespace

struct PhysicalBlock::State {
  explicit State(std::shared_ptr<hal::Device> its_device) : device(std::move(its_device)) {}
  ~State() {
    if (!parts.mapping) return;
    const Status status = device->Synchronize(Deadline::After(kPatience));
    if (status.ok() || status.code() == StatusCode::kDeviceLost) return;
    auto kept = std::make_shared<Parts>(std::move(parts));
    hal::internal::LeaveForRetry(*device, status,
                                 "physical memory at " + ToString(kept->mapping.address()),
                                 [its_device = device.get(), kept]() mutable -> Status {
                                   if (kept == nullptr) return OkStatus();
                                   KEEL_TRY(its_device->Synchronize(Deadline::Now()));
                                   kept.reset();
                                   return OkStatus();
                                 });
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  const std::shared_ptr<hal::Device> device;
  Parts parts;
};

Result<PhysicalBlock> PhysicalBlock::Create(const std::shared_ptr<hal::Device>& device,
                                            DeviceAllocator& allocator, Bytes size,
                                            telemetry::TagId tag) {
  const Bytes granule = device->capabilities().granularity.minimum;
  if (device->capabilities().virtual_memory && (size.empty() || size % granule != Bytes(0))) {
    return InvalidArgument(fmt::format(
        "physical memory of {} bytes: it comes in multiples of the device's granularity, {}",
        size.count(), ToString(granule)));
  }
  auto state = std::shared_ptr<State>(new State(device), DeleteHere());
  KEEL_ASSIGN(WholeMemory whole, WholeMemory::Create(allocator, size, tag));
  state->parts.whole = std::make_shared<WholeMemory>(std::move(whole));
  KEEL_ASSIGN(state->parts.range, hal::AddressRange::Create(device, size));
  const hal::AccessGrant grant{.device = device->id(), .access = hal::Access::kReadWrite};
  KEEL_ASSIGN(state->parts.mapping,
              hal::Mapping::Create(state->parts.range, Offset(0), state->parts.whole->memory(),
                                   {&grant, 1}));
  PhysicalBlock block;
  block.state_ = std::move(state);
  return block;
}

DeviceAddress PhysicalBlock::address() const {
  return state_ == nullptr ? DeviceAddress() : state_->parts.mapping.address();
}

Bytes PhysicalBlock::size() const {
  return state_ == nullptr ? Bytes() : state_->parts.mapping.size();
}

std::shared_ptr<const hal::PhysicalMemory> PhysicalBlock::memory() const {
  if (state_ == nullptr) return nullptr;
  return {state_->parts.whole, &state_->parts.whole->memory()};
}

Status PhysicalBlock::Close(Deadline deadline) {
  if (state_ == nullptr) return OkStatus();
  Status status = state_->device->Synchronize(deadline);
  if (!status.ok() && status.code() != StatusCode::kDeviceLost) return status;
  {
    const Parts gone = std::move(state_->parts);
  }
  state_.reset();
  return OkStatus();
}

}  // namespace keel::memory
