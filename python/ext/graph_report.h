// What steps and executables did, as Python has it.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "keel/graph/executable.h"
#include "keel/graph/program.h"
#include "keel/graph/replay_report.h"

namespace keel::python {

struct ReportRef {
  graph::ReplayReport report;
  std::shared_ptr<const graph::Program> program;
};

nanobind::dict CountsOf(const graph::ExecutableStats& stats);

void BindReport(nanobind::module_& m);

}  // namespace keel::python
