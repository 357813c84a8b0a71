// keel bench: what allocations, pinned memory and copies cost on a device.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench_churn.h"
#include "choice.h"
#include "command.h"
#include "format.h"
#include "keel/base/version.h"
#include "measure.h"
#include "progress.h"
#include "table.h"
#include "terminal.h"

namespace keel::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string what;
  Choice choice;
  bool json = false;
};

void PrintJson(const Json& json) {
  fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
}

std::string_view UnitName(Measurement::Unit unit) {
  switch (unit) {
    case Measurement::Unit::kNanoseconds:
      return "ns";
    case Measurement::Unit::kGigabytesPerSecond:
      return "GB/s";
    case Measurement::Unit::kCalls:
      return "calls";
    case Measurement::Unit::kRatio:
      break;
  }
  return "ratio";
}

Json ToJson(const Measurement& measurement) {
  return {{"name", measurement.name},
          {"parameters", measurement.parameters},
          {std::string(UnitName(measurement.unit)), measurement.value}};
}

std::string FormatParameters(const Json& parameters) {
  std::string text;
  for (const auto& [name, value] : parameters.items()) {
    if (!text.empty()) text += ", ";
    const std::string shown = value.is_string()        ? value.get<std::string>()
                              : name.ends_with("size") ? ToString(Bytes(value.get<std::uint64_t>()))
                                                       : FormatCount(value.get<std::uint64_t>());
    text += fmt::format("{} {}", name, shown);
  }
  return text;
}

std::string FormatValue(const Measurement& measurement) {
  const bool long_time =
      measurement.unit == Measurement::Unit::kNanoseconds && measurement.value >= 100;
  return fmt::format("{:.{}f}", measurement.value, long_time ? 0 : 2);
}

void PrintDevice(const BenchSetting& setting, const Style& style) {
  const hal::DeviceInfo& info = setting.device->info();
  fmt::print("keel {} on {} device {}: {}, {}\n", KEEL_VERSION_STRING, info.driver, info.ordinal,
             style.Bold(info.name), ToString(info.memory));
  const std::string conf = setting.config.ToString();
  if (!conf.empty()) fmt::print("KEEL_ALLOC_CONF={}\n", conf);
  fmt::print("\n");
  std::fflush(stdout);
}

ExitCode Measure(const Options& options, const std::vector<BenchCase>& cases) {
  std::vector<Measurement> measurements;
  {
    // Only where somebody watches: the table has it all.
    const bool watched = !options.json && IsTerminal(stdout);
    std::size_t width = 0;
    for (const BenchCase& each : cases) width = std::max(width, each.title.size());
    Progress progress(watched ? stdout : nullptr, cases.size(), width);
    for (const BenchCase& each : cases) {
      progress.Begin(each.title);
      auto result = each.run();
      if (!result.ok()) {
        return ReportError("bench", std::move(result).status().Annotate(each.title));
      }
      std::string shown;
      for (Measurement& measurement : *result) {
        shown += fmt::format("{}{} {}", shown.empty() ? "" : ", ", FormatValue(measurement),
                             UnitName(measurement.unit));
        measurements.push_back(std::move(measurement));
      }
      progress.End(shown);
    }
    if (watched) fmt::print("\n");
  }
  if (options.json) {
    Json list = Json::array();
    for (const Measurement& measurement : measurements) list.push_back(ToJson(measurement));
    PrintJson(list);
    return kSuccess;
  }
  Table table({{"MEASURED"}, {"WITH"}, {"VALUE", Table::Align::kRight}, {"UNIT"}});
  for (const Measurement& measurement : measurements) {
    table.Add({measurement.name, FormatParameters(measurement.parameters), FormatValue(measurement),
               std::string(UnitName(measurement.unit))});
  }
  fmt::print("{}", table.ToString(Style(stdout)));
  return kSuccess;
}

