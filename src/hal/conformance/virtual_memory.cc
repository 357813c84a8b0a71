// Virtual memory, part one: physical memory and address ranges by themselves.

#include <algorithm>
#include <limits>

#include "hal/conformance/context.h"

namespace keel::hal::conformance {
namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

KEEL_CONFORMANCE_CASE(VirtualMemory, SizesAreMultiplesOfTheGranularity,
                      .needs = {&Capabilities::virtual_memory}) {
  Device& device = context.device();
  const Bytes granule = context.granule();
  for (const Bytes size : {Bytes(0), Bytes(1), granule - 1_B, granule + 1_B, granule / 2,
                           granule * 2 + granule / 2, Bytes(kMost)}) {
    SCOPED_TRACE(ToString(size));
    EXPECT_CODE(kInvalidArgument, device.CreateMemory(size, {}));
    EXPECT_CODE(kInvalidArgument, device.ReserveAddress(size, Bytes(0), DeviceAddress()));
  }
  for (const std::uint64_t count : {1u, 2u, 3u, 7u}) {
    ASSERT_VALUE(PhysicalMemory memory, PhysicalMemory::Create(context.shared(), granule * count));
    ASSERT_VALUE(AddressRange range, AddressRange::Create(context.shared(), granule * count));
    EXPECT_TRUE(IsAligned(range.address(), granule));
    EXPECT_OK(memory.Close());
    EXPECT_OK(range.Close());
  }
}

KEEL_CONFORMANCE_CASE(VirtualMemory, MoreMemoryThanThereIsIsExhaustion,
                      .needs = {&Capabilities::virtual_memory}) {
  Device& device = context.device();
  const Bytes granule = context.granule();
  const Bytes total = AlignDown(device.info().memory, granule);
  for (const Bytes size : {total + granule, total * 2, AlignDown(Bytes(1ull << 63), granule),
                           AlignDown(Bytes(kMost), granule)}) {
    SCOPED_TRACE(ToString(size));
    EXPECT_CODE(kResourceExhausted, device.CreateMemory(size, {}));
  }
  EXPECT_TRUE(context.Works());
}

KEEL_CONFORMANCE_CASE(VirtualMemory, CapacityRunsOutAndComesBack,
                      .needs = {&Capabilities::virtual_memory}) {
  Device& device = context.device();
  ASSERT_VALUE(const MemoryInfo before, device.GetMemoryInfo());
  const Bytes chunk = AlignDown(before.free / 10, context.granule());
  ASSERT_FALSE(chunk.empty());
  std::vector<PhysicalMemory> held;
  Status refused;
  while (refused.ok() && held.size() < 100) {
    Result<PhysicalMemory> memory = PhysicalMemory::Create(context.shared(), chunk);
    if (memory.ok()) {
      held.push_back(std::move(*memory));
    } else {
      refused = memory.status();
    }
  }
  EXPECT_CODE(kResourceExhausted, refused);
  EXPECT_GE(held.size(), 9u);
  EXPECT_LE(held.size(), 10u);
  // Plain memory comes out of the same capacity.
  ASSERT_VALUE(const MemoryInfo during, device.GetMemoryInfo());
  EXPECT_CODE(kResourceExhausted, device.AllocatePlain(during.free + chunk));
  const std::size_t fitted = held.size();
  held.clear();
  for (std::size_t i = 0; i < fitted; ++i) {
    ASSERT_VALUE(PhysicalMemory memory, PhysicalMemory::Create(context.shared(), chunk));
    held.push_back(std::move(memory));
  }
}

KEEL_CONFORMANCE_CASE(VirtualMemory, InfoFollowsPhysicalMemory,
                      .needs = {&Capabilities::virtual_memory}) {
  Device& device = context.device();
  const Bytes size = *AlignUp(256_MiB, context.granule());
  ASSERT_VALUE(const MemoryInfo before, device.GetMemoryInfo());
  // Addresses cost no memory.
  ASSERT_VALUE(AddressRange range, AddressRange::Create(context.shared(), size * 4));
  ASSERT_VALUE(PhysicalMemory memory, PhysicalMemory::Create(context.shared(), size));
  ASSERT_VALUE(const MemoryInfo during, device.GetMemoryInfo());
  EXPECT_LE(during.free + size, before.free);
  EXPECT_GE(during.free + size * 2, before.free);
  ASSERT_OK(memory.Close());
  ASSERT_VALUE(const MemoryInfo after, device.GetMemoryInfo());
  EXPECT_GE(after.free, during.free + size);
  EXPECT_OK(range.Close());
}

KEEL_CONFORMANCE_CASE(VirtualMemory, ReservationsHonourAlignment,
                      .needs = {&Capabilities::virtual_memory}) {
  Device& device = context.device();
  const Bytes granule = context.granule();
  for (const Bytes alignment : {1_B, 4_KiB, granule, granule * 2, granule * 32}) {
    SCOPED_TRACE(ToString(alignment));
    ASSERT_VALUE(AddressRange range, AddressRange::Create(context.shared(), granule, alignment));
    EXPECT_TRUE(IsAligned(range.address(), alignment));
    EXPECT_TRUE(IsAligned(range.address(), granule));
    EXPECT_OK(range.Close());
  }
  for (const Bytes alignment : {3_B, granule * 3, granule + 1_B, Bytes(kMost)}) {
    SCOPED_TRACE(ToString(alignment));
    EXPECT_CODE(kInvalidArgument, device.ReserveAddress(granule, alignment, DeviceAddress()));
  }
}

KEEL_CONFORMANCE_CASE(VirtualMemory, AHintIsOnlyAWish, .needs = {&Capabilities::virtual_memory}) {
  const Bytes granule = context.granule();
  ASSERT_VALUE(AddressRange taken, AddressRange::Create(context.shared(), granule));
  // Taken, unaligned, outside of everything: a range comes anyway.
  for (const DeviceAddress hint :
       {taken.address(), taken.address() + 1_B, DeviceAddress(1), DeviceAddress(kMost - 4095)}) {
    SCOPED_TRACE(ToString(hint));
    ASSERT_VALUE(AddressRange range,
                 AddressRange::Create(context.shared(), granule, Bytes(0), hint));
    EXPECT_TRUE(IsAligned(range.address(), granule));
    EXPECT_NE(range.address(), taken.address());
  }
}

KEEL_CONFORMANCE_CASE(VirtualMemory, ReservationsAreDisjointAndMayExceedTheCapacity,
                      .needs = {&Capabilities::virtual_memory}) {
  const Bytes granule = context.granule();
  std::vector<AddressRange> ranges;
  for (const std::uint64_t count : {1u, 5u, 2u, 64u, 1u, 3u, 16u, 1u}) {
    ASSERT_VALUE(AddressRange range, AddressRange::Create(context.shared(), granule * count));
    ranges.push_back(std::move(range));
  }
  const Bytes large = AlignDown(context.device().info().memory, granule) + granule;
  ASSERT_VALUE(AddressRange larger, AddressRange::Create(context.shared(), large));
  ranges.push_back(std::move(larger));
  ASSERT_VALUE(const PlainMemory plain, context.NewPlain(1_MiB));
  std::sort(ranges.begin(), ranges.end(),
            [](const AddressRange& a, const AddressRange& b) { return a.address() < b.address(); });
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    EXPECT_GE(ranges[i].address(), ranges[i - 1].address() + ranges[i - 1].size());
  }
  for (const AddressRange& range : ranges) {
    EXPECT_TRUE(plain.address() + plain.size() <= range.address() ||
                plain.address() >= range.address() + range.size());
  }
}

