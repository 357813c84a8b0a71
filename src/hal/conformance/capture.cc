// Captures: what a recording stream does, and how streams join one. Which calls break one is in
// capture_modes.cc.

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>
#include <variant>

#include "hal/conformance/context.h"
#include "keel/hal/capture_mode.h"

namespace keel::hal::conformance {
namespace {

template <class Kind>
constexpr std::size_t KindOf() {
  return Command(Kind{}).index();
}

void CountUp(void* data) { static_cast<std::atomic<int>*>(data)->fetch_add(1); }

testing::AssertionResult IsInState(CaseContext& context, const Stream& stream, CaptureState want,
                                   int i = 0) {
  const Result<CaptureState> state = context.device(i).GetCaptureState(stream.get());
  if (!state.ok()) return testing::AssertionFailure() << state.status().ToString();
  if (*state == want) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << "the state is " << static_cast<int>(*state) << ", want " << static_cast<int>(want);
}

std::vector<std::size_t> Kinds(const std::vector<NodeInfo>& nodes) {
  std::vector<std::size_t> kinds;
  for (const NodeInfo& node : nodes) kinds.push_back(node.kind);
  std::sort(kinds.begin(), kinds.end());
  return kinds;
}

Status LaunchAndWait(CaseContext& context, const Graph& graph, const Stream& stream) {
  KEEL_ASSIGN(GraphExec exec, GraphExec::Create(graph));
  KEEL_TRY(exec.Launch(stream.get()));
  KEEL_TRY(stream.Synchronize(InTime()));
  (void)context;
  return exec.Close();
}

KEEL_CONFORMANCE_CASE(Capture, RecordsInsteadOfRunning, .needs = {&Capabilities::graphs}) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  ASSERT_OK(context.Write(memory.address(), std::vector<std::uint32_t>(1024, 0)));
  for (const CaptureMode mode :
       {CaptureMode::kGlobal, CaptureMode::kThreadLocal, CaptureMode::kRelaxed}) {
    SCOPED_TRACE(static_cast<int>(mode));
    EXPECT_TRUE(IsInState(context, stream, CaptureState::kNone));
    ASSERT_VALUE(Capture capture, Capture::Begin(context.shared(), stream.get(), mode));
    EXPECT_TRUE(IsInState(context, stream, CaptureState::kActive));
    ASSERT_OK(device.EnqueueFill(
        stream.get(), {.destination = memory.address(), .value = 6, .width = 4, .count = 1024}));
    ASSERT_VALUE(const Graph graph, capture.End());
    EXPECT_TRUE(IsInState(context, stream, CaptureState::kNone));
    // Nothing ran, and the stream is as free as before.
    ASSERT_OK(stream.Synchronize(InTime()));
    EXPECT_TRUE(context.HoldsWord(memory.address(), 1024, 0));
    ASSERT_OK(LaunchAndWait(context, graph, stream));
    EXPECT_TRUE(context.HoldsWord(memory.address(), 1024, 6));
    ASSERT_OK(device.EnqueueFill(
        stream.get(), {.destination = memory.address(), .value = 0, .width = 4, .count = 1024}));
    ASSERT_OK(stream.Synchronize(InTime()));
    EXPECT_TRUE(context.HoldsWord(memory.address(), 1024, 0));
  }
}

KEEL_CONFORMANCE_CASE(Capture, AnEmptyOneIsAnEmptyGraph, .needs = {&Capabilities::graphs}) {
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(Capture capture, Capture::Begin(context.shared(), stream.get()));
  ASSERT_VALUE(const std::vector<NodeHandle> frontier,
               context.device().GetCaptureFrontier(stream.get()));
  EXPECT_TRUE(frontier.empty());
  ASSERT_VALUE(const Graph graph, capture.End());
  ASSERT_VALUE(const std::vector<NodeInfo> nodes, context.device().GetNodes(graph.get()));
  EXPECT_TRUE(nodes.empty());
  EXPECT_OK(LaunchAndWait(context, graph, stream));
}

KEEL_CONFORMANCE_CASE(Capture, RecordsEveryKindOfCommand,
                      .needs = {&Capabilities::graphs, &Capabilities::kernels,
                                &Capabilities::host_calls, &Capabilities::value_writes,
                                &Capabilities::value_waits}) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory a, context.NewPlain(4_KiB));
  ASSERT_VALUE(const PlainMemory b, context.NewPlain(4_KiB));
  ASSERT_VALUE(const PinnedWords words, context.NewWords(1));
  ASSERT_VALUE(const KernelHandle reduce, context.Kernel(kernels::kReduce));
  ASSERT_VALUE(const PlainMemory total, context.NewPlain(8_B));
  ASSERT_OK(context.Write<std::uint64_t>(total.address(), {0}));
  std::atomic<int> calls{0};
  ASSERT_VALUE(Capture capture, Capture::Begin(context.shared(), stream.get()));
  ASSERT_OK(device.EnqueueFill(
      stream.get(), {.destination = a.address(), .value = 2, .width = 4, .count = 1024}));
  ASSERT_OK(device.EnqueueCopy(stream.get(), {.destination = Location::On(device.id(), b.address()),
                                              .source = Location::On(device.id(), a.address()),
                                              .size = 4_KiB}));
  const std::array args = {KernelArg::In(b.address(), 4_KiB),
                           KernelArg::InOut(total.address(), 8_B),
                           KernelArg::Value<std::uint64_t>(1024)};
  ASSERT_OK(device.LaunchKernel(stream.get(), {.kernel = reduce, .args = args}));
  ASSERT_OK(device.CallHost(stream.get(), {.function = &CountUp, .data = &calls}));
  ASSERT_OK(device.WriteValue(stream.get(), {.destination = words.address(), .value = 9}));
  ASSERT_OK(device.WaitValue(stream.get(), {.source = words.address(), .value = 9}));
  ASSERT_VALUE(const Graph graph, capture.End());
  EXPECT_EQ(calls.load(), 0);
  EXPECT_EQ(words.Load(), 0u);
  ASSERT_VALUE(const std::vector<NodeInfo> nodes, device.GetNodes(graph.get()));
  std::vector<std::size_t> want = {KindOf<KernelLaunch>(), KindOf<Copy>(),
                                   KindOf<Fill>(),         KindOf<HostCall>(),
                                   KindOf<ValueWrite>(),   KindOf<ValueWait>()};
  std::sort(want.begin(), want.end());
  EXPECT_EQ(Kinds(nodes), want);
  // A chain: each depends on the one before, the first on none.
  EXPECT_EQ(std::count_if(nodes.begin(), nodes.end(),
                          [](const NodeInfo& node) { return node.dependencies.empty(); }),
            1);
  for (const NodeInfo& node : nodes) EXPECT_LE(node.dependencies.size(), 1u);

  ASSERT_VALUE(const GraphExec exec, GraphExec::Create(graph));
  for (int launch = 1; launch <= 3; ++launch) {
    words.Store(0);
    ASSERT_OK(exec.Launch(stream.get()));
    ASSERT_OK(stream.Synchronize(InTime()));
    EXPECT_EQ(calls.load(), launch);
    EXPECT_EQ(words.Load(), 9u);
    ASSERT_VALUE(const std::vector<std::uint64_t> sum,
                 context.Read<std::uint64_t>(total.address(), 1));
    EXPECT_EQ(sum[0], 2048u * static_cast<std::uint64_t>(launch));
  }
}

