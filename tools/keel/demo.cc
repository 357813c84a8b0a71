// keel demo: a few seconds that show, on a real or simulated device, what Keel is built on.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "choice.h"
#include "command.h"
#include "demo_pipeline.h"
#include "demo_steps.h"
#include "format.h"
#include "keel/base/version.h"
#include "progress.h"
#include "table.h"
#include "terminal.h"

namespace keel::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  Choice choice;
  std::string transport = "thread";
  std::string weights = "4MiB";
  std::uint32_t sent_along = 0;
  bool json = false;
};

struct StepReport {
  const DemoStep* step = nullptr;
  std::string skipped;  // why; empty when it ran
  Status status;        // not OK: it ran and was not verified
  Shown shown;
  Seconds took{0};

  std::string_view outcome() const {
    if (!skipped.empty()) return "skipped";
    return status.ok() ? "verified" : "failed";
  }
};

// What a step created it must have given back, also the parts that its destructors do.
Status CheckGivenBack(hal::InstrumentedDevice& device) {
  const std::vector<hal::LiveObject> live = device.Live();
  if (live.empty()) return OkStatus();
  std::string list;
  for (const hal::LiveObject& object : live) list += " " + object.ToString() + ";";
  return Internal(fmt::format("{} objects were not given back:{}", live.size(), list));
}

StepReport RunStep(const DemoStep& step, const StepContext& context) {
  StepReport report{.step = &step};
  report.skipped = step.missing(context.device->capabilities());
  if (!report.skipped.empty()) return report;
  const auto start = std::chrono::steady_clock::now();
  auto shown = step.run(context);
  report.status = shown.ok() ? CheckGivenBack(*context.device) : shown.status();
  report.took = std::chrono::steady_clock::now() - start;
  if (report.status.ok()) report.shown = *std::move(shown);
  return report;
}

std::string Paint(const StepReport& report, const Style& style, std::string_view text) {
  if (!report.skipped.empty()) return style.Warn(text);
  return report.status.ok() ? style.Good(text) : style.Bad(text);
}

void PrintSummary(const std::vector<StepReport>& reports, const Style& style) {
  Table table({{"STEP"}, {"SHOWN"}, {"TIME", Table::Align::kRight}, {"VERIFIED"}});
  for (const StepReport& report : reports) {
    std::string what;
    for (const std::string& line : report.shown.lines) {
      if (!what.empty()) what += '\n';
      what += line;
    }
    if (!report.skipped.empty()) what = "skipped: " + report.skipped;
    if (!report.status.ok()) what = StatusCodeName(report.status.code());
    const bool ran = report.skipped.empty();
    table.Add(
        {std::string(report.step->name),
         what,
         ran ? FormatDuration(report.took) : "-",
         {ran ? report.status.ok() ? "yes" : "NO" : "-",
          [&report](const Style& s, std::string_view text) { return Paint(report, s, text); }}});
  }
  fmt::print("\n{}\n", table.ToString(style));
}

Json ToJson(const hal::DeviceInfo& device, const std::vector<StepReport>& reports, bool verified) {
  Json steps = Json::array();
  for (const StepReport& report : reports) {
    Json step = {{"name", report.step->name},
                 {"title", report.step->title},
                 {"outcome", report.outcome()},
                 {"seconds", report.took.count()},
                 {"skipped", nullptr},
                 {"error", ErrorJson(report.status)},
                 {"details", report.shown.details}};
    if (!report.skipped.empty()) step["skipped"] = report.skipped;
    steps.push_back(std::move(step));
  }
  return {{"version", KEEL_VERSION_STRING},
          {"device",
           {{"driver", device.driver},
            {"ordinal", device.ordinal},
            {"name", device.name},
            {"identity", device.identity},
            {"simulated", device.simulated}}},
          {"steps", std::move(steps)},
          {"verified", verified}};
}

