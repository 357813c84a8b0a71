// Fills.

#include <limits>

#include "hal/conformance/context.h"

namespace keel::hal::conformance {
namespace {

KEEL_CONFORMANCE_CASE(Fills, WriteExactlyTheirRange) {
  Device& device = context.device();
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  ASSERT_VALUE(const Stream stream, context.NewStream());
  for (const std::uint32_t width : {1u, 2u, 4u}) {
    for (const std::uint64_t count : {1u, 3u, 64u, 255u}) {
      for (const std::uint64_t shift : {0u, 1u, 7u}) {
        SCOPED_TRACE(testing::Message() << count << " of width " << width << " at " << shift);
        std::vector<std::byte> bytes = Pattern(4096, 1);
        ASSERT_OK(context.WriteBytes(memory.address(), bytes));
        const std::uint64_t at = 64 + shift * width;
        // Values that the width holds.
        const std::uint32_t value = 0xA1B2C3D4u >> (32 - 8 * width);
        ASSERT_OK(device.EnqueueFill(stream.get(), {.destination = memory.address() + Bytes(at),
                                                    .value = value,
                                                    .width = width,
                                                    .count = count}));
        ASSERT_OK(stream.Synchronize(InTime()));
        for (std::uint64_t i = 0; i < count; ++i) {
          std::memcpy(bytes.data() + at + i * width, &value, width);
        }
        EXPECT_TRUE(context.HoldsBytes(memory.address(), bytes));
      }
    }
  }
}

// Never a pattern that nobody asked for: a driver refuses the value, or writes its low bytes.
KEEL_CONFORMANCE_CASE(Fills, ValuesWiderThanTheFillAreRefusedOrCut) {
  Device& device = context.device();
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_OK(context.Write(memory.address(), std::vector<std::uint32_t>(1, 0)));
  const Status status = device.EnqueueFill(
      stream.get(), {.destination = memory.address(), .value = 0x11223344, .width = 1, .count = 4});
  ASSERT_OK(stream.Synchronize(InTime()));
  if (status.ok()) {
    EXPECT_TRUE(context.HoldsWord(memory.address(), 1, 0x44444444));
  } else {
    EXPECT_CODE(kInvalidArgument, status);
    EXPECT_TRUE(context.HoldsWord(memory.address(), 1, 0));
  }
}

KEEL_CONFORMANCE_CASE(Fills, OfLargeRanges) {
  constexpr Bytes kSize = 32_MiB;
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(kSize));
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_OK(context.device().EnqueueFill(stream.get(), {.destination = memory.address(),
                                                        .value = 0xDEADBEEF,
                                                        .width = 4,
                                                        .count = kSize.count() / 4}));
  ASSERT_OK(stream.Synchronize(InTime()));
  EXPECT_TRUE(context.HoldsWord(memory.address(), kSize.count() / 4, 0xDEADBEEF));
}

KEEL_CONFORMANCE_CASE(Fills, OfNothingAreNothingToDo) {
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  ASSERT_VALUE(const Stream stream, context.NewStream());
  EXPECT_OK(
      context.device().EnqueueFill(stream.get(), {.destination = memory.address(), .count = 0}));
  EXPECT_OK(stream.Synchronize(InTime()));
}

KEEL_CONFORMANCE_CASE(Fills, BadOnesAreRefused) {
  Device& device = context.device();
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  ASSERT_VALUE(const Stream stream, context.NewStream());
  const DeviceAddress at = memory.address();
  const auto fill = [&](DeviceAddress destination, std::uint32_t width, std::uint64_t count) {
    return device.EnqueueFill(
        stream.get(), {.destination = destination, .value = 1, .width = width, .count = count});
  };
  for (const std::uint32_t width : {0u, 3u, 5u, 8u, 16u, 0x80000001u}) {
    EXPECT_CODE(kInvalidArgument, fill(at, width, 4)) << "width " << width;
  }
  EXPECT_CODE(kInvalidArgument, fill(at + 1_B, 2, 4));
  EXPECT_CODE(kInvalidArgument, fill(at + 1_B, 4, 4));
  EXPECT_CODE(kInvalidArgument, fill(at + 2_B, 4, 4));
  EXPECT_CODE(kInvalidArgument, fill(DeviceAddress(0), 4, 4));
  // Sizes that do not fit in 64 bits, or that wrap around the end of the addresses.
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  EXPECT_CODE(kInvalidArgument, fill(at, 4, most / 4 + 2));
  EXPECT_CODE(kInvalidArgument, fill(at, 4, most / 2));
  EXPECT_CODE(kInvalidArgument, fill(at, 1, most));
  EXPECT_CODE(kInvalidArgument, fill(at, 1, most - at.value() + 2));
  EXPECT_TRUE(context.Works());
}

KEEL_CONFORMANCE_CASE(Fills, ToWhereNothingIsMappedHarmNothing,
                      .needs = {&Capabilities::virtual_memory}) {
  if (!context.join().checks_fills) GTEST_SKIP() << "a fill is a kernel here: a bad one is a fault";
  Device& device = context.device();
  const Bytes granule = context.granule();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(AddressRange range, AddressRange::Create(context.shared(), granule * 2));
  ASSERT_VALUE(PhysicalMemory memory, PhysicalMemory::Create(context.shared(), granule));
  const AccessGrant grant{device.id(), Access::kReadWrite};
  ASSERT_VALUE(Mapping mapping, Mapping::Create(range, Offset(0), memory, {&grant, 1}));
  EXPECT_CODE(
      kInvalidArgument,
      device.EnqueueFill(stream.get(),
                         {.destination = range.address() + granule, .width = 4, .count = 4}));
  EXPECT_CODE(
      kInvalidArgument,
      device.EnqueueFill(stream.get(),
                         {.destination = range.address() + granule - 8_B, .width = 4, .count = 4}));
  EXPECT_OK(device.EnqueueFill(
      stream.get(), {.destination = range.address() + granule - 16_B, .width = 4, .count = 4}));
  EXPECT_OK(stream.Synchronize(InTime()));
  EXPECT_TRUE(context.Works());
}

// A fill names no device: its address is one of the stream's device.
KEEL_CONFORMANCE_CASE(Fills, AreOnTheStreamsDevice, .devices = 2) {
  std::vector<PlainMemory> memories;
  for (int i = 0; i < 2; ++i) {
    ASSERT_VALUE(PlainMemory memory, context.NewPlain(4_KiB, i));
    ASSERT_OK(context.Write(memory.address(), std::vector<std::uint32_t>(1024, 0), i));
    memories.push_back(std::move(memory));
  }
  for (int i = 0; i < 2; ++i) {
    ASSERT_VALUE(const Stream stream, context.NewStream(i));
    ASSERT_OK(context.device(i).EnqueueFill(
        stream.get(), {.destination = memories[static_cast<std::size_t>(i)].address(),
                       .value = static_cast<std::uint32_t>(i) + 1,
                       .width = 4,
                       .count = 1024}));
    ASSERT_OK(stream.Synchronize(InTime()));
  }
  EXPECT_TRUE(context.HoldsWord(memories[0].address(), 1024, 1, 0));
  EXPECT_TRUE(context.HoldsWord(memories[1].address(), 1024, 2, 1));
}

}  // namespace
}  // namespace keel::hal::conformance
