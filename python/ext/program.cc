// Kernels and programs.
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "callback.h"
#include "errors.h"
#include "graph.h"
#include "keel/hal/module.h"
#include "keel/hal/module_source.h"

namespace keel::python {
namespace {

struct ModuleRef {
  DeviceRef device;
  std::shared_ptr<hal::Module> module;
};

struct KernelRef {
  DeviceRef device;
  std::shared_ptr<hal::Module> module;  // null: borrowed
  hal::KernelHandle kernel;
};

ModuleRef Wrap(const DeviceRef& device, Result<hal::Module> module) {
  return {device, std::make_shared<hal::Module>(Take(std::move(module)))};
}

ModuleRef LoadStandard(const DeviceRef& device) {
  return Wrap(device,
              WithoutInterpreter([&] { return hal::Module::LoadStandard(device.device()); }));
}

ModuleRef LoadImage(const DeviceRef& device, const nb::bytes& image) {
  const auto source = hal::ModuleSource::Image(
      {static_cast<const std::byte*>(image.data()), static_cast<std::size_t>(image.size())});
  return Wrap(device,
              WithoutInterpreter([&] { return hal::Module::Load(device.device(), source); }));
}

ModuleRef LoadFile(const DeviceRef& device, const std::string& path) {
  const auto source = hal::ModuleSource::File(path);
  return Wrap(device,
              WithoutInterpreter([&] { return hal::Module::Load(device.device(), source); }));
}

// --- Programs ------------------------------------------------------------------------------------

using Operand = std::tuple<std::uint32_t, int, std::uint64_t, std::uint64_t>;

graph::Operand OperandOf(const Operand& from) {
  const auto& [binding, access, offset, extent] = from;
  return {.binding = {binding},
          .access = static_cast<hal::Access>(access),
          .offset = Bytes(offset),
          .extent = Bytes(extent)};
}

std::vector<graph::Operand> OperandsOf(const std::vector<Operand>& from) {
  std::vector<graph::Operand> operands;
  operands.reserve(from.size());
  for (const Operand& each : from) operands.push_back(OperandOf(each));
  return operands;
}

graph::BindingAccess AccessOf(std::string_view name) {
  std::string names;
  for (int i = 0; i <= static_cast<int>(graph::BindingAccess::kResident); ++i) {
    const auto access = static_cast<graph::BindingAccess>(i);
    if (graph::AccessName(access) == name) return access;
    names += (i == 0 ? "" : ", ") + std::string(graph::AccessName(access));
  }
  throw nb::value_error(
      ("there is no access '" + std::string(name) + "' of bindings: there are " + names).c_str());
}

graph::Argument ArgumentOf(nb::handle from) {
  if (!nb::isinstance<nb::bytes>(from)) {
    return graph::Argument::Of(OperandOf(nb::cast<Operand>(from)));
  }
  const auto value = nb::cast<nb::bytes>(from);
  if (value.size() == 0 || value.size() > hal::KernelArg::kMaxValue) {
    throw nb::value_error("a value has 1 to 16 bytes");
  }
  return graph::Argument::ValueOf(value.data(), value.size());
}

// Used with the interpreter's lock only.
class Builder {
 public:
  Builder(DeviceRef device, const std::string& name)
      : device_(std::move(device)), builder_(graph::ProgramBuilder(name)) {}

  std::uint32_t Bind(const std::string& name, std::uint64_t size, const std::string& access,
                     const std::string& policy) {
    const graph::Policy chosen = Take(graph::ParsePolicy(policy));
    return builder()
        .Bind({.name = name, .size = Bytes(size), .access = AccessOf(access), .policy = chosen})
        .index;
  }

