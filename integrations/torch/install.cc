// What keel.torch calls, by name.
#include <torch/csrc/cuda/CUDAPluggableAllocator.h>

#include <cstdio>
#include <exception>

#include "keel_allocator.h"

// Makes Keel the allocator of PyTorch. 0, or 1 with the reason in `message`.
extern "C" __attribute__((visibility("default"))) int keel_torch_install(char* message,
                                                                         std::size_t room) {
  try {
    torch::cuda::CUDAPluggableAllocator::changeCurrentAllocator(keel::torch::TheAllocator());
    return 0;
  } catch (const std::exception& error) {
    std::snprintf(message, room, "%s", error.what());
    return 1;
  }
}
