// Virtual memory, part three: who may do what with a mapping, on one device. Peers are in peers.cc.

#include <array>

#include "hal/conformance/context.h"

namespace keel::hal::conformance {
namespace {

Status Grant(CaseContext& context, DeviceAddress address, Bytes size, Access access) {
  const std::array grants = {AccessGrant{context.device().id(), access}};
  return context.device().SetAccess(address, size, grants);
}

KEEL_CONFORMANCE_CASE(Access, IsReportedForEveryByte, .needs = {&Capabilities::virtual_memory}) {
  Device& device = context.device();
  const Bytes granule = context.granule();
  ASSERT_VALUE(MappedMemory memory, MappedMemory::Create(context.shared(), granule * 2));
  for (const Bytes at : {Bytes(0), 1_B, granule, granule * 2 - 1_B}) {
    ASSERT_VALUE(const Access access, device.GetAccess(memory.address() + at, device.id()));
    EXPECT_EQ(access, Access::kReadWrite);
  }
  const std::array<DeviceId, 2> strangers = {DeviceId::kNone, static_cast<DeviceId>(0x7FFFFFFF)};
  for (const DeviceId stranger : strangers) {
    EXPECT_CODE(kInvalidArgument, device.GetAccess(memory.address(), stranger));
  }
}

KEEL_CONFORMANCE_CASE(Access, OfWhatIsNotMappedIsAnError,
                      .needs = {&Capabilities::virtual_memory}) {
  Device& device = context.device();
  const Bytes granule = context.granule();
  ASSERT_VALUE(AddressRange range, AddressRange::Create(context.shared(), granule));
  EXPECT_CODE(kInvalidArgument, device.GetAccess(range.address(), device.id()));
  EXPECT_CODE(kInvalidArgument, device.GetAccess(DeviceAddress(0), device.id()));
  EXPECT_CODE(kInvalidArgument, Grant(context, range.address(), granule, Access::kReadWrite));
  EXPECT_CODE(kInvalidArgument, Grant(context, DeviceAddress(0), granule, Access::kReadWrite));
}

KEEL_CONFORMANCE_CASE(Access, ReadOnlyMeansIt, .needs = {&Capabilities::virtual_memory}) {
  Device& device = context.device();
  const Bytes granule = context.granule();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(MappedMemory memory, MappedMemory::Create(context.shared(), granule));
  const std::vector<std::byte> bytes = Pattern(granule.count(), 1);
  ASSERT_OK(context.WriteBytes(memory.address(), bytes));
  ASSERT_OK(Grant(context, memory.address(), granule, Access::kRead));
  ASSERT_VALUE(const Access access, device.GetAccess(memory.address(), device.id()));
  EXPECT_EQ(access, Access::kRead);
  EXPECT_TRUE(context.HoldsBytes(memory.address(), bytes));
  EXPECT_CODE(kInvalidArgument, context.WriteBytes(memory.address(), Pattern(16, 2)));
  EXPECT_CODE(kInvalidArgument,
              device.EnqueueFill(stream.get(), {.destination = memory.address(), .count = 16}));
  EXPECT_TRUE(context.HoldsBytes(memory.address(), bytes));
  // And back.
  ASSERT_OK(Grant(context, memory.address(), granule, Access::kReadWrite));
  EXPECT_OK(context.WriteBytes(memory.address(), Pattern(16, 2)));
}

KEEL_CONFORMANCE_CASE(Access, CanBeTakenAway, .needs = {&Capabilities::virtual_memory}) {
  Device& device = context.device();
  const Bytes granule = context.granule();
  ASSERT_VALUE(MappedMemory memory, MappedMemory::Create(context.shared(), granule));
  const std::vector<std::byte> bytes = Pattern(granule.count(), 3);
  ASSERT_OK(context.WriteBytes(memory.address(), bytes));
  ASSERT_OK(Grant(context, memory.address(), granule, Access::kNone));
  ASSERT_VALUE(const Access access, device.GetAccess(memory.address(), device.id()));
  EXPECT_EQ(access, Access::kNone);
  EXPECT_CODE(kInvalidArgument, context.ReadBytes(memory.address(), 16));
  EXPECT_CODE(kInvalidArgument, context.WriteBytes(memory.address(), Pattern(16, 4)));
  ASSERT_OK(Grant(context, memory.address(), granule, Access::kReadWrite));
  EXPECT_TRUE(context.HoldsBytes(memory.address(), bytes));
}

KEEL_CONFORMANCE_CASE(Access, IsSetForWholeMappings, .needs = {&Capabilities::virtual_memory}) {
  Device& device = context.device();
  const Bytes granule = context.granule();
  ASSERT_VALUE(AddressRange range, AddressRange::Create(context.shared(), granule * 4));
  ASSERT_VALUE(PhysicalMemory first, PhysicalMemory::Create(context.shared(), granule * 2));
  ASSERT_VALUE(PhysicalMemory second, PhysicalMemory::Create(context.shared(), granule));
  const DeviceAddress at = range.address();
  ASSERT_OK(device.Map(at, granule * 2, Offset(0), first.handle()));
  ASSERT_OK(device.Map(at + granule * 2, granule, Offset(0), second.handle()));
  EXPECT_CODE(kInvalidArgument, Grant(context, at, granule, Access::kReadWrite));
  EXPECT_CODE(kInvalidArgument, Grant(context, at + granule, granule, Access::kReadWrite));
  EXPECT_CODE(kInvalidArgument, Grant(context, at + granule, granule * 2, Access::kReadWrite));
  EXPECT_CODE(kInvalidArgument, Grant(context, at, granule * 4, Access::kReadWrite));
  EXPECT_CODE(kInvalidArgument, Grant(context, at, Bytes(0), Access::kReadWrite));
  EXPECT_CODE(kInvalidArgument, Grant(context, at + 1_B, granule * 2, Access::kReadWrite));
  for (const Bytes offset : {Bytes(0), granule, granule * 2}) {
    ASSERT_VALUE(const Access access, device.GetAccess(at + offset, device.id()));
    EXPECT_EQ(access, Access::kNone) << "a call that was refused changed something";
  }
  // Several adjacent ones in one call.
  ASSERT_OK(Grant(context, at, granule * 3, Access::kReadWrite));
  for (const Bytes offset : {Bytes(0), granule, granule * 2}) {
    ASSERT_VALUE(const Access access, device.GetAccess(at + offset, device.id()));
    EXPECT_EQ(access, Access::kReadWrite);
  }
  // One of them by itself.
  ASSERT_OK(Grant(context, at + granule * 2, granule, Access::kRead));
  ASSERT_VALUE(const Access one, device.GetAccess(at + granule * 2, device.id()));
  EXPECT_EQ(one, Access::kRead);
  ASSERT_VALUE(const Access other, device.GetAccess(at + granule, device.id()));
  EXPECT_EQ(other, Access::kReadWrite);
  EXPECT_OK(device.Unmap(at, granule * 3));
}

KEEL_CONFORMANCE_CASE(Access, BadGrantsAreRefused, .needs = {&Capabilities::virtual_memory}) {
  Device& device = context.device();
  const Bytes granule = context.granule();
  ASSERT_VALUE(MappedMemory memory, MappedMemory::Create(context.shared(), granule));
  // Write without read is no grant.
  EXPECT_CODE(kInvalidArgument, Grant(context, memory.address(), granule, Access::kWrite));
  const std::array<DeviceId, 2> strangers = {DeviceId::kNone, static_cast<DeviceId>(0x7FFFFFFF)};
  for (const DeviceId stranger : strangers) {
    // The good grant before the bad one is not carried out either.
    const std::array grants = {AccessGrant{device.id(), Access::kNone},
                               AccessGrant{stranger, Access::kReadWrite}};
    EXPECT_CODE(kInvalidArgument, device.SetAccess(memory.address(), granule, grants));
  }
  ASSERT_VALUE(const Access access, device.GetAccess(memory.address(), device.id()));
  EXPECT_EQ(access, Access::kReadWrite);
}

}  // namespace
}  // namespace keel::hal::conformance
