// The schema of PyTorch's memory snapshots, whether pickled (as its memory._snapshot() is stored)
// or as JSON.
#pragma once

#include "keel/base/bytes.h"
#include "keel/base/result.h"
#include "keel/trace/snapshot.h"
#include "trace/document.h"

namespace keel::trace {

// kInvalidArgument names the entry that is wrong, and the byte at which it starts. kOutOfRange: the
// snapshot would take more than `limit`. Actions that this version does not know, and fields that
// it does not need, are passed over. Blocks are taken as they are: whether they tile their segment,
// CheckSnapshot says.
Result<Snapshot> ReadTorchSnapshot(const Document& document, Bytes limit);

}  // namespace keel::trace
