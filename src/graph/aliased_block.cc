#include "graph/aliased_block.h"

#include <utility>

namespace keel::graph {

Result<AliasedBlock::View> AliasedBlock::Map(const std::shared_ptr<hal::Device>& device,
                                             const memory::WholeMemory& memory,
                                             hal::Access access) {
  View view;
  KEEL_ASSIGN(view.range, hal::AddressRange::Create(device, memory.size()));
  KEEL_ASSIGN(view.mapping, hal::Mapping::Create(view.range, Offset(0), memory.memory(),
                                                 memory.GrantsFor(access)));
  return view;
}

Result<AliasedBlock> AliasedBlock::Create(memory::DeviceMemory& memory, Bytes size,
                                          telemetry::TagId tag) {
  AliasedBlock block;
  KEEL_ASSIGN(block.memory_, memory::WholeMemory::Create(memory.allocator(), size, tag));
  KEEL_ASSIGN(block.written_, Map(memory.device(), block.memory_, hal::Access::kReadWrite));
  KEEL_ASSIGN(block.read_, Map(memory.device(), block.memory_, hal::Access::kRead));
  return block;
}

}  // namespace keel::graph