KEEL_CONFORMANCE_CASE(Capture, CannotBeginTwice, .needs = {&Capabilities::graphs}) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(Capture capture, Capture::Begin(context.shared(), stream.get()));
  EXPECT_CODE(kFailedPrecondition, device.BeginCapture(stream.get(), CaptureMode::kRelaxed));
  // The refusal left the capture alone.
  EXPECT_TRUE(IsInState(context, stream, CaptureState::kActive));
  EXPECT_OK(capture.End());
}

KEEL_CONFORMANCE_CASE(Capture, NeedsAStreamThatCan, .needs = {&Capabilities::graphs}) {
  Device& device = context.device();
  ASSERT_VALUE(const StreamHandle legacy, device.GetDefaultStream(DefaultStream::kLegacy));
  for (const CaptureMode mode :
       {CaptureMode::kGlobal, CaptureMode::kThreadLocal, CaptureMode::kRelaxed}) {
    EXPECT_CODE(kInvalidArgument, device.BeginCapture(legacy, mode));
  }
  ASSERT_VALUE(const CaptureState state, device.GetCaptureState(legacy));
  EXPECT_EQ(state, CaptureState::kNone);
  EXPECT_CODE(kInvalidArgument, device.BeginCapture(StreamHandle{}, CaptureMode::kRelaxed));
  // The per-thread one can.
  ASSERT_VALUE(const StreamHandle own, device.GetDefaultStream(DefaultStream::kPerThread));
  ASSERT_VALUE(Capture capture, Capture::Begin(context.shared(), own));
  EXPECT_OK(capture.End());
}

