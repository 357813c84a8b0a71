// What holds for workers that are processes: how they live and die, and what they share.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <span>
#include <string>
#include <thread>

#include "base/soon_test.h"
#include "keel/base/unique_fd.h"
#include "task/blocked_memory_test.h"
#include "task/processes_test.h"
#include "task/worker_program.h"
#include "task/worker_test.h"

namespace keel::task {
namespace {

class WorkerProcessTest : public WorkersTest {
 protected:
  std::unique_ptr<Worker> Start(Bytes shared = 64_MiB) {
    return Need(StartProcessWorker(Plan(shared), Long()));
  }
};

TEST_F(WorkerProcessTest, TensorsThatNeverFitAreToldFromThoseThatDoNotFitNow) {
  const auto worker = Start(1_MiB);
  const std::uint64_t noop = Need(worker->Register(NoopImage(), Long()));
  const std::vector<float> large((1_MiB).count() / 4 + 1);
  const std::vector<float> half((1_MiB).count() / 8 + 1);
  Arguments never;
  never.Add(Tag::kIn, On(large));
  const Status refused = worker->Post(1, noop, never, Deadline::Never());
  EXPECT_EQ(refused.code(), StatusCode::kOutOfRange);
  EXPECT_NE(refused.message().find("shared_memory"), std::string_view::npos);

  Arguments now;
  now.Add(Tag::kIn, On(half));
  ASSERT_TRUE(Freeze(*worker));
  ASSERT_TRUE(IsOk(worker->Post(1, noop, now, Deadline::Never())));
  EXPECT_EQ(worker->Post(2, noop, now, Deadline::Never()).code(), StatusCode::kResourceExhausted);
  ASSERT_TRUE(Thaw(*worker));
  EXPECT_EQ(Collect(*worker, 1).size(), 1U);
  EXPECT_TRUE(IsOk(Run(*worker, noop, now)));
}

TEST_F(WorkerProcessTest, T6_AllOfTheSharedMemoryCanBeUsedAgainAndAgain) {
  const auto worker = Start(1_MiB);
  const std::uint64_t fill = Need(worker->Register(FillImage(), Long()));
  for (std::uint32_t i = 0; i < 20; ++i) {
    std::vector<std::uint32_t> small(1 + i * 37);
    Arguments little;
    little.Add(Tag::kOut, On(small)).AddScalar(i);
    ASSERT_TRUE(IsOk(Run(*worker, fill, little)));
    std::vector<std::uint32_t> all((1_MiB).count() / 4);
    Arguments most;
    most.Add(Tag::kOut, On(all)).AddScalar(i);
    ASSERT_TRUE(IsOk(Run(*worker, fill, most)));
    ASSERT_EQ(all, std::vector<std::uint32_t>(all.size(), i));
  }
}

TEST_F(WorkerProcessTest, AKilledWorkerEndsItsTasksWithTheSignal) {
  const auto worker = Start();
  const std::uint64_t noop = Need(worker->Register(NoopImage(), Long()));
  const pid_t process = ProcessOf(*worker);
  ASSERT_TRUE(Freeze(*worker));
  for (std::uint64_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(IsOk(worker->Post(i, noop, {}, Deadline::Never())));
  }
  // A call that waits for an answer is woken.
  std::thread caller(
      [&] { EXPECT_EQ(worker->Stats(Long()).status().code(), StatusCode::kUnavailable); });
  ASSERT_EQ(kill(process, SIGKILL), 0);
  const std::vector<TaskResult> results = Collect(*worker, 3);
  caller.join();
  ASSERT_EQ(results.size(), 3U);
  const std::string expected =
      "worker 'sim:0' (process " + std::to_string(process) + ") was killed by signal 9 (SIGKILL)";
  for (const TaskResult& result : results) {
    EXPECT_EQ(result.status.code(), StatusCode::kUnavailable);
    EXPECT_EQ(result.status.message(), expected);
  }
  EXPECT_EQ(worker->Health().message(), expected);
  EXPECT_EQ(worker->Register(NoopImage(), Long()).status().message(), expected);
  EXPECT_FALSE(HasChildren()) << "a zombie";
  ASSERT_TRUE(IsOk(worker->Restart(Long())));
  EXPECT_NE(ProcessOf(*worker), process);
  EXPECT_TRUE(Adds(*worker));
}

TEST_F(WorkerProcessTest, CodeThatCrashesTakesTheWorkerAndNothingElse) {
  const auto worker = Start();
  const auto other = Start();
  const std::uint64_t crash = Need(worker->Register(CrashImage(), Long()));
  const Status status = Run(*worker, crash, {});
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("killed by signal 11 (SIGSEGV)"), std::string_view::npos)
      << status.ToString();
  EXPECT_TRUE(Adds(*other));
  ASSERT_TRUE(IsOk(worker->Restart(Long())));
  EXPECT_TRUE(Adds(*worker));
}

// Whatever it was doing: results are right or errors, nothing hangs, and the next one works.
TEST_F(WorkerProcessTest, KilledAtAnyInstant) {
  std::mt19937 random(3);
  const auto worker = Start();
  for (int round = 0; round < 20; ++round) {
    const pid_t process = ProcessOf(*worker);
    const auto delay = std::chrono::microseconds(random() % 4000);
    std::thread killer([&] {
      std::this_thread::sleep_for(delay);
      kill(process, SIGKILL);
    });
    std::vector<std::vector<std::uint32_t>> outs;
    std::vector<TaskResult> results;
    const auto work = [&]() -> Status {
      for (std::uint32_t i = 0;; ++i) {
        KEEL_ASSIGN(const std::uint64_t fill, worker->Register(FillImage(), Long()));
        KEEL_ASSIGN(const DeviceAddress block, worker->Allocate(4096_B, Long()));
        std::vector<std::uint32_t> copy(1024, i);
        KEEL_TRY(worker->CopyTo(block, copy.data(), 4096_B, Long()));
        copy.assign(1024, ~0U);
        KEEL_TRY(worker->CopyFrom(copy.data(), block, 4096_B, Long()));
        EXPECT_EQ(copy, std::vector<std::uint32_t>(1024, i));
        outs.emplace_back(64, ~0U);
        Arguments arguments;
        arguments.Add(Tag::kOut, On(outs.back())).AddScalar(i);
        KEEL_TRY(worker->Post(i, fill, arguments, Deadline::Never()));
        worker->Wake();
        if (i % 4 == 3) worker->Collect(results);
        KEEL_TRY(worker->Unregister(fill, Long()));
      }
    };
    const Status status = work();
    killer.join();
    EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status.ToString();
    worker->Collect(results);
    for (const TaskResult& result : results) {
      if (result.status.ok()) {
        const auto value = static_cast<std::uint32_t>(result.task);
        EXPECT_EQ(outs.at(result.task), std::vector<std::uint32_t>(64, value));
      } else {
        // Its callable may have been unregistered before it ran.
        EXPECT_TRUE(result.status.code() == StatusCode::kUnavailable ||
                    result.status.code() == StatusCode::kNotFound)
            << result.status.ToString();
      }
    }
    ASSERT_TRUE(IsOk(worker->Restart(Long())));
    EXPECT_TRUE(Adds(*worker));
  }
}

// What follows has its time, too.
TEST_F(WorkerProcessTest, TheTimeOfATaskBeginsWhenItsTensorsAreThere) {
  const auto worker = Start();
  const std::uint64_t noop = Need(worker->Register(NoopImage(), Long()));
  BlockedMemory blocked((1_MiB).count());
  constexpr auto kTime = milliseconds(200);
  const std::array<std::uint32_t, 1> shape{static_cast<std::uint32_t>((1_MiB).count())};
  Arguments arguments;
  arguments.Add(Tag::kIn, Tensor::Host(blocked.As<std::byte>().data(), DataType::kUInt8, shape));
  ASSERT_TRUE(IsOk(worker->Post(1, noop, arguments, Deadline::After(kTime))));
  ASSERT_TRUE(IsOk(worker->Post(2, noop, {}, Deadline::After(kTime))));
  ASSERT_TRUE(blocked.AwaitTouched());
  std::this_thread::sleep_for(2 * kTime);
  std::vector<TaskResult> results;
  worker->Collect(results);
  EXPECT_TRUE(results.empty());
  EXPECT_TRUE(IsOk(worker->Health()));
  blocked.Release();
  results = Collect(*worker, 2);
  ASSERT_EQ(results.size(), 2U);
  for (const TaskResult& result : results) EXPECT_TRUE(IsOk(result.status));

  // It ends none the less.
  Arguments spin = SpinOn(Need(worker->Allocate(8_B, Long())), std::chrono::seconds(60));
  const std::uint64_t zero = 0;
  ASSERT_TRUE(IsOk(worker->CopyTo(DeviceAddress(spin.tensors()[0].address), &zero, 8_B, Long())));
  spin.Add(Tag::kIn, Tensor::Host(blocked.As<std::byte>().data(), DataType::kUInt8, shape));
  const std::uint64_t long_task = Need(worker->Register(SpinImage(), Long()));
  EXPECT_EQ(Run(*worker, long_task, spin, Deadline::After(kTime)).code(),
            StatusCode::kDeadlineExceeded);
}

// Whoever waits for a task may free its tensors next, and whoever stops its worker, too.
TEST_F(WorkerProcessTest, NobodyTouchesTheTensorsOfATaskThatHasEnded) {
  const auto worker = Start();
  const std::uint64_t fill = Need(worker->Register(FillImage(), Long()));
  BlockedMemory blocked((1_MiB).count());
  std::atomic<bool> released{false};
  const std::span<std::uint32_t> values = blocked.As<std::uint32_t>();
  const std::array<std::uint32_t, 1> shape{static_cast<std::uint32_t>(values.size())};
  const Tensor tensor = Tensor::Host(values.data(), DataType::kUInt32, shape);
  const auto release_soon = [&] {
    return std::thread([&] {
      std::this_thread::sleep_for(milliseconds(50));
      released = true;
      blocked.Release();
    });
  };
  Arguments in;
  in.Add(Tag::kInOut, tensor).AddScalar(1U);
  ASSERT_TRUE(IsOk(worker->Post(1, fill, in, Deadline::Never())));
  ASSERT_TRUE(blocked.AwaitTouched());
  ASSERT_EQ(kill(ProcessOf(*worker), SIGKILL), 0);
  std::thread soon = release_soon();
  const std::vector<TaskResult> results = Collect(*worker, 1);
  EXPECT_TRUE(released);
  soon.join();
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].status.code(), StatusCode::kUnavailable);
  EXPECT_FALSE(results[0].sent);

  ASSERT_TRUE(IsOk(worker->Restart(Long())));
  const std::uint64_t again = Need(worker->Register(FillImage(), Long()));
  blocked.Block();
  released = false;
  Arguments out;
  out.Add(Tag::kOut, tensor).AddScalar(7U);
  ASSERT_TRUE(IsOk(worker->Post(2, again, out, Deadline::Never())));
  worker->Wake();
  std::vector<TaskResult> none;
  ASSERT_TRUE(Soon([&] {
    worker->Collect(none);
    return blocked.touched();
  }));
  EXPECT_TRUE(none.empty());
  soon = release_soon();
  worker->Stop(Long());
  EXPECT_TRUE(released);
  soon.join();
  worker->Collect(none);
  ASSERT_EQ(none.size(), 1U);
  EXPECT_TRUE(IsOk(none[0].status));
  EXPECT_TRUE(std::ranges::all_of(values, [](std::uint32_t value) { return value == 7; }));
}

