// SpinPause: what a loop does between two looks at a word that another core is about to write.
#pragma once

#include <atomic>

namespace keel {

inline void SpinPause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace keel
