// Event: an owning event.
#pragma once

#include <memory>

#include "keel/hal/owned_handle.h"

namespace keel::hal {

struct KEEL_EXPORT EventTraits {
  using Handle = EventHandle;
  static Status GiveBack(Device& device, const Handle& handle);
  static std::string Describe(const Handle& handle);
};

class KEEL_EXPORT Event : public OwnedHandle<EventTraits> {
 public:
  using OwnedHandle::OwnedHandle;
  static Result<Event> Create(std::shared_ptr<Device> device, const EventOptions& options = {});

  EventHandle get() const { return handle(); }

  Status Record(StreamHandle stream) const;
  Status Synchronize(Deadline deadline = Deadline::Never()) const;
  Result<Completion> Query() const;
};

}  // namespace keel::hal
