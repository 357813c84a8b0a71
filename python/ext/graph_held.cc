#include "graph_held.h"

#include <nanobind/nanobind.h>

#include <utility>

#include "callback.h"

namespace keel::python {
namespace {

// Bytes that keep the output, for an array.
StorageRef StorageOf(const HeldRef& self) {
  std::shared_ptr<Held> held = self.Get();
  auto record = [held](hal::StreamHandle stream, std::shared_ptr<OwnedStream> owner) {
    return held->RecordUse(stream, std::move(owner));
  };
  const std::shared_ptr<OwnedStream>& stream = held->stream();
  return {Storage::Adopt(
      stream, DeviceAddress(held->address()), held->size(), [held]() mutable { held.reset(); },
      std::move(record))};
}

// An object of Python's that may be dropped by any thread.
class Kept {
 public:
  explicit Kept(nb::object object) : object_(object.release().ptr()) {}
  ~Kept() {
    if (InterpreterEnds()) return;
    const nb::gil_scoped_acquire acquire;
    Py_DECREF(object_);
  }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;

 private:
  PyObject* const object_;
};

// Other bytes that the step made, which keep `owner`, and by it the output.
StorageRef ViewBeside(const HeldRef& self, std::uint64_t address, std::uint64_t size,
                      nb::object owner) {
  auto kept = std::make_shared<Kept>(std::move(owner));
  return {Storage::Adopt(self.Get()->stream(), DeviceAddress(address), Bytes(size),
                         [kept]() mutable { kept.reset(); })};
}

}  // namespace

void BindHeld(nb::module_& m) {
  nb::class_<HeldRef>(m, "Held")
      .def_prop_ro("address", [](const HeldRef& self) { return self.Get()->address(); })
      .def_prop_ro("size", [](const HeldRef& self) { return self.Get()->size().count(); })
      .def_prop_ro("closed", [](const HeldRef& self) { return self.owner == nullptr; })
      .def("storage", &StorageOf)
      .def("view_beside", &ViewBeside, nb::arg("address"), nb::arg("size"), nb::arg("owner"))
      .def(
          "record_use",
          [](const HeldRef& self, const StreamRef& stream) {
            const std::shared_ptr<OwnedStream> owner = stream.Get();
            Check(self.Get()->RecordUse(owner->get(), owner));
          },
          nb::arg("stream"))
      .def("close", [](HeldRef& self) { self.owner = nullptr; });
}

}  // namespace keel::python