// What was answered and not collected has its results, too.
TEST_F(WorkerProcessTest, AResultThatComesWithTheEndIsWhole) {
  const auto worker = Start();
  const std::uint64_t fill = Need(worker->Register(FillImage(), Long()));
  BlockedMemory blocked((1_MiB).count());
  const std::span<std::uint32_t> values = blocked.As<std::uint32_t>();
  const std::array<std::uint32_t, 1> shape{static_cast<std::uint32_t>(values.size())};
  Arguments arguments;
  arguments.Add(Tag::kOut, Tensor::Host(values.data(), DataType::kUInt32, shape)).AddScalar(7U);
  ASSERT_TRUE(IsOk(worker->Post(1, fill, arguments, Deadline::Never())));
  worker->Wake();
  ASSERT_TRUE(Soon([&] { return worker->NextAnswer().there(); }));
  worker->Stop(Long());
  std::thread soon([&] {
    ASSERT_TRUE(blocked.AwaitTouched());
    blocked.Release();
  });
  std::vector<TaskResult> results;
  worker->Collect(results);
  soon.join();
  ASSERT_EQ(results.size(), 1U);
  EXPECT_TRUE(IsOk(results[0].status));
  EXPECT_TRUE(std::ranges::all_of(values, [](std::uint32_t value) { return value == 7; }));
}

