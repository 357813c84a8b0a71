// DeviceRef: a device that the process uses, with the allocators that it shares with everybody.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>

#include "keel/memory/process_memory.h"

namespace keel::python {

// What Python holds: a real reference, which needs no interpreter to be copied or dropped.
struct DeviceRef {
  std::shared_ptr<memory::DeviceMemory> memory;

  const std::shared_ptr<hal::Device>& device() const { return memory->device(); }
  std::string name() const { return memory->name().ToString(); }
};

void BindDevice(nanobind::module_& m);
void BindMemory(nanobind::module_& m);

}  // namespace keel::python
