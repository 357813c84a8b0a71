// For tests: what rank 0 runs. The first argument says what:
//
//   busy N       tasks on N workers without end; says "ready", and ends with 1 at the first error,
//                which it prints
//   survive N    tasks on N workers that are killed meanwhile, until its input ends: what is right,
//   or
//                kUnavailable. For each line of it says "ready", when all have worked since; and in
//                the end what there was of each
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
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
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

// Uses workers that somebody kills, from several threads, and looks at all that comes of it.
class Survivor {
 public:
  explicit Survivor(int workers)
      : workers_(static_cast<std::size_t>(workers)),
        orchestrator_(Make(workers)),
        fill_(Need(orchestrator_->Register(task::FillImage()))),
        add_(Need(orchestrator_->Register(task::AddImage()))) {}

  int Run() {
    std::array<std::thread, 2> users;
    for (unsigned i = 0; i < users.size(); ++i) {
      users[i] = std::thread([this, i] {
        for (std::mt19937 random(i + 1); !stop_;) {
          Count(random() % 3 == 0 ? UseMemory(random) : RunChain(random), right_);
        }
      });
    }
    int kept = 0;
    int gone = 0;
    for (int c = 0; !failed_ && (c = std::getchar()) != EOF;) {
      if (c != '\n') continue;
      WaitUntilAllHaveWorked();
      gone += Look();
      Keep(static_cast<float>(++kept));
      Ready();
    }
    stop_ = true;
    for (std::thread& user : users) user.join();
    Check(orchestrator_->WaitAll(Deadline::After(kLong)));
    WaitUntilAllAreUp();
    std::mt19937 random;
    for (int i = 0; i < 10 && !failed_; ++i) Check(RunChain(random));
    std::uint64_t restarts = 0;
    for (const task::WorkerReport& report : orchestrator_->Report()) restarts += report.restarts;
    std::printf("right %d, errors %d, gone %d, restarts %llu, live %zu\n", right_.load(),
                errors_.load(), gone, static_cast<unsigned long long>(restarts),
                static_cast<std::size_t>(orchestrator_->live_tasks()));
    return failed_ ? 3 : 0;
  }

 private:
  static constexpr std::uint32_t kFew = 64;
  static constexpr std::uint32_t kMany = 300'000;  // a thread copies them
  static constexpr Bytes kSize{kFew * sizeof(float)};
  struct Kept {
    task::WorkerId worker = 0;
    DeviceAddress address;
    task::BlockId id = 0;
    std::uint64_t restarts = 0;
  };

  void Fail(const std::string& what) {
    std::fprintf(stderr, "wrong: %s\n", what.c_str());
    failed_ = true;
  }
  void Count(const Status& status, std::atomic<int>& right) {
    if (status.ok()) {
      ++right;
    } else if (status.code() == StatusCode::kUnavailable) {
      ++errors_;
    } else {
      Fail(status.ToString());
    }
  }
  task::SubmitOptions Somewhere(std::mt19937& random) const {
    task::SubmitOptions options;
    if (random() % 2 == 0) options.worker = static_cast<task::WorkerId>(random() % workers_);
    return options;
  }

  // Two tasks, of which one needs what the other writes: the first error of the two.
  Status RunChain(std::mt19937& random) {
    const auto value = static_cast<float>(random() % 1000);
    const std::uint32_t count = random() % 4 == 0 ? kMany : kFew;
    std::vector<float> a(count);
    std::vector<float> b(count);
    const std::array<std::uint32_t, 1> shape{count};
    task::Arguments fill;
    fill.Add(task::Tag::kOut, task::Tensor::Host(a.data(), task::DataType::kUInt32, shape))
        .AddScalar(std::bit_cast<std::uint32_t>(value));
    task::Arguments add;
    add.Add(task::Tag::kIn, Floats(a))
        .Add(task::Tag::kIn, Floats(a))
        .Add(task::Tag::kOut, Floats(b));
    KEEL_ASSIGN(const auto first, orchestrator_->Submit(fill_, fill, Somewhere(random)));
    const Result<task::TaskHandle> second = orchestrator_->Submit(add_, add, Somewhere(random));
    // The tensors stay where they are until both are done.
    const Status filled = first.Wait(Deadline::After(kLong));
    Status added = second.ok() ? second->Wait(Deadline::After(kLong)) : second.status();
    if (!first.done() || (second.ok() && !second->done())) {
      Fail("a task that does not end");
      std::_Exit(3);  // it may write into what goes with this function
    }
    if (filled.ok() && a != std::vector<float>(count, value)) Fail("what was filled");
    if (added.ok() && filled.ok() && b != std::vector<float>(count, 2 * value)) Fail("a sum");
    KEEL_TRY(filled);
    return added;
  }

