// Functions of Python's that workers call, in this process or as the program of theirs. When the
// interpreter ends, their threads stay where they are: see OrStayHere.
#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "errors.h"
#include "keel/memory/process_memory.h"
#include "keel/task/worker_main.h"
#include "storage.h"
#include "stream.h"
#include "task.h"

namespace keel::python {
namespace {

// Threads that are in a function now, by Python's numbers for them. Guarded by the interpreter's
// lock.
std::vector<unsigned long>& Running() {
  static auto& running = *new std::vector<unsigned long>;
  return running;
}

class Interpreter {
 public:
  Interpreter() : state_(OrStayHere([] { return PyGILState_Ensure(); })) {}
  ~Interpreter() {
    OrStayHere([this] { PyGILState_Release(state_); });
  }
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

 private:
  const PyGILState_STATE state_;
};

// What the function is given; shared with Python, which may keep it.
class TaskCall {
 public:
  explicit TaskCall(task::HostCall& call)
      : thread_(PyThread_get_thread_ident()),
        call_(&call),
        stream_(std::make_shared<OwnedStream>(
            call.memory(),
            hal::Stream(call.memory()->device(), {.stream = call.stream(), .borrowed = true}),
            call.stream_owner())) {
    Running().push_back(thread_);
  }
  // Only the thread that is called: the call may be over when another one looks.
  task::HostCall& Get() const {
    if (call_ == nullptr) Raise(FailedPrecondition("this call is over"));
    if (PyThread_get_thread_ident() != thread_) {
      Raise(FailedPrecondition("a call is used by the thread that it was made in"));
    }
    return *call_;
  }
  void End() {
    call_ = nullptr;
    if (stream_object_.is_valid()) nb::cast<StreamRef&>(stream_object_).owner = nullptr;
    // This may be in a cycle of Python's, and stay until that is collected: the device's memory
    // must not.
    stream_.reset();
    auto& running = Running();
    running.erase(std::find(running.begin(), running.end(), thread_));
  }
  const std::shared_ptr<OwnedStream>& stream() const { return stream_; }
  // Closed at the end of the call.
  const nb::object& stream_object() {
    if (!stream_object_.is_valid()) stream_object_ = nb::cast(StreamRef{stream_});
    return stream_object_;
  }

