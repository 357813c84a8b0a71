// Marks the thread that runs a HostCall. Every driver puts a scope around the function, and every
// primitive of every driver looks: a call from in there would wait for itself, and vendors'
// libraries answer it with anything from an error to a crash.
#pragma once

#include "keel/base/status.h"
#include "keel/hal/primitive.h"

namespace keel::hal {

class HostCallScope {
 public:
  HostCallScope();
  ~HostCallScope();
  HostCallScope(const HostCallScope&) = delete;
  HostCallScope& operator=(const HostCallScope&) = delete;

 private:
  const bool before_;
};

// Whether this thread is inside a HostCall, of any device.
bool InHostCall();

// kFailedPrecondition, which names what was called.
Status RefusedInHostCall(Primitive primitive);

}  // namespace keel::hal
