// Every driver call made to fail, one after the other, in lives beyond one executable's plain steps
// (executable_fault_test.cc): the measurement of the device, `auto` that changes its mind, a budget
// that evicts, a shared arena, readers on other streams, graphs of a library's own, residents.
#include <array>
#include <functional>
#include <optional>

#include "graph/graph_test.h"
#include "keel/graph/memory_budget.h"
#include "keel/graph/scratch_arena.h"
#include "keel/hal/graph.h"
#include "memory/every_call_fails_test.h"

namespace keel::graph {
namespace {

// Notes the first failure; what failed works when it is tried again.
class Tries {
 public:
  void operator()(const std::function<Status()>& what) {
    Status status = what();
    if (status.ok()) return;
    EXPECT_TRUE(IsOk(what())) << "after " << status.ToString();
    if (first_.ok()) first_ = std::move(status);
  }
  Status first() const { return first_; }

 private:
  Status first_;
};

class LivesTest : public GraphTest {
 protected:
  using Memory = std::shared_ptr<memory::DeviceMemory>;

  // Of each call that `live` makes on a device of its own.
  void Sweep(const std::function<Status(const Memory&)>& live) {
    const std::shared_ptr<hal::InstrumentedDevice> device = hal::Instrumented(bench_.inner());
    const Bytes used = bench_.controls().used();
    const std::uint64_t calls = memory::SweepCalls(
        *device,
        [&]() -> Status {
          KEEL_ASSIGN(const Memory memory, memory::DeviceMemory::Create(device, {}));
          Status status = live(memory);
          // What its end could not wait for is done before anybody asks again.
          for (const hal::StreamHandle stream : {bench_.stream(), other_.get()}) {
            EXPECT_TRUE(IsOk(bench_.inner()->SynchronizeStream(stream, Soon())));
          }
          return status;
        },
        [&] {
          EXPECT_EQ(hal::ToString(device->Live()), "");
          EXPECT_TRUE(device->retries().empty());
          EXPECT_EQ(bench_.controls().used(), used);
        });
    EXPECT_GT(calls, 30u);
  }

  // By the bare device, so that no call of the test's own is failed; done when it returns.
  void Put(DeviceAddress at, float value) {
    const std::vector<float> values(kFloats, value);
    ASSERT_TRUE(IsOk(bench_.inner()->EnqueueCopy(
        bench_.stream(), {.destination = hal::Location::On(bench_.inner()->id(), at),
                          .source = hal::Location::Host(values.data()),
                          .size = kSize})));
    ASSERT_TRUE(IsOk(bench_.inner()->SynchronizeStream(bench_.stream(), Soon())));
  }
  std::vector<float> Get(DeviceAddress at) {
    std::vector<float> values(kFloats);
    EXPECT_TRUE(IsOk(bench_.inner()->EnqueueCopy(
        bench_.stream(), {.destination = hal::Location::Host(values.data()),
                          .source = hal::Location::On(bench_.inner()->id(), at),
                          .size = kSize})));
    return values;
  }

  // sum = x + y.
  struct Summing {
    BindingId x, y, sum;
    std::shared_ptr<const Program> program;
  };
  static BindingId Bind(ProgramBuilder& builder, const char* name, Policy policy,
                        BindingAccess access) {
    return builder.Bind({.name = name, .size = kSize, .access = access, .policy = policy});
  }
  Summing MakeSumming(const std::string& name, Policy policy, bool traced = false) {
    ProgramBuilder builder(name);
    Summing made{.x = Bind(builder, "x", policy, BindingAccess::kIn),
                 .y = Bind(builder, "y", policy, BindingAccess::kIn),
                 .sum = Bind(builder, "sum", policy, BindingAccess::kOut),
                 .program = nullptr};
    const hal::KernelHandle add = bench_.Kernel(hal::kernels::kAdd);
    if (traced) {
      builder.Traced("library", ReadsAndWrites(made.x, made.y, made.sum),
                     Adds(add, made.x, made.y, made.sum));
    } else {
      builder.Kernel(add, kDims,
                     {Argument::In(made.x), Argument::In(made.y), Argument::Out(made.sum),
                      Argument::Value(std::uint64_t{kFloats})});
    }
    made.program = Need(std::move(builder).Build());
    return made;
  }
  // A step with new numbers, whose result is looked at; `place` says where x is.
  Status Step(Executable& executable, const Summing& its, std::size_t place,
              std::optional<hal::StreamHandle> stream = std::nullopt) {
    return StepAt(executable, its, xs_[place], stream);
  }
  Status StepAt(Executable& executable, const Summing& its, const Buffer& x,
                std::optional<hal::StreamHandle> stream = std::nullopt) {
    const auto number = static_cast<float>(++number_);
    Put(x.address, number);
    Put(y_.address, 0.5F);
    Put(sum_.address, -1);
    KEEL_TRY(RunStep(executable, stream.value_or(bench_.stream()),
                     {{its.x, x}, {its.y, y_}, {its.sum, sum_}}));
    EXPECT_EQ(Get(sum_.address), Same(number + 0.5F));
    return OkStatus();
  }

