#include "keel/graph/program.h"

#include <gmock/gmock.h>

#include "graph/graph_test.h"

namespace keel::graph {
namespace {

using ::testing::HasSubstr;

// A builder with one binding of each access.
class ProgramTest : public GraphTest {
 protected:
  Status Build() { return std::move(builder_).Build().status(); }
  void ExpectRefused(std::string_view message) {
    const Status status = Build();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr(message));
  }
  hal::KernelHandle add() const { return bench_.Kernel(hal::kernels::kAdd); }

  ProgramBuilder builder_{"program"};
  BindingId in_ = builder_.Bind({.name = "in", .size = kSize});
  BindingId out_ = builder_.Bind({.name = "out", .size = kSize, .access = BindingAccess::kOut});
  BindingId scratch_ =
      builder_.Bind({.name = "scratch", .size = 700_B, .access = BindingAccess::kScratch});
};

TEST_F(ProgramTest, FindsBindingsByNameAndNamesThoseThatThereAre) {
  const std::shared_ptr<const Program> program = Need(std::move(builder_).Build());
  EXPECT_EQ(Need(program->Find("out")), out_);
  const Status status = program->Find("weights").status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.message(),
              HasSubstr("'program' has no binding 'weights': it has in, out, scratch"));
  EXPECT_THAT(Need(ProgramBuilder("empty").Build())->Find("x").status().message(),
              HasSubstr("it has none"));
}

TEST_F(ProgramTest, KnowsWhatItsScratchTakesOfAnArena) {
  builder_.Bind({.name = "more", .size = 1_B, .access = BindingAccess::kScratch});
  EXPECT_EQ(Need(std::move(builder_).Build())->scratch_bytes(), 1024_B + 512_B);
}

TEST_F(ProgramTest, AnOperandWithoutAnExtentIsTheRestOfTheBinding) {
  builder_.Copy({.binding = out_, .offset = 24_B}, {.binding = in_, .offset = 24_B});
  const std::shared_ptr<const Program> program = Need(std::move(builder_).Build());
  EXPECT_EQ(std::get<command::Copy>(program->commands()[0]).source.extent, kSize - 24_B);
}

TEST_F(ProgramTest, RefusesABindingWithoutAName) {
  builder_.Bind({.name = "", .size = kSize});
  ExpectRefused("binding 3 has no name");
}

TEST_F(ProgramTest, RefusesTwoBindingsOfOneName) {
  builder_.Bind({.name = "out", .size = kSize});
  ExpectRefused("two bindings are named 'out'");
}

TEST_F(ProgramTest, RefusesABindingOfNoBytes) {
  builder_.Bind({.name = "nothing", .size = 0_B});
  ExpectRefused("binding 'nothing' has no bytes");
}

TEST_F(ProgramTest, RefusesABindingThatIsNotThere) {
  builder_.Call({.function = [](void*) {}});
  builder_.Fill({.binding = BindingId{7}}, 0, 1);
  ExpectRefused("command 1: there is no binding 7");
}

TEST_F(ProgramTest, RefusesAPartBeyondTheEnd) {
  builder_.Kernel(add(), kDims, {Argument::In(in_, 1020_B, 8_B)});
  ExpectRefused("command 0: 8 B at offset 1020 of 'in', which has 1 KiB");
}

TEST_F(ProgramTest, RefusesAPartThatBeginsAtTheEnd) {
  builder_.Kernel(add(), kDims, {Argument::In(in_, kSize)});
  ExpectRefused("at offset 1024 of 'in'");
}

TEST_F(ProgramTest, RefusesAnExtentThatWrapsAround) {
  builder_.Kernel(add(), kDims, {Argument::In(in_, 8_B, Bytes(~std::uint64_t{0}))});
  ExpectRefused("at offset 8 of 'in'");
}

