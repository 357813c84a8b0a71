#include "task/worker_program.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/quote.h"

namespace keel::task {
namespace {

constexpr std::string_view kName = "keel-worker";

bool IsProgram(const std::string& path) {
  struct stat status{};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         access(path.c_str(), X_OK) == 0;
}

std::vector<std::filesystem::path> Folders() {
  std::vector<std::filesystem::path> folders;
  std::error_code none;
  Dl_info info{};
  // What links the archive has this in the program itself.
  if (dladdr(reinterpret_cast<const void*>(&FindWorkerProgram), &info) != 0 &&
      info.dli_fname != nullptr) {
    const std::filesystem::path library = std::filesystem::canonical(info.dli_fname, none);
    if (!none) {
      const std::filesystem::path folder = library.parent_path();
      folders = {folder, folder.parent_path() / "bin", folder.parent_path() / "libexec" / "keel"};
    }
  }
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", none);
  if (!none) folders.push_back(program.parent_path());
  const char* const path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "";
  while (!rest.empty()) {
    const std::size_t end = rest.find(':');
    const std::string_view folder = rest.substr(0, end);
    // Not the current folder, which an empty entry stands for: it may be anybody's.
    if (folder.starts_with('/')) folders.emplace_back(folder);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  return folders;
}

}  // namespace

Result<std::string> FindWorkerProgram(const std::string& given) {
  if (!given.empty()) {
    if (IsProgram(given)) return given;
    return NotFound(fmt::format(
        "worker_program {}: it is not there, or not a program that may be run", Quote(given)));
  }
  std::vector<std::string> looked;
  for (const std::filesystem::path& folder : Folders()) {
    std::string path = (folder / kName).string();
    if (IsProgram(path)) return path;
    looked.push_back(folder.string());
  }
  return NotFound(
      fmt::format("the program {} is in none of: {}. Install it with the library, or name "
                  "it in worker_program",
                  kName, fmt::join(looked, ", ")));
}

}  // namespace keel::task
