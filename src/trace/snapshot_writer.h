// A Snapshot in the schema of PyTorch's, for any format that has plain values.
#pragma once

#include "keel/trace/snapshot.h"
#include "trace/value_writer.h"

namespace keel::trace {

// `snapshot` has passed CheckSnapshot. Ends early if the writer has failed, which its Finish says.
void WriteTorchSnapshot(const Snapshot& snapshot, ValueWriter& writer);

}  // namespace keel::trace
