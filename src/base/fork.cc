#include "base/fork.h"

#include <pthread.h>

#include <atomic>

namespace keel {

std::uint64_t ForkGeneration() {
  static std::atomic<std::uint64_t> generation{0};
  static const int registered = pthread_atfork(nullptr, nullptr, +[] { generation.fetch_add(1); });
  (void)registered;
  return generation.load(std::memory_order_relaxed);
}

}  // namespace keel
