// keel bench: what allocations, pinned memory, copies, replayed graphs and tasks cost on a device.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <vector>

#include "bench_churn.h"
#include "bench_graph.h"
#include "bench_task.h"
#include "choice.h"
#include "command.h"
#include "format.h"
#include "keel/base/version.h"
#include "keel/graph/primitive_costs.h"
#include "keel/memory/process_memory.h"
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
  GraphBenchOptions graph;
  std::vector<std::string> transports;
};

constexpr std::string_view kKinds[] = {"alloc", "churn",      "graph", "host",
                                       "h2d",   "primitives", "task",  "train"};

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

// Runs one after the other. `show` gives a result in a few words.
template <class Case, class Show>
auto RunCases(const Options& options, const std::vector<Case>& cases, Show show)
    -> Result<std::vector<std::decay_t<decltype(*cases.front().run())>>> {
  std::vector<std::decay_t<decltype(*cases.front().run())>> results;
  // Only where somebody watches: the table, or the list, has it all.
  std::FILE* const out = options.json ? stderr : stdout;
  const bool watched = IsTerminal(out);
  std::size_t width = 0;
  for (const Case& each : cases) width = std::max(width, each.title.size());
  Progress progress(watched ? out : nullptr, cases.size(), width);
  for (const Case& each : cases) {
    progress.Begin(each.title);
    auto result = each.run();
    if (!result.ok()) return std::move(result).status().Annotate(each.title);
    progress.End(show(*result));
    results.push_back(*std::move(result));
  }
  if (watched) fmt::print(out, "\n");
  return results;
}

ExitCode Measure(const Options& options, const std::vector<BenchCase>& cases) {
  const auto results = RunCases(options, cases, [](const std::vector<Measurement>& measurements) {
    std::string shown;
    for (const Measurement& measurement : measurements) {
      shown += fmt::format("{}{} {}", shown.empty() ? "" : ", ", FormatValue(measurement),
                           UnitName(measurement.unit));
    }
    return shown;
  });
  if (!results.ok()) return ReportError("bench", results.status());
  Json list = Json::array();
  Table table({{"MEASURED"}, {"WITH"}, {"VALUE", Table::Align::kRight}, {"UNIT"}});
  for (const std::vector<Measurement>& measurements : *results) {
    for (const Measurement& measurement : measurements) {
      list.push_back(ToJson(measurement));
      table.Add({measurement.name, FormatParameters(measurement.parameters),
                 FormatValue(measurement), std::string(UnitName(measurement.unit))});
    }
  }
  if (options.json) {
    PrintJson(list);
  } else {
    fmt::print("{}", table.ToString(Style(stdout)));
  }
  return kSuccess;
}

Json ToJson(const GraphCost& cost) {
  Json calls = Json::object();
  for (const auto& [name, count] : cost.driver_calls) calls[std::string(name)] = count;
  return {{"commands", cost.commands},        {"moving", MovingName(cost.moving)},
          {"bytes", cost.bytes.count()},      {"kind", cost.traced ? "traced" : "explicit"},
          {"policy", WayName(cost.way)},      {"host_us", cost.host_us},
          {"device_us", cost.device_us},      {"driver_calls", std::move(calls)},
          {"bytes_copied", cost.bytes_copied}};
}

// Every kind, those with the most calls first; in lines, because a step that records makes many.
std::vector<std::string> FormatCalls(std::vector<std::pair<std::string_view, double>> calls) {
  constexpr std::size_t kInLine = 4;
  std::sort(calls.begin(), calls.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  std::vector<std::string> lines(1);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (i != 0) lines.back() += ',';
    if (i != 0 && i % kInLine == 0) lines.emplace_back();
    lines.back() += fmt::format("{}{} {:.4g}", lines.back().empty() ? "" : " ", calls[i].first,
                                calls[i].second);
  }
  return lines;
}

// What `auto` reckoned with, under its rows.
Status PrintPrimitives(const BenchSetting& setting) {
  KEEL_ASSIGN(const auto memory, memory::DeviceMemory::Create(setting.device, setting.config));
  KEEL_ASSIGN(const graph::PrimitiveCosts costs,
              graph::CostsOf(memory, Deadline::After(std::chrono::seconds(60))));
  fmt::print(
      "\nauto reckons with {:.2f} us of the host to rewrite a command, and of the device with "
      "{:.2f} "
      "us\nfor the kernels of a step that copies and {:.0f} GB/s for its bytes (keel bench "
      "primitives).\n",
      costs.patch_us, costs.copy_step_us, costs.copy_bytes_per_us / 1000);
  return OkStatus();
}