  void Kernel(const KernelRef& kernel, const std::array<std::uint32_t, 3>& grid,
              const std::array<std::uint32_t, 3>& block, std::uint64_t shared_memory,
              const nb::list& arguments) {
    if (kernel.device.device() != device_.device()) {
      throw nb::value_error(
          ("the kernel is of " + kernel.device.name() + ", the program of " + device_.name())
              .c_str());
    }
    std::vector<graph::Argument> made;
    for (const nb::handle each : arguments) made.push_back(ArgumentOf(each));
    builder().Keep(kernel.module);
    builder().Kernel(kernel.kernel,
                     {.grid = grid, .block = block, .shared_memory = Bytes(shared_memory)},
                     std::move(made));
  }
  void Copy(const Operand& destination, const Operand& source) {
    builder().Copy(OperandOf(destination), OperandOf(source));
  }
  void Fill(const Operand& destination, std::uint32_t value, std::uint32_t width) {
    builder().Fill(OperandOf(destination), value, width);
  }
  void Call(const CallbackRef& callback) {
    builder().Keep(callback.target());
    builder().Call({.function = &CallFromDriver, .data = callback.target().get()});
  }
  void Traced(const std::string& name, const std::vector<Operand>& uses,
              const CallbackRef& callback) {
    builder().Traced(name, OperandsOf(uses),
                     TraceFunctionOf(device_.memory, OperandsOf(uses), callback));
  }
  void Recorded(const std::string& name, const std::vector<Operand>& uses,
                const CallbackRef& callback) {
    builder().Recorded(name, OperandsOf(uses),
                       TraceFunctionOf(device_.memory, OperandsOf(uses), callback));
  }
  void Eager(const std::string& name, const std::vector<Operand>& uses,
             const CallbackRef& callback) {
    builder().Eager(name, OperandsOf(uses),
                    TraceFunctionOf(device_.memory, OperandsOf(uses), callback));
  }

  ProgramRef Build() {
    graph::ProgramBuilder whole = std::move(builder());
    builder_.reset();
    return {device_, Take(std::move(whole).Build())};
  }

 private:
  graph::ProgramBuilder& builder() {
    if (!builder_) Raise(FailedPrecondition("the program was built: it cannot change any more"));
    return *builder_;
  }

  DeviceRef device_;
  std::optional<graph::ProgramBuilder> builder_;
};

}  // namespace

void BindProgram(nb::module_& m) {
  nb::class_<ModuleRef>(m, "Module")
      .def(
          "find",
          [](const ModuleRef& self, const std::string& name) {
            return KernelRef{self.device, self.module, Take(self.module->Find(name))};
          },
          nb::arg("name"));
  nb::class_<KernelRef>(m, "Kernel").def_prop_ro("handle", [](const KernelRef& self) {
    return self.kernel.value;
  });
  m.def("load_standard_module", &LoadStandard, nb::arg("device"));
  m.def("load_module_image", &LoadImage, nb::arg("device"), nb::arg("image"));
  m.def("load_module_file", &LoadFile, nb::arg("device"), nb::arg("path"));
  m.def(
      "borrow_kernel",
      [](const DeviceRef& device, std::uint64_t handle) {
        if (handle == 0) throw nb::value_error("a handle of 0 is no kernel");
        return KernelRef{device, nullptr, hal::KernelHandle{handle}};
      },
      nb::arg("device"), nb::arg("handle"));

  nb::class_<Builder>(m, "ProgramBuilder")
      .def("bind", &Builder::Bind, nb::arg("name"), nb::arg("size"), nb::arg("access"),
           nb::arg("policy"))
      .def("kernel", &Builder::Kernel, nb::arg("kernel"), nb::arg("grid"), nb::arg("block"),
           nb::arg("shared_memory"), nb::arg("arguments"))
      .def("copy", &Builder::Copy, nb::arg("destination"), nb::arg("source"))
      .def("fill", &Builder::Fill, nb::arg("destination"), nb::arg("value"), nb::arg("width"))
      .def("call", &Builder::Call, nb::arg("callback"))
      .def("traced", &Builder::Traced, nb::arg("name"), nb::arg("uses"), nb::arg("callback"))
      .def("recorded", &Builder::Recorded, nb::arg("name"), nb::arg("uses"), nb::arg("callback"))
      .def("eager", &Builder::Eager, nb::arg("name"), nb::arg("uses"), nb::arg("callback"))
      .def("build", &Builder::Build);
  m.def(
      "create_program_builder",
      [](const DeviceRef& device, const std::string& name) { return Builder(device, name); },
      nb::arg("device"), nb::arg("name"));
  nb::class_<ProgramRef>(m, "Program")
      .def_prop_ro("name", [](const ProgramRef& self) { return self.program->name(); })
      .def_prop_ro("scratch_bytes",
                   [](const ProgramRef& self) { return self.program->scratch_bytes().count(); });
}

}  // namespace keel::python
