// Kernel arguments that are large values: they are read where a command is given, wherever that is,
// and refused where they are too large.

#include <algorithm>
#include <array>

#include "hal/conformance/context.h"

namespace keel::hal::conformance {
namespace {

constexpr std::size_t kWords = kernels::kStoredWords;
constexpr Bytes kSize{kWords * sizeof(std::uint64_t)};

KernelArg Word(std::uint64_t value) { return KernelArg::Value(value); }

// A launch of the kernel that stores its first argument, and the bytes that this is.
class StoreLaunch {
 public:
  StoreLaunch(KernelHandle kernel, DeviceAddress to, std::uint32_t seed)
      : want_(Pattern(kSize.count(), seed)), value_(want_) {
    arguments_ = {KernelArg::ValueAt(value_.data(), value_.size()), KernelArg::Out(to, kSize),
                  Word(kWords)};
    launch_ = {
        .kernel = kernel, .dims = {.grid = {2, 1, 1}, .block = {64, 1, 1}}, .args = arguments_};
  }
  StoreLaunch(const StoreLaunch&) = delete;
  StoreLaunch& operator=(const StoreLaunch&) = delete;

  const KernelLaunch& get() const { return launch_; }
  const std::vector<std::byte>& want() const { return want_; }
  // What a command keeps of the value must be its own.
  void Spoil() { value_.assign(value_.size(), std::byte{0xee}); }

 private:
  const std::vector<std::byte> want_;
  std::vector<std::byte> value_;
  std::array<KernelArg, 3> arguments_;
  KernelLaunch launch_;
};

// Of a launch that is refused.
std::array<KernelArg, 3> ArgumentsOf(const std::vector<std::byte>& value, DeviceAddress to) {
  return {KernelArg::ValueAt(value.data(), value.size()), KernelArg::Out(to, kSize), Word(kWords)};
}

KEEL_CONFORMANCE_CASE(LargeValues, OfALaunch, .needs = {&Capabilities::kernels}, .blocks = true) {
  ASSERT_VALUE(const KernelHandle kernel, context.Kernel(kernels::kStore));
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(kSize));
  StoreLaunch launch(kernel, memory.address(), 1);
  {
    ASSERT_VALUE(Blocker blocker, context.Block(stream.get()));
    ASSERT_OK(context.device().LaunchKernel(stream.get(), launch.get()));
    launch.Spoil();
    EXPECT_TRUE(blocker.blocked());
  }
  ASSERT_OK(stream.Synchronize(InTime()));
  EXPECT_TRUE(context.HoldsBytes(memory.address(), launch.want()));
}

KEEL_CONFORMANCE_CASE(LargeValues, OfACapture,
                      .needs = {&Capabilities::kernels, &Capabilities::graphs}) {
  ASSERT_VALUE(const KernelHandle kernel, context.Kernel(kernels::kStore));
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(kSize));
  StoreLaunch launch(kernel, memory.address(), 2);
  ASSERT_VALUE(Capture capture, Capture::Begin(context.shared(), stream.get()));
  ASSERT_OK(context.device().LaunchKernel(stream.get(), launch.get()));
  ASSERT_VALUE(const Graph graph, capture.End());
  launch.Spoil();
  ASSERT_VALUE(const GraphExec exec, GraphExec::Create(graph));
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK(context.WriteBytes(memory.address(), std::vector<std::byte>(kSize.count())));
    ASSERT_OK(exec.Launch(stream.get()));
    ASSERT_OK(stream.Synchronize(InTime()));
    EXPECT_TRUE(context.HoldsBytes(memory.address(), launch.want()));
  }
}

KEEL_CONFORMANCE_CASE(LargeValues, OfANode,
                      .needs = {&Capabilities::kernels, &Capabilities::graphs}) {
  Device& device = context.device();
  ASSERT_VALUE(const KernelHandle kernel, context.Kernel(kernels::kStore));
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(kSize));
  StoreLaunch launch(kernel, memory.address(), 3);
  ASSERT_VALUE(Graph graph, Graph::Create(context.shared()));
  ASSERT_OK(StatusOf(device.AddNode(graph.get(), {}, launch.get())));
  launch.Spoil();
  ASSERT_VALUE(Graph outer, Graph::Create(context.shared()));
  ASSERT_OK(StatusOf(device.AddNode(outer.get(), {}, ChildGraph{graph.get()})));
  for (const Graph* each : {&graph, &outer}) {
    ASSERT_OK(context.WriteBytes(memory.address(), std::vector<std::byte>(kSize.count())));
    ASSERT_VALUE(const GraphExec exec, GraphExec::Create(*each));
    ASSERT_OK(exec.Launch(stream.get()));
    ASSERT_OK(stream.Synchronize(InTime()));
    EXPECT_TRUE(context.HoldsBytes(memory.address(), launch.want()));
  }
}

