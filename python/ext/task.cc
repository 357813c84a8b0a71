#include "task.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "errors.h"
#include "keel/task/orchestrator.h"

namespace keel::python {

task::DataType DataTypeOf(std::string_view name) {
  for (std::uint8_t i = 0; i < task::kDataTypes; ++i) {
    const auto type = static_cast<task::DataType>(i);
    if (task::DataTypeName(type) == name) return type;
  }
  throw nb::value_error(("a tensor has no elements of " + std::string(name)).c_str());
}

namespace {

using task::Orchestrator;

// --- Host memory ---------------------------------------------------------------------------------

// A buffer of Python's, which can be neither moved nor freed while this is there.
class HostBuffer {
 public:
  HostBuffer(nb::handle object, bool writable) {
    if (PyObject_GetBuffer(object.ptr(), &view_, writable ? PyBUF_WRITABLE : PyBUF_SIMPLE) != 0) {
      throw nb::python_error();
    }
  }
  ~HostBuffer() { PyBuffer_Release(&view_); }
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;

  void* data() const { return view_.buf; }
  std::uint64_t size() const { return static_cast<std::uint64_t>(view_.len); }
  bool read_only() const { return view_.readonly != 0; }

 private:
  Py_buffer view_{};
};

// --- Images --------------------------------------------------------------------------------------

std::vector<std::byte> BytesOf(const nb::bytes& bytes) {
  const auto* const data = static_cast<const std::byte*>(bytes.data());
  return {data, data + bytes.size()};
}

// Parts are code, or the names of registered sets.
task::Image BuildImage(const std::optional<nb::bytes>& orchestration, const nb::list& parts,
                       const std::vector<std::tuple<std::uint32_t, std::string>>& kernels) {
  task::ImageBuilder builder;
  if (orchestration) builder.SetOrchestration(BytesOf(*orchestration));
  for (const nb::handle part : parts) {
    if (nb::isinstance<nb::bytes>(part)) {
      builder.AddPart(BytesOf(nb::cast<nb::bytes>(part)));
    } else {
      builder.AddRegisteredPart(nb::cast<std::string>(part));
    }
  }
  for (const auto& [part, name] : kernels) builder.AddKernel(part, name);
  return Take(orchestration ? builder.Build() : builder.BuildKernels());
}

task::Image ParseImage(const nb::bytes& bytes) {
  return Take(task::Image::Parse({static_cast<const std::byte*>(bytes.data()), bytes.size()}));
}

// --- Tasks ---------------------------------------------------------------------------------------

// What Python holds of one. Where that takes a lock it goes without the interpreter: whoever has
// the lock may be waiting for a function of Python's. Elsewhere it keeps it, because to get it back
// can take milliseconds beside a thread that computes.
class TaskRef {
 public:
  explicit TaskRef(task::TaskHandle handle) : handle_(std::move(handle)) {}
  TaskRef(TaskRef&& other) noexcept = default;
  TaskRef& operator=(TaskRef&&) = delete;
  ~TaskRef() {
    if (handle_.forgotten()) return;
    const LeaveInterpreter leave;
    handle_ = task::TaskHandle();
  }
  const task::TaskHandle& handle() const { return handle_; }