ExitCode MeasureGraphs(const Options& options, const BenchSetting& setting) {
  const auto cases = GraphCases(setting, options.graph);
  if (!cases.ok()) return ReportError("bench", cases.status());
  const auto costs = RunCases(options, *cases, [](const GraphCost& cost) {
    return fmt::format("host {:.1f} us, device {:.1f} us", cost.host_us, cost.device_us);
  });
  if (!costs.ok()) return ReportError("bench", costs.status());
  Json list = Json::array();
  using Align = Table::Align;
  Table table({{"COMMANDS", Align::kRight},
               {"KIND"},
               {"BUFFERS", Align::kRight},
               {"MOVING"},
               {"POLICY"},
               {"HOST us", Align::kRight},
               {"DEVICE us", Align::kRight},
               {"COPIED", Align::kRight},
               {"DRIVER CALLS"}});
  const GraphCost* before = nullptr;
  for (const GraphCost& cost : *costs) {
    list.push_back(ToJson(cost));
    const bool same = before != nullptr && before->commands == cost.commands &&
                      before->traced == cost.traced && before->bytes == cost.bytes &&
                      before->moving == cost.moving;
    if (before != nullptr && !same) table.Add({});
    before = &cost;
    const std::vector<std::string> calls = FormatCalls(cost.driver_calls);
    table.Add({FormatCount(cost.commands), cost.traced ? "traced" : "explicit",
               ToString(cost.bytes), std::string(MovingName(cost.moving)),
               std::string(WayName(cost.way)), fmt::format("{:.2f}", cost.host_us),
               fmt::format("{:.2f}", cost.device_us),
               ToString(Bytes(static_cast<std::uint64_t>(cost.bytes_copied))), calls.front()});
    for (std::size_t i = 1; i < calls.size(); ++i) {
      table.Add({"", "", "", "", "", "", "", "", calls[i]});
    }
  }
  if (options.json) {
    PrintJson(list);
    return kSuccess;
  }
  fmt::print("{}", table.ToString(Style(stdout)));
  const Status printed = PrintPrimitives(setting);
  return printed.ok() ? kSuccess : ReportError("bench", printed);
}

ExitCode MeasureTasks(const Options& options, const BenchSetting& setting,
                      const std::shared_ptr<BarePeer>& process) {
  const auto costs = RunCases(options, TaskCases(setting, options.transports, process),
                              [](const std::vector<TaskCost>& rows) {
                                return fmt::format("{} {:.0f} ns, {} {:.0f} ns", rows[0].what,
                                                   rows[0].ns, rows[1].what, rows[1].ns);
                              });
  if (!costs.ok()) return ReportError("bench", costs.status());
  Json list = Json::array();
  using Align = Table::Align;
  Table table({{"TRANSPORT"},
               {"MEASURED"},
               {"CODE ON"},
               {"WORKERS", Align::kRight},
               {"ns", Align::kRight},
               {"OVER BARE", Align::kRight}});
  for (const std::vector<TaskCost>& rows : *costs) {
    if (!list.empty()) table.Add({});
    for (const TaskCost& cost : rows) {
      list.push_back({{"transport", cost.transport},
                      {"what", cost.what},
                      {"orchestration", cost.orchestration},
                      {"workers", cost.workers},
                      {"ns", cost.ns},
                      {"bare_ns", cost.bare_ns},
                      {"ratio", cost.ratio}});
      table.Add({cost.transport, cost.what, cost.orchestration, FormatCount(cost.workers),
                 fmt::format("{:.0f}", cost.ns), fmt::format("{:.2f}", cost.ratio)});
    }
  }
  if (options.json) {
    PrintJson(list);
  } else {
    fmt::print("{}", table.ToString(Style(stdout)));
  }
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

// What is measured by other names than graph's, or task's, takes none of their options.
Status CheckOptions(const Options& options) {
  if (!options.transports.empty() && options.what != "task") {
    return InvalidArgument(
        fmt::format("--transport is for 'keel bench task', not for '{}'", options.what));
  }
  if (options.what == "graph") return OkStatus();
  const auto given = [&](std::string_view name) {
    return InvalidArgument(
        fmt::format("{} is for 'keel bench graph', not for '{}'", name, options.what));
  };
  if (!options.graph.commands.empty()) return given("--commands");
  if (!options.graph.moving.empty()) return given("--moving");
  if (!options.graph.ways.empty()) return given("--policy");
  return options.graph.quick ? given("--quick") : OkStatus();
}

ExitCode Run(const Options& options) {
  if (const Status status = CheckOptions(options); !status.ok()) {
    return ReportError("bench", status);
  }
  std::shared_ptr<BarePeer> process;
  if (options.what == "task" && IsChosen("process", options.transports)) {
    // Before there are threads.
    auto started = BarePeer::StartProcess();
    if (!started.ok()) return ReportError("bench", started.status());
    process = *std::move(started);
  }
  const auto& config = memory::AllocatorConfig::FromEnvironment();
  if (!config.ok()) return ReportError("bench", config.status());
  auto device = OpenChosen(options.choice);
  if (!device.ok()) return ReportError("bench", device.status());
  const BenchSetting setting{*std::move(device), *config};
  if (!options.json) PrintDevice(setting, Style(stdout));
  if (options.what == "churn") return Churn(options, setting);
  if (options.what == "graph") return MeasureGraphs(options, setting);
  if (options.what == "task") return MeasureTasks(options, setting, process);
  if (options.what == "host") return Measure(options, HostCases(setting));
  if (options.what == "h2d") return Measure(options, CopyCases(setting));
  if (options.what == "primitives") return Measure(options, PrimitiveCases(setting));
  if (options.what == "train") return Measure(options, TrainCases(setting));
  return Measure(options, AllocCases(setting));
}

std::string CheckWhat(const std::string& text) {
  for (const std::string_view known : kKinds) {
    if (text == known) return {};
  }
  return fmt::format("there is no '{}'; choose from: {}", text, fmt::join(kKinds, ", "));
}

// As many of them on a line as the columns of the help hold.
std::string InLines(const std::vector<std::string>& names) {
  constexpr std::size_t kColumns = 78;
  std::string lines;
  std::size_t width = 0;
  for (const std::string& name : names) {
    const bool last = &name == &names.back();
    const std::size_t size = name.size() + (last ? 0 : 1);
    if (width != 0) {
      const bool fits = width + 1 + size <= kColumns;
      lines += fits ? ' ' : '\n';
      width = fits ? width + 1 : 0;
    }
    lines += last ? name : name + ',';
    width += size;
  }
  return lines;
}

// An option that takes several of the names there are, and is otherwise refused.
template <class T>
void AddChoices(CLI::App& app, const std::string& option, std::vector<T>& into,
                const std::vector<std::string>& known, const std::string& what) {
  app.add_option(option, into, fmt::format("{}:\n{}", what, InLines(known)))
      ->type_name("LIST")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Validator(
          [known](const std::string& text) -> std::string {
            if (std::find(known.begin(), known.end(), text) != known.end()) return {};
            return fmt::format("there is no '{}'; choose from: {}", text, fmt::join(known, ", "));
          },
          "", "name"));
}

