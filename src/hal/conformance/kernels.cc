// Modules, kernels, and what the standard kernels compute.

#include <array>
#include <cmath>
#include <numeric>

#include "hal/conformance/context.h"

namespace keel::hal::conformance {
namespace {

constexpr std::array kStandard = {
    kernels::kCopyInRows, kernels::kCopyInSmall, kernels::kCopyOutSmall, kernels::kFill,
    kernels::kAdd,        kernels::kAxpy,        kernels::kReduce,       kernels::kCompare,
    kernels::kSpin,       kernels::kStore,       kernels::kCopyTable,    kernels::kCopyIn,
    kernels::kCopyOut,    kernels::kMark,        kernels::kMatMul,       kernels::kRelu,
    kernels::kReluGrad,   kernels::kMse};

// Sums of these depend on the order and on fused operations in their last bits.
std::vector<float> Rough(std::size_t count, std::uint32_t seed) {
  std::vector<float> values(count);
  for (float& value : values) {
    seed = seed * 1664525u + 1013904223u;
    value = static_cast<float>(static_cast<std::int32_t>(seed)) / 1.9e9f;
  }
  return values;
}

// A product that is rounded before anything is added to it, whatever the compiler does.
float Rounded(float a, float b) {
  const volatile float product = a * b;
  return product;
}

KernelArg Count(std::uint64_t n) { return KernelArg::Value(n); }

KEEL_CONFORMANCE_CASE(Kernels, TheStandardOnesAreThere, .needs = {&Capabilities::kernels}) {
  ASSERT_VALUE(Module module, Module::LoadStandard(context.shared()));
  for (const std::string_view name : kStandard) {
    ASSERT_VALUE(const KernelHandle kernel, module.Find(name));
    EXPECT_TRUE(kernel) << name;
    ASSERT_VALUE(const KernelHandle again, module.Find(name));
    EXPECT_EQ(kernel, again) << name;
  }
  EXPECT_OK(module.Close());
}

KEEL_CONFORMANCE_CASE(Kernels, OneThatIsNotThereIsNamed, .needs = {&Capabilities::kernels}) {
  ASSERT_VALUE(Module module, Module::LoadStandard(context.shared()));
  for (const std::string name : {"no_such_kernel", "keel_fil", "keel_fillx"}) {
    const Status status = StatusOf(module.Find(name));
    EXPECT_CODE(kNotFound, status);
    EXPECT_NE(std::string(status.message()).find(name), std::string::npos) << status.ToString();
  }
  EXPECT_FALSE(module.Find("").ok());
  EXPECT_CODE(kInvalidArgument, context.device().FindKernel(ModuleHandle{}, kernels::kFill));
}

KEEL_CONFORMANCE_CASE(Kernels, WhatIsNoModuleIsNotLoaded, .needs = {&Capabilities::kernels}) {
  Device& device = context.device();
  EXPECT_FALSE(device.LoadModule(ModuleSource::Image({})).ok());
  const std::vector<std::byte> junk = Pattern(4096, 1);
  EXPECT_FALSE(device.LoadModule(ModuleSource::Image(junk)).ok());
  EXPECT_CODE(kNotFound, device.LoadModule(ModuleSource::File("/no/such/module")));
  EXPECT_FALSE(device.LoadModule(ModuleSource::File("/dev/null")).ok());
  EXPECT_FALSE(device.LoadModule(ModuleSource::Registered("no such set")).ok());
  EXPECT_CODE(kInvalidArgument, device.UnloadModule(ModuleHandle{}));
  EXPECT_TRUE(context.Works());
}

KEEL_CONFORMANCE_CASE(Kernels, AModuleCanBeLoadedTwice, .needs = {&Capabilities::kernels}) {
  Device& device = context.device();
  ASSERT_VALUE(Module first, Module::LoadStandard(context.shared()));
  ASSERT_VALUE(Module second, Module::LoadStandard(context.shared()));
  ASSERT_OK(first.Close());
  ASSERT_VALUE(const KernelHandle fill, second.Find(kernels::kFill));
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  const std::array args = {KernelArg::Out(memory.address(), 4_KiB), KernelArg::Value(9u),
                           Count(1024)};
  ASSERT_OK(device.LaunchKernel(stream.get(), {.kernel = fill, .args = args}));
  ASSERT_OK(stream.Synchronize(InTime()));
  EXPECT_TRUE(context.HoldsWord(memory.address(), 1024, 9));
}

KEEL_CONFORMANCE_CASE(Kernels, AreGoneWithTheirModule, .needs = {&Capabilities::kernels},
                      .stale_handles = true) {
  Device& device = context.device();
  ASSERT_VALUE(const ModuleSource source, device.StandardKernels());
  ASSERT_VALUE(const ModuleHandle module, device.LoadModule(source));
  ASSERT_VALUE(const KernelHandle fill, device.FindKernel(module, kernels::kFill));
  ASSERT_OK(device.UnloadModule(module));
  EXPECT_CODE(kInvalidArgument, device.UnloadModule(module));
  EXPECT_CODE(kInvalidArgument, device.FindKernel(module, kernels::kFill));
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  const std::array args = {KernelArg::Out(memory.address(), 4_KiB), KernelArg::Value(9u),
                           Count(1024)};
  EXPECT_CODE(kInvalidArgument, device.LaunchKernel(stream.get(), {.kernel = fill, .args = args}));
}

KEEL_CONFORMANCE_CASE(Kernels, AnyGridCoversEverything, .needs = {&Capabilities::kernels}) {
  constexpr std::uint64_t kWords = 10007;
  Device& device = context.device();
  ASSERT_VALUE(const KernelHandle fill, context.Kernel(kernels::kFill));
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(Bytes(kWords * 4 + 4)));
  std::uint32_t value = 0;
  for (const LaunchDims& dims : {LaunchDims{}, LaunchDims{.grid = {7, 1, 1}, .block = {32, 1, 1}},
                                 LaunchDims{.grid = {64, 1, 1}, .block = {256, 1, 1}},
                                 LaunchDims{.grid = {1000, 1, 1}, .block = {64, 1, 1}}}) {
    SCOPED_TRACE(testing::Message() << dims.grid[0] << " x " << dims.block[0]);
    ++value;
    ASSERT_OK(context.Write(memory.address(), std::vector<std::uint32_t>(kWords + 1, 0)));
    const std::array args = {KernelArg::Out(memory.address(), Bytes(kWords * 4)),
                             KernelArg::Value(value), Count(kWords)};
    ASSERT_OK(device.LaunchKernel(stream.get(), {.kernel = fill, .dims = dims, .args = args}));
    ASSERT_OK(stream.Synchronize(InTime()));
    EXPECT_TRUE(context.HoldsWord(memory.address(), kWords, value));
    EXPECT_TRUE(context.HoldsWord(memory.address() + Bytes(kWords * 4), 1, 0));
  }
}

KEEL_CONFORMANCE_CASE(Kernels, EmptyGridsAreRefused, .needs = {&Capabilities::kernels}) {
  ASSERT_VALUE(const KernelHandle fill, context.Kernel(kernels::kFill));
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  const std::array args = {KernelArg::Out(memory.address(), 4_KiB), KernelArg::Value(1u),
                           Count(1024)};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    LaunchDims dims;
    dims.grid[axis] = 0;
    EXPECT_CODE(kInvalidArgument, context.device().LaunchKernel(
                                      stream.get(), {.kernel = fill, .dims = dims, .args = args}));
    dims = {};
    dims.block[axis] = 0;
    EXPECT_CODE(kInvalidArgument, context.device().LaunchKernel(
                                      stream.get(), {.kernel = fill, .dims = dims, .args = args}));
  }
  EXPECT_CODE(kInvalidArgument,
              context.device().LaunchKernel(stream.get(), {.kernel = {}, .args = args}));
  EXPECT_CODE(kInvalidArgument,
              context.device().LaunchKernel(StreamHandle{}, {.kernel = fill, .args = args}));
  EXPECT_TRUE(context.Works());
}

