#include "keel/memory/device_buffer.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "keel/base/log.h"

namespace keel::memory::internal {

OwnedBlock::OwnedBlock(OwnedBlock&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)),
      address_(std::exchange(other.address_, {})),
      size_(std::exchange(other.size_, {})),
      stream_(std::exchange(other.stream_, {})) {}

OwnedBlock& OwnedBlock::operator=(OwnedBlock&& other) noexcept {
  OwnedBlock taken(std::move(other));
  std::swap(memory_, taken.memory_);
  std::swap(address_, taken.address_);
  std::swap(size_, taken.size_);
  std::swap(stream_, taken.stream_);
  return *this;
}

OwnedBlock::~OwnedBlock() {
  if (memory_ == nullptr) return;
  const DeviceAddress address = address_;
  const Status status = Close();
  // The parent's memory is not a forked child's to give back.
  if (status.ok() || status.code() == StatusCode::kFailedPrecondition) return;
  Log(LogLevel::kError,
      fmt::format("a buffer at {} was not freed: {}", ToString(address), status.ToString()));
}

Result<OwnedBlock> OwnedBlock::Create(std::shared_ptr<DeviceMemory> memory,
                                      hal::StreamHandle stream, std::size_t count,
                                      std::size_t width, const AllocationOptions& options) {
  if (memory == nullptr) return InvalidArgument("a buffer in no device's memory");
  const std::optional<Bytes> size = CheckedMultiply(Bytes(width), count);
  if (!size) {
    return InvalidArgument(
        fmt::format("{} elements of {} bytes are more than 64 bits can count", count, width));
  }
  OwnedBlock block;
  KEEL_ASSIGN(block.address_, memory->allocator().Allocate(*size, stream, options));
  block.memory_ = std::move(memory);
  block.size_ = *size;
  block.stream_ = stream;
  return block;
}

Status OwnedBlock::CheckRange(Bytes size, Bytes at) const {
  if (at <= size_ && size <= size_ - at) return OkStatus();
  return InvalidArgument(fmt::format("{} bytes from byte {} on are not inside a buffer of {} bytes",
                                     size.count(), at.count(), size_.count()));
}

Status OwnedBlock::CopyFrom(const void* source, Bytes size, Bytes at, Deadline deadline) {
  KEEL_TRY(CheckRange(size, at));
  if (size.empty()) return OkStatus();
  return memory_->CopyToDevice(stream_, address_ + at, source, size, deadline);
}

Status OwnedBlock::CopyTo(void* destination, Bytes size, Bytes from, Deadline deadline) const {
  KEEL_TRY(CheckRange(size, from));
  if (size.empty()) return OkStatus();
  return memory_->CopyToHost(stream_, destination, address_ + from, size, deadline);
}

Status OwnedBlock::Fill(std::span<const std::byte> pattern) {
  if (size_.empty()) return OkStatus();
  for (const std::size_t width : {1, 2, 4}) {
    if (pattern.size() % width != 0) continue;
    // Equal to itself, shifted by a width: then it is one piece of that width, repeated.
    if (!std::equal(pattern.begin() + static_cast<std::ptrdiff_t>(width), pattern.end(),
                    pattern.begin())) {
      continue;
    }
    std::uint32_t value = 0;
    std::memcpy(&value, pattern.data(), width);
    return memory_->device()->EnqueueFill(stream_, {.destination = address_,
                                                    .value = value,
                                                    .width = static_cast<std::uint32_t>(width),
                                                    .count = size_.count() / width});
  }
  return InvalidArgument(
      fmt::format("a value of {} bytes that repeats no 1, 2 or 4 of them cannot be filled with; "
                  "copy it from the host",
                  pattern.size()));
}

Status OwnedBlock::RecordUse(hal::StreamHandle stream) {
  if (memory_ == nullptr) return InvalidArgument("a buffer that owns nothing is used by nobody");
  return memory_->allocator().RecordUse(address_, stream);
}

Status OwnedBlock::Close() {
  const std::shared_ptr<DeviceMemory> memory = memory_;
  if (memory == nullptr) return OkStatus();
  return memory->allocator().Free(Release());
}

DeviceAddress OwnedBlock::Release() {
  memory_ = nullptr;
  size_ = {};
  stream_ = {};
  return std::exchange(address_, {});
}

}  // namespace keel::memory::internal
