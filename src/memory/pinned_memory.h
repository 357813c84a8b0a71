// PinnedMemory: one piece of pinned host memory, in whichever way it was pinned: allocated by the
// driver, or ordinary memory that was registered with it.
//
// Owns it and gives it back once, like the owners of keel/hal/memory.h. Not thread-safe.
#pragma once

#include <memory>
#include <string>
#include <variant>

#include "keel/base/bytes.h"
#include "keel/base/result.h"
#include "keel/hal/memory.h"

namespace keel::memory {

struct PinnedOptions {
  // Of what the driver allocates.
  hal::HostOptions host{};
  // Where the pages come from; -1: wherever the system takes them from.
  int numa_node = -1;
  // Ordinary pages, registered.
  bool registered = false;
  // Every page is written once before the memory is handed out. So it is, too, before memory is
  // registered by several threads, because finding pages is what takes the driver's time.
  bool prefault = false;
  int threads = 1;  // that do it
};

struct RegisteredPagesTraits {
  using Handle = hal::HostMemoryTraits::Handle;
  static Status GiveBack(hal::Device& device, const Handle& handle);
  static std::string Describe(const Handle& handle);
};
using RegisteredPages = hal::OwnedHandle<RegisteredPagesTraits>;

class PinnedMemory {
 public:
  PinnedMemory() = default;
  // `size` in whole pages. On an error nothing is left.
  static Result<PinnedMemory> Create(const std::shared_ptr<hal::Device>& device, Bytes size,
                                     const PinnedOptions& options);

  explicit operator bool() const {
    return std::visit([](const auto& owner) { return static_cast<bool>(owner); }, owner_);
  }
  void* data() const {
    return std::visit([](const auto& owner) { return owner.handle().pointer; }, owner_);
  }
  Bytes size() const {
    return std::visit([](const auto& owner) { return owner.handle().size; }, owner_);
  }
  // As OwnedHandle's.
  Status Close() {
    return std::visit([](auto& owner) { return owner.Close(); }, owner_);
  }

 private:
  std::variant<hal::HostMemory, RegisteredPages> owner_;
};

}  // namespace keel::memory