KEEL_CONFORMANCE_CASE(LargeValues, OfANodeThatIsRewritten,
                      .needs = {&Capabilities::kernels, &Capabilities::node_update},
                      .blocks = true) {
  Device& device = context.device();
  ASSERT_VALUE(const KernelHandle kernel, context.Kernel(kernels::kStore));
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory first, context.NewPlain(kSize));
  ASSERT_VALUE(const PlainMemory second, context.NewPlain(kSize));
  StoreLaunch before(kernel, first.address(), 4);
  StoreLaunch after(kernel, second.address(), 5);
  ASSERT_VALUE(Graph graph, Graph::Create(context.shared()));
  ASSERT_VALUE(const NodeHandle node, device.AddNode(graph.get(), {}, before.get()));
  ASSERT_VALUE(const GraphExec exec, GraphExec::Create(graph));
  before.Spoil();
  {
    ASSERT_VALUE(Blocker blocker, context.Block(stream.get()));
    ASSERT_OK(exec.Launch(stream.get()));
    ASSERT_OK(device.SetNodeParams(exec.get(), node, after.get()));
    after.Spoil();
    ASSERT_OK(exec.Launch(stream.get()));
    EXPECT_TRUE(blocker.blocked()) << "setting parameters waited";
  }
  ASSERT_OK(stream.Synchronize(InTime()));
  EXPECT_TRUE(context.HoldsBytes(first.address(), before.want())) << "the launch that was queued";
  EXPECT_TRUE(context.HoldsBytes(second.address(), after.want()));
}

KEEL_CONFORMANCE_CASE(LargeValues, TooLargeAreRefused, .needs = {&Capabilities::kernels}) {
  Device& device = context.device();
  ASSERT_VALUE(const KernelHandle kernel, context.Kernel(kernels::kStore));
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(kSize));
  const StoreLaunch fits(kernel, memory.address(), 6);
  ASSERT_OK(device.LaunchKernel(stream.get(), fits.get()));
  for (const std::size_t size : {kSize.count() + 1, kSize.count() + 8, std::size_t{1} << 20}) {
    const std::vector<std::byte> value(size);
    const std::array arguments = ArgumentsOf(value, memory.address());
    const KernelLaunch launch{.kernel = kernel, .args = arguments};
    const Status status = device.LaunchKernel(stream.get(), launch);
    EXPECT_CODE(kInvalidArgument, status);
    EXPECT_NE(std::string(status.message()).find("may take 4096"), std::string::npos)
        << status.ToString();
  }
  const std::array nowhere = {KernelArg::ValueAt(nullptr, kSize.count()),
                              KernelArg::Out(memory.address(), kSize), Word(kWords)};
  EXPECT_CODE(kInvalidArgument,
              device.LaunchKernel(stream.get(), {.kernel = kernel, .args = nowhere}));
  ASSERT_OK(stream.Synchronize(InTime()));
  EXPECT_TRUE(context.HoldsBytes(memory.address(), fits.want()));
}

KEEL_CONFORMANCE_CASE(LargeValues, TooLargeChangeNoGraph,
                      .needs = {&Capabilities::kernels, &Capabilities::node_update}) {
  Device& device = context.device();
  ASSERT_VALUE(const KernelHandle kernel, context.Kernel(kernels::kStore));
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(kSize));
  const StoreLaunch fits(kernel, memory.address(), 7);
  const std::vector<std::byte> value(kSize.count() + 8);
  const std::array arguments = ArgumentsOf(value, memory.address());
  const KernelLaunch large{.kernel = kernel, .args = arguments};
  ASSERT_VALUE(Graph graph, Graph::Create(context.shared()));
  ASSERT_VALUE(const NodeHandle node, device.AddNode(graph.get(), {}, fits.get()));
  EXPECT_CODE(kInvalidArgument, device.AddNode(graph.get(), {}, large));
  ASSERT_VALUE(const std::vector<NodeInfo> nodes, device.GetNodes(graph.get()));
  EXPECT_EQ(nodes.size(), 1u);
  ASSERT_VALUE(const GraphExec exec, GraphExec::Create(graph));
  EXPECT_CODE(kInvalidArgument, device.SetNodeParams(exec.get(), node, large));
  ASSERT_OK(exec.Launch(stream.get()));
  ASSERT_OK(stream.Synchronize(InTime()));
  EXPECT_TRUE(context.HoldsBytes(memory.address(), fits.want()));
}

