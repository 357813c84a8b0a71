// OwnStream: a stream, and the memory of the device that is allocated for it. When it goes, the
// allocator is told before the stream is destroyed, which waits for what the stream still does, if
// that is not too long. Whoever has memory that was allocated for the stream holds it.
#pragma once

#include <memory>

#include "keel/hal/stream.h"
#include "keel/memory/process_memory.h"

namespace keel::task {

class OwnStream {
 public:
  static Result<std::shared_ptr<OwnStream>> Create(std::shared_ptr<memory::DeviceMemory> memory);
  OwnStream(std::shared_ptr<memory::DeviceMemory> memory, hal::Stream stream);
  ~OwnStream();
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;

  memory::DeviceMemory& memory() const { return *memory_; }
  hal::Device& device() const { return *memory_->device(); }
  hal::StreamHandle get() const { return stream_.get(); }

  Result<DeviceAddress> Allocate(Bytes size) const {
    return memory_->allocator().Allocate(size, get());
  }
  // For destructors: logs a failure, unless the device is lost, where there is nothing to free.
  void Free(DeviceAddress address) const;

 private:
  const std::shared_ptr<memory::DeviceMemory> memory_;
  const hal::Stream stream_;
};

}  // namespace keel::task
