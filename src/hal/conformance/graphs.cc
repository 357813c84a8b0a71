// Graphs: nodes, instantiation, launches. Changing an instantiated one is in graph_update.cc.

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "hal/conformance/context.h"

namespace keel::hal::conformance {
namespace {

template <class Kind>
constexpr std::size_t KindOf() {
  return Command(Kind{}).index();
}

Fill FillWord(DeviceAddress address, std::uint32_t value) {
  return {.destination = address, .value = value, .width = 4, .count = 1};
}

Copy CopyOn(Device& device, DeviceAddress to, DeviceAddress from, Bytes size) {
  return {.destination = Location::On(device.id(), to),
          .source = Location::On(device.id(), from),
          .size = size};
}

KEEL_CONFORMANCE_CASE(Graphs, AnEmptyOneIsFine, .needs = {&Capabilities::graphs}) {
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(Graph graph, Graph::Create(context.shared()));
  ASSERT_VALUE(const std::vector<NodeInfo> nodes, context.device().GetNodes(graph.get()));
  EXPECT_TRUE(nodes.empty());
  ASSERT_VALUE(GraphExec exec, GraphExec::Create(graph));
  for (int i = 0; i < 3; ++i) ASSERT_OK(exec.Launch(stream.get()));
  EXPECT_OK(stream.Synchronize(InTime()));
}

KEEL_CONFORMANCE_CASE(Graphs, NodesAreListedAsTheyWereAdded, .needs = {&Capabilities::graphs}) {
  Device& device = context.device();
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  ASSERT_VALUE(const Graph graph, Graph::Create(context.shared()));
  ASSERT_VALUE(const NodeHandle fill,
               device.AddNode(graph.get(), {}, FillWord(memory.address(), 1)));
  ASSERT_VALUE(const NodeHandle empty, device.AddNode(graph.get(), {{fill}}, EmptyNode{}));
  const std::array both = {fill, empty};
  ASSERT_VALUE(const NodeHandle copy,
               device.AddNode(graph.get(), both,
                              CopyOn(device, memory.address() + 1_KiB, memory.address(), 4_B)));
  EXPECT_TRUE(fill);
  EXPECT_TRUE(empty);
  EXPECT_TRUE(copy);
  ASSERT_VALUE(const std::vector<NodeInfo> nodes, device.GetNodes(graph.get()));
  ASSERT_EQ(nodes.size(), 3u);
  for (const NodeInfo& node : nodes) {
    std::vector<NodeHandle> dependencies = node.dependencies;
    std::sort(dependencies.begin(), dependencies.end());
    if (node.node == fill) {
      EXPECT_EQ(node.kind, KindOf<Fill>());
      EXPECT_TRUE(dependencies.empty());
    } else if (node.node == empty) {
      EXPECT_EQ(node.kind, KindOf<EmptyNode>());
      EXPECT_EQ(dependencies, std::vector<NodeHandle>{fill});
    } else {
      EXPECT_EQ(node.node, copy);
      EXPECT_EQ(node.kind, KindOf<Copy>());
      std::vector<NodeHandle> expected(both.begin(), both.end());
      std::sort(expected.begin(), expected.end());
      EXPECT_EQ(dependencies, expected);
    }
  }
}

KEEL_CONFORMANCE_CASE(Graphs, BadNodesAreRefused, .needs = {&Capabilities::graphs}) {
  Device& device = context.device();
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  ASSERT_VALUE(const Graph graph, Graph::Create(context.shared()));
  ASSERT_VALUE(const Graph other, Graph::Create(context.shared()));
  ASSERT_VALUE(const NodeHandle foreign, device.AddNode(other.get(), {}, EmptyNode{}));
  const Fill good = FillWord(memory.address(), 1);
  EXPECT_CODE(kInvalidArgument, device.AddNode(GraphHandle{}, {}, good));
  EXPECT_CODE(kInvalidArgument, device.AddNode(graph.get(), {{NodeHandle{}}}, good));
  EXPECT_CODE(kInvalidArgument, device.AddNode(graph.get(), {{foreign}}, good));
  EXPECT_CODE(kInvalidArgument, device.AddNode(graph.get(), {}, ChildGraph{}));
  EXPECT_CODE(kInvalidArgument, device.AddNode(graph.get(), {}, KernelLaunch{}));
  EXPECT_CODE(kInvalidArgument, device.AddNode(graph.get(), {}, HostCall{}));
  EXPECT_CODE(kInvalidArgument,
              device.AddNode(graph.get(), {},
                             Fill{.destination = memory.address(), .width = 3, .count = 1}));
  ASSERT_VALUE(const std::vector<NodeInfo> nodes, device.GetNodes(graph.get()));
  EXPECT_TRUE(nodes.empty());
}

KEEL_CONFORMANCE_CASE(Graphs, DependenciesOrderTheNodes, .needs = {&Capabilities::graphs}) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  const DeviceAddress a = memory.address();
  const DeviceAddress b = a + 4_B;
  const DeviceAddress c = a + 8_B;
  const DeviceAddress d = a + 12_B;
  // A diamond: a = 1, then b = a and c = a, then a = 9 and only then d = b.
  ASSERT_VALUE(const Graph graph, Graph::Create(context.shared()));
  ASSERT_VALUE(const NodeHandle first, device.AddNode(graph.get(), {}, FillWord(a, 1)));
  ASSERT_VALUE(const NodeHandle left,
               device.AddNode(graph.get(), {{first}}, CopyOn(device, b, a, 4_B)));
  ASSERT_VALUE(const NodeHandle right,
               device.AddNode(graph.get(), {{first}}, CopyOn(device, c, a, 4_B)));
  const std::array both = {left, right};
  ASSERT_VALUE(const NodeHandle overwrite, device.AddNode(graph.get(), both, FillWord(a, 9)));
  ASSERT_OK(device.AddNode(graph.get(), {{overwrite}}, CopyOn(device, d, b, 4_B)));
  ASSERT_VALUE(const GraphExec exec, GraphExec::Create(graph));
  for (int i = 0; i < 20; ++i) {
    ASSERT_OK(context.Write(a, std::vector<std::uint32_t>(4, 0)));
    ASSERT_OK(exec.Launch(stream.get()));
    ASSERT_OK(stream.Synchronize(InTime()));
    ASSERT_VALUE(const std::vector<std::uint32_t> seen, context.Read<std::uint32_t>(a, 4));
    ASSERT_EQ(seen, (std::vector<std::uint32_t>{9, 1, 1, 1}));
  }
}

KEEL_CONFORMANCE_CASE(Graphs, RunEveryKindOfNode,
                      .needs = {&Capabilities::graphs, &Capabilities::kernels,
                                &Capabilities::host_calls, &Capabilities::value_writes,
                                &Capabilities::value_waits}) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory a, context.NewPlain(4_KiB));
  ASSERT_VALUE(const PlainMemory b, context.NewPlain(4_KiB));
  ASSERT_VALUE(const PinnedWords words, context.NewWords(1));
  ASSERT_VALUE(const KernelHandle fill, context.Kernel(kernels::kFill));
  std::atomic<int> calls{0};
  ASSERT_VALUE(const Graph child, Graph::Create(context.shared()));
  ASSERT_OK(device.AddNode(child.get(), {}, FillWord(a.address() + 4092_B, 77)));
  ASSERT_VALUE(const Graph graph, Graph::Create(context.shared()));
  NodeHandle last;
  const auto add = [&](const Command& command) -> Status {
    const std::vector<NodeHandle> before =
        last ? std::vector<NodeHandle>{last} : std::vector<NodeHandle>{};
    KEEL_ASSIGN(last, device.AddNode(graph.get(), before, command));
    return OkStatus();
  };
  {
    // Arguments are copied: they are gone when the graph runs.
    std::vector<KernelArg> args = {KernelArg::Out(a.address(), 4_KiB), KernelArg::Value(5u),
                                   KernelArg::Value<std::uint64_t>(1024)};
    ASSERT_OK(add(KernelLaunch{.kernel = fill, .args = args}));
    for (KernelArg& arg : args) arg = KernelArg::Value(0);
  }
  ASSERT_OK(add(EmptyNode{}));
  ASSERT_OK(add(FillWord(a.address(), 6)));
  ASSERT_OK(add(ChildGraph{child.get()}));
  ASSERT_OK(add(CopyOn(device, b.address(), a.address(), 4_KiB)));
  ASSERT_OK(add(HostCall{.function = [](void* data) { ++*static_cast<std::atomic<int>*>(data); },
                         .data = &calls}));
  ASSERT_OK(add(ValueWrite{.destination = words.address(), .value = 3}));
  ASSERT_OK(add(ValueWait{.source = words.address(), .value = 3}));
  ASSERT_VALUE(const GraphExec exec, GraphExec::Create(graph));
  EXPECT_EQ(calls.load(), 0);
  ASSERT_OK(exec.Launch(stream.get()));
  ASSERT_OK(stream.Synchronize(InTime()));
  EXPECT_EQ(calls.load(), 1);
  EXPECT_EQ(words.Load(), 3u);
  EXPECT_TRUE(context.HoldsWord(b.address(), 1, 6));
  EXPECT_TRUE(context.HoldsWord(b.address() + 4_B, 1022, 5));
  EXPECT_TRUE(context.HoldsWord(b.address() + 4092_B, 1, 77));
}