KEEL_CONFORMANCE_CASE(Capture, EndNeedsABeginning, .needs = {&Capabilities::graphs}) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  EXPECT_CODE(kFailedPrecondition, device.EndCapture(stream.get()));
  EXPECT_FALSE(device.GetCaptureFrontier(stream.get()).ok());
  EXPECT_CODE(kInvalidArgument, device.EndCapture(StreamHandle{}));
  EXPECT_TRUE(context.Works());
}

KEEL_CONFORMANCE_CASE(Capture, EndsOnTheThreadThatBeganIt, .needs = {&Capabilities::graphs}) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  for (const CaptureMode mode : {CaptureMode::kGlobal, CaptureMode::kThreadLocal}) {
    SCOPED_TRACE(static_cast<int>(mode));
    ASSERT_VALUE(Capture capture, Capture::Begin(context.shared(), stream.get(), mode));
    std::thread([&] { EXPECT_CODE(kFailedPrecondition, device.EndCapture(stream.get())); }).join();
    // That was not one of the ways in which a capture ends.
    EXPECT_TRUE(IsInState(context, stream, CaptureState::kActive));
    EXPECT_OK(capture.End());
  }
}

KEEL_CONFORMANCE_CASE(Capture, ARelaxedOneEndsOnAnyThread, .needs = {&Capabilities::graphs}) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  ASSERT_OK(device.BeginCapture(stream.get(), CaptureMode::kRelaxed));
  std::thread([&] {
    EXPECT_OK(device.EnqueueFill(
        stream.get(), {.destination = memory.address(), .value = 1, .width = 4, .count = 1024}));
    ASSERT_VALUE(const GraphHandle graph, device.EndCapture(stream.get()));
    EXPECT_OK(device.DestroyGraph(graph));
  }).join();
  EXPECT_TRUE(IsInState(context, stream, CaptureState::kNone));
}

KEEL_CONFORMANCE_CASE(Capture, LeavesOtherStreamsAlone, .needs = {&Capabilities::graphs}) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream recording, context.NewStream());
  ASSERT_VALUE(const Stream running, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  ASSERT_VALUE(Capture capture,
               Capture::Begin(context.shared(), recording.get(), CaptureMode::kGlobal));
  ASSERT_OK(device.EnqueueFill(
      running.get(), {.destination = memory.address(), .value = 4, .width = 4, .count = 1024}));
  ASSERT_OK(running.Synchronize(InTime()));
  EXPECT_TRUE(context.HoldsWord(memory.address(), 1024, 4));
  EXPECT_TRUE(IsInState(context, running, CaptureState::kNone));
  ASSERT_VALUE(const Graph graph, capture.End());
  ASSERT_VALUE(const std::vector<NodeInfo> nodes, device.GetNodes(graph.get()));
  EXPECT_TRUE(nodes.empty());
}

KEEL_CONFORMANCE_CASE(Capture, QueuedWorkStillRuns, .needs = {&Capabilities::graphs},
                      .blocks = true) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const Event before, context.NewEvent());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  ASSERT_VALUE(Blocker blocker, context.Block(stream.get()));
  ASSERT_OK(device.EnqueueFill(
      stream.get(), {.destination = memory.address(), .value = 8, .width = 4, .count = 1024}));
  ASSERT_OK(before.Record(stream.get()));
  ASSERT_VALUE(Capture capture, Capture::Begin(context.shared(), stream.get()));
  EXPECT_TRUE(blocker.blocked());
  blocker.Release();
  EXPECT_OK(before.Synchronize(InTime()));
  EXPECT_TRUE(context.HoldsWord(memory.address(), 1024, 8));
  EXPECT_OK(capture.End());
}