// An access that contradicts its declaration.
TEST_F(ProgramTest, RefusesToWriteAnInputByAnyCommand) {
  const auto refused = [](const std::function<void(ProgramBuilder&, BindingId)>& command) {
    ProgramBuilder builder("writer");
    const BindingId x = builder.Bind({.name = "x", .size = kSize});
    builder.Bind({.name = "y", .size = kSize, .access = BindingAccess::kOut});
    command(builder, x);
    const Status status = std::move(builder).Build().status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("writes 'x', which is declared 'in'"));
  };
  const auto nothing = [](const TraceContext&) { return OkStatus(); };
  refused([&](ProgramBuilder& builder, BindingId x) {
    builder.Kernel(add(), kDims, {Argument::Out(x)});
  });
  refused([&](ProgramBuilder& builder, BindingId x) {
    builder.Kernel(add(), kDims, {Argument::InOut(x)});
  });
  refused([&](ProgramBuilder& builder, BindingId x) { builder.Copy({x}, {BindingId{1}}); });
  refused([&](ProgramBuilder& builder, BindingId x) { builder.Fill({x}, 0, 4); });
  refused([&](ProgramBuilder& builder, BindingId x) {
    builder.Traced("t", {{x, hal::Access::kWrite}}, nothing);
  });
  refused([&](ProgramBuilder& builder, BindingId x) {
    builder.Eager("e", {{x, hal::Access::kReadWrite}}, nothing);
  });
}

TEST_F(ProgramTest, RefusesToReadAnOutputThatNothingWrote) {
  const BindingId y{1};
  const BindingId z{2};
  const auto refused = [&](const std::function<void(ProgramBuilder&)>& commands) {
    ProgramBuilder builder("reader");
    builder.Bind({.name = "x", .size = kSize});
    builder.Bind({.name = "y", .size = kSize, .access = BindingAccess::kOut});
    builder.Bind({.name = "z", .size = kSize, .access = BindingAccess::kInOut});
    commands(builder);
    const Status status = std::move(builder).Build().status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(),
                HasSubstr("reads 'y', which is declared 'out', before anything wrote it"));
  };
  refused([&](ProgramBuilder& builder) { builder.Kernel(add(), kDims, {Argument::In(y)}); });
  refused([&](ProgramBuilder& builder) { builder.Kernel(add(), kDims, {Argument::InOut(y)}); });
  refused([&](ProgramBuilder& builder) {
    builder.Kernel(add(), kDims, {Argument::Out(y), Argument::In(y)});
  });
  refused([&](ProgramBuilder& builder) {
    builder.Copy({z}, {y});
    builder.Fill({y}, 0, 4);
  });
  // Something was written, but nothing of what it reads.
  refused([&](ProgramBuilder& builder) {
    builder.Fill({.binding = y, .extent = 512_B}, 0, 4);
    builder.Copy({.binding = z, .extent = 512_B}, {.binding = y, .offset = 512_B});
  });
  refused([&](ProgramBuilder& builder) {
    builder.Fill({.binding = y, .offset = 512_B}, 0, 4);
    builder.Copy({.binding = z, .extent = 512_B}, {.binding = y, .extent = 512_B});
  });
  // A function that reads it has not written it, nor has one that writes another.
  refused([&](ProgramBuilder& builder) {
    builder.Traced("t", {{y, hal::Access::kRead}, {z, hal::Access::kWrite}},
                   [](const TraceContext&) { return OkStatus(); });
    builder.Copy({z}, {y});
  });
}

TEST_F(ProgramTest, AnOutputMayBeReadOnceSomeOfThatWasWritten) {
  const BindingId z = builder_.Bind({.name = "z", .size = kSize, .access = BindingAccess::kInOut});
  builder_.Fill({.binding = out_, .offset = 512_B}, 0, 4);
  builder_.Kernel(add(), kDims, {Argument::In(out_), Argument::Out(z)});
  builder_.Copy({.binding = z, .extent = 512_B},
                {.binding = out_, .offset = 256_B, .extent = 512_B});
  builder_.Kernel(add(), kDims, {Argument::InOut(out_)});
  EXPECT_TRUE(IsOk(Build()));
}

// Of a function only what it declares is known: it may write a part, or read after it wrote.
TEST_F(ProgramTest, AnOutputMayBeReadAfterAnyFunctionThatWritesIt) {
  for (const int kind : {0, 1, 2}) {
    ProgramBuilder builder("functions");
    const BindingId y = builder.Bind({.name = "y", .size = kSize, .access = BindingAccess::kOut});
    const BindingId z = builder.Bind({.name = "z", .size = kSize, .access = BindingAccess::kInOut});
    const std::vector<Operand> uses = {
        {.binding = y, .access = hal::Access::kReadWrite, .extent = 4_B}};
    const auto nothing = [](const TraceContext&) { return OkStatus(); };
    if (kind == 0) builder.Traced("t", uses, nothing);
    if (kind == 1) builder.Recorded("r", uses, nothing);
    if (kind == 2) builder.Eager("e", uses, nothing);
    builder.Copy({.binding = z, .extent = 8_B}, {.binding = y, .offset = 512_B, .extent = 8_B});
    EXPECT_TRUE(IsOk(std::move(builder).Build().status()));
  }
}

