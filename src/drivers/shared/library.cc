#include "drivers/shared/library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>

namespace keel::vendor {

Result<Library> Library::Open(std::string_view what, const std::vector<std::string>& names) {
  const std::string variable = fmt::format("KEEL_{}_LIBRARY", what);
  if (const char* path = std::getenv(variable.c_str()); path != nullptr && *path != '\0') {
    if (void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL)) return Library(handle, path);
    const char* error = dlerror();
    return Unavailable(fmt::format("no {} driver: {} says '{}': {}", what, variable, path,
                                   error == nullptr ? "unknown" : error));
  }
  std::string why;
  for (const std::string& name : names) {
    if (void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return Library(handle, name);
    const char* error = dlerror();
    why += fmt::format("{}{}", why.empty() ? "" : "; ", error == nullptr ? "unknown" : error);
  }
  return Unavailable(fmt::format("no {} driver: {}", what, why));
}

void* Library::FindAddress(std::initializer_list<const char*> names, bool required) {
  for (const char* name : names) {
    if (void* address = dlsym(handle_, (prefix_ + name).c_str())) return address;
  }
  if (required) missing_.push_back(prefix_ + *names.begin());
  return nullptr;
}

Status Library::Missing() const {
  if (missing_.empty()) return OkStatus();
  return Unavailable(fmt::format("{} is too old: it has no {}", name_, fmt::join(missing_, ", ")));
}

}  // namespace keel::vendor
