// What a Python pickle contains, if it contains data only.
//
// A pickle is a program for a small machine, and can be made to run any code in the process that
// loads it. This reader knows the instructions that make plain values (None, booleans, integers,
// floats, strings, bytes, tuples, lists, dicts) in all protocols from 0 to 5, and refuses every
// other one by name. So a file from anywhere can be opened.
//
// It trusts nothing: lengths, counts, indices and depths are checked against what is there, and an
// error names the byte at which it was found.
#pragma once

#include <string>

#include "keel/base/bytes.h"
#include "keel/base/result.h"
#include "trace/document.h"

namespace keel::trace {

// kInvalidArgument: not a pickle, broken, or one that would run code. kOutOfRange: its values would
// take more than `limit`, which the bytes themselves do not count towards.
Result<Document> ParsePickle(std::string bytes, Bytes limit);

}  // namespace keel::trace
