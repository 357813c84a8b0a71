// Orchestrators, tasks, images, and functions of Python's that workers call.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string_view>

#include "callback.h"
#include "keel/task/host_function.h"
#include "keel/task/tensor.h"

namespace keel::python {

// By the name that Python has for it. ValueError: there is none.
task::DataType DataTypeOf(std::string_view name);

// Calls the function with a TaskCall, with the interpreter's lock, in the worker's thread. It
// returns None, or the name of a status code and a text, which are the task's outcome then.
//
// When the interpreter ends a thread that is in Python, or wants to be, stays where it is for ever:
// see task_call.cc.
task::HostFunction HostFunctionOf(const CallbackRef& callback);

void BindTaskCall(nb::module_& m);
void BindTask(nb::module_& m);

}  // namespace keel::python
