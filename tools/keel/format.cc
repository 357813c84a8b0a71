#include "format.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <system_error>

#include "keel/base/bytes.h"

namespace keel::cli {

std::string FormatDuration(Seconds duration) {
  struct Unit {
    double seconds;
    std::string_view name;
  };
  constexpr Unit kUnits[] = {{1.0, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}};
  const double seconds = duration.count();
  for (const Unit& unit : kUnits) {
    const double value = seconds / unit.seconds;
    if (value < 0.9995 && &unit != &kUnits[3]) continue;
    const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    // Below a microsecond decimals are noise.
    return fmt::format("{:.{}f} {}", value, &unit == &kUnits[3] ? 0 : decimals, unit.name);
  }
  return "0 ns";
}

Result<std::chrono::microseconds> ParseDuration(std::string_view text) {
  struct Unit {
    std::string_view name;
    double microseconds;
  };
  constexpr Unit kUnits[] = {{"us", 1}, {"ms", 1e3}, {"s", 1e6}};
  constexpr double kMost = 3600e6;
  double value = 0;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [rest, error] = std::from_chars(begin, end, value, std::chars_format::fixed);
  if (error != std::errc() || !(value >= 0)) {
    return InvalidArgument(fmt::format("must be a time such as 5ms, 500us or 0, not '{}'", text));
  }
  const std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  if (unit.empty()) {
    if (value == 0) return std::chrono::microseconds(0);
    return InvalidArgument(fmt::format("'{}' has no unit: write {}ms or {}us", text, text, text));
  }
  for (const Unit& known : kUnits) {
    if (unit != known.name) continue;
    const double microseconds = value * known.microseconds;
    if (microseconds > kMost) {
      return InvalidArgument(fmt::format("must be at most 3600s, not '{}'", text));
    }
    return std::chrono::microseconds(std::llround(microseconds));
  }
  return InvalidArgument(fmt::format("'{}' has an unknown unit: use s, ms or us", text));
}

std::string SizeMistake(const std::string& text) {
  const Result<Bytes> parsed = ParseBytes(text);
  return parsed.ok() ? std::string() : std::string(parsed.status().message());
}

std::string FormatCount(std::uint64_t count) {
  std::string digits = fmt::format("{}", count);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

nlohmann::ordered_json ErrorJson(const Status& status) {
  if (status.ok()) return nullptr;
  return {{"code", StatusCodeName(status.code())},
          {"message", status.message()},
          {"vendor_code", status.vendor_code()},
          {"vendor_name", status.vendor_name()}};
}

}  // namespace keel::cli