 private:
  task::TaskHandle handle_;
};

void WaitForTask(const TaskRef& ref, std::optional<double> timeout) {
  const task::TaskHandle& task = ref.handle();
  WaitInterruptibly(DeadlineOf(timeout), [&](Deadline deadline) -> Status {
    Status status = task.Wait(deadline);
    // Its own time may have been up: that is an outcome.
    return task.done() ? OkStatus() : status;
  });
  Check(task.error());
}

// None, or the exception.
nb::object ErrorOf(const TaskRef& task) {
  const Status status = task.handle().error();
  if (status.ok()) return nb::none();
  try {
    Raise(status);
  } catch (nb::python_error& error) {
    return nb::borrow(error.value());
  }
}

// --- Orchestrators -------------------------------------------------------------------------------

// (tag, address, shape, type, block): the block is 0 for a tensor on the host.
using TensorOf =
    std::tuple<std::uint8_t, std::uint64_t, std::vector<std::uint64_t>, std::string, task::BlockId>;
// Tensors, and scalars by their 64 bits.
using ArgumentsOf = std::tuple<std::vector<TensorOf>, std::vector<std::uint64_t>>;

task::Arguments Read(const ArgumentsOf& from, std::vector<task::BlockId>& blocks) {
  task::Arguments arguments;
  for (const auto& [tag, address, lengths, type, block] : std::get<0>(from)) {
    if (lengths.size() > task::Tensor::kMaxRank) {
      throw nb::value_error("a tensor of a task has at most 6 dimensions");
    }
    task::Tensor tensor;
    tensor.address = address;
    tensor.rank = static_cast<std::uint8_t>(lengths.size());
    tensor.type = DataTypeOf(type);
    tensor.flags = block != 0 ? task::Tensor::kResident : std::uint8_t{0};
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      if (lengths[i] > ~std::uint32_t{0}) {
        throw nb::value_error("a dimension of a task's tensor is below 2**32");
      }
      tensor.shape[i] = static_cast<std::uint32_t>(lengths[i]);
    }
    if (block != 0 && !tensor.size().empty()) blocks.push_back(block);
    arguments.Add(static_cast<task::Tag>(tag), tensor);
  }
  for (const std::uint64_t scalar : std::get<1>(from)) arguments.AddScalar(scalar);
  return arguments;
}

std::optional<std::chrono::nanoseconds> Nanoseconds(std::optional<double> seconds) {
  if (!seconds) return std::nullopt;
  if (std::isnan(*seconds) || *seconds < 0) {
    throw nb::value_error("timeout must be a number of seconds from 0 on, or None");
  }
  constexpr double kMost = 9e9;  // in their type
  const auto time = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(std::min(*seconds, kMost)));
  // 0 is for ever.
  return *seconds > 0 ? std::max(time, std::chrono::nanoseconds(1)) : time;
}

// What Python holds. Every call keeps the orchestrator for itself, and leaves the interpreter to
// others: a worker's thread may be waiting for it, with a lock that the call needs.
class OrchestratorRef {
 public:
  explicit OrchestratorRef(std::unique_ptr<Orchestrator> orchestrator)
      : owner_(std::move(orchestrator)) {}
  ~OrchestratorRef() {
    // It waits for tasks that run, which may be waiting for the interpreter.
    const LeaveInterpreter leave;
    owner_.reset();
  }
  OrchestratorRef(const OrchestratorRef&) = delete;
  OrchestratorRef& operator=(const OrchestratorRef&) = delete;

  template <class Work>
  auto Do(Work work) const {
    return WithoutInterpreter([&, owner = owner_] { return work(*owner); });
  }
  const std::shared_ptr<Orchestrator>& owner() const { return owner_; }

 private:
  std::shared_ptr<Orchestrator> owner_;
};

task::Orchestration OrchestrationOf(std::string_view name) {
  if (name == "auto") return task::Orchestration::kAuto;
  if (name == "device") return task::Orchestration::kDevice;
  if (name == "host") return task::Orchestration::kHost;
  throw nb::value_error("orchestration is \"auto\", \"device\" or \"host\"");
}

task::Transport TransportOf(std::string_view name) {
  if (name == "thread") return task::Transport::kThread;
  if (name == "process") return task::Transport::kProcess;
  if (name == "mpi") return task::Transport::kMpi;
  throw nb::value_error("transport is \"thread\", \"process\" or \"mpi\"");
}

