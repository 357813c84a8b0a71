// Changing a graph that was instantiated: as a whole, and node by node.

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>

#include "hal/conformance/context.h"

namespace keel::hal::conformance {
namespace {

Fill FillWord(DeviceAddress address, std::uint32_t value) {
  return {.destination = address, .value = value, .width = 4, .count = 1};
}

Copy CopyOn(Device& device, DeviceAddress to, DeviceAddress from, Bytes size) {
  return {.destination = Location::On(device.id(), to),
          .source = Location::On(device.id(), from),
          .size = size};
}

// A graph of two fills, the second after the first.
struct TwoFills {
  static Result<TwoFills> Create(CaseContext& context, DeviceAddress at, std::uint32_t first,
                                 std::uint32_t second) {
    TwoFills made;
    Device& device = context.device();
    KEEL_ASSIGN(made.graph, Graph::Create(context.shared()));
    KEEL_ASSIGN(made.first, device.AddNode(made.graph.get(), {}, FillWord(at, first)));
    KEEL_ASSIGN(made.second,
                device.AddNode(made.graph.get(), {{made.first}}, FillWord(at + 4_B, second)));
    return made;
  }
  Graph graph;
  NodeHandle first;
  NodeHandle second;
};

KEEL_CONFORMANCE_CASE(GraphUpdate, GivesEveryNodeNewParameters,
                      .needs = {&Capabilities::graph_update}, .blocks = true) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  const DeviceAddress at = memory.address();
  ASSERT_VALUE(TwoFills before, TwoFills::Create(context, at, 1, 2));
  ASSERT_VALUE(TwoFills after, TwoFills::Create(context, at, 3, 4));
  ASSERT_VALUE(const GraphExec exec, GraphExec::Create(before.graph));
  ASSERT_OK(context.Write(at, std::vector<std::uint32_t>(4, 0)));
  {
    // A launch that is queued keeps the parameters it was launched with.
    ASSERT_VALUE(Blocker blocker, context.Block(stream.get()));
    ASSERT_OK(exec.Launch(stream.get()));
    ASSERT_OK(device.EnqueueCopy(stream.get(), CopyOn(device, at + 8_B, at, 8_B)));
    ASSERT_VALUE(const UpdateReport report, device.UpdateExec(exec.get(), after.graph.get()));
    EXPECT_TRUE(report.updated) << report.reason;
    EXPECT_EQ(report.reason, "");
    ASSERT_OK(exec.Launch(stream.get()));
    EXPECT_TRUE(blocker.blocked()) << "updating waited";
  }
  ASSERT_OK(stream.Synchronize(InTime()));
  ASSERT_VALUE(const std::vector<std::uint32_t> seen, context.Read<std::uint32_t>(at, 4));
  EXPECT_EQ(seen, (std::vector<std::uint32_t>{3, 4, 1, 2}));
  // The graph that it came from may go.
  ASSERT_OK(after.graph.Close());
  ASSERT_OK(before.graph.Close());
  ASSERT_OK(context.Write(at, std::vector<std::uint32_t>(4, 0)));
  ASSERT_OK(exec.Launch(stream.get()));
  ASSERT_OK(stream.Synchronize(InTime()));
  ASSERT_VALUE(const std::vector<std::uint32_t> again, context.Read<std::uint32_t>(at, 2));
  EXPECT_EQ(again, (std::vector<std::uint32_t>{3, 4}));
}

KEEL_CONFORMANCE_CASE(GraphUpdate, TakesARecordingOfTheSameShape,
                      .needs = {&Capabilities::graph_update, &Capabilities::kernels}) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(8_KiB));
  const auto record = [&](DeviceAddress at, std::uint32_t value) -> Result<Graph> {
    KEEL_ASSIGN(Capture capture, Capture::Begin(context.shared(), stream.get()));
    for (std::uint64_t i = 0; i < 10; ++i) {
      KEEL_TRY(context.LaunchFill(stream.get(), at + Bytes(i * 64),
                                  value + static_cast<std::uint32_t>(i), 16));
    }
    return capture.End();
  };
  ASSERT_VALUE(const Graph first, record(memory.address(), 100));
  ASSERT_VALUE(const GraphExec exec, GraphExec::Create(first));
  ASSERT_VALUE(const Graph second, record(memory.address() + 4_KiB, 200));
  ASSERT_VALUE(const UpdateReport report, device.UpdateExec(exec.get(), second.get()));
  EXPECT_TRUE(report.updated) << report.reason;
  ASSERT_OK(context.Write(memory.address(), std::vector<std::uint32_t>(2048, 0)));
  ASSERT_OK(exec.Launch(stream.get()));
  ASSERT_OK(stream.Synchronize(InTime()));
  EXPECT_TRUE(context.HoldsWord(memory.address(), 1024, 0));
  for (std::uint64_t i = 0; i < 10; ++i) {
    EXPECT_TRUE(context.HoldsWord(memory.address() + 4_KiB + Bytes(i * 64), 16,
                                  200 + static_cast<std::uint32_t>(i)));
  }
}