// Their memory goes as soon as a task has ended.
TEST_F(WorkerProcessTest, NothingOfAKilledWorkersTensorsIsTouchedAfterTheEnd) {
  std::mt19937 random(11);
  const auto worker = Start();
  std::size_t right = 0;
  constexpr std::size_t kCount = (1_MiB).count() / sizeof(std::uint32_t);
  constexpr std::size_t kMost = 6;  // at a time: they all fit
  // More, and longer ones, where a task takes longer than the worker lives.
  for (int round = 0; round < 20 || (right == 0 && round < 200); ++round) {
    const pid_t process = ProcessOf(*worker);
    const std::uint64_t fill = Need(worker->Register(FillImage(), Long()));
    const std::uint64_t most = 40'000 * (1 + static_cast<std::uint64_t>(round) / 20);
    const auto delay = std::chrono::microseconds(random() % most);
    std::thread killer([&] {
      std::this_thread::sleep_for(delay);
      kill(process, SIGKILL);
    });
    std::map<std::uint64_t, std::vector<std::uint32_t>> tensors;
    const auto take = [&](const std::vector<TaskResult>& results) {
      for (const TaskResult& result : results) {
        const auto value = static_cast<std::uint32_t>(result.task);
        if (result.status.ok()) {
          EXPECT_EQ(tensors[value], std::vector<std::uint32_t>(kCount, value));
          ++right;
        } else {
          EXPECT_EQ(result.status.code(), StatusCode::kUnavailable) << result.status.ToString();
        }
        tensors.erase(value);
      }
    };
    for (std::uint32_t next = 0; worker->Health().ok();) {
      if (tensors.size() < kMost) {
        auto& tensor = tensors.try_emplace(next, kCount).first->second;
        Arguments arguments;
        arguments.Add(Tag::kInOut, On(tensor)).AddScalar(next);
        const Status posted = worker->Post(next, fill, arguments, Deadline::Never());
        if (!posted.ok()) {
          EXPECT_EQ(posted.code(), StatusCode::kUnavailable) << posted.ToString();
          tensors.erase(next);
        }
        ++next;
      }
      worker->Wake();
      std::vector<TaskResult> results;
      worker->Collect(results);
      take(results);
    }
    killer.join();
    take(Collect(*worker, tensors.size()));
    EXPECT_TRUE(tensors.empty());
    ASSERT_TRUE(IsOk(worker->Restart(Long())));
  }
  EXPECT_GT(right, 0U);
}

