// The page: one HTML file with its style, its program and its data, that asks nothing of a network.
//
// The data are JSON in a script element. Whatever a recording has in its names, tags and frames, it
// stays text there: no byte of it can end the element or be taken for markup.
#pragma once

#include <string>

#include "report_model.h"

namespace keel::cli {

// Numbers groups as they come up, so it changes the model's grouping.
std::string ReportPage(ReportModel& model);

}  // namespace keel::cli
