// Steps of many threads on many slots and devices, with inputs that change and move, beside the
// same steps without any graph: bit for bit. Under every policy. On simulated devices, whose
// streams are delayed, and on the first real one, where there is one.
#include <cstdlib>
#include <ostream>
#include <random>
#include <thread>
#include <tuple>

#include "graph/graph_test.h"
#include "keel/hal/driver.h"
#include "keel/hal/memory.h"

namespace keel::graph {
namespace {

// Of one combination, over all threads; or of each thread, in the long form.
int StepsOf(int threads) {
  const char* const soak = std::getenv("KEEL_SOAK");
  if (soak != nullptr && *soak != '\0') return 10'000;
  return std::max(96 / threads, 6);
}

enum class Where { kSimulated, kReal };

void PrintTo(Where where, std::ostream* out) {
  *out << (where == Where::kReal ? "real" : "simulated");
}

using Combination = std::tuple<Where, int, int, int>;  // ..., slots, threads, devices

class ParityTest : public ::testing::TestWithParam<Combination> {
 protected:
  static constexpr int kPlaces = 3;
  static constexpr float kWeight = 0.125F;

  struct Ids {
    BindingId a, b, middle, sum, total, weights, copied, chosen, traced, second, mapped, third;
    BindingId island;  // what an eager command writes, between two graphs
  };
  // One device: the program with graphs, and without.
  struct Rig {
    explicit Rig(std::shared_ptr<hal::Device> inner) : bench(std::move(inner)) {}
    Bench bench;
    Ids ids;
    hal::MappedMemory weights;  // outlives what is bound to it
    std::unique_ptr<Executable> graph;
    std::unique_ptr<Executable> eager;
  };
  // What a thread works with: a stream, and bytes to put in and take out.
  struct Hands {
    explicit Hands(const std::shared_ptr<hal::Device>& its)
        : device(*its), stream(Need(hal::Stream::Create(its))) {}
    void Put(DeviceAddress at, const std::vector<float>& values) {
      EXPECT_TRUE(
          IsOk(device.EnqueueCopy(stream.get(), {.destination = hal::Location::On(device.id(), at),
                                                 .source = hal::Location::Host(values.data()),
                                                 .size = kSize})));
    }
    std::vector<float> Get(DeviceAddress at) {
      std::vector<float> values(kFloats);
      EXPECT_TRUE(
          IsOk(device.EnqueueCopy(stream.get(), {.destination = hal::Location::Host(values.data()),
                                                 .source = hal::Location::On(device.id(), at),
                                                 .size = kSize})));
      return values;
    }
    hal::Device& device;
    hal::Stream stream;
  };