std::shared_ptr<OrchestratorRef> Create(
    const std::vector<std::string>& devices, const std::string& transport,
    const std::string& orchestration, std::optional<double> task_timeout, double control_timeout,
    double start_timeout, double stop_timeout, std::uint64_t shared_memory,
    const std::string& worker_program, const std::vector<std::string>& worker_arguments) {
  task::OrchestratorOptions options;
  for (const std::string& device : devices) {
    options.workers.push_back({.device = device, .memory = nullptr});
  }
  options.transport = TransportOf(transport);
  options.orchestration = OrchestrationOf(orchestration);
  options.task_timeout = Nanoseconds(task_timeout).value_or(std::chrono::nanoseconds(0));
  options.control_timeout = *Nanoseconds(control_timeout);
  options.start_timeout = *Nanoseconds(start_timeout);
  options.stop_timeout = *Nanoseconds(stop_timeout);
  options.shared_memory = Bytes(shared_memory);
  options.worker_program = worker_program;
  options.worker_arguments = worker_arguments;
  // Others than threads have the device in another process than this one.
  if (options.transport == task::Transport::kThread) NoteDeviceUse();
  return std::make_shared<OrchestratorRef>(
      Take(WithoutInterpreter([&] { return Orchestrator::Create(std::move(options)); })));
}

// What tasks have until they are done: a deque of (task, list). Here, and not in Python, so that
// nothing of Python's runs between a submission and its entry, or within a change: no other thread,
// no handler of a signal, no collector. A lock would be one that these, or a forked child, find
// held.
nb::object Enter(task::TaskHandle task, const nb::object& append, const nb::list& kept) {
  nb::object entered = nb::cast(TaskRef(std::move(task)));
  append(nb::make_tuple(entered, kept));
  return entered;
}

// Lets go of what tasks that are done had: from the front, or wherever they are.
void SweepTasks(const nb::object& pending, bool everywhere) {
  const nb::object pop = pending.attr("popleft");
  const nb::object rotate = pending.attr("rotate");
  const nb::int_ by(-1);
  std::vector<nb::object> gone;
  for (std::size_t left = nb::len(pending); left > 0; --left) {
    const auto entry = nb::steal(PySequence_GetItem(pending.ptr(), 0));
    const auto& task = nb::cast<const TaskRef&>(nb::handle(PyTuple_GET_ITEM(entry.ptr(), 0)));
    if (task.handle().done()) {
      gone.push_back(entry);
      pop();
    } else if (everywhere) {
      rotate(by);
    } else {
      break;
    }
  }
  // From here on anything may run.
  for (const nb::object& entry : gone) {
    PyObject* const kept = PyTuple_GET_ITEM(entry.ptr(), 1);
    if (PyList_SetSlice(kept, 0, PyList_GET_SIZE(kept), nullptr) != 0) throw nb::python_error();
  }
}

nb::object Submit(const OrchestratorRef& self, std::uint64_t callable, const ArgumentsOf& arguments,
                  std::optional<std::uint32_t> worker, std::optional<double> timeout,
                  const nb::object& pending, const nb::list& kept) {
  std::vector<task::BlockId> blocks;
  const task::Arguments given = Read(arguments, blocks);
  const task::SubmitOptions options{
      .worker = worker, .timeout = Nanoseconds(timeout), .blocks = blocks};
  const nb::object append = pending.attr("append");
  return Enter(
      Take(self.Do([&](Orchestrator& its) { return its.Submit({callable}, given, options); })),
      append, kept);
}

nb::object SubmitGroup(const OrchestratorRef& self, std::uint64_t callable,
                       const std::vector<ArgumentsOf>& members,
                       const std::vector<std::optional<std::uint32_t>>& workers,
                       std::optional<double> timeout, const nb::object& pending,
                       const nb::list& kept) {
  std::vector<task::BlockId> blocks;
  std::vector<task::Arguments> given;
  given.reserve(members.size());
  for (const ArgumentsOf& member : members) given.push_back(Read(member, blocks));
  std::vector<task::WorkerId> named;
  named.reserve(workers.size());
  for (const auto& worker : workers) named.push_back(worker.value_or(task::kAnyWorker));
  const task::SubmitOptions options{
      .worker = {}, .timeout = Nanoseconds(timeout), .blocks = blocks};
  const nb::object append = pending.attr("append");
  return Enter(Take(self.Do([&](Orchestrator& its) {
                 return its.SubmitGroup({callable}, given, named, options);
               })),
               append, kept);
}

