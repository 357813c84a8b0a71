// What a subcommand of `keel` is, and what its exit code means.
//
// A subcommand is one file with one function Add...(), which describes its options to the parser
// and returns what to run. main.cc lists them.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string_view>

#include "keel/base/status.h"

namespace keel::cli {

enum ExitCode : int {
  kSuccess = 0,
  kFailure = 1,  // the request was right; carrying it out went wrong
  kUsage = 2,    // an argument or an environment variable has to be changed
};

struct Command {
  CLI::App* app = nullptr;        // owned by the parent
  std::function<ExitCode()> run;  // after the arguments were parsed; reports its own errors
};

// Reports why something could not be done. What an argument or an environment variable got wrong
// (kInvalidArgument, kNotFound) is kUsage, anything else kFailure.
ExitCode ReportError(std::string_view command, const Status& status);

Command AddInfo(CLI::App& parent);
Command AddDemo(CLI::App& parent);
Command AddReplay(CLI::App& parent);
Command AddReport(CLI::App& parent);
Command AddBench(CLI::App& parent);
Command AddRun(CLI::App& parent);
Command AddWorker(CLI::App& parent);

}  // namespace keel::cli