KEEL_CONFORMANCE_CASE(Capture, TheFrontierIsWhereTheNextCommandGoes,
                      .needs = {&Capabilities::graphs}) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  ASSERT_VALUE(Capture capture, Capture::Begin(context.shared(), stream.get()));
  std::vector<NodeHandle> chain;
  for (std::uint32_t i = 0; i < 3; ++i) {
    ASSERT_OK(device.EnqueueFill(
        stream.get(), {.destination = memory.address(), .value = i, .width = 4, .count = 1}));
    ASSERT_VALUE(const std::vector<NodeHandle> frontier, device.GetCaptureFrontier(stream.get()));
    ASSERT_EQ(frontier.size(), 1u);
    EXPECT_TRUE(frontier[0]);
    EXPECT_EQ(std::count(chain.begin(), chain.end(), frontier[0]), 0);
    chain.push_back(frontier[0]);
  }
  ASSERT_VALUE(const Graph graph, capture.End());
  // The same nodes, in a chain.
  ASSERT_VALUE(const std::vector<NodeInfo> nodes, device.GetNodes(graph.get()));
  ASSERT_EQ(nodes.size(), 3u);
  for (const NodeInfo& node : nodes) {
    const auto at = std::find(chain.begin(), chain.end(), node.node);
    ASSERT_NE(at, chain.end());
    if (at == chain.begin()) {
      EXPECT_TRUE(node.dependencies.empty());
    } else {
      EXPECT_EQ(node.dependencies, std::vector<NodeHandle>{*std::prev(at)});
    }
  }
}

KEEL_CONFORMANCE_CASE(Capture, EventsForkAndJoinStreams, .needs = {&Capabilities::graphs}) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream origin, context.NewStream());
  ASSERT_VALUE(const Stream branch, context.NewStream());
  ASSERT_VALUE(const Event fork, context.NewEvent());
  ASSERT_VALUE(const Event join, context.NewEvent());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(16_B));
  ASSERT_VALUE(const PlainMemory copy, context.NewPlain(16_B));
  ASSERT_OK(context.Write(memory.address(), std::vector<std::uint32_t>(4, 0)));
  const auto fill = [&](const Stream& stream, std::uint64_t word, std::uint32_t value) {
    return device.EnqueueFill(stream.get(), {.destination = memory.address() + Bytes(word * 4),
                                             .value = value,
                                             .width = 4,
                                             .count = 1});
  };
  ASSERT_VALUE(Capture capture, Capture::Begin(context.shared(), origin.get()));
  ASSERT_OK(fill(origin, 0, 1));
  ASSERT_OK(fork.Record(origin.get()));
  ASSERT_OK(device.WaitEvent(branch.get(), fork.get()));
  EXPECT_TRUE(IsInState(context, branch, CaptureState::kActive));
  ASSERT_OK(fill(branch, 1, 2));
  ASSERT_OK(fill(origin, 2, 3));
  ASSERT_OK(join.Record(branch.get()));
  ASSERT_OK(device.WaitEvent(origin.get(), join.get()));
  ASSERT_VALUE(const std::vector<NodeHandle> frontier, device.GetCaptureFrontier(origin.get()));
  EXPECT_EQ(frontier.size(), 2u);
  ASSERT_OK(
      device.EnqueueCopy(origin.get(), {.destination = Location::On(device.id(), copy.address()),
                                        .source = Location::On(device.id(), memory.address()),
                                        .size = 16_B}));
  // Only the stream where it began can end it.
  EXPECT_TRUE(HasCode({StatusCode::kFailedPrecondition, StatusCode::kInvalidArgument},
                      device.EndCapture(branch.get())));
  ASSERT_VALUE(const Graph graph, capture.End());
  EXPECT_TRUE(IsInState(context, branch, CaptureState::kNone));

  ASSERT_VALUE(const std::vector<NodeInfo> nodes, device.GetNodes(graph.get()));
  ASSERT_EQ(nodes.size(), 4u);
  const auto last = std::find_if(nodes.begin(), nodes.end(),
                                 [](const NodeInfo& node) { return node.kind == KindOf<Copy>(); });
  ASSERT_NE(last, nodes.end());
  std::vector<NodeHandle> dependencies = last->dependencies;
  std::vector<NodeHandle> expected = frontier;
  std::sort(dependencies.begin(), dependencies.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(dependencies, expected);
  EXPECT_TRUE(context.HoldsWord(memory.address(), 4, 0)) << "a captured command ran";
  ASSERT_OK(LaunchAndWait(context, graph, origin));
  ASSERT_VALUE(const std::vector<std::uint32_t> seen,
               context.Read<std::uint32_t>(copy.address(), 3));
  EXPECT_EQ(seen, (std::vector<std::uint32_t>{1, 2, 3}));
  // Both streams run again.
  ASSERT_OK(fill(branch, 3, 9));
  ASSERT_OK(branch.Synchronize(InTime()));
  EXPECT_TRUE(context.HoldsWord(memory.address() + 12_B, 1, 9));
}

