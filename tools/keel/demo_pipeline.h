// keel demo's pipeline: requests through two layers, whose weights stay where they are used.
#pragma once

#include <cstdint>

#include "demo_steps.h"

namespace keel::cli {

constexpr std::uint32_t kPipelineRequests = 100;

// A hundred requests through two layers of a network, on two of four workers: with the weights
// resident there, and with the weights sent along with every request. The results must be those of
// the host bit for bit, and what was copied is counted by the workers.
// kInvalidArgument: so many bytes are no two layers.
Status CheckPipelineWeights(Bytes weights);
std::string PipelineMissing(const hal::Capabilities& capabilities);
Result<Shown> RunPipeline(const StepContext& context);

}  // namespace keel::cli