  const hal::Stream other_ = Need(hal::Stream::Create(bench_.inner()));
  const std::array<Buffer, 2> xs_ = {bench_.Filled(0), bench_.Filled(0)};
  const Buffer y_ = bench_.Filled(0);
  const Buffer sum_ = bench_.Filled(0);
  int number_ = 0;
};

TEST_F(LivesTest, MeasuringTheDevice) {
  Sweep([&](const Memory& memory) {
    Tries tries;
    tries([&]() -> Status {
      KEEL_ASSIGN(const PrimitiveCosts costs, MeasurePrimitiveCosts(memory, Soon()));
      EXPECT_GT(costs.copy_bytes_per_us, 0);
      return OkStatus();
    });
    return tries.first();
  });
}

TEST_F(LivesTest, AutoThatFindsThatABindingChurns) {
  const Summing summing = MakeSumming("churning", Policy::kAuto);
  Sweep([&](const Memory& memory) -> Status {
    const PrimitiveCosts costs{.patch_us = 1, .copy_bytes_per_us = 1e6};
    KEEL_ASSIGN(const auto executable,
                Executable::Create(summing.program, memory, {.slots = 1, .costs = costs}));
    Tries tries;
    for (std::size_t step = 0; step < 14; ++step) {
      tries([&] { return Step(*executable, summing, step % 2); });
    }
    EXPECT_EQ(executable->policy(summing.x), Policy::kCopy);
    EXPECT_EQ(executable->stats().policy_changes, 1u);
    tries([&] { return executable->Close(Soon()); });
    return tries.first();
  });
}

TEST_F(LivesTest, AutoThatFindsThatABindingStays) {
  const Summing summing = MakeSumming("settling", Policy::kAuto, /*traced=*/true);
  Sweep([&](const Memory& memory) -> Status {
    // Copies are dear.
    const PrimitiveCosts costs{.patch_us = 1, .copy_bytes_per_us = 1, .trace_us = 1};
    KEEL_ASSIGN(const auto executable,
                Executable::Create(summing.program, memory, {.slots = 1, .costs = costs}));
    Tries tries;
    for (int step = 0; step < 35; ++step) {
      tries([&] { return Step(*executable, summing, 0); });
    }
    EXPECT_EQ(executable->policy(summing.x), Policy::kRetrace);
    tries([&] { return Step(*executable, summing, 1); });
    tries([&] { return executable->Close(Soon()); });
    return tries.first();
  });
}

TEST_F(LivesTest, AutoThatMapsWhatChurnsUntilItBringsNoMemory) {
  const Summing summing = MakeSumming("mapping", Policy::kAuto);
  const std::array places = {bench_.MakePlace(0), bench_.MakePlace(0)};
  Sweep([&](const Memory& memory) -> Status {
    const PrimitiveCosts costs{.patch_us = 1e6, .copy_bytes_per_us = 1e-6, .remap_us = 1};
    KEEL_ASSIGN(const auto executable,
                Executable::Create(summing.program, memory, {.slots = 1, .costs = costs}));
    Tries tries;
    for (std::size_t step = 0; step < 14; ++step) {
      tries([&] { return StepAt(*executable, summing, places[step % 2].buffer); });
    }
    // What cannot be mapped is given up.
    if (tries.first().ok()) {
      EXPECT_EQ(executable->policy(summing.x), Policy::kRemap);
    }
    tries([&] { return Step(*executable, summing, 0); });
    EXPECT_EQ(executable->policy(summing.x), Policy::kPatch);
    tries([&] { return executable->Close(Soon()); });
    return tries.first();
  });
}

TEST_F(LivesTest, ABudgetThatEvicts) {
  const std::array summing = {MakeSumming("one", Policy::kCopy),
                              MakeSumming("two", Policy::kCopy, /*traced=*/true)};
  Sweep([&](const Memory& memory) -> Status {
    const auto budget = std::make_shared<MemoryBudget>(6_KiB);
    std::array<std::unique_ptr<Executable>, 2> executables;
    for (std::size_t i = 0; i < 2; ++i) {
      KEEL_ASSIGN(executables[i],
                  Executable::Create(summing[i].program, memory, {.slots = 1, .budget = budget}));
    }
    Tries tries;
    for (const std::size_t i : {0, 0, 1, 1, 0, 1, 1, 0}) {
      tries([&] { return Step(*executables[i], summing[i], i); });
    }
    EXPECT_GE(executables[0]->stats().evictions, 2u);
    EXPECT_GE(executables[1]->stats().evictions, 2u);
    for (const auto& executable : executables) tries([&] { return executable->Close(Soon()); });
    EXPECT_EQ(budget->used(), 0_B);
    return tries.first();
  });
}

TEST_F(LivesTest, AnArenaThatTwoStreamsShare) {
  std::array<Summing, 2> summing;
  for (Summing& its : summing) {
    ProgramBuilder builder("scratching");
    its.x = Bind(builder, "x", Policy::kPatch, BindingAccess::kIn);
    its.y = Bind(builder, "y", Policy::kPatch, BindingAccess::kIn);
    its.sum = Bind(builder, "sum", Policy::kPatch, BindingAccess::kOut);
    const BindingId middle = Bind(builder, "middle", Policy::kAuto, BindingAccess::kScratch);
    builder.Copy({middle}, {its.x});
    builder.Kernel(bench_.Kernel(hal::kernels::kAdd), kDims,
                   {Argument::In(middle), Argument::In(its.y), Argument::Out(its.sum),
                    Argument::Value(std::uint64_t{kFloats})});
    its.program = Need(std::move(builder).Build());
  }
  Sweep([&](const Memory& memory) -> Status {
    KEEL_ASSIGN(const auto arena,
                ScratchArena::Create(memory, summing[0].program->scratch_bytes()));
    std::array<std::unique_ptr<Executable>, 2> executables;
    for (std::size_t i = 0; i < 2; ++i) {
      KEEL_ASSIGN(executables[i],
                  Executable::Create(summing[i].program, memory, {.slots = 2, .scratch = arena}));
    }
    Tries tries;
    for (std::size_t step = 0; step < 8; ++step) {
      const std::size_t i = step % 2;
      tries([&] {
        return Step(*executables[i], summing[i], step / 4, i == 0 ? bench_.stream() : other_.get());
      });
    }
    for (const auto& executable : executables) tries([&] { return executable->Close(Soon()); });
    return tries.first();
  });
}

TEST_F(LivesTest, OutputsThatOtherStreamsReadAndStepsThatComeAfter) {
  const Summing summing = MakeSumming("held", Policy::kInPlace);
  const hal::Stream reader = Need(hal::Stream::Create(bench_.inner()));
  for (const bool alias : {false, true}) {
    Sweep([&](const Memory& memory) -> Status {
      KEEL_ASSIGN(const auto executable, Executable::Create(summing.program, memory,
                                                            {.slots = 1, .alias_outputs = alias}));
      const auto step = [&](hal::StreamHandle stream) -> Status {
        const auto number = static_cast<float>(++number_);
        Put(sum_.address, -1);
        KEEL_ASSIGN(Lease lease, executable->Acquire(stream, Soon()));
        Put(Need(lease.address(summing.x)), number);
        Put(Need(lease.address(summing.y)), 2);
        KEEL_TRY(lease.Launch(Soon()));
        KEEL_ASSIGN(HeldOutput held, lease.Hold(summing.sum));
        KEEL_TRY(lease.Wait(Soon()));
        EXPECT_TRUE(IsOk(bench_.inner()->EnqueueCopy(
            reader.get(), {.destination = hal::Location::On(bench_.inner()->id(), sum_.address),
                           .source = hal::Location::On(bench_.inner()->id(), held.address()),
                           .size = kSize})));
        KEEL_TRY(held.RecordUse(reader.get()));
        Status closed = held.Close();
        EXPECT_TRUE(IsOk(reader.Synchronize(Soon())));
        EXPECT_EQ(Get(sum_.address), Same(number + 2));
        return closed;
      };
      Tries tries;
      for (int i = 0; i < 6; ++i) {
        tries([&] { return step(i % 2 == 0 ? bench_.stream() : other_.get()); });
      }
      tries([&] { return executable->Close(Soon()); });
      return tries.first();
    });
  }
}

TEST_F(LivesTest, GraphsThatALibraryMakes) {
  ProgramBuilder builder("recorded");
  Summing summing{.x = Bind(builder, "x", Policy::kRetrace, BindingAccess::kIn),
                  .y = Bind(builder, "y", Policy::kCopy, BindingAccess::kIn),
                  .sum = Bind(builder, "sum", Policy::kCopy, BindingAccess::kOut),
                  .program = nullptr};
  const TraceFunction adds =
      Adds(bench_.Kernel(hal::kernels::kAdd), summing.x, summing.y, summing.sum);
  const hal::Stream library = Need(hal::Stream::Create(bench_.inner()));
  hal::Graph graph;
  builder.Recorded(
      "library", ReadsAndWrites(summing.x, summing.y, summing.sum),
      [&](const TraceContext& context) -> Status {
        if (!context.takes_graph()) return adds(context);
        // On the library's own device and stream, which nothing fails.
        KEEL_ASSIGN(hal::Capture capture, hal::Capture::Begin(bench_.inner(), library.get()));
        const std::array addresses = {context.address(summing.x), context.address(summing.y),
                                      context.address(summing.sum)};
        KEEL_TRY(adds(TraceContext(*bench_.inner(), library.get(), addresses, true)));
        KEEL_ASSIGN(graph, capture.End());
        context.Give(graph.get());
        return OkStatus();
      });
  summing.program = Need(std::move(builder).Build());
  Sweep([&](const Memory& memory) -> Status {
    KEEL_ASSIGN(const auto executable, Executable::Create(summing.program, memory, {.slots = 2}));
    Tries tries;
    for (const std::size_t place : {0, 0, 0, 1, 1, 0, 1}) {
      tries([&] { return Step(*executable, summing, place); });
    }
    tries([&] { return executable->Close(Soon()); });
    return tries.first();
  });
}

TEST_F(LivesTest, BindingsThatStay) {
  ProgramBuilder builder("resident");
  const Summing summing{.x = Bind(builder, "x", Policy::kAuto, BindingAccess::kResident),
                        .y = Bind(builder, "y", Policy::kAuto, BindingAccess::kResident),
                        .sum = Bind(builder, "sum", Policy::kAuto, BindingAccess::kResident),
                        .program = nullptr};
  builder.Kernel(bench_.Kernel(hal::kernels::kAdd), kDims,
                 {Argument::In(summing.x), Argument::In(summing.y), Argument::Out(summing.sum),
                  Argument::Value(std::uint64_t{kFloats})});
  builder.Traced("library", ReadsAndWrites(summing.x, summing.y, summing.sum),
                 Adds(bench_.Kernel(hal::kernels::kAdd), summing.x, summing.y, summing.sum));
  const auto program = Need(std::move(builder).Build());
  Sweep([&](const Memory& memory) -> Status {
    KEEL_ASSIGN(const auto executable, Executable::Create(program, memory, {.slots = 3}));
    Tries tries;
    for (int step = 0; step < 6; ++step) {
      tries([&] { return Step(*executable, summing, 0); });
    }
    tries([&] { return executable->Close(Soon()); });
    return tries.first();
  });
}

}  // namespace
}  // namespace keel::graph
