// Storage: bytes on a device, shared by the arrays over them, by those they were exported to and by
// copies in flight. They go when the last of these does.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

#include "keel/memory/device_buffer.h"
#include "stream.h"

namespace keel::python {

class Storage {
 public:
  static Result<std::shared_ptr<Storage>> Create(std::shared_ptr<OwnedStream> stream, Bytes size,
                                                 std::string_view tag);
  // Tells the owner of adopted memory that another stream uses it, which lives until it is released
  // if it comes with its own owner.
  using UseRecorder =
      std::function<Status(hal::StreamHandle stream, std::shared_ptr<OwnedStream> owner)>;
  // Somebody else's memory on the stream's device; `release` is called once, by any thread. Without
  // a recorder the owner keeps it for whoever uses it.
  static std::shared_ptr<Storage> Adopt(std::shared_ptr<OwnedStream> stream, DeviceAddress address,
                                        Bytes size, std::function<void()> release,
                                        UseRecorder record_use = nullptr);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  const std::shared_ptr<OwnedStream>& stream() const { return stream_; }
  memory::DeviceMemory& memory() const { return *stream_->memory(); }
  DeviceAddress address() const { return address_; }
  Bytes size() const { return size_; }
  bool adopted() const { return release_ != nullptr; }

  // All in the order of the stream. Sizes are the caller's to check.
  Status CopyFromHost(const void* source, Bytes size);
  Status CopyToHost(void* destination, Bytes size);
  // The source may be on another device of the driver, and on another stream.
  Status CopyFrom(const Storage& source, Bytes size);
  Status Clear();
  // Another stream of the device works with it from now on, after what is queued here.
  Status ShareWith(hal::StreamHandle stream);
  // Later work here comes after what is queued on the other stream now.
  Status TakeBack(hal::StreamHandle stream);
  // Without making the other stream wait.
  Status RecordUse(hal::StreamHandle stream, std::shared_ptr<OwnedStream> owner = nullptr);

 private:
  Storage() = default;

  std::shared_ptr<OwnedStream> stream_;  // outlives what is allocated for it
  memory::DeviceBuffer<std::byte> buffer_;
  DeviceAddress address_;
  Bytes size_;
  std::function<void()> release_;
  UseRecorder record_use_;
};

// What Python holds.
struct StorageRef {
  std::shared_ptr<Storage> owner;  // null: closed

  // One more reference, because another thread may close this one meanwhile. ValueError if closed.
  std::shared_ptr<Storage> Get() const;
};

void BindStorage(nanobind::module_& m);

}  // namespace keel::python
