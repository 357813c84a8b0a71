// Every call may fail, and nothing leaks: a scenario that uses every primitive is run once for
// each of its calls, with that call failing.
#include <gtest/gtest.h>

#include "hal/fault_scenario_test.h"
#include "hal/sim_devices_test.h"

namespace keel::hal {
namespace {

class FaultSweepTest : public SimDevicesTest {
 protected:
  void ExpectEverythingGivenBack() {
    ExpectNothingLeft();
    EXPECT_EQ(sim::FindControls(*peer_)->used(), 0_B);
    EXPECT_TRUE(IsOk(device_->Health()));
  }
};

TEST_F(FaultSweepTest, TheScenarioUsesEveryPrimitive) {
  ASSERT_TRUE(IsOk(UseEverything({device_, peer_})));
  for (std::size_t i = 0; i < kPrimitiveCount; ++i) {
    const auto primitive = static_cast<Primitive>(i);
    EXPECT_GT(device_->calls(primitive), 0U) << PrimitiveName(primitive);
  }
  ExpectEverythingGivenBack();
}

TEST_F(FaultSweepTest, EveryCallMayFailAndNothingLeaks) {
  SweepPrimitives(device_, peer_, [this] { ExpectEverythingGivenBack(); });
}

TEST_F(FaultSweepTest, AGiveBackMayFailAgainWhenItIsRetried) {
  for (const Primitive primitive :
       {Primitive::kFreePlain, Primitive::kReleaseMemory, Primitive::kFreeAddress,
        Primitive::kUnmap, Primitive::kFreeHost, Primitive::kUnregisterHost,
        Primitive::kDisablePeerAccess, Primitive::kDestroyStream, Primitive::kDestroyEvent,
        Primitive::kUnloadModule, Primitive::kEndCapture, Primitive::kDestroyGraph,
        Primitive::kDestroyExec}) {
    SCOPED_TRACE(PrimitiveName(primitive));
    device_->FailNth(primitive, 1, Internal("injected"));
    ASSERT_TRUE(IsOk(OwnOneOfEach({device_, peer_})));
    EXPECT_FALSE(device_->retries().empty());
    device_->FailNth(primitive, 1, Internal("injected again"));
    const Status drained = device_->retries().Drain();
    EXPECT_NE(drained.ToString().find("injected again"), std::string::npos) << drained.ToString();
    EXPECT_TRUE(IsOk(device_->retries().Drain()));
    ExpectEverythingGivenBack();
  }
}

}  // namespace
}  // namespace keel::hal
