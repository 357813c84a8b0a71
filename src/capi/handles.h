// The handles of the C interface, and what is behind them.
//
// A handle is a number in the shape of a pointer, which nobody ever follows: it says what kind it
// is, in which process it was made, and which one it is; a table has the rest. So a handle that was
// closed, comes from the other side of a fork, or is none at all is an error and never an access to
// memory. Numbers are not used twice.
#pragma once

#include <memory>

#include "keel/base/result.h"
#include "keel/c.h"
#include "keel/hal/stream.h"
#include "keel/memory/process_memory.h"

namespace keel::capi {

using memory::DeviceMemory;

// What keel_stream stands for. Whoever uses it holds it: the stream is closed with the last.
struct StreamObject {
  std::shared_ptr<DeviceMemory> memory;
  hal::Stream stream;
};

Result<keel_device> Add(std::shared_ptr<DeviceMemory> memory);
Result<keel_stream> Add(std::shared_ptr<StreamObject> stream);

// kInvalidArgument says what the handle is instead; kFailedPrecondition: it is of the parent
// process.
Result<std::shared_ptr<DeviceMemory>> Find(keel_device device);
// The handle, or for NULL the default stream, of this device. kInvalidArgument: it is another's.
Result<std::shared_ptr<StreamObject>> Find(const std::shared_ptr<DeviceMemory>& memory,
                                           keel_stream stream);

// As Find, and the handle is none any more.
Result<std::shared_ptr<DeviceMemory>> Remove(keel_device device);
Result<std::shared_ptr<StreamObject>> Remove(keel_stream stream);

}  // namespace keel::capi
