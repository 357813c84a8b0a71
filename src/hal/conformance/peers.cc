// Peers: devices of one driver that use each other's memory.

#include <algorithm>
#include <array>

#include "hal/conformance/context.h"

namespace keel::hal::conformance {
namespace {

bool CanAccess(CaseContext& context, int who, int whose) {
  const Result<bool> can = context.device(who).CanAccessPeer(context.device(whose).id());
  EXPECT_OK(can);
  return can.ok() && *can;
}

// Runs a kernel of device `who` on memory that it sees at `address`.
testing::AssertionResult Fills(CaseContext& context, int who, DeviceAddress address,
                               std::uint32_t value) {
  const auto run = [&]() -> Status {
    KEEL_ASSIGN(const Stream stream, context.NewStream(who));
    KEEL_TRY(context.LaunchFill(stream.get(), address, value, 1024, who));
    return stream.Synchronize(InTime());
  };
  const Status status = run();
  if (status.ok()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "device " << who << ": " << status.ToString();
}

KEEL_CONFORMANCE_CASE(Peers, EveryDeviceReachesItself, .all_devices = true) {
  for (int i = 0; i < context.device_count(); ++i) EXPECT_TRUE(CanAccess(context, i, i));
}

KEEL_CONFORMANCE_CASE(Peers, UnknownDevicesAreRefused) {
  Device& device = context.device();
  const std::array<DeviceId, 2> strangers = {DeviceId::kNone, static_cast<DeviceId>(0x7FFFFFFF)};
  for (const DeviceId stranger : strangers) {
    EXPECT_CODE(kInvalidArgument, device.CanAccessPeer(stranger));
    EXPECT_CODE(kInvalidArgument, device.EnablePeerAccess(stranger));
    EXPECT_CODE(kInvalidArgument, device.DisablePeerAccess(stranger));
  }
}

KEEL_CONFORMANCE_CASE(Peers, EnablingIsIdempotent, .devices = 2, .all_devices = true) {
  for (int i = 1; i < context.device_count(); ++i) {
    const DeviceId peer = context.device(i).id();
    Device& device = context.device(0);
    if (CanAccess(context, 0, i)) {
      EXPECT_OK(device.DisablePeerAccess(peer));
      EXPECT_OK(device.EnablePeerAccess(peer));
      EXPECT_OK(device.EnablePeerAccess(peer));
      EXPECT_OK(device.DisablePeerAccess(peer));
      EXPECT_OK(device.DisablePeerAccess(peer));
    } else {
      EXPECT_CODE(kFailedPrecondition, device.EnablePeerAccess(peer));
      EXPECT_OK(device.DisablePeerAccess(peer));
    }
  }
}

KEEL_CONFORMANCE_CASE(Peers, EnabledOnesUsePlainMemory, .devices = 2, .all_devices = true,
                      .needs = {&Capabilities::kernels, &Capabilities::unified_addresses}) {
  int tried = 0;
  for (int owner = 0; owner < context.device_count(); ++owner) {
    const int user = (owner + 1) % context.device_count();
    if (!CanAccess(context, user, owner)) continue;
    ++tried;
    SCOPED_TRACE(testing::Message() << user << " uses memory of " << owner);
    // Memory from before enabling, and from after it.
    ASSERT_VALUE(const PlainMemory before, context.NewPlain(4_KiB, owner));
    ASSERT_OK(context.device(user).EnablePeerAccess(context.device(owner).id()));
    ASSERT_VALUE(const PlainMemory after, context.NewPlain(4_KiB, owner));
    EXPECT_TRUE(Fills(context, user, before.address(), 50));
    EXPECT_TRUE(Fills(context, user, after.address(), 51));
    EXPECT_TRUE(context.HoldsWord(before.address(), 1024, 50, owner));
    EXPECT_TRUE(context.HoldsWord(after.address(), 1024, 51, owner));
    EXPECT_OK(context.device(user).DisablePeerAccess(context.device(owner).id()));
  }
  if (tried == 0) GTEST_SKIP() << "no device can access another";
}

KEEL_CONFORMANCE_CASE(Peers, AddressesOfUnifiedDevicesAreDisjoint, .devices = 2,
                      .all_devices = true, .needs = {&Capabilities::unified_addresses}) {
  struct Piece {
    DeviceAddress start;
    DeviceAddress end;
  };
  std::vector<Piece> pieces;
  std::vector<PlainMemory> plain;
  std::vector<AddressRange> ranges;
  for (int i = 0; i < context.device_count(); ++i) {
    for (int n = 0; n < 3; ++n) {
      ASSERT_VALUE(PlainMemory memory, context.NewPlain(3_MiB, i));
      pieces.push_back({memory.address(), memory.address() + memory.size()});
      plain.push_back(std::move(memory));
      if (!context.capabilities(i).virtual_memory) continue;
      ASSERT_VALUE(AddressRange range,
                   AddressRange::Create(context.shared(i), context.granule(i) * 4));
      pieces.push_back({range.address(), range.address() + range.size()});
      ranges.push_back(std::move(range));
    }
  }
  std::sort(pieces.begin(), pieces.end(),
            [](const Piece& a, const Piece& b) { return a.start < b.start; });
  for (std::size_t i = 1; i < pieces.size(); ++i) EXPECT_GE(pieces[i].start, pieces[i - 1].end);
}

KEEL_CONFORMANCE_CASE(Peers, HaveNoAccessThatNobodyGave, .devices = 2, .all_devices = true,
                      .needs = {&Capabilities::virtual_memory}) {
  // The owner's own grant, which MappedMemory asks for, is no other device's.
  ASSERT_VALUE(const MappedMemory memory,
               MappedMemory::Create(context.shared(0), context.granule()));
  for (int i = 1; i < context.device_count(); ++i) {
    const Result<Access> access =
        context.device(0).GetAccess(memory.address(), context.device(i).id());
    ASSERT_OK(access);
    EXPECT_EQ(*access, Access::kNone);
  }
}

KEEL_CONFORMANCE_CASE(Peers, GetExactlyTheAccessTheyAreGiven, .devices = 2, .all_devices = true,
                      .needs = {&Capabilities::virtual_memory, &Capabilities::kernels,
                                &Capabilities::unified_addresses}) {
  Device& owner = context.device(0);
  const Bytes granule = context.granule();
  std::vector<Device*> everyone;
  std::vector<int> reachable;
  for (int i = 0; i < context.device_count(); ++i) {
    everyone.push_back(&context.device(i));
    if (i > 0 && CanAccess(context, i, 0)) reachable.push_back(i);
  }
  if (reachable.empty()) GTEST_SKIP() << "no device can access the first one's memory";
  ASSERT_VALUE(const std::vector<AccessGrant> grants, GrantsForPeers(owner, everyone));
  EXPECT_EQ(grants.size(), reachable.size() + 1);
  ASSERT_VALUE(MappedMemory memory, MappedMemory::Create(context.shared(0), granule, grants));
  for (const int i : reachable) {
    SCOPED_TRACE(i);
    ASSERT_VALUE(const Access access, owner.GetAccess(memory.address(), context.device(i).id()));
    EXPECT_EQ(access, Access::kReadWrite);
    const std::uint32_t value = 70 + static_cast<std::uint32_t>(i);
    EXPECT_TRUE(Fills(context, i, memory.address(), value));
    EXPECT_TRUE(context.HoldsWord(memory.address(), 1024, value, 0));
  }
  // Taking one device's away leaves the others theirs.
  const DeviceId first = context.device(reachable.front()).id();
  const std::array take = {AccessGrant{first, Access::kNone}};
  ASSERT_OK(owner.SetAccess(memory.address(), granule, take));
  ASSERT_VALUE(const Access taken, owner.GetAccess(memory.address(), first));
  EXPECT_EQ(taken, Access::kNone);
  ASSERT_VALUE(const Access own, owner.GetAccess(memory.address(), owner.id()));
  EXPECT_EQ(own, Access::kReadWrite);
  for (std::size_t i = 1; i < reachable.size(); ++i) {
    ASSERT_VALUE(const Access kept,
                 owner.GetAccess(memory.address(), context.device(reachable[i]).id()));
    EXPECT_EQ(kept, Access::kReadWrite);
  }
  // It goes with the mapping, for peers too.
  ASSERT_OK(memory.Close());
}

KEEL_CONFORMANCE_CASE(Peers, ThatCannotHaveAccessAreRefused, .devices = 2, .all_devices = true,
                      .needs = {&Capabilities::virtual_memory}) {
  Device& owner = context.device(0);
  const Bytes granule = context.granule();
  ASSERT_VALUE(MappedMemory memory, MappedMemory::Create(context.shared(0), granule));
  int tried = 0;
  for (int i = 1; i < context.device_count(); ++i) {
    if (CanAccess(context, i, 0)) continue;
    ++tried;
    const DeviceId peer = context.device(i).id();
    // Nothing changes for any: not for the owner that stands before it either.
    const std::array grants = {AccessGrant{owner.id(), Access::kRead},
                               AccessGrant{peer, Access::kReadWrite}};
    EXPECT_CODE(kFailedPrecondition, owner.SetAccess(memory.address(), granule, grants));
    ASSERT_VALUE(const Access own, owner.GetAccess(memory.address(), owner.id()));
    EXPECT_EQ(own, Access::kReadWrite);
    ASSERT_VALUE(const Access none, owner.GetAccess(memory.address(), peer));
    EXPECT_EQ(none, Access::kNone);
    // Those who ask which peers can are not told of it.
    const std::array<Device*, 2> both = {&owner, &context.device(i)};
    ASSERT_VALUE(const std::vector<AccessGrant> possible, GrantsForPeers(owner, both));
    EXPECT_EQ(possible.size(), 1u);
  }
  if (tried == 0) GTEST_SKIP() << "every device can access the first one's memory";
}

KEEL_CONFORMANCE_CASE(Peers, MemoryOfOneIsMappedOnAnother, .devices = 2,
                      .needs = {&Capabilities::virtual_memory, &Capabilities::unified_addresses}) {
  Device& mapper = context.device(0);
  const Bytes granule = std::max(context.granule(0), context.granule(1));
  ASSERT_VALUE(PhysicalMemory memory, PhysicalMemory::Create(context.shared(1), granule));
  ASSERT_VALUE(AddressRange range, AddressRange::Create(context.shared(0), granule));
  ASSERT_OK(mapper.Map(range.address(), granule, Offset(0), memory.handle()));
  if (CanAccess(context, 0, 1)) {
    const std::array grants = {AccessGrant{mapper.id(), Access::kReadWrite}};
    ASSERT_OK(mapper.SetAccess(range.address(), granule, grants));
    const std::vector<std::byte> bytes = Pattern(granule.count(), 8);
    ASSERT_OK(context.WriteBytes(range.address(), bytes, 0));
    EXPECT_TRUE(context.HoldsBytes(range.address(), bytes, 0));
  }
  EXPECT_OK(mapper.Unmap(range.address(), granule));
}

KEEL_CONFORMANCE_CASE(Peers, MemoryIsNotMappedIntoAnotherAddressSpace, .devices = 2,
                      .needs = {&Capabilities::virtual_memory}) {
  if (context.capabilities().unified_addresses) GTEST_SKIP() << "addresses are unified";
  const Bytes granule = context.granule();
  ASSERT_VALUE(PhysicalMemory memory, PhysicalMemory::Create(context.shared(1), granule));
  ASSERT_VALUE(AddressRange range, AddressRange::Create(context.shared(0), granule));
  EXPECT_CODE(kInvalidArgument,
              context.device(0).Map(range.address(), granule, Offset(0), memory.handle()));
  EXPECT_OK(range.Close());
}

// Each device's capacity is its own.
KEEL_CONFORMANCE_CASE(Peers, MemoryIsCountedWhereItIs, .devices = 2, .all_devices = true) {
  constexpr Bytes kSize = 256_MiB;
  std::vector<MemoryInfo> before;
  for (int i = 0; i < context.device_count(); ++i) {
    ASSERT_VALUE(const MemoryInfo info, context.device(i).GetMemoryInfo());
    before.push_back(info);
  }
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(kSize, 1));
  for (int i = 0; i < context.device_count(); ++i) {
    ASSERT_VALUE(const MemoryInfo info, context.device(i).GetMemoryInfo());
    const Bytes free = before[static_cast<std::size_t>(i)].free;
    if (i == 1) {
      EXPECT_LE(info.free + kSize, free);
    } else {
      EXPECT_GT(info.free + kSize, free) << "device " << i;
    }
  }
}

}  // namespace
}  // namespace keel::hal::conformance
