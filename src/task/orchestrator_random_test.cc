// Random programs of tasks and groups on four workers, beside the same programs one after the
// other on the host: byte for byte.
#include <algorithm>
#include <bit>
#include <optional>
#include <random>

#include "task/orchestrator_test.h"
#include "task/processes_test.h"

namespace keel::task {
namespace {

constexpr std::size_t kWorkers = 4;
constexpr std::size_t kBuffers = 3;  // of each worker, and of the host
constexpr std::size_t kFloats = 96;
constexpr std::size_t kHost = kWorkers;

struct View {
  std::size_t owner = kHost;  // a worker, or the host
  std::size_t buffer = 0;
  std::size_t begin = 0;
  std::size_t count = 0;
};

class RandomProgramTest : public OrchestratorTest {
 protected:
  using Buffers = std::vector<std::vector<std::vector<float>>>;  // by owner and number

  View AnyView(std::size_t worker, std::size_t count) {
    View view;
    if (random_() % 2 != 0) view.owner = shared_ ? random_() % kWorkers : worker;
    view.buffer = random_() % kBuffers;
    view.begin = random_() % (kFloats - count + 1);
    view.count = count;
    return view;
  }
  template <class T>
  Tensor TensorOf(const View& view) {
    const std::array<std::uint32_t, 1> shape{static_cast<std::uint32_t>(view.count)};
    if (view.owner == kHost) {
      return Tensor::Host(&host_[view.buffer][view.begin], TypeOf<T>(), shape);
    }
    return Tensor::Resident(addresses_[view.owner][view.buffer] + Bytes(4 * view.begin),
                            TypeOf<T>(), shape);
  }

  struct Step {
    Callable callable;
    Arguments arguments;
    WorkerId worker = 0;
    bool pinned = false;
    std::function<void(Buffers&)> reference;
  };
  Step AnyStep(std::size_t worker, unsigned kind) {
    for (;;) {
      Step step;
      step.worker = static_cast<WorkerId>(worker);
      const std::size_t count = 1 + random_() % 32;
      std::array<View, 3> views;
      for (View& view : views) view = AnyView(worker, count);
      const auto at = [](Buffers& buffers, const View& view) {
        return buffers[view.owner][view.buffer].begin() + static_cast<std::ptrdiff_t>(view.begin);
      };
      std::size_t used = 0;
      if (kind == kFails) {
        used = 1;
        step.callable = fail_;
        step.arguments.Add(Tag::kInOut, TensorOf<float>(views[0]));
        step.reference = [](Buffers&) {};
      } else if (kind == 0) {
        used = 1;
        const auto value = static_cast<float>(random_() % 100);
        step.callable = fill_;
        step.arguments.Add(Tag::kOut, TensorOf<std::uint32_t>(views[0]))
            .AddScalar(std::bit_cast<std::uint32_t>(value));
        step.reference = [=](Buffers& buffers) {
          std::fill_n(at(buffers, views[0]), count, value);
        };
      } else if (kind == 1) {
        used = 2;
        step.callable = axpy_;
        step.arguments.Add(Tag::kIn, TensorOf<float>(views[0]))
            .Add(Tag::kInOut, TensorOf<float>(views[1]))
            .AddScalar(1.0F);
        step.reference = [=](Buffers& buffers) {
          for (std::ptrdiff_t i = 0; i < static_cast<std::ptrdiff_t>(count); ++i) {
            at(buffers, views[1])[i] += at(buffers, views[0])[i];
          }
        };
      } else {
        used = 3;
        step.callable = add_;
        step.arguments.Add(Tag::kIn, TensorOf<float>(views[0]))
            .Add(Tag::kIn, TensorOf<float>(views[1]))
            .Add(Tag::kOut, TensorOf<float>(views[2]));
        step.reference = [=](Buffers& buffers) {
          for (std::ptrdiff_t i = 0; i < static_cast<std::ptrdiff_t>(count); ++i) {
            at(buffers, views[2])[i] = at(buffers, views[0])[i] + at(buffers, views[1])[i];
          }
        };
      }
      if (!step.arguments.Check().ok()) continue;
      step.pinned = random_() % 3 == 0;
      for (std::size_t i = 0; i < used; ++i) step.pinned |= views[i].owner != kHost;
      return step;
    }
  }

  // Whether one of them must come after the other.
  bool Conflict(const Step& one, const Step& other) const {
    for (std::size_t i = 0; i < one.arguments.tensors().size(); ++i) {
      const Tensor& a = one.arguments.tensors()[i];
      for (std::size_t j = 0; j < other.arguments.tensors().size(); ++j) {
        const Tensor& b = other.arguments.tensors()[j];
        const bool same_space =
            a.resident() ? b.resident() && (shared_ || one.worker == other.worker) : !b.resident();
        const bool write = Writes(one.arguments.tags()[i]) || Writes(other.arguments.tags()[j]);
        if (same_space && write && a.address < b.address + b.size().count() &&
            b.address < a.address + a.size().count()) {
          return true;
        }
      }
    }
    return false;
  }

