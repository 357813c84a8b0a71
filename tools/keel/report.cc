// keel report: a recorded history as a page for the browser, or as a trace for Perfetto.

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "command.h"
#include "format.h"
#include "keel/base/bytes.h"
#include "keel/trace/atomic_file.h"
#include "keel/trace/snapshot_file.h"
#include "keel/trace/summary.h"
#include "progress.h"
#include "replay_report.h"
#include "replay_runs.h"
#include "report_model.h"
#include "report_page.h"
#include "report_trace.h"
#include "terminal.h"

namespace keel::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kStandardOutput = "-";
// Enough for a curve as wide as a screen.
constexpr std::uint64_t kSamples = 1024;
// In --json; the page has more.
constexpr std::size_t kGroupsInJson = 20;

struct Options {
  std::string file;
  std::string page;   // where it goes; empty: see PagePath
  std::string trace;  // empty: nowhere
  std::string title;  // empty: the file's name
  std::string small;  // empty: chosen
  ReplayChoice replay;
  bool json = false;
};

// "runs/resnet.pickle.xz": "resnet".
std::string StemOf(const std::string& file) {
  std::filesystem::path path = std::filesystem::path(file).filename();
  for (const std::string_view extension : {".xz", ".gz", ".pickle", ".pkl", ".json", ".csv"}) {
    if (path.extension() == extension) path = path.stem();
  }
  return path.string();
}

// Where the page goes; empty: nowhere, only the trace was asked for.
std::string PagePath(const Options& options) {
  if (!options.page.empty()) return options.page;
  return options.trace.empty() ? StemOf(options.file) + ".html" : "";
}

// What is written when everything has gone well.
class Output {
 public:
  // An empty path: nothing. Opens the file at once, so that one that cannot be written is known
  // before the work.
  static Result<Output> Create(std::string path, const std::string& input) {
    Output output(std::move(path));
    if (output.path_.empty() || output.to_standard_output()) return output;
    std::error_code ignored;
    if (std::filesystem::equivalent(output.path_, input, ignored)) {
      return InvalidArgument(
          fmt::format("'{}' is the recording itself; choose another name", output.path_));
    }
    KEEL_ASSIGN(trace::AtomicFile file, trace::AtomicFile::Create(output.path_));
    output.file_.emplace(std::move(file));
    return output;
  }

  bool wanted() const { return !path_.empty(); }
  bool to_standard_output() const { return path_ == kStandardOutput; }
  const std::string& path() const { return path_; }
  std::size_t size() const { return size_; }

  Status Write(const std::string& text) {
    size_ = text.size();
    if (to_standard_output()) {
      std::fwrite(text.data(), 1, text.size(), stdout);  // what goes wrong is seen at the end
      return OkStatus();
    }
    KEEL_TRY(file_->Write(text));
    return file_->Commit();
  }

 private:
  explicit Output(std::string path) : path_(std::move(path)) {}

  std::string path_;
  std::optional<trace::AtomicFile> file_;
  std::size_t size_ = 0;
};

// As ChooseRecorded, but a recording without events will do.
Result<trace::DeviceSummary> ChooseDevice(const Options& options,
                                          const std::vector<trace::DeviceSummary>& summaries) {
  const trace::DeviceSummary* chosen = nullptr;
  for (const trace::DeviceSummary& summary : summaries) {
    if (summary.events > 0) return ChooseRecorded(options.file, options.replay, summaries);
    const bool better = options.replay.recorded_device.empty()
                            ? chosen == nullptr || summary.reserved_at_end > chosen->reserved_at_end
                            : options.replay.recorded_device == fmt::format("{}", summary.device);
    if (better) chosen = &summary;
  }
  if (summaries.empty()) {
    return InvalidArgument(
        fmt::format("{} has neither events nor segments: nothing to show", options.file));
  }
  if (chosen == nullptr) {
    return NotFound(fmt::format("{} has no segments of device {}; leave --recorded-device out",
                                options.file, options.replay.recorded_device));
  }
  return *chosen;
}

Json ToJson(const ReportModel& model, const Output& page, const Output& trace) {
  const auto path = [](const Output& output) {
    return output.wanted() ? Json(output.path()) : Json(nullptr);
  };
  Json groups = Json::array();
  for (const trace::GroupShare& share : model.peak_groups) {
    if (groups.size() == kGroupsInJson) break;
    groups.push_back({{"name", model.grouping->Name(share.group)},
                      {"kind", trace::GroupKindName(model.grouping->kind(share.group))},
                      {"bytes", share.bytes},
                      {"blocks", share.blocks}});
  }
  return {{"page", path(page)},
          {"perfetto", path(trace)},
          {"device", model.recorded.device},
          {"events", model.recorded.events},
          {"peak_requested", model.recorded.peak_requested.count()},
          {"peak_reserved", model.recorded.peak_reserved.count()},
          {"blocks", model.timeline.allocations.size()},
          {"small_blocks", model.timeline.allocations.size() - model.kept.size()},
          {"small_below", model.small_below},
          {"peak_groups", std::move(groups)},
          {"replays", ReplayJson(model.replays)}};
}

Status CheckOptions(const Options& options) {
  const bool page_to_output = options.page == kStandardOutput;
  const bool trace_to_output = options.trace == kStandardOutput;
  if (page_to_output && trace_to_output) {
    return InvalidArgument("-o and --perfetto cannot both be '-': give one of them a file");
  }
  if ((page_to_output || trace_to_output) && options.json) {
    return InvalidArgument("--json prints on standard output, which '-' takes: leave out one");
  }
  return OkStatus();
}

