// What libraries of the shape in context_abi.h have in common and what needs no library: the
// meaning of results, and commands as the parameters of nodes.
#pragma once

#include <cstddef>

#include "drivers/shared/context_abi.h"
#include "drivers/shared/vendor_api.h"

namespace keel::vendor {

Verdict JudgeContextResult(Code code);

unsigned WaitFlags(hal::WaitCondition condition);
abi::KernelNodeParams KernelParams(const hal::KernelLaunch& launch, const NodeSpec& spec);
abi::Memcpy3D CopyParams(const hal::Copy& copy, const NodeSpec& spec);
abi::MemsetNodeParams FillParams(const hal::Fill& fill);
// Of a ValueWrite or a ValueWait.
abi::MemOp ValueOp(const hal::Command& command);
// `op` must outlive the result.
abi::BatchMemOpNodeParams ValueParams(abi::MemOp* op, void* context);

// The index in hal::Command of a node of this type. Batches of memory operations are value writes
// or waits by their first operation; kinds that only a foreign capture can contain do nothing that
// the layer could change, and count as empty.
std::size_t CommandIndex(int node_type, const abi::BatchMemOpNodeParams& operations);

}  // namespace keel::vendor
