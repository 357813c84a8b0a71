#include "callables.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "keel/hal/standard_kernels.h"
#include "orchestration_code.h"

namespace keel::cli {
namespace {

std::vector<std::byte> BytesOf(std::string_view code) {
  const auto bytes = std::as_bytes(std::span(code));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

Result<task::Image> NoopImage() {
  return task::ImageBuilder().SetOrchestration(BytesOf(embedded::NoopModule())).Build();
}

Result<task::Image> LayerImage(const hal::ModuleSource& kernels) {
  task::ImageBuilder builder;
  builder.SetOrchestration(BytesOf(embedded::LayerModule()));
  std::uint32_t part = 0;
  switch (kernels.kind) {
    case hal::ModuleSource::Kind::kRegistered:
      part = builder.AddRegisteredPart(kernels.name);
      break;
    case hal::ModuleSource::Kind::kImage:
      part = builder.AddPart({kernels.image.begin(), kernels.image.end()});
      break;
    default:
      return Unimplemented("an image of kernels that are in a file or on a device");
  }
  builder.AddKernel(part, std::string(hal::kernels::kMatMul));
  builder.AddKernel(part, std::string(hal::kernels::kRelu));
  return builder.Build();
}

}  // namespace keel::cli
