// Orchestration code: a small program that launches the kernels of a callable. This is what it and
// whoever runs it agree on: the host (task/engine.h), or a device that has a controller of its own
// (Capabilities::orchestration), which loads the code from its own memory.
//
// The code is a shared object for the processor that runs it, and exports
//
//   extern "C" int keel_orchestrate(keel::hal::OrchestrationCall* call);
//
// It needs nothing of Keel but this header and, to read its arguments, keel/task/arguments.h;
// neither needs a library. It returns 0, or a code of its own, with a message from Fail() if it
// likes. It must not throw, must not keep anything of the call, and may be called by several
// threads at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "keel/hal/command.h"

namespace keel::hal {

inline constexpr const char* kOrchestrationEntry = "keel_orchestrate";
inline constexpr std::uint32_t kOrchestrationVersion = 1;

struct OrchestrationCall {
  std::uint32_t version = kOrchestrationVersion;
  std::uint32_t kernel_count = 0;
  // The encoded arguments (keel/task/arguments.h). Every tensor in them has an address of the
  // device by now, whether it was there before or was copied for this call.
  const std::byte* arguments = nullptr;
  std::size_t arguments_size = 0;
  // Of whoever runs the code.
  int (*launch)(OrchestrationCall* call, std::uint32_t kernel, const LaunchDims* dims,
                const KernelArg* args, std::size_t arg_count) = nullptr;
  char message[200];  // of what failed first

  // Of the message it sets the ends: the rest would cost every call. Who writes one puts a zero
  // behind it.
  OrchestrationCall() { message[0] = message[sizeof(message) - 1] = '\0'; }
  // Launches kernel `kernel` of the callable, in the order of the calls. 0, or the StatusCode of
  // what is wrong; the message is then set. A launch that was refused makes the call fail even if
  // the code ignores it.
  int Launch(std::uint32_t kernel, const LaunchDims& dims, std::span<const KernelArg> args) {
    return launch(this, kernel, &dims, args.data(), args.size());
  }
  // Sets the message, unless there is one, and returns `code`.
  int Fail(int code, const char* text) {
    if (message[0] == '\0') std::strncpy(message, text, sizeof(message) - 1);
    return code;
  }
};

using OrchestrationFunction = int (*)(OrchestrationCall* call);

// A controller's entry: FindKernel(module, kOrchestrationEntry) in a module that was loaded from
// device memory (ModuleSource::Device). It is launched like any kernel, grid and block 1, with
//   (in u8* arguments, in u64* kernels, out OrchestrationOutcome*)
// where `kernels` holds the values of KernelHandles of the same device. The kernels run in order,
// before anything later of the stream.
struct OrchestrationOutcome {
  std::int32_t code = -1;  // what the code returned, or the StatusCode of a launch that was refused
  std::uint32_t launched = 0;  // how many kernels ran
  char message[200] = {};
};

}  // namespace keel::hal
