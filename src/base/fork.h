// Telling a forked child from its parent. A child has none of the parent's threads, its locks may
// be held for ever, and a vendor's library does not work in it: whoever holds such things compares
// generations and steps aside.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace keel {

namespace internal {
extern std::atomic<std::uint64_t> fork_generation;
}  // namespace internal

// How many forks lie between this process and the one that loaded Keel. One relaxed load.
inline std::uint64_t ForkGeneration() {
  return internal::fork_generation.load(std::memory_order_relaxed);
}

// One T for each process: a child, which can trust no lock of its parent, gets a T of its own.
// Never destroyed, so that static objects may use it to the end. Meant to be a static object
// itself.
template <class T>
class PerProcess {
 public:
  T& Get() {
    const std::uint64_t generation = ForkGeneration();
    Slot* slot = slot_.load(std::memory_order_acquire);
    while (slot == nullptr || slot->generation != generation) {
      auto fresh = std::make_unique<Slot>();
      if (slot_.compare_exchange_strong(slot, fresh.get())) slot = fresh.release();
    }
    return slot->value;
  }

 private:
  struct Slot {
    std::uint64_t generation = ForkGeneration();
    T value;
  };
  std::atomic<Slot*> slot_{nullptr};
};

}  // namespace keel
