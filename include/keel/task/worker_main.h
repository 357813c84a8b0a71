// A program of your own as the process of a worker.
//
//   int main(int argc, char** argv) {
//     return keel::task::RunWorker(argc, argv, [](std::span<const std::byte> reference) {
//       return FunctionNamed(reference);  // Result<keel::task::HostFunction>
//     });
//   }
//
// An orchestrator starts it if OrchestratorOptions::worker_program names it, and calls its
// functions as callables by a reference (Orchestrator::RegisterReference): bytes that mean
// something to both programs, as a name does. `keel-worker` is such a program without functions.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "keel/base/export.h"
#include "keel/base/result.h"
#include "keel/task/host_function.h"

namespace keel::task {

// The function that a reference means, or why there is none, which the one who registers it is
// told; an exception is kUnknown. Called once for each registration, by the thread that called
// RunWorker. The function is called by another one, one task at a time.
using FindFunction = std::function<Result<HostFunction>(std::span<const std::byte> reference)>;

// Serves until the orchestrator says that it ends, or is gone; returns the program's exit code.
// Precondition: argv as the orchestrator made it, without OrchestratorOptions::worker_arguments. It
// closes every file but the standard streams and those that the orchestrator gave it, and ignores
// the terminal's interrupt.
KEEL_EXPORT int RunWorker(int argc, char** argv, FindFunction find = nullptr);

}  // namespace keel::task
