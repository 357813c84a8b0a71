// keel._keel: what the Python package calls in libkeel.so, one to one. What a user sees, with its
// names, defaults and checks, is in python/keel/.
#include <nanobind/nanobind.h>

#include "callback.h"
#include "device.h"
#include "dlpack.h"
#include "graph.h"
#include "keel/base/version.h"
#include "pinned.h"
#include "storage.h"
#include "stream.h"
#include "task.h"

NB_MODULE(_keel, m) {
  // A program that ends with arrays in its variables has not leaked them.
  nanobind::set_leak_warnings(false);
  m.attr("VERSION") = KEEL_VERSION_STRING;
  keel::python::BindDevice(m);
  keel::python::BindMemory(m);
  keel::python::BindStream(m);
  keel::python::BindStorage(m);
  keel::python::BindPinned(m);
  keel::python::BindDlpack(m);
  keel::python::BindCallback(m);
  keel::python::BindProgram(m);
  keel::python::BindGraph(m);
  keel::python::BindTaskCall(m);
  keel::python::BindTask(m);
}