TEST_F(ProgramTest, RefusesAnOperandThatIsNotUsed) {
  builder_.Traced("library", {{in_, hal::Access::kNone}},
                  [](const TraceContext&) { return OkStatus(); });
  ExpectRefused("command 0 'library': does nothing with 'in'");
}

TEST_F(ProgramTest, RefusesAKernelThatIsNone) {
  builder_.Kernel({}, kDims, {});
  ExpectRefused("command 0: no kernel");
}

TEST_F(ProgramTest, RefusesCommandsWithoutAFunction) {
  ProgramBuilder call("call");
  call.Call({});
  EXPECT_THAT(std::move(call).Build().status().message(), HasSubstr("command 0: no function"));
  ProgramBuilder traced("traced");
  traced.Traced("gemm", {}, nullptr);
  EXPECT_THAT(std::move(traced).Build().status().message(),
              HasSubstr("command 0 'gemm': no function"));
  ProgramBuilder eager("eager");
  eager.Eager("print", {}, nullptr);
  EXPECT_THAT(std::move(eager).Build().status().message(),
              HasSubstr("command 0 'print': no function"));
}

TEST_F(ProgramTest, RefusesACopyOfOtherSizes) {
  builder_.Copy({.binding = out_}, {.binding = in_, .extent = 8_B});
  ExpectRefused("command 0: copies 8 B to 1 KiB");
}

TEST_F(ProgramTest, RefusesAFillOfAnotherWidth) {
  builder_.Fill({out_}, 0, 3);
  ExpectRefused("command 0: a width of 3 is not 1, 2 or 4");
}

TEST_F(ProgramTest, RefusesAFillOfHalfAWord) {
  builder_.Fill({.binding = out_, .offset = 2_B}, 0, 4);
  ExpectRefused("command 0: fills 1022 B at offset 2 with words of 4 bytes");
}

TEST_F(ProgramTest, RefusesAFillWithAValueThatIsTooWide) {
  builder_.Fill({out_}, 0x1ff, 1);
  ExpectRefused("command 0: the value 0x1ff is wider than 1 bytes");
}

TEST_F(ProgramTest, RefusesScratchThatTheCallerIsToBring) {
  builder_.Bind({.name = "workspace",
                 .size = kSize,
                 .access = BindingAccess::kScratch,
                 .policy = Policy::kCopy});
  ExpectRefused("binding 'workspace' (scratch): policy 'copy' is about the caller's memory");
}

TEST_F(ProgramTest, RefusesAResidentBindingThatMoves) {
  builder_.Bind({.name = "weights",
                 .size = kSize,
                 .access = BindingAccess::kResident,
                 .policy = Policy::kPatch});
  ExpectRefused("binding 'weights' (resident): policy 'patch' contradicts it: declare it in-out");
}

TEST_F(ProgramTest, RefusesToPatchWhatATracedCommandUses) {
  const BindingId x = builder_.Bind({.name = "x", .size = kSize, .policy = Policy::kPatch});
  builder_.Traced("library", {{x, hal::Access::kRead}},
                  [](const TraceContext&) { return OkStatus(); });
  ExpectRefused("binding 'x' (in): policy 'patch' rewrites explicit commands, and a traced");
}

TEST_F(ProgramTest, WhatItKeepsLivesAsLongAsIt) {
  const auto kept = std::make_shared<int>(7);
  builder_.Keep(kept);
  auto program = Need(std::move(builder_).Build());
  EXPECT_EQ(kept.use_count(), 2);
  program.reset();
  EXPECT_EQ(kept.use_count(), 1);
}

TEST(BindingTest, PoliciesAreReadAsTheyAreWritten) {
  for (const Policy policy : {Policy::kAuto, Policy::kResident, Policy::kInPlace, Policy::kCopy,
                              Policy::kPatch, Policy::kRemap, Policy::kRetrace}) {
    EXPECT_EQ(Need(ParsePolicy(PolicyName(policy))), policy);
  }
  const Status status = ParsePolicy("alias").status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(),
              HasSubstr("no policy 'alias': there are auto, resident, in-place, copy, patch, "
                        "remap, retrace"));
}

}  // namespace
}  // namespace keel::graph