KEEL_CONFORMANCE_CASE(Graphs, AWaitNodeHoldsTheRestOfTheGraph,
                      .needs = {&Capabilities::graphs, &Capabilities::value_waits}) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  ASSERT_VALUE(const PinnedWords words, context.NewWords(1));
  ASSERT_OK(context.Write(memory.address(), std::vector<std::uint32_t>(1, 0)));
  ASSERT_VALUE(const Graph graph, Graph::Create(context.shared()));
  ASSERT_VALUE(const NodeHandle wait,
               device.AddNode(graph.get(), {}, ValueWait{.source = words.address(), .value = 1}));
  ASSERT_OK(device.AddNode(graph.get(), {{wait}}, FillWord(memory.address(), 4)));
  ASSERT_VALUE(const GraphExec exec, GraphExec::Create(graph));
  ASSERT_OK(exec.Launch(stream.get()));
  EXPECT_CODE(kDeadlineExceeded,
              stream.Synchronize(Deadline::After(std::chrono::milliseconds(20))));
  EXPECT_TRUE(context.HoldsWord(memory.address(), 1, 0));
  words.Store(1);
  EXPECT_OK(stream.Synchronize(InTime()));
  EXPECT_TRUE(context.HoldsWord(memory.address(), 1, 4));
}

KEEL_CONFORMANCE_CASE(Graphs, AreOneCommandOfTheStream, .needs = {&Capabilities::graphs},
                      .blocks = true) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  ASSERT_OK(context.Write(memory.address(), std::vector<std::uint32_t>(3, 0)));
  const DeviceAddress a = memory.address();
  ASSERT_VALUE(const Graph graph, Graph::Create(context.shared()));
  // Two nodes without an order between them.
  ASSERT_OK(device.AddNode(graph.get(), {}, CopyOn(device, a + 4_B, a, 4_B)));
  ASSERT_OK(device.AddNode(graph.get(), {}, CopyOn(device, a + 8_B, a, 4_B)));
  ASSERT_VALUE(const GraphExec exec, GraphExec::Create(graph));
  ASSERT_VALUE(Blocker blocker, context.Block(stream.get()));
  ASSERT_OK(device.EnqueueFill(stream.get(), FillWord(a, 1)));
  ASSERT_OK(exec.Launch(stream.get()));
  ASSERT_OK(device.EnqueueFill(stream.get(), FillWord(a, 2)));
  EXPECT_TRUE(blocker.blocked()) << "launching waited";
  blocker.Release();
  ASSERT_OK(stream.Synchronize(InTime()));
  ASSERT_VALUE(const std::vector<std::uint32_t> seen, context.Read<std::uint32_t>(a, 3));
  EXPECT_EQ(seen, (std::vector<std::uint32_t>{2, 1, 1}));
}

