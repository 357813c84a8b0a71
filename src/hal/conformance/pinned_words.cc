#include "hal/conformance/pinned_words.h"

#include <atomic>
#include <cstring>
#include <thread>
#include <utility>

#include "keel/base/deadline.h"

namespace keel::hal::conformance {

Result<PinnedWords> PinnedWords::Create(std::shared_ptr<Device> device, std::size_t count) {
  PinnedWords words;
  KEEL_ASSIGN(words.memory_, HostMemory::Create(std::move(device), Bytes(count * 8)));
  std::memset(words.memory_.data(), 0, count * 8);
  KEEL_ASSIGN(words.base_, words.memory_.address());
  return words;
}

std::uint64_t PinnedWords::Load(std::size_t i) const {
  return std::atomic_ref<std::uint64_t>(data()[i]).load(std::memory_order_acquire);
}

void PinnedWords::Store(std::uint64_t value, std::size_t i) const {
  std::atomic_ref<std::uint64_t>(data()[i]).store(value, std::memory_order_release);
}

bool PinnedWords::WaitFor(std::uint64_t value, std::size_t i,
                          std::chrono::milliseconds limit) const {
  const Deadline deadline = Deadline::After(limit);
  while (Load(i) != value) {
    if (deadline.Passed()) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  return true;
}

}  // namespace keel::hal::conformance
