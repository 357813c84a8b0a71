#include "keel/memory/whole_memory.h"

#include <gtest/gtest.h>

#include "hal/sim_devices_test.h"
#include "keel/hal/stream.h"

namespace keel::memory {
namespace {

using hal::IsOk;
using hal::Need;

class WholeMemoryTest : public ::testing::Test {
 protected:
  WholeMemoryTest()
      : driver_(Need(sim::CreateSimDriver({.devices = 1, .memory = 64_MiB, .arena = 8_GiB}))),
        device_(hal::Instrumented(Need(driver_->Open(0)))),
        stream_(Need(hal::Stream::Create(device_))),
        allocator_(Need(DeviceAllocator::Create(device_))) {}

  std::int64_t Tagged() { return allocator_->Stats().tag_bytes["whole"]; }

  std::unique_ptr<hal::Driver> driver_;
  std::shared_ptr<hal::InstrumentedDevice> device_;
  hal::Stream stream_;
  std::unique_ptr<DeviceAllocator> allocator_;
  const telemetry::TagId tag_ = telemetry::InternTag("whole");
};

TEST_F(WholeMemoryTest, IsCountedByTheAllocatorWhileItIsThere) {
  const Bytes granule = device_->capabilities().granularity.minimum;
  {
    WholeMemory whole = Need(WholeMemory::Create(*allocator_, granule + 1_B, tag_));
    EXPECT_EQ(whole.size(), 2 * granule);
    EXPECT_EQ(whole.memory().size(), 2 * granule);
    EXPECT_EQ(allocator_->reserved(), 2 * granule);
    EXPECT_EQ(allocator_->Stats().reserved_bytes.all.current,
              static_cast<std::int64_t>(2 * granule.count()));
    EXPECT_EQ(Tagged(), static_cast<std::int64_t>(2 * granule.count()));
    EXPECT_EQ(allocator_->Check(), "");
    const WholeMemory moved = std::move(whole);
    EXPECT_EQ(allocator_->reserved(), 2 * granule);
  }
  EXPECT_EQ(allocator_->reserved(), 0_B);
  EXPECT_EQ(allocator_->Stats().reserved_bytes.all.current, 0);
  EXPECT_EQ(Tagged(), 0);
  EXPECT_EQ(allocator_->Check(), "");
  EXPECT_EQ(device_->Live().size(), 1u) << "the stream";
}

TEST_F(WholeMemoryTest, IsTakenUnderTheLimitAndFreeMemoryMakesRoom) {
  allocator_->SetLimit(16_MiB);
  EXPECT_EQ(WholeMemory::Create(*allocator_, 18_MiB).status().code(),
            StatusCode::kResourceExhausted);
  EXPECT_EQ(allocator_->reserved(), 0_B);
  // Freed, and kept for the next who asks.
  const DeviceAddress block = Need(allocator_->Allocate(12_MiB, stream_.get()));
  EXPECT_EQ(WholeMemory::Create(*allocator_, 8_MiB).status().code(), StatusCode::kResourceExhausted)
      << "it is in use";
  ASSERT_TRUE(IsOk(allocator_->Free(block)));
  const WholeMemory whole = Need(WholeMemory::Create(*allocator_, 8_MiB));
  EXPECT_LE(allocator_->reserved(), 16_MiB);
  EXPECT_EQ(allocator_->Allocate(12_MiB, stream_.get()).status().code(),
            StatusCode::kResourceExhausted)
      << "the allocator knows what is gone";
}

TEST_F(WholeMemoryTest, CannotBeClosedUnderAMapping) {
  WholeMemory whole = Need(WholeMemory::Create(*allocator_, 2_MiB, tag_));
  const hal::AddressRange range = Need(hal::AddressRange::Create(device_, whole.size()));
  hal::Mapping mapping = Need(hal::Mapping::Create(range, Offset(0), whole.memory()));
  EXPECT_EQ(whole.Close().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(allocator_->reserved(), 2_MiB);
  ASSERT_TRUE(IsOk(mapping.Close()));
  EXPECT_TRUE(IsOk(whole.Close()));
  EXPECT_TRUE(IsOk(whole.Close()));
  EXPECT_EQ(allocator_->reserved(), 0_B);
}

TEST_F(WholeMemoryTest, ADeviceThatRefusesLeavesTheBooksAsTheyWere) {
  device_->FailNth(hal::Primitive::kCreateMemory, 1, Internal("injected"));
  EXPECT_EQ(WholeMemory::Create(*allocator_, 2_MiB, tag_).status().code(), StatusCode::kInternal);
  EXPECT_EQ(allocator_->reserved(), 0_B);
  EXPECT_EQ(Tagged(), 0);
  EXPECT_EQ(WholeMemory::Create(*allocator_, 0_B).status().code(), StatusCode::kInvalidArgument);
}

// The device is full of what the allocator keeps for nobody.
TEST_F(WholeMemoryTest, ADeviceThatIsFullGetsWhatIsFreeBackFirst) {
  ASSERT_TRUE(IsOk(allocator_->Free(Need(allocator_->Allocate(40_MiB, stream_.get())))));
  allocator_->SetLimit(1_GiB);
  const WholeMemory whole = Need(WholeMemory::Create(*allocator_, 40_MiB, tag_));
  EXPECT_EQ(allocator_->reserved(), 40_MiB);
}

}  // namespace
}  // namespace keel::memory
