// For tests: what rank 0 runs. The first argument says what:
//
//   busy N       tasks on N workers without end; says "ready", and ends with 1 at the first error,
//                which it prints
//   idle N       N workers that have nothing to do; says "ready", and waits for its input to end
//   large        a copy of 1 GiB to a worker and back, compared
//   nothing      no orchestrator at all
//   exit N       an orchestrator, and then that exit code
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "keel/task/orchestrator.h"
#include "task/images_test.h"

namespace {

using namespace keel;  // NOLINT

template <class T>
T Need(Result<T> result) {
  if (result.ok()) return *std::move(result);
  std::fprintf(stderr, "error: %s\n", result.status().ToString().c_str());
  std::exit(1);
}

void Check(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "error: %s\n", status.ToString().c_str());
  std::exit(1);
}

void Ready() {
  std::printf("ready\n");
  std::fflush(stdout);
}

std::unique_ptr<task::Orchestrator> Make(int workers) {
  task::OrchestratorOptions options;
  options.transport = task::Transport::kMpi;
  options.workers.resize(static_cast<std::size_t>(workers));
  return Need(task::Orchestrator::Create(options));
}

int Busy(int workers) {
  const auto orchestrator = Make(workers);
  const task::Callable fill = Need(orchestrator->Register(task::FillImage()));
  std::vector<std::uint32_t> out(1000);
  const std::array<std::uint32_t, 1> shape{1000};
  for (std::uint32_t i = 0;; ++i) {
    for (int w = 0; w < workers; ++w) {
      task::Arguments arguments;
      arguments.Add(task::Tag::kOut, task::Tensor::Host(out.data(), task::DataType::kUInt32, shape))
          .AddScalar(i);
      const auto handle = Need(orchestrator->Submit(
          fill, arguments, {.worker = static_cast<task::WorkerId>(w), .timeout = {}}));
      Check(handle.Wait(Deadline::After(std::chrono::seconds(60))));
      if (out != std::vector<std::uint32_t>(1000, i)) return 3;
    }
    if (i == 10) Ready();
  }
}

int Large() {
  constexpr Bytes kSize = 1_GiB;
  const auto orchestrator = Make(1);
  std::vector<std::uint64_t> sent(kSize.count() / 8);
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = i * 0x9e37'79b9'7f4a'7c15ULL;
  const DeviceAddress block = Need(orchestrator->Malloc(0, kSize));
  Check(orchestrator->CopyTo(0, block, sent.data(), kSize));
  std::vector<std::uint64_t> got(sent.size());
  Check(orchestrator->CopyFrom(0, got.data(), block, kSize));
  return got == sent ? 0 : 3;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const int number = argc > 2 ? std::atoi(argv[2]) : 1;
  if (what == "busy") return Busy(number);
  if (what == "large") return Large();
  if (what == "nothing") return 0;
  if (what == "exit") {
    Make(1);
    return number;
  }
  if (what == "idle") {
    const auto orchestrator = Make(number);
    Ready();
    while (std::getchar() != EOF) {
    }
    return 0;
  }
  return 2;
}
