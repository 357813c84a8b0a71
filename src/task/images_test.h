// Images for tests, of orchestration_test_module.cc and the simulated device's own kernels.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "keel/hal/standard_kernels.h"
#include "keel/task/image.h"

namespace keel::task {

inline std::vector<std::byte> OrchestrationCode(const std::string& behaviour) {
  const std::string path = std::string(KEEL_TASK_MODULES) + "/task_test_" + behaviour + ".so";
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (bytes.empty()) {
    std::cerr << "a test's module is not there: " << path << std::endl;
    std::abort();
  }
  const auto* first = reinterpret_cast<const std::byte*>(bytes.data());
  return {first, first + bytes.size()};
}

inline Image BuildImage(std::vector<std::byte> orchestration,
                        std::initializer_list<std::string_view> kernels) {
  ImageBuilder builder;
  builder.SetOrchestration(std::move(orchestration));
  if (kernels.size() != 0) {
    const std::uint32_t part = builder.AddRegisteredPart("keel");
    for (const std::string_view kernel : kernels) builder.AddKernel(part, std::string(kernel));
  }
  Result<Image> image = builder.Build();
  if (!image.ok()) {
    std::cerr << "a test's image: " << image.status().ToString() << std::endl;
    std::abort();
  }
  return *std::move(image);
}

// Does nothing, with any arguments. Variants have other bytes, behind the end of the code.
inline Image NoopImage(unsigned variant = 0) {
  std::vector<std::byte> code = OrchestrationCode("Noop");
  for (int i = 0; i < 4; ++i) code.push_back(static_cast<std::byte>(variant >> (8 * i)));
  return BuildImage(std::move(code), {});
}
// (in f32 a, in f32 b, out f32 c): c = a + b
inline Image AddImage() { return BuildImage(OrchestrationCode("Add"), {hal::kernels::kAdd}); }
// (in f32 x, inout f32 y; f32 a): y += a * x
inline Image AxpyImage() { return BuildImage(OrchestrationCode("Axpy"), {hal::kernels::kAxpy}); }
// (out u32 x; u32 value): x = value
inline Image FillImage() { return BuildImage(OrchestrationCode("Fill"), {hal::kernels::kFill}); }
// (out u32 x, out u32 y, out u32 z): x = 1, y = 2, z = 3
inline Image ThreeImage() { return BuildImage(OrchestrationCode("Three"), {hal::kernels::kFill}); }
// (i32 code): returns it, without a message.
inline Image ReturnImage() { return BuildImage(OrchestrationCode("Return"), {}); }
// Launches nothing, and fails with code 3 and "told to fail".
inline Image FailImage() { return BuildImage(OrchestrationCode("Fail"), {}); }
// Raises SIGSEGV in the orchestration code.
inline Image CrashImage() { return BuildImage(OrchestrationCode("Crash"), {}); }
// (inout u64[1]; u64 microseconds): a kernel that runs so long
inline Image SpinImage() { return BuildImage(OrchestrationCode("Spin"), {hal::kernels::kSpin}); }
// (i32 process, i32 descriptor): orchestration code that waits as long as the process has it
inline Image HoldImage() { return BuildImage(OrchestrationCode("Hold"), {}); }
// Loading its code takes a minute.
inline Image StallImage() { return BuildImage(OrchestrationCode("Stall"), {}); }
// (out u32 x; u32 kernel...): launches x = 7 by each kernel, of which only 0 can, and does not look
// at what came of it.
inline Image CarelessImage() {
  return BuildImage(OrchestrationCode("Careless"), {hal::kernels::kFill, hal::kernels::kAdd});
}

}  // namespace keel::task
