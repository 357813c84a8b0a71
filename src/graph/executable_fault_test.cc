// Every driver call of an executable's life made to fail, one after the other: a typed error,
// nothing leaked, and the next try works.
#include "graph/graph_test.h"
#include "keel/hal/forwarding_device.h"
#include "keel/hal/memory.h"
#include "memory/every_call_fails_test.h"

namespace keel::graph {
namespace {

struct Life {
  const char* name;
  Policy policy;
  bool traced = false;
  Mode mode = Mode::kGraph;
  int slots = 2;
  bool alias = false;
  bool node_update = true;
};

// Copies have a table there.
class WithoutNodeUpdate : public hal::ForwardingDevice {
 public:
  explicit WithoutNodeUpdate(std::shared_ptr<hal::Device> device)
      : ForwardingDevice(std::move(device)), can_(ForwardingDevice::capabilities()) {
    can_.node_update = false;
  }
  const hal::Capabilities& capabilities() const override { return can_; }

 private:
  hal::Capabilities can_;
};

class FaultTest : public GraphTest, public ::testing::WithParamInterface<Life> {
 protected:
  static constexpr int kPlaces = 3;

  Bench::Place MakePlace() {
    if (GetParam().policy == Policy::kRemap) return bench_.MakePlace(0);
    return {.buffer = bench_.Filled(0), .seen = {}};
  }
  FaultTest() {
    for (auto* places : {&a_, &b_, &sum_}) {
      for (int i = 0; i < kPlaces; ++i) places->push_back(MakePlace());
    }
    ProgramBuilder builder("faulty");
    const Policy policy = GetParam().policy;
    x_ = builder.Bind({.name = "a", .size = kSize, .policy = policy});
    y_ = builder.Bind({.name = "b", .size = kSize, .policy = policy});
    out_ = builder.Bind(
        {.name = "sum", .size = kSize, .access = BindingAccess::kOut, .policy = policy});
    const hal::KernelHandle add = bench_.Kernel(hal::kernels::kAdd);
    if (GetParam().traced) {
      builder.Traced("library", ReadsAndWrites(x_, y_, out_),
                     [this, adds = Adds(add, x_, y_, out_)](const TraceContext& context) -> Status {
                       // Other nodes in every second place: what was recorded cannot be updated.
                       if (context.address(x_) == a_[1].buffer.address) {
                         KEEL_TRY(context.device().EnqueueFill(
                             context.stream(), {.destination = context.address(out_),
                                                .value = 0,
                                                .width = 4,
                                                .count = kFloats}));
                       }
                       return adds(context);
                     });
      builder.Eager("between", {{out_, hal::Access::kReadWrite}}, [this](const TraceContext& c) {
        return c.device().EnqueueFill(
            c.stream(), {.destination = c.address(out_), .value = 0, .width = 4, .count = 1});
      });
    } else {
      builder.Kernel(add, kDims,
                     {Argument::In(x_), Argument::In(y_), Argument::Out(out_),
                      Argument::Value(std::uint64_t{kFloats})});
      builder.Fill({.binding = out_, .extent = 4_B}, 0, 4);
    }
    program_ = Need(std::move(builder).Build());
  }

  // By the bare device, so that no call of the test's own is failed.
  void Put(DeviceAddress at, float value) {
    const std::vector<float> values(kFloats, value);
    ASSERT_TRUE(IsOk(bench_.inner()->EnqueueCopy(
        bench_.stream(), {.destination = hal::Location::On(bench_.inner()->id(), at),
                          .source = hal::Location::Host(values.data()),
                          .size = kSize})));
  }
  std::vector<float> Get(DeviceAddress at) {
    std::vector<float> values(kFloats);
    EXPECT_TRUE(IsOk(bench_.inner()->EnqueueCopy(
        bench_.stream(), {.destination = hal::Location::Host(values.data()),
                          .source = hal::Location::On(bench_.inner()->id(), at),
                          .size = kSize})));
    return values;
  }

