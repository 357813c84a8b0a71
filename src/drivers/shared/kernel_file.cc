#include "drivers/shared/kernel_file.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "keel/base/log.h"

namespace keel::vendor {

std::string KernelsFromFile(const char* variable) {
  const char* path = std::getenv(variable);
  if (path == nullptr || *path == '\0') return {};
  std::ifstream file(path, std::ios::binary);
  std::string image(std::istreambuf_iterator<char>(file), {});
  if (image.empty()) {
    Log(LogLevel::kWarn,
        fmt::format("{}: cannot read '{}'; there are no standard kernels", variable, path));
  }
  return image;
}

}  // namespace keel::vendor
