// Stream: an owning, or borrowing, stream.
#pragma once

#include <memory>

#include "keel/hal/owned_handle.h"

namespace keel::hal {

struct KEEL_EXPORT StreamTraits {
  // A borrowed stream has nothing to give back.
  struct Handle {
    StreamHandle stream;
    bool borrowed = false;
  };
  static Status GiveBack(Device& device, const Handle& handle);
  static std::string Describe(const Handle& handle);
};

class KEEL_EXPORT Stream : public OwnedHandle<StreamTraits> {
 public:
  using OwnedHandle::OwnedHandle;
  static Result<Stream> Create(std::shared_ptr<Device> device, const StreamOptions& options = {});
  // See Device::BorrowStream. Closing or destroying it leaves the stream to its owner.
  static Result<Stream> Borrow(std::shared_ptr<Device> device, std::uint64_t native);
  static Result<Stream> Default(std::shared_ptr<Device> device, DefaultStream which);

  StreamHandle get() const { return handle().stream; }
  bool borrowed() const { return handle().borrowed; }

  Status Synchronize(Deadline deadline = Deadline::Never()) const;
  Result<Completion> Query() const;
};

}  // namespace keel::hal
