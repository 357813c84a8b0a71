// Reading a file that may be compressed, by what it contains and not by its name.
#pragma once

#include <string>

#include "keel/base/bytes.h"
#include "keel/base/result.h"

namespace keel::trace {

// The contents, unpacked if the file is gzip or xz. kNotFound and others name the file; kOutOfRange
// if more than `limit` would come out; kInvalidArgument where the packed bytes are broken, with the
// offset; kUnimplemented for xz in a build without that library.
Result<std::string> ReadMaybeCompressed(const std::string& path, Bytes limit = 16_GiB);

}  // namespace keel::trace