KEEL_CONFORMANCE_CASE(Capture, AStreamThatIsNotJoinedBackIsAnError,
                      .needs = {&Capabilities::graphs}) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream origin, context.NewStream());
  ASSERT_VALUE(const Stream branch, context.NewStream());
  ASSERT_VALUE(const Event fork, context.NewEvent());
  ASSERT_VALUE(const Event join, context.NewEvent());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  const Fill fill{.destination = memory.address(), .value = 1, .width = 4, .count = 1024};
  for (const bool work_after_join : {false, true}) {
    SCOPED_TRACE(work_after_join);
    ASSERT_OK(device.BeginCapture(origin.get(), CaptureMode::kThreadLocal));
    ASSERT_OK(fork.Record(origin.get()));
    ASSERT_OK(device.WaitEvent(branch.get(), fork.get()));
    ASSERT_OK(device.EnqueueFill(branch.get(), fill));
    if (work_after_join) {
      // Joined, and then more that is not.
      ASSERT_OK(join.Record(branch.get()));
      ASSERT_OK(device.WaitEvent(origin.get(), join.get()));
      ASSERT_OK(device.EnqueueFill(branch.get(), fill));
    }
    EXPECT_CODE(kFailedPrecondition, device.EndCapture(origin.get()));
    // It is over, for both.
    EXPECT_TRUE(IsInState(context, origin, CaptureState::kNone));
    EXPECT_TRUE(IsInState(context, branch, CaptureState::kNone));
    for (const Stream* stream : {&origin, &branch}) {
      ASSERT_OK(device.EnqueueFill(stream->get(), fill));
      EXPECT_OK(stream->Synchronize(InTime()));
    }
  }
}

KEEL_CONFORMANCE_CASE(Capture, JoinsStreamsOfOtherDevices, .devices = 2,
                      .needs = {&Capabilities::graphs}) {
  Device& first = context.device(0);
  Device& second = context.device(1);
  ASSERT_VALUE(const Stream origin, context.NewStream(0));
  ASSERT_VALUE(const Stream branch, context.NewStream(1));
  ASSERT_VALUE(const Event fork, context.NewEvent(0));
  ASSERT_VALUE(const Event join, context.NewEvent(1));
  ASSERT_VALUE(const PlainMemory a, context.NewPlain(4_KiB, 0));
  ASSERT_VALUE(const PlainMemory b, context.NewPlain(4_KiB, 1));
  ASSERT_OK(context.Write(b.address(), std::vector<std::uint32_t>(1024, 0), 1));
  ASSERT_VALUE(Capture capture, Capture::Begin(context.shared(0), origin.get()));
  ASSERT_OK(first.EnqueueFill(origin.get(),
                              {.destination = a.address(), .value = 5, .width = 4, .count = 1024}));
  ASSERT_OK(fork.Record(origin.get()));
  ASSERT_OK(second.WaitEvent(branch.get(), fork.get()));
  EXPECT_TRUE(IsInState(context, branch, CaptureState::kActive, 1));
  ASSERT_OK(second.EnqueueCopy(branch.get(), {.destination = Location::On(second.id(), b.address()),
                                              .source = Location::On(first.id(), a.address()),
                                              .size = 2_KiB}));
  // An address alone is one of the branch's device.
  ASSERT_OK(second.EnqueueFill(
      branch.get(), {.destination = b.address() + 2_KiB, .value = 6, .width = 4, .count = 512}));
  ASSERT_OK(join.Record(branch.get()));
  ASSERT_OK(first.WaitEvent(origin.get(), join.get()));
  ASSERT_VALUE(const Graph graph, capture.End());
  EXPECT_TRUE(IsInState(context, branch, CaptureState::kNone, 1));
  EXPECT_TRUE(context.HoldsWord(b.address(), 1024, 0, 1));
  ASSERT_OK(LaunchAndWait(context, graph, origin));
  EXPECT_TRUE(context.HoldsWord(b.address(), 512, 5, 1));
  EXPECT_TRUE(context.HoldsWord(b.address() + 2_KiB, 512, 6, 1));
}

