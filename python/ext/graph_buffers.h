// What Python gives a step to work with.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "device.h"
#include "errors.h"
#include "keel/graph/binding.h"
#include "keel/graph/executable.h"
#include "storage.h"

namespace keel::python {

// TypeError for what is no number that an address, a size or a stream can be.
std::uint64_t NumberOf(nb::handle value, const std::string& what);

struct Bound {
  std::uint32_t binding = 0;
  graph::Buffer buffer;
  std::shared_ptr<Storage> storage;  // of an array; null: the caller keeps and orders it
};

// Reads what Python has as a buffer: an array, an address, (address, size[, generation]), or what
// `span`, a function of Python's, makes one of these tuples of.
class BufferReader {
 public:
  BufferReader(nb::object array_type, nb::object span)
      : array_type_(std::move(array_type)),
        span_(std::move(span)),
        storage_name_(nb::steal(PyUnicode_InternFromString("_storage"))) {}

  // TypeError and ValueError name the binding.
  Bound Read(std::uint32_t binding, nb::handle value, const graph::BindingSpec& spec,
             const DeviceRef& device) const;

 private:
  nb::object array_type_;
  nb::object span_;
  nb::object storage_name_;
};

}  // namespace keel::python
