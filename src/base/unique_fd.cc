#include "keel/base/unique_fd.h"

#include <unistd.h>

#include <cerrno>
#include <string>

#include "keel/base/log.h"
#include "keel/base/status.h"

namespace keel {

void UniqueFd::Reset(int fd) {
  const int old = std::exchange(fd_, fd);
  if (old < 0 || old == fd) return;
  // Never again after EINTR: the descriptor is gone already, and its number may be somebody else's.
  if (close(old) != 0 && errno != EINTR) {
    Log(LogLevel::kError, SystemError("close(" + std::to_string(old) + ")", errno).ToString());
  }
}

}  // namespace keel