KEEL_CONFORMANCE_CASE(Kernels, ArgumentsMustFit, .needs = {&Capabilities::kernels},
                      .kernel_arguments = true) {
  ASSERT_VALUE(const KernelHandle fill, context.Kernel(kernels::kFill));
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  const KernelArg out = KernelArg::Out(memory.address(), 4_KiB);
  const KernelArg value = KernelArg::Value(std::uint32_t{1});
  const auto launch = [&](std::vector<KernelArg> args) {
    return context.device().LaunchKernel(stream.get(), {.kernel = fill, .args = args});
  };
  EXPECT_CODE(kInvalidArgument, launch({}));
  EXPECT_CODE(kInvalidArgument, launch({out, value}));
  EXPECT_CODE(kInvalidArgument, launch({out, value, Count(1), Count(1)}));
  EXPECT_CODE(kInvalidArgument, launch({out, Count(1), Count(1)}));
  EXPECT_CODE(kInvalidArgument, launch({out, value, value}));
  EXPECT_CODE(kInvalidArgument, launch({value, out, Count(1)}));
  EXPECT_OK(launch({out, value, Count(1)}));
  EXPECT_OK(stream.Synchronize(InTime()));
}

KEEL_CONFORMANCE_CASE(Kernels, ArgumentsAreReadBeforeTheLaunchReturns,
                      .needs = {&Capabilities::kernels}, .blocks = true) {
  ASSERT_VALUE(const KernelHandle fill, context.Kernel(kernels::kFill));
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  ASSERT_VALUE(Blocker blocker, context.Block(stream.get()));
  {
    std::vector<KernelArg> args = {KernelArg::Out(memory.address(), 4_KiB), KernelArg::Value(21u),
                                   Count(1024)};
    ASSERT_OK(context.device().LaunchKernel(stream.get(), {.kernel = fill, .args = args}));
    for (KernelArg& arg : args) arg = KernelArg::Value<std::uint64_t>(0);
  }
  ASSERT_TRUE(blocker.blocked());
  blocker.Release();
  ASSERT_OK(stream.Synchronize(InTime()));
  EXPECT_TRUE(context.HoldsWord(memory.address(), 1024, 21));
}

