// Compares abi.h with MUSA's musa.h. Built only where that is installed; what is wrong does not
// compile.

#include "drivers/musa/abi.h"

#include <gtest/gtest.h>
#include <musa.h>

#include <cstddef>

#include "drivers/shared/abi_shape_test.h"
#include "drivers/shared/context_api.h"

namespace keel::musa {
namespace {

// A header is compared by its names, and a pointer's size is what is wanted.
// NOLINTBEGIN(cppcoreguidelines-macro-usage, bugprone-sizeof-expression)
#define PFX(name) mu##name
#define ENUM(name) MU_##name
#define ERROR(name) MUSA_ERROR_##name
#define STRUCT(name) MUSA_##name
#define TYPE(name) MU##name
#define KERNEL_PARAMS MUSA_KERNEL_NODE_PARAMS
#include "drivers/shared/context_abi_test.inc"

SAME(abi::kRdmaWithVirtualMemorySupported,
     MU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_MUSA_VMM_SUPPORTED);
SAME(abi::kCanUse64BitStreamMemOpsV1, MU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS);
SAME(abi::kCanUse64BitStreamMemOps, MU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V2);
SIZE(abi::KernelNodeParamsV1, MUSA_KERNEL_NODE_PARAMS);
ENTRY(add_kernel, muGraphAddKernelNode);
ENTRY(set_kernel, muGraphExecKernelNodeSetParams);
ENTRY(get_kernel, muGraphKernelNodeGetParams);
ENTRY(exec_update_v1, muGraphExecUpdate);
ENTRY(instantiate_v2, muGraphInstantiate_v2);
// NOLINTEND(cppcoreguidelines-macro-usage, bugprone-sizeof-expression)

TEST(MusaAbiTest, IsThatOfTheHeader) { SUCCEED(); }

}  // namespace
}  // namespace keel::musa
