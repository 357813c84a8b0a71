// How copies get their addresses: with the launch where that can be, from a table where not. What
// a step calls for it, whom it waits for, and that the right bytes arrive.
#include "graph/graph_test.h"
#include "graph/layout.h"

namespace keel::graph {
namespace {

// Inputs and outputs of any sizes: output i is what input i has.
struct Moving {
  std::vector<BindingId> in, out;
  std::shared_ptr<const Program> program;
};

class RowsTest : public GraphTest {
 protected:
  using Values = std::vector<std::byte>;

  static Moving MakeMoving(const std::vector<Bytes>& sizes, Policy inputs = Policy::kCopy) {
    ProgramBuilder builder("moving");
    Moving made;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const std::string number = std::to_string(i);
      made.in.push_back(builder.Bind({.name = "in" + number, .size = sizes[i], .policy = inputs}));
      made.out.push_back(builder.Bind({.name = "out" + number,
                                       .size = sizes[i],
                                       .access = BindingAccess::kOut,
                                       .policy = Policy::kCopy}));
      builder.Copy({made.out.back()}, {made.in.back()});
    }
    made.program = Need(std::move(builder).Build());
    return made;
  }
  static Values Pattern(Bytes size, unsigned seed) {
    Values values(size.count());
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<std::byte>((i * 7 + seed * 31 + i / 251) & 0xff);
    }
    return values;
  }
  // At `offset` of an allocation, so that not everything is aligned.
  Buffer Place(const Values& values, Bytes offset = 0_B) {
    Buffer buffer = bench_.Allocate(Bytes(values.size()) + offset);
    buffer.address = buffer.address + offset;
    buffer.size = Bytes(values.size());
    EXPECT_TRUE(IsOk(bench_.memory()->CopyToDevice(bench_.stream(), buffer.address, values.data(),
                                                   buffer.size, Soon())));
    return buffer;
  }
  Values Read(const Buffer& buffer) {
    Values values(buffer.size.count());
    EXPECT_TRUE(IsOk(bench_.memory()->CopyToHost(bench_.stream(), values.data(), buffer.address,
                                                 buffer.size, Soon())));
    return values;
  }
  Layout LayoutOf(const Moving& moving, bool node_update = true) {
    hal::Capabilities can = bench_.inner()->capabilities();
    can.node_update = node_update;
    return Need(Layout::Of(*moving.program, can, false));
  }
  // Binds what the first `count` bindings of both kinds are to other places, and what is expected
  // there; launches, and looks at the calls.
  struct Step {
    Lease lease;
    std::vector<std::pair<Buffer, Values>> expected;
  };
  Step Launch(Executable& executable, const Moving& moving, std::size_t count, unsigned seed,
              Bytes offset = 0_B) {
    Step step{.lease = Need(executable.Acquire(bench_.stream(), Soon())), .expected = {}};
    const auto& bindings = moving.program->bindings();
    for (std::size_t i = 0; i < count; ++i) {
      const Bytes size = bindings[moving.in[i].index].size;
      const Values values = Pattern(size, seed + static_cast<unsigned>(i));
      const Buffer to = Place(Values(size.count()), offset);
      EXPECT_TRUE(IsOk(step.lease.Bind(moving.in[i], Place(values, offset))));
      EXPECT_TRUE(IsOk(step.lease.Bind(moving.out[i], to)));
      step.expected.emplace_back(to, values);
    }
    bench_.device().ResetCounts();
    EXPECT_TRUE(IsOk(step.lease.Launch(Soon())));
    return step;
  }
  void Check(const Step& step) {
    for (const auto& [buffer, values] : step.expected) {
      EXPECT_TRUE(Read(buffer) == values) << "at " << ToString(buffer.address);
    }
  }
  // For all steps that do not say otherwise.
  void BindAll(Executable& executable, const Moving& moving) {
    for (std::size_t i = 0; i < moving.in.size(); ++i) {
      const Bytes size = moving.program->bindings()[moving.in[i].index].size;
      ASSERT_TRUE(IsOk(executable.Bind(moving.in[i], Place(Pattern(size, 1)))));
      ASSERT_TRUE(IsOk(executable.Bind(moving.out[i], Place(Values(size.count())))));
    }
  }
};