// Each of these shapes differs from the two fills; an exec must refuse it, say so, and stay as it
// was.
KEEL_CONFORMANCE_CASE(GraphUpdate, RefusesAnotherShapeAndChangesNothing,
                      .needs = {&Capabilities::graph_update}) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  const DeviceAddress at = memory.address();
  ASSERT_VALUE(const TwoFills before, TwoFills::Create(context, at, 1, 2));
  ASSERT_VALUE(const GraphExec exec, GraphExec::Create(before.graph));
  struct Shape {
    const char* what;
    std::function<Status(GraphHandle)> build;
  };
  const std::array<Shape, 5> shapes = {{
      {"no nodes", [](GraphHandle) { return OkStatus(); }},
      {"one node", [&](GraphHandle g) { return StatusOf(device.AddNode(g, {}, FillWord(at, 7))); }},
      {"three nodes",
       [&](GraphHandle g) -> Status {
         KEEL_ASSIGN(const NodeHandle a, device.AddNode(g, {}, FillWord(at, 7)));
         KEEL_ASSIGN(const NodeHandle b, device.AddNode(g, {{a}}, FillWord(at + 4_B, 8)));
         return StatusOf(device.AddNode(g, {{b}}, FillWord(at + 8_B, 9)));
       }},
      {"no dependency",
       [&](GraphHandle g) -> Status {
         KEEL_TRY(StatusOf(device.AddNode(g, {}, FillWord(at, 7))));
         return StatusOf(device.AddNode(g, {}, FillWord(at + 4_B, 8)));
       }},
      {"another kind",
       [&](GraphHandle g) -> Status {
         KEEL_ASSIGN(const NodeHandle a, device.AddNode(g, {}, FillWord(at, 7)));
         return StatusOf(device.AddNode(g, {{a}}, CopyOn(device, at + 4_B, at, 4_B)));
       }},
  }};
  for (const Shape& shape : shapes) {
    SCOPED_TRACE(shape.what);
    ASSERT_VALUE(const Graph other, Graph::Create(context.shared()));
    ASSERT_OK(shape.build(other.get()));
    ASSERT_VALUE(const UpdateReport report, device.UpdateExec(exec.get(), other.get()));
    EXPECT_FALSE(report.updated);
    EXPECT_NE(report.reason, "");
    if (report.node.has_value()) {
      ASSERT_VALUE(const std::vector<NodeInfo> nodes, device.GetNodes(other.get()));
      EXPECT_TRUE(std::any_of(nodes.begin(), nodes.end(),
                              [&](const NodeInfo& node) { return node.node == *report.node; }));
    }
    ASSERT_OK(context.Write(at, std::vector<std::uint32_t>(3, 0)));
    ASSERT_OK(exec.Launch(stream.get()));
    ASSERT_OK(stream.Synchronize(InTime()));
    ASSERT_VALUE(const std::vector<std::uint32_t> seen, context.Read<std::uint32_t>(at, 3));
    EXPECT_EQ(seen, (std::vector<std::uint32_t>{1, 2, 0}));
  }
  EXPECT_CODE(kInvalidArgument, device.UpdateExec(exec.get(), GraphHandle{}));
  EXPECT_CODE(kInvalidArgument, device.UpdateExec(ExecHandle{}, before.graph.get()));
}

KEEL_CONFORMANCE_CASE(GraphUpdate, OfAnEmptyGraph, .needs = {&Capabilities::graph_update}) {
  ASSERT_VALUE(const Graph first, Graph::Create(context.shared()));
  ASSERT_VALUE(const Graph second, Graph::Create(context.shared()));
  ASSERT_VALUE(const GraphExec exec, GraphExec::Create(first));
  ASSERT_VALUE(const UpdateReport report, context.device().UpdateExec(exec.get(), second.get()));
  EXPECT_TRUE(report.updated) << report.reason;
}

