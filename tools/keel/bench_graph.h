// keel bench graph: what a step of a recorded program costs whose buffers move, by what is done
// about it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph_ways.h"
#include "keel/base/bytes.h"
#include "keel/base/result.h"
#include "measure.h"

namespace keel::cli {

std::string_view MovingName(Moving moving);  // "half"
std::string_view WayName(Way way);           // "re-record"
// All there are, in the order in which they are measured.
std::vector<std::string> MovingNames();
std::vector<std::string> WayNames();

struct GraphBenchOptions {
  // What to measure, by name; empty: all.
  std::vector<std::uint32_t> commands;
  std::vector<std::string> moving;
  std::vector<std::string> ways;
  bool quick = false;  // small buffers and short programs only, less time for each
};
inline constexpr std::uint32_t kGraphCommands[] = {10, 100, 1000};

struct GraphCost {
  std::uint32_t commands = 0;
  Moving moving = Moving::kNone;
  Bytes bytes;  // of each buffer
  bool traced = false;
  Way way = Way::kBare;
  double host_us = 0;    // of the calling thread, for one step
  double device_us = 0;  // of the device, for one step
  std::vector<std::pair<std::string_view, double>> driver_calls;  // of one step, by kind
  double bytes_copied = 0;                                        // by one step
};

struct GraphCase {
  std::string title;
  std::function<Result<GraphCost>()> run;
};

// kUnimplemented: the device has no graphs, or no kernels. What it lacks for single ways is left
// out.
Result<std::vector<GraphCase>> GraphCases(const BenchSetting& setting,
                                          const GraphBenchOptions& options);

}  // namespace keel::cli
