// The suite's own tests: that the lists of a join cannot lie, and that a broken device is found.

#include "hal/conformance/runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "hal/conformance/child.h"
#include "hal/conformance/context.h"
#include "hal/conformance/null_device.h"
#include "hal/conformance/props.h"
#include "keel/base/unique_fd.h"
#include "keel/drivers/sim.h"
#include "keel/hal/driver.h"

namespace keel::hal::conformance {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// --- Cases to run -------------------------------------------------------------------------------

int runs = 0;

void Pass(CaseContext& context) {
  ++runs;
  EXPECT_NE(context.device().id(), DeviceId::kNone);
}
void Fail(CaseContext&) {
  ++runs;
  FAIL() << "as it must";
}
void FailOnAnotherThread(CaseContext&) {
  ++runs;
  std::thread([] { ADD_FAILURE() << "elsewhere"; }).join();
}
void Leak(CaseContext& context) { (void)context.device().CreateEvent({}); }
void KeepDevice(CaseContext& context) {
  static std::shared_ptr<Device> kept;
  kept = context.shared();
}
void Skip(CaseContext&) { GTEST_SKIP() << "not today"; }

Case NewCase(void (*body)(CaseContext&), Traits traits = {}) {
  return {.group = "Group", .name = "Case", .traits = std::move(traits), .body = body};
}

Join NewJoin() {
  return {.driver = "null",
          .devices = 1,
          .open = [](int count) -> Result<std::vector<std::shared_ptr<Device>>> {
            std::vector<std::shared_ptr<Device>> devices;
            for (int i = 0; i < count; ++i) devices.push_back(NewNullDevice());
            return devices;
          }};
}

struct Outcome {
  std::vector<std::string> failures;
  std::vector<std::string> skips;
};

Outcome OutcomeOf(const Case& test, const Join& join, const Capabilities& capabilities = {}) {
  testing::TestPartResultArray results;
  {
    const testing::ScopedFakeTestPartResultReporter reporter(
        testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS, &results);
    RunCase(test, join, capabilities);
  }
  Outcome outcome;
  for (int i = 0; i < results.size(); ++i) {
    const testing::TestPartResult& part = results.GetTestPartResult(i);
    if (part.failed()) outcome.failures.emplace_back(part.message());
    if (part.skipped()) outcome.skips.emplace_back(part.message());
  }
  return outcome;
}

// --- Running
// --------------------------------------------------------------------------------------

TEST(Runner, PassingCasePassesAndFailingCaseFails) {
  runs = 0;
  EXPECT_THAT(OutcomeOf(NewCase(&Pass), NewJoin()).failures, IsEmpty());
  EXPECT_THAT(OutcomeOf(NewCase(&Fail), NewJoin()).failures, SizeIs(1));
  EXPECT_THAT(OutcomeOf(NewCase(&FailOnAnotherThread), NewJoin()).failures, SizeIs(1));
  EXPECT_THAT(OutcomeOf(NewCase(&Skip), NewJoin()).skips, SizeIs(1));
  EXPECT_EQ(runs, 3);
}

TEST(Runner, WhatIsLeftAliveFails) {
  EXPECT_THAT(OutcomeOf(NewCase(&Leak), NewJoin()).failures, ElementsAre(HasSubstr("CreateEvent")));
  EXPECT_THAT(OutcomeOf(NewCase(&KeepDevice), NewJoin()).failures,
              ElementsAre(HasSubstr("still holds a device")));
}

TEST(Runner, DeviceThatCannotBeOpenedFails) {
  Join join = NewJoin();
  join.open = [](int) -> Result<std::vector<std::shared_ptr<Device>>> {
    return Unavailable("no device today");
  };
  EXPECT_THAT(OutcomeOf(NewCase(&Pass), join).failures, ElementsAre(HasSubstr("no device today")));
  join.open = [](int) -> Result<std::vector<std::shared_ptr<Device>>> {
    return std::vector<std::shared_ptr<Device>>{};
  };
  EXPECT_THAT(OutcomeOf(NewCase(&Pass), join).failures, SizeIs(1));
}

TEST(Runner, TooFewDevicesSkip) {
  runs = 0;
  EXPECT_THAT(OutcomeOf(NewCase(&Pass, {.devices = 2}), NewJoin()).skips,
              ElementsAre(HasSubstr("needs 2 devices; there are 1")));
  EXPECT_EQ(runs, 0);
}

TEST(Runner, WhatADriverNeedNotDetectIsSkippedUnlessItDoes) {
  Join join = NewJoin();
  EXPECT_THAT(OutcomeOf(NewCase(&Fail, {.stale_handles = true}), join).skips, SizeIs(1));
  EXPECT_THAT(OutcomeOf(NewCase(&Fail, {.kernel_arguments = true}), join).skips, SizeIs(1));
  join.detects_stale_handles = true;
  join.checks_kernel_arguments = true;
  EXPECT_THAT(OutcomeOf(NewCase(&Fail, {.stale_handles = true}), join).failures, SizeIs(1));
  EXPECT_THAT(OutcomeOf(NewCase(&Fail, {.kernel_arguments = true}), join).failures, SizeIs(1));
}

// --- Children
// -------------------------------------------------------------------------------------

// What the children run: this program again, with one of these.
TEST(ChildTarget, Passes) {
  if (!IsChild()) GTEST_SKIP() << "for the tests of children";
  EXPECT_EQ(ChildArgument(), "an argument");
  EXPECT_GT(write(kInheritedDescriptor, "hello", 5), 0);
  ReportChildDone(false);
}
TEST(ChildTarget, Fails) {
  if (!IsChild()) GTEST_SKIP() << "for the tests of children";
  ADD_FAILURE() << "something is wrong";
  ReportChildDone(false);
}
TEST(ChildTarget, Aborts) {
  if (!IsChild()) GTEST_SKIP() << "for the tests of children";
  std::abort();
}
TEST(ChildTarget, Hangs) {
  if (!IsChild()) GTEST_SKIP() << "for the tests of children";
  pause();
}

TEST(Child, GetsItsArgumentAndDescriptor) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  const ChildOutcome outcome = RunChild(
      {.filter = "ChildTarget.Passes", .argument = "an argument", .descriptor = writer.get()});
  EXPECT_TRUE(outcome.passed) << outcome.problem << outcome.output;
  writer.Reset(-1);
  char text[6] = {};
  EXPECT_EQ(read(reader.get(), text, 5), 5);
  EXPECT_STREQ(text, "hello");
  EXPECT_FALSE(IsChild());
}