nb::list Report(const OrchestratorRef& self) {
  nb::list list;
  for (const task::WorkerReport& report : self.Do([](Orchestrator& its) { return its.Report(); })) {
    list.append(nb::make_tuple(report.worker, report.device, report.up,
                               std::string(report.lost.message()), report.restarts, report.tasks,
                               report.bytes_to_device, report.bytes_from_device, report.uploads,
                               report.callables));
  }
  return list;
}

void BindOrchestrator(nb::module_& m) {
  nb::class_<OrchestratorRef>(m, "Orchestrator")
      .def_prop_ro("worker_count",
                   [](const OrchestratorRef& self) { return self.owner()->worker_count(); })
      .def_prop_ro("live_tasks",
                   [](const OrchestratorRef& self) {
                     return self.Do([](Orchestrator& its) { return its.live_tasks(); });
                   })
      .def(
          "malloc",
          [](const OrchestratorRef& self, std::uint32_t worker, std::uint64_t size) {
            task::BlockId block = 0;
            const DeviceAddress address = Take(self.Do(
                [&](Orchestrator& its) { return its.Malloc(worker, Bytes(size), &block); }));
            return std::pair(address.value(), block);
          },
          nb::arg("worker"), nb::arg("size"))
      .def(
          "free",
          [](const OrchestratorRef& self, std::uint32_t worker, std::uint64_t address,
             task::BlockId block) {
            Check(self.Do([&](Orchestrator& its) {
              return its.Free(worker, DeviceAddress(address), block);
            }));
          },
          nb::arg("worker"), nb::arg("address"), nb::arg("block"))
      .def(
          "copy_to",
          [](const OrchestratorRef& self, std::uint32_t worker, std::uint64_t address,
             std::uint64_t source, std::uint64_t size, task::BlockId block) {
            Check(self.Do([&](Orchestrator& its) {
              return its.CopyTo(worker, DeviceAddress(address),
                                reinterpret_cast<const void*>(source), Bytes(size), block);
            }));
          },
          nb::arg("worker"), nb::arg("address"), nb::arg("source"), nb::arg("size"),
          nb::arg("block"))
      .def(
          "copy_from",
          [](const OrchestratorRef& self, std::uint32_t worker, std::uint64_t address,
             std::uint64_t destination, std::uint64_t size, task::BlockId block) {
            Check(self.Do([&](Orchestrator& its) {
              return its.CopyFrom(worker, reinterpret_cast<void*>(destination),
                                  DeviceAddress(address), Bytes(size), block);
            }));
          },
          nb::arg("worker"), nb::arg("address"), nb::arg("destination"), nb::arg("size"),
          nb::arg("block"))
      .def(
          "register_memory",
          [](const OrchestratorRef& self, std::uint32_t worker, std::uint64_t address,
             std::uint64_t size) {
            task::BlockId block = 0;
            Check(self.Do([&](Orchestrator& its) {
              return its.RegisterMemory(worker, DeviceAddress(address), Bytes(size), &block);
            }));
            return block;
          },
          nb::arg("worker"), nb::arg("address"), nb::arg("size"))
      .def(
          "unregister_memory",
          [](const OrchestratorRef& self, std::uint32_t worker, std::uint64_t address,
             task::BlockId block) {
            Check(self.Do([&](Orchestrator& its) {
              return its.UnregisterMemory(worker, DeviceAddress(address), block);
            }));
          },
          nb::arg("worker"), nb::arg("address"), nb::arg("block"))
      .def(
          "register_image",
          [](const OrchestratorRef& self, const task::Image& image) {
            return Take(self.Do([&](Orchestrator& its) { return its.Register(image); })).id;
          },
          nb::arg("image"))
      .def(
          "register_function",
          [](const OrchestratorRef& self, const CallbackRef& callback, const task::Image& kernels) {
            task::HostFunction function = HostFunctionOf(callback);
            return Take(self.Do([&](Orchestrator& its) {
                     return its.Register(std::move(function), kernels);
                   }))
                .id;
          },
          nb::arg("callback"), nb::arg("kernels"))
      .def(
          "register_reference",
          [](const OrchestratorRef& self, const nb::bytes& reference, const task::Image& kernels) {
            const std::span bytes(static_cast<const std::byte*>(reference.data()),
                                  reference.size());
            return Take(self.Do([&](Orchestrator& its) {
                     return its.RegisterReference(bytes, kernels);
                   }))
                .id;
          },
          nb::arg("reference"), nb::arg("kernels"))
      .def(
          "unregister",
          [](const OrchestratorRef& self, std::uint64_t callable) {
            Check(self.Do([&](Orchestrator& its) { return its.Unregister({callable}); }));
          },
          nb::arg("callable"))
      .def("submit", &Submit, nb::arg("callable"), nb::arg("arguments"), nb::arg("worker").none(),
           nb::arg("timeout").none(), nb::arg("pending"), nb::arg("kept"))
      .def("submit_group", &SubmitGroup, nb::arg("callable"), nb::arg("members"),
           nb::arg("workers"), nb::arg("timeout").none(), nb::arg("pending"), nb::arg("kept"))
      .def(
          "wait_all",
          [](const OrchestratorRef& self, std::optional<double> timeout) {
            // Once: what comes while it waits is not waited for.
            const std::uint64_t last = self.Do([](Orchestrator& its) { return its.last_task(); });
            WaitInterruptibly(DeadlineOf(timeout), [owner = self.owner(), last](Deadline deadline) {
              return owner->WaitUpTo(last, deadline);
            });
          },
          nb::arg("timeout").none())
      .def("report", &Report)
      .def("close",
           [](const OrchestratorRef& self) { self.Do([](Orchestrator& its) { its.Close(); }); });
  m.def("sweep_tasks", &SweepTasks, nb::arg("pending"), nb::arg("everywhere"));
  m.def("create_orchestrator", &Create, nb::arg("devices"), nb::arg("transport"),
        nb::arg("orchestration"), nb::arg("task_timeout").none(), nb::arg("control_timeout"),
        nb::arg("start_timeout"), nb::arg("stop_timeout"), nb::arg("shared_memory"),
        nb::arg("worker_program"), nb::arg("worker_arguments"));
}

}  // namespace