KEEL_CONFORMANCE_CASE(Kernels, AddAndAxpyCompute, .needs = {&Capabilities::kernels}) {
  constexpr std::uint64_t kCount = 5000;
  Device& device = context.device();
  ASSERT_VALUE(const KernelHandle add, context.Kernel(kernels::kAdd));
  ASSERT_VALUE(const KernelHandle axpy, context.Kernel(kernels::kAxpy));
  ASSERT_VALUE(const Stream stream, context.NewStream());
  const Bytes size(kCount * 4);
  ASSERT_VALUE(const PlainMemory a, context.NewPlain(size));
  ASSERT_VALUE(const PlainMemory b, context.NewPlain(size));
  ASSERT_VALUE(const PlainMemory c, context.NewPlain(size));
  std::vector<float> x(kCount);
  std::iota(x.begin(), x.end(), 0.0f);
  const std::vector<float> y(kCount, 0.5f);
  ASSERT_OK(context.Write(a.address(), x));
  ASSERT_OK(context.Write(b.address(), y));
  const LaunchDims dims{.grid = {4, 1, 1}, .block = {128, 1, 1}};
  const std::array add_args = {KernelArg::In(a.address(), size), KernelArg::In(b.address(), size),
                               KernelArg::Out(c.address(), size), Count(kCount)};
  ASSERT_OK(device.LaunchKernel(stream.get(), {.kernel = add, .dims = dims, .args = add_args}));
  const std::array axpy_args = {KernelArg::In(a.address(), size),
                                KernelArg::InOut(c.address(), size), KernelArg::Value(2.0f),
                                Count(kCount)};
  ASSERT_OK(device.LaunchKernel(stream.get(), {.kernel = axpy, .dims = dims, .args = axpy_args}));
  ASSERT_OK(stream.Synchronize(InTime()));
  ASSERT_VALUE(const std::vector<float> got, context.Read<float>(c.address(), kCount));
  // Small numbers and halves: exact in any order and with fused operations.
  for (std::uint64_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(got[i], static_cast<float>(i) * 3.0f + 0.5f) << i;
  }
}

KEEL_CONFORMANCE_CASE(Kernels, ReduceAndCompareAddToTheirResult,
                      .needs = {&Capabilities::kernels}) {
  constexpr std::uint64_t kCount = 30000;
  Device& device = context.device();
  ASSERT_VALUE(const KernelHandle reduce, context.Kernel(kernels::kReduce));
  ASSERT_VALUE(const KernelHandle compare, context.Kernel(kernels::kCompare));
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory a, context.NewPlain(Bytes(kCount * 4)));
  ASSERT_VALUE(const PlainMemory b, context.NewPlain(Bytes(kCount * 4)));
  ASSERT_VALUE(const PlainMemory results, context.NewPlain(16_B));
  std::vector<std::uint32_t> values(kCount);
  std::iota(values.begin(), values.end(), 4000000000u);
  std::uint64_t sum = 0;
  for (const std::uint32_t value : values) sum += value;
  ASSERT_OK(context.Write(a.address(), values));
  // 25 bytes differ.
  for (std::uint64_t i = 0; i < 25; ++i) values[i * 1000] ^= 0x0000FF00u;
  ASSERT_OK(context.Write(b.address(), values));
  ASSERT_OK(context.Write<std::uint64_t>(results.address(), {1000, 7}));
  const LaunchDims dims{.grid = {16, 1, 1}, .block = {64, 1, 1}};
  const std::array reduce_args = {KernelArg::In(a.address(), Bytes(kCount * 4)),
                                  KernelArg::InOut(results.address(), 8_B), Count(kCount)};
  ASSERT_OK(
      device.LaunchKernel(stream.get(), {.kernel = reduce, .dims = dims, .args = reduce_args}));
  const std::array compare_args = {
      KernelArg::In(a.address(), Bytes(kCount * 4)), KernelArg::In(b.address(), Bytes(kCount * 4)),
      KernelArg::InOut(results.address() + 8_B, 8_B), Count(kCount * 4)};
  ASSERT_OK(
      device.LaunchKernel(stream.get(), {.kernel = compare, .dims = dims, .args = compare_args}));
  ASSERT_OK(stream.Synchronize(InTime()));
  ASSERT_VALUE(const std::vector<std::uint64_t> got,
               context.Read<std::uint64_t>(results.address(), 2));
  EXPECT_EQ(got[0], 1000 + sum);
  EXPECT_EQ(got[1], 7u + 25u);
}