  static std::unique_ptr<Rig> MakeRig(std::shared_ptr<hal::Device> inner, int slots) {
    auto rig = std::make_unique<Rig>(std::move(inner));
    ProgramBuilder builder("parity");
    Ids& ids = rig->ids;
    ids.a = builder.Bind({.name = "a", .size = kSize});
    ids.b = builder.Bind({.name = "b", .size = kSize, .policy = Policy::kCopy});
    ids.middle = builder.Bind({.name = "middle", .size = kSize, .access = BindingAccess::kScratch});
    ids.sum = builder.Bind(
        {.name = "sum", .size = kSize, .access = BindingAccess::kOut, .policy = Policy::kInPlace});
    ids.total = builder.Bind({.name = "total",
                              .size = kSize,
                              .access = BindingAccess::kInOut,
                              .policy = Policy::kPatch});
    ids.copied = builder.Bind(
        {.name = "copied", .size = kSize, .access = BindingAccess::kOut, .policy = Policy::kCopy});
    ids.chosen = builder.Bind({.name = "chosen", .size = kSize, .access = BindingAccess::kOut});
    ids.island = builder.Bind({.name = "island", .size = kSize, .access = BindingAccess::kScratch});
    const hal::KernelHandle add = rig->bench.Kernel(hal::kernels::kAdd);
    builder.Kernel(add, kDims,
                   {Argument::In(ids.a), Argument::In(ids.b), Argument::Out(ids.middle),
                    Argument::Value(std::uint64_t{kFloats})});
    builder.Eager("island", ReadsAndWrites(ids.middle, ids.b, ids.island),
                  Adds(add, ids.middle, ids.b, ids.island));
    builder.Traced("traced", ReadsAndWrites(ids.island, ids.b, ids.sum),
                   Adds(add, ids.island, ids.b, ids.sum));
    builder.Kernel(rig->bench.Kernel(hal::kernels::kAxpy), kDims,
                   {Argument::In(ids.sum), Argument::InOut(ids.total), Argument::Value(0.37F),
                    Argument::Value(std::uint64_t{kFloats})});
    builder.Traced("copied", ReadsAndWrites(ids.sum, ids.b, ids.copied),
                   Adds(add, ids.sum, ids.b, ids.copied));
    builder.Kernel(add, kDims,
                   {Argument::In(ids.copied), Argument::In(ids.a), Argument::Out(ids.chosen),
                    Argument::Value(std::uint64_t{kFloats})});
    const auto program = Need(std::move(builder).Build());
    // `auto` soon copies, and does both in a run.
    const PrimitiveCosts costs{.patch_us = 1, .copy_bytes_per_us = 1e6};
    rig->graph =
        Need(Executable::Create(program, rig->bench.memory(), {.slots = slots, .costs = costs}));
    rig->eager = Need(Executable::Create(program, rig->bench.memory(),
                                         {.slots = slots, .mode = Mode::kEager, .costs = costs}));
    return rig;
  }

  // The policies that the other program has not: `a` is traced again, `b` and `total` are mapped,
  // `weights` stay, and `sum` is read through its alias. `auto` has one that a library uses, and
  // one that brings its memory.
  static std::unique_ptr<Rig> MakeMappedRig(std::shared_ptr<hal::Device> inner, int slots) {
    auto rig = std::make_unique<Rig>(std::move(inner));
    ProgramBuilder builder("mapped");
    Ids& ids = rig->ids;
    ids.a = builder.Bind({.name = "a", .size = kSize, .policy = Policy::kRetrace});
    ids.b = builder.Bind({.name = "b", .size = kSize, .policy = Policy::kRemap});
    ids.middle = builder.Bind({.name = "middle", .size = kSize, .access = BindingAccess::kScratch});
    ids.weights =
        builder.Bind({.name = "weights", .size = kSize, .access = BindingAccess::kResident});
    ids.sum = builder.Bind(
        {.name = "sum", .size = kSize, .access = BindingAccess::kOut, .policy = Policy::kInPlace});
    ids.total = builder.Bind({.name = "total",
                              .size = kSize,
                              .access = BindingAccess::kInOut,
                              .policy = Policy::kRemap});
    const hal::KernelHandle add = rig->bench.Kernel(hal::kernels::kAdd);
    ids.traced = builder.Bind({.name = "traced", .size = kSize});
    ids.second = builder.Bind({.name = "second", .size = kSize, .access = BindingAccess::kScratch});
    ids.mapped = builder.Bind({.name = "mapped", .size = kSize});
    ids.third = builder.Bind({.name = "third", .size = kSize, .access = BindingAccess::kScratch});
    ids.island = builder.Bind({.name = "island", .size = kSize, .access = BindingAccess::kScratch});
    builder.Traced("traced", ReadsAndWrites(ids.a, ids.b, ids.middle),
                   Adds(add, ids.a, ids.b, ids.middle));
    builder.Eager("island", ReadsAndWrites(ids.middle, ids.b, ids.island),
                  Adds(add, ids.middle, ids.b, ids.island));
    builder.Traced("chosen", ReadsAndWrites(ids.island, ids.traced, ids.second),
                   Adds(add, ids.island, ids.traced, ids.second));
    for (const auto& [one, other, sum] : {std::tuple(ids.second, ids.mapped, ids.third),
                                          std::tuple(ids.third, ids.weights, ids.sum)}) {
      builder.Kernel(add, kDims,
                     {Argument::In(one), Argument::In(other), Argument::Out(sum),
                      Argument::Value(std::uint64_t{kFloats})});
    }
    builder.Kernel(rig->bench.Kernel(hal::kernels::kAxpy), kDims,
                   {Argument::In(ids.sum), Argument::InOut(ids.total), Argument::Value(0.37F),
                    Argument::Value(std::uint64_t{kFloats})});
    const auto program = Need(std::move(builder).Build());
    rig->weights = Need(hal::MappedMemory::Create(rig->bench.inner(), kSize));
    Hands hands(rig->bench.inner());
    hands.Put(rig->weights.address(), Same(kWeight));
    EXPECT_TRUE(IsOk(hands.stream.Synchronize(Soon())));
    // Tracing and mapping seem cheap until they are done: both are chosen, and given up again.
    const PrimitiveCosts costs{
        .patch_us = 1, .copy_bytes_per_us = 20, .trace_us = 1, .remap_us = 0.1};
    const auto make = [&](Mode mode) {
      auto executable = Need(Executable::Create(
          program, rig->bench.memory(),
          {.slots = slots, .mode = mode, .alias_outputs = true, .costs = costs}));
      EXPECT_TRUE(IsOk(executable->Bind(ids.weights, {rig->weights.address(), kSize})));
      return executable;
    };
    rig->graph = make(Mode::kGraph);
    rig->eager = make(Mode::kEager);
    return rig;
  }

