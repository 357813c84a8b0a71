// What the tests of the device allocator share: an allocator on a simulated device whose calls are
// counted, over either source of memory, and ways to put work on a stream and to hold it there.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hal/sim_devices_test.h"
#include "keel/hal/stream.h"
#include "keel/memory/device_allocator.h"

namespace keel::memory {

using hal::IsOk;
using hal::Need;
using hal::Primitive;

// A stream starts nothing from here to the end of the scope, or to Release.
class HeldStream {
 public:
  HeldStream(hal::Device& device, hal::StreamHandle stream)
      : controls_(*sim::FindControls(device)), stream_(stream) {
    EXPECT_TRUE(IsOk(controls_.HoldStream(stream_)));
  }
  HeldStream(const HeldStream&) = delete;
  HeldStream& operator=(const HeldStream&) = delete;
  ~HeldStream() { Release(); }
  void Release() {
    if (!std::exchange(held_, false)) return;
    EXPECT_TRUE(IsOk(controls_.ReleaseStream(stream_)));
  }

 private:
  sim::Controls& controls_;
  const hal::StreamHandle stream_;
  bool held_ = true;
};

// With addresses for a dozen arenas, each of which reserves four times the device.
class RoomyDevicesTest : public hal::SimDevicesTest {
 protected:
  RoomyDevicesTest() { Open({.devices = 2, .memory = 1_GiB, .arena = 60_GiB}); }
  void Open(const sim::SimConfig& config) {
    device_ = nullptr;
    inner_ = peer_ = nullptr;
    driver_ = Need(sim::CreateSimDriver(config));
    inner_ = Need(driver_->Open(0));
    if (config.devices > 1) peer_ = Need(driver_->Open(1));
    device_ = hal::Instrumented(inner_);
  }
};

class DeviceAllocatorFixture : public RoomyDevicesTest {
 protected:
  // Time that stands still unless a test moves it: handles are as large as they may be.
  std::unique_ptr<DeviceAllocator> Make(const AllocatorConfig& config,
                                        telemetry::EventLog* log = nullptr) {
    return Need(DeviceAllocator::Create(
        device_, {.config = config, .log = log, .now_ns = [this] { return now_ns_.load(); }}));
  }

  hal::StreamHandle s1() const { return first_.get(); }
  hal::StreamHandle s2() const { return second_.get(); }
  HeldStream Hold(hal::StreamHandle stream) { return HeldStream(*inner_, stream); }
  Status Fill(DeviceAddress address, Bytes size, std::uint8_t value, hal::StreamHandle stream) {
    return inner_->EnqueueFill(
        stream, {.destination = address, .value = value, .width = 1, .count = size.count()});
  }
  // Whether every byte is `value`, after the stream's work so far.
  bool Holds(DeviceAddress address, Bytes size, std::uint8_t value, hal::StreamHandle stream) {
    std::vector<std::uint8_t> bytes(size.count());
    const Status copied =
        inner_->EnqueueCopy(stream, {.destination = hal::Location::Host(bytes.data()),
                                     .source = hal::Location::On(inner_->id(), address),
                                     .size = size});
    EXPECT_TRUE(IsOk(copied));
    for (const std::uint8_t byte : bytes) {
      if (byte != value) return false;
    }
    return true;
  }
  // Calls that make, move or give back memory.
  std::uint64_t MemoryCalls() const {
    std::uint64_t calls = 0;
    for (const Primitive each :
         {Primitive::kAllocatePlain, Primitive::kFreePlain, Primitive::kCreateMemory,
          Primitive::kReleaseMemory, Primitive::kReserveAddress, Primitive::kFreeAddress,
          Primitive::kMap, Primitive::kUnmap, Primitive::kSetAccess}) {
      calls += device_->calls(each);
    }
    return calls;
  }

  std::atomic<std::int64_t> now_ns_{0};
  hal::Stream first_ = Need(hal::Stream::Create(inner_));
  hal::Stream second_ = Need(hal::Stream::Create(inner_));
};

// With both sources of memory.
enum class Source : std::uint8_t { kExpandable, kPlain };

class DeviceAllocatorTest : public DeviceAllocatorFixture,
                            public ::testing::WithParamInterface<Source> {
 protected:
  bool expandable() const { return GetParam() == Source::kExpandable; }
  AllocatorConfig Config() const { return {.expandable_segments = expandable()}; }
  std::unique_ptr<DeviceAllocator> Make(telemetry::EventLog* log = nullptr) {
    return DeviceAllocatorFixture::Make(Config(), log);
  }
  using DeviceAllocatorFixture::Make;
};

inline std::string SourceName(const ::testing::TestParamInfo<Source>& info) {
  return info.param == Source::kExpandable ? "Expandable" : "Plain";
}

#define KEEL_WITH_BOTH_SOURCES(Suite)                                                              \
  INSTANTIATE_TEST_SUITE_P(Sources, Suite, ::testing::Values(Source::kExpandable, Source::kPlain), \
                           SourceName)

}  // namespace keel::memory