KEEL_CONFORMANCE_CASE(Graphs, EventsAfterALaunchStandForAllOfIt,
                      .needs = {&Capabilities::graphs, &Capabilities::value_waits}) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const Stream second, context.NewStream());
  ASSERT_VALUE(const Event event, context.NewEvent());
  ASSERT_VALUE(const PinnedWords words, context.NewWords(1));
  ASSERT_VALUE(const Graph graph, Graph::Create(context.shared()));
  ASSERT_OK(device.AddNode(graph.get(), {}, EmptyNode{}));
  ASSERT_OK(device.AddNode(graph.get(), {}, ValueWait{.source = words.address(), .value = 1}));
  ASSERT_VALUE(const GraphExec exec, GraphExec::Create(graph));
  ASSERT_OK(exec.Launch(stream.get()));
  ASSERT_OK(event.Record(stream.get()));
  ASSERT_OK(device.WaitEvent(second.get(), event.get()));
  EXPECT_CODE(kDeadlineExceeded,
              second.Synchronize(Deadline::After(std::chrono::milliseconds(20))));
  ASSERT_VALUE(const Completion completion, event.Query());
  EXPECT_EQ(completion, Completion::kPending);
  words.Store(1);
  EXPECT_OK(second.Synchronize(InTime()));
  EXPECT_OK(event.Synchronize(InTime()));
}

