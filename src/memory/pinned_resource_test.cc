#include "keel/memory/pinned_resource.h"

#include <gtest/gtest.h>

#include <map>
#include <new>
#include <string>
#include <vector>

#include "hal/sim_devices_test.h"

namespace keel::memory {
namespace {

using hal::IsOk;

class PinnedResourceTest : public hal::SimDevicesTest {};

TEST_F(PinnedResourceTest, ContainersLiveInPinnedMemory) {
  {
    const auto allocator = std::make_shared<HostAllocator>(device_);
    PinnedResource resource(allocator);
    {
      std::pmr::vector<int> numbers(&resource);
      for (int i = 0; i < 100000; ++i) numbers.push_back(i);
      EXPECT_EQ(numbers[99999], 99999);
      EXPECT_TRUE(IsOk(device_->GetHostAddress(&numbers[50000])));
      std::pmr::map<int, std::pmr::string> names(&resource);
      for (int i = 0; i < 100; ++i) names[i] = std::string(100, 'x');
      EXPECT_TRUE(IsOk(device_->GetHostAddress(names[7].data())));
      void* const nothing = resource.allocate(0);
      EXPECT_NE(nothing, nullptr);
      resource.deallocate(nothing, 0);
      void* const aligned = resource.allocate(100, 4096);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(aligned) % 4096, 0U);
      resource.deallocate(aligned, 100, 4096);
    }
    EXPECT_EQ(allocator->stats().memory.active_requests.current, 0);
    EXPECT_TRUE(resource == PinnedResource(allocator));
    EXPECT_FALSE(resource == PinnedResource(std::make_shared<HostAllocator>(device_)));
    EXPECT_FALSE(resource == *std::pmr::new_delete_resource());
  }
  ExpectNothingLeft();
}

TEST_F(PinnedResourceTest, NoMemoryIsWhatTheStandardSays) {
  PinnedResource resource(
      std::make_shared<HostAllocator>(device_, HostAllocatorOptions{.limit = 1_MiB}));
  EXPECT_THROW(static_cast<void>(resource.allocate(2 << 20)), std::bad_alloc);
  EXPECT_THROW(static_cast<void>(resource.allocate(1, 8192)), std::bad_alloc);
}

}  // namespace
}  // namespace keel::memory
