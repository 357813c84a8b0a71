// A sweep for the tests of this layer: a scenario is run once for each driver call that it makes,
// with that call failing.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "hal/sim_devices_test.h"
#include "keel/hal/instrumented.h"

namespace keel::memory {

// `scenario` makes what it needs on the device, uses it, and returns the first error; where it can
// go on after one it checks that. `expect_nothing_left` is called when everything must be given
// back. Returns how many calls were failed.
inline std::uint64_t SweepCalls(hal::InstrumentedDevice& device,
                                const std::function<Status()>& scenario,
                                const std::function<void()>& expect_nothing_left) {
  device.ClearRules();
  device.ResetCounts();
  EXPECT_TRUE(hal::IsOk(scenario()));
  expect_nothing_left();
  const std::uint64_t calls = device.calls();
  for (std::uint64_t k = 1; k <= calls && !testing::Test::HasFailure(); ++k) {
    device.ClearRules();
    device.FailNth(k, Internal("injected"));
    const Status status = scenario();
    const std::optional<hal::Primitive> failed = device.failed();
    SCOPED_TRACE("call " + std::to_string(k) + ", " +
                 std::string(failed ? hal::PrimitiveName(*failed) : "which was not made"));
    if (!status.ok()) {
      EXPECT_EQ(status.code(), StatusCode::kInternal) << status.ToString();
      EXPECT_NE(status.ToString().find("injected"), std::string::npos) << status.ToString();
    }
    device.ClearRules();
    EXPECT_TRUE(hal::IsOk(device.retries().Drain()));
    expect_nothing_left();
    EXPECT_TRUE(hal::IsOk(scenario())) << "after the failure";
    expect_nothing_left();
  }
  return calls;
}

}  // namespace keel::memory
