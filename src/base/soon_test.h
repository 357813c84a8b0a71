// Waiting for what another thread does, for a time that only a mistake exceeds.
#pragma once

#include <chrono>
#include <thread>

namespace keel {

// Whether `condition` came true. Not for how long something takes: a slow machine is no mistake.
template <class Condition>
bool Soon(Condition condition) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace keel
