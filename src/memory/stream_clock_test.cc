#include "memory/stream_clock.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "hal/sim_devices_test.h"
#include "keel/hal/forwarding_device.h"
#include "keel/hal/stream.h"

namespace keel::memory {
namespace {

using hal::IsOk;
using hal::Need;

// Somebody begins to capture a stream when it has been asked whether that is so, and has no event
// yet.
class CapturesFirst : public hal::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  Status RecordEvent(hal::EventHandle event, hal::StreamHandle stream) override {
    if (std::exchange(begins, false)) {
      KEEL_TRY(ForwardingDevice::BeginCapture(stream, hal::CaptureMode::kRelaxed));
    }
    return ForwardingDevice::RecordEvent(event, stream);
  }
  bool begins = false;
};

TEST(StreamClockTest, A19_ACaptureThatBeginsMeanwhileStaysWhole) {
  const auto driver = Need(sim::CreateSimDriver({.memory = 64_MiB, .arena = 1_GiB}));
  const auto device = std::make_shared<CapturesFirst>(Need(driver->Open(0)));
  EventPool events(device, {});
  const hal::Stream stream = Need(hal::Stream::Create(device));
  StreamClock clock(device, events, stream.get());
  const std::uint64_t date = clock.now();
  device->begins = true;
  EXPECT_EQ(clock.Mark(date).code(), StatusCode::kFailedPrecondition);
  EXPECT_FALSE(Need(clock.Passed(date))) << "its event is not asked";
  EXPECT_EQ(Need(clock.Poll()), 0u);
  const hal::GraphHandle graph = Need(device->EndCapture(stream.get()));
  EXPECT_TRUE(IsOk(device->DestroyGraph(graph)));

  EXPECT_TRUE(IsOk(clock.Mark(date)));
  EXPECT_TRUE(IsOk(stream.Synchronize(Deadline::After(std::chrono::seconds(60)))));
  EXPECT_TRUE(Need(clock.Passed(date)));
}

}  // namespace
}  // namespace keel::memory
