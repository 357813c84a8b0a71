// Steps after the second record nothing, whatever moves: on driver calls, without any wait between
// the steps, with outputs and leases that are kept, and from threads that begin at once.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <latch>
#include <ostream>
#include <thread>
#include <tuple>

#include "graph/graph_test.h"
#include "keel/hal/memory.h"

namespace keel::graph {
namespace {

enum class Commands { kExplicit, kTraced };
void PrintTo(Commands commands, std::ostream* out) {
  *out << (commands == Commands::kTraced ? "traced" : "explicit");
}

using Combination = std::tuple<Policy, Commands, int>;  // ..., slots

class SteadyTest : public GraphTest, public ::testing::WithParamInterface<Combination> {
 protected:
  // With any number of slots that is tested, a slot's next step has another one.
  static constexpr int kPlaces = 5;

  using Place = Bench::Place;

  SteadyTest() {
    const auto [policy, commands, slots] = GetParam();
    policy_ = policy;
    slots_ = slots;
    ProgramBuilder builder("steady");
    const auto bind = [&](const char* name, BindingAccess access) {
      const bool resident = policy_ == Policy::kResident;
      return builder.Bind({.name = name,
                           .size = kSize,
                           .access = resident ? BindingAccess::kResident : access,
                           .policy = resident ? Policy::kAuto : policy_});
    };
    x_ = bind("x", BindingAccess::kIn);
    y_ = bind("y", BindingAccess::kIn);
    sum_ = bind("sum", BindingAccess::kOut);
    const hal::KernelHandle add = bench_.Kernel(hal::kernels::kAdd);
    if (commands == Commands::kTraced) {
      builder.Traced("library", ReadsAndWrites(x_, y_, sum_),
                     [this, adds = Adds(add, x_, y_, sum_)](const TraceContext& context) {
                       if (!context.capturing() && warming_up_) warming_up_();
                       return adds(context);
                     });
    } else {
      builder.Kernel(add, kDims,
                     {Argument::In(x_), Argument::In(y_), Argument::Out(sum_),
                      Argument::Value(std::uint64_t{kFloats})});
    }
    program_ = Need(std::move(builder).Build());
    // A resident binding stays where it is.
    for (int i = 0; i < (policy_ == Policy::kResident ? 1 : kPlaces); ++i) {
      xs_.push_back(MakePlace(static_cast<float>(i)));
      ys_.push_back(MakePlace(10));
      sums_.push_back(MakePlace(-1));
    }
  }
  Place MakePlace(float value) {
    if (policy_ == Policy::kRemap) return bench_.MakePlace(value);
    return {.buffer = bench_.Filled(value), .seen = {}};
  }
  std::unique_ptr<Executable> Make() {
    // `auto` begins with patching, and soon finds copying cheaper.
    return Need(Executable::Create(
        program_, bench_.memory(),
        {.slots = slots_, .costs = PrimitiveCosts{.patch_us = 1, .copy_bytes_per_us = 1e6}}));
  }
  // The step's own lease, launched and not waited for; everything is elsewhere than in the last.
  Lease Launch(Executable& executable, int step, hal::StreamHandle stream) {
    return Launch(executable, step, step, stream);
  }
  // With the sum at a place that may be another one's.
  Lease Launch(Executable& executable, int step, int sum, hal::StreamHandle stream) {
    Lease lease = Need(executable.Acquire(stream, Soon()));
    if (policy_ != Policy::kInPlace) {
      const auto at = [](const std::vector<Place>& places, int place) {
        return places[static_cast<std::size_t>(place) % places.size()].buffer;
      };
      EXPECT_TRUE(IsOk(lease.Bind(x_, at(xs_, step))));
      EXPECT_TRUE(IsOk(lease.Bind(y_, at(ys_, step))));
      EXPECT_TRUE(IsOk(lease.Bind(sum_, at(sums_, sum))));
    }
    ++launching_;
    EXPECT_TRUE(IsOk(lease.Launch(Soon())));
    return lease;
  }
  // What is mapped can only be exchanged when its last step is done.
  bool WaitsForItsSlot() const { return policy_ == Policy::kRemap; }
  void Hold() { ASSERT_TRUE(IsOk(bench_.controls().HoldStream(bench_.stream()))); }
  void Release() { ASSERT_TRUE(IsOk(bench_.controls().ReleaseStream(bench_.stream()))); }
  // Of each place, what the last step there left.
  void ExpectSums() {
    if (policy_ == Policy::kInPlace) return;
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      EXPECT_EQ(bench_.Read(sums_[i].buffer), Same(static_cast<float>(i) + 10));
    }
  }

