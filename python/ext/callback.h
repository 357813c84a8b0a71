// Functions of Python's that a program calls: traced, eager and host calls.
//
// A function often refers, by way of an object, to the executable whose program calls it. So that
// Python's collector sees that circle, the reference to the function is an object of Python's (a
// Callback, which the program's object in Python owns), and what the program itself has is a weak
// one: once the Callback is gone, nothing calls any more.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <vector>

#include "keel/graph/program.h"
#include "keel/memory/process_memory.h"
#include "stream.h"

namespace keel::python {

namespace nb = nanobind;

// A thread that asks for the interpreter's lock then does not return.
bool InterpreterEnds();

// Guarded by the interpreter's lock.
struct CallbackTarget {
  PyObject* function = nullptr;  // null: gone
};

class CallbackRef {
 public:
  explicit CallbackRef(nb::object function);
  ~CallbackRef() { Clear(); }
  CallbackRef(const CallbackRef&) = delete;
  CallbackRef& operator=(const CallbackRef&) = delete;

  const std::shared_ptr<CallbackTarget>& target() const { return target_; }
  PyObject* function() const { return function_.ptr(); }
  void Clear();

 private:
  nb::object function_;
  std::shared_ptr<CallbackTarget> target_;
};

// Calls the function with a TraceCall, with the interpreter's lock. A graph that is asked for is
// what it returns, as a number. What it raises is kept for the LaunchScope of this thread, and is
// kAborted here.
graph::TraceFunction TraceFunctionOf(std::shared_ptr<memory::DeviceMemory> memory,
                                     std::vector<graph::Operand> uses, const CallbackRef& callback);
// For the driver's thread; what the function raises is printed. The target is the data.
void CallFromDriver(void* target);

// Around a launch: what functions that it calls raise comes out of it. Made and ended with the
// interpreter's lock.
class LaunchScope {
 public:
  LaunchScope() : outer_(innermost_) { innermost_ = this; }
  ~LaunchScope() { innermost_ = outer_; }
  LaunchScope(const LaunchScope&) = delete;
  LaunchScope& operator=(const LaunchScope&) = delete;

  // Throws what a function raised if the launch failed because of it, or else its error.
  void Check(const Status& launched);

 private:
  friend graph::TraceFunction TraceFunctionOf(std::shared_ptr<memory::DeviceMemory>,
                                              std::vector<graph::Operand>, const CallbackRef&);
  static thread_local LaunchScope* innermost_;
  LaunchScope* const outer_;
  std::optional<nb::python_error> raised_;
};

void BindCallback(nb::module_& m);

}  // namespace keel::python
