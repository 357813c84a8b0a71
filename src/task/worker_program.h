// Where the program of worker processes is.
#pragma once

#include <string>

#include "keel/base/result.h"

namespace keel::task {

// The path of `keel-worker`, or of `given` if that is not empty. Looks beside the library that this
// code is in, in ../bin and ../libexec/keel from there, beside the program, and on PATH. kNotFound
// lists where it looked.
Result<std::string> FindWorkerProgram(const std::string& given);

}  // namespace keel::task
