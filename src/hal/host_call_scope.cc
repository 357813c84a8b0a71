#include "hal/host_call_scope.h"

#include <fmt/format.h>

#include <utility>

namespace keel::hal {
namespace {

thread_local bool in_host_call = false;

}  // namespace

HostCallScope::HostCallScope() : before_(std::exchange(in_host_call, true)) {}
HostCallScope::~HostCallScope() { in_host_call = before_; }

bool InHostCall() { return in_host_call; }

Status RefusedInHostCall(Primitive primitive) {
  return FailedPrecondition(fmt::format(
      "{} was called from inside a host call, which must not use devices; do it elsewhere",
      PrimitiveName(primitive)));
}

}  // namespace keel::hal