KEEL_CONFORMANCE_CASE(Kernels, CopyTableCopiesEveryPiece, .needs = {&Capabilities::kernels}) {
  Device& device = context.device();
  ASSERT_VALUE(const KernelHandle copy, context.Kernel(kernels::kCopyTable));
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory from, context.NewPlain(64_KiB));
  ASSERT_VALUE(const PlainMemory to, context.NewPlain(64_KiB));
  ASSERT_VALUE(const PlainMemory pieces, context.NewPlain(120_B));
  ASSERT_VALUE(const PlainMemory rows, context.NewPlain(64_B));
  const std::vector<std::byte> bytes = Pattern(65536, 4);
  ASSERT_OK(context.WriteBytes(from.address(), bytes));
  ASSERT_OK(context.WriteBytes(to.address(), std::vector<std::byte>(65536)));
  const auto at = [](const PlainMemory& memory, std::uint64_t offset) {
    return memory.address().value() + offset;
  };
  // Odd sizes and places, a single byte, a row that is left out, and one in two pieces.
  ASSERT_OK(context.Write<std::uint64_t>(
      rows.address(), {at(to, 0), at(from, 1000), at(to, 5001), at(from, 7), 0, 0, at(to, 20000),
                       at(from, 20000)}));
  ASSERT_OK(context.Write<std::uint64_t>(
      pieces.address(), {0, 0, 3333, 1, 0, 1, 2, 0, 100, 3, 0, 16384, 3, 16384, 23616}));
  const std::array args = {KernelArg::In(pieces.address(), 120_B),
                           KernelArg::In(rows.address(), 64_B), Count(5)};
  ASSERT_OK(device.LaunchKernel(
      stream.get(),
      {.kernel = copy, .dims = {.grid = {4, 1, 1}, .block = {32, 1, 1}}, .args = args}));
  ASSERT_OK(stream.Synchronize(InTime()));
  std::vector<std::byte> want(65536);
  std::memcpy(want.data(), bytes.data() + 1000, 3333);
  want[5001] = bytes[7];
  std::memcpy(want.data() + 20000, bytes.data() + 20000, 40000);
  EXPECT_TRUE(context.HoldsBytes(to.address(), want));
}

