// CUDA's form of a library of contexts (shared/context_api.h).

#include "drivers/cuda/cuda_api.h"

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/cuda/abi.h"
#include "drivers/cuda/nvtx.h"
#include "drivers/cuda/standard_kernels_ptx.h"
#include "drivers/shared/context_api.h"

namespace keel::cuda {
namespace {

struct Form {
  static constexpr std::string_view kDriver = "cuda";
  static constexpr std::string_view kLabel = "CUDA";
  static constexpr std::string_view kPrefix = "cu";
  static std::vector<std::string> Libraries() { return {"libcuda.so.1"}; }
  static constexpr std::string_view kArchitecture = "sm_";
  static constexpr int kNumaAttribute = abi::kHostNumaId;
  static constexpr std::array kValueAttributes = {abi::kCanUse64BitStreamMemOps};
  // PTX: text, which the driver compiles for the device that it finds.
  static std::string_view StandardKernels() { return kStandardKernelsPtx; }
  static constexpr bool kStreamsKnowTheirContext = true;
  static constexpr bool kKernelsTellKind = true;
  static constexpr bool kProbesUpdates = false;
  static constexpr bool kUploads = true;
};

}  // namespace

Result<const vendor::VendorApi*> LoadApi() {
  auto api = vendor::ContextApi<Form>::Load();
  if (api.ok()) AttachProfiler();
  return api;
}

}  // namespace keel::cuda
