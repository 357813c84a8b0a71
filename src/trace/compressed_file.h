// Files that may be compressed, which the bytes say and not the name.
#pragma once

#include <string>

#include "keel/base/bytes.h"
#include "keel/base/result.h"

namespace keel::trace {

// All of a file, as it is. kNotFound and others name it; kOutOfRange if there is more than `limit`
// (a device that never ends, too).
Result<std::string> ReadWholeFile(const std::string& path, Bytes limit);

// The bytes, unpacked if they are gzip or xz, also of several pieces. kOutOfRange if more than
// `limit` would come out: a small file can say a terabyte. kInvalidArgument where the packed bytes
// are broken or cut, with the offset; kUnimplemented for xz in a build without that library.
Result<std::string> Unpack(std::string bytes, Bytes limit);

}  // namespace keel::trace
