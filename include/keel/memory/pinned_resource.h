// PinnedResource: a HostAllocator as a std::pmr::memory_resource, so that the standard containers
// live in pinned memory: std::pmr::vector<float> values(&resource).
//
// As std::pmr asks, it throws std::bad_alloc when there is no memory, also for whatever else the
// allocator returns. Alignments above HostAllocator::kMostAlignment are refused so, too. What
// streams use must be recorded with the allocator before a container frees it. Two resources are
// equal if they have the same allocator. Thread-safe, as the allocator is.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <memory_resource>
#include <new>
#include <utility>

#include "keel/base/log.h"
#include "keel/memory/host_allocator.h"

namespace keel::memory {

class KEEL_EXPORT PinnedResource : public std::pmr::memory_resource {
 public:
  explicit PinnedResource(std::shared_ptr<HostAllocator> allocator)
      : allocator_(std::move(allocator)) {}

  const std::shared_ptr<HostAllocator>& allocator() const { return allocator_; }

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    // The standard allows no bytes; the address must be nobody else's all the same.
    const Result<void*> pointer =
        allocator_->Allocate(Bytes(std::max<std::size_t>(bytes, 1)), Bytes(alignment));
    if (!pointer.ok()) throw std::bad_alloc();
    return *pointer;
  }
  void do_deallocate(void* pointer, std::size_t, std::size_t) override {
    const Status status = allocator_->Free(pointer);
    if (!status.ok()) Log(LogLevel::kWarn, "PinnedResource: " + status.ToString());
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    const auto* const pinned = dynamic_cast<const PinnedResource*>(&other);
    return pinned != nullptr && pinned->allocator_ == allocator_;
  }

  std::shared_ptr<HostAllocator> allocator_;
};

}  // namespace keel::memory