TEST_F(WorkerProcessTest, T4_ACallThatGivesUpHarmsNobody) {
  const auto worker = Start();
  const std::uint64_t noop = Need(worker->Register(NoopImage(), Long()));
  const DeviceAddress block = Need(worker->Allocate(8_B, Long()));
  ASSERT_TRUE(Freeze(*worker));
  EXPECT_EQ(worker->Free(block, Deadline::After(milliseconds(10))).code(),
            StatusCode::kResourceExhausted);
  // What may take long has to begin soon all the same.
  const Deadline late_enough = Long();
  EXPECT_EQ(worker->Free(block, late_enough).code(), StatusCode::kResourceExhausted);
  EXPECT_FALSE(late_enough.Passed());
  EXPECT_EQ(worker->Unregister(noop, Deadline::After(milliseconds(10))).code(),
            StatusCode::kResourceExhausted);
  for (int i = 0; i < 3; ++i) {
    const Status late = worker->Register(NoopImage(), Deadline::After(milliseconds(10))).status();
    EXPECT_EQ(late.code(), StatusCode::kDeadlineExceeded) << late.ToString();
  }
  std::uint64_t value = 1;
  EXPECT_EQ(worker->CopyFrom(&value, DeviceAddress(4096), 8_B, Deadline::Now()).code(),
            StatusCode::kDeadlineExceeded);
  ASSERT_TRUE(Thaw(*worker));
  // None of them was begun, so none has an effect.
  EXPECT_EQ(Need(worker->Stats(Long())).callables, 1U);
  EXPECT_TRUE(IsOk(worker->Free(block, Long())));
  EXPECT_TRUE(IsOk(Run(*worker, noop, {})));
  EXPECT_TRUE(IsOk(worker->Health()));
  EXPECT_TRUE(Adds(*worker));
}