ExitCode Churn(const Options& options, const BenchSetting& setting) {
  const ChurnOptions churn;
  auto report = RunChurn(setting, churn);
  if (!report.ok()) return ReportError("bench", std::move(report).status().Annotate("churn"));
  const Json parameters = {{"threads", churn.threads},
                           {"streams", churn.streams},
                           {"requests", churn.operations},
                           {"seed", churn.seed},
                           {"limit", report->limit.count()}};
  if (options.json) {
    Json list = Json::array();
    list.push_back({{"name", "churn"}, {"parameters", parameters}, {"ns", report->ns}});
    for (const Invariant& invariant : report->invariants) {
      list.push_back({{"name", invariant.name},
                      {"parameters", parameters},
                      {"passed", invariant.holds},
                      {"found", invariant.found}});
    }
    PrintJson(list);
  } else {
    fmt::print("{} threads on {} streams, {} requests each, with {}: {:.0f} ns per request\n\n",
               churn.threads, churn.streams, FormatCount(churn.operations), ToString(report->limit),
               report->ns);
    Table table({{"INVARIANT"}, {"FOUND"}, {"HOLDS"}});
    for (const Invariant& invariant : report->invariants) {
      table.Add({std::string(invariant.name),
                 invariant.found,
                 {invariant.holds ? "pass" : "FAIL",
                  [holds = invariant.holds](const Style& style, std::string_view text) {
                    return holds ? style.Good(text) : style.Bad(text);
                  }}});
    }
    fmt::print("{}", table.ToString(Style(stdout)));
  }
  for (const Invariant& invariant : report->invariants) {
    if (!invariant.holds) {
      PrintError("bench", fmt::format("churn: {}: {}", invariant.name, invariant.found));
    }
  }
  return report->passed() ? kSuccess : kFailure;
}

ExitCode Run(const Options& options) {
  const auto& config = memory::AllocatorConfig::FromEnvironment();
  if (!config.ok()) return ReportError("bench", config.status());
  auto device = OpenChosen(options.choice);
  if (!device.ok()) return ReportError("bench", device.status());
  const BenchSetting setting{*std::move(device), *config};
  if (!options.json) PrintDevice(setting, Style(stdout));
  if (options.what == "churn") return Churn(options, setting);
  if (options.what == "host") return Measure(options, HostCases(setting));
  if (options.what == "h2d") return Measure(options, CopyCases(setting));
  if (options.what == "train") return Measure(options, TrainCases(setting));
  return Measure(options, AllocCases(setting));
}

std::string CheckWhat(const std::string& text) {
  for (const std::string_view known : {"alloc", "churn", "host", "h2d", "train"}) {
    if (text == known) return {};
  }
  return fmt::format("there is no '{}'; choose from: alloc, churn, host, h2d, train", text);
}

}  // namespace

Command AddBench(CLI::App& parent) {
  auto options = std::make_shared<Options>();
  CLI::App* app =
      parent.add_subcommand("bench", "Measure allocations, pinned memory and copies on a device");
  app->add_option("WHAT", options->what,
                  "alloc: device memory, pairs of Allocate and Free\n"
                  "churn: device memory, random requests; checks that nothing leaks, nothing\n"
                  "       fails without need, the cache can be emptied and is used\n"
                  "host:  pinned host memory, pairs and what is held beyond what is asked for\n"
                  "h2d:   copies between pageable memory and the device, own and staged\n"
                  "train: a training step with memory of several kinds, and the calls it makes")
      ->type_name("")
      ->required()
      ->check(CLI::Validator(CheckWhat, "", "what"));
  AddDriverOption(*app, options->choice.driver, "The driver (default: see 'keel info')");
  AddDeviceOption(*app, options->choice.device);
  app->add_flag("--json", options->json, "Print one JSON list instead of text");
  app->footer(
      "The allocator is as KEEL_ALLOC_CONF says. Times are medians of several rounds, in\n"
      "nanoseconds; on a machine that does nothing else they are worth comparing. Exit code 1\n"
      "when something churn checks does not hold.");
  return {app, [options] { return Run(*options); }};
}

}  // namespace keel::cli
