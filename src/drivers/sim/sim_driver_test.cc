#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "keel/drivers/sim.h"
#include "keel/hal/driver.h"
#include "keel/hal/instrumented.h"

namespace keel::sim {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(std::string_view text) {
  const auto config = ParseSimConfig("KEEL_SIM", text);
  EXPECT_FALSE(config.ok()) << text;
  EXPECT_EQ(config.status().code(), StatusCode::kInvalidArgument);
  return std::string(config.status().message());
}

TEST(SimConfigTest, ReadsEveryKey) {
  const auto config = ParseSimConfig(
      "KEEL_SIM",
      "devices:4,memory:80GiB,granularity:64KiB,unified:0,peers:none,arena:1TiB,mappings:100,"
      "seed:7,delay:50");
  ASSERT_TRUE(config.ok()) << config.status().ToString();
  EXPECT_EQ(config->devices, 4);
  EXPECT_EQ(config->memory, 80_GiB);
  EXPECT_EQ(config->granularity, 64_KiB);
  EXPECT_FALSE(config->unified);
  EXPECT_FALSE(config->peers);
  EXPECT_EQ(config->arena, 1_TiB);
  EXPECT_EQ(config->mappings, 100);
  EXPECT_EQ(config->seed, 7u);
  EXPECT_EQ(config->delay_us, 50);
}

TEST(SimConfigTest, NamesTheMistake) {
  EXPECT_THAT(ErrorOf("memroy:1GiB"), HasSubstr("memroy"));
  EXPECT_THAT(ErrorOf("devices:0"), HasSubstr("devices"));
  EXPECT_THAT(ErrorOf("devices:65"), HasSubstr("devices"));
  EXPECT_THAT(ErrorOf("granularity:3MiB"), HasSubstr("granularity"));
  EXPECT_THAT(ErrorOf("memory:1KiB"), HasSubstr("memory"));
  EXPECT_THAT(ErrorOf("peers:some"), HasSubstr("'some'"));
  EXPECT_THAT(ErrorOf("unified:0,peers:all"), HasSubstr("separate"));
  EXPECT_THAT(ErrorOf("arena:1MiB"), HasSubstr("arena"));
}

TEST(SimDriverTest, OpensTheSameDeviceWhileItIsHeldAndANewOneAfter) {
  auto driver = *CreateSimDriver({.devices = 2});
  auto first = *driver->Open(0);
  const hal::DeviceId id = first->id();
  EXPECT_EQ((*driver->Open(0)).get(), first.get());
  EXPECT_NE((*driver->Open(1))->id(), id);
  first.reset();
  EXPECT_NE((*driver->Open(0))->id(), id);
}

TEST(SimDriverTest, NamesTheOrdinalsThereAre) {
  auto driver = *CreateSimDriver({.devices = 2});
  const Status status = driver->Open(2).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("0 to 1"));
}

TEST(SimDriverTest, ADeviceThatWasLostIsWellAgainWhenItIsOpenedAnew) {
  auto driver = *CreateSimDriver({});
  auto device = *driver->Open(0);
  FindControls(*device)->Lose("a test");
  EXPECT_EQ(device->GetMemoryInfo().status().code(), StatusCode::kDeviceLost);
  device.reset();
  device = *driver->Open(0);
  EXPECT_TRUE(device->GetMemoryInfo().ok());
}

TEST(SimDriverTest, ClosingADeviceReturnsAllThatItHad) {
  auto driver = *CreateSimDriver({.devices = 2, .memory = 64_MiB});
  auto other = *driver->Open(1);  // keeps the machine
  for (int round = 0; round < 3; ++round) {
    auto device = *driver->Open(0);
    ASSERT_TRUE(device->AllocatePlain(16_MiB).ok());
    ASSERT_TRUE(device->CreateMemory(16_MiB, {}).ok());
    const auto memory = device->CreateMemory(32_MiB, {});
    ASSERT_TRUE(memory.ok()) << "round " << round << ": " << memory.status().ToString();
    const auto address = device->ReserveAddress(32_MiB, Bytes(0), {});
    ASSERT_TRUE(address.ok());
    ASSERT_TRUE(device->Map(*address, 32_MiB, Offset(0), *memory).ok());
    ASSERT_EQ(FindControls(*device)->used(), 64_MiB);
  }
}

TEST(SimDriverTest, ControlsAreFoundInsideAWrapper) {
  auto driver = *CreateSimDriver({});
  auto device = *driver->Open(0);
  auto wrapped = hal::Instrumented(device);
  EXPECT_NE(FindControls(*wrapped), nullptr);
  EXPECT_EQ(FindControls(*wrapped), FindControls(*device));
}

}  // namespace
}  // namespace keel::sim
