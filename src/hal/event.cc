#include "keel/hal/event.h"

#include <utility>

#include "hal/describe.h"

namespace keel::hal {

Status EventTraits::GiveBack(Device& device, const Handle& handle) {
  return device.DestroyEvent(handle);
}

std::string EventTraits::Describe(const Handle& handle) {
  return DescribeHandle("DestroyEvent", handle.value);
}

Result<Event> Event::Create(std::shared_ptr<Device> device, const EventOptions& options) {
  KEEL_ASSIGN(const EventHandle event, device->CreateEvent(options));
  return Event(std::move(device), event);
}

Status Event::Record(StreamHandle stream) const {
  if (!*this) return InvalidArgument("this Event owns no event");
  return device()->RecordEvent(get(), stream);
}

Status Event::Synchronize(Deadline deadline) const {
  if (!*this) return InvalidArgument("this Event owns no event");
  return device()->SynchronizeEvent(get(), deadline);
}

Result<Completion> Event::Query() const {
  if (!*this) return InvalidArgument("this Event owns no event");
  return device()->QueryEvent(get());
}

}  // namespace keel::hal
