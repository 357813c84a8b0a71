// A shared object, loaded from a file or from bytes in memory, for as long as somebody holds it.
//
// From memory: each call loads a library of its own, with its own variables, also for equal bytes;
// it costs no descriptor and no file. The code runs with all rights of the process: what is given
// here must be trusted, and whole: the loader may crash on half a library. Any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "keel/base/result.h"

namespace keel {

// What dlsym takes. `origin` names it in errors. kInvalidArgument: it is not a shared object, or
// the loader does not want it.
Result<std::shared_ptr<void>> LoadLibraryFile(const std::string& path, std::string_view origin);
Result<std::shared_ptr<void>> LoadLibraryImage(std::span<const std::byte> image,
                                               std::string_view origin);

// The path, absolute and without links, of the file that a function of this process was loaded
// from: a library, or the program. Reads the list of all mappings. kNotFound: it is in no file.
Result<std::string> FileOf(const void* function);

}  // namespace keel