// With the launch go as many as fit, and the rest is the exception.
TEST_F(RowsTest, G2_GoWithTheLaunchIfTheyFit) {
  constexpr std::size_t kHalf = hal::kernels::kMostRows / 2;
  const Layout fit = LayoutOf(MakeMoving(std::vector<Bytes>(kHalf, 16_B)));
  EXPECT_TRUE(fit.by_value);
  EXPECT_TRUE(fit.small_in);
  EXPECT_FALSE(fit.rewrites);
  const Layout many = LayoutOf(MakeMoving(std::vector<Bytes>(kHalf + 1, 16_B)));
  EXPECT_FALSE(many.by_value);
  EXPECT_TRUE(many.rewrites);
  EXPECT_FALSE(LayoutOf(MakeMoving({16_B}), /*node_update=*/false).by_value);
  EXPECT_FALSE(LayoutOf(MakeMoving({16_B}, Policy::kPatch)).by_value) << "nothing goes in";
  const Layout large = LayoutOf(MakeMoving({16_B, 4097_B}));
  EXPECT_TRUE(large.by_value);
  EXPECT_FALSE(large.small_in);
  EXPECT_FALSE(LayoutOf(MakeMoving({16_MiB})).fetch) << "there is nothing to fetch";
}

TEST_F(RowsTest, AStepIsALaunchAndACallMoreIfSomethingMoved) {
  const Moving moving = MakeMoving(std::vector<Bytes>(32, 4_KiB));
  const auto executable = Need(Executable::Create(moving.program, bench_.memory(), {.slots = 1}));
  BindAll(*executable, moving);
  ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream())));
  for (const std::size_t moved : {0, 1, 5, 32}) {
    SCOPED_TRACE(moved);
    Step step = Launch(*executable, moving, moved, 100);
    EXPECT_EQ(step.lease.report().rebound, 2 * moved);
    EXPECT_EQ(step.lease.report().patched, 0u);
    EXPECT_EQ(bench_.device().calls(Primitive::kLaunchGraph), 1u);
    EXPECT_EQ(bench_.device().calls(Primitive::kSetNodeParams), moved == 0 ? 0u : 1u);
    EXPECT_EQ(bench_.device().calls(), moved == 0 ? 1u : 2u);
    ASSERT_TRUE(IsOk(step.lease.Wait(Soon())));
    Check(step);
    step = {};
    // What the step bound is bound by default again, which is a move too; then all rests.
    for (const std::uint64_t calls : {moved == 0 ? 1u : 2u, 1u}) {
      bench_.device().ResetCounts();
      Lease lease = Need(executable->Acquire(bench_.stream(), Soon()));
      ASSERT_TRUE(IsOk(lease.Launch(Soon())));
      EXPECT_EQ(bench_.device().calls(), calls);
      ASSERT_TRUE(IsOk(lease.Wait(Soon())));
    }
  }
}

TEST_F(RowsTest, InATableAMoveIsNoCall) {
  const std::vector<Bytes> many(hal::kernels::kMostRows, 64_B);
  for (const Moving& moving : {MakeMoving(many), MakeMoving({64_B, 4_KiB}, Policy::kInPlace)}) {
    ASSERT_FALSE(LayoutOf(moving).by_value);
    const auto executable = Need(Executable::Create(moving.program, bench_.memory(), {.slots = 1}));
    const bool in_place = moving.in.size() == 2;
    for (unsigned i = 0; i < 4; ++i) {
      Lease lease = Need(executable->Acquire(bench_.stream(), Soon()));
      std::vector<std::pair<Buffer, Values>> expected;
      for (std::size_t k = 0; k < moving.in.size(); ++k) {
        const Bytes size = moving.program->bindings()[moving.in[k].index].size;
        const Values values = Pattern(size, 10 * i + static_cast<unsigned>(k));
        if (in_place) {
          ASSERT_TRUE(IsOk(bench_.memory()->CopyToDevice(
              bench_.stream(), Need(lease.address(moving.in[k])), values.data(), size, Soon())));
        } else {
          ASSERT_TRUE(IsOk(lease.Bind(moving.in[k], Place(values))));
        }
        expected.emplace_back(Place(Values(size.count())), values);
        ASSERT_TRUE(IsOk(lease.Bind(moving.out[k], expected.back().first)));
      }
      bench_.device().ResetCounts();
      ASSERT_TRUE(IsOk(lease.Launch(Soon())));
      // The first one records.
      EXPECT_EQ(bench_.device().calls(Primitive::kSetNodeParams), 0u);
      if (i != 0) {
        EXPECT_EQ(bench_.device().calls(), 1u) << "the launch";
      }
      ASSERT_TRUE(IsOk(lease.Wait(Soon())));
      for (const auto& [buffer, values] : expected) EXPECT_TRUE(Read(buffer) == values);
    }
  }
}

