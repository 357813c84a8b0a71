#include "drivers/shared/update_reason.h"

#include <iterator>

namespace keel::vendor {

std::string UpdateReason(int result) {
  constexpr const char* kReasons[] = {
      "",
      "an unexpected error",
      "topology changed",
      "the kind of a node changed",
      "the function of a kernel changed",
      "parameters changed in a way that is not supported",
      "something about a node is not supported",
      "the function of a kernel changed in a way that is not supported",
      "the attributes of a node changed in a way that is not supported",
  };
  const auto index = static_cast<std::size_t>(result);
  return index < std::size(kReasons) ? kReasons[index] : "an unknown reason";
}

}  // namespace keel::vendor