// However many they are: they fill the lane, and it is empty again when the worker goes on.
TEST_F(WorkerProcessTest, T4_CallsThatGiveUpDoNotLoseTheWorker) {
  const auto worker = Start();
  ASSERT_TRUE(Freeze(*worker));
  Status status;
  for (int i = 0; i < 10'000 && status.code() != StatusCode::kResourceExhausted; ++i) {
    status = worker->Stats(Deadline::Now()).status();
    ASSERT_TRUE(status.code() == StatusCode::kDeadlineExceeded ||
                status.code() == StatusCode::kResourceExhausted)
        << status.ToString();
  }
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status.ToString();
  ASSERT_TRUE(Thaw(*worker));
  EXPECT_TRUE(Soon([&] { return worker->Stats(Long()).ok(); }));
  EXPECT_TRUE(IsOk(worker->Health()));
  EXPECT_TRUE(Adds(*worker));
}

TEST_F(WorkerProcessTest, T4_AWorkerThatHangsInACallIsLost) {
  WorkerStart start = Plan();
  start.call_grace = milliseconds(50);
  const auto worker = Need(StartProcessWorker(start, Long()));
  const Status late = worker->Register(StallImage(), Deadline::After(milliseconds(200))).status();
  EXPECT_EQ(late.code(), StatusCode::kDeadlineExceeded) << late.ToString();
  EXPECT_TRUE(IsOk(worker->Health()));
  const Status lost = worker->Stats(Long()).status();
  EXPECT_EQ(lost.code(), StatusCode::kUnavailable) << lost.ToString();
  EXPECT_NE(lost.message().find("hangs in a call whose time was over 0.05 s ago"),
            std::string_view::npos)
      << lost.ToString();
  EXPECT_EQ(worker->Health().message(), lost.message());
  ASSERT_TRUE(IsOk(worker->Restart(Long())));
  EXPECT_TRUE(Adds(*worker));
}

TEST_F(WorkerProcessTest, AWorkerThatHangsIsLostAtTheDeadline) {
  const auto worker = Start();
  const std::uint64_t noop = Need(worker->Register(NoopImage(), Long()));
  ASSERT_TRUE(Freeze(*worker));
  const Status late = Run(*worker, noop, {}, Deadline::After(milliseconds(50)));
  EXPECT_EQ(late.code(), StatusCode::kDeadlineExceeded) << late.ToString();
  EXPECT_EQ(worker->Health().code(), StatusCode::kUnavailable);
  EXPECT_NE(worker->Health().message().find("a task was not done by its deadline"),
            std::string_view::npos)
      << worker->Health().ToString();
  ASSERT_TRUE(IsOk(worker->Restart(Long())));
  EXPECT_TRUE(Adds(*worker));
}

TEST_F(WorkerProcessTest, StopEndsAWorkerThatDoesNotListen) {
  const auto worker = Start();
  const UniqueFd process = OpenProcess(ProcessOf(*worker));
  ASSERT_TRUE(Freeze(*worker));
  worker->Stop(Deadline::After(milliseconds(20)));
  EXPECT_TRUE(EndsWithin(process, 0));
  EXPECT_FALSE(HasChildren()) << "a zombie";
}

TEST_F(WorkerProcessTest, NothingIsLeftOfAWorker) {
  Start()->Stop(Long());  // whatever the first one of all opens for good
  const std::size_t descriptors = OpenDescriptors();
  const std::size_t mappings = SharedMappings();
  for (int round = 0; round < 3; ++round) {
    const auto stopped = Start();
    EXPECT_TRUE(Adds(*stopped));
    const auto killed = Start();
    kill(ProcessOf(*killed), SIGKILL);
    EXPECT_TRUE(Soon([&] { return !killed->Health().ok(); }));
    ASSERT_TRUE(IsOk(killed->Restart(Long())));
    EXPECT_GT(OpenDescriptors(), descriptors);
  }
  WorkerStart wrong = Plan();
  wrong.options.device = "sim:999";
  EXPECT_FALSE(StartProcessWorker(wrong, Long()).ok());
  EXPECT_EQ(OpenDescriptors(), descriptors);
  EXPECT_EQ(SharedMappings(), mappings);
  EXPECT_FALSE(HasChildren()) << "a zombie";
}