// What is queued keeps its own rows, so that nobody waits for it.
TEST_F(RowsTest, G10_ASlotWhoseStepsAreQueuedTakesOthers) {
  for (const Mode mode : {Mode::kGraph, Mode::kEager}) {
    const Moving moving = MakeMoving({4_KiB, 100_B, 8_B});
    const auto executable =
        Need(Executable::Create(moving.program, bench_.memory(), {.slots = 1, .mode = mode}));
    ASSERT_TRUE(IsOk(Launch(*executable, moving, 3, 1).lease.Wait(Soon())));
    // Places are made before the stream is held, which would hold their making too.
    struct Places {
      std::vector<Buffer> in, out;
      std::vector<Values> values;
    };
    std::vector<Places> steps(6);
    for (unsigned i = 0; i < steps.size(); ++i) {
      for (const BindingId binding : moving.in) {
        const Bytes size = moving.program->bindings()[binding.index].size;
        steps[i].values.push_back(Pattern(size, 50 + i));
        steps[i].in.push_back(Place(steps[i].values.back()));
        steps[i].out.push_back(Place(Values(size.count())));
      }
    }
    ASSERT_TRUE(IsOk(bench_.controls().HoldStream(bench_.stream())));
    for (const Places& places : steps) {
      Lease lease = Need(executable->Acquire(bench_.stream(), Deadline::Now()));
      for (std::size_t i = 0; i < moving.in.size(); ++i) {
        ASSERT_TRUE(IsOk(lease.Bind(moving.in[i], places.in[i])));
        ASSERT_TRUE(IsOk(lease.Bind(moving.out[i], places.out[i])));
      }
      EXPECT_TRUE(IsOk(lease.Launch(Deadline::Now())));
      EXPECT_EQ(lease.report().waited_ns, 0);
      EXPECT_EQ(lease.report().rebound, 6u);
    }
    ASSERT_TRUE(IsOk(bench_.controls().ReleaseStream(bench_.stream())));
    ASSERT_TRUE(IsOk(executable->Synchronize(Soon())));
    for (const Places& places : steps) {
      for (std::size_t i = 0; i < moving.in.size(); ++i) {
        EXPECT_TRUE(Read(places.out[i]) == places.values[i]);
      }
    }
  }
}

