#include "graph_buffers.h"

#include <nanobind/stl/string.h>

#include <string>
#include <utility>

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

}  // namespace

Bound BufferReader::Read(std::uint32_t binding, nb::handle value, const graph::BindingSpec& spec,
                         const DeviceRef& device) const {
  if (Py_TYPE(value.ptr()) == reinterpret_cast<PyTypeObject*>(array_type_.ptr())) {
    const nb::object raw = nb::steal(PyObject_GetAttr(value.ptr(), storage_name_.ptr()));
    if (!raw.is_valid()) throw nb::python_error();
    std::shared_ptr<Storage> storage = nb::inst_ptr<StorageRef>(raw)->Get();
    if (storage->memory().device() != device.device()) {
      throw nb::value_error(("'" + spec.name + "' is on " + storage->memory().name().ToString() +
                             ", the program on " + device.name())
                                .c_str());
    }
    const graph::Buffer buffer{
        .address = storage->address(), .size = storage->size(), .memory = nullptr};
    return {binding, buffer, std::move(storage)};
  }
  if (PyLong_CheckExact(value.ptr())) return {binding, At(value, spec.size, spec), nullptr};
  if (PyTuple_CheckExact(value.ptr())) return {binding, FromTuple(value, spec), nullptr};
  const nb::object made = span_(value, device.name());
  return {binding, FromTuple(made, spec), nullptr};
}

}  // namespace keel::python
