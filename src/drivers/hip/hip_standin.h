// What the two files of HIP's stand-in share: how an entry point answers.
//
// KEEL_STANDIN_HIP_VERSION is the version that this stand-in says it is; numbers that HIP changed
// are those of that version.
#pragma once

#include <cstddef>

#include "drivers/hip/abi.h"
#include "drivers/standin/standin.h"

namespace keel::hip {

using standin::Cause;

inline constexpr int kStandinVersion = KEEL_STANDIN_HIP_VERSION;

abi::Result ResultOf(Cause cause);
// HIP's last error of this thread; every entry point but the one that asks for it leaves its own
// result here, as the runtime does before version 7, and errors only from then on.
abi::Result Remember(abi::Result code);

// Makes the context of the thread's current device current in the core. HIP has no contexts: those
// of the core are retained when they are first needed, and never released.
Cause UseCurrentDevice();
Cause ContextOfDevice(int device, void** context);

// Every entry point that can fail: the gate, the current device, then `body`, which returns a
// Cause.
template <class Body>
abi::Result Answer(const char* entry, Body body) {
  const standin::Gate gate = standin::Enter(entry);
  if (gate.code) return Remember(*gate.code);
  if (gate.cause != Cause::kOk) return Remember(ResultOf(gate.cause));
  const Cause current = UseCurrentDevice();
  return Remember(ResultOf(current == Cause::kOk ? body() : current));
}

// The same for entry points of a stream: to HIP one that does not exist is a destroyed context.
template <class Body>
abi::Result AnswerStream(const char* entry, Body body) {
  return Answer(entry, [&] {
    const Cause cause = body();
    return cause == Cause::kInvalidHandle ? Cause::kContextDestroyed : cause;
  });
}

template <class... Pointers>
bool AnyNull(Pointers... pointers) {
  return ((pointers == nullptr) || ...);
}

inline standin::Address AddressOf(const void* pointer) {
  return reinterpret_cast<standin::Address>(pointer);
}

}  // namespace keel::hip

#define HIP_EXPORT(name) extern "C" __attribute__((visibility("default"))) abi::Result name
