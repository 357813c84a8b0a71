#include "memory/copy_choice.h"

#include <algorithm>

namespace keel::memory {

CopyChoice::Plan CopyChoice::For(Bytes size) {
  const Way usual = Unmeasured(size);
  const bool between = size >= kLeast && size < kMost;
  if (!measures_ || usual == Way::kDriver || !between) return {usual, false};
  const std::size_t index = Class(size);
  const Known known = known_[index].load(std::memory_order_relaxed);
  if (known != Known::kNothing) {
    return {known == Known::kStaged ? Way::kStaged : Way::kDriver, false};
  }
  MutexLock lock(mutex_);
  const Tried& tried = tried_[index];
  const bool drivers_turn = tried.samples[static_cast<std::size_t>(Way::kDriver)] <
                            tried.samples[static_cast<std::size_t>(Way::kStaged)];
  return {drivers_turn ? Way::kDriver : Way::kStaged, true};
}

void CopyChoice::Measured(Bytes size, Way way, std::chrono::nanoseconds time) {
  const std::size_t index = Class(size);
  const double cost = static_cast<double>(time.count()) / static_cast<double>(size.count());
  MutexLock lock(mutex_);
  if (known_[index].load(std::memory_order_relaxed) != Known::kNothing) return;
  measured_.fetch_add(1, std::memory_order_relaxed);
  Tried& tried = tried_[index];
  const auto at = static_cast<std::size_t>(way);
  tried.best[at] = tried.samples[at] == 0 ? cost : std::min(tried.best[at], cost);
  ++tried.samples[at];
  if (*std::min_element(tried.samples.begin(), tried.samples.end()) < kSamples) return;
  const Way faster = tried.best[0] < tried.best[1] ? Way::kDriver : Way::kStaged;
  if (faster == Way::kDriver) overruled_.fetch_add(1, std::memory_order_relaxed);
  known_[index].store(faster == Way::kStaged ? Known::kStaged : Known::kDriver,
                      std::memory_order_relaxed);
}

}  // namespace keel::memory
