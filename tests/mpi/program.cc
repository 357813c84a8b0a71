// For tests: what rank 0 runs. The first argument says what:
//
//   busy N       tasks on N workers without end; says "ready", and ends with 1 at the first error,
//                which it prints
//   idle N       N workers that have nothing to do; says which devices they have, and "ready", and
//                waits for its input to end
//   large        a task with a tensor in, and one in and out, of several pieces each; and a copy to
//                a worker and back; compared
//   leave N      tasks with large tensors on two workers, N of which it waits for; exits with 0
//   outlive      a task that spins; an object that is destroyed after all else waits for it, and
//                prints "after: " and what became of it
//   echo         round trips of nothing with worker 0's rank, by two threads, while an orchestrator
//                and its worker copy; and with ranks that there are not
//   nothing      no orchestrator at all
//   exit N       an orchestrator, and then that exit code
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "keel/task/mpi_worker.h"
#include "keel/task/orchestrator.h"
#include "task/images_test.h"

namespace {

using namespace keel;  // NOLINT

constexpr auto kLong = std::chrono::seconds(30);

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
      Check(handle.Wait(Deadline::After(kLong)));
      if (out != std::vector<std::uint32_t>(1000, i)) return 3;
    }
    if (i == 10) Ready();
  }
}

constexpr std::uint32_t kElements = 10 << 20;  // of a large tensor: more than two pieces

task::Tensor Floats(std::vector<float>& of) {
  const std::array<std::uint32_t, 1> shape{static_cast<std::uint32_t>(of.size())};
  return task::Tensor::Host(of.data(), task::DataType::kFloat32, shape);
}

int Large() {
  const auto orchestrator = Make(1);
  std::vector<float> x(kElements);
  std::vector<float> y(kElements);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(i % 8191);
    y[i] = static_cast<float>(i % 127);
  }
  const task::Callable axpy = Need(orchestrator->Register(task::AxpyImage()));
  task::Arguments arguments;
  arguments.Add(task::Tag::kIn, Floats(x)).Add(task::Tag::kInOut, Floats(y)).AddScalar(2.0F);
  Check(Need(orchestrator->Submit(axpy, arguments)).Wait(Deadline::After(kLong)));
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (y[i] != static_cast<float>(i % 127) + 2 * static_cast<float>(i % 8191)) return 3;
  }

  const Bytes size = Bytes(std::uint64_t{kElements} * sizeof(float));
  const DeviceAddress block = Need(orchestrator->Malloc(0, size));
  Check(orchestrator->CopyTo(0, block, y.data(), size));
  Check(orchestrator->CopyFrom(0, x.data(), block, size));
  return x == y ? 0 : 4;
}

int Leave(int waited) {
  // Nothing is destroyed: it is all in use.
  auto& orchestrator = *Make(2).release();
  const task::Callable axpy = Need(orchestrator.Register(task::AxpyImage()));
  for (int i = 0; i < 5; ++i) {
    auto& tensor = *new std::vector<float>(kElements);
    task::Arguments arguments;
    arguments.Add(task::Tag::kIn, Floats(tensor))
        .Add(task::Tag::kInOut, Floats(*new std::vector<float>(kElements)))
        .AddScalar(2.0F);
    auto& handle = *new auto(Need(orchestrator.Submit(
        axpy, arguments, {.worker = static_cast<task::WorkerId>(i % 2), .timeout = {}})));
    if (i < waited) Check(handle.Wait(Deadline::After(kLong)));
  }
  return 0;
}

struct Outliving {
  ~Outliving() {
    if (!spinning) return;
    std::fprintf(stderr, "after: %s\n", spinning->Wait(Deadline::After(kLong)).ToString().c_str());
  }
  std::optional<task::TaskHandle> spinning;
};

int Outlive() {
  static Outliving outliving;  // older than the bridge
  auto& orchestrator = *Make(1).release();
  const task::Callable spin = Need(orchestrator.Register(task::SpinImage()));
  auto& flag = *new std::uint64_t(0);
  const std::array<std::uint32_t, 1> shape{1};
  task::Arguments arguments;
  arguments.Add(task::Tag::kInOut, task::Tensor::Host(&flag, task::DataType::kUInt64, shape))
      .AddScalar(std::uint64_t{60'000'000});
  outliving.spinning = Need(orchestrator.Submit(spin, arguments));
  return 0;
}

int Echo() {
  // Before there is an orchestrator: it starts MPI.
  Check(task::MpiRoundTrips(1, 10, Deadline::After(kLong)));
  const auto orchestrator = Make(1);
  std::vector<float> x(kElements, 2.5F);
  std::vector<float> y(kElements);
  std::array<Status, 2> echoed;
  std::array<std::thread, 2> threads;
  for (std::size_t i = 0; i < threads.size(); ++i) {
    threads[i] =
        std::thread([&, i] { echoed[i] = task::MpiRoundTrips(1, 1000, Deadline::After(kLong)); });
  }
  const Bytes size = Bytes(std::uint64_t{kElements} * sizeof(float));
  const DeviceAddress block = Need(orchestrator->Malloc(0, size));
  Check(orchestrator->CopyTo(0, block, x.data(), size));
  Check(orchestrator->CopyFrom(0, y.data(), block, size));
  for (std::thread& thread : threads) thread.join();
  for (const Status& status : echoed) Check(status);
  if (x != y) return 3;
  for (const int rank : {-1, 0, 2}) {
    if (task::MpiRoundTrips(rank, 1, Deadline::Never()).code() != StatusCode::kOutOfRange) return 4;
  }
  // More than can be made by then; the program exits while the rest of them are.
  constexpr std::uint64_t kMany = 1'000'000'000;
  const Status late = task::MpiRoundTrips(1, kMany, Deadline::After(std::chrono::milliseconds(1)));
  return late.code() == StatusCode::kDeadlineExceeded ? 0 : 5;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const int number = argc > 2 ? std::atoi(argv[2]) : 1;
  if (what == "busy") return Busy(number);
  if (what == "large") return Large();
  if (what == "leave") return Leave(number);
  if (what == "outlive") return Outlive();
  if (what == "echo") return Echo();
  if (what == "nothing") return 0;
  if (what == "exit") {
    Make(1);
    return number;
  }
  if (what == "idle") {
    const auto orchestrator = Make(number);
    for (const task::WorkerReport& report : orchestrator->Report()) {
      std::printf("worker %u has %s\n", report.worker, report.device.c_str());
    }
    Ready();
    while (std::getchar() != EOF) {
    }
    return 0;
  }
  return 2;
}