  void RunProgram(int steps, bool failing) {
    Buffers expected(kWorkers + 1);
    addresses_.resize(kWorkers);
    for (std::size_t owner = 0; owner <= kWorkers; ++owner) {
      for (std::size_t buffer = 0; buffer < kBuffers; ++buffer) {
        std::vector<float> values(kFloats, static_cast<float>(10 * owner + buffer));
        if (owner < kWorkers) {
          addresses_[owner].push_back(Upload(static_cast<WorkerId>(owner), values));
        } else {
          host_.push_back(values);
        }
        expected[owner].push_back(std::move(values));
      }
    }
    ForTheOthers([&](WorkerId other, DeviceAddress address) {
      return orchestrator_->RegisterMemory(other, address, Bytes(4 * kFloats));
    });
    if (addresses_[0] == addresses_[1]) ++equal_;
    int groups = 0;
    int failures = 0;
    struct Submitted {
      TaskHandle task;
      std::vector<Step> steps;  // of a group, its members
    };
    std::vector<Submitted> submitted;
    for (int i = 0; i < steps; ++i) {
      const bool fails = failing && random_() % 12 == 0;
      const auto kind = fails ? kFails : static_cast<unsigned>(random_() % 3);
      if (random_() % 5 != 0) {
        Step step = AnyStep(random_() % kWorkers, kind);
        SubmitOptions options;
        if (step.pinned) options.worker = step.worker;
        submitted.push_back({Submit(step.callable, step.arguments, options), {step}});
        failures += fails ? 1 : 0;
        continue;
      }
      std::vector<Step> members;
      std::vector<Arguments> arguments;
      std::vector<WorkerId> workers;
      const std::size_t first = random_() % kWorkers;
      for (std::size_t m = 0; m < 2 + random_() % 2; ++m) {
        members.push_back(AnyStep((first + m) % kWorkers, kind));
        arguments.push_back(members.back().arguments);
        workers.push_back(members.back().worker);
      }
      const auto group = orchestrator_->SubmitGroup(members[0].callable, arguments, workers);
      if (!group.ok()) {
        EXPECT_THAT(MessageOf(group.status()), HasSubstr("overlap those of another member"));
        continue;
      }
      ++groups;
      failures += fails ? 1 : 0;
      submitted.push_back({*group, std::move(members)});
    }
    groups_ += groups;
    ASSERT_TRUE(IsOk(orchestrator_->WaitAll(Long())));
    // What was not run because of a failure did nothing; the others did it in their order.
    std::size_t ran = 0;
    std::vector<Step> failed;  // or not run
    for (const Submitted& each : submitted) {
      const Status outcome = each.task.error();
      if (outcome.ok()) {
        ++ran;
        for (const Step& step : each.steps) step.reference(expected);
        continue;
      }
      if (outcome.code() == StatusCode::kAborted) {
        ++aborted_;
        EXPECT_TRUE(std::ranges::any_of(each.steps, [&](const Step& step) {
          return std::ranges::any_of(failed,
                                     [&](const Step& before) { return Conflict(step, before); });
        })) << "it does not depend on what failed";
      } else {
        EXPECT_THAT(MessageOf(outcome), HasSubstr("told to fail"));
      }
      failed.insert(failed.end(), each.steps.begin(), each.steps.end());
    }
    if (failures > 0) {
      EXPECT_LT(ran, submitted.size());
    } else {
      EXPECT_EQ(ran, submitted.size());
    }
    failures_ += failures;
    EXPECT_EQ(orchestrator_->live_tasks(), 0U);
    ForTheOthers([&](WorkerId other, DeviceAddress address) {
      return orchestrator_->UnregisterMemory(other, address);
    });
    for (std::size_t buffer = 0; buffer < kBuffers; ++buffer) {
      EXPECT_EQ(host_[buffer], expected[kHost][buffer]) << "the host's " << buffer;
      for (std::size_t worker = 0; worker < kWorkers; ++worker) {
        EXPECT_EQ(
            Download<float>(static_cast<WorkerId>(worker), addresses_[worker][buffer], kFloats),
            expected[worker][buffer])
            << "worker " << worker << "'s " << buffer;
        EXPECT_TRUE(
            IsOk(orchestrator_->Free(static_cast<WorkerId>(worker), addresses_[worker][buffer])));
      }
    }
    addresses_.clear();
    host_.clear();
  }

