// What keel.torch calls, by name.
#include <torch/csrc/cuda/CUDAPluggableAllocator.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <limits>

#include "keel_allocator.h"

// Makes Keel the allocator of PyTorch. 0, or 1 with the reason in `message`.
extern "C" __attribute__((visibility("default"))) int keel_torch_install(char* message,
                                                                         std::size_t room) {
  try {
    const auto& allocator = keel::torch::TheAllocator();
    torch::cuda::CUDAPluggableAllocator::changeCurrentAllocator(allocator);
    // What torch.accelerator asks, which the call above leaves as it was.
    c10::SetAllocator(c10::DeviceType::CUDA, allocator.get(),
                      std::numeric_limits<std::uint8_t>::max());
    return 0;
  } catch (const std::exception& error) {
    std::snprintf(message, room, "%s", error.what());
    return 1;
  }
}
