// An image of the standard kernels from a file, for devices that Keel brings no image for.
#pragma once

#include <string>

namespace keel::vendor {

// The bytes of the file that the environment variable names. Empty without the variable; a file
// that cannot be read is logged, and empty too.
std::string KernelsFromFile(const char* variable);

}  // namespace keel::vendor
