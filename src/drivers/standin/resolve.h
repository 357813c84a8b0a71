// Work in the terms of the simulated device.
#pragma once

#include <memory>
#include <vector>

#include "drivers/standin/process.h"

namespace keel::standin {

struct ResolvedWork {
  hal::Command command;
  std::vector<hal::KernelArg> arguments;           // what a launch refers to
  std::vector<std::shared_ptr<hal::Device>> open;  // whose ids the command names
};

// For a stream or a graph of `context`. Child is left to the caller, who knows graphs.
Cause Resolve(const Work& work, Context& context, hal::Device& device, ResolvedWork* resolved);

// Whether the whole range may be used so, now. Host memory always may.
bool MayUse(hal::Device& device, const hal::Location& location, Bytes size, hal::Access access);

// A stream and what is needed to use it.
struct StreamUse {
  Context* context = nullptr;
  std::shared_ptr<hal::Device> device;
  std::shared_ptr<StreamObject> object;
  bool legacy = false;

  hal::StreamHandle handle() const { return object->handle; }
};
// kInvalidContext, kInvalidHandle, kLost. kCaptureImplicit for the legacy default stream while a
// stream that waits for it captures: that capture is then broken, unless it was only looked at.
enum class Implicit { kBreaks, kOnlyRefuses };
Cause FindStream(void* stream, StreamUse* use, Implicit implicit = Implicit::kBreaks);

// The stream's capture is invalidated, as by a call that may not be made in it.
void BreakCapture(hal::Device& device, hal::StreamHandle stream);

}  // namespace keel::standin