TEST(Child, OutcomesAreToldApart) {
  const ChildOutcome failed = RunChild({.filter = "ChildTarget.Fails"});
  EXPECT_FALSE(failed.passed);
  EXPECT_EQ(failed.problem, "exited with 1");
  EXPECT_THAT(failed.output, HasSubstr("something is wrong"));
  const ChildOutcome aborted = RunChild({.filter = "ChildTarget.Aborts"});
  EXPECT_FALSE(aborted.passed);
  EXPECT_NE(aborted.problem, "");
  const ChildOutcome hung =
      RunChild({.filter = "ChildTarget.Hangs", .limit = std::chrono::seconds(1)});
  EXPECT_FALSE(hung.passed);
  EXPECT_THAT(hung.problem, HasSubstr("still running"));
  // A child that ran nothing has not passed.
  const ChildOutcome nothing = RunChild({.filter = "ChildTarget.NoSuchTest"});
  EXPECT_FALSE(nothing.passed);
  EXPECT_THAT(nothing.problem, HasSubstr("did not run the test"));
}

// --- Keeping a stream busy
// ------------------------------------------------------------------------

TEST(Hooks, HoldAndReleaseAStream) {
  auto driver = sim::CreateSimDriver({.memory = 256_MiB});
  ASSERT_OK(driver);
  auto device = (*driver)->Open(0);
  ASSERT_OK(device);
  const Join join{
      .hold = [](Device& d, StreamHandle s) { return sim::FindControls(d)->HoldStream(s); },
      .release = [](Device& d, StreamHandle s) { return sim::FindControls(d)->ReleaseStream(s); }};
  auto stream = Stream::Create(*device);
  ASSERT_OK(stream);
  {
    auto blocker = Blocker::WithHook(*device, stream->get(), join);
    ASSERT_OK(blocker);
    EXPECT_TRUE(blocker->blocked());
    EXPECT_CODE(kDeadlineExceeded,
                stream->Synchronize(Deadline::After(std::chrono::milliseconds(5))));
    blocker->Release();
    EXPECT_OK(stream->Synchronize(InTime()));
    EXPECT_FALSE(blocker->blocked());
  }
  auto again = Blocker::WithHook(*device, stream->get(), join);
  ASSERT_OK(again);
  again->ReleaseAfter(std::chrono::milliseconds(5));
  EXPECT_OK(stream->Synchronize(InTime()));
}

// --- The list of unsupported cases
// ----------------------------------------------------------------