// Sets the parameters of a graph of one node, between a launch that is queued and one that is not,
// and looks at what both did.
struct Rewrite {
  Command before;
  Command after;
  std::function<void()> reset;
  std::function<void()> expect_before;
  std::function<void()> expect_after;
};

void CheckRewrite(CaseContext& context, const Rewrite& rewrite) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(Graph graph, Graph::Create(context.shared()));
  ASSERT_VALUE(const NodeHandle first, device.AddNode(graph.get(), {}, EmptyNode{}));
  ASSERT_VALUE(const NodeHandle node, device.AddNode(graph.get(), {{first}}, rewrite.before));
  ASSERT_VALUE(const GraphExec exec, GraphExec::Create(graph));
  rewrite.reset();
  {
    ASSERT_VALUE(Blocker blocker, context.Block(stream.get()));
    ASSERT_OK(exec.Launch(stream.get()));
    ASSERT_OK(device.SetNodeParams(exec.get(), node, rewrite.after));
    EXPECT_TRUE(blocker.blocked()) << "setting parameters waited";
  }
  ASSERT_OK(stream.Synchronize(InTime()));
  rewrite.expect_before();
  rewrite.reset();
  ASSERT_OK(exec.Launch(stream.get()));
  ASSERT_OK(stream.Synchronize(InTime()));
  rewrite.expect_after();
  // The graph itself still has the old ones.
  rewrite.reset();
  ASSERT_VALUE(const GraphExec fresh, GraphExec::Create(graph));
  ASSERT_OK(fresh.Launch(stream.get()));
  ASSERT_OK(stream.Synchronize(InTime()));
  rewrite.expect_before();
}

// For rewrites whose effect is one of two words.
Rewrite OfWords(CaseContext& context, DeviceAddress at, Command before, Command after,
                std::vector<std::uint32_t> want_before, std::vector<std::uint32_t> want_after) {
  const auto expect = [&context, at](std::vector<std::uint32_t> want) {
    return [&context, at, want = std::move(want)] {
      ASSERT_VALUE(const std::vector<std::uint32_t> seen, context.Read<std::uint32_t>(at, 4));
      EXPECT_EQ(seen, want);
    };
  };
  return {.before = std::move(before),
          .after = std::move(after),
          .reset = [&context,
                    at] { ASSERT_OK(context.Write(at, std::vector<std::uint32_t>{0, 0, 11, 12})); },
          .expect_before = expect(std::move(want_before)),
          .expect_after = expect(std::move(want_after))};
}

KEEL_CONFORMANCE_CASE(NodeUpdate, OfAFill, .needs = {&Capabilities::node_update}, .blocks = true) {
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(16_B));
  const DeviceAddress at = memory.address();
  CheckRewrite(context, OfWords(context, at, FillWord(at, 1), FillWord(at + 4_B, 2), {1, 0, 11, 12},
                                {0, 2, 11, 12}));
}

KEEL_CONFORMANCE_CASE(NodeUpdate, OfACopy, .needs = {&Capabilities::node_update}, .blocks = true) {
  Device& device = context.device();
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(16_B));
  const DeviceAddress at = memory.address();
  CheckRewrite(context,
               OfWords(context, at, CopyOn(device, at, at + 8_B, 4_B),
                       CopyOn(device, at, at + 12_B, 4_B), {11, 0, 11, 12}, {12, 0, 11, 12}));
}

KEEL_CONFORMANCE_CASE(NodeUpdate, OfAKernel,
                      .needs = {&Capabilities::node_update, &Capabilities::kernels},
                      .blocks = true) {
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(16_B));
  ASSERT_VALUE(const KernelHandle fill, context.Kernel(kernels::kFill));
  const DeviceAddress at = memory.address();
  const std::array before = {KernelArg::Out(at, 4_B), KernelArg::Value(1u),
                             KernelArg::Value<std::uint64_t>(1)};
  const std::array after = {KernelArg::Out(at, 8_B), KernelArg::Value(2u),
                            KernelArg::Value<std::uint64_t>(2)};
  const LaunchDims wider{.grid = {2, 1, 1}, .block = {8, 1, 1}};
  CheckRewrite(context, OfWords(context, at, KernelLaunch{.kernel = fill, .args = before},
                                KernelLaunch{.kernel = fill, .dims = wider, .args = after},
                                {1, 0, 11, 12}, {2, 2, 11, 12}));
}

