// keel replay: a recorded history, run through the allocator in one configuration or several.

#include "keel/trace/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "choice.h"
#include "command.h"
#include "format.h"
#include "keel/base/bytes.h"
#include "keel/drivers/sim.h"
#include "keel/memory/allocator_config.h"
#include "keel/trace/snapshot_file.h"
#include "keel/trace/summary.h"
#include "progress.h"
#include "replay_report.h"
#include "terminal.h"

namespace keel::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kMemory = "80GiB";

struct Options {
  std::string file;
  std::vector<std::string> confs;
  Choice choice;
  std::string memory;  // empty: kMemory, if the device is made for this
  std::string lag = "0";
  std::string recorded_device;  // empty: the one with most events
  bool json = false;
};

struct Configuration {
  std::string text;
  memory::AllocatorConfig config;
};

Result<std::vector<Configuration>> ParseConfigurations(const std::vector<std::string>& texts) {
  std::vector<Configuration> configurations;
  for (const std::string& text : texts) {
    KEEL_ASSIGN(memory::AllocatorConfig config, memory::AllocatorConfig::Parse(text, "--conf"));
    configurations.push_back({text, std::move(config)});
  }
  if (configurations.empty()) configurations.emplace_back();
  return configurations;
}

// The device that was chosen, or else a simulated one made for the purpose.
Result<std::shared_ptr<hal::Device>> OpenDevice(const Options& options) {
  if (options.choice.made()) {
    if (options.memory.empty()) return OpenChosen(options.choice);
    return InvalidArgument(
        "--memory is for the simulated device that is made if none is chosen; a device that is "
        "chosen has its own: leave out one of them");
  }
  const std::string text(options.memory.empty() ? kMemory : options.memory);
  KEEL_ASSIGN(const Bytes memory, ParseBytes(text));
  auto driver = sim::CreateSimDriver({.memory = memory});
  if (!driver.ok()) {
    return std::move(driver).status().Annotate(fmt::format("--memory {}", text));
  }
  return (*driver)->Open(0);
}

// Of the device of the recording that is replayed.
Result<trace::DeviceSummary> ChooseRecorded(const Options& options,
                                            const std::vector<trace::DeviceSummary>& summaries) {
  std::string numbers;
  const trace::DeviceSummary* chosen = nullptr;
  for (const trace::DeviceSummary& summary : summaries) {
    if (summary.events == 0) continue;
    const std::string number = fmt::format("{}", summary.device);
    numbers += (numbers.empty() ? "" : ", ") + number;
    const bool better = options.recorded_device.empty()
                            ? chosen == nullptr || summary.events > chosen->events
                            : options.recorded_device == number;
    if (better) chosen = &summary;
  }
  if (numbers.empty()) {
    return InvalidArgument(fmt::format(
        "{} has no events to replay, only what was held at one moment; record a history first",
        options.file));
  }
  if (chosen == nullptr) {
    return NotFound(fmt::format("{} has no events of device {}; choose --recorded-device from: {}",
                                options.file, options.recorded_device, numbers));
  }
  return *chosen;
}

void PrintWarnings(const std::vector<Configuration>& configurations) {
  for (const Configuration& configuration : configurations) {
    for (const std::string& warning : configuration.config.warnings) {
      PrintError("replay", fmt::format("warning: --conf {}", warning));
    }
  }
}

