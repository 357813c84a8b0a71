// What a device says about itself, and what follows from a capability that it does not have.

#include <set>

#include "hal/conformance/context.h"
#include "hal/conformance/props.h"
#include "hal/conformance/runner.h"

namespace keel::hal::conformance {
namespace {

KEEL_CONFORMANCE_CASE(Capabilities, AreAsExpected, .all_devices = true) {
  const Capabilities& expect = context.join().expect;
  for (int i = 0; i < context.device_count(); ++i) {
    const Capabilities& got = context.capabilities(i);
    for (bool Capabilities::* member : AllCapabilities()) {
      EXPECT_EQ(got.*member, expect.*member) << CapabilityName(member) << " of device " << i;
    }
    if (!expect.granularity.minimum.empty()) {
      EXPECT_EQ(got.granularity.minimum, expect.granularity.minimum);
      EXPECT_EQ(got.granularity.recommended, expect.granularity.recommended);
    }
  }
}

KEEL_CONFORMANCE_CASE(Capabilities, GranularityIsZeroExactlyWithoutVirtualMemory) {
  const Capabilities& can = context.capabilities();
  EXPECT_EQ(can.granularity.minimum.empty(), !can.virtual_memory);
  EXPECT_EQ(can.granularity.recommended.empty(), !can.virtual_memory);
  if (!can.virtual_memory) return;
  EXPECT_TRUE(IsAligned(can.granularity.recommended, can.granularity.minimum));
}

KEEL_CONFORMANCE_CASE(Capabilities, FeaturesOfAMissingOneAreMissingToo) {
  const Capabilities& can = context.capabilities();
  EXPECT_TRUE(can.virtual_memory || (!can.exportable_memory && !can.rdma_memory));
  EXPECT_TRUE(can.graphs || (!can.graph_update && !can.node_update));
  EXPECT_TRUE(can.kernels || !can.orchestration);
}

KEEL_CONFORMANCE_CASE(Capabilities, InfoDescribesTheDevice, .all_devices = true) {
  std::set<DeviceId> ids;
  std::set<int> ordinals;
  std::set<std::string> identities;
  for (int i = 0; i < context.device_count(); ++i) {
    const DeviceInfo& info = context.device(i).info();
    EXPECT_EQ(info.driver, context.device(0).info().driver);
    EXPECT_NE(info.driver, "");
    EXPECT_NE(info.name, "");
    EXPECT_NE(info.identity, "");
    EXPECT_FALSE(info.memory.empty());
    EXPECT_NE(context.device(i).id(), DeviceId::kNone);
    EXPECT_TRUE(ids.insert(context.device(i).id()).second);
    EXPECT_TRUE(ordinals.insert(info.ordinal).second);
    EXPECT_TRUE(identities.insert(info.identity).second) << info.identity;
    if (context.capabilities(i).kernels) {
      EXPECT_NE(info.architecture, "");
    }
    EXPECT_OK(context.device(i).Health());
  }
}

KEEL_CONFORMANCE_CASE(Capabilities, AReopenedDeviceHasAnotherId) {
  const DeviceId before = context.device().id();
  const std::string identity = context.device().info().identity;
  ASSERT_OK(context.Reopen());
  EXPECT_NE(context.device().id(), before);
  EXPECT_EQ(context.device().info().identity, identity);
  EXPECT_TRUE(context.Works());
}

// Every primitive of a missing capability says that it is missing, whatever its arguments.
KEEL_CONFORMANCE_CASE(Capabilities, WhatIsMissingIsUnimplemented) {
  const Capabilities& can = context.capabilities();
  ASSERT_VALUE(const Props props, Props::Create(context));
  for (bool Capabilities::* member : AllCapabilities()) {
    if (can.*member) continue;
    SCOPED_TRACE("without " + CapabilityName(member));
    const std::vector<Primitive> primitives = PrimitivesOf(member);
    if (!primitives.empty()) {
      ExpectFromPrimitives(context.device(), props, StatusCode::kUnimplemented, primitives);
    }
  }
  if (!can.kernels) {
    EXPECT_CODE(kUnimplemented, context.device().StandardKernels());
  }
}

KEEL_CONFORMANCE_CASE(Capabilities, OptionsOfAMissingOneAreUnimplemented) {
  const Capabilities& can = context.capabilities();
  Device& device = context.device();
  if (!can.event_timing) {
    EXPECT_CODE(kUnimplemented, device.CreateEvent({.timing = true}));
  }
  if (!can.orchestration) {
    EXPECT_CODE(kUnimplemented,
                device.LoadModule(ModuleSource::Device(DeviceAddress(4096), 4_KiB)));
  }
  if (can.virtual_memory && !can.exportable_memory) {
    EXPECT_CODE(kUnimplemented, device.CreateMemory(context.granule(), {.exportable = true}));
  }
  if (can.virtual_memory && !can.rdma_memory) {
    EXPECT_CODE(kUnimplemented, device.CreateMemory(context.granule(), {.rdma = true}));
  }
}

KEEL_CONFORMANCE_CASE(Capabilities, RdmaMemoryIsMemory,
                      .needs = {&Capabilities::virtual_memory, &Capabilities::rdma_memory}) {
  ASSERT_VALUE(MappedMemory memory,
               MappedMemory::Create(context.shared(), context.granule(), {}, {.rdma = true}));
  const std::vector<std::byte> bytes = Pattern(4096, 5);
  ASSERT_OK(context.WriteBytes(memory.address(), bytes));
  EXPECT_TRUE(context.HoldsBytes(memory.address(), bytes));
  EXPECT_OK(memory.Close());
}

KEEL_CONFORMANCE_CASE(Capabilities, CaptureStateNeedsNoGraphs) {
  // A stream of a device without graphs never captures; asking is not an error there, so that code
  // above need not look at the capability first. Either answer is right, no other is.
  if (context.capabilities().graphs) GTEST_SKIP() << "the device has graphs";
  ASSERT_VALUE(const Stream stream, context.NewStream());
  const Result<CaptureState> state = context.device().GetCaptureState(stream.get());
  if (state.ok()) {
    EXPECT_EQ(*state, CaptureState::kNone);
  } else {
    EXPECT_CODE(kUnimplemented, state);
  }
}

}  // namespace
}  // namespace keel::hal::conformance
