// Physical memory that is remapped, as Python has it.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "keel/hal/memory.h"
#include "storage.h"

namespace keel::python {

struct PhysicalRef {
  // Its bytes at an address of their own, which arrays over it share; null: closed. Their end waits
  // for the device's streams.
  std::shared_ptr<Storage> storage;
  std::shared_ptr<const hal::PhysicalMemory> memory;

  // ValueError if closed.
  std::shared_ptr<Storage> Get() const;
};

void BindPhysical(nanobind::module_& m);

}  // namespace keel::python
