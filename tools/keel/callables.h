// Callables that the command line brings with it: images of its own orchestration code
// (orchestration/), whose bytes are part of the program.
#pragma once

#include "keel/base/result.h"
#include "keel/hal/module_source.h"
#include "keel/task/image.h"

namespace keel::cli {

// Launches nothing, with any arguments: what a task costs beside its work.
Result<task::Image> NoopImage();

// (in f32 x[m][k], in f32 w[experts][k][n], out f32 y[m][n]; u64 expert): y = max(x * w[expert],
// 0). `kernels`: Device::StandardKernels() of the devices that will run it. Every product is summed
// in the order of k and nothing is fused, so that all devices, and the host, get the same bits.
Result<task::Image> LayerImage(const hal::ModuleSource& kernels);

}  // namespace keel::cli
