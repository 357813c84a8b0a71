// MUSA's form of a library of contexts (shared/context_api.h). What is different here:
//
//  - Older drivers lack entry points: without muStreamGetCaptureInfo_v2 or
//    muThreadExchangeStreamCaptureMode there are no graphs, without muStreamWriteValue64 no values
//    by streams, and muMemCreate and its kin came late. What is not there is not a capability.
//  - muGraphExecUpdate has the first version's arguments, muGraphInstantiate_v2 stands in for
//    muGraphInstantiateWithFlags, and there are no nodes of memory operations, so that a value
//    write or wait cannot be a node of a graph.
//  - MUSA 3.1 exports the functions that update an instantiated graph, and each of them answers
//    "not supported". The capability is probed.
//  - There is no attribute for the host's node, and no image of the standard kernels: the library
//    takes binaries for one architecture, not text. KEEL_MUSA_KERNELS names a file with one.

#include "drivers/musa/musa_api.h"

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/musa/abi.h"
#include "drivers/shared/context_api.h"
#include "drivers/shared/kernel_file.h"

namespace keel::musa {
namespace {

struct Form {
  static constexpr std::string_view kDriver = "musa";
  static constexpr std::string_view kLabel = "MUSA";
  static constexpr std::string_view kPrefix = "mu";
  // Installations differ in which links they have beside the file with the full version.
  static std::vector<std::string> Libraries() {
    return {"libmusa.so.1", "libmusa.so.4", "libmusa.so"};
  }
  static constexpr std::string_view kArchitecture = "mp_";
  static constexpr int kNumaAttribute = 0;
  static constexpr std::array kValueAttributes = {abi::kCanUse64BitStreamMemOps,
                                                  abi::kCanUse64BitStreamMemOpsV1};
  static std::string_view StandardKernels() {
    // Never destroyed: a device gives it to whoever asks, as long as the process lives.
    static const auto& image = *new std::string(vendor::KernelsFromFile("KEEL_MUSA_KERNELS"));
    return image;
  }
  // Whether they do is not known.
  static constexpr bool kStreamsKnowTheirContext = false;
  static constexpr bool kKernelsTellKind = false;
  static constexpr bool kProbesUpdates = true;
  static constexpr bool kUploads = false;  // it exports what it may not have
};

}  // namespace

Result<const vendor::VendorApi*> LoadApi() { return vendor::ContextApi<Form>::Load(); }

}  // namespace keel::musa