// Nor for the half of one that failed, which has rows of its own too.
TEST_F(RowsTest, G9_AStepThatFailedHalfWayKeepsItsRows) {
  ProgramBuilder builder("half");
  const BindingId x = builder.Bind({.name = "x", .size = kSize, .policy = Policy::kCopy});
  const BindingId y = builder.Bind(
      {.name = "y", .size = kSize, .access = BindingAccess::kOut, .policy = Policy::kCopy});
  const Buffer trace = bench_.Filled(0);
  const BindingId seen =
      builder.Bind({.name = "seen", .size = kSize, .access = BindingAccess::kResident});
  bool fails = false;
  builder.Copy({y}, {x});
  builder.Copy({seen}, {x});
  builder.Eager("unsteady", {{x, hal::Access::kRead}},
                [&](const TraceContext&) { return fails ? Internal("no") : OkStatus(); });
  const auto executable =
      Need(Executable::Create(Need(std::move(builder).Build()), bench_.memory(), {.slots = 1}));
  ASSERT_TRUE(IsOk(executable->Bind(seen, trace)));
  const Bound first = {{x, bench_.Filled(1)}, {y, bench_.Filled(0)}};
  const Bound second = {{x, bench_.Filled(2)}, {y, bench_.Filled(0)}};
  const Bound third = {{x, bench_.Filled(3)}, {y, bench_.Filled(0)}};
  const Buffer between = bench_.Filled(0);
  ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream(), first)));
  ASSERT_TRUE(IsOk(bench_.controls().HoldStream(bench_.stream())));
  fails = true;
  EXPECT_EQ(RunStep(*executable, bench_.stream(), second).code(), StatusCode::kInternal);
  fails = false;
  // What the failed half saw.
  ASSERT_TRUE(IsOk(bench_.inner()->EnqueueCopy(
      bench_.stream(), {.destination = hal::Location::On(bench_.inner()->id(), between.address),
                        .source = hal::Location::On(bench_.inner()->id(), trace.address),
                        .size = kSize})));
  {
    Lease lease = Need(executable->Acquire(bench_.stream(), Soon()));
    for (const auto& [binding, buffer] : third) ASSERT_TRUE(IsOk(lease.Bind(binding, buffer)));
    EXPECT_TRUE(IsOk(lease.Launch(Deadline::Now())));
    EXPECT_EQ(lease.report().waited_ns, 0);
    ASSERT_TRUE(IsOk(bench_.controls().ReleaseStream(bench_.stream())));
    ASSERT_TRUE(IsOk(lease.Wait(Soon())));
  }
  EXPECT_EQ(bench_.Read(between), Same(2));
  EXPECT_EQ(bench_.Read(second[1].second), Same(0)) << "its second half did not run";
  EXPECT_EQ(bench_.Read(third[1].second), Same(3));
}

TEST_F(RowsTest, OfEverySizeAndAlignment) {
  const std::vector<Bytes> small = {4_KiB, 4_B, 1_B, 100_B, 16_B, 999_B, 4080_B, 2_B, 48_B};
  std::vector<Bytes> large = small;
  for (const Bytes size : {4097_B, 32_KiB, 40'000_B, 100'001_B, 1_MiB}) large.push_back(size);
  for (const std::vector<Bytes>& sizes : {small, large}) {
    const Moving moving = MakeMoving(sizes);
    EXPECT_EQ(LayoutOf(moving).small_in, sizes.size() == small.size());
    EXPECT_EQ(LayoutOf(moving).small_out, sizes.size() == small.size());
    const auto executable = Need(Executable::Create(moving.program, bench_.memory(), {.slots = 2}));
    for (const Bytes offset : {0_B, 1_B, 4_B, 8_B, 16_B}) {
      Step step = Launch(*executable, moving, sizes.size(), 3, offset);
      ASSERT_TRUE(IsOk(step.lease.Wait(Soon())));
      Check(step);
    }
  }
}

// A call that failed is made up for, also if nothing has moved since.
TEST_F(RowsTest, G5_WhatCouldNotBeRewrittenIsRewrittenByTheNextStep) {
  const Moving moving = MakeMoving({4_KiB, 64_B});
  const auto executable = Need(Executable::Create(moving.program, bench_.memory(), {.slots = 1}));
  BindAll(*executable, moving);
  ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream())));
  const Values values = Pattern(4_KiB, 77);
  const Buffer to = Place(Values(4096));
  ASSERT_TRUE(IsOk(executable->Bind(moving.in[0], Place(values))));
  ASSERT_TRUE(IsOk(executable->Bind(moving.out[0], to)));
  bench_.device().FailNth(Primitive::kSetNodeParams, 1, Internal("injected"));
  EXPECT_EQ(RunStep(*executable, bench_.stream()).code(), StatusCode::kInternal);
  bench_.device().ResetCounts();
  ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream())));
  EXPECT_EQ(bench_.device().calls(Primitive::kSetNodeParams), 1u);
  EXPECT_TRUE(Read(to) == values);
  bench_.device().ResetCounts();
  ASSERT_TRUE(IsOk(RunStep(*executable, bench_.stream())));
  EXPECT_EQ(bench_.device().calls(Primitive::kSetNodeParams), 0u);
}