KEEL_CONFORMANCE_CASE(NodeUpdate, OfAHostCall,
                      .needs = {&Capabilities::node_update, &Capabilities::host_calls},
                      .blocks = true) {
  std::array<std::atomic<int>, 2> counts{};
  const auto call = [&](std::size_t i) {
    return HostCall{.function = [](void* data) { ++*static_cast<std::atomic<int>*>(data); },
                    .data = &counts[i]};
  };
  CheckRewrite(context, {.before = call(0),
                         .after = call(1),
                         .reset = [&] { counts[0] = counts[1] = 0; },
                         .expect_before =
                             [&] {
                               EXPECT_EQ(counts[0].load(), 1);
                               EXPECT_EQ(counts[1].load(), 0);
                             },
                         .expect_after =
                             [&] {
                               EXPECT_EQ(counts[0].load(), 0);
                               EXPECT_EQ(counts[1].load(), 1);
                             }});
}

KEEL_CONFORMANCE_CASE(NodeUpdate, OfAValueWrite,
                      .needs = {&Capabilities::node_update, &Capabilities::value_writes},
                      .blocks = true) {
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(16_B));
  const DeviceAddress at = memory.address();
  CheckRewrite(context, OfWords(context, at, ValueWrite{.destination = at, .value = 0x200000001},
                                ValueWrite{.destination = at + 8_B, .value = 0x400000003},
                                {1, 2, 11, 12}, {0, 0, 3, 4}));
}

KEEL_CONFORMANCE_CASE(NodeUpdate, OfAValueWait,
                      .needs = {&Capabilities::node_update, &Capabilities::value_waits}) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PinnedWords words, context.NewWords(2));
  ASSERT_VALUE(const Graph graph, Graph::Create(context.shared()));
  ASSERT_VALUE(const NodeHandle node,
               device.AddNode(graph.get(), {}, ValueWait{.source = words.address(0), .value = 1}));
  ASSERT_VALUE(const GraphExec exec, GraphExec::Create(graph));
  ASSERT_OK(exec.Launch(stream.get()));
  // The one that is queued waits for the old word; the new word does not help it.
  ASSERT_OK(
      device.SetNodeParams(exec.get(), node, ValueWait{.source = words.address(1), .value = 1}));
  words.Store(1, 1);
  EXPECT_CODE(kDeadlineExceeded,
              stream.Synchronize(Deadline::After(std::chrono::milliseconds(20))));
  words.Store(1, 0);
  EXPECT_OK(stream.Synchronize(InTime()));
  words.Store(0, 0);
  ASSERT_OK(exec.Launch(stream.get()));
  EXPECT_OK(stream.Synchronize(InTime()));
  words.Store(1, 0);
}

KEEL_CONFORMANCE_CASE(NodeUpdate, OfAChild, .needs = {&Capabilities::node_update}, .blocks = true) {
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(16_B));
  const DeviceAddress at = memory.address();
  ASSERT_VALUE(const TwoFills before, TwoFills::Create(context, at, 1, 2));
  ASSERT_VALUE(const TwoFills after, TwoFills::Create(context, at, 3, 4));
  CheckRewrite(context, OfWords(context, at, ChildGraph{before.graph.get()},
                                ChildGraph{after.graph.get()}, {1, 2, 11, 12}, {3, 4, 11, 12}));
}