  // The first real driver whose device can run this test; null where there is none, and why not.
  static hal::Driver* FindReal(std::string& reasons) {
    for (hal::Driver* const driver : hal::Registry::Global().drivers()) {
      if (driver->simulated()) continue;
      const Status status = CanRun(*driver);
      if (status.ok()) return driver;
      reasons += "; " + std::string(driver->name()) + ": " + status.ToString();
    }
    return nullptr;
  }
  // A device that is there and cannot be opened is a failure of Open, not a reason to skip.
  static Status CanRun(hal::Driver& driver) {
    KEEL_ASSIGN(const std::vector<hal::DeviceInfo> devices, driver.Enumerate());
    if (devices.empty()) return Unavailable("it has no device");
    const auto device = Need(driver.Open(0));
    if (!device->capabilities().graphs) return Unimplemented("its device has no graphs");
    return device->StandardKernels().status();
  }

  static std::vector<float> Added(std::vector<float> sum, const std::vector<float>& other) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += other[i];
    return sum;
  }

  // One thread's steps. `b` is where its device reads it: perhaps a peer's memory.
  static void Run(Rig& rig, DeviceAddress b, std::uint32_t seed, int steps) {
    Hands hands(rig.bench.inner());
    const auto plain = [&] { return Need(hal::PlainMemory::Create(rig.bench.inner(), kSize)); };
    std::vector<hal::PlainMemory> places;
    std::vector<hal::PlainMemory> out_places;
    places.reserve(kPlaces);
    out_places.reserve(2 * kPlaces);
    for (int i = 0; i < kPlaces; ++i) places.push_back(plain());
    for (int i = 0; i < 2 * kPlaces; ++i) out_places.push_back(plain());
    const hal::PlainMemory totals[] = {plain(), plain()};
    for (const hal::PlainMemory& total : totals) hands.Put(total.address(), Same(0));

    std::minstd_rand random(seed);
    for (int step = 0; step < steps && !testing::Test::HasFailure(); ++step) {
      std::vector<float> input(kFloats);
      for (float& value : input) value = static_cast<float>(random()) * 1e-5F;
      const DeviceAddress a = places[random() % kPlaces].address();
      hands.Put(a, input);
      const std::vector<float> at_a = input;
      for (float& value : input) value = 1 / (value + 1);
      hands.Put(b, input);
      // Both write the same places, one after the other.
      const DeviceAddress copied = out_places[random() % kPlaces].address();
      const DeviceAddress chosen = out_places[kPlaces + random() % kPlaces].address();
      std::vector<std::vector<float>> results[2];
      for (int which = 0; which < 2; ++which) {
        Executable& executable = which == 0 ? *rig.graph : *rig.eager;
        hands.Put(copied, Same(-1));
        hands.Put(chosen, Same(-1));
        Lease lease = Need(executable.Acquire(hands.stream.get(), Soon()));
        EXPECT_TRUE(IsOk(lease.Bind(rig.ids.a, {a, kSize})));
        EXPECT_TRUE(IsOk(lease.Bind(rig.ids.b, {b, kSize})));
        EXPECT_TRUE(IsOk(lease.Bind(rig.ids.total, {totals[which].address(), kSize})));
        EXPECT_TRUE(IsOk(lease.Bind(rig.ids.copied, {copied, kSize})));
        EXPECT_TRUE(IsOk(lease.Bind(rig.ids.chosen, {chosen, kSize})));
        ASSERT_TRUE(IsOk(lease.Launch(Soon())));
        const HeldOutput held = Need(lease.Hold(rig.ids.sum));
        lease = Lease();  // others may run while this is read
        for (const DeviceAddress at : {held.address(), copied, chosen}) {
          results[which].push_back(hands.Get(at));
        }
      }
      ASSERT_EQ(results[0], results[1]) << "step " << step;
      // What both left in the wrong place would be alike.
      ASSERT_EQ(results[0][1], Added(results[0][0], input)) << "step " << step;
      ASSERT_EQ(results[0][2], Added(results[0][1], at_a)) << "step " << step;
    }
    EXPECT_EQ(hands.Get(totals[0].address()), hands.Get(totals[1].address()));
    EXPECT_TRUE(IsOk(hands.stream.Synchronize(Soon())));
  }

