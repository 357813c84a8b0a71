#include "keel/trace/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <random>
#include <system_error>
#include <utility>

namespace keel::trace {

Result<AtomicFile> AtomicFile::Create(const std::string& path) {
  struct stat old{};
  const bool replaces = stat(path.c_str(), &old) == 0;
  if (replaces && !S_ISREG(old.st_mode)) {
    return FailedPrecondition(fmt::format("writing '{}': it is there and is no file", path));
  }
  std::string target = path;
  if (replaces) {
    std::error_code error;
    target = std::filesystem::canonical(path, error).string();
    if (error) return SystemError(fmt::format("writing '{}'", path), error.value());
  }
  std::random_device random;
  for (;;) {
    std::string temporary = fmt::format("{}.{:08x}.tmp", target, random());
    UniqueFd fd(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!fd.valid() && errno == EEXIST) continue;
    if (!fd.valid()) return SystemError(fmt::format("creating '{}'", temporary), errno);
    AtomicFile file(std::move(fd), std::move(target), std::move(temporary));
    if (replaces && fchmod(file.fd_.get(), old.st_mode & 07777) != 0) {
      return SystemError(fmt::format("setting the permissions of '{}'", file.temporary_), errno);
    }
    return file;
  }
}

AtomicFile::AtomicFile(UniqueFd fd, std::string path, std::string temporary)
    : fd_(std::move(fd)), path_(std::move(path)), temporary_(std::move(temporary)) {}

AtomicFile::~AtomicFile() {
  if (fd_.valid()) unlink(temporary_.c_str());
}

Status AtomicFile::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(fd_.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError(fmt::format("writing '{}'", temporary_), errno);
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return OkStatus();
}

Status AtomicFile::Commit() {
  if (fsync(fd_.get()) != 0) return SystemError(fmt::format("writing '{}'", temporary_), errno);
  if (rename(temporary_.c_str(), path_.c_str()) != 0) {
    return SystemError(fmt::format("renaming '{}' to '{}'", temporary_, path_), errno);
  }
  fd_.Reset(-1);
  return OkStatus();
}

}  // namespace keel::trace
