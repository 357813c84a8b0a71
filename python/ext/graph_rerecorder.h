// The program recorded again in every step, as Python has it.
#pragma once

#include <nanobind/nanobind.h>

namespace keel::python {

void BindRerecorder(nanobind::module_& m);

}  // namespace keel::python
