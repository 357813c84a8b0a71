#include "base/fork.h"

#include <pthread.h>

namespace keel::internal {

constinit std::atomic<std::uint64_t> fork_generation{0};

namespace {

// Before main, or when the library is loaded: no fork is missed that could matter.
[[maybe_unused]] const int registered =
    pthread_atfork(nullptr, nullptr, +[] { fork_generation.fetch_add(1); });

}  // namespace
}  // namespace keel::internal
