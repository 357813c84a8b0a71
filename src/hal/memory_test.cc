#include "keel/hal/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "hal/sim_devices_test.h"

namespace keel::hal {
namespace {

using ::testing::HasSubstr;

class MemoryTest : public SimDevicesTest {
 protected:
  PhysicalMemory NewMemory(Bytes size = kPage) {
    return Need(PhysicalMemory::Create(device_, size));
  }
  AddressRange NewRange(Bytes size) { return Need(AddressRange::Create(device_, size)); }
  std::vector<AccessGrant> Own() const { return {{device_->id(), Access::kReadWrite}}; }
  std::uint64_t Unmaps() const { return device_->calls(Primitive::kUnmap); }
};

TEST_F(MemoryTest, AMappingIsTheWholeMemoryAtItsPlace) {
  const PhysicalMemory memory = NewMemory();
  const AddressRange range = NewRange(4 * kPage);
  const Mapping mapping = Need(Mapping::Create(range, Offset(kPage.count()), memory, Own()));
  EXPECT_EQ(mapping.address(), range.address() + kPage);
  EXPECT_EQ(mapping.size(), kPage);
  EXPECT_EQ(Need(device_->GetAccess(mapping.address(), device_->id())), Access::kReadWrite);
  const AccessGrant read[] = {{device_->id(), Access::kRead}};
  EXPECT_TRUE(IsOk(mapping.SetAccess(read)));
  EXPECT_EQ(Need(device_->GetAccess(mapping.address(), device_->id())), Access::kRead);
}

TEST_F(MemoryTest, OwnersMayBeDestroyedInAnyOrder) {
  for (const char* order : {"mra", "mar", "rma", "ram", "amr", "arm"}) {
    std::optional<PhysicalMemory> memory = NewMemory();
    std::optional<AddressRange> range = NewRange(kPage);
    std::optional<Mapping> mapping = Need(Mapping::Create(*range, Offset(0), *memory, Own()));
    for (const char* c = order; *c != '\0'; ++c) {
      if (*c == 'm') memory.reset();
      if (*c == 'r') range.reset();
      if (*c == 'a') mapping.reset();
    }
    SCOPED_TRACE(order);
    ExpectNothingLeft();
  }
}

TEST_F(MemoryTest, WhatAMappingUsesCannotBeClosed) {
  PhysicalMemory memory = NewMemory();
  AddressRange range = NewRange(kPage);
  Mapping mapping = Need(Mapping::Create(range, Offset(0), memory, Own()));
  EXPECT_EQ(memory.Close().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(range.Close().code(), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(memory);
  EXPECT_TRUE(range);
  EXPECT_EQ(Need(device_->GetAccess(mapping.address(), device_->id())), Access::kReadWrite);
  EXPECT_TRUE(IsOk(mapping.Close()));
  EXPECT_TRUE(IsOk(range.Close()));
  EXPECT_TRUE(IsOk(memory.Close()));
  EXPECT_TRUE(IsOk(memory.Close()));
  ExpectNothingLeft();
}

// A10
TEST_F(MemoryTest, UnmapHappensExactlyOnce) {
  const PhysicalMemory memory = NewMemory();
  const AddressRange range = NewRange(2 * kPage);
  {
    Mapping closed = Need(Mapping::Create(range, Offset(0), memory, Own()));
    EXPECT_TRUE(IsOk(closed.Close()));
    EXPECT_TRUE(IsOk(closed.Close()));
  }
  EXPECT_EQ(Unmaps(), 1U);
  {
    Mapping first = Need(Mapping::Create(range, Offset(0), memory, Own()));
    Mapping second = std::move(first);
    Mapping third;
    third = std::move(second);
    EXPECT_TRUE(third);
  }
  EXPECT_EQ(Unmaps(), 2U);
  {
    Mapping one = Need(Mapping::Create(range, Offset(0), memory, Own()));
    one = Need(Mapping::Create(range, Offset(kPage.count()), memory, Own()));
    EXPECT_EQ(Unmaps(), 3U);
    Mapping& alias = one;
    one = std::move(alias);
    EXPECT_TRUE(one);
  }
  EXPECT_EQ(Unmaps(), 4U);
  device_->FailNth(Primitive::kSetAccess, 1, Internal("no"));
  EXPECT_FALSE(Mapping::Create(range, Offset(0), memory, Own()).ok());
  EXPECT_EQ(Unmaps(), 5U);
  // Every one of them was carried out: a second owner would have failed and be on the list.
  EXPECT_TRUE(device_->retries().empty());
}

// A10
TEST_F(MemoryTest, FailedMultiStepCreationGivesBackEarlierSteps) {
  for (const Primitive step : {Primitive::kCreateMemory, Primitive::kReserveAddress,
                               Primitive::kMap, Primitive::kSetAccess}) {
    SCOPED_TRACE(PrimitiveName(step));
    device_->FailNth(step, 1, ResourceExhausted("injected"));
    const Result<MappedMemory> mapped = MappedMemory::Create(device_, kPage);
    EXPECT_EQ(mapped.status().ToString(), "RESOURCE_EXHAUSTED: injected");
    EXPECT_EQ(device_->failed(), step);
    ExpectNothingLeft();
    device_->ClearRules();
  }
  EXPECT_TRUE(IsOk(MappedMemory::Create(device_, kPage)));
  ExpectNothingLeft();
}

TEST_F(MemoryTest, AFailedUnmapKeepsRangeAndMemoryUntilItIsRetried) {
  {
    const MappedMemory mapped = Need(MappedMemory::Create(device_, kPage));
    device_->FailNth(Primitive::kUnmap, 1, Internal("not now"));
  }
  ASSERT_EQ(device_->retries().size(), 1U);
  EXPECT_THAT(device_->retries().List().front(), HasSubstr("Unmap of 2 MiB at 0x"));
  EXPECT_EQ(device_->calls(Primitive::kReleaseMemory), 0U);
  EXPECT_EQ(device_->calls(Primitive::kFreeAddress), 0U);
  EXPECT_EQ(device_->Live().size(), 3U) << Live();
  EXPECT_TRUE(IsOk(device_->retries().Drain()));
  ExpectNothingLeft();
}

TEST_F(MemoryTest, WhatARetriedUnmapGivesBackMayFailAndIsRetriedToo) {
  {
    const MappedMemory mapped = Need(MappedMemory::Create(device_, kPage));
    device_->FailNth(Primitive::kUnmap, 1, Internal("not now"));
  }
  device_->FailNth(Primitive::kReleaseMemory, 1, Internal("not now"));
  device_->FailNth(Primitive::kFreeAddress, 1, Internal("not now"));
  EXPECT_TRUE(IsOk(device_->retries().Drain()));
  EXPECT_EQ(device_->calls(Primitive::kReleaseMemory), 2U);
  EXPECT_EQ(device_->calls(Primitive::kFreeAddress), 2U);
  ExpectNothingLeft();
}

TEST_F(MemoryTest, MemoryUnderAPendingUnmapCannotBeClosedUntilTheRetrySucceeds) {
  PhysicalMemory memory = NewMemory();
  AddressRange range = NewRange(kPage);
  {
    const Mapping mapping = Need(Mapping::Create(range, Offset(0), memory, Own()));
    device_->FailNth(Primitive::kUnmap, 1, Internal("first"));
  }
  device_->FailNth(Primitive::kUnmap, 1, Internal("second"));
  EXPECT_EQ(memory.Close().code(), StatusCode::kFailedPrecondition);
  // Close drains first, and now the unmap succeeds.
  EXPECT_TRUE(IsOk(memory.Close()));
  EXPECT_TRUE(IsOk(range.Close()));
  ExpectNothingLeft();
}

TEST_F(MemoryTest, FailedClosesStillOwn) {
  PhysicalMemory memory = NewMemory();
  AddressRange range = NewRange(kPage);
  Mapping mapping = Need(Mapping::Create(range, Offset(0), memory, Own()));
  for (const Primitive primitive :
       {Primitive::kUnmap, Primitive::kFreeAddress, Primitive::kReleaseMemory}) {
    device_->FailNth(primitive, 1, Internal("no"));
  }
  EXPECT_FALSE(mapping.Close().ok());
  EXPECT_TRUE(mapping);
  EXPECT_TRUE(IsOk(mapping.Close()));
  EXPECT_FALSE(range.Close().ok());
  EXPECT_TRUE(range);
  EXPECT_TRUE(IsOk(range.Close()));
  EXPECT_FALSE(memory.Close().ok());
  EXPECT_TRUE(memory);
  EXPECT_TRUE(IsOk(memory.Close()));
  ExpectNothingLeft();
}

TEST_F(MemoryTest, MappedMemoryClosesWhatItCanAndTheRestLater) {
  MappedMemory mapped = Need(MappedMemory::Create(device_, 3_MiB));
  EXPECT_EQ(mapped.size(), 4_MiB);
  device_->FailNth(Primitive::kUnmap, 1, Internal("unmap"));
  EXPECT_EQ(mapped.Close().message(), "unmap");
  EXPECT_TRUE(mapped);
  EXPECT_EQ(device_->Live().size(), 3U);
  device_->FailNth(Primitive::kFreeAddress, 1, Internal("range"));
  EXPECT_EQ(mapped.Close().message(), "range");
  EXPECT_EQ(device_->Live().size(), 1U) << Live();
  EXPECT_TRUE(IsOk(mapped.Close()));
  EXPECT_TRUE(IsOk(mapped.Close()));
  ExpectNothingLeft();
}

TEST_F(MemoryTest, AssignmentGivesBackWhatWasOwned) {
  MappedMemory mapped = Need(MappedMemory::Create(device_, kPage));
  mapped = Need(MappedMemory::Create(device_, 2 * kPage));
  EXPECT_EQ(controls().used(), 2 * kPage);
  mapped = MappedMemory();
  ExpectNothingLeft();

  PhysicalMemory memory = NewMemory();
  memory = NewMemory(2 * kPage);
  EXPECT_EQ(memory.size(), 2 * kPage);
  EXPECT_EQ(controls().used(), 2 * kPage);
  AddressRange range = NewRange(kPage);
  range = NewRange(2 * kPage);
  EXPECT_EQ(range.size(), 2 * kPage);
  EXPECT_EQ(device_->Live().size(), 2U) << Live();
  memory = PhysicalMemory();
  range = AddressRange();
  ExpectNothingLeft();
}

// The owner's last reference to its device goes with the assignment: the old handle must go first.
TEST_F(MemoryTest, AssignmentGivesBackBeforeItLetsGoOfTheDevice) {
  PhysicalMemory memory = NewMemory();
  AddressRange range = NewRange(kPage);
  Mapping mapping = Need(Mapping::Create(range, Offset(0), memory, Own()));
  const std::weak_ptr<Device> closed = device_;
  device_ = nullptr;
  mapping = Mapping();
  range = AddressRange();
  memory = PhysicalMemory();
  EXPECT_TRUE(closed.expired());
  EXPECT_EQ(controls().used(), 0_B);
}

TEST_F(MemoryTest, APlaceOutsideTheRangeIsRefused) {
  const PhysicalMemory memory = NewMemory(2 * kPage);
  const AddressRange range = NewRange(2 * kPage);
  const AddressRange neighbour =
      Need(AddressRange::Create(device_, 2 * kPage, 0_B, range.address() + range.size()));
  for (const std::uint64_t at : {kPage.count(), 2 * kPage.count(), ~std::uint64_t{0}}) {
    const Result<Mapping> mapping = Mapping::Create(range, Offset(at), memory);
    EXPECT_EQ(mapping.status().code(), StatusCode::kInvalidArgument) << at;
  }
  const AddressRange small = NewRange(kPage);
  EXPECT_FALSE(Mapping::Create(small, Offset(0), memory).ok());
  EXPECT_FALSE(Mapping::Create(AddressRange(), Offset(0), memory).ok());
  EXPECT_FALSE(Mapping::Create(range, Offset(0), PhysicalMemory()).ok());
  EXPECT_EQ(device_->calls(Primitive::kMap), 0U);
}

TEST_F(MemoryTest, ImportedMemoryIsTheSameMemory) {
  const PhysicalMemory memory = Need(PhysicalMemory::Create(device_, kPage, {.exportable = true}));
  const UniqueFd descriptor = Need(memory.Export());
  {
    const PhysicalMemory imported = Need(PhysicalMemory::Import(device_, descriptor.get(), kPage));
    EXPECT_EQ(imported.size(), kPage);
    const AddressRange range = NewRange(kPage);
    EXPECT_TRUE(IsOk(Mapping::Create(range, Offset(0), imported, Own())));
  }
  EXPECT_EQ(device_->Live().size(), 1U) << Live();
  EXPECT_EQ(PhysicalMemory().Export().status().code(), StatusCode::kInvalidArgument);
}

// The mapping keeps the device that the memory came from, not only its own.
TEST_F(MemoryTest, AMappingKeepsThePeerOpenWhoseMemoryItMaps) {
  const std::weak_ptr<Device> watched = peer_;
  const AddressRange range = NewRange(kPage);
  PhysicalMemory memory = Need(PhysicalMemory::Create(peer_, kPage));
  Mapping mapping = Need(Mapping::Create(range, Offset(0), memory, Own()));
  memory = PhysicalMemory();
  peer_ = nullptr;
  EXPECT_FALSE(watched.expired());
  mapping = Mapping();
  EXPECT_TRUE(watched.expired());
}

TEST_F(MemoryTest, ARetriedUnmapOfAPeersMemoryDoesNotKeepThePeerOpen) {
  const std::weak_ptr<Device> watched = peer_;
  const AddressRange range = NewRange(kPage);
  {
    const PhysicalMemory memory = Need(PhysicalMemory::Create(peer_, kPage));
    const Mapping mapping = Need(Mapping::Create(range, Offset(0), memory, Own()));
    device_->FailNth(Primitive::kUnmap, 1, Internal("not now"));
  }
  EXPECT_EQ(device_->retries().size(), 1U);
  EXPECT_TRUE(peer_->retries().empty());
  EXPECT_TRUE(IsOk(device_->retries().Drain()));
  EXPECT_EQ(sim::FindControls(*peer_)->used(), 0_B);
  peer_ = nullptr;
  EXPECT_TRUE(watched.expired());
}

TEST_F(MemoryTest, GrantsLeaveOutDevicesThatCannotHaveAccess) {
  const auto ids = [](const std::vector<AccessGrant>& grants) {
    std::vector<DeviceId> list;
    for (const AccessGrant& grant : grants) {
      EXPECT_EQ(grant.access, Access::kReadWrite);
      list.push_back(grant.device);
    }
    return list;
  };
  Device* const all[] = {device_.get(), peer_.get(), peer_.get()};
  EXPECT_EQ(ids(Need(GrantsForPeers(*device_, all))),
            (std::vector<DeviceId>{device_->id(), peer_->id()}));
  ASSERT_TRUE(IsOk(sim::FindControls(*peer_)->SetPeer(device_->id(), false)));
  EXPECT_EQ(ids(Need(GrantsForPeers(*device_, all))), std::vector<DeviceId>{device_->id()});
  // The other way round it still can.
  EXPECT_EQ(ids(Need(GrantsForPeers(*peer_, all))),
            (std::vector<DeviceId>{peer_->id(), device_->id()}));
  device_->FailNth(Primitive::kCanAccessPeer, 1, Internal("no"));
  EXPECT_FALSE(GrantsForPeers(*peer_, all).ok());
}

TEST_F(MemoryTest, SizesThatCannotBeRoundedAreRefused) {
  EXPECT_EQ(MappedMemory::Create(device_, Bytes(~std::uint64_t{0})).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_FALSE(MappedMemory::Create(device_, 0_B).ok());
  ExpectNothingLeft();
}

}  // namespace
}  // namespace keel::hal