// Whoever exchanges a traced command counts on the refusal, and on the old one staying.
KEEL_CONFORMANCE_CASE(NodeUpdate, RefusesAChildWithOtherNodesAndChangesNothing,
                      .needs = {&Capabilities::node_update}) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(16_B));
  const DeviceAddress at = memory.address();
  ASSERT_VALUE(const TwoFills child, TwoFills::Create(context, at, 1, 2));
  ASSERT_VALUE(TwoFills longer, TwoFills::Create(context, at, 3, 4));
  ASSERT_VALUE(const NodeHandle third,
               device.AddNode(longer.graph.get(), {{longer.second}}, FillWord(at + 8_B, 5)));
  EXPECT_TRUE(third);
  ASSERT_VALUE(const Graph shorter, Graph::Create(context.shared()));
  ASSERT_OK(StatusOf(device.AddNode(shorter.get(), {}, FillWord(at, 6))));
  ASSERT_VALUE(const Graph graph, Graph::Create(context.shared()));
  ASSERT_VALUE(const NodeHandle node,
               device.AddNode(graph.get(), {}, ChildGraph{child.graph.get()}));
  ASSERT_VALUE(const GraphExec exec, GraphExec::Create(graph));
  for (const GraphHandle other : {longer.graph.get(), shorter.get()}) {
    const Status refused = device.SetNodeParams(exec.get(), node, ChildGraph{other});
    EXPECT_FALSE(refused.ok());
    EXPECT_NE(refused.code(), StatusCode::kDeviceLost) << refused.ToString();
    if (device.capabilities().graph_update) {
      ASSERT_VALUE(const Graph whole, Graph::Create(context.shared()));
      ASSERT_OK(StatusOf(device.AddNode(whole.get(), {}, ChildGraph{other})));
      ASSERT_VALUE(const UpdateReport report, device.UpdateExec(exec.get(), whole.get()));
      EXPECT_FALSE(report.updated);
      EXPECT_NE(report.reason, "");
    }
    ASSERT_OK(context.Write(at, std::vector<std::uint32_t>(3, 0)));
    ASSERT_OK(exec.Launch(stream.get()));
    ASSERT_OK(stream.Synchronize(InTime()));
    ASSERT_VALUE(const std::vector<std::uint32_t> seen, context.Read<std::uint32_t>(at, 3));
    EXPECT_EQ(seen, (std::vector<std::uint32_t>{1, 2, 0}));
  }
}

KEEL_CONFORMANCE_CASE(NodeUpdate, RefusesWhatDoesNotFit, .needs = {&Capabilities::node_update}) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(16_B));
  const DeviceAddress at = memory.address();
  ASSERT_VALUE(const TwoFills made, TwoFills::Create(context, at, 1, 2));
  ASSERT_VALUE(const TwoFills other, TwoFills::Create(context, at, 3, 4));
  ASSERT_VALUE(const GraphExec exec, GraphExec::Create(made.graph));
  const auto set = [&](NodeHandle node, const Command& command) {
    return device.SetNodeParams(exec.get(), node, command);
  };
  EXPECT_CODE(kInvalidArgument, set(made.first, CopyOn(device, at + 8_B, at, 4_B)));
  EXPECT_CODE(kInvalidArgument, set(made.first, EmptyNode{}));
  EXPECT_CODE(kInvalidArgument, set(other.first, FillWord(at, 5)));
  EXPECT_CODE(kInvalidArgument, set(NodeHandle{}, FillWord(at, 5)));
  EXPECT_CODE(kInvalidArgument,
              set(made.first, Fill{.destination = at, .value = 5, .width = 3, .count = 1}));
  EXPECT_CODE(kInvalidArgument, device.SetNodeParams(ExecHandle{}, made.first, FillWord(at, 5)));
  ASSERT_OK(exec.Launch(stream.get()));
  ASSERT_OK(stream.Synchronize(InTime()));
  ASSERT_VALUE(const std::vector<std::uint32_t> seen, context.Read<std::uint32_t>(at, 2));
  EXPECT_EQ(seen, (std::vector<std::uint32_t>{1, 2}));
}

KEEL_CONFORMANCE_CASE(NodeUpdate, KeepsTheKernel,
                      .needs = {&Capabilities::node_update, &Capabilities::kernels}) {
  Device& device = context.device();
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  ASSERT_VALUE(const KernelHandle fill, context.Kernel(kernels::kFill));
  ASSERT_VALUE(const KernelHandle reduce, context.Kernel(kernels::kReduce));
  const std::array args = {KernelArg::Out(memory.address(), 4_KiB), KernelArg::Value(1u),
                           KernelArg::Value<std::uint64_t>(1024)};
  const std::array other = {KernelArg::In(memory.address(), 1_KiB),
                            KernelArg::InOut(memory.address() + 2_KiB, 8_B),
                            KernelArg::Value<std::uint64_t>(256)};
  ASSERT_VALUE(const Graph graph, Graph::Create(context.shared()));
  ASSERT_VALUE(const NodeHandle node,
               device.AddNode(graph.get(), {}, KernelLaunch{.kernel = fill, .args = args}));
  ASSERT_VALUE(const GraphExec exec, GraphExec::Create(graph));
  EXPECT_CODE(
      kInvalidArgument,
      device.SetNodeParams(exec.get(), node, KernelLaunch{.kernel = reduce, .args = other}));
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_OK(exec.Launch(stream.get()));
  ASSERT_OK(stream.Synchronize(InTime()));
  EXPECT_TRUE(context.HoldsWord(memory.address(), 1024, 1));
}

}  // namespace
}  // namespace keel::hal::conformance