  // Memory that is mapped under a graph's address, and where the thread itself sees it.
  struct Mapped {
    explicit Mapped(const std::shared_ptr<hal::Device>& device) {
      const Bytes size = *AlignUp(kSize, device->capabilities().granularity.minimum);
      memory = std::make_shared<const hal::PhysicalMemory>(
          Need(hal::PhysicalMemory::Create(device, size)));
      const hal::AddressRange range = Need(hal::AddressRange::Create(device, size));
      const hal::AccessGrant grant{.device = device->id(), .access = hal::Access::kReadWrite};
      seen = Need(hal::Mapping::Create(range, Offset(0), *memory, {&grant, 1}));
    }
    std::shared_ptr<const hal::PhysicalMemory> memory;
    hal::Mapping seen;
  };

  // One thread's steps of the other program.
  static void RunMapped(Rig& rig, std::uint32_t seed, int steps) {
    Hands hands(rig.bench.inner());
    std::vector<hal::PlainMemory> as, traced;
    std::vector<Mapped> bs, mapped;
    for (int i = 0; i < kPlaces; ++i) {
      as.push_back(Need(hal::PlainMemory::Create(rig.bench.inner(), kSize)));
      traced.push_back(Need(hal::PlainMemory::Create(rig.bench.inner(), kSize)));
      bs.emplace_back(rig.bench.inner());
      mapped.emplace_back(rig.bench.inner());
    }
    const Mapped totals[] = {Mapped(rig.bench.inner()), Mapped(rig.bench.inner())};
    for (const Mapped& total : totals) hands.Put(total.seen.address(), Same(0));

    std::minstd_rand random(seed);
    for (int step = 0; step < steps && !testing::Test::HasFailure(); ++step) {
      std::vector<float> input(kFloats);
      for (float& value : input) value = static_cast<float>(random()) * 1e-5F;
      const DeviceAddress a = as[random() % kPlaces].address();
      const Mapped& b = bs[random() % kPlaces];
      hands.Put(a, input);
      std::vector<float> expected = input;
      for (float& value : input) value = 1 / (value + 1);
      hands.Put(b.seen.address(), input);
      const DeviceAddress t = traced[random() % kPlaces].address();
      const Mapped& m = mapped[random() % kPlaces];
      const std::vector<float> at_t = Same(static_cast<float>(random()) * 1e-6F);
      const std::vector<float> at_m = Same(static_cast<float>(random()) * 1e-7F);
      hands.Put(t, at_t);
      hands.Put(m.seen.address(), at_m);
      // `b` is added twice: in the graph, and between both.
      for (const std::vector<float>& each : {input, input, at_t, at_m, Same(kWeight)}) {
        expected = Added(std::move(expected), each);
      }
      std::vector<float> sums[2];
      for (int which = 0; which < 2; ++which) {
        Executable& executable = which == 0 ? *rig.graph : *rig.eager;
        Lease lease = Need(executable.Acquire(hands.stream.get(), Soon()));
        EXPECT_TRUE(IsOk(lease.Bind(rig.ids.a, {a, kSize})));
        EXPECT_TRUE(IsOk(lease.Bind(rig.ids.b, {.memory = b.memory})));
        EXPECT_TRUE(IsOk(lease.Bind(rig.ids.total, {.memory = totals[which].memory})));
        EXPECT_TRUE(IsOk(lease.Bind(rig.ids.traced, {t, kSize})));
        EXPECT_TRUE(IsOk(lease.Bind(
            rig.ids.mapped, {.address = m.seen.address(), .size = kSize, .memory = m.memory})));
        ASSERT_TRUE(IsOk(lease.Launch(Soon())));
        const HeldOutput held = Need(lease.Hold(rig.ids.sum));
        EXPECT_NE(held.address(), Need(lease.address(rig.ids.sum)));
        lease = Lease();  // others may run while this is read
        sums[which] = hands.Get(held.address());
      }
      ASSERT_EQ(sums[0], sums[1]) << "step " << step;
      ASSERT_EQ(sums[0], expected) << "step " << step;
    }
    EXPECT_EQ(hands.Get(totals[0].seen.address()), hands.Get(totals[1].seen.address()));
    EXPECT_TRUE(IsOk(hands.stream.Synchronize(Soon())));
  }

