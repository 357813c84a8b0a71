// What `keel replay` found, for people and for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "keel/trace/replay.h"
#include "keel/trace/snapshot.h"
#include "keel/trace/summary.h"
#include "terminal.h"

namespace keel::cli {

// One configuration's.
struct ReplayRow {
  std::string conf;  // as it was given; empty: the defaults
  trace::ReplayResult result;
};

// A list with an object for each. The keys are a promise (docs/reference.md).
nlohmann::ordered_json ReplayJson(const std::vector<ReplayRow>& rows);

// What the recording is: a few lines.
std::string DescribeRecording(const std::string& path, const trace::DeviceSummary& summary,
                              const trace::Snapshot& snapshot, const Style& style);
// The tables. `configuration` is the recorded allocator's, empty if unknown.
std::string ReplayTables(const std::vector<ReplayRow>& rows, const trace::DeviceSummary& recorded,
                         const std::string& configuration, const Style& style);

}  // namespace keel::cli
