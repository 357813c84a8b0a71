// libFuzzer's entry to one of the functions of fuzz_targets.h, which the build names.
#include <cstddef>
#include <cstdint>
#include <span>

#include "task/fuzz_targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  keel::task::KEEL_FUZZ_TARGET(std::as_bytes(std::span(data, size)));
  return 0;
}