  Policy policy_ = Policy::kCopy;
  int slots_ = 1;
  BindingId x_, y_, sum_;
  std::shared_ptr<const Program> program_;
  std::vector<Place> xs_, ys_, sums_;
  std::function<void()> warming_up_;  // called by the library in a step without a graph
  std::atomic<int> launching_ = 0;    // steps that have their lease
};

// Nothing that the first steps put on the stream is done while the next ones begin.
TEST_P(SteadyTest, StepsAfterTheSecondRecordNothing) {
  const auto executable = Make();
  const int held = WaitsForItsSlot() ? std::min(slots_, 2) : 2 * slots_ + 2;
  Hold();
  // `auto` judges what moves after some moves of it.
  const int steps = 4 * slots_ + (policy_ == Policy::kAuto ? 20 : 4);
  for (int step = 0; step < steps; ++step) {
    if (step == held) Release();
    if (step == 2) bench_.device().ResetCounts();
    Launch(*executable, step, bench_.stream());
    if (step >= 2) {
      ASSERT_EQ(bench_.RecordingCalls(), 0u) << "step " << step + 1;
    }
  }
  if (policy_ == Policy::kAuto) {
    EXPECT_EQ(executable->policy(x_), Policy::kCopy) << "it changed over meanwhile";
  }
  ASSERT_TRUE(IsOk(executable->Synchronize(Soon())));
  ExpectSums();
}

// With several slots, of which some are not free.
class KeptTest : public SteadyTest {};

// The lease of the first step is kept, and then that of the second.
TEST_P(KeptTest, LeasesDoNotDelayARecording) {
  const auto executable = Make();
  Hold();
  Lease first = Launch(*executable, 0, bench_.stream());
  Lease second = Launch(*executable, 1, bench_.stream());
  bench_.device().ResetCounts();
  Release();
  first = Lease();
  if (slots_ > 2) Launch(*executable, 2, bench_.stream());
  second = Lease();
  for (int step = 3; step < 3 * slots_ + 4; ++step) Launch(*executable, step, bench_.stream());
  EXPECT_EQ(bench_.RecordingCalls(), 0u);
  ASSERT_TRUE(IsOk(executable->Synchronize(Soon())));
  ExpectSums();
}

// From as many streams, each with a place for its sums; where there is but one, from one stream.
// Each thread begins with a slot of its own, which the others cannot record.
TEST_P(SteadyTest, NorWhenThreadsBeginAtOnce) {
  constexpr int kThreads = kPlaces;
  const auto executable = Make();
  // While the first one warms up, the others that have slots come to where they would too.
  warming_up_ = [&] {
    const Deadline end = Soon();
    while (launching_ < std::min(kThreads, slots_) && !end.Passed()) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  };
  bench_.device().ResetCounts();
  std::latch begin(kThreads);
  std::latch begun(kThreads);
  std::latch counted(1);
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const hal::Stream own = Need(hal::Stream::Create(bench_.inner()));
      const hal::StreamHandle stream = policy_ == Policy::kResident ? bench_.stream() : own.get();
      begin.arrive_and_wait();
      Launch(*executable, i, i, stream);
      begun.count_down();
      counted.wait();
      for (int step = 0; step < 8; ++step) Launch(*executable, i + step, i, stream);
      EXPECT_TRUE(IsOk(bench_.inner()->SynchronizeStream(stream, Soon())));
    });
  }
  begun.wait();
  // `auto` has a graph that copies and one that does not.
  const int graphs = policy_ == Policy::kAuto ? 2 * slots_ : slots_;
  EXPECT_EQ(bench_.device().calls(Primitive::kInstantiate), static_cast<std::uint64_t>(graphs))
      << "each slot once";
  EXPECT_EQ(executable->stats().eager_steps, program_->has_traced() ? 1u : 0u);
  bench_.device().ResetCounts();
  counted.count_down();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(bench_.RecordingCalls(), 0u);
}

class HeldTest : public SteadyTest {};

// Of the first steps, as many as can be without holding every slot.
TEST_P(HeldTest, OutputsDoNotDelayARecording) {
  const auto executable = Make();
  std::vector<HeldOutput> held;
  for (int step = 0; step < 4 * slots_; ++step) {
    if (step == 2) bench_.device().ResetCounts();
    Lease lease = Launch(*executable, step, bench_.stream());
    if (step < slots_ - 1) held.push_back(Need(lease.Hold(sum_)));
  }
  for (HeldOutput& output : held) ASSERT_TRUE(IsOk(output.Close()));
  for (int step = 0; step < 2 * slots_; ++step) Launch(*executable, step, bench_.stream());
  EXPECT_EQ(bench_.RecordingCalls(), 0u);
}

std::string Name(const ::testing::TestParamInfo<Combination>& info) {
  const auto [policy, commands, slots] = info.param;
  std::string name(PolicyName(policy));
  std::erase(name, '-');
  return name + (commands == Commands::kTraced ? "_traced_" : "_explicit_") + std::to_string(slots);
}

constexpr Policy kEverywhere[] = {Policy::kResident, Policy::kInPlace, Policy::kCopy,
                                  Policy::kRemap};
INSTANTIATE_TEST_SUITE_P(All, SteadyTest,
                         ::testing::Combine(::testing::ValuesIn(kEverywhere),
                                            ::testing::Values(Commands::kExplicit,
                                                              Commands::kTraced),
                                            ::testing::Values(1, 2, 3, 8)),
                         Name);
// Under a library `auto` traces on purpose, later.
INSTANTIATE_TEST_SUITE_P(Explicit, SteadyTest,
                         ::testing::Combine(::testing::Values(Policy::kPatch, Policy::kAuto),
                                            ::testing::Values(Commands::kExplicit),
                                            ::testing::Values(1, 2, 3, 8)),
                         Name);
INSTANTIATE_TEST_SUITE_P(All, KeptTest,
                         ::testing::Combine(::testing::ValuesIn(kEverywhere),
                                            ::testing::Values(Commands::kExplicit,
                                                              Commands::kTraced),
                                            ::testing::Values(2, 3, 8)),
                         Name);
INSTANTIATE_TEST_SUITE_P(All, HeldTest,
                         ::testing::Combine(::testing::Values(Policy::kInPlace),
                                            ::testing::Values(Commands::kExplicit,
                                                              Commands::kTraced),
                                            ::testing::Values(2, 3, 8)),
                         Name);

}  // namespace
}  // namespace keel::graph