// In and out again, as a recorded step does it: from one place to the device's own and on to a
// third, where the second kernel finds its rows near because the first one fetched them.
KEEL_CONFORMANCE_CASE(Kernels, CopiesInFetchTheRowsOfThoseOutWhichMarkTheEnd,
                      .needs = {&Capabilities::kernels}) {
  constexpr std::uint64_t kRows = 9;
  constexpr std::uint64_t kRowBytes = 40'000;  // two pieces each
  constexpr std::uint64_t kFirst = 32'768;
  Device& device = context.device();
  ASSERT_VALUE(const KernelHandle in, context.Kernel(kernels::kCopyIn));
  ASSERT_VALUE(const KernelHandle out, context.Kernel(kernels::kCopyOut));
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory from, context.NewPlain(Bytes(kRows * kRowBytes)));
  ASSERT_VALUE(const PlainMemory home, context.NewPlain(Bytes(kRows * kRowBytes)));
  ASSERT_VALUE(const PlainMemory to, context.NewPlain(Bytes(kRows * kRowBytes)));
  ASSERT_VALUE(const PlainMemory pieces, context.NewPlain(Bytes(2 * kRows * 24)));
  ASSERT_VALUE(const PlainMemory near, context.NewPlain(Bytes(kRows * 16)));
  ASSERT_VALUE(const PlainMemory count, context.NewPlain(8_B));
  // The rows are the host's; behind them is what the device marks.
  ASSERT_VALUE(PinnedWords words, context.NewWords(4 * kRows + 1));
  std::vector<std::uint64_t> piece;
  for (std::uint64_t row = 0; row < kRows; ++row) piece.insert(piece.end(), {row, 0, kFirst});
  for (std::uint64_t row = 0; row < kRows; ++row) {
    piece.insert(piece.end(), {row, kFirst, kRowBytes - kFirst});
  }
  ASSERT_OK(context.Write<std::uint64_t>(pieces.address(), piece));
  constexpr std::uint64_t kBlocks = 2 * kRows + 1;
  ASSERT_OK(context.Write<std::uint64_t>(count.address(), {7 * kBlocks}));
  const Bytes rows_size(kRows * 16);
  const std::array in_args = {KernelArg::In(pieces.address(), Bytes(2 * kRows * 24)),
                              KernelArg::In(words.address(), rows_size),
                              Count(2 * kRows),
                              Count(kRows),
                              KernelArg::In(words.address() + rows_size, rows_size),
                              KernelArg::Out(near.address(), rows_size),
                              Count(2 * kRows)};
  const std::array out_args = {KernelArg::In(pieces.address(), Bytes(2 * kRows * 24)),
                               KernelArg::In(near.address(), rows_size),
                               Count(2 * kRows),
                               Count(kRows),
                               KernelArg::InOut(count.address(), 8_B),
                               KernelArg::Out(words.address() + rows_size + rows_size, 8_B)};
  const LaunchDims dims{.grid = {kBlocks, 1, 1}, .block = {64, 1, 1}};
  for (std::uint64_t turn = 1; turn <= 3; ++turn) {
    SCOPED_TRACE(turn);
    const std::vector<std::byte> bytes =
        Pattern(kRows * kRowBytes, static_cast<std::uint32_t>(turn));
    ASSERT_OK(context.WriteBytes(from.address(), bytes));
    ASSERT_OK(context.WriteBytes(to.address(), std::vector<std::byte>(kRows * kRowBytes)));
    for (std::uint64_t row = 0; row < kRows; ++row) {
      const std::uint64_t at = row * kRowBytes;
      words.Store(home.address().value() + at, 2 * row);
      words.Store(from.address().value() + at, 2 * row + 1);
      // One is left out.
      words.Store(row == turn ? 0 : to.address().value() + at, 2 * kRows + 2 * row);
      words.Store(home.address().value() + at, 2 * kRows + 2 * row + 1);
    }
    ASSERT_OK(device.LaunchKernel(stream.get(), {.kernel = in, .dims = dims, .args = in_args}));
    ASSERT_OK(device.LaunchKernel(stream.get(), {.kernel = out, .dims = dims, .args = out_args}));
    ASSERT_OK(stream.Synchronize(InTime()));
    EXPECT_EQ(words.Load(4 * kRows), 7 + turn) << "each step marks once";
    ASSERT_VALUE(const std::vector<std::uint64_t> counted,
                 context.Read<std::uint64_t>(count.address(), 1));
    EXPECT_EQ(counted[0], (7 + turn) * kBlocks) << "each block counts once";
    std::vector<std::byte> want = bytes;
    std::fill_n(want.begin() + static_cast<std::ptrdiff_t>(turn * kRowBytes), kRowBytes,
                std::byte{0});
    EXPECT_TRUE(context.HoldsBytes(to.address(), want));
  }
}