  // Of a shared memory: every block, with each worker that has not allocated it.
  template <class Do>
  void ForTheOthers(Do act) {
    for (WorkerId other = 0; shared_ && other < kWorkers; ++other) {
      for (std::size_t owner = 0; owner < kWorkers; ++owner) {
        if (owner == other) continue;
        for (const DeviceAddress address : addresses_[owner]) {
          ASSERT_TRUE(IsOk(act(other, address)));
        }
      }
    }
  }
  void RegisterAll() {
    add_ = Registered(AddImage());
    axpy_ = Registered(AxpyImage());
    fill_ = Registered(FillImage());
    fail_ = Registered(FailImage());
  }

  bool shared_ = false;  // the workers have one memory
  std::mt19937 random_;
  int groups_ = 0;
  int failures_ = 0;
  int aborted_ = 0;
  int equal_ = 0;  // programs in which two workers have the same addresses
  static constexpr unsigned kFails = 3;
  Callable add_, axpy_, fill_, fail_;
  std::vector<std::vector<DeviceAddress>> addresses_;
  std::vector<std::vector<float>> host_;
};

INSTANTIATE_TEST_SUITE_P(, RandomProgramTest, ::testing::ValuesIn(Transports()), TransportName);

TEST_P(RandomProgramTest, T1_ComputesWhatASequenceComputes) {
  const unsigned programs = Soaking() ? 10'000 : 200;
  constexpr unsigned kOnOne = 40;  // orchestrator
  // Of processes. What ranks see was said when they were started.
  std::optional<ScopedVariable> delays;
  std::optional<ScopedSteadyAddresses> steady;
  bool can_be_equal = false;
  for (unsigned seed = 0; seed < programs; ++seed) {
    if (seed % kOnOne == 0) {
      orchestrator_.reset();
      memories_.clear();
      delays.reset();
      steady.reset();
      OrchestratorOptions options = Options(kWorkers);
      // Half of them with equal addresses on all workers.
      const bool equal = seed / kOnOne % 2 == 1;
      if (GetParam() == Transport::kProcess) {
        // A device of its own number for each, whose delays are others.
        delays.emplace("KEEL_SIM", "devices:" + std::to_string(kWorkers) +
                                       ",arena:8GiB,delay:30,seed:" + std::to_string(seed + 1) +
                                       (equal ? ",unified:0" : ""));
        for (std::size_t w = 0; w < kWorkers; ++w) {
          options.workers[w].device = "sim:" + std::to_string(w);
        }
        if (equal) steady.emplace();
      }
      if (GetParam() == Transport::kThread) {
        options.workers = ThreadsOn({.devices = kWorkers,
                                     .memory = 256_MiB,
                                     .granularity = 2_MiB,
                                     .unified = !equal,
                                     .peers = false,
                                     .arena = 2_GiB,
                                     .seed = seed + 1,
                                     .delay_us = 30});
      }
      Start(std::move(options));
      RegisterAll();
    }
    random_.seed(seed);
    // Most are small, some are long. Some have tasks that fail, and end those that come after them.
    RunProgram(seed % kOnOne == 0 ? 400 : 40, seed % 4 >= 2);
    if (HasFailure()) FAIL() << "seed " << seed;
    can_be_equal |= GetParam() == Transport::kThread || AddressesAreSteady();
  }
  if (can_be_equal) {
    EXPECT_GT(equal_, 0) << "addresses of two workers";
  }
  EXPECT_GT(groups_, 0);
  EXPECT_GT(failures_, 0);
  EXPECT_GT(aborted_, 0) << "what came after a failure";
  if (!can_be_equal) GTEST_SKIP() << kAddressesVary;
}

// Threads with one memory, where a task of each may touch the blocks of all.
TEST_P(RandomProgramTest, T1_WorkersWithOneMemoryComputeWhatASequenceComputes) {
  if (GetParam() != Transport::kThread) GTEST_SKIP() << "another process has a memory of its own";
  shared_ = true;
  const WorkerOptions worker = ThreadsOn({.memory = 256_MiB, .arena = 2_GiB, .delay_us = 30})[0];
  OrchestratorOptions options;
  options.workers.assign(kWorkers, worker);
  Start(std::move(options));
  RegisterAll();
  const unsigned programs = Soaking() ? 2000 : 80;
  for (unsigned seed = 0; seed < programs; ++seed) {
    random_.seed(seed);
    RunProgram(seed % 40 == 0 ? 400 : 40, seed % 4 >= 2);
    if (HasFailure()) FAIL() << "seed " << seed;
  }
  EXPECT_GT(groups_, 0);
  EXPECT_GT(aborted_, 0) << "what came after a failure";
}

}  // namespace
}  // namespace keel::task