// Rows as a value: small ones several to a block, whatever their size and alignment, and larger
// ones in pieces; and the rows of the copies out are left near.
KEEL_CONFORMANCE_CASE(LargeValues, AreTheRowsOfCopiesIn, .needs = {&Capabilities::kernels}) {
  struct Rows {
    std::uint64_t row[kernels::kMostRows][2] = {};
    std::uint32_t size[kernels::kMostRows] = {};
  };
  constexpr std::uint64_t kRoom = 40'000;
  constexpr std::uint64_t kFirst = 32'768;
  // With an offset of the source. The third is left out.
  struct Row {
    std::uint64_t size, offset;
  };
  constexpr std::array kSmall = {Row{4096, 0}, Row{4, 4},     Row{64, 0},  Row{1, 3},
                                 Row{100, 4},  Row{4096, 16}, Row{999, 1}, Row{16, 0},
                                 Row{4096, 0}, Row{48, 8},    Row{2, 0}};
  constexpr std::uint64_t kCount = kSmall.size();
  constexpr std::uint64_t kOut = 5;
  Device& device = context.device();
  ASSERT_VALUE(const KernelHandle in_rows, context.Kernel(kernels::kCopyInRows));
  ASSERT_VALUE(const KernelHandle in_small, context.Kernel(kernels::kCopyInSmall));
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory from, context.NewPlain(Bytes(kCount * kRoom)));
  ASSERT_VALUE(const PlainMemory to, context.NewPlain(Bytes(kCount * kRoom)));
  ASSERT_VALUE(const PlainMemory near, context.NewPlain(Bytes(kOut * 16)));
  ASSERT_VALUE(const PlainMemory pieces, context.NewPlain(Bytes(2 * kCount * 24)));
  const std::vector<std::byte> bytes = Pattern(kCount * kRoom, 11);
  ASSERT_OK(context.WriteBytes(from.address(), bytes));
  // What the first pieces are stands in the value only.
  std::vector<std::uint64_t> piece(3 * kCount, ~std::uint64_t{0});
  for (std::uint64_t row = 0; row < kCount; ++row) {
    piece.insert(piece.end(), {row, kFirst, kRoom - 16 - kFirst});
  }
  ASSERT_OK(context.Write<std::uint64_t>(pieces.address(), piece));
  for (const bool small : {true, false}) {
    // A block of 512 threads is two teams.
    for (const auto& [blocks, threads] :
         {std::pair{1u, 64u}, {2u, 64u}, {3u, 256u}, {22u, 64u}, {1u, 512u}, {2u, 512u}}) {
      SCOPED_TRACE(testing::Message() << (small ? "small" : "in pieces") << ", blocks: " << blocks
                                      << " of " << threads << " threads");
      ASSERT_OK(context.WriteBytes(to.address(), std::vector<std::byte>(kCount * kRoom)));
      std::vector<std::byte> want(kCount * kRoom);
      Rows rows;
      for (std::uint64_t i = 0; i < kCount; ++i) {
        const std::uint64_t begin = i * kRoom;
        const std::uint64_t size = small ? kSmall[i].size : kRoom - 16;
        rows.row[i][0] = i == 2 ? 0 : to.address().value() + begin;
        rows.row[i][1] = from.address().value() + begin + kSmall[i].offset;
        rows.size[i] = static_cast<std::uint32_t>(std::min(size, kFirst));
        if (i != 2) std::memcpy(&want[begin], &bytes[begin + kSmall[i].offset], size);
      }
      std::vector<std::uint64_t> want_near;
      for (std::uint64_t i = 0; i < kOut; ++i) {
        for (std::uint64_t& word : rows.row[kCount + i])
          want_near.push_back(word = 100 * i + blocks + threads);
      }
      const KernelArg value = KernelArg::ValueAt(&rows, sizeof(rows));
      const KernelArg left_near = KernelArg::Out(near.address(), Bytes(kOut * 16));
      const std::array in_pieces = {value,
                                    KernelArg::In(pieces.address(), Bytes(2 * kCount * 24)),
                                    Word(2 * kCount),
                                    Word(kCount),
                                    left_near,
                                    Word(kOut)};
      const std::array together = {value, Word(kCount), left_near, Word(kOut)};
      KernelLaunch launch{.dims = {.grid = {blocks, 1, 1}, .block = {threads, 1, 1}}};
      launch.kernel = small ? in_small : in_rows;
      launch.args = small ? std::span<const KernelArg>(together) : in_pieces;
      ASSERT_OK(device.LaunchKernel(stream.get(), launch));
      ASSERT_OK(stream.Synchronize(InTime()));
      EXPECT_TRUE(context.HoldsBytes(to.address(), want));
      ASSERT_VALUE(const std::vector<std::uint64_t> got,
                   context.Read<std::uint64_t>(near.address(), 2 * kOut));
      EXPECT_EQ(got, want_near);
    }
  }
}

}  // namespace
}  // namespace keel::hal::conformance
