#include "task/own_stream.h"

#include <utility>

#include "base/fork.h"
#include "keel/base/log.h"

namespace keel::task {

Result<std::shared_ptr<OwnStream>> OwnStream::Create(std::shared_ptr<memory::DeviceMemory> memory) {
  KEEL_ASSIGN(hal::Stream stream, hal::Stream::Create(memory->device()));
  return MakeSharedHere<OwnStream>(std::move(memory), std::move(stream));
}

OwnStream::OwnStream(std::shared_ptr<memory::DeviceMemory> memory, hal::Stream stream)
    : memory_(std::move(memory)), stream_(std::move(stream)) {}

OwnStream::~OwnStream() {
  Status status = memory_->allocator().ForgetStream(get());
  // Once more: an allocator that believes in a stream that is gone fails later, for others.
  if (!status.ok()) status = memory_->allocator().ForgetStream(get());
  if (!status.ok() && device().Health().ok()) {
    Log(LogLevel::kWarn, "a worker's stream goes with work on it: " + status.ToString());
  }
}

void OwnStream::Free(DeviceAddress address) const {
  const Status status = memory_->allocator().Free(address);
  if (!status.ok() && device().Health().ok()) {
    Log(LogLevel::kWarn, "a worker's memory could not be freed: " + status.ToString());
  }
}

}  // namespace keel::task