  // A step at the n-th places. In place, the slot's own memory is written and read.
  Status Step(Executable& executable, int n, float number) {
    const bool in_place = GetParam().policy == Policy::kInPlace;
    const auto at = [&](const std::vector<Bench::Place>& places) {
      return places[n % kPlaces].buffer;
    };
    KEEL_ASSIGN(Lease lease, executable.Acquire(bench_.stream(), Soon()));
    HeldOutput held;
    DeviceAddress result;
    if (in_place) {
      Put(Need(lease.address(x_)), number);
      Put(Need(lease.address(y_)), 10);
      KEEL_TRY(lease.Launch(Soon()));
      KEEL_ASSIGN(held, lease.Hold(out_));
      result = held.address();
    } else {
      Put(at(a_).address, number);
      Put(at(b_).address, 10);
      Put(at(sum_).address, -1);
      KEEL_TRY(lease.Bind(x_, at(a_)));
      KEEL_TRY(lease.Bind(y_, at(b_)));
      KEEL_TRY(lease.Bind(out_, at(sum_)));
      KEEL_TRY(lease.Launch(Soon()));
      result = at(sum_).address;
    }
    KEEL_TRY(lease.Wait(Soon()));
    std::vector<float> expected = Same(number + 10);
    expected[0] = 0;
    EXPECT_EQ(Get(result), expected);
    return held.Close();
  }

  Status Live(const std::shared_ptr<hal::InstrumentedDevice>& device) {
    KEEL_ASSIGN(const auto memory, memory::DeviceMemory::Create(device, {}));
    KEEL_ASSIGN(const auto executable, Executable::Create(program_, memory,
                                                          {.slots = GetParam().slots,
                                                           .mode = GetParam().mode,
                                                           .kept_traces = 2,
                                                           .alias_outputs = GetParam().alias,
                                                           .costs = PrimitiveCosts{}}));
    Status first;
    // What failed works when it is tried again.
    const auto twice = [&](const std::function<Status()>& what) {
      Status status = what();
      if (status.ok()) return;
      if (first.ok()) first = status;
      EXPECT_TRUE(IsOk(what())) << "after " << status.ToString();
    };
    // The first warms up or records; then everything moves, rests, and moves back.
    int number = 0;
    for (const int place : {0, 0, 0, 1, 1, 2, 0, 1}) {
      twice([&] { return Step(*executable, place, static_cast<float>(++number)); });
    }
    twice([&] { return executable->Synchronize(Soon()); });
    twice([&] { return executable->Close(Soon()); });
    return first;
  }

  std::vector<Bench::Place> a_, b_, sum_;
  BindingId x_, y_, out_;
  std::shared_ptr<const Program> program_;
};

TEST_P(FaultTest, EveryCallOfALifeMayFail) {
  const std::shared_ptr<hal::InstrumentedDevice> device = hal::Instrumented(
      GetParam().node_update ? bench_.inner()
                             : std::make_shared<WithoutNodeUpdate>(bench_.inner()));
  const Bytes used = bench_.controls().used();
  const std::uint64_t calls = memory::SweepCalls(
      *device, [&] { return Live(device); },
      [&] {
        EXPECT_EQ(hal::ToString(device->Live()), "");
        EXPECT_TRUE(device->retries().empty());
        EXPECT_EQ(bench_.controls().used(), used);
      });
  EXPECT_GT(calls, 30u);
}

INSTANTIATE_TEST_SUITE_P(
    Lives, FaultTest,
    ::testing::Values(Life{"copy", Policy::kCopy}, Life{"copy_traced", Policy::kCopy, true},
                      Life{"copy_table", Policy::kCopy, false, Mode::kGraph, 2, false, false},
                      Life{"patch", Policy::kPatch}, Life{"auto_traced", Policy::kAuto, true},
                      Life{"auto", Policy::kAuto}, Life{"in_place", Policy::kInPlace},
                      Life{"aliased", Policy::kInPlace, false, Mode::kGraph, 2, true},
                      Life{"remap", Policy::kRemap},
                      Life{"remap_traced", Policy::kRemap, true, Mode::kGraph, 1},
                      Life{"retrace", Policy::kRetrace, true, Mode::kGraph, 1},
                      Life{"eager", Policy::kCopy, true, Mode::kEager}),
    [](const auto& life) { return std::string(life.param.name); });

}  // namespace
}  // namespace keel::graph
