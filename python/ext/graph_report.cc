#include "graph_report.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace keel::python {

namespace nb = nanobind;

namespace {

using ActionTuple =
    std::tuple<std::string, std::string, std::optional<std::string>, std::uint32_t, std::int64_t>;

std::vector<ActionTuple> ActionsOf(const ReportRef& self) {
  std::vector<ActionTuple> actions;
  for (const graph::Action& each : self.report.actions()) {
    std::optional<std::string> binding;
    if (each.binding != graph::Action::kNoBinding) {
      binding = self.program->bindings()[each.binding].name;
    }
    actions.emplace_back(graph::ActionName(each.kind), graph::ReasonText(each.reason),
                         std::move(binding), each.count, each.host_ns);
  }
  return actions;
}

nb::dict CountsOf(const graph::ReplayReport& report) {
  nb::dict dict;
  dict["step"] = report.step;
  dict["slot"] = report.slot;
  dict["graphs"] = report.graphs;
  dict["copied_in"] = report.copied_in.count();
  dict["copied_out"] = report.copied_out.count();
  dict["rebound"] = report.rebound;
  dict["patched"] = report.patched;
  dict["remapped"] = report.remapped;
  dict["recorded"] = report.recorded;
  dict["traced"] = report.traced;
  dict["traces_reused"] = report.traces_reused;
  dict["chosen"] = report.chosen;
  dict["eager"] = report.eager;
  dict["waited_ns"] = report.waited_ns;
  dict["actions_left_out"] = report.actions_left_out;
  return dict;
}

}  // namespace

nb::dict CountsOf(const graph::ExecutableStats& stats) {
  nb::dict dict;
  dict["steps"] = stats.steps;
  dict["graphs_launched"] = stats.graphs_launched;
  dict["eager_steps"] = stats.eager_steps;
  dict["rows_rebound"] = stats.rows_rebound;
  dict["commands_patched"] = stats.commands_patched;
  dict["bindings_remapped"] = stats.bindings_remapped;
  dict["graphs_recorded"] = stats.graphs_recorded;
  dict["commands_traced"] = stats.commands_traced;
  dict["traces_reused"] = stats.traces_reused;
  dict["waits"] = stats.waits;
  dict["waited_ns"] = stats.waited_ns;
  dict["policy_changes"] = stats.policy_changes;
  dict["evictions"] = stats.evictions;
  dict["failed_steps"] = stats.failed_steps;
  dict["copied_in"] = stats.copied_in.count();
  dict["copied_out"] = stats.copied_out.count();
  dict["slot_bytes"] = stats.slot_bytes.count();
  for (std::size_t i = 0; i < graph::kActionKinds; ++i) {
    std::string key =
        "host_ns_" + std::string(graph::ActionName(static_cast<graph::ActionKind>(i)));
    std::ranges::replace(key, ' ', '_');
    dict[key.c_str()] = stats.host_ns[i];
  }
  return dict;
}

void BindReport(nb::module_& m) {
  nb::class_<ReportRef>(m, "StepReport")
      .def("counts", [](const ReportRef& self) { return CountsOf(self.report); })
      .def("actions", &ActionsOf)
      .def("text",
           [](const ReportRef& self) { return self.report.ToString(self.program->bindings()); });
}

}  // namespace keel::python
