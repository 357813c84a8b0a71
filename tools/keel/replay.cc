// keel replay: a recorded history, run through the allocator in one configuration or several.

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "choice.h"
#include "command.h"
#include "format.h"
#include "keel/trace/snapshot_file.h"
#include "keel/trace/summary.h"
#include "progress.h"
#include "replay_report.h"
#include "replay_runs.h"
#include "terminal.h"

namespace keel::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string file;
  ReplayChoice replay;
  Choice choice;
  bool work = false;
  bool json = false;
};

// The device that was chosen, or else a simulated one made for the purpose.
Result<std::shared_ptr<hal::Device>> OpenDevice(const Options& options) {
  if (!options.choice.made()) return CreateReplayDevice(options.replay);
  if (options.replay.memory.empty()) return OpenChosen(options.choice);
  return InvalidArgument(
      "--memory is for the simulated device that is made if none is chosen; a device that is "
      "chosen has its own: leave out one of them");
}

ExitCode Run(const Options& options) {
  if (options.work && !options.choice.made()) {
    return ReportError("replay",
                       InvalidArgument("--work is for a device that does the work: choose "
                                       "it with --driver or --device"));
  }
  auto configurations = ParseConfigurations(options.replay.confs);
  if (!configurations.ok()) return ReportError("replay", configurations.status());
  const auto lag = ParseDuration(options.replay.lag);
  if (!lag.ok()) return ReportError("replay", lag.status());
  PrintWarnings("replay", *configurations);

  // Only where somebody watches: the result has it all.
  const bool watched = !options.json && IsTerminal(stdout);
  Progress progress(watched ? stdout : nullptr, configurations->size() + 1,
                    TitleWidth(*configurations));
  const auto began = std::chrono::steady_clock::now();
  progress.Begin("Reading");
  const auto snapshot = trace::ReadSnapshotFile(options.file);
  if (!snapshot.ok()) return ReportError("replay", snapshot.status());
  progress.End("done in " + FormatDuration(std::chrono::steady_clock::now() - began));
  const auto recorded = ChooseRecorded(options.file, options.replay, trace::Summarize(*snapshot));
  if (!recorded.ok()) return ReportError("replay", recorded.status());
  auto device = OpenDevice(options);
  if (!device.ok()) return ReportError("replay", device.status());
  const auto rows = RunReplays(*snapshot, *recorded, *device, *configurations,
                               {.lag = *lag, .real_work = options.work}, progress);
  if (!rows.ok()) return ReportError("replay", rows.status());

  if (options.json) {
    fmt::print("{}\n", ReplayJson(*rows).dump(2, ' ', false, Json::error_handler_t::replace));
    return kSuccess;
  }
  const Style style(stdout);
  const hal::DeviceInfo& info = (*device)->info();
  fmt::print("{}{}", watched ? "\n" : "",
             DescribeRecording(options.file, *recorded, *snapshot, style));
  const std::string work =
      options.work ? "blocks filled at both ends of their lives, at the recording's pace"
                   : fmt::format("work done {} after it was queued", FormatDuration(*lag));
  fmt::print("Replayed on {} with {}, {}; driver calls {}\n\n", info.name, ToString(info.memory),
             work,
             info.simulated ? "cost what a table of measured costs says" : "made and measured");
  fmt::print("{}",
             ReplayTables(*rows, *recorded, std::string(trace::Configuration(*snapshot)), style));
  return kSuccess;
}

}  // namespace

Command AddReplay(CLI::App& parent) {
  auto options = std::make_shared<Options>();
  CLI::App* app = parent.add_subcommand(
      "replay", "Run a recorded history through the allocator, in one configuration or several");
  AddHistoryFile(*app, options->file);
  AddConfOption(*app, options->replay, "default: the defaults");
  AddDriverOption(*app, options->choice.driver,
                  "Replay on a device of this driver, with real calls (default: on a\n"
                  "simulated device that is made for it)");
  AddDeviceOption(*app, options->choice.device)
      ->description("Replay on this device: its number, or driver and number, such as sim:0");
  AddReplayOptions(*app, options->replay);
  app->add_flag("--work", options->work,
                "Fill every block on its stream when it is allocated and before it is\n"
                "freed, at the recording's pace, instead of assuming a lag; with --driver\n"
                "or --device")
      ->excludes("--lag");
  app->add_flag("--json", options->json, "Print one JSON list instead of text");
  app->footer(
      "One row per configuration. RESERVED is what the allocator took from the device at most,\n"
      "REQUESTED what the program had asked for; '% OF JOB' is the time in driver calls beside "
      "the\n"
      "recorded program's own. docs/replay.md is a guide.");
  return {app, [options] { return Run(*options); }};
}

}  // namespace keel::cli
