// ThreadStripe: which stripe of something striped the calling thread writes into. The same number
// for everything in the process.
//
// A number below kOwnedStripes is one thread's alone: it is dealt out when the thread first asks,
// and goes back when the thread ends. Who finds none free, and who asks in the last moments of a
// thread, after its number went back, shares one of kSharedStripes from there on, until its end.
//
// A thread that first asks after its thread-local objects are gone, in the destructor of a key of
// pthreads, never gives its number back.
//
// Asking is one load of a thread's own, the first time excepted. Any thread, any time, also while
// thread-local and static objects are destroyed. A forked child keeps the number of the thread that
// forked, and those of threads that it does not have stay out of use: whatever has stripes may
// have been left half changed there.
#pragma once

#include <cstddef>

namespace keel::telemetry {

inline constexpr std::size_t kOwnedStripes = 64;
inline constexpr std::size_t kSharedStripes = 8;

namespace internal {
inline constexpr std::size_t kNoStripe = kOwnedStripes + kSharedStripes;
// Found without a call, also in a shared library.
extern constinit __attribute__((tls_model("initial-exec"))) thread_local std::size_t thread_stripe;
std::size_t DealStripe();
}  // namespace internal

// Below kOwnedStripes, or of the kSharedStripes that follow.
inline std::size_t ThreadStripe() {
  const std::size_t stripe = internal::thread_stripe;
  if (stripe == internal::kNoStripe) [[unlikely]] {
    return internal::DealStripe();
  }
  return stripe;
}

}  // namespace keel::telemetry
