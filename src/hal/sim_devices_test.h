// What the tests of this layer share: simulated devices, the first of them instrumented, and short
// ways to look at a Status.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "keel/base/log.h"
#include "keel/drivers/sim.h"
#include "keel/hal/instrumented.h"

namespace keel::hal {

inline ::testing::AssertionResult IsOk(const Status& status) {
  if (status.ok()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << status.ToString();
}
template <class T>
::testing::AssertionResult IsOk(const Result<T>& result) {
  return IsOk(result.status());
}

// The value of something that a test takes for granted.
template <class T>
T Need(Result<T> result) {
  if (!result.ok()) {
    std::cerr << "a test's own step failed: " << result.status().ToString() << std::endl;
    std::abort();
  }
  return *std::move(result);
}

inline std::string ToString(const std::vector<LiveObject>& objects) {
  std::string text;
  for (const LiveObject& object : objects) text += object.ToString() + "; ";
  return text;
}

inline std::unique_ptr<Driver> SimDriver(int devices) {
  return Need(sim::CreateSimDriver(
      {.devices = devices, .memory = 1_GiB, .granularity = 2_MiB, .arena = 8_GiB}));
}

// Two devices: device_ wraps inner_; peer_ is bare.
class SimDevicesTest : public ::testing::Test {
 protected:
  static constexpr Bytes kPage = 2_MiB;

  // Failures on purpose are logged; tests that look at the log raise the level.
  void SetUp() override { SetLogLevel(LogLevel::kOff); }
  void TearDown() override { SetLogLevel(LogLevel::kWarn); }

  sim::Controls& controls() { return *sim::FindControls(*inner_); }
  std::string Live() const { return ToString(device_->Live()); }
  // Nothing that went through device_ is left anywhere.
  void ExpectNothingLeft() {
    EXPECT_EQ(Live(), "");
    EXPECT_TRUE(device_->retries().empty());
    EXPECT_EQ(controls().used(), 0_B);
  }

  std::unique_ptr<Driver> driver_ = SimDriver(2);
  std::shared_ptr<Device> inner_ = Need(driver_->Open(0));
  std::shared_ptr<Device> peer_ = Need(driver_->Open(1));
  std::shared_ptr<InstrumentedDevice> device_ = Instrumented(inner_);
};

}  // namespace keel::hal
