#include "functions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "keel/hal/stream.h"
#include "keel/memory/process_memory.h"

namespace keel::torch {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// On the stand-in of the vendor's library: a device that PyTorch would call 0, without a GPU.
class FunctionsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("KEEL_CUDA_LIBRARY", KEEL_TEST_STANDIN, 1);
    setenv("KEEL_STANDIN", "devices:2,memory:64MiB", 1);
    unsetenv("KEEL_ALLOC_CONF");
  }

  static memory::DeviceAllocator& Allocator(int device = 0) {
    auto memory = memory::ProcessMemory::Global().For({.driver = "cuda", .ordinal = device});
    if (!memory.ok()) throw std::runtime_error(memory.status().ToString());
    return (*memory)->allocator();
  }

  template <class Call>
  static std::string MessageOf(Call call) {
    try {
      call();
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "nothing was thrown";
  }
};

TEST_F(FunctionsTest, AllocatesAndFreesOnTheDeviceThatIsNamed) {
  void* const first = keel_torch_alloc(1000, 0, nullptr);
  void* const second = keel_torch_alloc(3000, 1, nullptr);
  EXPECT_EQ(Allocator(0).Stats().requested_bytes.all.current, 1000);
  EXPECT_EQ(Allocator(1).Stats().requested_bytes.all.current, 3000);
  keel_torch_free(first, 1000, 0, nullptr);
  EXPECT_EQ(Allocator(0).Stats().requested_bytes.all.current, 0);
  EXPECT_EQ(keel_torch_alloc(1000, 0, nullptr), first);  // used again
  keel_torch_free(first, 1000, 0, nullptr);
  keel_torch_free(second, 3000, 1, nullptr);
  EXPECT_EQ(keel_torch_alloc(0, 0, nullptr), nullptr);
  keel_torch_free(nullptr, 0, 0, nullptr);
}

TEST_F(FunctionsTest, AFreeOfSomethingElseChangesNothing) {
  void* const block = keel_torch_alloc(1000, 0, nullptr);
  keel_torch_free(static_cast<char*>(block) + 512, 1000, 0, nullptr);
  EXPECT_EQ(Allocator().Stats().requested_bytes.all.current, 1000);
  keel_torch_free(block, 1000, 0, nullptr);
}

TEST_F(FunctionsTest, WhatCannotBeHadIsThrown) {
  EXPECT_THAT(MessageOf([] { keel_torch_alloc(1 << 30, 0, nullptr); }),
              StartsWith("CUDA out of memory. RESOURCE_EXHAUSTED"));
  EXPECT_THAT(MessageOf([] { keel_torch_alloc(1000, 7, nullptr); }), HasSubstr("cuda:7"));
  EXPECT_EQ(keel_torch_try_alloc(1 << 30, 0, nullptr), nullptr);
  EXPECT_THAT(MessageOf([] { keel_torch_try_alloc(1000, 7, nullptr); }), HasSubstr("cuda:7"));
  void* const block = keel_torch_try_alloc(1000, 0, nullptr);
  EXPECT_NE(block, nullptr);
  keel_torch_free(block, 1000, 0, nullptr);
  EXPECT_THAT(MessageOf([] { keel_torch_set_fraction(2, 0); }), HasSubstr("INVALID_ARGUMENT"));
}

TEST_F(FunctionsTest, ABlockThatAnotherStreamUsesIsKept) {
  auto memory = memory::ProcessMemory::Global().For({.driver = "cuda", .ordinal = 0});
  ASSERT_TRUE(memory.ok()) << memory.status().ToString();
  auto other = hal::Stream::Create((*memory)->device());
  ASSERT_TRUE(other.ok()) << other.status().ToString();
  void* const native = reinterpret_cast<void*>(other->get().value);  // NOLINT
  void* const block = keel_torch_alloc(1000, 0, nullptr);
  keel_torch_record_stream(block, native);
  keel_torch_free(block, 1000, 0, nullptr);
  EXPECT_EQ(Allocator().Stats().pending_frees.allocated, 1);
  keel_torch_record_stream(nullptr, native);
  EXPECT_THAT(MessageOf([&] { keel_torch_record_stream(block, native); }),
              HasSubstr("INVALID_ARGUMENT"));
  keel_torch_empty_cache();
  EXPECT_EQ(Allocator().reserved().count(), 0U);
  EXPECT_TRUE(Allocator().ForgetStream(other->get()).ok());
}

TEST_F(FunctionsTest, TheFractionIsALimit) {
  keel_torch_set_fraction(0.5, 0);
  EXPECT_EQ(Allocator().limit(), 32_MiB);
  EXPECT_THAT(MessageOf([] { keel_torch_alloc(48 << 20, 0, nullptr); }),
              StartsWith("CUDA out of memory. "));
  keel_torch_set_fraction(1, 0);
  void* const block = keel_torch_alloc(48 << 20, 0, nullptr);
  EXPECT_NE(block, nullptr);
  keel_torch_free(block, 48 << 20, 0, nullptr);
}

}  // namespace
}  // namespace keel::torch
