// MemoryLimit: how many bytes an allocator may hold, and how many it does.
//
// Bytes are taken before the driver is asked and given back if it refuses, in one step each, so the
// limit is exact with any number of threads racing. Lowering it disturbs nothing: what is above
// stays until it is given back. Thread-safe.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace keel::memory {

class MemoryLimit {
 public:
  explicit MemoryLimit(std::uint64_t limit) : limit_(limit) {}

  bool TryTake(std::uint64_t bytes) {
    std::uint64_t held = held_.load(std::memory_order_relaxed);
    do {
      const std::uint64_t limit = limit_.load(std::memory_order_relaxed);
      if (held > limit || bytes > limit - held) return false;
    } while (!held_.compare_exchange_weak(held, held + bytes, std::memory_order_relaxed));
    return true;
  }
  void GiveBack(std::uint64_t bytes) { held_.fetch_sub(bytes, std::memory_order_relaxed); }

  std::uint64_t held() const { return held_.load(std::memory_order_relaxed); }
  std::uint64_t limit() const { return limit_.load(std::memory_order_relaxed); }
  void set_limit(std::uint64_t limit) { limit_.store(limit, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> limit_;
  std::atomic<std::uint64_t> held_{0};
};

}  // namespace keel::memory
