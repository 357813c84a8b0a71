// CopyChoice: whether copies of a size are staged or left to the driver, by what was measured.
//
// Copies below the threshold are the driver's: workers that sleep take longer to wake than such a
// copy takes. Above it, which of the two is faster depends on the driver, the link and the cores.
// So up to kMost the first copies of each power of two go both ways in turns, kSamples each; the
// best time of either counts, because what disturbs a copy only makes it slower; and the faster way
// is kept for good. Until then, and from kMost on, they are staged.
//
// For one device and direction. Thread-safe; a size that is decided costs one load.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "keel/base/bytes.h"
#include "keel/base/mutex.h"

namespace keel::memory {

class CopyChoice {
 public:
  static constexpr Bytes kLeast = 128_KiB;
  static constexpr Bytes kMost = 8_MiB;
  static constexpr int kSamples = 5;

  enum class Way : std::uint8_t { kDriver, kStaged };
  struct Plan {
    Way way;
    bool measure;  // then Measured() should hear of it
  };

  explicit CopyChoice(Bytes threshold, bool measures)
      : threshold_(threshold), measures_(measures) {}

  Plan For(Bytes size) KEEL_EXCLUDES(mutex_);
  // What the threshold says.
  Way Unmeasured(Bytes size) const { return size < threshold_ ? Way::kDriver : Way::kStaged; }
  void Measured(Bytes size, Way way, std::chrono::nanoseconds time) KEEL_EXCLUDES(mutex_);

  // Copies that were timed; and powers of two above the threshold at which the driver was faster.
  std::uint64_t measured() const { return measured_.load(std::memory_order_relaxed); }
  std::uint64_t overruled() const { return overruled_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kClasses =
      static_cast<std::size_t>(std::bit_width(kMost.count()) - std::bit_width(kLeast.count()));
  enum class Known : std::uint8_t { kNothing, kDriver, kStaged };
  struct Tried {
    std::array<int, 2> samples{};  // by Way
    std::array<double, 2> best{};  // nanoseconds per byte
  };

  static std::size_t Class(Bytes size) {
    return static_cast<std::size_t>(std::bit_width(size.count()) - std::bit_width(kLeast.count()));
  }

  const Bytes threshold_;
  const bool measures_;
  std::array<std::atomic<Known>, kClasses> known_{};
  std::atomic<std::uint64_t> measured_{0};
  std::atomic<std::uint64_t> overruled_{0};
  Mutex mutex_;
  std::array<Tried, kClasses> tried_ KEEL_GUARDED_BY(mutex_){};
};

}  // namespace keel::memory
