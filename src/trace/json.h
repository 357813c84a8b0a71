// What a JSON text contains.
#pragma once

#include <string_view>

#include "keel/base/bytes.h"
#include "keel/base/result.h"
#include "trace/document.h"

namespace keel::trace {

// kInvalidArgument: not JSON, broken, or nested deeper than 64, with the byte. kOutOfRange: its
// values would take more than `limit`. Equal strings are one value; the text is not kept. A byte
// order mark may come first.
Result<Document> ParseJson(std::string_view text, Bytes limit);

}  // namespace keel::trace