ExitCode Run(const Options& options) {
  auto configurations = ParseConfigurations(options.confs);
  if (!configurations.ok()) return ReportError("replay", configurations.status());
  const auto lag = ParseDuration(options.lag);
  if (!lag.ok()) return ReportError("replay", lag.status());
  PrintWarnings(*configurations);

  // Only where somebody watches: the result has it all.
  const bool watched = !options.json && IsTerminal(stdout);
  std::size_t width = 7;  // "Reading"
  for (const Configuration& each : *configurations) width = std::max(width, each.text.size());
  Progress progress(watched ? stdout : nullptr, configurations->size() + 1, width);
  const auto began = std::chrono::steady_clock::now();
  progress.Begin("Reading");
  const auto snapshot = trace::ReadSnapshotFile(options.file);
  if (!snapshot.ok()) return ReportError("replay", snapshot.status());
  progress.End("done in " + FormatDuration(std::chrono::steady_clock::now() - began));
  const auto recorded = ChooseRecorded(options, trace::Summarize(*snapshot));
  if (!recorded.ok()) return ReportError("replay", recorded.status());
  auto device = OpenDevice(options);
  if (!device.ok()) return ReportError("replay", device.status());

  std::vector<ReplayRow> rows;
  for (const Configuration& each : *configurations) {
    const auto start = std::chrono::steady_clock::now();
    progress.Begin(each.text.empty() ? "(defaults)" : each.text);
    auto result =
        trace::Replay(*snapshot, recorded->device, *device,
                      {.config = each.config, .lag = *lag, .progress = [&](std::uint64_t done) {
                         progress.Update(done, recorded->events);
                       }});
    if (!result.ok()) {
      return ReportError(
          "replay", std::move(result).status().Annotate(fmt::format("--conf '{}'", each.text)));
    }
    progress.End("done in " + FormatDuration(std::chrono::steady_clock::now() - start));
    rows.push_back({each.text, *std::move(result)});
  }

  if (options.json) {
    fmt::print("{}\n", ReplayJson(rows).dump(2, ' ', false, Json::error_handler_t::replace));
    return kSuccess;
  }
  const Style style(stdout);
  const hal::DeviceInfo& info = (*device)->info();
  fmt::print("{}{}", watched ? "\n" : "",
             DescribeRecording(options.file, *recorded, *snapshot, style));
  fmt::print("Replayed on {} with {}, work done {} after it was queued; driver calls {}\n\n",
             info.name, ToString(info.memory), FormatDuration(*lag),
             info.simulated ? "cost what a table of measured costs says" : "made and measured");
  fmt::print("{}",
             ReplayTables(rows, *recorded, std::string(trace::Configuration(*snapshot)), style));
  return kSuccess;
}

std::string CheckNumber(const std::string& text) {
  int value = -1;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && rest == end && value >= 0) return {};
  return fmt::format("must be a whole number from 0, not '{}'", text);
}

// For the parser, which wants a message or nothing.
template <class Parse>
auto CheckedBy(Parse parse) {
  return [parse](const std::string& text) {
    const auto parsed = parse(text);
    return parsed.ok() ? std::string() : std::string(parsed.status().message());
  };
}

}  // namespace

Command AddReplay(CLI::App& parent) {
  auto options = std::make_shared<Options>();
  CLI::App* app = parent.add_subcommand(
      "replay", "Run a recorded history through the allocator, in one configuration or several");
  app->add_option("FILE", options->file,
                  "A memory snapshot of PyTorch with its history (pickle or JSON), or\n"
                  "a log of RMM (CSV); plain, or packed with gzip or xz")
      ->type_name("")
      ->required();
  app->add_option("--conf", options->confs,
                  "A configuration, written as KEEL_ALLOC_CONF (which is not read here);\n"
                  "given several times, they are compared (default: the defaults)")
      ->type_name("CONF")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
  AddDriverOption(*app, options->choice.driver,
                  "Replay on a device of this driver, with real calls (default: on a\n"
                  "simulated device that is made for it)");
  AddDeviceOption(*app, options->choice.device)
      ->description("Replay on this device: its number, or driver and number, such as sim:0");
  app->add_option("--memory", options->memory,
                  fmt::format("Of the simulated device, such as 24GiB (default {})", kMemory))
      ->type_name("SIZE")
      ->check(CLI::Validator(CheckedBy(ParseBytes), "", "size"));
  app->add_option("--lag", options->lag,
                  "How long after a free its work is done, such as 5ms or 500us (default 0)")
      ->type_name("TIME")
      ->check(CLI::Validator(CheckedBy(ParseDuration), "", "time"));
  app->add_option("--recorded-device", options->recorded_device,
                  "Which device of the recording (default: the one with most events)")
      ->type_name("N")
      ->check(CLI::Validator(CheckNumber, "", "number"));
  app->add_flag("--json", options->json, "Print one JSON list instead of text");
  app->footer(
      "One row per configuration. RESERVED is what the allocator took from the device at most,\n"
      "REQUESTED what the program had asked for; '% OF JOB' is the time in driver calls beside "
      "the\n"
      "recorded program's own. docs/replay.md is a guide.");
  return {app, [options] { return Run(*options); }};
}

}  // namespace keel::cli
