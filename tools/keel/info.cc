// keel info: the drivers, their devices, and which of them is the default.

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "choice.h"
#include "command.h"
#include "format.h"
#include "keel/base/version.h"
#include "keel/hal/driver.h"
#include "terminal.h"

namespace keel::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string driver;
  bool json = false;
};

// What was found out before anything is printed, so that text and JSON cannot differ.
struct DeviceReport {
  hal::DeviceInfo info;
  Status status;  // of opening it and of asking for its memory
  std::optional<hal::Capabilities> capabilities;
  std::optional<hal::MemoryInfo> memory;
};

struct DriverReport {
  std::string name;
  bool simulated = false;
  Status status;  // not OK: it cannot be used, and why
  std::vector<DeviceReport> devices;
};

struct DefaultReport {
  Status status;
  std::string driver;
  std::string reason;
};

struct Capability {
  const char* key;
  const char* name;
  bool hal::Capabilities::* member;
};

constexpr Capability kCapabilities[] = {
    {"virtual_memory", "virtual memory", &hal::Capabilities::virtual_memory},
    {"exportable_memory", "exportable memory", &hal::Capabilities::exportable_memory},
    {"rdma_memory", "RDMA memory", &hal::Capabilities::rdma_memory},
    {"host_registration", "host registration", &hal::Capabilities::host_registration},
    {"unified_addresses", "unified addresses", &hal::Capabilities::unified_addresses},
    {"kernels", "kernels", &hal::Capabilities::kernels},
    {"orchestration", "orchestration", &hal::Capabilities::orchestration},
    {"host_calls", "host calls", &hal::Capabilities::host_calls},
    {"value_writes", "value writes", &hal::Capabilities::value_writes},
    {"value_waits", "value waits", &hal::Capabilities::value_waits},
    {"event_timing", "event timing", &hal::Capabilities::event_timing},
    {"graphs", "graphs", &hal::Capabilities::graphs},
    {"graph_update", "graph update", &hal::Capabilities::graph_update},
    {"node_update", "node update", &hal::Capabilities::node_update},
};

// --- Finding out -------------------------------------------------------------------------------

DeviceReport Examine(hal::Driver& driver, const hal::DeviceInfo& info) {
  DeviceReport report{.info = info};
  auto device = driver.Open(info.ordinal);
  if (!device.ok()) {
    report.status = device.status();
    return report;
  }
  report.capabilities = (*device)->capabilities();
  auto memory = (*device)->GetMemoryInfo();
  if (memory.ok()) {
    report.memory = *memory;
  } else {
    report.status = memory.status();
  }
  return report;
}

DriverReport Examine(hal::Driver& driver) {
  DriverReport report{.name = std::string(driver.name()), .simulated = driver.simulated()};
  auto devices = driver.Enumerate();
  if (!devices.ok()) {
    report.status = devices.status();
    return report;
  }
  for (const hal::DeviceInfo& info : *devices) report.devices.push_back(Examine(driver, info));
  return report;
}

DefaultReport ExamineDefault() {
  DefaultReport report;
  auto chosen = hal::Registry::Global().Default();
  if (!chosen.ok()) {
    report.status = chosen.status();
    return report;
  }
  report.driver = (*chosen)->name();
  const char* variable = std::getenv("KEEL_DRIVER");
  if (variable != nullptr && *variable != '\0') {
    report.reason = fmt::format("KEEL_DRIVER={}", variable);
  } else if ((*chosen)->simulated()) {
    report.reason = "no real device can be used here";
  } else {
    report.reason = "the first real driver with a device that works";
  }
  return report;
}

// --- Showing it ----------------------------------------------------------------------------------

Json ToJson(const DeviceReport& device) {
  Json json = {
      {"ordinal", device.info.ordinal},
      {"name", device.info.name},
      {"identity", device.info.identity},
      {"architecture", device.info.architecture},
      {"simulated", device.info.simulated},
      {"numa_node", nullptr},
      {"memory", {{"total", device.info.memory.count()}, {"free", nullptr}}},
      {"granularity", nullptr},
      {"capabilities", nullptr},
      {"error", ErrorJson(device.status)},
  };
  if (device.info.numa_node >= 0) json["numa_node"] = device.info.numa_node;
  if (device.memory) {
    json["memory"] = {{"total", device.memory->total.count()},
                      {"free", device.memory->free.count()}};
  }
  if (device.capabilities) {
    if (device.capabilities->virtual_memory) {
      const hal::Granularity& granularity = device.capabilities->granularity;
      json["granularity"] = {{"minimum", granularity.minimum.count()},
                             {"recommended", granularity.recommended.count()}};
    }
    Json capabilities = Json::object();
    for (const Capability& capability : kCapabilities) {
      capabilities[capability.key] = *device.capabilities.*capability.member;
    }
    json["capabilities"] = std::move(capabilities);
  }
  return json;
}

Json ToJson(const std::vector<DriverReport>& drivers, const DefaultReport& chosen) {
  Json list = Json::array();
  for (const DriverReport& driver : drivers) {
    Json devices = Json::array();
    for (const DeviceReport& device : driver.devices) devices.push_back(ToJson(device));
    list.push_back({{"name", driver.name},
                    {"simulated", driver.simulated},
                    {"usable", driver.status.ok() && !driver.devices.empty()},
                    {"default", driver.name == chosen.driver},
                    {"error", ErrorJson(driver.status)},
                    {"devices", std::move(devices)}});
  }
  Json json = {{"version", KEEL_VERSION_STRING},
               {"default", nullptr},
               {"default_error", ErrorJson(chosen.status)},
               {"drivers", std::move(list)}};
  if (chosen.status.ok()) {
    json["default"] = {{"driver", chosen.driver}, {"device", 0}, {"reason", chosen.reason}};
  }
  return json;
}

