// AliasedBlock: device memory at two addresses. Commands write through the one; through the other,
// the same bytes can only be read. The peers that the allocator has when it is made reach both, as
// they reach the allocator's memory.
//
// The memory is the device allocator's to give (whole_memory.h), in its limit and its statistics.
// Nothing may use either address when the block goes.
#pragma once

#include <memory>

#include "keel/base/result.h"
#include "keel/hal/memory.h"
#include "keel/memory/process_memory.h"
#include "keel/memory/whole_memory.h"

namespace keel::graph {

class AliasedBlock {
 public:
  // `size` is rounded up to the device's granularity.
  static Result<AliasedBlock> Create(memory::DeviceMemory& memory, Bytes size,
                                     telemetry::TagId tag);
  AliasedBlock() = default;

  Bytes size() const { return memory_.size(); }
  DeviceAddress address() const { return written_.mapping.address(); }
  DeviceAddress alias() const { return read_.mapping.address(); }

 private:
  struct View {
    hal::AddressRange range;
    hal::Mapping mapping;
  };
  static Result<View> Map(const std::shared_ptr<hal::Device>& device,
                          const memory::WholeMemory& memory, hal::Access access);

  memory::WholeMemory memory_;  // goes last
  View written_;
  View read_;
};

}  // namespace keel::graph
