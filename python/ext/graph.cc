// Executables, leases and steps.
#include "graph.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "callback.h"
#include "errors.h"
#include "graph_buffers.h"
#include "graph_held.h"
#include "graph_physical.h"
#include "graph_report.h"
#include "graph_rerecorder.h"
#include "keel/graph/executable.h"
#include "keel/graph/memory_budget.h"
#include "keel/graph/scratch_arena.h"
#include "storage.h"

namespace keel::python {
namespace {

using graph::BindingId;

// --- Executables ---------------------------------------------------------------------------------

// An executable, and the arrays that are bound to it until others are.
class OwnedExecutable {
 public:
  OwnedExecutable(std::shared_ptr<const graph::Program> its_program,
                  std::unique_ptr<graph::Executable> executable)
      : program(std::move(its_program)),
        written_(WrittenIn(*program)),
        executable_(std::move(executable)) {
    resident_.resize(program->bindings().size());
  }
  ~OwnedExecutable() {
    // It waits for what runs, which may be waiting for the interpreter.
    const LeaveInterpreter leave;
    executable_.reset();
    resident_.clear();
  }
  OwnedExecutable(const OwnedExecutable&) = delete;
  OwnedExecutable& operator=(const OwnedExecutable&) = delete;

  graph::Executable* operator->() const { return executable_.get(); }
  const std::shared_ptr<const graph::Program> program;

  Status Bind(Bound bound) {
    std::shared_ptr<Storage> before;  // goes without the lock
    KEEL_TRY(Here());
    const std::lock_guard lock(mutex_);
    KEEL_TRY(executable_->Bind(BindingId{bound.binding}, std::move(bound.buffer)));
    before = std::exchange(resident_[bound.binding], std::move(bound.storage));
    const bool takes = written_[bound.binding] && resident_[bound.binding] != nullptr;
    std::erase(written_resident_, bound.binding);
    if (takes) written_resident_.push_back(bound.binding);
    known_.clear();
    return OkStatus();
  }

  // Arrays that belong to other streams than a step's. Before it: it comes after what is queued for
  // them, and they are kept for it. For those that stay bound that is done once for each stream.
  Status Share(const std::vector<Bound>& buffers, hal::StreamHandle stream) {
    KEEL_TRY(Here());
    for (const Bound& each : buffers) {
      if (each.storage != nullptr) KEEL_TRY(each.storage->ShareWith(stream));
    }
    const std::lock_guard lock(mutex_);
    if (std::find(known_.begin(), known_.end(), stream) != known_.end()) return OkStatus();
    for (const std::shared_ptr<Storage>& storage : resident_) {
      if (storage != nullptr) KEEL_TRY(storage->ShareWith(stream));
    }
    if (known_.size() == kMostKnown) known_.erase(known_.begin());
    known_.push_back(stream);
    return OkStatus();
  }
  // After it: the streams of those that it writes wait for it.
  Status TakeBack(const std::vector<Bound>& buffers, hal::StreamHandle stream) {
    std::vector<hal::StreamHandle> waiting;
    const auto take = [&](std::size_t binding, const std::shared_ptr<Storage>& storage) -> Status {
      if (storage == nullptr || !written_[binding]) return OkStatus();
      const hal::StreamHandle its = storage->stream()->get();
      if (its == stream || std::find(waiting.begin(), waiting.end(), its) != waiting.end()) {
        return OkStatus();
      }
      waiting.push_back(its);
      return storage->TakeBack(stream);
    };
    for (const Bound& each : buffers) KEEL_TRY(take(each.binding, each.storage));
    const std::lock_guard lock(mutex_);
    for (const std::uint32_t binding : written_resident_) {
      KEEL_TRY(take(binding, resident_[binding]));
    }
    return OkStatus();
  }

 private:
  // OK, but in a forked child, where the lock may be held for ever.
  Status Here() const {
    return ForkedFromUser() ? executable_->memory()->device()->Health() : OkStatus();
  }

  static constexpr std::size_t kMostKnown = 16;
  const std::vector<bool> written_;
  std::unique_ptr<graph::Executable> executable_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Storage>> resident_;
  std::vector<std::uint32_t> written_resident_;
  std::vector<hal::StreamHandle> known_;
};

// --- Leases --------------------------------------------------------------------------------------

// A lease is one thread's at a time. Calls that leave the interpreter to others mark it.
class OwnedLease {
 public:
  OwnedLease(std::shared_ptr<OwnedExecutable> its_executable, std::shared_ptr<OwnedStream> stream,
             graph::Lease lease)
      : executable(std::move(its_executable)),
        stream_(std::move(stream)),
        lease_(std::move(lease)) {}

