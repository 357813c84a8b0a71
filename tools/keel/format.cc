#include "format.h"

#include <fmt/format.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>

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