  // A block on a worker, by its number: after a restart its address may be another one's.
  Status UseMemory(std::mt19937& random) {
    const auto worker = static_cast<task::WorkerId>(random() % workers_);
    task::BlockId id = 0;
    KEEL_ASSIGN(const DeviceAddress block, orchestrator_->Malloc(worker, kSize * 2, &id));
    const Status used = Use(worker, block, id, static_cast<float>(random() % 1000));
    const Status freed = orchestrator_->Free(worker, block, id);
    if (!freed.ok() && freed.code() != StatusCode::kUnavailable) Fail(freed.ToString());
    return used;
  }
  Status Use(task::WorkerId worker, DeviceAddress block, task::BlockId id, float value) {
    const std::vector<float> sent(kFew, value);
    std::vector<float> got(kFew);
    const std::array<std::uint32_t, 1> shape{kFew};
    const std::array<task::BlockId, 3> ids{id, id, id};
    const auto low = task::Tensor::Resident(block, task::DataType::kFloat32, shape);
    const auto high = task::Tensor::Resident(block + kSize, task::DataType::kFloat32, shape);
    task::Arguments add;
    add.Add(task::Tag::kIn, low).Add(task::Tag::kIn, low).Add(task::Tag::kOut, high);
    KEEL_TRY(orchestrator_->CopyTo(worker, block, sent.data(), kSize, id));
    KEEL_ASSIGN(const auto task,
                orchestrator_->Submit(add_, add, {.worker = worker, .timeout = {}, .blocks = ids}));
    KEEL_TRY(orchestrator_->CopyFrom(worker, got.data(), block + kSize, kSize, id));
    KEEL_TRY(task.Wait(Deadline::After(kLong)));
    if (got != std::vector<float>(kFew, 2 * value)) Fail("memory of a worker");
    return OkStatus();
  }

  // A block on each worker, with content: it is there as it was, or was lost with its worker.
  void Keep(float value) {
    content_.assign(kFew, value);
    for (std::size_t w = 0; w < workers_; ++w) {
      const auto worker = static_cast<task::WorkerId>(w);
      task::BlockId id = 0;
      const Result<DeviceAddress> block = orchestrator_->Malloc(worker, kSize, &id);
      if (block.ok() && orchestrator_->CopyTo(worker, *block, content_.data(), kSize, id).ok()) {
        kept_.push_back({worker, *block, id, orchestrator_->Report()[w].restarts});
      }
    }
  }
  int Look() {
    int gone = 0;
    for (const Kept& each : std::exchange(kept_, {})) {
      std::vector<float> got(kFew);
      const Status status =
          orchestrator_->CopyFrom(each.worker, got.data(), each.address, kSize, each.id);
      if (status.ok()) {
        if (got != content_) Fail("what was kept");
        if (orchestrator_->Report()[each.worker].restarts != each.restarts) {
          Fail("memory of a worker that is gone");
        }
      } else if (status.code() == StatusCode::kUnavailable) {
        ++gone;
      } else {
        Fail(status.ToString());
      }
      static_cast<void>(orchestrator_->Free(each.worker, each.address, each.id));
    }
    return gone;
  }

  template <class Condition>
  void WaitUntil(const char* what, Condition condition) {
    for (const Deadline deadline = Deadline::After(kLong); !condition();) {
      if (failed_) return;
      if (deadline.Passed()) return Fail(std::string("never: ") + what);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  void WaitUntilAllAreUp() {
    WaitUntil("all workers are up", [&] {
      return std::ranges::all_of(orchestrator_->Report(), &task::WorkerReport::up);
    });
  }
  // Whoever has ended a task has not died right after its start.
  void WaitUntilAllHaveWorked() {
    const std::vector<task::WorkerReport> before = orchestrator_->Report();
    WaitUntil("all workers have worked", [&] {
      const std::vector<task::WorkerReport> now = orchestrator_->Report();
      return std::ranges::all_of(now, [&](const task::WorkerReport& report) {
        return report.up && report.tasks > before[report.worker].tasks;
      });
    });
  }

  const std::size_t workers_;
  const std::unique_ptr<task::Orchestrator> orchestrator_;
  const task::Callable fill_, add_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> failed_{false};
  std::atomic<int> right_{0};
  std::atomic<int> errors_{0};
  std::vector<float> content_;
  std::vector<Kept> kept_;
};

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
  if (what == "survive") return Survivor(number).Run();
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