// Rows of every size and alignment, one of which is left out; each block has a mark of its own, and
// has copied what is its part when the host sees it.
KEEL_CONFORMANCE_CASE(Kernels, SmallCopiesOutMarkTheEndBlockByBlock,
                      .needs = {&Capabilities::kernels}) {
  struct Row {
    std::uint64_t size, offset;
  };
  constexpr std::uint64_t kRoom = 8192;
  constexpr std::uint64_t kMostBlocks = 8;
  std::vector<Row> row = {{4096, 0}, {4, 4}, {64, 0}, {1, 3}, {100, 4}, {4096, 16}, {999, 1}};
  while (row.size() < 45) row.push_back({row.size() % 3 == 0 ? 4096u : 160u, 0});
  const std::uint64_t count = row.size();
  Device& device = context.device();
  ASSERT_VALUE(const KernelHandle out, context.Kernel(kernels::kCopyOutSmall));
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory from, context.NewPlain(Bytes(count * kRoom)));
  ASSERT_VALUE(const PlainMemory to, context.NewPlain(Bytes(count * kRoom)));
  ASSERT_VALUE(const PlainMemory pieces, context.NewPlain(Bytes(count * 24)));
  ASSERT_VALUE(const PlainMemory rows, context.NewPlain(Bytes(count * 16)));
  ASSERT_VALUE(const PlainMemory counts, context.NewPlain(Bytes(kMostBlocks * 8)));
  ASSERT_VALUE(PinnedWords seen, context.NewWords(kMostBlocks));
  std::vector<std::uint64_t> piece;
  for (std::uint64_t i = 0; i < count; ++i) piece.insert(piece.end(), {i, 0, row[i].size});
  ASSERT_OK(context.Write<std::uint64_t>(pieces.address(), piece));
  const std::vector<std::byte> bytes = Pattern(count * kRoom, 5);
  ASSERT_OK(context.WriteBytes(from.address(), bytes));
  for (const auto& [blocks, threads] :
       {std::pair{1u, 64u}, {3u, 64u}, {2u, 256u}, {8u, 256u}, {1u, 512u}, {8u, 512u}}) {
    SCOPED_TRACE(testing::Message() << blocks << " blocks of " << threads << " threads");
    ASSERT_OK(context.WriteBytes(to.address(), std::vector<std::byte>(count * kRoom)));
    std::vector<std::byte> want(count * kRoom);
    std::vector<std::uint64_t> table;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t begin = i * kRoom;
      const bool left_out = i == blocks;
      table.push_back(left_out ? 0 : to.address().value() + begin + row[i].offset);
      table.push_back(from.address().value() + begin);
      if (!left_out) std::memcpy(&want[begin + row[i].offset], &bytes[begin], row[i].size);
    }
    ASSERT_OK(context.Write<std::uint64_t>(rows.address(), table));
    std::vector<std::uint64_t> before;
    for (std::uint64_t i = 0; i < kMostBlocks; ++i) before.push_back(10 * i + 7);
    ASSERT_OK(context.Write<std::uint64_t>(counts.address(), before));
    for (std::uint64_t i = 0; i < kMostBlocks; ++i) seen.Store(0, i);
    const Bytes marks(blocks * 8);
    const std::array args = {KernelArg::In(pieces.address(), Bytes(count * 24)),
                             KernelArg::In(rows.address(), Bytes(count * 16)), Count(count),
                             KernelArg::InOut(counts.address(), marks),
                             KernelArg::Out(seen.address(), marks)};
    const LaunchDims dims{.grid = {blocks, 1, 1}, .block = {threads, 1, 1}};
    for (int turn = 0; turn < 2; ++turn) {
      ASSERT_OK(device.LaunchKernel(stream.get(), {.kernel = out, .dims = dims, .args = args}));
    }
    ASSERT_OK(stream.Synchronize(InTime()));
    EXPECT_TRUE(context.HoldsBytes(to.address(), want));
    ASSERT_VALUE(const std::vector<std::uint64_t> counted,
                 context.Read<std::uint64_t>(counts.address(), kMostBlocks));
    for (std::uint64_t i = 0; i < kMostBlocks; ++i) {
      EXPECT_EQ(seen.Load(i), i < blocks ? before[i] + 2 : 0) << "of block " << i;
      EXPECT_EQ(counted[i], i < blocks ? before[i] + 2 : before[i]) << "of block " << i;
    }
  }
}

KEEL_CONFORMANCE_CASE(Kernels, MarksAreCountedWhereTheHostSeesThem,
                      .needs = {&Capabilities::kernels}) {
  constexpr std::uint64_t kMarks = 6;
  constexpr std::uint64_t kBy = 5;
  ASSERT_VALUE(const KernelHandle mark, context.Kernel(kernels::kMark));
  ASSERT_VALUE(const Stream stream, context.NewStream());
  for (const std::uint32_t threads : {1u, 4u, 32u}) {
    ASSERT_VALUE(const PinnedWords seen, context.NewWords(kMarks));
    ASSERT_VALUE(const PlainMemory counts, context.NewPlain(Bytes(kMarks * 8)));
    std::vector<std::uint64_t> want;
    for (std::uint64_t i = 0; i < kMarks; ++i) want.push_back((41 + i) * kBy);
    ASSERT_OK(context.Write<std::uint64_t>(counts.address(), want));
    // All but the last.
    const std::array args = {KernelArg::InOut(counts.address(), Bytes(kMarks * 8)),
                             KernelArg::Out(seen.address(), Bytes(kMarks * 8)), Count(kMarks - 1),
                             Count(kBy)};
    for (int i = 0; i < 3; ++i) {
      ASSERT_OK(context.device().LaunchKernel(
          stream.get(), {.kernel = mark, .dims = {.block = {threads, 1, 1}}, .args = args}));
    }
    ASSERT_OK(stream.Synchronize(InTime()));
    for (std::uint64_t i = 0; i + 1 < kMarks; ++i) {
      want[i] += 3 * kBy;
      EXPECT_EQ(seen.Load(i), 44 + i);
    }
    EXPECT_EQ(seen.Load(kMarks - 1), 0u);
    ASSERT_VALUE(const std::vector<std::uint64_t> counted,
                 context.Read<std::uint64_t>(counts.address(), kMarks));
    EXPECT_EQ(counted, want);
  }
}

