// Pinned host memory of a device, owned by a Python object.
#pragma once

#include <nanobind/nanobind.h>

namespace keel::python {

void BindPinned(nanobind::module_& m);

}  // namespace keel::python
