// Compares abi.h with the toolkit's cuda.h. Built only where that is installed; what is wrong does
// not compile.

#include "drivers/cuda/abi.h"

#include <cuda.h>
#include <gtest/gtest.h>

#include <cstddef>

#include "drivers/shared/abi_shape_test.h"
#include "drivers/shared/context_api.h"

namespace keel::cuda {
namespace {

// A header is compared by its names, and a pointer's size is what is wanted.
// NOLINTBEGIN(cppcoreguidelines-macro-usage, bugprone-sizeof-expression)
#define PFX(name) cu##name
#define ENUM(name) CU_##name
#define ERROR(name) CUDA_ERROR_##name
#define STRUCT(name) CUDA_##name
#define TYPE(name) CU##name
#define KERNEL_PARAMS CUDA_KERNEL_NODE_PARAMS_v2
#include "drivers/shared/context_abi_test.inc"

SAME(abi::kDeviceUnavailable, CUDA_ERROR_DEVICE_UNAVAILABLE);
SAME(abi::kRdmaWithVirtualMemorySupported,
     CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);
SAME(abi::kCanUse64BitStreamMemOps, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS);
SAME(abi::kHostNumaId, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID);
SAME(abi::kNodeBatchMemOp, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
SIZE(abi::KernelNodeParams, CUDA_KERNEL_NODE_PARAMS_v2);
FIELD(abi::KernelNodeParams, kernel, CUDA_KERNEL_NODE_PARAMS_v2, kern);
FIELD(abi::KernelNodeParams, context, CUDA_KERNEL_NODE_PARAMS_v2, ctx);
SIZE(abi::BatchMemOpNodeParams, CUDA_BATCH_MEM_OP_NODE_PARAMS);
FIELD(abi::BatchMemOpNodeParams, context, CUDA_BATCH_MEM_OP_NODE_PARAMS, ctx);
FIELD(abi::BatchMemOpNodeParams, count, CUDA_BATCH_MEM_OP_NODE_PARAMS, count);
FIELD(abi::BatchMemOpNodeParams, operations, CUDA_BATCH_MEM_OP_NODE_PARAMS, paramArray);
FIELD(abi::BatchMemOpNodeParams, flags, CUDA_BATCH_MEM_OP_NODE_PARAMS, flags);
SIZE(abi::UpdateResultInfo, CUgraphExecUpdateResultInfo);
FIELD(abi::UpdateResultInfo, result, CUgraphExecUpdateResultInfo, result);
FIELD(abi::UpdateResultInfo, error_node, CUgraphExecUpdateResultInfo, errorNode);
FIELD(abi::UpdateResultInfo, error_from_node, CUgraphExecUpdateResultInfo, errorFromNode);
ENTRY(wait_value, cuStreamWaitValue64_v2);
CALL(write_value, cuStreamWriteValue64_v2);
CALL(exchange_capture_mode, cuThreadExchangeStreamCaptureMode);
ENTRY(add_kernel, cuGraphAddKernelNode_v2);
ENTRY(set_kernel, cuGraphExecKernelNodeSetParams_v2);
ENTRY(get_kernel, cuGraphKernelNodeGetParams_v2);
ENTRY(add_mem_op, cuGraphAddBatchMemOpNode);
ENTRY(set_mem_op, cuGraphExecBatchMemOpNodeSetParams);
ENTRY(get_mem_op, cuGraphBatchMemOpNodeGetParams);
ENTRY(exec_update, cuGraphExecUpdate_v2);
CALL(instantiate, cuGraphInstantiateWithFlags);
CALL(upload, cuGraphUpload);
// NOLINTEND(cppcoreguidelines-macro-usage, bugprone-sizeof-expression)

TEST(CudaAbiTest, IsThatOfTheToolkit) {
  // Constants that are pointers in the header cannot be compared when compiled.
  EXPECT_EQ(reinterpret_cast<CUstream>(abi::kStreamLegacy), CU_STREAM_LEGACY);
  EXPECT_EQ(reinterpret_cast<CUstream>(abi::kStreamPerThread), CU_STREAM_PER_THREAD);
}

}  // namespace
}  // namespace keel::cuda
