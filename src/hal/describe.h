// How the owning classes name what they give back, in the log and on the retry list.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "keel/base/bytes.h"

namespace keel::hal {

// "DestroyStream of 0x5"
inline std::string DescribeHandle(std::string_view what, std::uint64_t value) {
  return std::string(what) + " of " + ToString(DeviceAddress(value));
}
// "Unmap of 2 MiB at 0x7f0000000000"
inline std::string DescribeRange(std::string_view what, std::uint64_t address, Bytes size) {
  return std::string(what) + " of " + ToString(size) + " at " + ToString(DeviceAddress(address));
}

}  // namespace keel::hal