Result<DemoOptions> ParseDemoOptions(const Options& options) {
  DemoOptions parsed;
  KEEL_ASSIGN(parsed.transport, ParseTransport(options.transport));
  KEEL_ASSIGN(parsed.weights, ParseBytes(options.weights));
  KEEL_TRY(CheckPipelineWeights(parsed.weights).Annotate("--weights"));
  parsed.sent_along = options.sent_along;
  return parsed;
}

ExitCode Run(const Options& options) {
  const auto demo_options = ParseDemoOptions(options);
  if (!demo_options.ok()) return ReportError("demo", demo_options.status());
  auto opened = OpenChosen(options.choice);
  if (!opened.ok()) return ReportError("demo", opened.status());
  const std::shared_ptr<hal::InstrumentedDevice> device = hal::Instrumented(*std::move(opened));
  const hal::DeviceInfo& info = device->info();
  const Style style(stdout);

  if (!options.json) {
    fmt::print("keel {} on {} device {}: {}, {}\n\n", KEEL_VERSION_STRING, info.driver,
               info.ordinal, style.Bold(info.name), ToString(info.memory));
    std::fflush(stdout);
  }
  const std::span<const DemoStep> steps = DemoSteps();
  std::size_t title_width = 0;
  for (const DemoStep& step : steps) title_width = std::max(title_width, step.title.size());

  std::vector<StepReport> reports;
  {
    Progress progress(options.json ? nullptr : stdout, steps.size(), title_width);
    for (const DemoStep& step : steps) {
      progress.Begin(step.title);
      reports.push_back(RunStep(
          step, {device, *demo_options,
                 [&](std::uint64_t done, std::uint64_t total) { progress.Update(done, total); }}));
      const StepReport& report = reports.back();
      std::string result = Paint(report, style, report.outcome());
      result +=
          report.skipped.empty() ? " in " + FormatDuration(report.took) : ": " + report.skipped;
      progress.End(result);
    }
  }

  std::size_t verified = 0;
  std::size_t failed = 0;
  for (const StepReport& report : reports) {
    if (!report.status.ok()) {
      ++failed;
    } else if (report.skipped.empty()) {
      ++verified;
    }
  }
  if (options.json) {
    fmt::print(
        "{}\n",
        ToJson(info, reports, failed == 0).dump(2, ' ', false, Json::error_handler_t::replace));
  } else {
    PrintSummary(reports, style);
    if (verified == reports.size()) {
      fmt::print("All {} steps verified.\n", verified);
    } else {
      fmt::print("{} verified, {} failed, {} skipped.\n", verified, failed,
                 reports.size() - verified - failed);
    }
  }
  for (const StepReport& report : reports) {
    if (!report.status.ok()) {
      PrintError("demo", fmt::format("{}: {}", report.step->name, report.status.ToString()));
    }
  }
  return failed == 0 ? kSuccess : kFailure;
}

}  // namespace

Command AddDemo(CLI::App& parent) {
  auto options = std::make_shared<Options>();
  CLI::App* app = parent.add_subcommand(
      "demo", "Compute, alias memory, replay graphs, train, and run tasks; verified");
  AddDriverOption(*app, options->choice.driver, "The driver (default: see 'keel info')");
  AddDeviceOption(*app, options->choice.device);
  AddTransportOption(*app, options->transport);
  app->add_option("--weights", options->weights,
                  "Of the two layers of the pipeline together (default 4MiB)")
      ->type_name("SIZE")
      ->check(CLI::Validator(SizeMistake, "", "size"));
  app->add_option(
         "--sent-along", options->sent_along,
         fmt::format("How many of the {} requests are also run with weights that are sent\n"
                     "along (default: all, but fewer for more than 4 GiB of that)",
                     kPipelineRequests))
      ->type_name("N")
      ->check(CLI::Range(std::uint32_t{1}, kPipelineRequests).description(""));
  app->add_flag("--json", options->json, "Print one JSON object instead of text");
  app->footer("Exit code 1 when a result is not verified; what a device cannot do is skipped.");
  return {app, [options] { return Run(*options); }};
}

}  // namespace keel::cli
