// Virtual memory, part two: mapping and unmapping.

#include <array>

#include "hal/conformance/context.h"

namespace keel::hal::conformance {
namespace {

// A range of `count` granules and memories of one granule each, not yet mapped.
struct Pieces {
  static Result<Pieces> Create(CaseContext& context, std::uint64_t count, int memories) {
    Pieces pieces;
    pieces.granule = context.granule();
    KEEL_ASSIGN(pieces.range, AddressRange::Create(context.shared(), pieces.granule * count));
    for (int i = 0; i < memories; ++i) {
      KEEL_ASSIGN(PhysicalMemory memory, PhysicalMemory::Create(context.shared(), pieces.granule));
      pieces.memories.push_back(std::move(memory));
    }
    return pieces;
  }
  DeviceAddress at(std::uint64_t i) const { return range.address() + granule * i; }
  MemoryHandle handle(std::size_t i) const { return memories[i].handle(); }

  Bytes granule;
  AddressRange range;
  std::vector<PhysicalMemory> memories;
};

Status Grant(CaseContext& context, DeviceAddress address, Bytes size,
             Access access = Access::kReadWrite) {
  const std::array grants = {AccessGrant{context.device().id(), access}};
  return context.device().SetAccess(address, size, grants);
}

KEEL_CONFORMANCE_CASE(Mappings, HoldBytesFromEndToEnd, .needs = {&Capabilities::virtual_memory}) {
  const Bytes size = context.granule() * 3;
  ASSERT_VALUE(MappedMemory memory, MappedMemory::Create(context.shared(), size));
  const std::vector<std::byte> bytes = Pattern(size.count(), 1);
  ASSERT_OK(context.WriteBytes(memory.address(), bytes));
  EXPECT_TRUE(context.HoldsBytes(memory.address(), bytes));
  EXPECT_OK(memory.Close());
}

KEEL_CONFORMANCE_CASE(Mappings, AreWhole, .needs = {&Capabilities::virtual_memory}) {
  Device& device = context.device();
  const Bytes granule = context.granule();
  ASSERT_VALUE(AddressRange range, AddressRange::Create(context.shared(), granule * 8));
  ASSERT_VALUE(PhysicalMemory memory, PhysicalMemory::Create(context.shared(), granule * 2));
  const DeviceAddress at = range.address();
  const MemoryHandle handle = memory.handle();
  EXPECT_CODE(kInvalidArgument, device.Map(at, granule, Offset(0), handle));
  EXPECT_CODE(kInvalidArgument, device.Map(at, granule, Offset(granule.count()), handle));
  EXPECT_CODE(kInvalidArgument, device.Map(at, granule * 2, Offset(granule.count()), handle));
  EXPECT_CODE(kInvalidArgument, device.Map(at, granule * 2, Offset(1), handle));
  EXPECT_CODE(kInvalidArgument, device.Map(at, granule * 4, Offset(0), handle));
  EXPECT_CODE(kInvalidArgument, device.Map(at, Bytes(0), Offset(0), handle));
  EXPECT_CODE(kInvalidArgument, device.Map(at + 1_B, granule * 2, Offset(0), handle));
  EXPECT_CODE(kInvalidArgument, device.Map(at + granule / 2, granule * 2, Offset(0), handle));
  EXPECT_CODE(kInvalidArgument, device.Map(at, granule * 2, Offset(0), MemoryHandle{}));
  // Nothing of that was carried out: the range is empty and can be freed.
  EXPECT_CODE(kInvalidArgument, device.GetAccess(at, device.id()));
  EXPECT_OK(range.Close());
}

KEEL_CONFORMANCE_CASE(Mappings, LieInOneReservation, .needs = {&Capabilities::virtual_memory}) {
  Device& device = context.device();
  const Bytes granule = context.granule();
  ASSERT_VALUE(AddressRange range, AddressRange::Create(context.shared(), granule * 4));
  ASSERT_VALUE(PhysicalMemory memory, PhysicalMemory::Create(context.shared(), granule * 2));
  // Over the end, and behind it.
  EXPECT_CODE(kInvalidArgument,
              device.Map(range.address() + granule * 3, granule * 2, Offset(0), memory.handle()));
  const DeviceAddress behind = range.address() + granule * 4;
  ASSERT_OK(range.Close());
  EXPECT_CODE(kInvalidArgument, device.Map(behind, granule * 2, Offset(0), memory.handle()));
  // Plain memory is no reservation.
  ASSERT_VALUE(PlainMemory plain, context.NewPlain(granule * 6));
  const DeviceAddress inside(AlignUp(Bytes(plain.address().value()), granule)->count());
  EXPECT_CODE(kInvalidArgument, device.Map(inside, granule * 2, Offset(0), memory.handle()));
}

KEEL_CONFORMANCE_CASE(Mappings, DoNotSpanTwoReservations,
                      .needs = {&Capabilities::virtual_memory}) {
  Device& device = context.device();
  const Bytes granule = context.granule();
  ASSERT_VALUE(AddressRange first, AddressRange::Create(context.shared(), granule));
  ASSERT_VALUE(AddressRange second, AddressRange::Create(context.shared(), granule, Bytes(0),
                                                         first.address() + granule));
  if (second.address() != first.address() + granule) {
    GTEST_SKIP() << "the driver did not grant neighbouring reservations";
  }
  ASSERT_VALUE(PhysicalMemory memory, PhysicalMemory::Create(context.shared(), granule * 2));
  EXPECT_CODE(kInvalidArgument,
              device.Map(first.address(), granule * 2, Offset(0), memory.handle()));
}

KEEL_CONFORMANCE_CASE(Mappings, DoNotOverlap, .needs = {&Capabilities::virtual_memory}) {
  Device& device = context.device();
  ASSERT_VALUE(Pieces pieces, Pieces::Create(context, 4, 2));
  const Bytes granule = pieces.granule;
  ASSERT_VALUE(PhysicalMemory wide, PhysicalMemory::Create(context.shared(), granule * 2));
  ASSERT_OK(device.Map(pieces.at(1), granule, Offset(0), pieces.handle(0)));
  ASSERT_OK(Grant(context, pieces.at(1), granule));
  const std::vector<std::byte> bytes = Pattern(granule.count(), 2);
  ASSERT_OK(context.WriteBytes(pieces.at(1), bytes));

  EXPECT_CODE(kFailedPrecondition, device.Map(pieces.at(1), granule, Offset(0), pieces.handle(1)));
  EXPECT_CODE(kFailedPrecondition, device.Map(pieces.at(1), granule, Offset(0), pieces.handle(0)));
  EXPECT_CODE(kFailedPrecondition, device.Map(pieces.at(0), granule * 2, Offset(0), wide.handle()));
  EXPECT_CODE(kFailedPrecondition, device.Map(pieces.at(1), granule * 2, Offset(0), wide.handle()));
  EXPECT_TRUE(context.HoldsBytes(pieces.at(1), bytes));
  // The free places next to it stayed free.
  EXPECT_OK(device.Map(pieces.at(2), granule * 2, Offset(0), wide.handle()));
  EXPECT_OK(device.Map(pieces.at(0), granule, Offset(0), pieces.handle(1)));
  EXPECT_OK(device.Unmap(pieces.at(0), granule * 4));
}

KEEL_CONFORMANCE_CASE(Mappings, NobodyHasAccessAtFirst, .needs = {&Capabilities::virtual_memory}) {
  Device& device = context.device();
  ASSERT_VALUE(Pieces pieces, Pieces::Create(context, 1, 1));
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_OK(device.Map(pieces.at(0), pieces.granule, Offset(0), pieces.handle(0)));
  ASSERT_VALUE(const Access access, device.GetAccess(pieces.at(0), device.id()));
  EXPECT_EQ(access, Access::kNone);
  EXPECT_CODE(kInvalidArgument,
              device.EnqueueFill(stream.get(), {.destination = pieces.at(0), .count = 16}));
  EXPECT_CODE(kInvalidArgument, context.ReadBytes(pieces.at(0), 16));
  EXPECT_OK(device.Unmap(pieces.at(0), pieces.granule));
  EXPECT_TRUE(context.Works());
}

KEEL_CONFORMANCE_CASE(Mappings, AliasesAreOneMemory, .needs = {&Capabilities::virtual_memory}) {
  Device& device = context.device();
  ASSERT_VALUE(Pieces pieces, Pieces::Create(context, 3, 1));
  const Bytes granule = pieces.granule;
  ASSERT_VALUE(AddressRange elsewhere, AddressRange::Create(context.shared(), granule));
  const std::array<DeviceAddress, 3> places = {pieces.at(0), pieces.at(2), elsewhere.address()};
  for (const DeviceAddress place : places) {
    ASSERT_OK(device.Map(place, granule, Offset(0), pieces.handle(0)));
    ASSERT_OK(Grant(context, place, granule));
  }
  std::uint32_t seed = 10;
  for (const DeviceAddress written : places) {
    const std::vector<std::byte> bytes = Pattern(granule.count(), ++seed);
    ASSERT_OK(context.WriteBytes(written, bytes));
    for (const DeviceAddress read : places) EXPECT_TRUE(context.HoldsBytes(read, bytes));
  }
  // Unmapping one leaves the others.
  ASSERT_OK(device.Unmap(places[0], granule));
  EXPECT_TRUE(context.HoldsBytes(places[1], Pattern(granule.count(), seed)));
  EXPECT_OK(device.Unmap(places[1], granule));
  EXPECT_OK(device.Unmap(places[2], granule));
}

KEEL_CONFORMANCE_CASE(Mappings, AccessBelongsToTheMappingNotTheMemory,
                      .needs = {&Capabilities::virtual_memory}) {
  Device& device = context.device();
  ASSERT_VALUE(Pieces pieces, Pieces::Create(context, 2, 1));
  for (const std::uint64_t i : {0u, 1u}) {
    ASSERT_OK(device.Map(pieces.at(i), pieces.granule, Offset(0), pieces.handle(0)));
  }
  ASSERT_OK(Grant(context, pieces.at(0), pieces.granule));
  ASSERT_VALUE(const Access other, device.GetAccess(pieces.at(1), device.id()));
  EXPECT_EQ(other, Access::kNone);
  EXPECT_OK(device.Unmap(pieces.at(0), pieces.granule * 2));
}

KEEL_CONFORMANCE_CASE(Mappings, AreUnmappedWhole, .needs = {&Capabilities::virtual_memory}) {
  Device& device = context.device();
  const Bytes granule = context.granule();
  ASSERT_VALUE(AddressRange range, AddressRange::Create(context.shared(), granule * 6));
  ASSERT_VALUE(PhysicalMemory first, PhysicalMemory::Create(context.shared(), granule * 2));
  ASSERT_VALUE(PhysicalMemory second, PhysicalMemory::Create(context.shared(), granule * 2));
  const DeviceAddress at = range.address();
  ASSERT_OK(device.Map(at, granule * 2, Offset(0), first.handle()));
  ASSERT_OK(device.Map(at + granule * 2, granule * 2, Offset(0), second.handle()));
  ASSERT_OK(Grant(context, at, granule * 4));
  const std::vector<std::byte> bytes = Pattern(granule.count() * 4, 3);
  ASSERT_OK(context.WriteBytes(at, bytes));

  EXPECT_CODE(kInvalidArgument, device.Unmap(at, granule));
  EXPECT_CODE(kInvalidArgument, device.Unmap(at + granule, granule));
  EXPECT_CODE(kInvalidArgument, device.Unmap(at, granule * 3));
  EXPECT_CODE(kInvalidArgument, device.Unmap(at + granule, granule * 3));
  EXPECT_CODE(kInvalidArgument, device.Unmap(at, Bytes(0)));
  EXPECT_CODE(kInvalidArgument, device.Unmap(at + 1_B, granule * 2));
  // A hole behind them.
  EXPECT_CODE(kInvalidArgument, device.Unmap(at, granule * 6));
  EXPECT_CODE(kInvalidArgument, device.Unmap(at + granule * 4, granule * 2));
  EXPECT_TRUE(context.HoldsBytes(at, bytes));

  // Several adjacent ones in one call.
  EXPECT_OK(device.Unmap(at, granule * 4));
  EXPECT_CODE(kInvalidArgument, device.GetAccess(at, device.id()));
  EXPECT_CODE(kInvalidArgument, device.Unmap(at, granule * 4));
  EXPECT_OK(range.Close());
}

KEEL_CONFORMANCE_CASE(Mappings, UnmapOverAHoleInTheMiddleIsRefused,
                      .needs = {&Capabilities::virtual_memory}) {
  Device& device = context.device();
  ASSERT_VALUE(Pieces pieces, Pieces::Create(context, 3, 2));
  ASSERT_OK(device.Map(pieces.at(0), pieces.granule, Offset(0), pieces.handle(0)));
  ASSERT_OK(device.Map(pieces.at(2), pieces.granule, Offset(0), pieces.handle(1)));
  EXPECT_CODE(kInvalidArgument, device.Unmap(pieces.at(0), pieces.granule * 3));
  EXPECT_CODE(kInvalidArgument, Grant(context, pieces.at(0), pieces.granule * 3));
  // Both are as they were.
  for (const std::uint64_t i : {0u, 2u}) {
    ASSERT_VALUE(const Access access, device.GetAccess(pieces.at(i), device.id()));
    EXPECT_EQ(access, Access::kNone);
    EXPECT_OK(device.Unmap(pieces.at(i), pieces.granule));
  }
}

KEEL_CONFORMANCE_CASE(Mappings, AccessIsLostWithTheMapping,
                      .needs = {&Capabilities::virtual_memory}) {
  Device& device = context.device();
  ASSERT_VALUE(Pieces pieces, Pieces::Create(context, 1, 1));
  const Bytes granule = pieces.granule;
  ASSERT_OK(device.Map(pieces.at(0), granule, Offset(0), pieces.handle(0)));
  ASSERT_OK(Grant(context, pieces.at(0), granule));
  const std::vector<std::byte> bytes = Pattern(granule.count(), 4);
  ASSERT_OK(context.WriteBytes(pieces.at(0), bytes));
  ASSERT_OK(device.Unmap(pieces.at(0), granule));
  EXPECT_CODE(kInvalidArgument, context.ReadBytes(pieces.at(0), 16));
  ASSERT_OK(device.Map(pieces.at(0), granule, Offset(0), pieces.handle(0)));
  ASSERT_VALUE(const Access access, device.GetAccess(pieces.at(0), device.id()));
  EXPECT_EQ(access, Access::kNone);
  EXPECT_CODE(kInvalidArgument, context.ReadBytes(pieces.at(0), 16));
  // The bytes are not lost.
  ASSERT_OK(Grant(context, pieces.at(0), granule));
  EXPECT_TRUE(context.HoldsBytes(pieces.at(0), bytes));
  EXPECT_OK(device.Unmap(pieces.at(0), granule));
}

KEEL_CONFORMANCE_CASE(Mappings, AnAddressCanMeanOtherMemory,
                      .needs = {&Capabilities::virtual_memory}) {
  Device& device = context.device();
  ASSERT_VALUE(Pieces pieces, Pieces::Create(context, 2, 2));
  const Bytes granule = pieces.granule;
  const std::vector<std::byte> a = Pattern(granule.count(), 5);
  const std::vector<std::byte> b = Pattern(granule.count(), 6);
  for (const std::uint64_t i : {0u, 1u}) {
    ASSERT_OK(device.Map(pieces.at(i), granule, Offset(0), pieces.handle(i)));
  }
  ASSERT_OK(Grant(context, pieces.at(0), granule * 2));
  ASSERT_OK(context.WriteBytes(pieces.at(0), a));
  ASSERT_OK(context.WriteBytes(pieces.at(1), b));
  // Exchanged, back and forth.
  for (int round = 0; round < 4; ++round) {
    ASSERT_OK(device.Unmap(pieces.at(0), granule * 2));
    const std::size_t first = round % 2 == 0 ? 1 : 0;
    ASSERT_OK(device.Map(pieces.at(0), granule, Offset(0), pieces.handle(first)));
    ASSERT_OK(device.Map(pieces.at(1), granule, Offset(0), pieces.handle(1 - first)));
    ASSERT_OK(Grant(context, pieces.at(0), granule * 2));
    EXPECT_TRUE(context.HoldsBytes(pieces.at(0), first == 0 ? a : b));
    EXPECT_TRUE(context.HoldsBytes(pieces.at(1), first == 0 ? b : a));
  }
  EXPECT_OK(device.Unmap(pieces.at(0), granule * 2));
}

KEEL_CONFORMANCE_CASE(Mappings, KeepReleasedMemoryAlive, .needs = {&Capabilities::virtual_memory}) {
  Device& device = context.device();
  const Bytes size = *AlignUp(64_MiB, context.granule());
  ASSERT_VALUE(AddressRange range, AddressRange::Create(context.shared(), size * 2));
  ASSERT_VALUE(const MemoryHandle memory, device.CreateMemory(size, {}));
  ASSERT_OK(device.Map(range.address(), size, Offset(0), memory));
  ASSERT_OK(device.Map(range.address() + size, size, Offset(0), memory));
  ASSERT_OK(Grant(context, range.address(), size * 2));
  const std::vector<std::byte> bytes = Pattern(65536, 7);
  ASSERT_OK(context.WriteBytes(range.address(), bytes));
  ASSERT_VALUE(const MemoryInfo before, device.GetMemoryInfo());
  ASSERT_OK(device.ReleaseMemory(memory));
  EXPECT_TRUE(context.HoldsBytes(range.address() + size, bytes));
  ASSERT_OK(device.Unmap(range.address(), size));
  EXPECT_TRUE(context.HoldsBytes(range.address() + size, bytes));
  ASSERT_VALUE(const MemoryInfo during, device.GetMemoryInfo());
  EXPECT_LT(during.free, before.free + size);
  ASSERT_OK(device.Unmap(range.address() + size, size));
  ASSERT_VALUE(const MemoryInfo after, device.GetMemoryInfo());
  EXPECT_GE(after.free, before.free + size);
}

KEEL_CONFORMANCE_CASE(Mappings, HoldTheReservation, .needs = {&Capabilities::virtual_memory}) {
  Device& device = context.device();
  const Bytes granule = context.granule();
  ASSERT_VALUE(const DeviceAddress address,
               device.ReserveAddress(granule * 2, Bytes(0), DeviceAddress()));
  ASSERT_VALUE(PhysicalMemory memory, PhysicalMemory::Create(context.shared(), granule));
  ASSERT_OK(device.Map(address + granule, granule, Offset(0), memory.handle()));
  ASSERT_OK(Grant(context, address + granule, granule));
  EXPECT_CODE(kFailedPrecondition, device.FreeAddress(address, granule * 2));
  const std::vector<std::byte> bytes = Pattern(4096, 8);
  ASSERT_OK(context.WriteBytes(address + granule, bytes));
  EXPECT_TRUE(context.HoldsBytes(address + granule, bytes));
  ASSERT_OK(device.Unmap(address + granule, granule));
  EXPECT_OK(device.FreeAddress(address, granule * 2));
}

KEEL_CONFORMANCE_CASE(Mappings, NeighboursAreOneRangeForCommands,
                      .needs = {&Capabilities::virtual_memory}) {
  constexpr int kCount = 64;
  Device& device = context.device();
  ASSERT_VALUE(Pieces pieces, Pieces::Create(context, kCount, kCount));
  // Backwards, so that no two neighbours were created and mapped one after the other in order.
  for (int i = kCount - 1; i >= 0; --i) {
    ASSERT_OK(device.Map(pieces.at(static_cast<std::uint64_t>(i)), pieces.granule, Offset(0),
                         pieces.handle(static_cast<std::size_t>((i * 29) % kCount))));
  }
  ASSERT_OK(Grant(context, pieces.at(0), pieces.granule * kCount));
  // Copies and fills that run over the borders.
  const DeviceAddress start = pieces.at(1) - 1000_B;
  const std::vector<std::byte> bytes = Pattern(pieces.granule.count() * 2 + 2000, 9);
  ASSERT_OK(context.WriteBytes(start, bytes));
  EXPECT_TRUE(context.HoldsBytes(start, bytes));
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_OK(device.EnqueueFill(stream.get(), {.destination = pieces.at(0),
                                              .value = 0xABCD1234,
                                              .width = 4,
                                              .count = pieces.granule.count() * kCount / 4}));
  ASSERT_OK(stream.Synchronize(InTime()));
  for (const std::uint64_t i : {0u, 1u, 31u, 62u}) {
    EXPECT_TRUE(context.HoldsWord(pieces.at(i + 1) - 64_B, 32, 0xABCD1234));
  }
  EXPECT_OK(device.Unmap(pieces.at(0), pieces.granule * kCount));
}

// Nothing of virtual memory waits for work that runs: not for work elsewhere, and so not in the
// ladder of an allocator while the device is busy.
KEEL_CONFORMANCE_CASE(Mappings, NothingWaitsForRunningWork,
                      .needs = {&Capabilities::virtual_memory}, .blocks = true) {
  Device& device = context.device();
  const Bytes granule = context.granule();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(MappedMemory before, MappedMemory::Create(context.shared(), granule));
  ASSERT_VALUE(Blocker blocker, context.Block(stream.get()));
  ASSERT_VALUE(MappedMemory during, MappedMemory::Create(context.shared(), granule));
  ASSERT_OK(Grant(context, during.address(), granule, Access::kRead));
  ASSERT_VALUE(const Access access, device.GetAccess(during.address(), device.id()));
  EXPECT_EQ(access, Access::kRead);
  EXPECT_OK(during.Close());
  EXPECT_OK(before.Close());
  EXPECT_TRUE(blocker.blocked()) << "a call waited for the stream";
}

}  // namespace
}  // namespace keel::hal::conformance
