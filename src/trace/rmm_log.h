// The log that RMM's logging adaptor writes: one line per allocation and free, as CSV.
#pragma once

#include <string_view>

#include "keel/base/bytes.h"
#include "keel/base/result.h"
#include "keel/trace/snapshot.h"

namespace keel::trace {

// Whether the first line is the header of such a log, or an event.
bool LooksLikeRmmLog(std::string_view text);

// Columns are found by the header's names, or are Thread, Time, Action, Pointer, Size, Stream
// without one; values may be quoted. A free is one event here and two in a Snapshot, requested and
// completed; a failed allocation is out-of-memory. The log is of one device, which becomes number
// 0, and threads are not kept. Times of day that pass midnight go on.
//
// kInvalidArgument names the line and its byte. kOutOfRange: the events would take more than
// `limit`.
Result<Snapshot> ReadRmmLog(std::string_view text, Bytes limit);

}  // namespace keel::trace
