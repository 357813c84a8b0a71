// Orchestration code for the suite. A driver whose devices have a controller compiles this for it,
// as a shared object or whatever it takes, and gives the bytes to the suite (Join::orchestration).
//
// Its arguments are words of 64 bits: what to return in the end; whether to go on after a launch
// that was refused; and for each launch of a kernel like keel_fill its number, the address, the
// value and the count.
#include <cstdint>
#include <cstring>

#include "keel/hal/orchestration.h"

extern "C" [[gnu::visibility("default")]] int keel_orchestrate(keel::hal::OrchestrationCall* call) {
  using keel::hal::KernelArg;
  const auto word = [call](std::size_t i) {
    std::uint64_t value = 0;
    std::memcpy(&value, call->arguments + i * sizeof(value), sizeof(value));
    return value;
  };
  const std::size_t words = call->arguments_size / sizeof(std::uint64_t);
  for (std::size_t i = 2; i + 4 <= words; i += 4) {
    const KernelArg args[] = {
        KernelArg::Out(keel::DeviceAddress(word(i + 1)), keel::Bytes(word(i + 3) * 4)),
        KernelArg::Value(static_cast<std::uint32_t>(word(i + 2))), KernelArg::Value(word(i + 3))};
    const int code = call->Launch(static_cast<std::uint32_t>(word(i)), {}, args);
    if (code != 0 && word(1) == 0) return code;
  }
  return word(0) == 0 ? 0 : call->Fail(static_cast<int>(word(0)), "as it was told");
}