TEST(Unsupported, MissingCapabilityThatIsNotListedFailsAndSaysWhatToAdd) {
  runs = 0;
  const Case test = NewCase(&Pass, {.needs = {&Capabilities::kernels, &Capabilities::graphs}});
  const Outcome outcome = OutcomeOf(test, NewJoin(), {.graphs = true});
  ASSERT_THAT(outcome.failures, SizeIs(1));
  EXPECT_THAT(outcome.failures[0], HasSubstr("no kernels"));
  EXPECT_THAT(outcome.failures[0], HasSubstr("{\"Group.Case\", \"<reason>\"}"));
  EXPECT_EQ(runs, 0);
}

TEST(Unsupported, ListedAndMissingIsSkippedWithTheReason) {
  runs = 0;
  Join join = NewJoin();
  join.unsupported = {{"Group.Case", "too small"}};
  const Case test = NewCase(&Fail, {.needs = {&Capabilities::kernels}});
  const Outcome outcome = OutcomeOf(test, join);
  EXPECT_THAT(outcome.failures, IsEmpty());
  EXPECT_THAT(outcome.skips, ElementsAre(HasSubstr("too small")));
  EXPECT_EQ(runs, 0);
}

TEST(Unsupported, ListedButThereFails) {
  Join join = NewJoin();
  join.unsupported = {{"Group.Case", "too small"}};
  for (void (*body)(CaseContext&) : {&Pass, &Fail}) {
    const Outcome outcome =
        OutcomeOf(NewCase(body, {.needs = {&Capabilities::kernels}}), join, {.kernels = true});
    EXPECT_THAT(outcome.failures, ElementsAre(HasSubstr("remove it from the list")));
  }
}

TEST(Unsupported, WithoutACapabilityItMustFail) {
  Join join = NewJoin();
  join.unsupported = {{"Group.Case", "cannot"}};
  EXPECT_THAT(OutcomeOf(NewCase(&Fail), join).failures, IsEmpty());
  EXPECT_THAT(OutcomeOf(NewCase(&FailOnAnotherThread), join).failures, IsEmpty());
  EXPECT_THAT(OutcomeOf(NewCase(&Pass), join).failures,
              ElementsAre(HasSubstr("remove it from the list")));
}

TEST(Unsupported, KeepingAStreamBusyNeedsKernelsOrAHook) {
  const Case test = NewCase(&Pass, {.blocks = true});
  Join join = NewJoin();
  EXPECT_THAT(OutcomeOf(test, join).failures, SizeIs(1));
  EXPECT_THAT(OutcomeOf(test, join, {.kernels = true}).failures, IsEmpty());
  join.hold = [](Device&, StreamHandle) { return OkStatus(); };
  join.release = join.hold;
  EXPECT_THAT(OutcomeOf(test, join).failures, IsEmpty());
}

// --- The list of expected failures
// ----------------------------------------------------------------

TEST(ExpectedFailures, MustFail) {
  Join join = NewJoin();
  join.expected_failures = {{"Group.Case", "a known mistake"}};
  EXPECT_THAT(OutcomeOf(NewCase(&Fail), join).failures, IsEmpty());
  EXPECT_THAT(OutcomeOf(NewCase(&FailOnAnotherThread), join).failures, IsEmpty());
  EXPECT_THAT(OutcomeOf(NewCase(&Leak), join).failures, IsEmpty());
  const Outcome outcome = OutcomeOf(NewCase(&Pass), join);
  ASSERT_THAT(outcome.failures, SizeIs(1));
  EXPECT_THAT(outcome.failures[0], HasSubstr("but passes: remove it from the list"));
  EXPECT_THAT(outcome.failures[0], HasSubstr("a known mistake"));
}

TEST(ExpectedFailures, DoNotExcuseAMissingCapability) {
  Join join = NewJoin();
  join.expected_failures = {{"Group.Case", "a known mistake"}};
  const Case test = NewCase(&Fail, {.needs = {&Capabilities::kernels}});
  EXPECT_THAT(OutcomeOf(test, join).failures, ElementsAre(HasSubstr("add {\"Group.Case\"")));
}

// --- What a join must look like
// -------------------------------------------------------------------

TEST(CheckJoin, GoodOneIsFine) {
  Join join = NewJoin();
  join.unsupported = {{"Group.Case", "reason"}};
  EXPECT_THAT(CheckJoin(join, {NewCase(&Pass)}), IsEmpty());
}