struct Overlap {
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  std::atomic<int> runs{0};
};
void Enter(void* data) {
  auto* overlap = static_cast<Overlap*>(data);
  const int inside = overlap->inside.fetch_add(1) + 1;
  int most = overlap->most.load();
  while (inside > most && !overlap->most.compare_exchange_weak(most, inside)) {
  }
  // Long enough for another launch to come in, if it could.
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
}
void Leave(void* data) {
  auto* overlap = static_cast<Overlap*>(data);
  overlap->inside.fetch_sub(1);
  overlap->runs.fetch_add(1);
}

KEEL_CONFORMANCE_CASE(Graphs, LaunchesOfOneExecDoNotOverlap,
                      .needs = {&Capabilities::graphs, &Capabilities::host_calls}) {
  Device& device = context.device();
  Overlap overlap;
  ASSERT_VALUE(const Graph graph, Graph::Create(context.shared()));
  ASSERT_VALUE(const NodeHandle enter,
               device.AddNode(graph.get(), {}, HostCall{.function = &Enter, .data = &overlap}));
  ASSERT_OK(device.AddNode(graph.get(), {{enter}}, HostCall{.function = &Leave, .data = &overlap}));
  ASSERT_VALUE(const GraphExec exec, GraphExec::Create(graph));
  std::vector<Stream> streams;
  for (int i = 0; i < 4; ++i) {
    ASSERT_VALUE(Stream stream, context.NewStream());
    streams.push_back(std::move(stream));
  }
  for (int round = 0; round < 4; ++round) {
    for (const Stream& stream : streams) ASSERT_OK(exec.Launch(stream.get()));
  }
  for (const Stream& stream : streams) ASSERT_OK(stream.Synchronize(InTime()));
  EXPECT_EQ(overlap.runs.load(), 16);
  EXPECT_EQ(overlap.most.load(), 1);
}

KEEL_CONFORMANCE_CASE(Graphs, DifferentExecsRunSideBySide,
                      .needs = {&Capabilities::graphs, &Capabilities::value_waits}) {
  Device& device = context.device();
  ASSERT_VALUE(const PinnedWords words, context.NewWords(1));
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  ASSERT_VALUE(const Graph held, Graph::Create(context.shared()));
  ASSERT_OK(device.AddNode(held.get(), {}, ValueWait{.source = words.address(), .value = 1}));
  ASSERT_VALUE(const Graph free, Graph::Create(context.shared()));
  ASSERT_OK(device.AddNode(free.get(), {}, FillWord(memory.address(), 1)));
  ASSERT_VALUE(const GraphExec held_exec, GraphExec::Create(held));
  ASSERT_VALUE(const GraphExec free_exec, GraphExec::Create(free));
  ASSERT_VALUE(const Stream a, context.NewStream());
  ASSERT_VALUE(const Stream b, context.NewStream());
  ASSERT_OK(held_exec.Launch(a.get()));
  ASSERT_OK(free_exec.Launch(b.get()));
  EXPECT_OK(b.Synchronize(InTime()));
  ASSERT_VALUE(const Completion completion, a.Query());
  EXPECT_EQ(completion, Completion::kPending);
  words.Store(1);
  EXPECT_OK(a.Synchronize(InTime()));
}

KEEL_CONFORMANCE_CASE(Graphs, ExecsOutliveTheirGraph, .needs = {&Capabilities::graphs}) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  ASSERT_OK(context.Write(memory.address(), std::vector<std::uint32_t>(2, 0)));
  ASSERT_VALUE(Graph graph, Graph::Create(context.shared()));
  ASSERT_VALUE(const NodeHandle node,
               device.AddNode(graph.get(), {}, FillWord(memory.address(), 5)));
  ASSERT_VALUE(const GraphExec exec, GraphExec::Create(graph));
  // A change of the graph is not one of what was instantiated.
  ASSERT_OK(device.AddNode(graph.get(), {{node}}, FillWord(memory.address() + 4_B, 6)));
  ASSERT_OK(graph.Close());
  ASSERT_OK(exec.Launch(stream.get()));
  ASSERT_OK(stream.Synchronize(InTime()));
  ASSERT_VALUE(const std::vector<std::uint32_t> seen,
               context.Read<std::uint32_t>(memory.address(), 2));
  EXPECT_EQ(seen, (std::vector<std::uint32_t>{5, 0}));
}

