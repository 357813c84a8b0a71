#include "pinned.h"

#include <cstdint>
#include <memory>

#include "device.h"
#include "errors.h"

namespace keel::python {
namespace {

struct PinnedRef {
  std::shared_ptr<void> data;  // keeps the device's allocators, and frees to them
  std::uint64_t size = 0;
};

PinnedRef AllocatePinned(const DeviceRef& device, std::uint64_t size) {
  const std::shared_ptr<memory::DeviceMemory> memory = device.memory;
  void* const data = Take(WithoutInterpreter([&] { return memory->host().Allocate(Bytes(size)); }));
  // In a forked child it fails: there is nothing to give back.
  return {std::shared_ptr<void>(
              data, [memory](void* block) { static_cast<void>(memory->host().Free(block)); }),
          size};
}

}  // namespace

void BindPinned(nb::module_& m) {
  nb::class_<PinnedRef>(m, "Pinned")
      .def_prop_ro(
          "address",
          [](const PinnedRef& self) { return reinterpret_cast<std::uintptr_t>(self.data.get()); })
      .def_prop_ro("size", [](const PinnedRef& self) { return self.size; });
  m.def("allocate_pinned", &AllocatePinned, nb::arg("device"), nb::arg("size"));
}

}  // namespace keel::python
