// What is HIP's own in its driver, on stand-ins of the versions between which HIP changed. The
// conformance suite, which runs on the same stand-ins, has the contracts.

#include "drivers/hip/hip_driver.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "drivers/hip/abi.h"
#include "keel/hal/device.h"

namespace keel::hip {
namespace {

using ::testing::HasSubstr;

class HipDriverTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    const std::string path =
        std::string(KEEL_TEST_STANDINS "/hip_standin_") + std::to_string(GetParam()) + ".so";
    setenv("KEEL_HIP_LIBRARY", path.c_str(), 1);
    setenv("KEEL_STANDIN", "devices:2,memory:1GiB", 1);
    unsetenv("KEEL_HIP_KERNELS");
    library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
    driver_ = CreateDriver();
    auto opened = driver_->Open(0);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    device_ = *std::move(opened);
  }

  // An entry point of the library, for what a program beside Keel would do.
  template <class Function>
  Function* Find(const char* name) {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }
  int LastError() { return Find<int()>("hipGetLastError")(); }

  void* library_ = nullptr;
  std::unique_ptr<hal::Driver> driver_;
  std::shared_ptr<hal::Device> device_;
};

TEST_P(HipDriverTest, DescribesTheDevice) {
  const hal::DeviceInfo& info = device_->info();
  EXPECT_EQ(info.driver, "hip");
  // Without the features, which a module need not name.
  EXPECT_EQ(info.architecture, GetParam() < 6 ? "gfx90a" : "gfx942");
  EXPECT_EQ(info.identity, "GPU-5eed5eed00000000");
  EXPECT_EQ(info.memory, Bytes(1u << 30));
  EXPECT_EQ(info.numa_node, -1);
}

TEST_P(HipDriverTest, LeavesTheCurrentDeviceAsItWas) {
  ASSERT_EQ(Find<int(int)>("hipSetDevice")(1), 0);
  const auto memory = device_->AllocatePlain(Bytes(4096));
  ASSERT_TRUE(memory.ok()) << memory.status().ToString();
  EXPECT_TRUE(device_->FreePlain(*memory).ok());
  int current = -1;
  ASSERT_EQ(Find<int(int*)>("hipGetDevice")(&current), 0);
  EXPECT_EQ(current, 1);
  ASSERT_EQ(Find<int(int)>("hipSetDevice")(0), 0);
}

TEST_P(HipDriverTest, LeavesNoLastError) {
  EXPECT_EQ(device_->FreePlain(DeviceAddress(4096)).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(LastError(), 0);
  EXPECT_FALSE(device_->AllocatePlain(Bytes(std::uint64_t{1} << 40)).ok());
  EXPECT_EQ(LastError(), 0);
  int data = 0;
  EXPECT_FALSE(device_->GetHostAddress(&data).ok());
  EXPECT_EQ(LastError(), 0);
}

TEST_P(HipDriverTest, AStreamThatDoesNotExistIsNoLoss) {
  const auto status = device_->QueryStream({0x1234560}).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.ToString();
  EXPECT_EQ(status.vendor_code(), abi::kContextIsDestroyed);
  EXPECT_TRUE(device_->Health().ok());
}

TEST_P(HipDriverTest, TheLegacyStreamIsTheNullStream) {
  const auto legacy = device_->GetDefaultStream(hal::DefaultStream::kLegacy);
  ASSERT_TRUE(legacy.ok());
  EXPECT_TRUE(*legacy);
  const auto borrowed = device_->BorrowStream(0);
  ASSERT_TRUE(borrowed.ok()) << borrowed.status().ToString();
  EXPECT_EQ(*borrowed, *legacy);
  EXPECT_TRUE(device_->SynchronizeStream(*legacy, Deadline::Never()).ok());
}

TEST_P(HipDriverTest, BringsNoKernels) {
  EXPECT_TRUE(device_->capabilities().kernels);
  const auto kernels = device_->StandardKernels().status();
  EXPECT_EQ(kernels.code(), StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(kernels.message()), HasSubstr(device_->info().name));
}

TEST_P(HipDriverTest, ValueNodesCameWith6_4) {
  const auto graph = device_->CreateGraph();
  const auto memory = device_->AllocatePlain(Bytes(8));
  ASSERT_TRUE(graph.ok() && memory.ok());
  const auto node = device_->AddNode(*graph, {}, hal::ValueWrite{*memory, 1});
  EXPECT_EQ(node.status().code(), GetParam() < 6 ? StatusCode::kUnimplemented : StatusCode::kOk)
      << node.status().ToString();
  EXPECT_TRUE(device_->DestroyGraph(*graph).ok());
  EXPECT_TRUE(device_->FreePlain(*memory).ok());
}

INSTANTIATE_TEST_SUITE_P(Versions, HipDriverTest, ::testing::Values(5, 6, 7),
                         [](const auto& version) { return "Of" + std::to_string(version.param); });

}  // namespace
}  // namespace keel::hip