void AddGraphOptions(CLI::App& app, GraphBenchOptions& options) {
  std::vector<std::string> commands;
  for (const std::uint32_t each : kGraphCommands) commands.push_back(fmt::format("{}", each));
  AddChoices(app, "--commands", options.commands, commands,
             "graph: only programs of so many kernels");
  AddChoices(app, "--moving", options.moving, MovingNames(),
             "graph: only with so many bindings moving");
  AddChoices(app, "--policy", options.ways, WayNames(), "graph: only these policies");
  app.add_flag("--quick", options.quick,
               "graph: small buffers only, no programs of 1000 kernels, less time");
}

}  // namespace

Command AddBench(CLI::App& parent) {
  auto options = std::make_shared<Options>();
  CLI::App* app = parent.add_subcommand(
      "bench", "Measure memory, copies, replayed graphs and tasks on a device");
  app->add_option("WHAT", options->what,
                  "alloc: device memory, pairs of Allocate and Free\n"
                  "churn: device memory, random requests; checks that nothing leaks, nothing\n"
                  "       fails without need, the cache can be emptied and is used\n"
                  "graph: a step of a recorded program whose buffers move, by what is done about\n"
                  "       it: re-recorded, updated, copied, patched, remapped, traced again\n"
                  "host:  pinned host memory, pairs and what is held beyond what is asked for\n"
                  "h2d:   copies between pageable memory and the device, own and staged\n"
                  "primitives: what the policies of graphs are made of, as auto reckons with it\n"
                  "task:  a task that does nothing through the whole pipeline, beside a bare\n"
                  "       round trip between two threads, processes or ranks\n"
                  "train: a training step with memory of several kinds, and the calls it makes")
      ->type_name("")
      ->required()
      ->check(CLI::Validator(CheckWhat, "", "what"));
  AddDriverOption(*app, options->choice.driver, "The driver (default: see 'keel info')");
  AddDeviceOption(*app, options->choice.device);
  app->add_flag("--json", options->json, "Print one JSON list instead of text");
  AddGraphOptions(*app, options->graph);
  AddChoices(*app, "--transport", options->transports, TransportNames(),
             "task: only these transports; mpi is measured if it is named, under mpirun");
  app->footer(
      "The allocator is as KEEL_ALLOC_CONF says. Times are medians of several rounds, in\n"
      "nanoseconds (graph: microseconds); on a machine that does nothing else they are worth\n"
      "comparing. graph has one row for each policy: the calling thread's time for a step, the\n"
      "device's, the bytes that the step copies, and its calls of the driver. task has the time\n"
      "of each, and what that is over the bare round trip of its transport; that of mpi needs\n"
      "two workers, as in\n"
      "\n"
      "  mpirun -n 3 keel worker -- keel bench task --transport mpi\n"
      "\n"
      "Lists are written with commas. Exit code 1 when something churn checks does not hold.");
  return {app, [options] { return Run(*options); }};
}

}  // namespace keel::cli
