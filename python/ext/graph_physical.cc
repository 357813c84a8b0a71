#include "graph_physical.h"

#include <string>
#include <utility>

#include "errors.h"
#include "keel/memory/physical_block.h"
#include "stream.h"

namespace keel::python {
namespace {

PhysicalRef Create(const StreamRef& stream, std::uint64_t size) {
  std::shared_ptr<OwnedStream> owner = stream.Get();
  memory::DeviceMemory& memory = *owner->memory();
  auto made = WithoutInterpreter([&] {
    return memory::PhysicalBlock::Create(memory.device(), memory.allocator(), Bytes(size),
                                         telemetry::InternTag("graph:physical"));
  });
  if (made.status().code() == StatusCode::kResourceExhausted) {
    Raise(made.status(), WithoutInterpreter([&] { return memory.allocator().Report(); }));
  }
  auto block = MakeSharedHere<memory::PhysicalBlock>(Take(std::move(made)));
  PhysicalRef physical{nullptr, block->memory()};
  const DeviceAddress address = block->address();
  physical.storage = Storage::Adopt(std::move(owner), address, Bytes(size), [block]() mutable {
    const LeaveInterpreter leave;
    block.reset();
  });
  return physical;
}

// Its first bytes, for an array.
StorageRef View(const PhysicalRef& self, std::uint64_t size) {
  std::shared_ptr<Storage> whole = self.Get();
  if (Bytes(size) > whole->size()) {
    throw nb::value_error((std::to_string(size) +
                           " bytes are more than this physical memory has, " +
                           std::to_string(whole->size().count()))
                              .c_str());
  }
  const std::shared_ptr<OwnedStream> stream = whole->stream();
  const DeviceAddress address = whole->address();
  return {Storage::Adopt(stream, address, Bytes(size), [whole]() mutable { whole.reset(); })};
}

}  // namespace

std::shared_ptr<Storage> PhysicalRef::Get() const {
  if (storage == nullptr) throw nb::value_error("this physical memory was closed");
  return storage;
}

void BindPhysical(nb::module_& m) {
  nb::class_<PhysicalRef>(m, "PhysicalMemory")
      .def_prop_ro("address", [](const PhysicalRef& self) { return self.Get()->address().value(); })
      .def_prop_ro("size", [](const PhysicalRef& self) { return self.Get()->size().count(); })
      .def_prop_ro("closed", [](const PhysicalRef& self) { return self.storage == nullptr; })
      .def_prop_ro("stream",
                   [](const PhysicalRef& self) { return StreamRef{self.Get()->stream()}; })
      .def("view", &View, nb::arg("size"))
      .def("close", [](PhysicalRef& self) {
        // Out of the object first: the end leaves the interpreter to others.
        const PhysicalRef gone = std::exchange(self, {});
      });
  m.def("create_physical_memory", &Create, nb::arg("stream"), nb::arg("size"));
}

}  // namespace keel::python
