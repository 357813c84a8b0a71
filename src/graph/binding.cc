#include "keel/graph/binding.h"

#include <array>
#include <utility>

namespace keel::graph {
namespace {

constexpr std::array kPolicies = {
    std::pair{Policy::kAuto, std::string_view("auto")},
    std::pair{Policy::kResident, std::string_view("resident")},
    std::pair{Policy::kInPlace, std::string_view("in-place")},
    std::pair{Policy::kCopy, std::string_view("copy")},
    std::pair{Policy::kPatch, std::string_view("patch")},
    std::pair{Policy::kRemap, std::string_view("remap")},
    std::pair{Policy::kRetrace, std::string_view("retrace")},
};

}  // namespace

std::string_view AccessName(BindingAccess access) {
  switch (access) {
    case BindingAccess::kIn:
      return "in";
    case BindingAccess::kOut:
      return "out";
    case BindingAccess::kInOut:
      return "in-out";
    case BindingAccess::kScratch:
      return "scratch";
    case BindingAccess::kResident:
      return "resident";
  }
  return "unknown";
}

std::string_view PolicyName(Policy policy) {
  for (const auto& [value, name] : kPolicies) {
    if (value == policy) return name;
  }
  return "unknown";
}

Result<Policy> ParsePolicy(std::string_view name) {
  std::string names;
  for (const auto& [value, its_name] : kPolicies) {
    if (its_name == name) return value;
    names += (names.empty() ? "" : ", ") + std::string(its_name);
  }
  return InvalidArgument("no policy '" + std::string(name) + "': there are " + names);
}

}  // namespace keel::graph