KEEL_CONFORMANCE_CASE(Capture, CopiesToPageableMemoryCannotBeRecorded,
                      .needs = {&Capabilities::graphs}) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  std::vector<std::byte> pageable(4096);
  ASSERT_OK(device.BeginCapture(stream.get(), CaptureMode::kThreadLocal));
  EXPECT_CODE(
      kFailedPrecondition,
      device.EnqueueCopy(stream.get(), {.destination = Location::Host(pageable.data()),
                                        .source = Location::On(device.id(), memory.address()),
                                        .size = 4_KiB}));
  // Refused, and so nothing has changed.
  EXPECT_TRUE(IsInState(context, stream, CaptureState::kActive));
  const Result<GraphHandle> graph = device.EndCapture(stream.get());
  EXPECT_OK(graph);
  if (graph.ok()) {
    EXPECT_OK(device.DestroyGraph(*graph));
  }
}

KEEL_CONFORMANCE_CASE(Capture, BadCommandsAreRefusedAndNotRecorded,
                      .needs = {&Capabilities::graphs}) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  const Location good = Location::On(device.id(), memory.address());
  const Location nowhere = Location::On(static_cast<DeviceId>(0x7FFFFFFF), memory.address());
  ASSERT_VALUE(Capture capture, Capture::Begin(context.shared(), stream.get()));
  EXPECT_CODE(
      kInvalidArgument,
      device.EnqueueFill(stream.get(), {.destination = memory.address(), .width = 3, .count = 4}));
  EXPECT_CODE(
      kInvalidArgument,
      device.EnqueueCopy(stream.get(), {.destination = nowhere, .source = good, .size = 64_B}));
  EXPECT_CODE(
      kInvalidArgument,
      device.EnqueueCopy(stream.get(), {.destination = good, .source = good, .size = 64_B}));
  EXPECT_TRUE(IsInState(context, stream, CaptureState::kActive));
  ASSERT_VALUE(const Graph graph, capture.End());
  ASSERT_VALUE(const std::vector<NodeInfo> nodes, device.GetNodes(graph.get()));
  EXPECT_TRUE(nodes.empty());
}

KEEL_CONFORMANCE_CASE(Capture, ALaunchInsideBreaksIt, .needs = {&Capabilities::graphs}) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  ASSERT_OK(context.Write(memory.address(), std::vector<std::uint32_t>(1024, 0)));
  ASSERT_VALUE(const Graph inner, Graph::Create(context.shared()));
  ASSERT_OK(
      device.AddNode(inner.get(), {},
                     Fill{.destination = memory.address(), .value = 3, .width = 4, .count = 512}));
  ASSERT_VALUE(const GraphExec exec, GraphExec::Create(inner));
  ASSERT_VALUE(Capture capture, Capture::Begin(context.shared(), stream.get()));
  EXPECT_CODE(kFailedPrecondition, exec.Launch(stream.get()));
  EXPECT_TRUE(IsInState(context, stream, CaptureState::kInvalidated));
  EXPECT_CODE(kFailedPrecondition, capture.End());
  EXPECT_TRUE(context.HoldsWord(memory.address(), 1024, 0));
  // Nothing is wrong with the graph itself.
  ASSERT_OK(exec.Launch(stream.get()));
  ASSERT_OK(stream.Synchronize(InTime()));
  EXPECT_TRUE(context.HoldsWord(memory.address(), 512, 3));
}

