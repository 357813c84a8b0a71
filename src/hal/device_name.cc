#include "keel/hal/device_name.h"

#include <charconv>
#include <system_error>

#include "base/quote.h"

namespace keel::hal {

Result<DeviceName> DeviceName::Parse(std::string_view text) {
  DeviceName name;
  if (text.empty()) return name;
  std::string_view number = text;
  bool good = true;
  if (const std::size_t colon = text.find(':'); colon != std::string_view::npos) {
    name.driver = text.substr(0, colon);
    good = !name.driver.empty();
    number.remove_prefix(colon + 1);
  }
  const char* const begin = number.data();
  const char* const end = begin + number.size();
  const auto [rest, error] = std::from_chars(begin, end, name.ordinal);
  if (!good || error != std::errc() || rest != end || name.ordinal < 0) {
    return InvalidArgument("a device is a whole number from 0, alone or as in 'sim:0', not " +
                           Quote(text));
  }
  return name;
}

std::string DeviceName::ToString() const {
  return (driver.empty() ? "" : driver + ":") + std::to_string(ordinal);
}

}  // namespace keel::hal
