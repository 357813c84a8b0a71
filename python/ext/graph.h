// What keel.graph is made of: programs, executables, steps.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "device.h"
#include "keel/graph/program.h"

namespace keel::python {

// A program, and the device that its kernels and functions are for.
struct ProgramRef {
  DeviceRef device;
  std::shared_ptr<const graph::Program> program;
};

void BindProgram(nanobind::module_& m);
void BindGraph(nanobind::module_& m);

}  // namespace keel::python