void BindTask(nb::module_& m) {
  nb::class_<HostBuffer>(m, "HostBuffer")
      .def_prop_ro(
          "address",
          [](const HostBuffer& self) { return reinterpret_cast<std::uintptr_t>(self.data()); })
      .def_prop_ro("size", &HostBuffer::size)
      .def_prop_ro("read_only", &HostBuffer::read_only);
  m.def(
      "hold_buffer",
      [](nb::handle object, bool writable) {
        return std::make_shared<HostBuffer>(object, writable);
      },
      nb::arg("object"), nb::arg("writable"));
  nb::class_<task::Image>(m, "Image")
      .def_prop_ro("data",
                   [](const task::Image& self) {
                     return nb::bytes(self.bytes().data(), self.bytes().size());
                   })
      .def_prop_ro("kernels",
                   [](const task::Image& self) {
                     std::vector<std::string> names;
                     for (const task::Image::Kernel& kernel : self.kernels()) {
                       names.emplace_back(kernel.name);
                     }
                     return names;
                   })
      .def_prop_ro("orchestrated",
                   [](const task::Image& self) { return !self.orchestration().empty(); });
  m.def("build_image", &BuildImage, nb::arg("orchestration").none(), nb::arg("parts"),
        nb::arg("kernels"));
  m.def("parse_image", &ParseImage, nb::arg("data"));
  nb::class_<TaskRef>(m, "Task")
      .def_prop_ro("id", [](const TaskRef& self) { return self.handle().id(); })
      .def_prop_ro("done", [](const TaskRef& self) { return self.handle().done(); })
      .def_prop_ro("worker", [](const TaskRef& self) { return self.handle().worker(); })
      .def_prop_ro("error", &ErrorOf)
      .def("wait", &WaitForTask, nb::arg("timeout").none());
  BindOrchestrator(m);
}

}  // namespace keel::python