KEEL_CONFORMANCE_CASE(Graphs, QueuedLaunchesOutliveTheirExec, .needs = {&Capabilities::graphs},
                      .blocks = true) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  ASSERT_OK(context.Write(memory.address(), std::vector<std::uint32_t>(1, 0)));
  ASSERT_VALUE(Graph graph, Graph::Create(context.shared()));
  ASSERT_OK(device.AddNode(graph.get(), {}, FillWord(memory.address(), 5)));
  ASSERT_VALUE(GraphExec exec, GraphExec::Create(graph));
  ASSERT_VALUE(Blocker blocker, context.Block(stream.get()));
  ASSERT_OK(exec.Launch(stream.get()));
  ASSERT_OK(exec.Launch(stream.get()));
  EXPECT_OK(exec.Close());
  EXPECT_OK(graph.Close());
  EXPECT_TRUE(blocker.blocked()) << "destroying waited";
  blocker.Release();
  ASSERT_OK(stream.Synchronize(InTime()));
  EXPECT_TRUE(context.HoldsWord(memory.address(), 1, 5));
}

KEEL_CONFORMANCE_CASE(Graphs, AChildIsCopiedAsItIs, .needs = {&Capabilities::graphs}) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  ASSERT_OK(context.Write(memory.address(), std::vector<std::uint32_t>(3, 0)));
  ASSERT_VALUE(Graph inner, Graph::Create(context.shared()));
  ASSERT_OK(device.AddNode(inner.get(), {}, FillWord(memory.address(), 1)));
  ASSERT_VALUE(Graph middle, Graph::Create(context.shared()));
  ASSERT_OK(device.AddNode(middle.get(), {}, ChildGraph{inner.get()}));
  ASSERT_VALUE(Graph outer, Graph::Create(context.shared()));
  ASSERT_VALUE(const NodeHandle child, device.AddNode(outer.get(), {}, ChildGraph{middle.get()}));
  ASSERT_OK(device.AddNode(outer.get(), {{child}},
                           CopyOn(device, memory.address() + 4_B, memory.address(), 4_B)));
  // Later changes stay where they were made.
  ASSERT_OK(device.AddNode(inner.get(), {}, FillWord(memory.address() + 8_B, 9)));
  ASSERT_OK(inner.Close());
  ASSERT_OK(middle.Close());
  ASSERT_VALUE(const GraphExec exec, GraphExec::Create(outer));
  ASSERT_OK(exec.Launch(stream.get()));
  ASSERT_OK(stream.Synchronize(InTime()));
  ASSERT_VALUE(const std::vector<std::uint32_t> seen,
               context.Read<std::uint32_t>(memory.address(), 3));
  EXPECT_EQ(seen, (std::vector<std::uint32_t>{1, 1, 0}));
}

