// What the tests of the debug mode share: programs that write where they must not.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "keel/hal/module.h"
#include "memory/debug_memory.h"
#include "memory/device_allocator_test.h"

namespace keel::memory {

using Debug = AllocatorConfig::Debug;

// Writes one byte wherever it is told to, as a kernel with a wrong index does.
inline void PokeKernel(sim::KernelContext& context) {
  context.Buffer<std::uint8_t>(0)[0] = context.Value<std::uint8_t>(1);
}
inline constexpr sim::KernelParameter kPokeParameters[] = {
    sim::KernelParameter::Out(), sim::KernelParameter::Value<std::uint8_t>()};
inline constexpr const char* kPokeSet = "debug-memory-test";

inline hal::ModuleSource PokeModule() {
  static const bool registered = [] {
    const sim::KernelDefinition kernels[] = {{"poke", &PokeKernel, kPokeParameters}};
    return sim::RegisterKernels(kPokeSet, kernels).ok();
  }();
  EXPECT_TRUE(registered);
  return hal::ModuleSource::Registered(kPokeSet);
}

class DebugMemoryTest : public DeviceAllocatorTest {
 protected:
  DebugMemoryTest() : poke_(Need(module_.Find("poke"))) {}

  AllocatorConfig Config(Debug debug) const {
    AllocatorConfig config = DeviceAllocatorTest::Config();
    config.debug = debug;
    return config;
  }
  std::unique_ptr<DeviceAllocator> Make(Debug debug) {
    return DeviceAllocatorTest::Make(Config(debug));
  }
  // At an offset from the block, which may be outside of it.
  void Poke(DeviceAddress block, std::int64_t offset, std::uint8_t value,
            hal::StreamHandle stream) {
    const DeviceAddress at(block.value() + static_cast<std::uint64_t>(offset));
    const hal::KernelArg args[] = {hal::KernelArg::Out(at, 1_B), hal::KernelArg::Value(value)};
    ASSERT_TRUE(IsOk(inner_->LaunchKernel(stream, {.kernel = poke_, .args = args})));
  }

  hal::Module module_ = Need(hal::Module::Load(inner_, PokeModule()));
  hal::KernelHandle poke_;
};

inline testing::Matcher<const Status&> Finds(const testing::Matcher<std::string>& message) {
  return testing::AllOf(testing::Property(&Status::code, StatusCode::kOutOfRange),
                        testing::Property(&Status::ToString, message));
}

}  // namespace keel::memory
