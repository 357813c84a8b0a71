#include "callback.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>

#include "errors.h"
#include "storage.h"

namespace keel::python {

thread_local LaunchScope* LaunchScope::innermost_ = nullptr;

bool InterpreterEnds() {
#if PY_VERSION_HEX >= 0x030d0000
  return Py_IsInitialized() == 0 || Py_IsFinalizing() != 0;
#else
  return Py_IsInitialized() == 0 || _Py_IsFinalizing() != 0;
#endif
}

namespace {

// What a traced or eager function is given, during the call.
struct TraceCall {
  std::shared_ptr<OwnedStream> stream;
  std::vector<std::uint64_t> addresses;  // of its uses, in their order
  bool capturing = false;
};

}  // namespace

CallbackRef::CallbackRef(nb::object function)
    : function_(std::move(function)), target_(std::make_shared<CallbackTarget>()) {
  target_->function = function_.ptr();
}

void CallbackRef::Clear() {
  target_->function = nullptr;
  const nb::object gone = std::move(function_);
}

graph::TraceFunction TraceFunctionOf(std::shared_ptr<memory::DeviceMemory> memory,
                                     std::vector<graph::Operand> uses,
                                     const CallbackRef& callback) {
  return [memory = std::move(memory), uses = std::move(uses),
          target = callback.target()](const graph::TraceContext& context) -> Status {
    if (InterpreterEnds()) return FailedPrecondition("the interpreter ends");
    const nb::gil_scoped_acquire acquire;
    if (target->function == nullptr) {
      return FailedPrecondition("the program that this function was added to is gone");
    }
    const nb::object function = nb::borrow(target->function);
    TraceCall call;
    call.stream = std::make_shared<OwnedStream>(
        memory, hal::Stream(memory->device(), {.stream = context.stream(), .borrowed = true}));
    for (const graph::Operand& use : uses) {
      call.addresses.push_back((context.address(use.binding) + use.offset).value());
    }
    call.capturing = context.capturing();
    try {
      const nb::object result = function(nb::cast(std::move(call)));
      if (context.takes_graph() && !result.is_none()) {
        context.Give(hal::GraphHandle{nb::cast<std::uint64_t>(result)});
      }
      return OkStatus();
    } catch (nb::python_error& error) {
      const std::string kind = nb::cast<std::string>(nb::str(error.type().attr("__name__")));
      if (LaunchScope::innermost_ != nullptr) {
        LaunchScope::innermost_->raised_.emplace(std::move(error));
      }
      return Status(StatusCode::kAborted, "it raised " + kind);
    } catch (const std::exception& error) {
      return Internal(error.what());
    }
  };
}

void CallFromDriver(void* target) {
  if (InterpreterEnds()) return;
  const nb::gil_scoped_acquire acquire;
  auto* const its = static_cast<CallbackTarget*>(target);
  if (its->function == nullptr) return;
  const nb::object function = nb::borrow(its->function);
  PyObject* const result = PyObject_CallNoArgs(function.ptr());
  if (result == nullptr) {
    PyErr_WriteUnraisable(function.ptr());
  } else {
    Py_DECREF(result);
  }
}

void LaunchScope::Check(const Status& launched) {
  if (raised_) {
    // A launch goes on without a slot that could not be recorded ahead of its own first step, which
    // raises again. But an interrupt from the keyboard comes only once.
    const bool interrupt = PyErr_GivenExceptionMatches(raised_->type().ptr(), PyExc_Exception) == 0;
    if (launched.code() == StatusCode::kAborted || interrupt) throw std::move(*raised_);
  }
  python::Check(launched);
}

// --- For Python ----------------------------------------------------------------------------------

namespace {

int TraverseCallback(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self)) Py_VISIT(nb::inst_ptr<CallbackRef>(self)->function());
  return 0;
}

int ClearCallback(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<CallbackRef>(self)->Clear();
  return 0;
}

PyType_Slot callback_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(TraverseCallback)},
                                {Py_tp_clear, reinterpret_cast<void*>(ClearCallback)},
                                {0, nullptr}};

}  // namespace

void BindCallback(nb::module_& m) {
  const nb::class_<CallbackRef> callback(m, "Callback", nb::type_slots(callback_slots));
  m.def(
      "create_callback",
      [](nb::object function) { return std::make_unique<CallbackRef>(std::move(function)); },
      nb::arg("function"));
  nb::class_<TraceCall>(m, "TraceCall")
      .def_prop_ro("stream", [](const TraceCall& self) { return StreamRef{self.stream}; })
      .def_prop_ro("handle", [](const TraceCall& self) { return self.stream->get().value; })
      .def_prop_ro("addresses", [](const TraceCall& self) { return self.addresses; })
      .def_prop_ro("capturing", [](const TraceCall& self) { return self.capturing; })
      .def(
          "view",
          [](const TraceCall& self, std::size_t use, std::uint64_t size) {
            return StorageRef{Storage::Adopt(self.stream, DeviceAddress(self.addresses.at(use)),
                                             Bytes(size), [] {})};
          },
          nb::arg("use"), nb::arg("size"));
}

}  // namespace keel::python