// "virtual memory, kernels, ...", broken into lines that start at `indent`.
std::string WrapList(const std::vector<std::string_view>& items, std::size_t indent) {
  constexpr std::size_t kWidth = 90;
  std::string text;
  std::size_t column = indent;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) {
      if (column + items[i].size() + 2 > kWidth) {
        text += ",\n" + std::string(indent, ' ');
        column = indent;
      } else {
        text += ", ";
        column += 2;
      }
    }
    text += items[i];
    column += items[i].size();
  }
  return text;
}

void PrintField(const Style& style, std::string_view name, std::string_view value) {
  fmt::print("    {}{}\n", style.Dim(fmt::format("{:<14}", name)), value);
}
constexpr std::size_t kFieldIndent = 4 + 14;

void Print(const DeviceReport& device, bool is_default, const Style& style) {
  fmt::print("\n  {}{}\n",
             style.Bold(fmt::format("Device {}: {}", device.info.ordinal, device.info.name)),
             is_default ? style.Good(" (default)") : "");
  PrintField(style, "identity", device.info.identity);
  PrintField(style, "architecture", device.info.architecture);
  if (device.memory) {
    PrintField(
        style, "memory",
        fmt::format("{}, {} free", ToString(device.memory->total), ToString(device.memory->free)));
  } else {
    PrintField(style, "memory", ToString(device.info.memory));
  }
  if (device.info.numa_node >= 0) {
    PrintField(style, "NUMA node", fmt::format("{}", device.info.numa_node));
  }
  if (device.capabilities) {
    if (device.capabilities->virtual_memory) {
      const hal::Granularity& granularity = device.capabilities->granularity;
      std::string text = ToString(granularity.minimum);
      if (granularity.recommended != granularity.minimum) {
        text += fmt::format(", {} recommended", ToString(granularity.recommended));
      }
      PrintField(style, "granularity", text);
    }
    std::vector<std::string_view> can;
    std::vector<std::string_view> cannot;
    for (const Capability& capability : kCapabilities) {
      (*device.capabilities.*capability.member ? can : cannot).emplace_back(capability.name);
    }
    if (!can.empty()) PrintField(style, "can", WrapList(can, kFieldIndent));
    if (!cannot.empty()) PrintField(style, "cannot", WrapList(cannot, kFieldIndent));
  }
  if (!device.status.ok()) PrintField(style, "error", style.Bad(device.status.ToString()));
}

void Print(const DriverReport& driver, const DefaultReport& chosen, const Style& style) {
  std::string state;
  if (!driver.status.ok()) {
    state = style.Warn("not usable: ") + std::string(driver.status.message());
  } else if (driver.devices.empty()) {
    state = style.Warn("no devices");
  } else {
    state =
        fmt::format("{} device{}", driver.devices.size(), driver.devices.size() == 1 ? "" : "s");
  }
  fmt::print("{} {}\n", style.Bold(fmt::format("Driver {}:", driver.name)), state);
  for (const DeviceReport& device : driver.devices) {
    Print(device, driver.name == chosen.driver && device.info.ordinal == 0, style);
  }
  fmt::print("\n");
}

void Print(const std::vector<DriverReport>& drivers, const DefaultReport& chosen) {
  const Style style(stdout);
  fmt::print("keel {}\n\n", KEEL_VERSION_STRING);
  for (const DriverReport& driver : drivers) Print(driver, chosen, style);
  if (chosen.status.ok()) {
    fmt::print("Default: {} device 0 ({})\n", chosen.driver, chosen.reason);
  } else {
    fmt::print("Default: none\n");
  }
}

ExitCode Run(const Options& options) {
  std::vector<hal::Driver*> drivers = hal::Registry::Global().drivers();
  if (!options.driver.empty()) {
    auto driver = FindDriver(options.driver);
    if (!driver.ok()) return ReportError("info", driver.status());
    drivers = {*driver};
  }
  std::vector<DriverReport> reports;
  for (hal::Driver* driver : drivers) {
    reports.push_back(Examine(*driver));
    // A driver that is not there is something to show. One that was configured wrongly (KEEL_SIM)
    // is something to correct: whatever is shown instead would not be what was asked for.
    if (reports.back().status.code() == StatusCode::kInvalidArgument) {
      return ReportError("info", reports.back().status);
    }
  }
  const DefaultReport chosen = ExamineDefault();

  if (options.json) {
    fmt::print("{}\n", ToJson(reports, chosen).dump(2, ' ', false, Json::error_handler_t::replace));
  } else {
    Print(reports, chosen);
  }
  // With --driver, the default is a side remark.
  if (!chosen.status.ok() && options.driver.empty()) {
    return ReportError("info", chosen.status);
  }
  return kSuccess;
}

}  // namespace

Command AddInfo(CLI::App& parent) {
  auto options = std::make_shared<Options>();
  CLI::App* app = parent.add_subcommand("info", "Show drivers, devices and what they can do");
  AddDriverOption(*app, options->driver, "Show this driver only");
  app->add_flag("--json", options->json, "Print one JSON object instead of text");
  app->footer(
      "Without KEEL_DRIVER, the default is device 0 of the first real driver that has a\n"
      "device that works, else of the simulated one.");
  return {app, [options] { return Run(*options); }};
}

}  // namespace keel::cli