Result<std::optional<Bytes>> ParseSmall(const std::string& text) {
  if (text.empty()) return std::optional<Bytes>();
  KEEL_ASSIGN(const Bytes small, ParseBytes(text));
  return std::optional<Bytes>(small);
}

Status Write(const Options& options, const std::vector<Configuration>& configurations,
             std::chrono::microseconds lag, std::optional<Bytes> small) {
  KEEL_TRY(CheckOptions(options));
  KEEL_ASSIGN(Output page, Output::Create(PagePath(options), options.file));
  KEEL_ASSIGN(Output trace, Output::Create(options.trace, options.file));
  const bool silent = options.json || page.to_standard_output() || trace.to_standard_output();
  const bool watched = !silent && IsTerminal(stdout);
  Progress progress(watched ? stdout : nullptr, configurations.size() + 2,
                    TitleWidth(configurations));
  auto began = std::chrono::steady_clock::now();
  progress.Begin("Reading");
  KEEL_ASSIGN(const trace::Snapshot snapshot, trace::ReadSnapshotFile(options.file));
  progress.End("done in " + FormatDuration(std::chrono::steady_clock::now() - began));
  KEEL_ASSIGN(const trace::DeviceSummary recorded,
              ChooseDevice(options, trace::Summarize(snapshot)));
  std::vector<ReplayRow> rows;
  if (recorded.events > 0) {
    KEEL_ASSIGN(const std::shared_ptr<hal::Device> device, CreateReplayDevice(options.replay));
    KEEL_ASSIGN(rows, RunReplays(snapshot, recorded, device, configurations,
                                 {.lag = lag, .samples = kSamples}, progress));
  }
  began = std::chrono::steady_clock::now();
  progress.Begin("Writing");
  KEEL_ASSIGN(ReportModel model,
              BuildReportModel(std::filesystem::path(options.file).filename().string(),
                               options.title.empty() ? StemOf(options.file) : options.title,
                               snapshot, recorded, std::move(rows), small));
  if (page.wanted()) KEEL_TRY(page.Write(ReportPage(model)));
  if (trace.wanted()) KEEL_TRY(trace.Write(ReportTrace(model)));
  progress.End("done in " + FormatDuration(std::chrono::steady_clock::now() - began));

  if (options.json) {
    fmt::print("{}\n",
               ToJson(model, page, trace).dump(2, ' ', false, Json::error_handler_t::replace));
  } else if (!silent) {
    const Style style(stdout);
    fmt::print("{}{}\n\n", watched ? "\n" : "", Summarize(model));
    if (page.wanted()) {
      fmt::print("{} ({}): open it in a browser\n", style.Bold(page.path()),
                 ToString(Bytes(page.size())));
    }
    if (trace.wanted()) {
      fmt::print("{} ({}): open it in Perfetto or chrome://tracing\n", style.Bold(trace.path()),
                 ToString(Bytes(trace.size())));
    }
  }
  return OkStatus();
}

ExitCode Run(const Options& options) {
  std::vector<std::string> confs = options.replay.confs;
  if (confs.empty()) confs = {"", "expandable_segments:false"};
  const auto configurations = ParseConfigurations(confs);
  if (!configurations.ok()) return ReportError("report", configurations.status());
  const auto lag = ParseDuration(options.replay.lag);
  if (!lag.ok()) return ReportError("report", lag.status());
  const auto small = ParseSmall(options.small);
  if (!small.ok()) return ReportError("report", small.status());
  PrintWarnings("report", *configurations);
  const Status status = Write(options, *configurations, *lag, *small);
  return status.ok() ? kSuccess : ReportError("report", status);
}

}  // namespace

Command AddReport(CLI::App& parent) {
  auto options = std::make_shared<Options>();
  CLI::App* app = parent.add_subcommand(
      "report", "Show a recorded history as a page: timeline, segments, peak, and replays");
  AddHistoryFile(*app, options->file);
  app->add_option("-o,--output", options->page,
                  "Where the page goes; '-' is standard output (default: the name of\n"
                  "FILE with .html, in this folder)")
      ->type_name("PAGE");
  app->add_option("--perfetto", options->trace,
                  "Write trace events for Perfetto or chrome://tracing; the page is\n"
                  "written beside it only with -o")
      ->type_name("TRACE");
  app->add_option("--title", options->title, "Of the page (default: the name of FILE)")
      ->type_name("TEXT");
  app->add_option("--small", options->small,
                  fmt::format("Blocks below this size are drawn as one band (default: so that\n"
                              "no more than {} are drawn one by one)",
                              FormatCount(kMaxKeptBlocks)))
      ->type_name("SIZE")
      ->check(CLI::Validator(SizeMistake, "", "size"));
  AddConfOption(*app, options->replay, "default: the\ndefaults, and expandable_segments:false");
  AddReplayOptions(*app, options->replay);
  app->add_flag("--json", options->json, "Print one JSON object instead of text");
  app->footer(
      "The page is one file that needs no network: send it, keep it, open it in any browser.\n"
      "A file that is there is replaced, in one step. docs/report.md is a guide.");
  return {app, [options] { return Run(*options); }};
}

}  // namespace keel::cli