// A mark for each block that copies small rows out, as long as all of those are done in one go.
TEST_F(RowsTest, SmallOnesAreMarkedBlockByBlock) {
  struct Case {
    std::size_t rows;
    Bytes size;
    std::uint32_t marks;
  };
  for (const auto& [rows, size, marks] :
       {Case{1, 4_KiB, 1}, Case{5, 1_B, 2}, Case{32, 4_KiB, 8}, Case{64, 16_B, 8},
        Case{65, 16_B, 1}, Case{5, 4097_B, 1}}) {
    SCOPED_TRACE(rows);
    const Layout layout = LayoutOf(MakeMoving(std::vector<Bytes>(rows, size)));
    EXPECT_EQ(layout.small_out, rows <= 64 && size <= 4_KiB);
    EXPECT_EQ(layout.marks(), marks);
  }
  EXPECT_EQ(LayoutOf(MakeMoving({16_B}, Policy::kPatch)).marks(), 1u) << "nothing goes out";
}

// Marks are counted by blocks where a step copies out, and at once where it does not: the timeline
// sees one step either way.
TEST_F(RowsTest, StepsWithAndWithoutCopiesShareATimeline) {
  struct Case {
    std::size_t rows;
    Bytes size;
  };
  // Of several pieces, and of several marks.
  for (const auto& [rows, size] : {Case{1, 100_KiB}, Case{40, 4_KiB}}) {
    SCOPED_TRACE(rows);
    ProgramBuilder builder("optional");
    Moving moving;
    for (std::size_t i = 0; i < rows; ++i) {
      const std::string number = std::to_string(i);
      moving.in.push_back(
          builder.Bind({.name = "in" + number, .size = size, .policy = Policy::kInPlace}));
      moving.out.push_back(
          builder.Bind({.name = "out" + number, .size = size, .access = BindingAccess::kOut}));
      builder.Copy({moving.out[i]}, {moving.in[i]});
    }
    moving.program = Need(std::move(builder).Build());
    const Layout layout = LayoutOf(moving);
    ASSERT_TRUE(layout.may_rest);
    ASSERT_GT(layout.pieces_out.size(), 1u);
    ASSERT_EQ(layout.marks(), rows == 1 ? 1u : Layout::kMostMarks);
    PrimitiveCosts costs;
    costs.copy_step_us = 0;
    costs.patch_us = 1e6;
    const auto executable =
        Need(Executable::Create(moving.program, bench_.memory(), {.slots = 1, .costs = costs}));
    int copied = 0;
    int rested = 0;
    for (unsigned i = 0; i < 60; ++i) {
      Lease lease = Need(executable->Acquire(bench_.stream(), Soon()));
      std::vector<Values> values;
      std::vector<Buffer> to;
      const bool bound = i % 3 != 2;
      for (std::size_t row = 0; row < rows; ++row) {
        values.push_back(Pattern(size, static_cast<unsigned>(i + 100 * row)));
        ASSERT_TRUE(
            IsOk(bench_.memory()->CopyToDevice(bench_.stream(), Need(lease.address(moving.in[row])),
                                               values.back().data(), size, Soon())));
        if (!bound) continue;
        to.push_back(Place(Values(values.back().size())));
        ASSERT_TRUE(IsOk(lease.Bind(moving.out[row], to.back())));
      }
      ASSERT_TRUE(IsOk(lease.Launch(Soon())));
      ASSERT_TRUE(IsOk(lease.Wait(Soon())));
      EXPECT_TRUE(lease.done());
      (lease.report().copied_out.empty() ? rested : copied) += 1;
      for (std::size_t row = 0; row < to.size(); ++row) EXPECT_TRUE(Read(to[row]) == values[row]);
    }
    EXPECT_GT(copied, 0);
    EXPECT_GT(rested, 0);
  }
}

}  // namespace
}  // namespace keel::graph