  // The devices of a combination. Null, and the test skipped: there is no real one.
  hal::Driver* MakeDriver() {
    const auto [where, slots, threads, devices] = GetParam();
    if (where == Where::kReal) {
      std::string reasons;
      hal::Driver* const driver = FindReal(reasons);
      if (driver == nullptr) skipped_ = "no real device" + reasons;
      return driver;
    }
    simulated_ = Need(sim::CreateSimDriver({.devices = devices,
                                            .memory = 512_MiB,
                                            .arena = 8_GiB,
                                            .seed = static_cast<std::uint64_t>(slots + threads),
                                            .delay_us = 20}));
    return simulated_.get();
  }

  std::unique_ptr<hal::Driver> simulated_;
  std::string skipped_;
};

TEST_P(ParityTest, StepsGiveBitForBitWhatTheyGiveWithoutGraphs) {
  const auto [where, slots, threads, devices] = GetParam();
  hal::Driver* const driver = MakeDriver();
  if (driver == nullptr) GTEST_SKIP() << skipped_;
  std::vector<std::unique_ptr<Rig>> rigs;
  std::vector<hal::Device*> all;
  for (int i = 0; i < devices; ++i) {
    rigs.push_back(MakeRig(Need(driver->Open(i)), slots));
    all.push_back(rigs.back()->bench.inner().get());
  }
  // Each thread's second input is in the memory of the next device.
  std::vector<hal::MappedMemory> inputs;
  for (int i = 0; i < threads; ++i) {
    Rig& owner = *rigs[static_cast<std::size_t>((i + 1) % devices)];
    const auto grants = Need(hal::GrantsForPeers(*owner.bench.inner(), all));
    inputs.push_back(Need(hal::MappedMemory::Create(owner.bench.inner(), kSize, grants)));
  }
  std::vector<std::thread> running;
  running.reserve(static_cast<std::size_t>(threads));
  for (int i = 0; i < threads; ++i) {
    running.emplace_back([&, i, steps = StepsOf(threads)] {
      Run(*rigs[static_cast<std::size_t>(i % devices)],
          inputs[static_cast<std::size_t>(i)].address(), static_cast<std::uint32_t>(i + 1), steps);
    });
  }
  for (std::thread& thread : running) thread.join();
  for (const std::unique_ptr<Rig>& rig : rigs) {
    const ExecutableStats stats = rig->graph->stats();
    EXPECT_EQ(stats.steps, rig->eager->stats().steps);
    EXPECT_EQ(stats.failed_steps, 0u);
    EXPECT_LE(stats.graphs_recorded, static_cast<std::uint64_t>(2 * slots))
        << "once for each slot: two, with an eager command between them";
    EXPECT_TRUE(IsOk(rig->graph->Close(Soon())));
    EXPECT_TRUE(IsOk(rig->eager->Close(Soon())));
  }
}

TEST_P(ParityTest, SoDoStepsOfMappedTracedAndResidentBindings) {
  const auto [where, slots, threads, devices] = GetParam();
  hal::Driver* const driver = MakeDriver();
  if (driver == nullptr) GTEST_SKIP() << skipped_;
  std::vector<std::unique_ptr<Rig>> rigs;
  rigs.reserve(static_cast<std::size_t>(devices));
  for (int i = 0; i < devices; ++i) rigs.push_back(MakeMappedRig(Need(driver->Open(i)), slots));
  std::vector<std::thread> running;
  running.reserve(static_cast<std::size_t>(threads));
  for (int i = 0; i < threads; ++i) {
    running.emplace_back([&, i, steps = StepsOf(threads)] {
      RunMapped(*rigs[static_cast<std::size_t>(i) % rigs.size()], static_cast<std::uint32_t>(i + 1),
                steps);
    });
  }
  for (std::thread& thread : running) thread.join();
  for (const std::unique_ptr<Rig>& rig : rigs) {
    const ExecutableStats stats = rig->graph->stats();
    EXPECT_EQ(stats.steps, rig->eager->stats().steps);
    EXPECT_EQ(stats.failed_steps, 0u);
    if (stats.steps != 0) {
      EXPECT_GT(stats.bindings_remapped, 0u);
    }
    // What a library uses settles with the 32nd, and what is patched has churned long before.
    if (stats.steps > 40) {
      EXPECT_GE(stats.policy_changes, 2u);
    }
    EXPECT_LE(stats.graphs_recorded, static_cast<std::uint64_t>(4 * slots))
        << "once for each slot: two, with copies and without";
    EXPECT_TRUE(IsOk(rig->graph->Close(Soon())));
    EXPECT_TRUE(IsOk(rig->eager->Close(Soon())));
  }
}

std::string Name(const ::testing::TestParamInfo<Combination>& info) {
  const auto [where, slots, threads, devices] = info.param;
  return std::to_string(slots) + "slots" + std::to_string(threads) + "threads" +
         std::to_string(devices) + "devices";
}

INSTANTIATE_TEST_SUITE_P(All, ParityTest,
                         ::testing::Combine(::testing::Values(Where::kSimulated),
                                            ::testing::Values(1, 2, 3, 8),
                                            ::testing::Values(1, 4, 16), ::testing::Values(1, 8)),
                         Name);
INSTANTIATE_TEST_SUITE_P(Real, ParityTest,
                         ::testing::Combine(::testing::Values(Where::kReal),
                                            ::testing::Values(1, 2, 3, 8),
                                            ::testing::Values(1, 4, 16), ::testing::Values(1)),
                         Name);

}  // namespace
}  // namespace keel::graph