  const std::shared_ptr<OwnedExecutable> executable;
  const std::shared_ptr<OwnedStream>& stream() const { return stream_; }

  // With the interpreter's lock. StateError while another thread's call is under way.
  template <class Work>
  auto Do(Work work) {
    if (busy_) Raise(FailedPrecondition("another call works with this lease"));
    busy_ = true;
    const struct Ending {
      bool& busy;
      ~Ending() { busy = false; }
    } ending{busy_};
    return work(lease_);
  }
  std::vector<Bound>& buffers() { return buffers_; }

 private:
  bool busy_ = false;  // guarded by the interpreter's lock
  const std::shared_ptr<OwnedStream> stream_;
  std::vector<Bound> buffers_;  // arrays that were bound, until the launch
  graph::Lease lease_;
};

struct LeaseRef {
  std::shared_ptr<OwnedLease> owner;  // null: closed

  std::shared_ptr<OwnedLease> Get() const {
    if (owner == nullptr) throw nb::value_error("this lease was closed");
    return owner;
  }
};

struct StepRef {
  ReportRef report;
  std::vector<HeldRef> held;
};

// What Python holds. Its fields do not change.
struct ExecutableRef {
  std::shared_ptr<OwnedExecutable> owner;
  StepReader reader;
};

ExecutableRef CreateExecutable(const ProgramRef& program, int slots, bool eager, double patience,
                               int kept_traces, int warm_up,
                               const std::shared_ptr<graph::ScratchArena>& scratch,
                               const std::shared_ptr<graph::MemoryBudget>& budget,
                               bool alias_outputs, nb::object array_type, nb::object physical_type,
                               nb::object span) {
  graph::ExecutableOptions options;
  options.slots = slots;
  options.mode = eager ? graph::Mode::kEager : graph::Mode::kGraph;
  options.patience = std::chrono::milliseconds(static_cast<std::int64_t>(patience * 1000));
  options.kept_traces = kept_traces;
  options.warm_up = warm_up;
  options.scratch = scratch;
  options.budget = budget;
  options.alias_outputs = alias_outputs;
  auto made = WithoutInterpreter([&] {
    return graph::Executable::Create(program.program, program.device.memory, std::move(options));
  });
  return {MakeSharedHere<OwnedExecutable>(program.program, Take(std::move(made))),
          StepReader(program.device, program.program,
                     {std::move(array_type), std::move(physical_type), std::move(span)})};
}

LeaseRef Acquire(ExecutableRef& self, nb::handle stream, std::optional<double> timeout) {
  const std::shared_ptr<OwnedExecutable> executable = self.owner;
  const std::shared_ptr<OwnedStream> on = self.reader.StreamOf(stream);
  graph::Lease lease;
  WaitInterruptibly(DeadlineOf(timeout), [&](Deadline deadline) -> Status {
    KEEL_ASSIGN(lease, (*executable)->Acquire(on->get(), deadline));
    return OkStatus();
  });
  return {std::make_shared<OwnedLease>(executable, on, std::move(lease))};
}

// A whole step: everything but reading the arguments is done without the interpreter, in one go.
StepRef Step(ExecutableRef& self, nb::handle stream, std::optional<double> timeout,
             const nb::tuple& holds, const nb::dict& buffers) {
  const std::shared_ptr<OwnedExecutable> executable = self.owner;
  const std::shared_ptr<OwnedStream> on = self.reader.StreamOf(stream);
  const std::vector<Bound> bound = self.reader.ReadAll(buffers);
  std::vector<std::uint32_t> kept;
  for (const nb::handle each : holds) kept.push_back(nb::cast<std::uint32_t>(each));
  const Deadline deadline = DeadlineOf(timeout);

  StepRef step;
  step.report.program = executable->program;
  Status launched;
  LaunchScope scope;
  WaitInterruptibly(deadline, [&](Deadline slice) -> Status {
    KEEL_ASSIGN(graph::Lease lease, (*executable)->Acquire(on->get(), slice));
    // From here on nothing is tried again: errors are the step's.
    launched = [&]() -> Status {
      for (const Bound& each : bound) KEEL_TRY(lease.Bind(BindingId{each.binding}, each.buffer));
      KEEL_TRY(executable->Share(bound, on->get()));
      KEEL_TRY(lease.Launch(deadline));
      KEEL_TRY(executable->TakeBack(bound, on->get()));
      step.report.report = lease.report();
      for (const std::uint32_t binding : kept) {
        KEEL_ASSIGN(graph::HeldOutput output, lease.Hold(BindingId{binding}));
        step.held.push_back({MakeSharedHere<Held>(std::move(output), on)});
      }
      return OkStatus();
    }();
    return OkStatus();
  });
  scope.Check(launched);
  return step;
}

void BindAddresses(const LeaseRef& self, const nb::handle addresses) {
  const std::shared_ptr<OwnedLease> owner = self.Get();
  const auto& bindings = owner->executable->program->bindings();
  const nb::object fast =
      nb::steal(PySequence_Fast(addresses.ptr(), "bind_addresses takes a list of addresses"));
  if (!fast.is_valid()) throw nb::python_error();
  const auto count = static_cast<std::size_t>(PySequence_Fast_GET_SIZE(fast.ptr()));
  if (count > bindings.size()) {
    throw nb::value_error(
        (std::to_string(count) + " addresses for " + std::to_string(bindings.size()) + " bindings")
            .c_str());
  }
  owner->Do([&](graph::Lease& lease) {
    PyObject** const items = PySequence_Fast_ITEMS(fast.ptr());
    for (std::size_t i = 0; i < count; ++i) {
      if (items[i] == Py_None) continue;
      Check(lease.Bind(BindingId{static_cast<std::uint32_t>(i)},
                       {.address = DeviceAddress(NumberOf(nb::handle(items[i]), "an address")),
                        .size = bindings[i].size,
                        .memory = nullptr}));
    }
  });
}

void Launch(const LeaseRef& self, std::optional<double> timeout) {
  const std::shared_ptr<OwnedLease> owner = self.Get();
  const Deadline deadline = DeadlineOf(timeout);
  owner->Do([&](graph::Lease& lease) {
    LaunchScope scope;
    const hal::StreamHandle stream = owner->stream()->get();
    const Status launched = WithoutInterpreter([&]() -> Status {
      KEEL_TRY(owner->executable->Share(owner->buffers(), stream));
      KEEL_TRY(lease.Launch(deadline));
      return owner->executable->TakeBack(owner->buffers(), stream);
    });
    scope.Check(launched);
    owner->buffers().clear();
  });
}

HeldRef Hold(const LeaseRef& self, std::uint32_t binding) {
  const std::shared_ptr<OwnedLease> owner = self.Get();
  return owner->Do([&](graph::Lease& lease) {
    return HeldRef{MakeSharedHere<Held>(Take(lease.Hold(BindingId{binding})), owner->stream())};
  });
}

void BindStep(nb::module_& m) {
  nb::class_<StepRef>(m, "Step")
      .def_prop_ro("report", [](const StepRef& self) { return self.report; })
      .def_prop_ro("slot", [](const StepRef& self) { return self.report.report.slot; })
      .def_prop_ro("number", [](const StepRef& self) { return self.report.report.step; })
      .def(
          "held", [](const StepRef& self, std::size_t which) { return self.held.at(which); },
          nb::arg("which"));
}

void BindLease(nb::module_& m) {
  nb::class_<LeaseRef>(m, "Lease")
      .def_prop_ro("closed", [](const LeaseRef& self) { return self.owner == nullptr; })
      .def_prop_ro("slot",
                   [](const LeaseRef& self) {
                     return self.Get()->Do([](graph::Lease& lease) { return lease.slot(); });
                   })
      .def(
          "address",
          [](const LeaseRef& self, std::uint32_t binding) {
            return self.Get()->Do([&](graph::Lease& lease) {
              return Take(lease.address(BindingId{binding})).value();
            });
          },
          nb::arg("binding"))
      .def("bind_addresses", &BindAddresses, nb::arg("addresses"))
      .def("launch", &Launch, nb::arg("timeout").none())
      .def("hold", &Hold, nb::arg("binding"))
      .def("report",
           [](const LeaseRef& self) {
             const std::shared_ptr<OwnedLease> owner = self.Get();
             return owner->Do([&](graph::Lease& lease) {
               return ReportRef{lease.report(), owner->executable->program};
             });
           })
      .def("done",
           [](const LeaseRef& self) {
             return self.Get()->Do([](graph::Lease& lease) {
               if (!lease.done()) return false;
               Check(lease.Wait(Deadline::Now()));  // done, or lost with its device
               return true;
             });
           })
      .def(
          "wait",
          [](const LeaseRef& self, std::optional<double> timeout) {
            self.Get()->Do([&](graph::Lease& lease) {
              WaitInterruptibly(DeadlineOf(timeout),
                                [&](Deadline deadline) { return lease.Wait(deadline); });
            });
          },
          nb::arg("timeout").none())
      .def("close", [](LeaseRef& self) {
        if (self.owner == nullptr) return;
        self.owner->Do([](graph::Lease& lease) { lease = {}; });
        self.owner = nullptr;
      });
}

}  // namespace

void BindGraph(nb::module_& m) {
  BindReport(m);
  BindHeld(m);
  BindStep(m);
  BindLease(m);
  BindPhysical(m);
  BindRerecorder(m);
  nb::class_<graph::ScratchArena>(m, "ScratchArena")
      .def_prop_ro("size", [](const graph::ScratchArena& self) { return self.size().count(); });
  m.def(
      "create_scratch_arena",
      [](const DeviceRef& device, std::uint64_t size) {
        auto made = Take(WithoutInterpreter(
            [&] { return graph::ScratchArena::Create(device.memory, Bytes(size)); }));
        // Its end waits for the last step.
        return std::shared_ptr<graph::ScratchArena>(made.get(), [made](auto*) mutable {
          const LeaveInterpreter leave;
          made.reset();
        });
      },
      nb::arg("device"), nb::arg("size"));
  nb::class_<graph::MemoryBudget>(m, "MemoryBudget")
      .def_prop_ro("limit", [](const graph::MemoryBudget& self) { return self.limit().count(); })
      .def_prop_ro("used", [](const graph::MemoryBudget& self) { return self.used().count(); });
  m.def(
      "create_memory_budget",
      [](std::uint64_t limit) { return std::make_shared<graph::MemoryBudget>(Bytes(limit)); },
      nb::arg("limit"));

  nb::class_<ExecutableRef>(m, "Executable")
      .def(
          "bind",
          [](const ExecutableRef& self, const nb::dict& buffers) {
            const std::shared_ptr<OwnedExecutable> executable = self.owner;
            for (Bound& each : self.reader.ReadAll(buffers)) {
              Check(WithoutInterpreter([&] { return executable->Bind(std::move(each)); }));
            }
          },
          nb::arg("buffers"))
      .def("acquire", &Acquire, nb::arg("stream"), nb::arg("timeout").none())
      .def("step", &Step, nb::arg("stream"), nb::arg("timeout").none(), nb::arg("holds"),
           nb::arg("buffers"))
      .def(
          "bind_step",
          [](const ExecutableRef& self, const LeaseRef& lease, const nb::dict& buffers) {
            const std::shared_ptr<OwnedLease> owner = lease.Get();
            std::vector<Bound> bound = self.reader.ReadAll(buffers);
            owner->Do([&](graph::Lease& its) {
              for (Bound& each : bound) {
                Check(its.Bind(BindingId{each.binding}, each.buffer));
                if (each.storage != nullptr) owner->buffers().push_back(std::move(each));
              }
            });
          },
          nb::arg("lease"), nb::arg("buffers"))
      .def(
          "policy",
          [](const ExecutableRef& self, std::uint32_t binding) {
            if (binding >= self.owner->program->bindings().size()) {
              throw nb::index_error("no such binding");
            }
            return std::string(graph::PolicyName((*self.owner)->policy(BindingId{binding})));
          },
          nb::arg("binding"))
      .def("stats", [](const ExecutableRef& self) { return CountsOf((*self.owner)->stats()); })
      .def(
          "synchronize",
          [](const ExecutableRef& self, std::optional<double> timeout) {
            WaitInterruptibly(DeadlineOf(timeout), [owner = self.owner](Deadline deadline) {
              return (*owner)->Synchronize(deadline);
            });
          },
          nb::arg("timeout").none())
      .def(
          "close",
          [](const ExecutableRef& self, std::optional<double> timeout) {
            WaitInterruptibly(DeadlineOf(timeout), [owner = self.owner](Deadline deadline) {
              return (*owner)->Close(deadline);
            });
          },
          nb::arg("timeout").none());
  m.def("create_executable", &CreateExecutable, nb::arg("program"), nb::arg("slots"),
        nb::arg("eager"), nb::arg("patience"), nb::arg("kept_traces"), nb::arg("warm_up"),
        nb::arg("scratch").none(), nb::arg("budget").none(), nb::arg("alias_outputs"),
        nb::arg("array_type"), nb::arg("physical_type"), nb::arg("span"));
}

}  // namespace keel::python
