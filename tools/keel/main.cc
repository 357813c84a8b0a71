// keel: the command line. This file knows the subcommands and turns what the parser refuses into
// one line that says what to do.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "command.h"
#include "keel/base/version.h"
#include "terminal.h"

namespace keel::cli {
namespace {

constexpr const char* kFooter =
    "Environment:\n"
    "  KEEL_DRIVER      the driver to use by default, such as sim\n"
    "  KEEL_SIM         the simulated devices, such as devices:2,memory:8GiB\n"
    "  KEEL_ALLOC_CONF  the allocators, such as limit:20GiB,expandable_segments:false\n"
    "  KEEL_LOG         how much is logged: off, error, warn, info or debug\n"
    "  NO_COLOR         set to anything: no colours\n"
    "\n"
    "Exit code: 0 done, 1 failed, 2 wrong arguments or environment.\n"
    "'keel SUBCOMMAND --help' shows the options of a subcommand.";

std::string Names(const std::vector<Command>& commands) {
  std::string names;
  for (const Command& command : commands) {
    names += (names.empty() ? "" : ", ") + command.app->get_name();
  }
  return names;
}

// The subcommand that the arguments got to, or null.
const CLI::App* Entered(const std::vector<Command>& commands) {
  for (const Command& command : commands) {
    if (command.app->parsed()) return command.app;
  }
  return nullptr;
}

ExitCode ReportParseError(const CLI::App& app, const std::vector<Command>& commands,
                          const CLI::ParseError& error) {
  // What stands before the subcommand belongs to no subcommand.
  const CLI::App* entered = app.remaining(false).empty() ? Entered(commands) : nullptr;
  const std::string where = entered != nullptr ? entered->get_name() : "";
  const std::string help =
      where.empty() ? "see 'keel --help'" : fmt::format("see 'keel {} --help'", where);
  const std::string text = error.what();
  const std::vector<std::string> extras = app.remaining(true);

  std::string problem = text + "; " + help;
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr && text.ends_with("missing")) {
    problem = fmt::format("{} needs a value; {}", text.substr(0, text.find(':')), help);
  } else if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !extras.empty()) {
    const std::string& extra = extras.front();
    if (extra.starts_with('-')) {
      problem = fmt::format("unknown option '{}'; {}", extra, help);
    } else if (entered == nullptr) {
      problem = fmt::format("unknown subcommand '{}'; choose from: {}", extra, Names(commands));
    } else {
      problem = fmt::format("unexpected argument '{}'; {}", extra, help);
    }
  }
  PrintError(where, problem);
  return kUsage;
}

// A full disk or a closed pipe must not look like success.
ExitCode Finish(ExitCode code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  PrintError("", "could not write to standard output");
  return code == kSuccess ? kFailure : code;
}

ExitCode Main(int argc, char** argv) {
  CLI::App app("Keel, a memory runtime for accelerators.", "keel");
  app.set_version_flag("--version", std::string("keel ") + KEEL_VERSION_STRING,
                       "Print the version and exit");
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.footer(kFooter);
  app.get_formatter()->column_width(22);
  const std::vector<Command> commands = {AddInfo(app),   AddDemo(app),  AddReplay(app),
                                         AddReport(app), AddBench(app), AddRun(app),
                                         AddWorker(app)};
  app.require_subcommand(0, 1);  // none is answered below, with the help

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help and --version
    app.exit(asked);
    return Finish(kSuccess);
  } catch (const CLI::ParseError& error) {
    return ReportParseError(app, commands, error);
  }
  for (const Command& command : commands) {
    if (command.app->parsed()) return Finish(command.run());
  }
  fmt::print(stderr, "{}", app.help());
  return kUsage;
}

}  // namespace
}  // namespace keel::cli

int main(int argc, char** argv) {
  try {
    return keel::cli::Main(argc, argv);
  } catch (const std::exception& error) {  // out of memory, or a bug: say so, and no core dump
    keel::cli::PrintError("", error.what());
    return keel::cli::kFailure;
  }
}
