// A report as trace events, in the JSON that Perfetto and chrome://tracing open: counters for what
// was requested, allocated and reserved, by the recording and by every replay, and a slice for
// every block that is kept.
#pragma once

#include <string>

#include "report_model.h"

namespace keel::cli {

std::string ReportTrace(const ReportModel& model);

}  // namespace keel::cli
