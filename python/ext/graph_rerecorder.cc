#include "graph_rerecorder.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "callback.h"
#include "errors.h"
#include "graph.h"
#include "graph_buffers.h"
#include "keel/graph/rerecorder.h"

namespace keel::python {
namespace {

// One thread's at a time: a call that leaves the interpreter to others marks it.
class OwnedRerecorder {
 public:
  OwnedRerecorder(std::shared_ptr<const graph::Program> program,
                  std::unique_ptr<graph::Rerecorder> rerecorder)
      : program_(std::move(program)),
        written_(WrittenIn(*program_)),
        rerecorder_(std::move(rerecorder)) {}
  ~OwnedRerecorder() {
    // What it kept for functions of Python's goes with it.
    const LeaveInterpreter leave;
    rerecorder_.reset();
  }
  OwnedRerecorder(const OwnedRerecorder&) = delete;
  OwnedRerecorder& operator=(const OwnedRerecorder&) = delete;

  // With the interpreter's lock.
  void Run(const std::shared_ptr<OwnedStream>& stream, const std::vector<Bound>& buffers) {
    if (busy_) Raise(FailedPrecondition("another call works with this re-recorder"));
    std::vector<DeviceAddress> addresses = AddressesOf(buffers);
    busy_ = true;
    const struct Ending {
      bool& busy;
      ~Ending() { busy = false; }
    } ending{busy_};
    if (std::find(streams_.begin(), streams_.end(), stream) == streams_.end()) {
      streams_.push_back(stream);
    }
    LaunchScope scope;
    const Status launched = WithoutInterpreter([&]() -> Status {
      for (const Bound& each : buffers) {
        if (each.storage != nullptr) KEEL_TRY(each.storage->ShareWith(stream->get()));
      }
      KEEL_TRY(rerecorder_->Run(stream->get(), addresses));
      for (const Bound& each : buffers) {
        if (each.storage == nullptr || !written_[each.binding]) continue;
        KEEL_TRY(each.storage->TakeBack(stream->get()));
      }
      return OkStatus();
    });
    scope.Check(launched);
  }
  const graph::RerecorderStats& stats() const { return rerecorder_->stats(); }

 private:
  // In the order of the bindings; what is too small is refused, what is not there has none.
  std::vector<DeviceAddress> AddressesOf(const std::vector<Bound>& buffers) const {
    std::vector<DeviceAddress> addresses(program_->bindings().size());
    for (const Bound& each : buffers) {
      const graph::BindingSpec& spec = program_->bindings()[each.binding];
      if (each.buffer.size < spec.size) {
        Raise(InvalidArgument("binding '" + spec.name + "' needs " + ToString(spec.size) +
                              "; the buffer at " + ToString(each.buffer.address) + " has " +
                              ToString(each.buffer.size)));
      }
      addresses[each.binding] = each.buffer.address;
    }
    return addresses;
  }

  bool busy_ = false;  // guarded by the interpreter's lock
  const std::shared_ptr<const graph::Program> program_;
  const std::vector<bool> written_;
  std::vector<std::shared_ptr<OwnedStream>> streams_;  // that have steps of it
  std::unique_ptr<graph::Rerecorder> rerecorder_;
};

struct RerecorderRef {
  std::shared_ptr<OwnedRerecorder> owner;  // null: closed
  StepReader reader;

  std::shared_ptr<OwnedRerecorder> Get() const {
    if (owner == nullptr) throw nb::value_error("this re-recorder was closed");
    return owner;
  }
};

RerecorderRef Create(const ProgramRef& program, bool update, nb::object array_type,
                     nb::object physical_type, nb::object span) {
  const auto how = update ? graph::Rerecording::kUpdate : graph::Rerecording::kInstantiate;
  auto made = WithoutInterpreter(
      [&] { return graph::Rerecorder::Create(program.program, program.device.memory, how); });
  return {MakeSharedHere<OwnedRerecorder>(program.program, Take(std::move(made))),
          StepReader(program.device, program.program,
                     {std::move(array_type), std::move(physical_type), std::move(span)})};
}

}  // namespace

void BindRerecorder(nb::module_& m) {
  nb::class_<RerecorderRef>(m, "Rerecorder")
      .def_prop_ro("closed", [](const RerecorderRef& self) { return self.owner == nullptr; })
      .def(
          "run",
          [](RerecorderRef& self, nb::handle stream, const nb::dict& buffers) {
            const std::shared_ptr<OwnedRerecorder> owner = self.Get();
            const std::shared_ptr<OwnedStream> on = self.reader.StreamOf(stream);
            owner->Run(on, self.reader.ReadAll(buffers));
          },
          nb::arg("stream"), nb::arg("buffers"))
      .def("stats",
           [](const RerecorderRef& self) {
             const graph::RerecorderStats& stats = self.Get()->stats();
             nb::dict dict;
             dict["steps"] = stats.steps;
             dict["captured"] = stats.captured;
             dict["instantiated"] = stats.instantiated;
             dict["updated"] = stats.updated;
             return dict;
           })
      .def("close", [](RerecorderRef& self) {
        // Out of the object first: the end leaves the interpreter to others.
        const std::shared_ptr<OwnedRerecorder> gone = std::exchange(self.owner, nullptr);
      });
  m.def("create_rerecorder", &Create, nb::arg("program"), nb::arg("update"), nb::arg("array_type"),
        nb::arg("physical_type"), nb::arg("span"));
}

}  // namespace keel::python