TEST(CheckJoin, EntriesNameCasesAndGiveReasons) {
  Join join = NewJoin();
  join.unsupported = {{"Group.Cas", "reason"}};
  join.expected_failures = {{"Group.Case", ""}};
  EXPECT_THAT(CheckJoin(join, {NewCase(&Pass)}),
              ElementsAre(".unsupported: 'Group.Cas' names no case",
                          ".expected_failures: 'Group.Case' has no reason"));
}

TEST(CheckJoin, EntriesStandOnceAndInOneList) {
  Join join = NewJoin();
  join.unsupported = {{"Group.Case", "reason"}, {"Group.Case", "again"}};
  EXPECT_THAT(CheckJoin(join, {NewCase(&Pass)}), ElementsAre(HasSubstr("is listed twice")));
  join.unsupported = {{"Group.Case", "reason"}};
  join.expected_failures = join.unsupported;
  EXPECT_THAT(CheckJoin(join, {NewCase(&Pass)}), ElementsAre(HasSubstr("both")));
}

TEST(CheckJoin, EssentialsMustBeThere) {
  EXPECT_THAT(CheckJoin({.devices = 0}, {}), SizeIs(3));
  Join join = NewJoin();
  join.driver = "With Space";
  EXPECT_THAT(CheckJoin(join, {}), ElementsAre(HasSubstr("With Space")));
  join = NewJoin();
  join.hold = [](Device&, StreamHandle) { return OkStatus(); };
  EXPECT_THAT(CheckJoin(join, {}), ElementsAre(HasSubstr("come together")));
}

TEST(CheckJoin, CasesHaveDifferentNames) {
  EXPECT_THAT(CheckJoin(NewJoin(), {NewCase(&Pass), NewCase(&Fail)}),
              ElementsAre("two cases have the name Group.Case"));
}

// --- The suite itself ---------------------------------------------------------------------------

TEST(Suite, HasItsCasesAndEachOnlyOnce) {
  EXPECT_GT(RegisteredCases().size(), 150u);
  EXPECT_THAT(CheckJoin(NewJoin(), RegisteredCases()), IsEmpty());
}

TEST(Suite, CallsEveryPrimitive) {
  std::set<Primitive> called;
  for (const PrimitiveCall& call : AllPrimitives()) {
    EXPECT_TRUE(called.insert(call.primitive).second) << PrimitiveName(call.primitive);
  }
  EXPECT_EQ(called.size(), kPrimitiveCount);
}

TEST(Suite, EveryNeededCapabilityHasAName) {
  for (const Case& test : RegisteredCases()) {
    for (bool Capabilities::* member : test.traits.needs) EXPECT_NE(CapabilityName(member), "?");
  }
}

// A device without capabilities passes what is left for it, and every case that it cannot pass asks
// for its place in the list. The cases about what is missing are the ones that the simulated device
// cannot show.
TEST(Suite, ADeviceWithoutCapabilitiesIsHeldToSayingSo) {
  int about_missing = 0;
  for (const Case& test : RegisteredCases()) {
    if (test.traits.helper) continue;
    if (!MissingNeeds(test, NewJoin(), {}).empty()) {
      EXPECT_THAT(OutcomeOf(test, NewJoin()).failures, ElementsAre(HasSubstr(".unsupported")))
          << test.FullName();
    } else if (test.group == "Capabilities") {
      ++about_missing;
      if (test.name == "AReopenedDeviceHasAnotherId") continue;  // it wants bytes to be kept
      EXPECT_THAT(OutcomeOf(test, NewJoin()).failures, IsEmpty()) << test.FullName();
    }
  }
  EXPECT_GE(about_missing, 6);
}

// And one that does nothing at all does not get through: a suite that such a device passed would
// check nothing.
TEST(Suite, ADeviceThatOnlyPretendsFails) {
  std::vector<std::string> passed;
  for (const Case& test : RegisteredCases()) {
    if (test.traits.helper || test.group == "Capabilities") continue;
    // Only cases that look at bytes or at refusals: those of memory, copies, fills and errors.
    const std::set<std::string> groups = {"PlainMemory", "Copies", "Fills", "Errors"};
    if (!groups.contains(test.group) || !MissingNeeds(test, NewJoin(), {}).empty()) continue;
    Join join = NewJoin();
    join.detects_stale_handles = true;
    const Outcome outcome = OutcomeOf(test, join);
    if (outcome.failures.empty() && outcome.skips.empty()) passed.push_back(test.FullName());
  }
  EXPECT_THAT(passed, testing::IsSubsetOf({"Fills.OfNothingAreNothingToDo",
                                           "PlainMemory.ManyAllocationsAreDisjoint"}));
}

}  // namespace
}  // namespace keel::hal::conformance
