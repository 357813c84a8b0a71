#include "keel/hal/stream.h"

#include <utility>

#include "hal/describe.h"

namespace keel::hal {

Status StreamTraits::GiveBack(Device& device, const Handle& handle) {
  return handle.borrowed ? OkStatus() : device.DestroyStream(handle.stream);
}

std::string StreamTraits::Describe(const Handle& handle) {
  return DescribeHandle("DestroyStream", handle.stream.value);
}

Result<Stream> Stream::Create(std::shared_ptr<Device> device, const StreamOptions& options) {
  KEEL_ASSIGN(const StreamHandle stream, device->CreateStream(options));
  return Stream(std::move(device), {.stream = stream, .borrowed = false});
}

Result<Stream> Stream::Borrow(std::shared_ptr<Device> device, std::uint64_t native) {
  KEEL_ASSIGN(const StreamHandle stream, device->BorrowStream(native));
  return Stream(std::move(device), {.stream = stream, .borrowed = true});
}

Result<Stream> Stream::Default(std::shared_ptr<Device> device, DefaultStream which) {
  KEEL_ASSIGN(const StreamHandle stream, device->GetDefaultStream(which));
  return Stream(std::move(device), {.stream = stream, .borrowed = true});
}

Status Stream::Synchronize(Deadline deadline) const {
  if (!*this) return InvalidArgument("this Stream owns no stream");
  return device()->SynchronizeStream(get(), deadline);
}

Result<Completion> Stream::Query() const {
  if (!*this) return InvalidArgument("this Stream owns no stream");
  return device()->QueryStream(get());
}

}  // namespace keel::hal
