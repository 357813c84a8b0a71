#include "stream.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <utility>

#include "device.h"
#include "errors.h"
#include "keel/drivers/sim.h"

namespace keel::python {

OwnedStream::~OwnedStream() {
  if (stream_.borrowed() && holds_ == nullptr) return;
  // It may wait, and the last reference may go with or without the interpreter's lock. What fails
  // (a lost device, a forked child) leaves nothing to forget.
  const LeaveInterpreter leave;
  if (stream_.borrowed()) {
    holds_.reset();
    return;
  }
  static_cast<void>(Forget());
}

std::shared_ptr<OwnedStream> StreamRef::Get() const {
  if (owner == nullptr) throw nb::value_error("this stream was closed");
  return owner;
}

namespace {

// An event and its device, whose allocators stay as long.
struct EventRef {
  std::shared_ptr<memory::DeviceMemory> memory;
  std::shared_ptr<hal::Event> event;
};

StreamRef Wrap(const DeviceRef& device, Result<hal::Stream> stream) {
  return {std::make_shared<OwnedStream>(device.memory, Take(std::move(stream)))};
}

StreamRef CreateStream(const DeviceRef& device, int priority) {
  return Wrap(device, WithoutInterpreter([&] {
                return hal::Stream::Create(device.device(), {.priority = priority});
              }));
}

StreamRef BorrowStream(const DeviceRef& device, std::uint64_t handle) {
  return Wrap(device, hal::Stream::Borrow(device.device(), handle));
}

StreamRef DefaultStream(const DeviceRef& device) {
  return Wrap(device, hal::Stream::Default(device.device(), hal::DefaultStream::kLegacy));
}

// Drops the last reference, which may wait for the stream, without the interpreter.
void Close(StreamRef& self) {
  std::shared_ptr<OwnedStream> owner = std::move(self.owner);
  self.owner = nullptr;
  if (owner == nullptr) return;
  const bool borrowed = owner->borrowed();
  const Status status = WithoutInterpreter([&] {
    Status forgotten = borrowed ? owner->Forget() : OkStatus();
    owner.reset();
    return forgotten;
  });
  Check(status);
}

sim::Controls& ControlsOf(const OwnedStream& stream) {
  sim::Controls* const controls = sim::FindControls(*stream.memory()->device());
  if (controls == nullptr) {
    Check(InvalidArgument("only streams of a simulated device can be held, not of " +
                          stream.memory()->name().ToString()));
  }
  return *controls;
}

EventRef CreateEvent(const DeviceRef& device, bool timing) {
  auto event =
      WithoutInterpreter([&] { return hal::Event::Create(device.device(), {.timing = timing}); });
  return {device.memory, std::make_shared<hal::Event>(Take(std::move(event)))};
}

void BindEvent(nb::module_& m) {
  nb::class_<EventRef>(m, "Event")
      .def_prop_ro("device_name",
                   [](const EventRef& self) { return self.memory->name().ToString(); })
      .def(
          "record",
          [](const EventRef& self, const StreamRef& stream) {
            Check(self.event->Record(stream.Get()->get()));
          },
          nb::arg("stream"))
      .def("query",
           [](const EventRef& self) { return Take(self.event->Query()) == hal::Completion::kDone; })
      .def(
          "synchronize",
          [](const EventRef& self, std::optional<double> timeout) {
            WaitInterruptibly(DeadlineOf(timeout), [event = self.event](Deadline deadline) {
              return event->Synchronize(deadline);
            });
          },
          nb::arg("timeout").none())
      .def(
          "elapsed_ms",
          [](const EventRef& self, const EventRef& end) {
            return Take(
                self.memory->device()->ElapsedMilliseconds(self.event->get(), end.event->get()));
          },
          nb::arg("end"));
  m.def("create_event", &CreateEvent, nb::arg("device"), nb::arg("timing"));
}

}  // namespace

void BindStream(nb::module_& m) {
  nb::class_<StreamRef>(m, "Stream")
      .def_prop_ro("handle", [](const StreamRef& self) { return self.Get()->get().value; })
      .def_prop_ro("borrowed", [](const StreamRef& self) { return self.Get()->borrowed(); })
      .def_prop_ro("closed", [](const StreamRef& self) { return self.owner == nullptr; })
      .def_prop_ro("device_name",
                   [](const StreamRef& self) { return self.Get()->memory()->name().ToString(); })
      .def("query",
           [](const StreamRef& self) {
             return Take(self.Get()->stream().Query()) == hal::Completion::kDone;
           })
      .def(
          "synchronize",
          [](const StreamRef& self, std::optional<double> timeout) {
            WaitInterruptibly(DeadlineOf(timeout), [owner = self.Get()](Deadline deadline) {
              return owner->stream().Synchronize(deadline);
            });
          },
          nb::arg("timeout").none())
      .def("hold",
           [](const StreamRef& self) {
             Check(ControlsOf(*self.Get()).HoldStream(self.Get()->get()));
           })
      .def("release",
           [](const StreamRef& self) {
             Check(ControlsOf(*self.Get()).ReleaseStream(self.Get()->get()));
           })
      .def("close", &Close);
  BindEvent(m);
  nb::borrow<nb::class_<StreamRef>>(nb::type<StreamRef>())
      .def(
          "wait_event",
          [](const StreamRef& self, const EventRef& event) {
            Check(self.Get()->memory()->device()->WaitEvent(self.Get()->get(), event.event->get()));
          },
          nb::arg("event"));
  m.def("create_stream", &CreateStream, nb::arg("device"), nb::arg("priority"));
  m.def("borrow_stream", &BorrowStream, nb::arg("device"), nb::arg("handle"));
  m.def("default_stream", &DefaultStream, nb::arg("device"));
  m.def(
      "synchronize_device",
      [](const DeviceRef& device, std::optional<double> timeout) {
        WaitInterruptibly(DeadlineOf(timeout), [&](Deadline deadline) {
          return device.device()->Synchronize(deadline);
        });
      },
      nb::arg("device"), nb::arg("timeout").none());
}

}  // namespace keel::python