KEEL_CONFORMANCE_CASE(VirtualMemory, MoreAddressesThanThereAreIsExhaustion,
                      .needs = {&Capabilities::virtual_memory}) {
  Device& device = context.device();
  const Bytes granule = context.granule();
  for (const Bytes size :
       {AlignDown(Bytes(1ull << 62), granule), AlignDown(Bytes(kMost), granule)}) {
    SCOPED_TRACE(ToString(size));
    EXPECT_CODE(kResourceExhausted, device.ReserveAddress(size, Bytes(0), DeviceAddress()));
  }
  EXPECT_CODE(kResourceExhausted,
              device.ReserveAddress(granule, Bytes(1ull << 63), DeviceAddress()));
  ASSERT_VALUE(AddressRange range, AddressRange::Create(context.shared(), granule));
  EXPECT_OK(range.Close());
}

KEEL_CONFORMANCE_CASE(VirtualMemory, ReservationsAreFreedWhole,
                      .needs = {&Capabilities::virtual_memory}) {
  Device& device = context.device();
  const Bytes granule = context.granule();
  ASSERT_VALUE(const DeviceAddress address,
               device.ReserveAddress(granule * 4, Bytes(0), DeviceAddress()));
  EXPECT_CODE(kInvalidArgument, device.FreeAddress(address, granule));
  EXPECT_CODE(kInvalidArgument, device.FreeAddress(address, granule * 8));
  EXPECT_CODE(kInvalidArgument, device.FreeAddress(address, Bytes(0)));
  EXPECT_CODE(kInvalidArgument, device.FreeAddress(address + granule, granule * 3));
  EXPECT_CODE(kInvalidArgument, device.FreeAddress(DeviceAddress(0), granule));
  // The refusals left it as it was.
  ASSERT_VALUE(PhysicalMemory memory, PhysicalMemory::Create(context.shared(), granule * 4));
  EXPECT_OK(device.Map(address, granule * 4, Offset(0), memory.handle()));
  EXPECT_OK(device.Unmap(address, granule * 4));
  EXPECT_OK(device.FreeAddress(address, granule * 4));
}

KEEL_CONFORMANCE_CASE(VirtualMemory, FreedReservationsAreUsedAgain,
                      .needs = {&Capabilities::virtual_memory}) {
  // As much as fits a few times, reserved far more often than it fits.
  const Bytes size = *AlignUp(context.device().info().memory, context.granule());
  for (int i = 0; i < 200; ++i) {
    ASSERT_VALUE(AddressRange range, AddressRange::Create(context.shared(), size));
    ASSERT_OK(range.Close());
  }
}

KEEL_CONFORMANCE_CASE(VirtualMemory, GivenBackHandlesAreRefused,
                      .needs = {&Capabilities::virtual_memory}, .stale_handles = true) {
  Device& device = context.device();
  const Bytes granule = context.granule();
  ASSERT_VALUE(const MemoryHandle memory, device.CreateMemory(granule, {}));
  ASSERT_VALUE(AddressRange range, AddressRange::Create(context.shared(), granule));
  ASSERT_OK(device.ReleaseMemory(memory));
  EXPECT_CODE(kInvalidArgument, device.ReleaseMemory(memory));
  EXPECT_CODE(kInvalidArgument, device.Map(range.address(), granule, Offset(0), memory));
  const DeviceAddress address = range.address();
  ASSERT_OK(range.Close());
  EXPECT_CODE(kInvalidArgument, device.FreeAddress(address, granule));
}

}  // namespace
}  // namespace keel::hal::conformance
