#include "base/private_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>

namespace keel {

Result<UniqueFd> CreatePrivateFile(const char* name, unsigned flags) {
  UniqueFd file(memfd_create(name, flags));
  if (!file.valid()) return SystemError(fmt::format("memfd_create of {}", name), errno);
  // It begins with all rights for everybody.
  if (fchmod(file.get(), S_IRUSR | S_IWUSR) != 0) {
    return SystemError(fmt::format("the rights of {}", name), errno);
  }
  return file;
}

bool IsSealed(const UniqueFd& file, int seals) {
  const int found = fcntl(file.get(), F_GET_SEALS);
  return found >= 0 && (found & seals) == seals;
}

}  // namespace keel
