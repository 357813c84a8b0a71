// What is slow shows as a range in profilers, and what is fast does not.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/recorded_ranges_test.h"
#include "keel/memory/process_memory.h"
#include "memory/device_allocator_test.h"

namespace keel::memory {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SlowPathsTest : public DeviceAllocatorFixture {
 protected:
  void TearDown() override {
    EXPECT_EQ(ranges_.depth(), 0);
    DeviceAllocatorFixture::TearDown();
  }
  RecordedRanges ranges_;
};

TEST_F(SlowPathsTest, MemoryThatIsTakenAndGivenBack) {
  const auto allocator = Make({});
  const DeviceAddress block = Need(allocator->Allocate(4_MiB, s1()));
  EXPECT_THAT(ranges_.Take(), ElementsAre("take memory", "map memory"));
  EXPECT_TRUE(IsOk(allocator->Free(block)));
  const DeviceAddress again = Need(allocator->Allocate(4_MiB, s1()));
  EXPECT_TRUE(IsOk(allocator->Free(again)));
  EXPECT_THAT(ranges_.Take(), IsEmpty());
  EXPECT_TRUE(IsOk(allocator->EmptyCache()));
  EXPECT_THAT(ranges_.Take(),
              ElementsAre("trim", " wait for a stream", " give memory back", "  unmap memory"));
}

TEST_F(SlowPathsTest, PlainMemory) {
  const auto allocator = Make({.expandable_segments = false});
  const DeviceAddress block = Need(allocator->Allocate(20_MiB, s1()));
  EXPECT_TRUE(IsOk(allocator->Free(block)));
  EXPECT_THAT(ranges_.Take(), ElementsAre("take memory"));
  EXPECT_TRUE(IsOk(allocator->EmptyCache()));
  EXPECT_THAT(ranges_.Take(), Contains(" give memory back"));
}

TEST_F(SlowPathsTest, WaitingForAStreamBecauseMemoryIsShort) {
  const auto allocator = Make({});
  HeldStream held = Hold(s1());
  const DeviceAddress block = Need(allocator->Allocate(800_MiB, s1()));
  EXPECT_TRUE(IsOk(Fill(block, 1_MiB, 1, s1())));
  EXPECT_TRUE(IsOk(allocator->Free(block)));
  ranges_.Take();
  // The stream goes on once somebody waits for it.
  ranges_.OnPush([&](const std::string& name) {
    if (name == "wait for a stream") held.Release();
  });
  const DeviceAddress other = Need(allocator->Allocate(800_MiB, s2()));
  const std::vector<std::string> made = ranges_.Take();
  EXPECT_THAT(made, Contains("memory is short"));
  EXPECT_THAT(made, Contains(" wait for a stream"));
  EXPECT_TRUE(IsOk(allocator->Free(other)));
}

TEST_F(SlowPathsTest, HostMemoryAndStagedCopies) {
  const auto memory = Need(DeviceMemory::Create(device_, {}));
  void* const block = Need(memory->host().Allocate(3_MiB));
  EXPECT_THAT(ranges_.Take(), ElementsAre("pin host memory"));
  EXPECT_TRUE(IsOk(memory->host().Free(block)));
  EXPECT_THAT(ranges_.Take(), IsEmpty());
  EXPECT_TRUE(IsOk(memory->host().EmptyCache()));
  EXPECT_THAT(ranges_.Take(), ElementsAre("trim host memory", " unpin host memory"));

  const DeviceAddress address = Need(memory->allocator().Allocate(4_MiB, s1()));
  std::vector<char> bytes(4 << 20);
  ranges_.Take();
  EXPECT_TRUE(IsOk(memory->CopyToDevice(s1(), address, bytes.data(), 4_MiB)));
  EXPECT_THAT(ranges_.Take(), Contains("staged copy to the device"));
  EXPECT_TRUE(IsOk(memory->CopyToHost(s1(), bytes.data(), address, 4_MiB)));
  EXPECT_THAT(ranges_.Take(), Contains("staged copy to the host"));
  EXPECT_TRUE(IsOk(memory->allocator().Free(address)));
}

}  // namespace
}  // namespace keel::memory