 private:
  const unsigned long thread_;
  task::HostCall* call_;
  std::shared_ptr<OwnedStream> stream_;  // until the end of the call
  nb::object stream_object_;
};

StatusCode CodeOf(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(StatusCode::kUnauthenticated); ++i) {
    const auto code = static_cast<StatusCode>(i);
    if (code != StatusCode::kOk && StatusCodeName(code) == name) return code;
  }
  return StatusCode::kUnknown;
}

Status OutcomeOf(PyObject* returned) {
  if (returned == nullptr) {
    // The function's own errors are returned: this one came on the way.
    const nb::python_error error;
    return {StatusCode::kUnknown, std::string("it raised ") + error.what()};
  }
  const nb::object result = nb::steal(returned);
  if (result.is_none()) return OkStatus();
  const auto& [code, text] = nb::cast<std::pair<std::string, std::string>>(result);
  return {CodeOf(code), text};
}

Status CallIn(const CallbackTarget& target, task::HostCall& call) {
  if (target.function == nullptr) {
    return FailedPrecondition("the function is gone, with the orchestrator it was registered with");
  }
  try {
    const nb::object function = nb::borrow(target.function);
    const auto given = std::make_shared<TaskCall>(call);
    const struct Ending {
      TaskCall& call;
      ~Ending() { call.End(); }
    } ending{*given};
    const nb::object argument = nb::cast(given);
    return OutcomeOf(
        OrStayHere([&] { return PyObject_CallOneArg(function.ptr(), argument.ptr()); }));
  } catch (const std::exception& error) {
    return Internal(error.what());
  }
}

Status Call(const CallbackTarget& target, task::HostCall& call) {
  const Interpreter interpreter;
  return OrStayHere([&] { return CallIn(target, call); });
}

// --- For Python ----------------------------------------------------------------------------------

nb::list Tensors(const TaskCall& self) {
  const task::ArgumentsView& arguments = self.Get().arguments();
  nb::list list;
  for (std::size_t i = 0; i < arguments.tensor_count(); ++i) {
    const task::Tensor tensor = arguments.tensor(i);
    nb::list shape;
    for (std::size_t axis = 0; axis < tensor.rank; ++axis) shape.append(tensor.shape[axis]);
    list.append(nb::make_tuple(static_cast<int>(arguments.tag(i)), tensor.address, nb::tuple(shape),
                               std::string(task::DataTypeName(tensor.type))));
  }
  return list;
}

nb::list Scalars(const TaskCall& self) {
  const task::ArgumentsView& arguments = self.Get().arguments();
  nb::list list;
  for (std::size_t i = 0; i < arguments.scalar_count(); ++i) list.append(arguments.scalar(i));
  return list;
}

hal::KernelArg ArgumentOf(nb::handle from) {
  if (nb::isinstance<nb::bytes>(from)) {
    const auto value = nb::cast<nb::bytes>(from);
    if (value.size() == 0 || value.size() > hal::KernelArg::kMaxValue) {
      throw nb::value_error("a value has 1 to 16 bytes");
    }
    return hal::KernelArg::ValueOf(value.data(), value.size());
  }
  const auto& [tag, address, size] = nb::cast<std::tuple<int, std::uint64_t, std::uint64_t>>(from);
  if (tag == static_cast<int>(task::Tag::kIn)) {
    return hal::KernelArg::In(DeviceAddress(address), Bytes(size));
  }
  return tag == static_cast<int>(task::Tag::kOut)
             ? hal::KernelArg::Out(DeviceAddress(address), Bytes(size))
             : hal::KernelArg::InOut(DeviceAddress(address), Bytes(size));
}

void Launch(const TaskCall& self, std::uint32_t kernel, const std::array<std::uint32_t, 3>& grid,
            const std::array<std::uint32_t, 3>& block, std::uint64_t shared_memory,
            const nb::list& arguments) {
  task::HostCall& call = self.Get();
  std::vector<hal::KernelArg> args;
  for (const nb::handle each : arguments) args.push_back(ArgumentOf(each));
  Check(WithoutInterpreter(
      [&] { return call.Launch(kernel, {grid, block, Bytes(shared_memory)}, args); }));
}

// As a launch that was refused.
void Refuse(const TaskCall& self, const std::string& code, const std::string& text) {
  self.Get().Refuse({CodeOf(code), text});
}

// Raises SystemExit in every function that runs; how many that are. One that waits outside of
// Python does not notice.
std::size_t InterruptTaskFunctions() {
  if (ForkedFromUser()) return 0;
  for (const unsigned long thread : Running()) {
    PyThreadState_SetAsyncExc(thread, PyExc_SystemExit);
  }
  return Running().size();
}

// --- A worker's process --------------------------------------------------------------------------

// `find` returns a Callback, or the name of a status code and a text.
Result<task::HostFunction> FoundBy(const nb::object& find, std::span<const std::byte> reference) {
  const Interpreter interpreter;
  try {
    nb::object found =
        find(nb::bytes(reinterpret_cast<const char*>(reference.data()), reference.size()));
    if (nb::isinstance<nb::tuple>(found)) {
      const auto& [code, text] = nb::cast<std::pair<std::string, std::string>>(found);
      return Status(CodeOf(code), text);
    }
    task::HostFunction function = HostFunctionOf(nb::cast<const CallbackRef&>(found));
    // Nobody but the callable owns it here.
    const std::shared_ptr<PyObject> kept(found.release().ptr(), [](PyObject* object) {
      if (InterpreterEnds()) return;
      const Interpreter held;
      Py_DECREF(object);
    });
    return task::HostFunction(
        [kept, function = std::move(function)](task::HostCall& call) { return function(call); });
  } catch (const std::exception& error) {
    return Status(StatusCode::kUnknown, error.what());
  }
}

int RunWorker(std::vector<std::string> arguments, const nb::object& find) {
  std::vector<char*> words;
  words.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  NoteDeviceUse();
  return WithoutInterpreter([&] {
    return task::RunWorker(
        static_cast<int>(arguments.size()), words.data(),
        [&find](std::span<const std::byte> reference) { return FoundBy(find, reference); });
  });
}

}  // namespace

task::HostFunction HostFunctionOf(const CallbackRef& callback) {
  return [target = callback.target()](task::HostCall& call) -> Status {
    if (InterpreterEnds()) return FailedPrecondition("the interpreter ends");
    return Call(*target, call);
  };
}

void BindTaskCall(nb::module_& m) {
  nb::class_<TaskCall>(m, "TaskCall")
      .def_prop_ro("tensors", &Tensors)
      .def_prop_ro("scalars", &Scalars)
      .def_prop_ro("kernel_count", [](const TaskCall& self) { return self.Get().kernel_count(); })
      .def_prop_ro("stream",
                   [](TaskCall& self) {
                     static_cast<void>(self.Get());
                     return self.stream_object();
                   })
      .def(
          "view",
          [](const TaskCall& self, std::uint64_t address, std::uint64_t size) {
            static_cast<void>(self.Get());
            return StorageRef{
                Storage::Adopt(self.stream(), DeviceAddress(address), Bytes(size), [] {})};
          },
          nb::arg("address"), nb::arg("size"))
      .def("launch", &Launch, nb::arg("kernel"), nb::arg("grid"), nb::arg("block"),
           nb::arg("shared_memory"), nb::arg("arguments"))
      .def("refuse", &Refuse, nb::arg("code"), nb::arg("text"));
  m.def("interrupt_task_functions", &InterruptTaskFunctions);
  m.def("run_worker", &RunWorker, nb::arg("arguments"), nb::arg("find"));
}

}  // namespace keel::python