KEEL_CONFORMANCE_CASE(Kernels, MatMulSumsInOrder, .needs = {&Capabilities::kernels}) {
  constexpr std::uint64_t kM = 5;
  constexpr std::uint64_t kN = 19;
  constexpr std::uint64_t kK = 67;
  ASSERT_VALUE(const KernelHandle multiply, context.Kernel(kernels::kMatMul));
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory a, context.NewPlain(Bytes(kM * kK * 4)));
  ASSERT_VALUE(const PlainMemory b, context.NewPlain(Bytes(kK * kN * 4)));
  ASSERT_VALUE(const PlainMemory c, context.NewPlain(Bytes(kM * kN * 4)));
  const std::vector<float> left = Rough(kM * kK, 1);
  const std::vector<float> right = Rough(kK * kN, 2);
  ASSERT_OK(context.Write(a.address(), left));
  ASSERT_OK(context.Write(b.address(), right));
  for (std::uint32_t transposed = 0; transposed < 4; ++transposed) {
    std::vector<float> want(kM * kN);
    for (std::uint64_t row = 0; row < kM; ++row) {
      for (std::uint64_t column = 0; column < kN; ++column) {
        float sum = 0;
        for (std::uint64_t p = 0; p < kK; ++p) {
          sum += Rounded(
              left[(transposed & kernels::kTransposedA) != 0 ? p * kM + row : row * kK + p],
              right[(transposed & kernels::kTransposedB) != 0 ? column * kK + p : p * kN + column]);
        }
        want[row * kN + column] = sum;
      }
    }
    for (const std::uint32_t blocks : {1u, 3u}) {
      ASSERT_OK(context.Write(c.address(), std::vector<float>(kM * kN, -1.0f)));
      const std::array args = {KernelArg::In(a.address(), Bytes(kM * kK * 4)),
                               KernelArg::In(b.address(), Bytes(kK * kN * 4)),
                               KernelArg::Out(c.address(), Bytes(kM * kN * 4)),
                               KernelArg::Value(transposed),
                               Count(kM),
                               Count(kN),
                               Count(kK)};
      ASSERT_OK(context.device().LaunchKernel(
          stream.get(), {.kernel = multiply,
                         .dims = {.grid = {blocks, 1, 1}, .block = {16, 1, 1}},
                         .args = args}));
      ASSERT_OK(stream.Synchronize(InTime()));
      ASSERT_VALUE(const std::vector<float> got, context.Read<float>(c.address(), kM * kN));
      EXPECT_EQ(got, want) << "transposed " << transposed << ", " << blocks << " blocks";
    }
  }
}

KEEL_CONFORMANCE_CASE(Kernels, ReluAndItsGradient, .needs = {&Capabilities::kernels}) {
  constexpr std::uint64_t kCount = 1000;
  const Bytes size(kCount * 4);
  ASSERT_VALUE(const KernelHandle relu, context.Kernel(kernels::kRelu));
  ASSERT_VALUE(const KernelHandle grad, context.Kernel(kernels::kReluGrad));
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory x, context.NewPlain(size));
  ASSERT_VALUE(const PlainMemory y, context.NewPlain(size));
  ASSERT_VALUE(const PlainMemory gradient, context.NewPlain(size));
  std::vector<float> in = Rough(kCount, 3);
  in[7] = 0;
  const std::vector<float> slope = Rough(kCount, 4);
  ASSERT_OK(context.Write(x.address(), in));
  ASSERT_OK(context.Write(gradient.address(), slope));
  const LaunchDims dims{.grid = {2, 1, 1}, .block = {64, 1, 1}};
  const std::array relu_args = {KernelArg::In(x.address(), size), KernelArg::Out(y.address(), size),
                                Count(kCount)};
  ASSERT_OK(context.device().LaunchKernel(stream.get(),
                                          {.kernel = relu, .dims = dims, .args = relu_args}));
  const std::array grad_args = {KernelArg::In(y.address(), size),
                                KernelArg::InOut(gradient.address(), size), Count(kCount)};
  ASSERT_OK(context.device().LaunchKernel(stream.get(),
                                          {.kernel = grad, .dims = dims, .args = grad_args}));
  ASSERT_OK(stream.Synchronize(InTime()));
  ASSERT_VALUE(const std::vector<float> out, context.Read<float>(y.address(), kCount));
  ASSERT_VALUE(const std::vector<float> back, context.Read<float>(gradient.address(), kCount));
  for (std::uint64_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(out[i], in[i] > 0 ? in[i] : 0) << i;
    ASSERT_EQ(back[i], in[i] > 0 ? slope[i] : 0) << i;
  }
}

