// StoredCallable: a callable as one device has it: the kernels that are loaded, and the code that
// launches them, on the host or on the device. Made by CallableStore; immutable, and given back
// when the last holder lets go, which must not be before the device is done with it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "keel/base/deadline.h"
#include "keel/hal/module.h"
#include "keel/hal/orchestration.h"
#include "keel/task/image.h"
#include "task/own_stream.h"

namespace keel::task {

class StoredCallable {
 public:
  explicit StoredCallable(Image image) : image_(std::move(image)) {}
  ~StoredCallable();
  StoredCallable(const StoredCallable&) = delete;
  StoredCallable& operator=(const StoredCallable&) = delete;

  const Image& image() const { return image_; }
  std::span<const hal::KernelHandle> kernels() const { return kernels_; }

  // Of orchestration on the host; null on the device, and if the image has none.
  hal::OrchestrationFunction function() const { return function_; }

  // Of orchestration on the device: its kernel, and the table of kernels that it takes.
  hal::KernelHandle entry() const { return entry_; }
  DeviceAddress buffer() const { return buffer_; }  // the image, with its table filled in
  DeviceAddress table() const { return buffer_ + Bytes(image_.table_offset()); }
  Bytes table_size() const { return Bytes(kernels_.size() * sizeof(std::uint64_t)); }

 private:
  friend class CallableStore;
  Status Load(const std::shared_ptr<OwnStream>& on, bool on_device, Deadline deadline);
  Status LoadOnHost();
  Status LoadOnDevice(Deadline deadline);

  const Image image_;
  std::shared_ptr<OwnStream> on_;
  std::vector<hal::Module> modules_;
  std::vector<hal::KernelHandle> kernels_;
  std::shared_ptr<void> library_;
  hal::OrchestrationFunction function_ = nullptr;
  DeviceAddress buffer_{};
  hal::Module orchestration_;  // in the buffer: goes before it
  hal::KernelHandle entry_{};
};

}  // namespace keel::task
