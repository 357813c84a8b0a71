#include "replay_report.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <set>
#include <utility>

#include "format.h"
#include "keel/base/bytes.h"
#include "table.h"

namespace keel::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string Name(const std::string& conf) { return conf.empty() ? "(defaults)" : conf; }

std::string Size(std::uint64_t bytes) { return ToString(Bytes(bytes)); }

std::string Ratio(std::uint64_t reserved, std::uint64_t requested) {
  if (requested == 0) return "-";
  return fmt::format("{:.3f}", static_cast<double>(reserved) / static_cast<double>(requested));
}

std::string Percent(std::int64_t part, std::int64_t whole) {
  if (whole <= 0) return "-";
  return fmt::format("{:.2f}", 100 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string DurationOf(std::int64_t microseconds) {
  return FormatDuration(std::chrono::microseconds(microseconds));
}

Table::Cell OutOfMemory(std::uint64_t count) {
  return {FormatCount(count), [count](const Style& style, std::string_view text) {
            return count == 0 ? std::string(text) : style.Bad(text);
          }};
}

std::string MemoryTable(const std::vector<ReplayRow>& rows, const trace::DeviceSummary& recorded,
                        const std::string& configuration, const Style& style) {
  constexpr auto kRight = Table::Align::kRight;
  Table table({{"CONFIGURATION"},
               {"REQUESTED", kRight},
               {"ALLOCATED", kRight},
               {"RESERVED", kRight},
               {"RES/REQ", kRight},
               {"OOM", kRight},
               {"DRIVER MS", kRight},
               {"% OF JOB", kRight},
               {"NS/OP", kRight}});
  for (const ReplayRow& row : rows) {
    const trace::ReplayResult& result = row.result;
    table.Add({Name(row.conf), Size(result.peak_requested), Size(result.peak_allocated),
               Size(result.peak_reserved),
               // What did not fit is requested and not reserved: the quotient would flatter.
               result.ooms > 0 ? "-" : Ratio(result.peak_reserved, result.peak_requested),
               OutOfMemory(result.ooms),
               fmt::format("{:.1f}", static_cast<double>(result.driver_us) / 1000),
               Percent(result.driver_us, result.recorded_us),
               fmt::format("{:.0f}", result.ns_per_operation)});
  }
  if (!recorded.peak_reserved.empty()) {
    const auto dim = [](const Style& s, std::string_view text) { return s.Dim(text); };
    const std::string name =
        configuration.empty() ? "recorded" : fmt::format("recorded, {}", configuration);
    table.Add({{name, dim},
               {ToString(recorded.peak_requested), dim},
               {"-", dim},
               {ToString(recorded.peak_reserved), dim},
               {Ratio(recorded.peak_reserved.count(), recorded.peak_requested.count()), dim},
               {FormatCount(recorded.out_of_memory), dim},
               {"-", dim},
               {"-", dim},
               {"-", dim}});
  }
  return table.ToString(style);
}

std::string CallTable(const std::vector<ReplayRow>& rows, const Style& style) {
  std::set<std::string> kinds;
  for (const ReplayRow& row : rows) {
    for (const auto& [kind, count] : row.result.driver_calls) kinds.insert(kind);
  }
  std::vector<Table::Column> columns = {{"DRIVER CALLS"}};
  for (const ReplayRow& row : rows) columns.push_back({Name(row.conf), Table::Align::kRight});
  Table table(std::move(columns));
  for (const std::string& kind : kinds) {
    std::vector<Table::Cell> cells = {kind};
    for (const ReplayRow& row : rows) {
      const auto found = row.result.driver_calls.find(kind);
      cells.emplace_back(FormatCount(found == row.result.driver_calls.end() ? 0 : found->second));
    }
    table.Add(std::move(cells));
  }
  return table.ToString(style);
}

}  // namespace

Json ReplayJson(const std::vector<ReplayRow>& rows) {
  Json list = Json::array();
  for (const ReplayRow& row : rows) {
    const trace::ReplayResult& result = row.result;
    list.push_back({{"conf", row.conf},
                    {"lag_us", result.lag_us},
                    {"peak_requested", result.peak_requested},
                    {"peak_allocated", result.peak_allocated},
                    {"peak_reserved", result.peak_reserved},
                    {"ratio", result.ratio()},
                    {"ooms", result.ooms},
                    {"driver_calls", result.driver_calls},
                    {"driver_us", result.driver_us},
                    {"recorded_us", result.recorded_us},
                    {"operations", result.operations},
                    {"ns_per_operation", result.ns_per_operation}});
  }
  return list;
}

std::string DescribeRecording(const std::string& path, const trace::DeviceSummary& summary,
                              const trace::Snapshot& snapshot, const Style& style) {
  std::string text =
      fmt::format("{}: device {}, {} events on {} stream{} in {}\n", style.Bold(path),
                  summary.device, FormatCount(summary.events), summary.streams,
                  summary.streams == 1 ? "" : "s", DurationOf(summary.duration_us));
  text +=
      fmt::format("{} allocations, {} frees, {} live at the end; at most {} requested at once\n",
                  FormatCount(summary.allocs), FormatCount(summary.frees),
                  FormatCount(summary.live_at_end), ToString(summary.peak_requested));
  if (!summary.requested_at_start.empty()) {
    text += fmt::format("{} were there before the recording began: the replay is without them\n",
                        ToString(summary.requested_at_start));
  }
  std::string others;
  for (std::size_t i = 0; i < snapshot.devices.size(); ++i) {
    if (snapshot.devices[i].empty() || static_cast<int>(i) == summary.device) continue;
    others += fmt::format("{}{}", others.empty() ? "" : ", ", i);
  }
  if (!others.empty()) {
    text += fmt::format("It has other devices too (--recorded-device {})\n", others);
  }
  return text;
}

std::string ReplayTables(const std::vector<ReplayRow>& rows, const trace::DeviceSummary& recorded,
                         const std::string& configuration, const Style& style) {
  return MemoryTable(rows, recorded, configuration, style) + "\n" + CallTable(rows, style);
}

}  // namespace keel::cli
