#include "base/loaded_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "base/private_file.h"
#include "keel/base/unique_fd.h"

namespace keel {
namespace {

// The loader takes a path that it has open for the same library, and descriptors are used again: a
// path that was never used before says otherwise. The slashes are the digits of a number.
std::string UniquePath(int descriptor) {
  static std::atomic<std::uint64_t> next{1};
  std::string path = "/proc/self/fd";
  for (std::uint64_t digits = next.fetch_add(1); digits != 0; digits >>= 1) {
    path += (digits & 1) != 0 ? "//." : "/.";
  }
  return path + fmt::format("/{}", descriptor);
}

}  // namespace

Result<std::shared_ptr<void>> LoadLibraryFile(const std::string& path, std::string_view origin) {
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return InvalidArgument(
        fmt::format("{} cannot be loaded as a shared object: {}", origin, dlerror()));
  }
  return std::shared_ptr<void>(handle, [](void* library) { dlclose(library); });
}

Result<std::shared_ptr<void>> LoadLibraryImage(std::span<const std::byte> image,
                                               std::string_view origin) {
  constexpr char kMagic[] = {'\x7f', 'E', 'L', 'F'};
  if (image.size() < sizeof(kMagic) || std::memcmp(image.data(), kMagic, sizeof(kMagic)) != 0) {
    return InvalidArgument(
        fmt::format("{}, of {} bytes, is not a shared object", origin, image.size()));
  }
  KEEL_ASSIGN(const UniqueFd file, CreatePrivateFile("keel-library", MFD_CLOEXEC));
  for (std::size_t written = 0; written < image.size();) {
    const ssize_t n = write(file.get(), image.data() + written, image.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemError("writing a shared object to memory", errno);
    written += static_cast<std::size_t>(n);
  }
  return LoadLibraryFile(UniquePath(file.get()), origin);
}

Result<std::string> FileOf(const void* function) {
  // Not dladdr: it names a program as it was called, and a library as it was asked for, which may
  // both be something else in the current folder.
  const auto address = reinterpret_cast<std::uintptr_t>(function);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t first = 0;
    std::uintptr_t end = 0;
    int at = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %*s %*s %*s %*s %n", &first, &end,
                    &at) != 2 ||
        address < first || address >= end) {
      continue;
    }
    std::string path = line.substr(static_cast<std::size_t>(at));
    if (path.starts_with('/')) return path;
    break;
  }
  return NotFound("no file has the function");
}

}  // namespace keel
