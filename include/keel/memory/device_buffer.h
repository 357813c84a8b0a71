// DeviceBuffer<T>: an array of T in device memory, and its owner.
//
//   KEEL_ASSIGN(auto memory, memory::ProcessMemory::Global().For());
//   KEEL_ASSIGN(auto weights, memory::DeviceBuffer<float>::Create(memory, stream, 1 << 20));
//   KEEL_TRY(weights.CopyFrom(host));
//
// The array belongs to the stream that it was made for: what the buffer does is queued there, and
// the memory is freed in that stream's order. RecordUse names other streams that work with it. The
// stream must outlive the buffer.
//
// Move-only. Close() frees and returns the status; a destructor frees too, and logs when that
// fails. The buffer keeps the device's allocators. It is not thread-safe itself, as no owner is;
// device code knows nothing of it and works with address().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "keel/base/bytes.h"
#include "keel/base/deadline.h"
#include "keel/base/export.h"
#include "keel/base/result.h"
#include "keel/memory/process_memory.h"

namespace keel::memory {

namespace internal {

// What does not depend on the type: a block of bytes and its owner.
class KEEL_EXPORT OwnedBlock {
 public:
  OwnedBlock() = default;
  OwnedBlock(OwnedBlock&& other) noexcept;
  OwnedBlock& operator=(OwnedBlock&& other) noexcept;
  ~OwnedBlock();

  // Of `count` elements of `width` bytes; kInvalidArgument if that is more than 64 bits can count.
  static Result<OwnedBlock> Create(std::shared_ptr<DeviceMemory> memory, hal::StreamHandle stream,
                                   std::size_t count, std::size_t width,
                                   const AllocationOptions& options);

  const std::shared_ptr<DeviceMemory>& memory() const { return memory_; }
  DeviceAddress address() const { return address_; }
  Bytes size() const { return size_; }
  hal::StreamHandle stream() const { return stream_; }

  Status CopyFrom(const void* source, Bytes size, Bytes at, Deadline deadline);
  Status CopyTo(void* destination, Bytes size, Bytes from, Deadline deadline) const;
  // The pattern again and again; its length divides the size.
  Status Fill(std::span<const std::byte> pattern);
  Status RecordUse(hal::StreamHandle stream);
  Status Close();
  DeviceAddress Release();

 private:
  // OK if `size` bytes from `at` on are inside.
  Status CheckRange(Bytes size, Bytes at) const;

  std::shared_ptr<DeviceMemory> memory_;  // null: owns nothing
  DeviceAddress address_;
  Bytes size_;
  hal::StreamHandle stream_;
};

}  // namespace internal

template <class T>
class DeviceBuffer {
  static_assert(std::is_trivially_copyable_v<T>,
                "what a device holds is bytes: T must be trivially copyable");
  static_assert(!std::is_const_v<T> && !std::is_reference_v<T>);

 public:
  using value_type = T;

  // Owns nothing, as after Close and Release.
  DeviceBuffer() = default;

  // Contents are undefined. No elements are no memory, and fine. kInvalidArgument: more bytes than
  // 64 bits can count; kResourceExhausted: see DeviceAllocator.
  static Result<DeviceBuffer> Create(std::shared_ptr<DeviceMemory> memory, hal::StreamHandle stream,
                                     std::size_t count, const AllocationOptions& options = {}) {
    KEEL_ASSIGN(internal::OwnedBlock block,
                internal::OwnedBlock::Create(std::move(memory), stream, count, sizeof(T), options));
    return DeviceBuffer(std::move(block));
  }

  explicit operator bool() const { return block_.memory() != nullptr; }
  // Of the first element; 0 if there is none.
  DeviceAddress address() const { return block_.address(); }
  std::size_t size() const { return block_.size().count() / sizeof(T); }
  Bytes bytes() const { return block_.size(); }
  bool empty() const { return block_.size().empty(); }
  hal::StreamHandle stream() const { return block_.stream(); }
  const std::shared_ptr<DeviceMemory>& memory() const { return block_.memory(); }

  // Writes elements from `at` on. When it returns the source may be reused; pageable memory is
  // staged. kInvalidArgument: they do not fit.
  Status CopyFrom(std::span<const T> source, std::size_t at = 0,
                  Deadline deadline = Deadline::Never()) {
    return block_.CopyFrom(source.data(), Bytes(source.size_bytes()), BytesOf(at), deadline);
  }
  // Reads elements from `from` on, after what is queued on the stream now. When it returns they are
  // there.
  Status CopyTo(std::span<T> destination, std::size_t from = 0,
                Deadline deadline = Deadline::Never()) const {
    return block_.CopyTo(destination.data(), Bytes(destination.size_bytes()), BytesOf(from),
                         deadline);
  }
  // Every element, queued on the stream. Devices repeat 1, 2 or 4 bytes: kInvalidArgument for a
  // value that is not made of such (a double of 0 is, one of 0.1 is not).
  Status Fill(const T& value) {
    std::array<std::byte, sizeof(T)> pattern;
    std::memcpy(pattern.data(), &value, sizeof(T));
    return block_.Fill(pattern);
  }
  // Work on `stream`, queued now or before Close, uses the buffer: it is kept until that is done.
  Status RecordUse(hal::StreamHandle stream) { return block_.RecordUse(stream); }

  // Frees it; the buffer then owns nothing, whatever the status. OK for an owner of nothing.
  Status Close() { return block_.Close(); }
  // The caller frees it from now on, with memory()->allocator().
  DeviceAddress Release() { return block_.Release(); }

 private:
  explicit DeviceBuffer(internal::OwnedBlock block) : block_(std::move(block)) {}
  // Too large to count is too large for any buffer.
  static Bytes BytesOf(std::size_t count) {
    return CheckedMultiply(Bytes(sizeof(T)), count).value_or(Bytes(~std::uint64_t{0}));
  }

  internal::OwnedBlock block_;
};

}  // namespace keel::memory