// The claim on which steady addresses rest: a recorded graph runs on what the address means when
// it is launched, and needs no update for it.
KEEL_CONFORMANCE_CASE(Graphs, RunOnWhatTheAddressMeansNow,
                      .needs = {&Capabilities::graphs, &Capabilities::virtual_memory,
                                &Capabilities::kernels}) {
  Device& device = context.device();
  const Bytes granule = context.granule();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(AddressRange range, AddressRange::Create(context.shared(), granule));
  ASSERT_VALUE(AddressRange look, AddressRange::Create(context.shared(), granule * 3));
  const std::array grants = {AccessGrant{device.id(), Access::kReadWrite}};
  std::vector<PhysicalMemory> memories;
  std::vector<Mapping> aliases;  // where the bytes are seen when the range means something else
  for (std::uint64_t i = 0; i < 3; ++i) {
    ASSERT_VALUE(PhysicalMemory memory, PhysicalMemory::Create(context.shared(), granule));
    ASSERT_VALUE(Mapping alias, Mapping::Create(look, Offset(i * granule.count()), memory, grants));
    ASSERT_OK(context.Write(alias.address(), std::vector<std::uint32_t>(1024, 0)));
    memories.push_back(std::move(memory));
    aliases.push_back(std::move(alias));
  }
  ASSERT_VALUE(Mapping mapping, Mapping::Create(range, Offset(0), memories[0], grants));
  // Recorded with a kernel, a fill and a copy.
  ASSERT_VALUE(Capture capture, Capture::Begin(context.shared(), stream.get()));
  ASSERT_OK(context.LaunchFill(stream.get(), range.address(), 1, 1024));
  ASSERT_OK(device.EnqueueFill(
      stream.get(),
      {.destination = range.address() + 1_KiB, .value = 2, .width = 4, .count = 256}));
  ASSERT_OK(device.EnqueueCopy(
      stream.get(), CopyOn(device, range.address() + 2_KiB, range.address() + 1_KiB, 1_KiB)));
  ASSERT_VALUE(const Graph graph, capture.End());
  ASSERT_VALUE(const GraphExec exec, GraphExec::Create(graph));
  for (std::size_t i = 0; i < 3; ++i) {
    SCOPED_TRACE(i);
    ASSERT_OK(mapping.Close());
    ASSERT_VALUE(mapping, Mapping::Create(range, Offset(0), memories[i], grants));
    ASSERT_OK(exec.Launch(stream.get()));
    ASSERT_OK(stream.Synchronize(InTime()));
    for (std::size_t other = 0; other < 3; ++other) {
      const DeviceAddress at = aliases[other].address();
      if (other <= i) {
        EXPECT_TRUE(context.HoldsWord(at, 256, 1));
        EXPECT_TRUE(context.HoldsWord(at + 1_KiB, 512, 2));
        EXPECT_TRUE(context.HoldsWord(at + 3_KiB, 256, 1));
      } else {
        EXPECT_TRUE(context.HoldsWord(at, 1024, 0));
      }
    }
  }
  ASSERT_OK(mapping.Close());
}

KEEL_CONFORMANCE_CASE(Graphs, CopyBetweenDevices, .devices = 2, .needs = {&Capabilities::graphs}) {
  Device& first = context.device(0);
  Device& second = context.device(1);
  ASSERT_VALUE(const Stream stream, context.NewStream(0));
  ASSERT_VALUE(const PlainMemory a, context.NewPlain(64_KiB, 0));
  ASSERT_VALUE(const PlainMemory b, context.NewPlain(64_KiB, 1));
  const std::vector<std::byte> bytes = Pattern(65536, 12);
  ASSERT_OK(context.WriteBytes(b.address(), bytes, 1));
  ASSERT_VALUE(const Graph graph, Graph::Create(context.shared(0)));
  ASSERT_OK(first.AddNode(graph.get(), {},
                          Copy{.destination = Location::On(first.id(), a.address()),
                               .source = Location::On(second.id(), b.address()),
                               .size = 64_KiB}));
  ASSERT_VALUE(const GraphExec exec, GraphExec::Create(graph));
  ASSERT_OK(exec.Launch(stream.get()));
  ASSERT_OK(stream.Synchronize(InTime()));
  EXPECT_TRUE(context.HoldsBytes(a.address(), bytes, 0));
}

KEEL_CONFORMANCE_CASE(Graphs, GivenBackHandlesAreRefused, .needs = {&Capabilities::graphs},
                      .stale_handles = true) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const GraphHandle graph, device.CreateGraph());
  ASSERT_VALUE(const NodeHandle node, device.AddNode(graph, {}, EmptyNode{}));
  ASSERT_VALUE(const ExecHandle exec, device.Instantiate(graph));
  ASSERT_OK(device.DestroyExec(exec));
  EXPECT_CODE(kInvalidArgument, device.DestroyExec(exec));
  EXPECT_CODE(kInvalidArgument, device.LaunchGraph(exec, stream.get()));
  EXPECT_CODE(kInvalidArgument, device.UpdateExec(exec, graph));
  EXPECT_CODE(kInvalidArgument, device.SetNodeParams(exec, node, EmptyNode{}));
  ASSERT_OK(device.DestroyGraph(graph));
  EXPECT_CODE(kInvalidArgument, device.DestroyGraph(graph));
  EXPECT_CODE(kInvalidArgument, device.GetNodes(graph));
  EXPECT_CODE(kInvalidArgument, device.AddNode(graph, {}, EmptyNode{}));
  EXPECT_CODE(kInvalidArgument, device.Instantiate(graph));
}

}  // namespace
}  // namespace keel::hal::conformance
