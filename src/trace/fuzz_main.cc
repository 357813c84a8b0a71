// libFuzzer's entry to one of the functions of fuzz_targets.h, which the build names.
#include <cstddef>
#include <cstdint>

#include "trace/fuzz_targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  keel::trace::KEEL_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}
