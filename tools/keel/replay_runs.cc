#include "replay_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <string_view>
#include <system_error>
#include <utility>

#include "command.h"
#include "format.h"
#include "keel/base/bytes.h"
#include "keel/drivers/sim.h"
#include "terminal.h"

namespace keel::cli {
namespace {

constexpr std::string_view kMemory = "80GiB";

std::string CheckNumber(const std::string& text) {
  int value = -1;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && rest == end && value >= 0) return {};
  return fmt::format("must be a whole number from 0, not '{}'", text);
}

// For the parser, which wants a message or nothing.
template <class T>
std::string MistakeOf(const Result<T>& parsed) {
  return parsed.ok() ? std::string() : std::string(parsed.status().message());
}

std::string DurationMistake(const std::string& text) { return MistakeOf(ParseDuration(text)); }

std::string TitleOf(const Configuration& configuration) {
  return configuration.text.empty() ? "(defaults)" : configuration.text;
}

}  // namespace

void AddHistoryFile(CLI::App& app, std::string& file) {
  app.add_option("FILE", file,
                 "A memory snapshot of PyTorch with its history (pickle or JSON), or\n"
                 "a log of RMM (CSV); plain, or packed with gzip or xz")
      ->type_name("")
      ->required();
}

void AddConfOption(CLI::App& app, ReplayChoice& choice, const std::string& fallback) {
  app.add_option("--conf", choice.confs,
                 "A configuration, written as KEEL_ALLOC_CONF (which is not read here);\n"
                 "given several times, they are compared (" +
                     fallback + ")")
      ->type_name("CONF")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
}

void AddReplayOptions(CLI::App& app, ReplayChoice& choice) {
  app.add_option("--memory", choice.memory,
                 fmt::format("Of the simulated device, such as 24GiB (default {})", kMemory))
      ->type_name("SIZE")
      ->check(CLI::Validator(SizeMistake, "", "size"));
  app.add_option("--lag", choice.lag,
                 "How long after a free its work is done, such as 5ms or 500us (default 0)")
      ->type_name("TIME")
      ->check(CLI::Validator(DurationMistake, "", "time"));
  app.add_option("--recorded-device", choice.recorded_device,
                 "Which device of the recording (default: the one with most events)")
      ->type_name("N")
      ->check(CLI::Validator(CheckNumber, "", "number"));
}

Result<std::vector<Configuration>> ParseConfigurations(const std::vector<std::string>& texts) {
  std::vector<Configuration> configurations;
  for (const std::string& text : texts) {
    KEEL_ASSIGN(memory::AllocatorConfig config, memory::AllocatorConfig::Parse(text, "--conf"));
    configurations.push_back({text, std::move(config)});
  }
  if (configurations.empty()) configurations.emplace_back();
  return configurations;
}

void PrintWarnings(std::string_view command, const std::vector<Configuration>& configurations) {
  for (const Configuration& configuration : configurations) {
    for (const std::string& warning : configuration.config.warnings) {
      PrintError(command, fmt::format("warning: --conf {}", warning));
    }
  }
}

std::size_t TitleWidth(const std::vector<Configuration>& configurations) {
  std::size_t width = 7;  // "Reading"
  for (const Configuration& each : configurations) width = std::max(width, TitleOf(each).size());
  return width;
}

Result<std::shared_ptr<hal::Device>> CreateReplayDevice(const ReplayChoice& choice) {
  const std::string text(choice.memory.empty() ? kMemory : choice.memory);
  KEEL_ASSIGN(const Bytes memory, ParseBytes(text));
  auto driver = sim::CreateSimDriver({.memory = memory});
  if (!driver.ok()) {
    return std::move(driver).status().Annotate(fmt::format("--memory {}", text));
  }
  return (*driver)->Open(0);
}

Result<trace::DeviceSummary> ChooseRecorded(const std::string& file, const ReplayChoice& choice,
                                            const std::vector<trace::DeviceSummary>& summaries) {
  std::string numbers;
  const trace::DeviceSummary* chosen = nullptr;
  for (const trace::DeviceSummary& summary : summaries) {
    if (summary.events == 0) continue;
    const std::string number = fmt::format("{}", summary.device);
    numbers += (numbers.empty() ? "" : ", ") + number;
    const bool better = choice.recorded_device.empty()
                            ? chosen == nullptr || summary.events > chosen->events
                            : choice.recorded_device == number;
    if (better) chosen = &summary;
  }
  if (numbers.empty()) {
    return InvalidArgument(fmt::format(
        "{} has no events to replay, only what was held at one moment; record a history first",
        file));
  }
  if (chosen == nullptr) {
    return NotFound(fmt::format("{} has no events of device {}; choose --recorded-device from: {}",
                                file, choice.recorded_device, numbers));
  }
  return *chosen;
}

Result<std::vector<ReplayRow>> RunReplays(const trace::Snapshot& snapshot,
                                          const trace::DeviceSummary& recorded,
                                          const std::shared_ptr<hal::Device>& device,
                                          const std::vector<Configuration>& configurations,
                                          trace::ReplayOptions options, Progress& progress) {
  options.progress = [&](std::uint64_t done) { progress.Update(done, recorded.events); };
  std::vector<ReplayRow> rows;
  for (const Configuration& each : configurations) {
    const auto start = std::chrono::steady_clock::now();
    progress.Begin(TitleOf(each));
    options.config = each.config;
    auto result = trace::Replay(snapshot, recorded.device, device, options);
    if (!result.ok()) {
      return std::move(result).status().Annotate(fmt::format("--conf '{}'", each.text));
    }
    progress.End("done in " + FormatDuration(std::chrono::steady_clock::now() - start));
    rows.push_back({each.text, *std::move(result)});
  }
  return rows;
}

}  // namespace keel::cli
