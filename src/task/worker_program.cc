#include "task/worker_program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/loaded_library.h"
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
  const Result<std::string> file = FileOf(reinterpret_cast<const void*>(&FindWorkerProgram));
  if (file.ok()) {
    const std::filesystem::path folder = std::filesystem::path(*file).parent_path();
    folders = {folder, folder.parent_path() / "bin", folder.parent_path() / "libexec" / "keel"};
  }
  std::error_code none;
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
