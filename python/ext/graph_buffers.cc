#include "graph_buffers.h"

#include <nanobind/stl/string.h>

#include <string>
#include <utility>

#include "graph_physical.h"

namespace keel::python {

std::uint64_t NumberOf(nb::handle value, const std::string& what) {
  std::uint64_t number = 0;
  if (PyBool_Check(value.ptr()) || !nb::try_cast(value, number)) {
    throw nb::type_error(
        (what + " must be a number from 0 on, not " + nb::cast<std::string>(nb::repr(value)))
            .c_str());
  }
  return number;
}

namespace {

graph::Buffer At(nb::handle address, Bytes size, const graph::BindingSpec& spec) {
  return {.address = DeviceAddress(NumberOf(address, "the address of '" + spec.name + "'")),
          .size = size,
          .memory = nullptr};
}

graph::Buffer FromTuple(nb::handle tuple, const graph::BindingSpec& spec) {
  const Py_ssize_t count = PyTuple_CheckExact(tuple.ptr()) ? PyTuple_GET_SIZE(tuple.ptr()) : 0;
  if (count != 2 && count != 3) {
    throw nb::type_error(
        ("'" + spec.name + "': a tuple is (address, bytes) or (address, bytes, generation)")
            .c_str());
  }
  const auto item = [&](Py_ssize_t i) { return nb::handle(PyTuple_GET_ITEM(tuple.ptr(), i)); };
  graph::Buffer buffer =
      At(item(0), Bytes(NumberOf(item(1), "the size of '" + spec.name + "'")), spec);
  if (count == 3) {
    buffer.generation = NumberOf(item(2), "the generation of '" + spec.name + "'");
  }
  return buffer;
}

nb::object AttributeOf(nb::handle object, const nb::object& name) {
  nb::object found = nb::steal(PyObject_GetAttr(object.ptr(), name.ptr()));
  if (!found.is_valid()) throw nb::python_error();
  return found;
}

bool IsExactly(nb::handle value, const nb::object& type) {
  return Py_TYPE(value.ptr()) == reinterpret_cast<PyTypeObject*>(type.ptr());
}

}  // namespace

std::vector<bool> WrittenIn(const graph::Program& program) {
  std::vector<bool> written(program.bindings().size());
  const auto note = [&](const graph::Operand& operand) {
    if (hal::Allows(operand.access, hal::Access::kWrite)) written[operand.binding.index] = true;
  };
  for (const graph::ProgramCommand& command : program.commands()) {
    if (const auto* kernel = std::get_if<graph::command::Kernel>(&command)) {
      for (const graph::Argument& argument : kernel->arguments) {
        if (const auto* operand = std::get_if<graph::Operand>(&argument.get())) note(*operand);
      }
    } else if (const auto* copy = std::get_if<graph::command::Copy>(&command)) {
      note(copy->destination);
    } else if (const auto* fill = std::get_if<graph::command::Fill>(&command)) {
      note(fill->destination);
    } else if (const auto* traced = std::get_if<graph::command::Traced>(&command)) {
      for (const graph::Operand& use : traced->uses) note(use);
    } else if (const auto* eager = std::get_if<graph::command::Eager>(&command)) {
      for (const graph::Operand& use : eager->uses) note(use);
    }
  }
  return written;
}

StepReader::StepReader(DeviceRef device, std::shared_ptr<const graph::Program> program,
                       BufferTypes types)
    : device_(std::move(device)),
      program_(std::move(program)),
      types_(std::move(types)),
      storage_name_(nb::steal(PyUnicode_InternFromString("_storage"))),
      raw_name_(nb::steal(PyUnicode_InternFromString("_raw"))) {
  std::uint32_t index = 0;
  for (const graph::BindingSpec& spec : program_->bindings()) indices_[spec.name.c_str()] = index++;
}

std::vector<Bound> StepReader::ReadAll(const nb::dict& buffers) const {
  std::vector<Bound> read;
  read.reserve(buffers.size());
  PyObject* name = nullptr;
  PyObject* value = nullptr;
  Py_ssize_t position = 0;
  while (PyDict_Next(buffers.ptr(), &position, &name, &value) != 0) {
    read.push_back(Read(nb::handle(name), nb::handle(value)));
  }
  return read;
}

Bound StepReader::Read(nb::handle name, nb::handle value) const {
  PyObject* const index = PyDict_GetItemWithError(indices_.ptr(), name.ptr());
  if (index == nullptr) {
    if (PyErr_Occurred() != nullptr) throw nb::python_error();
    Raise(program_->Find(nb::cast<std::string>(name)).status());
  }
  return ReadBuffer(nb::cast<std::uint32_t>(nb::handle(index)), value);
}

Bound StepReader::ReadBuffer(std::uint32_t binding, nb::handle value) const {
  const graph::BindingSpec& spec = program_->bindings()[binding];
  if (IsExactly(value, types_.array)) return FromArray(binding, value);
  if (IsExactly(value, types_.physical)) return FromPhysical(binding, value);
  if (PyLong_CheckExact(value.ptr())) return {binding, At(value, spec.size, spec), nullptr};
  if (PyTuple_CheckExact(value.ptr())) return {binding, FromTuple(value, spec), nullptr};
  const nb::object made = types_.span(value, device_.name());
  return {binding, FromTuple(made, spec), nullptr};
}

Bound StepReader::FromArray(std::uint32_t binding, nb::handle array) const {
  const nb::object raw = AttributeOf(array, storage_name_);
  std::shared_ptr<Storage> storage = nb::inst_ptr<StorageRef>(raw)->Get();
  CheckDevice(binding, *storage);
  const graph::Buffer buffer{
      .address = storage->address(), .size = storage->size(), .memory = nullptr};
  return {binding, buffer, std::move(storage)};
}

Bound StepReader::FromPhysical(std::uint32_t binding, nb::handle memory) const {
  const nb::object raw = AttributeOf(memory, raw_name_);
  const PhysicalRef& physical = *nb::inst_ptr<PhysicalRef>(raw);
  std::shared_ptr<Storage> storage = physical.Get();
  CheckDevice(binding, *storage);
  const graph::Buffer buffer{
      .address = storage->address(), .size = storage->size(), .memory = physical.memory};
  return {binding, buffer, std::move(storage)};
}

void StepReader::CheckDevice(std::uint32_t binding, const Storage& storage) const {
  if (storage.memory().device() == device_.device()) return;
  throw nb::value_error(("'" + program_->bindings()[binding].name + "' is on " +
                         storage.memory().name().ToString() + ", the program on " + device_.name())
                            .c_str());
}

std::shared_ptr<OwnedStream> StepReader::StreamOf(nb::handle stream) {
  if (nb::isinstance<StreamRef>(stream)) {
    std::shared_ptr<OwnedStream> given = nb::inst_ptr<StreamRef>(stream)->Get();
    if (given->memory()->device() != device_.device()) {
      throw nb::value_error(("the stream is of " + given->memory()->name().ToString() +
                             ", the program of " + device_.name())
                                .c_str());
    }
    return given;
  }
  const std::uint64_t number = NumberOf(stream, "a stream");
  if (borrowed_ == nullptr || borrowed_->get().value != number) {
    borrowed_ = std::make_shared<OwnedStream>(device_.memory,
                                              Take(hal::Stream::Borrow(device_.device(), number)));
  }
  return borrowed_;
}

}  // namespace keel::python
