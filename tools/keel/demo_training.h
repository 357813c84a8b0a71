// keel demo's training loop: a small network that learns, run in three ways.
#pragma once

#include "demo_steps.h"

namespace keel::cli {

// Forward, backward and update of a network with two hidden layers, for a few hundred batches that
// are at changing addresses: command by command, as a graph that is recorded again in every step,
// and as one that was recorded once. The losses must agree bit for bit.
std::string TrainingMissing(const hal::Capabilities& capabilities);
Result<Shown> RunTraining(const StepContext& context);

}  // namespace keel::cli
