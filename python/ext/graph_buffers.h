// What Python gives a step to work with.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device.h"
#include "errors.h"
#include "keel/graph/binding.h"
#include "keel/graph/executable.h"
#include "keel/graph/program.h"
#include "storage.h"

namespace keel::python {

// TypeError for what is no number that an address, a size or a stream can be.
std::uint64_t NumberOf(nb::handle value, const std::string& what);

struct Bound {
  std::uint32_t binding = 0;
  graph::Buffer buffer;
  std::shared_ptr<Storage> storage;  // of an array; null: the caller keeps and orders it
};

// Which bindings commands write. Of a resident one the declared access does not tell.
std::vector<bool> WrittenIn(const graph::Program& program);

// The types and functions of Python's that buffers are recognised by.
struct BufferTypes {
  nb::object array;     // keel.Array
  nb::object physical;  // keel.graph.PhysicalMemory
  nb::object span;      // makes (address, size[, generation]) of anything else
};

// Reads what Python gives the steps of a program: an array, physical memory, an address, a tuple as
// `span` makes it, or what it can make one of; and the stream. With the interpreter's lock.
class StepReader {
 public:
  StepReader(DeviceRef device, std::shared_ptr<const graph::Program> program, BufferTypes types);

  // TypeError and ValueError name the binding; NotFoundError: there is none of that name.
  std::vector<Bound> ReadAll(const nb::dict& buffers) const;
  // A stream of ours, or the number of another library's.
  std::shared_ptr<OwnedStream> StreamOf(nb::handle stream);

 private:
  Bound Read(nb::handle name, nb::handle value) const;
  Bound ReadBuffer(std::uint32_t binding, nb::handle value) const;
  Bound FromArray(std::uint32_t binding, nb::handle array) const;
  Bound FromPhysical(std::uint32_t binding, nb::handle memory) const;
  void CheckDevice(std::uint32_t binding, const Storage& storage) const;

  DeviceRef device_;
  std::shared_ptr<const graph::Program> program_;
  BufferTypes types_;
  nb::object storage_name_;
  nb::object raw_name_;
  nb::dict indices_;  // of bindings, by name
  // The stream that was last named by its number.
  std::shared_ptr<OwnedStream> borrowed_;
};

}  // namespace keel::python
