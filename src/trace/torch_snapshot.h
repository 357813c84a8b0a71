// PyTorch's memory snapshots: what its memory._snapshot() returns, pickled.
#pragma once

#include <string>

#include "keel/base/result.h"
#include "trace/history.h"

namespace keel::trace {

// kInvalidArgument names the entry that is wrong. Actions that this version does not know, and
// fields that it does not need, are passed over.
Result<History> ReadTorchSnapshot(std::string pickle);

}  // namespace keel::trace
