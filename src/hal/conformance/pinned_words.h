// PinnedWords: 64-bit words in pinned host memory, which the host reads and writes while a device
// does too.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "keel/base/result.h"
#include "keel/hal/memory.h"

namespace keel::hal::conformance {

class PinnedWords {
 public:
  // All words are zero.
  static Result<PinnedWords> Create(std::shared_ptr<Device> device, std::size_t count);

  std::uint64_t* data() const { return static_cast<std::uint64_t*>(memory_.data()); }
  // Atomic, and none of them calls the driver.
  std::uint64_t Load(std::size_t i = 0) const;
  void Store(std::uint64_t value, std::size_t i = 0) const;
  bool WaitFor(std::uint64_t value, std::size_t i = 0,
               std::chrono::milliseconds limit = std::chrono::seconds(30)) const;

  // Where the device that it was created on sees word i.
  DeviceAddress address(std::size_t i = 0) const { return base_ + Bytes(i * 8); }
  Status Close() { return memory_.Close(); }

 private:
  HostMemory memory_;
  DeviceAddress base_;
};

}  // namespace keel::hal::conformance
