// Between a library of contexts (shared/context_abi.h) and the core of the stand-ins: codes, their
// names, and parameters of nodes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "drivers/shared/context_abi.h"
#include "drivers/standin/standin.h"

namespace keel::standin {

namespace abi = vendor::abi;

abi::Result CodeOf(Cause cause);
// Null for a code that is none. `vendor` is what comes before the names: "VENDOR" for
// VENDOR_SUCCESS and VENDOR_ERROR_INVALID_VALUE; the same in every call.
const char* CodeName(abi::Result code, std::string_view vendor);
const char* CodeText(abi::Result code);

hal::LaunchDims Dims(unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                     unsigned block_y, unsigned block_z, unsigned shared);
inline Place Host(const void* pointer) {
  return {Place::Side::kHost, reinterpret_cast<Address>(pointer), nullptr};
}
inline Place OnDevice(Address address, void* context = nullptr) {
  return {Place::Side::kDevice, address, context};
}
std::optional<hal::WaitCondition> ConditionOf(unsigned flags);

// The parameters of nodes as work; kNotSupported for what no stream can do.
Cause WorkOf(const abi::KernelNodeParams& params, Work* work);
Cause WorkOf(const abi::Memcpy3D& params, Work* work);
Cause WorkOf(const abi::MemsetNodeParams& params, Work* work);
Cause WorkOf(const abi::HostNodeParams& params, Work* work);
Cause WorkOf(const abi::BatchMemOpNodeParams& params, Work* work);  // one operation
// Of a kernel node, but for its arguments.
Cause ParamsOf(void* node, abi::KernelNodeParams* params);
// A write or wait as an operation.
abi::MemOp OperationOf(const Work& work);

// The protocol of lists: without a place for them, how many; else as many as fit.
Cause List(const std::vector<void*>& have, void** list, std::size_t* count);

Cause Update(void* exec, void* graph, abi::UpdateResultInfo* info);

}  // namespace keel::standin
