// DeviceName: how a device is written: "1" is a device of the default driver, "sim:1" one of a
// named driver.
#pragma once

#include <string>
#include <string_view>

#include "keel/base/export.h"
#include "keel/base/result.h"

namespace keel::hal {

struct DeviceName {
  std::string driver;  // empty: the registry's default
  int ordinal = 0;     // among the driver's devices

  // Empty text is device 0 of the default driver. kInvalidArgument quotes the text.
  KEEL_EXPORT static Result<DeviceName> Parse(std::string_view text);
  // What Parse reads as the same.
  KEEL_EXPORT std::string ToString() const;

  friend bool operator==(const DeviceName&, const DeviceName&) = default;
};

}  // namespace keel::hal
