// One case of the suite, and the table in which cases register themselves.
#pragma once

#include <string>
#include <vector>

#include "keel/hal/capabilities.h"

namespace keel::hal::conformance {

class CaseContext;

// What a case needs and does. Everything that stands here is looked at before it runs.
struct Traits {
  int devices = 1;           // skipped where the driver has fewer
  bool all_devices = false;  // opens all that there are, at least `devices`
  std::vector<bool Capabilities::*> needs;
  bool blocks = false;            // keeps a stream busy: needs kernels, or Join::hold
  bool stale_handles = false;     // skipped without Join::detects_stale_handles
  bool kernel_arguments = false;  // skipped without Join::checks_kernel_arguments
  // Runs in a process of its own, and what it leaves alive is not looked at.
  bool loses_device = false;
  // Not a case: the other process of one (CaseContext::RunHelper).
  bool helper = false;
};

struct Case {
  std::string group;
  std::string name;
  Traits traits;
  void (*body)(CaseContext& context) = nullptr;
  const char* file = "";
  int line = 0;

  std::string FullName() const { return group + "." + name; }
};

// All cases of the program. Complete when main() starts.
std::vector<Case>& RegisteredCases();

struct Registration {
  explicit Registration(Case test) { RegisteredCases().push_back(std::move(test)); }
};

}  // namespace keel::hal::conformance

// KEEL_CONFORMANCE_CASE(Events, CrossDeviceWait, .devices = 2, .blocks = true) {
//   ... context.device(0) ...
// }
#define KEEL_CONFORMANCE_CASE(group, name, ...)                                              \
  static void Case_##group##_##name(::keel::hal::conformance::CaseContext& context);         \
  static const ::keel::hal::conformance::Registration registration_##group##_##name(         \
      {#group, #name, ::keel::hal::conformance::Traits{__VA_ARGS__}, &Case_##group##_##name, \
       __FILE__, __LINE__});                                                                 \
  static void Case_##group##_##name([[maybe_unused]] ::keel::hal::conformance::CaseContext& context)

// The part of a case that runs in another process, with devices that were opened there.
#define KEEL_CONFORMANCE_HELPER(group, name) KEEL_CONFORMANCE_CASE(group, name, .helper = true)