TEST_F(WorkerProcessTest, PagesGoBackWhenItIsIdle) {
  const auto worker = Start();
  const std::uint64_t fill = Need(worker->Register(FillImage(), Long()));
  std::vector<std::uint32_t> large((32_MiB).count() / 4);
  Arguments arguments;
  arguments.Add(Tag::kInOut, On(large)).AddScalar(std::uint32_t{1});
  ASSERT_TRUE(IsOk(Run(*worker, fill, arguments)));
  const auto used = [&] {
    struct stat status{};
    fstat(PeerOf(*worker).region().descriptor(), &status);
    return Bytes(static_cast<std::uint64_t>(status.st_blocks) * 512);
  };
  EXPECT_GE(used(), 32_MiB);
  EXPECT_TRUE(Soon([&] { return used() < 2_MiB; })) << ToString(used());
  ASSERT_TRUE(IsOk(Run(*worker, fill, arguments)));
  EXPECT_EQ(large, std::vector<std::uint32_t>(large.size(), 1));
}

TEST_F(WorkerProcessTest, T9_AnIdleWorkerTakesNoProcessorTime) {
  const auto worker = Start();
  ASSERT_TRUE(Adds(*worker));
  // It may still be ending what it did.
  int idle = 0;  // seconds in a row
  for (int second = 0; second < 10 && idle < 2; ++second) {
    const std::uint64_t before = ProcessorTime(ProcessOf(*worker));
    std::this_thread::sleep_for(std::chrono::seconds(1));
    idle = ProcessorTime(ProcessOf(*worker)) - before < 10'000'000U ? idle + 1 : 0;
  }
  EXPECT_EQ(idle, 2);
}

TEST_F(WorkerProcessTest, ItInheritsNothingThatItWasNotGiven) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);  // as careless programs do: not closed on exec
  UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  const auto worker = Start();
  writer.Reset(-1);
  pollfd wait{.fd = reader.get(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&wait, 1, 10'000), 1) << "the worker has the other end of a pipe";
  EXPECT_TRUE(Adds(*worker));
}

// A worker whose parent is killed, and how long it takes to end then.
class Orphan {
 public:
  // `doing`: worker_holder_main.cc. Returns when it does so.
  void Start(const std::string& doing) {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    const UniqueFd reader(ends[0]);
    UniqueFd writer(ends[1]);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, writer.get(), 1);
    std::string program = KEEL_WORKER_HOLDER;
    std::string worker_program = KEEL_WORKER_PROGRAM;
    std::string does = doing;
    char* const argv[] = {program.data(), worker_program.data(), does.data(), nullptr};
    ASSERT_EQ(posix_spawn(&parent_, program.c_str(), &files, nullptr, argv, environ), 0);
    posix_spawn_file_actions_destroy(&files);
    writer.Reset(-1);
    std::string text;
    std::size_t at = 0;
    for (char c = 0; (at = text.find("worker=")) == std::string::npos || !text.ends_with('\n');) {
      ASSERT_EQ(read(reader.get(), &c, 1), 1) << text;
      text += c;
    }
    const pid_t process = std::stoi(text.substr(at + 7));
    worker_ = OpenProcess(process);
    ASSERT_TRUE(worker_.valid());
    if (doing == "spin") {
      constexpr std::uint64_t kAtWork = 20'000'000;
      const std::uint64_t before = ProcessorTime(process);
      ASSERT_TRUE(Soon([&] { return ProcessorTime(process) > before + kAtWork; }));
    }
    EXPECT_FALSE(EndsWithin(worker_, 0));
  }
  std::chrono::milliseconds Kill() {
    const auto before = std::chrono::steady_clock::now();
    kill(parent_, SIGKILL);
    waitpid(parent_, nullptr, 0);
    constexpr int kNever = 30'000;
    EXPECT_TRUE(EndsWithin(worker_, kNever));
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() -
                                                                 before);
  }

 private:
  pid_t parent_ = 0;
  UniqueFd worker_;
};

TEST_F(WorkerProcessTest, T9_AnOrphanEndsWithinASecond) {
  for (const std::string doing : {"idle", "spin"}) {
    std::vector<std::chrono::nanoseconds> times;
    for (int i = 0; i < 5; ++i) {
      Orphan orphan;
      ASSERT_NO_FATAL_FAILURE(orphan.Start(doing));
      times.push_back(orphan.Kill());
    }
    EXPECT_LE(LongestButFew(times), kOrphanEnds) << doing;
  }
}

