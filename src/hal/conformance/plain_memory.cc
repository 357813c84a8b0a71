// Plain device memory: AllocatePlain, FreePlain, GetMemoryInfo.

#include <algorithm>
#include <limits>

#include "hal/conformance/context.h"

namespace keel::hal::conformance {
namespace {

KEEL_CONFORMANCE_CASE(PlainMemory, IsAlignedAndHoldsItsBytes) {
  struct Piece {
    PlainMemory memory;
    std::vector<std::byte> bytes;
  };
  std::vector<Piece> pieces;
  std::uint32_t seed = 0;
  for (const std::uint64_t size : {1ull, 3ull, 255ull, 256ull, 257ull, 4095ull, 4096ull, 65537ull,
                                   1048576ull + 3, 3ull << 20}) {
    ASSERT_VALUE(PlainMemory memory, context.NewPlain(Bytes(size)));
    EXPECT_TRUE(memory.address());
    EXPECT_TRUE(IsAligned(memory.address(), 256_B)) << ToString(memory.address());
    pieces.push_back({std::move(memory), Pattern(size, ++seed)});
  }
  // All written before any is read: one that overlaps another would lose its bytes.
  for (const Piece& piece : pieces) {
    ASSERT_OK(context.WriteBytes(piece.memory.address(), piece.bytes));
  }
  for (const Piece& piece : pieces) {
    EXPECT_TRUE(context.HoldsBytes(piece.memory.address(), piece.bytes));
  }
}

KEEL_CONFORMANCE_CASE(PlainMemory, ManyAllocationsAreDisjoint) {
  constexpr Bytes kSize = 1000_B;
  std::vector<PlainMemory> memories;
  std::vector<DeviceAddress> addresses;
  for (int i = 0; i < 500; ++i) {
    ASSERT_VALUE(PlainMemory memory, context.NewPlain(kSize));
    addresses.push_back(memory.address());
    memories.push_back(std::move(memory));
  }
  std::sort(addresses.begin(), addresses.end());
  for (std::size_t i = 1; i < addresses.size(); ++i) {
    EXPECT_GE(addresses[i] - addresses[i - 1], kSize);
  }
}

KEEL_CONFORMANCE_CASE(PlainMemory, ZeroBytesAreRefused) {
  EXPECT_CODE(kInvalidArgument, context.device().AllocatePlain(Bytes(0)));
}

KEEL_CONFORMANCE_CASE(PlainMemory, MoreThanThereIsIsExhaustion) {
  const Bytes total = context.device().info().memory;
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint64_t size :
       {total.count() + 1, total.count() * 2, std::uint64_t{1} << 63, most - 255, most}) {
    SCOPED_TRACE(size);
    EXPECT_CODE(kResourceExhausted, context.device().AllocatePlain(Bytes(size)));
  }
  EXPECT_TRUE(context.Works());
}

KEEL_CONFORMANCE_CASE(PlainMemory, InfoFollowsWhatIsAllocated) {
  Device& device = context.device();
  // Large enough that no driver serves it from a piece it had already.
  constexpr Bytes kSize = 256_MiB;
  ASSERT_VALUE(const MemoryInfo before, device.GetMemoryInfo());
  EXPECT_EQ(before.total, device.info().memory);
  EXPECT_LE(before.free, before.total);
  ASSERT_VALUE(PlainMemory memory, context.NewPlain(kSize));
  ASSERT_VALUE(const MemoryInfo during, device.GetMemoryInfo());
  EXPECT_EQ(during.total, before.total);
  EXPECT_LE(during.free + kSize, before.free);
  ASSERT_OK(memory.Close());
  ASSERT_VALUE(const MemoryInfo after, device.GetMemoryInfo());
  EXPECT_GE(after.free, during.free + kSize);
}

KEEL_CONFORMANCE_CASE(PlainMemory, CapacityRunsOutAndComesBack) {
  Device& device = context.device();
  ASSERT_VALUE(const MemoryInfo before, device.GetMemoryInfo());
  const Bytes chunk = AlignDown(before.free / 10, 2_MiB);
  ASSERT_FALSE(chunk.empty());
  std::vector<PlainMemory> held;
  Status refused;
  while (refused.ok() && held.size() < 100) {
    Result<PlainMemory> memory = context.NewPlain(chunk);
    if (memory.ok()) {
      held.push_back(std::move(*memory));
    } else {
      refused = memory.status();
    }
  }
  EXPECT_CODE(kResourceExhausted, refused);
  // Nine at least: a driver may keep a little for itself.
  EXPECT_GE(held.size(), 9u);
  EXPECT_LE(held.size(), 10u);
  // What is held is not harmed by the refusal.
  const std::vector<std::byte> bytes = Pattern(4096, 3);
  ASSERT_OK(context.WriteBytes(held.back().address(), bytes));
  EXPECT_TRUE(context.HoldsBytes(held.back().address(), bytes));
  const std::size_t fitted = held.size();
  held.clear();
  for (std::size_t i = 0; i < fitted; ++i) {
    ASSERT_VALUE(PlainMemory memory, context.NewPlain(chunk));
    held.push_back(std::move(memory));
  }
}

KEEL_CONFORMANCE_CASE(PlainMemory, FreeTakesOnlyWhatWasReturned) {
  Device& device = context.device();
  ASSERT_VALUE(PlainMemory memory, context.NewPlain(64_KiB));
  EXPECT_CODE(kInvalidArgument, device.FreePlain(DeviceAddress(0)));
  EXPECT_CODE(kInvalidArgument, device.FreePlain(memory.address() + 256_B));
  EXPECT_CODE(kInvalidArgument, device.FreePlain(memory.address() + 1_B));
  EXPECT_CODE(kInvalidArgument, device.FreePlain(memory.address() + 64_GiB));
  // Still there.
  const std::vector<std::byte> bytes = Pattern(65536, 4);
  ASSERT_OK(context.WriteBytes(memory.address(), bytes));
  EXPECT_TRUE(context.HoldsBytes(memory.address(), bytes));
  EXPECT_OK(memory.Close());
}

KEEL_CONFORMANCE_CASE(PlainMemory, FreeDoesNotTakeOtherKinds,
                      .needs = {&Capabilities::virtual_memory}) {
  Device& device = context.device();
  ASSERT_VALUE(MappedMemory mapped, MappedMemory::Create(context.shared(), context.granule()));
  EXPECT_CODE(kInvalidArgument, device.FreePlain(mapped.address()));
  ASSERT_VALUE(AddressRange range, AddressRange::Create(context.shared(), context.granule()));
  EXPECT_CODE(kInvalidArgument, device.FreePlain(range.address()));
  ASSERT_VALUE(PlainMemory plain, context.NewPlain(context.granule()));
  EXPECT_CODE(kInvalidArgument, device.FreeAddress(plain.address(), context.granule()));
  EXPECT_CODE(kInvalidArgument, device.Unmap(plain.address(), context.granule()));
  EXPECT_TRUE(context.Works());
}

KEEL_CONFORMANCE_CASE(PlainMemory, SecondFreeIsRefused, .stale_handles = true) {
  Device& device = context.device();
  ASSERT_VALUE(const DeviceAddress address, device.AllocatePlain(64_KiB));
  ASSERT_OK(device.FreePlain(address));
  EXPECT_CODE(kInvalidArgument, device.FreePlain(address));
  EXPECT_TRUE(context.Works());
}

KEEL_CONFORMANCE_CASE(PlainMemory, AFreedRangeIsNotMappedAnyMore, .stale_handles = true) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const DeviceAddress address, device.AllocatePlain(64_KiB));
  ASSERT_OK(device.FreePlain(address));
  EXPECT_CODE(kInvalidArgument,
              device.EnqueueFill(stream.get(), {.destination = address, .count = 16}));
  EXPECT_TRUE(context.Works());
}

// Frees may wait for all work of the device, so what holds the work up must not need the thread
// that frees.
KEEL_CONFORMANCE_CASE(PlainMemory, FreeBehindRunningWorkEnds, .blocks = true) {
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(PlainMemory memory, context.NewPlain(64_KiB));
  ASSERT_VALUE(PlainMemory unrelated, context.NewPlain(64_KiB));
  ASSERT_VALUE(Blocker blocker, context.Block(stream.get()));
  ASSERT_OK(context.device().EnqueueFill(
      stream.get(), {.destination = memory.address(), .value = 1, .width = 4, .count = 16384}));
  blocker.ReleaseAfter(std::chrono::milliseconds(20));
  EXPECT_OK(unrelated.Close());
  ASSERT_OK(stream.Synchronize(InTime()));
  EXPECT_TRUE(context.HoldsWord(memory.address(), 16384, 1));
}

}  // namespace
}  // namespace keel::hal::conformance
