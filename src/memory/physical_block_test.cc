#include "keel/memory/physical_block.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>

#include "hal/sim_devices_test.h"
#include "keel/hal/stream.h"

namespace keel::memory {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

using hal::IsOk;
using hal::Need;

class PhysicalBlockTest : public ::testing::Test {
 protected:
  PhysicalBlockTest()
      : driver_(Need(sim::CreateSimDriver({.devices = 1, .memory = 64_MiB, .arena = 8_GiB}))),
        device_(hal::Instrumented(Need(driver_->Open(0)))),
        stream_(Need(hal::Stream::Create(device_))),
        allocator_(Need(DeviceAllocator::Create(device_))) {}

  PhysicalBlock Block(Bytes size = 2_MiB) {
    return Need(PhysicalBlock::Create(device_, *allocator_, size));
  }
  Status Fill(DeviceAddress address, std::uint32_t value) {
    return device_->EnqueueFill(stream_.get(),
                                {.destination = address, .value = value, .width = 1, .count = 64});
  }

  std::unique_ptr<hal::Driver> driver_;
  std::shared_ptr<hal::InstrumentedDevice> device_;
  hal::Stream stream_;
  std::unique_ptr<DeviceAllocator> allocator_;
};

TEST_F(PhysicalBlockTest, IsTheSameMemoryWhereverItIsMapped) {
  PhysicalBlock block = Block();
  const hal::AddressRange range = Need(hal::AddressRange::Create(device_, block.size()));
  const hal::AccessGrant grant{.device = device_->id(), .access = hal::Access::kReadWrite};
  std::shared_ptr<const hal::PhysicalMemory> memory = block.memory();
  EXPECT_EQ(memory, block.memory());
  hal::Mapping mapping = Need(hal::Mapping::Create(range, Offset(0), *memory, {&grant, 1}));
  ASSERT_NE(mapping.address(), block.address());
  ASSERT_TRUE(IsOk(Fill(block.address(), 5)));
  // The address goes; the memory stays for who has it.
  ASSERT_TRUE(IsOk(block.Close(Deadline::Never())));
  EXPECT_FALSE(block);
  EXPECT_EQ(block.memory(), nullptr);
  EXPECT_EQ(allocator_->reserved(), 2_MiB);
  hal::HostMemory host = Need(hal::HostMemory::Create(device_, 64_B));
  ASSERT_TRUE(IsOk(device_->EnqueueCopy(
      stream_.get(), {.destination = hal::Location::Host(host.data()),
                      .source = hal::Location::On(device_->id(), mapping.address()),
                      .size = host.size()})));
  ASSERT_TRUE(IsOk(stream_.Synchronize(Deadline::Never())));
  EXPECT_THAT(std::span(static_cast<const char*>(host.data()), 64), Each(5));
  ASSERT_TRUE(IsOk(host.Close()));
  ASSERT_TRUE(IsOk(mapping.Close()));
  memory.reset();
  EXPECT_EQ(allocator_->reserved(), 0_B);
  EXPECT_TRUE(IsOk(block.Close(Deadline::Never()))) << "again";
}

TEST_F(PhysicalBlockTest, TheAddressStaysForWorkThatRuns) {
  PhysicalBlock block = Block();
  sim::Controls& controls = *sim::FindControls(*device_);
  ASSERT_TRUE(IsOk(controls.HoldStream(stream_.get())));
  ASSERT_TRUE(IsOk(Fill(block.address(), 5)));
  EXPECT_EQ(block.Close(Deadline::Now()).code(), StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(block) << "nothing changed";
  ASSERT_TRUE(IsOk(controls.ReleaseStream(stream_.get())));
  EXPECT_TRUE(IsOk(block.Close(Deadline::Never())));
  EXPECT_TRUE(IsOk(device_->Health()));
  const std::uint64_t waits = device_->calls(hal::Primitive::kSynchronize);
  {
    const PhysicalBlock dropped = Block();
    ASSERT_TRUE(IsOk(Fill(dropped.address(), 5)));
  }
  EXPECT_EQ(device_->calls(hal::Primitive::kSynchronize), waits + 1) << "its end waits too";
  EXPECT_TRUE(IsOk(stream_.Synchronize(Deadline::Never())));
  EXPECT_TRUE(IsOk(device_->Health()));
  EXPECT_EQ(allocator_->reserved(), 0_B);
}

TEST_F(PhysicalBlockTest, OtherSizesThanWholeHandlesAreRefused) {
  for (const Bytes size : {0_B, 1000_B, 3_MiB}) {
    const Status status = PhysicalBlock::Create(device_, *allocator_, size).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("in multiples of the device's granularity, 2 MiB"));
  }
}

TEST_F(PhysicalBlockTest, AFailureGivesBackWhatCameBefore) {
  for (const hal::Primitive each : {hal::Primitive::kCreateMemory, hal::Primitive::kReserveAddress,
                                    hal::Primitive::kMap, hal::Primitive::kSetAccess}) {
    device_->FailNth(each, 1, Internal("injected"));
    EXPECT_EQ(PhysicalBlock::Create(device_, *allocator_, 2_MiB).status().code(),
              StatusCode::kInternal);
    EXPECT_EQ(allocator_->reserved(), 0_B);
    EXPECT_EQ(device_->Live().size(), 1u) << "the stream";
  }
}

TEST_F(PhysicalBlockTest, IsClosedOnALostDeviceToo) {
  PhysicalBlock block = Block();
  const PhysicalBlock dropped = Block();
  sim::FindControls(*device_)->Lose("for a test");
  EXPECT_TRUE(IsOk(block.Close(Deadline::Never())));
}

}  // namespace
}  // namespace keel::memory
