// PrefetchForWrite: a line that this core is about to write, and that another core may have.
#pragma once

namespace keel {

inline void PrefetchForWrite(const void* address) {
#if defined(__x86_64__)
  // Without a flag that names newer processors the compiler fetches a line only to be read, and the
  // store then waits until the other cores have given it up. Where the instruction is not known it
  // does nothing.
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(address)));
#else
  __builtin_prefetch(address, 1);
#endif
}

}  // namespace keel