KEEL_CONFORMANCE_CASE(Capture, ACapturingStreamIsNotDestroyed, .needs = {&Capabilities::graphs}) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const Stream branch, context.NewStream());
  ASSERT_VALUE(const Event fork, context.NewEvent());
  ASSERT_VALUE(const Event join, context.NewEvent());
  ASSERT_VALUE(Capture capture, Capture::Begin(context.shared(), stream.get()));
  EXPECT_CODE(kFailedPrecondition, device.DestroyStream(stream.get()));
  ASSERT_OK(fork.Record(stream.get()));
  ASSERT_OK(device.WaitEvent(branch.get(), fork.get()));
  EXPECT_CODE(kFailedPrecondition, device.DestroyStream(branch.get()));
  ASSERT_OK(join.Record(branch.get()));
  ASSERT_OK(device.WaitEvent(stream.get(), join.get()));
  EXPECT_TRUE(IsInState(context, stream, CaptureState::kActive));
  EXPECT_OK(capture.End());
}

KEEL_CONFORMANCE_CASE(Capture, EventsMayGoBeforeItEnds, .needs = {&Capabilities::graphs}) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream origin, context.NewStream());
  ASSERT_VALUE(const Stream branch, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  ASSERT_VALUE(Capture capture, Capture::Begin(context.shared(), origin.get()));
  {
    ASSERT_VALUE(Event fork, context.NewEvent());
    ASSERT_OK(fork.Record(origin.get()));
    ASSERT_OK(device.WaitEvent(branch.get(), fork.get()));
    EXPECT_OK(fork.Close());
    ASSERT_OK(device.EnqueueFill(
        branch.get(), {.destination = memory.address(), .value = 2, .width = 4, .count = 1024}));
    ASSERT_VALUE(Event join, context.NewEvent());
    ASSERT_OK(join.Record(branch.get()));
    ASSERT_OK(device.WaitEvent(origin.get(), join.get()));
    EXPECT_OK(join.Close());
  }
  ASSERT_VALUE(const Graph graph, capture.End());
  ASSERT_OK(LaunchAndWait(context, graph, origin));
  EXPECT_TRUE(context.HoldsWord(memory.address(), 1024, 2));
}

KEEL_CONFORMANCE_CASE(Capture, WaitingForAnEventThatWasNeverRecordedIsNothing,
                      .needs = {&Capabilities::graphs}) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const Event fresh, context.NewEvent());
  ASSERT_VALUE(Capture capture, Capture::Begin(context.shared(), stream.get()));
  EXPECT_OK(device.WaitEvent(stream.get(), fresh.get()));
  EXPECT_TRUE(IsInState(context, stream, CaptureState::kActive));
  ASSERT_VALUE(const Graph graph, capture.End());
  ASSERT_VALUE(const std::vector<NodeInfo> nodes, device.GetNodes(graph.get()));
  EXPECT_TRUE(nodes.empty());
}

// It stands for nodes of a graph, not for work that ever ran.
KEEL_CONFORMANCE_CASE(Capture, AnEventOfACaptureCannotBeWaitedForOnTheHost,
                      .needs = {&Capabilities::graphs}) {
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const Event event, context.NewEvent());
  ASSERT_VALUE(Capture capture, Capture::Begin(context.shared(), stream.get()));
  ASSERT_OK(event.Record(stream.get()));
  ASSERT_OK(capture.End());
  const auto refused = {StatusCode::kFailedPrecondition, StatusCode::kInvalidArgument};
  EXPECT_TRUE(HasCode(refused, event.Query()));
  EXPECT_TRUE(HasCode(refused, event.Synchronize(InTime())));
  // Until it is recorded again.
  ASSERT_OK(event.Record(stream.get()));
  EXPECT_OK(event.Synchronize(InTime()));
}

}  // namespace
}  // namespace keel::hal::conformance