KEEL_CONFORMANCE_CASE(Kernels, MseSumsTheLossInOrder, .needs = {&Capabilities::kernels}) {
  constexpr std::uint64_t kCount = 777;
  constexpr float kScale = 1.0f / 777;
  const Bytes size(kCount * 4);
  ASSERT_VALUE(const KernelHandle mse, context.Kernel(kernels::kMse));
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory y, context.NewPlain(size));
  ASSERT_VALUE(const PlainMemory target, context.NewPlain(size));
  ASSERT_VALUE(const PlainMemory gradient, context.NewPlain(size));
  ASSERT_VALUE(const PlainMemory loss, context.NewPlain(4_B));
  const std::vector<float> made = Rough(kCount, 5);
  const std::vector<float> wanted = Rough(kCount, 6);
  ASSERT_OK(context.Write(y.address(), made));
  ASSERT_OK(context.Write(target.address(), wanted));
  const std::array args = {KernelArg::In(y.address(), size),
                           KernelArg::In(target.address(), size),
                           KernelArg::Out(gradient.address(), size),
                           KernelArg::Out(loss.address(), 4_B),
                           KernelArg::Value(kScale),
                           Count(kCount)};
  ASSERT_OK(context.device().LaunchKernel(
      stream.get(),
      {.kernel = mse, .dims = {.grid = {3, 1, 1}, .block = {32, 1, 1}}, .args = args}));
  ASSERT_OK(stream.Synchronize(InTime()));
  ASSERT_VALUE(const std::vector<float> slope, context.Read<float>(gradient.address(), kCount));
  ASSERT_VALUE(const std::vector<float> sum, context.Read<float>(loss.address(), 1));
  float want = 0;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const float difference = made[i] - wanted[i];
    want += Rounded(difference, difference);
    ASSERT_EQ(slope[i], 2 * kScale * difference) << i;
  }
  EXPECT_EQ(sum[0], kScale * want);
}

KEEL_CONFORMANCE_CASE(Kernels, SpinEndsByItsFlagOrItsLimit, .needs = {&Capabilities::kernels}) {
  Device& device = context.device();
  ASSERT_VALUE(const KernelHandle spin, context.Kernel(kernels::kSpin));
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PinnedWords flag, context.NewWords(1));
  const auto launch = [&](std::uint64_t value, std::uint64_t limit_us) {
    const std::array args = {KernelArg::InOut(flag.address(), 8_B), KernelArg::Value(value),
                             KernelArg::Value(limit_us)};
    return device.LaunchKernel(stream.get(), {.kernel = spin, .args = args});
  };
  flag.Store(3);
  ASSERT_OK(launch(3, 20'000'000));  // met already
  EXPECT_OK(stream.Synchronize(Deadline::After(std::chrono::seconds(15))));
  const auto start = std::chrono::steady_clock::now();
  ASSERT_OK(launch(4, 20'000));  // never met
  EXPECT_OK(stream.Synchronize(Deadline::After(std::chrono::seconds(15))));
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(19));
}

KEEL_CONFORMANCE_CASE(Kernels, WorkOnMappedAndPinnedMemory,
                      .needs = {&Capabilities::kernels, &Capabilities::virtual_memory}) {
  const Bytes granule = context.granule();
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  // Over the border of two mappings.
  ASSERT_VALUE(AddressRange range, AddressRange::Create(context.shared(), granule * 2));
  ASSERT_VALUE(PhysicalMemory first, PhysicalMemory::Create(context.shared(), granule));
  ASSERT_VALUE(PhysicalMemory second, PhysicalMemory::Create(context.shared(), granule));
  const std::array grants = {AccessGrant{device.id(), Access::kReadWrite}};
  ASSERT_VALUE(Mapping a, Mapping::Create(range, Offset(0), first, grants));
  ASSERT_VALUE(Mapping b, Mapping::Create(range, Offset(granule.count()), second, grants));
  const std::uint64_t words = granule.count() / 4;
  ASSERT_OK(context.LaunchFill(stream.get(), range.address(), 0x77, words * 2));
  ASSERT_VALUE(const HostMemory pinned, HostMemory::Create(context.shared(), 4_KiB));
  ASSERT_VALUE(const DeviceAddress host, pinned.address());
  ASSERT_OK(context.LaunchFill(stream.get(), host, 0x78, 1024));
  ASSERT_OK(stream.Synchronize(InTime()));
  EXPECT_TRUE(context.HoldsWord(range.address(), words * 2, 0x77));
  EXPECT_EQ(static_cast<const std::uint32_t*>(pinned.data())[1023], 0x78u);
}

KEEL_CONFORMANCE_CASE(Kernels, OfNothingAreFine, .needs = {&Capabilities::kernels}) {
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  ASSERT_OK(context.Write(memory.address(), std::vector<std::uint32_t>(1024, 5)));
  ASSERT_OK(context.LaunchFill(stream.get(), memory.address(), 6, 0));
  ASSERT_OK(stream.Synchronize(InTime()));
  EXPECT_TRUE(context.HoldsWord(memory.address(), 1024, 5));
}

}  // namespace
}  // namespace keel::hal::conformance