// Its descriptors but for those that a program has from whoever runs it, and what it has mapped,
// where that can be looked at.
TEST_F(WorkerProcessTest, NoFileOfItIsForOtherUsers) {
  const auto worker = Start();
  ASSERT_TRUE(Adds(*worker));
  const std::filesystem::path process = "/proc/" + std::to_string(ProcessOf(*worker));
  std::string names;
  const auto look = [&](const std::filesystem::path& link) {
    std::error_code none;
    const std::string name = std::filesystem::read_symlink(link, none);
    struct stat status{};
    if (none || stat(link.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return;
    names += name + "\n";
    EXPECT_EQ(status.st_mode & 077U, 0U) << name;
  };
  for (const auto& file : std::filesystem::directory_iterator(process / "fd")) {
    if (std::stoi(file.path().filename()) > 2) look(file.path());
  }
  for (const char* ours :
       {"/memfd:keel-worker", "/memfd:keel-doorbell", "/memfd:keel-sim-device"}) {
    EXPECT_NE(names.find(ours), std::string::npos) << names;
  }
  std::error_code none;
  for (const auto& mapped : std::filesystem::directory_iterator(process / "map_files", none)) {
    std::error_code hidden;
    const std::string name = std::filesystem::read_symlink(mapped.path(), hidden);
    if (!hidden && name.starts_with("/memfd:keel")) look(mapped.path());
  }
}

// Under a sanitizer that looks for leaks at the end of a process they are an exit code.
TEST_F(WorkerProcessTest, AWorkerThatWasUsedAndStoppedEndsWell) {
  for (const Orchestration orchestration : {Orchestration::kDevice, Orchestration::kHost}) {
    WorkerStart plan = Plan();
    plan.orchestration = orchestration;
    const auto worker = Need(StartProcessWorker(plan, Long()));
    EXPECT_TRUE(Adds(*worker));
    const std::uint64_t fail = Need(worker->Register(FailImage(), Long()));
    EXPECT_FALSE(Run(*worker, fail, {}).ok());
    // What is left to it: a block with content, and a callable.
    const DeviceAddress block = Need(worker->Allocate(4_KiB, Long()));
    const std::vector<std::uint32_t> content(1024, 3);
    EXPECT_TRUE(IsOk(worker->CopyTo(block, content.data(), 4_KiB, Long())));
    worker->Stop(Long());
    EXPECT_EQ(PeerOf(*worker).Ended().message(), "has ended with exit code 0");
  }
}

TEST_F(WorkerProcessTest, TheProgramIsFoundOrNamed) {
  const std::string found = Need(FindWorkerProgram(""));
  EXPECT_EQ(std::filesystem::canonical(found), std::filesystem::canonical(KEEL_WORKER_PROGRAM));
  WorkerStart start = Plan();
  start.program = "/nowhere/keel-worker";
  const Status missing = StartProcessWorker(start, Long()).status();
  EXPECT_EQ(missing.code(), StatusCode::kNotFound);
  EXPECT_NE(missing.message().find("'/nowhere/keel-worker'"), std::string_view::npos);
}

TEST_F(WorkerProcessTest, AProgramThatIsNoWorkerIsAnError) {
  WorkerStart start = Plan();
  start.program = "/bin/true";
  const Status other = StartProcessWorker(start, Long()).status();
  EXPECT_EQ(other.code(), StatusCode::kUnavailable);
  EXPECT_NE(other.message().find("ended with exit code 0"), std::string_view::npos)
      << other.ToString();

  const std::string script =
      ::testing::TempDir() + "/keel_silent_worker." + std::to_string(getpid());
  std::ofstream(script) << "#!/bin/sh\nexec sleep 100\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  start.program = script;
  const Status silent = StartProcessWorker(start, Deadline::After(milliseconds(100))).status();
  EXPECT_EQ(silent.code(), StatusCode::kDeadlineExceeded) << silent.ToString();
  EXPECT_FALSE(HasChildren()) << "it was left running";
  std::filesystem::remove(script);
}

TEST_F(WorkerProcessTest, StartedByHandItSaysWhatItIs) {
  const std::string command = std::string(KEEL_WORKER_PROGRAM) + " 2>&1";
  std::FILE* const output = popen(command.c_str(), "r");
  ASSERT_NE(output, nullptr);
  char line[200] = {};
  EXPECT_NE(std::fgets(line, sizeof(line), output), nullptr);
  EXPECT_NE(std::string_view(line).find("not by hand"), std::string_view::npos) << line;
  EXPECT_EQ(WEXITSTATUS(pclose(output)), 2);
}

}  // namespace
}  // namespace keel::task
