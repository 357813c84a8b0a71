// Copies: between host and device, on one device, and between devices.

#include <array>
#include <atomic>
#include <cstring>
#include <limits>
#include <thread>

#include "hal/conformance/context.h"

namespace keel::hal::conformance {
namespace {

constexpr std::array<std::uint64_t, 9> kSizes = {1,    3,     4,       255,     4095,
                                                 4096, 65537, 1048577, 8u << 20};

KEEL_CONFORMANCE_CASE(Copies, CarryPageableBytesBothWays) {
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(Bytes(kSizes.back() + 64)));
  std::uint32_t seed = 0;
  for (const std::uint64_t size : kSizes) {
    for (const std::uint64_t shift : {0u, 1u, 13u}) {
      SCOPED_TRACE(testing::Message() << size << " bytes at " << shift);
      const std::vector<std::byte> bytes = Pattern(size, ++seed);
      ASSERT_OK(context.WriteBytes(memory.address() + Bytes(shift), bytes));
      EXPECT_TRUE(context.HoldsBytes(memory.address() + Bytes(shift), bytes));
    }
  }
}

KEEL_CONFORMANCE_CASE(Copies, CarryPinnedBytesBothWays) {
  Device& device = context.device();
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(Bytes(kSizes.back())));
  ASSERT_VALUE(const HostMemory from, HostMemory::Create(context.shared(), Bytes(kSizes.back())));
  ASSERT_VALUE(const HostMemory to, HostMemory::Create(context.shared(), Bytes(kSizes.back())));
  ASSERT_VALUE(const Stream stream, context.NewStream());
  const Location on_device = Location::On(device.id(), memory.address());
  for (const std::uint64_t size : kSizes) {
    SCOPED_TRACE(size);
    const std::vector<std::byte> bytes = Pattern(size, static_cast<std::uint32_t>(size));
    std::memcpy(from.data(), bytes.data(), size);
    std::memset(to.data(), 0, size);
    ASSERT_OK(device.EnqueueCopy(
        stream.get(),
        {.destination = on_device, .source = Location::Host(from.data()), .size = Bytes(size)}));
    ASSERT_OK(device.EnqueueCopy(
        stream.get(),
        {.destination = Location::Host(to.data()), .source = on_device, .size = Bytes(size)}));
    ASSERT_OK(stream.Synchronize(InTime()));
    EXPECT_EQ(std::memcmp(to.data(), bytes.data(), size), 0);
  }
}

KEEL_CONFORMANCE_CASE(Copies, WithPinnedMemoryAreAsynchronous, .blocks = true) {
  constexpr Bytes kSize = 64_KiB;
  Device& device = context.device();
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(kSize));
  ASSERT_VALUE(const HostMemory from, HostMemory::Create(context.shared(), kSize));
  ASSERT_VALUE(const HostMemory to, HostMemory::Create(context.shared(), kSize));
  ASSERT_VALUE(const Stream stream, context.NewStream());
  std::memset(to.data(), 0, kSize.count());
  ASSERT_VALUE(Blocker blocker, context.Block(stream.get()));
  const Location on_device = Location::On(device.id(), memory.address());
  ASSERT_OK(device.EnqueueCopy(
      stream.get(),
      {.destination = on_device, .source = Location::Host(from.data()), .size = kSize}));
  ASSERT_OK(device.EnqueueCopy(
      stream.get(),
      {.destination = Location::Host(to.data()), .source = on_device, .size = kSize}));
  ASSERT_TRUE(blocker.blocked()) << "a copy with pinned memory waited";
  // Nothing was read yet: what is written now is what arrives.
  const std::vector<std::byte> bytes = Pattern(kSize.count(), 1);
  EXPECT_EQ(static_cast<std::byte*>(to.data())[0], std::byte{0});
  std::memcpy(from.data(), bytes.data(), bytes.size());
  blocker.Release();
  ASSERT_OK(stream.Synchronize(InTime()));
  EXPECT_EQ(std::memcmp(to.data(), bytes.data(), bytes.size()), 0);
}

KEEL_CONFORMANCE_CASE(Copies, FromPageableMemoryHaveReadIt) {
  Device& device = context.device();
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_MiB));
  ASSERT_VALUE(const Stream stream, context.NewStream());
  for (const std::uint64_t size : {16ull, 4096ull, 65536ull, 4ull << 20}) {
    SCOPED_TRACE(size);
    const std::vector<std::byte> bytes = Pattern(size, 9);
    std::vector<std::byte> source = bytes;
    ASSERT_OK(device.EnqueueCopy(stream.get(),
                                 {.destination = Location::On(device.id(), memory.address()),
                                  .source = Location::Host(source.data()),
                                  .size = Bytes(size)}));
    std::fill(source.begin(), source.end(), std::byte{0xFF});
    ASSERT_OK(stream.Synchronize(InTime()));
    EXPECT_TRUE(context.HoldsBytes(memory.address(), bytes));
  }
}

// The same on a stream that is busy: the call may wait for it, or keep the bytes.
KEEL_CONFORMANCE_CASE(Copies, FromPageableMemoryHaveReadItBehindOtherWork, .blocks = true) {
  Device& device = context.device();
  for (const std::uint64_t size : {16ull, 1ull << 20}) {
    SCOPED_TRACE(size);
    ASSERT_VALUE(const PlainMemory memory, context.NewPlain(Bytes(size)));
    ASSERT_VALUE(const Stream stream, context.NewStream());
    ASSERT_VALUE(Blocker blocker, context.Block(stream.get()));
    blocker.ReleaseAfter(std::chrono::milliseconds(30));
    const std::vector<std::byte> bytes = Pattern(size, 10);
    std::vector<std::byte> source = bytes;
    ASSERT_OK(device.EnqueueFill(stream.get(), {.destination = memory.address(), .count = size}));
    ASSERT_OK(device.EnqueueCopy(stream.get(),
                                 {.destination = Location::On(device.id(), memory.address()),
                                  .source = Location::Host(source.data()),
                                  .size = Bytes(size)}));
    std::fill(source.begin(), source.end(), std::byte{0xFF});
    ASSERT_OK(stream.Synchronize(InTime()));
    EXPECT_TRUE(context.HoldsBytes(memory.address(), bytes));
  }
}

KEEL_CONFORMANCE_CASE(Copies, ToPageableMemoryHaveArrived, .blocks = true) {
  Device& device = context.device();
  for (const std::uint64_t size : {16ull, 1ull << 20}) {
    SCOPED_TRACE(size);
    ASSERT_VALUE(const PlainMemory memory, context.NewPlain(Bytes(size)));
    const std::vector<std::byte> bytes(size, std::byte{0x3C});
    std::vector<std::byte> destination(size);
    ASSERT_VALUE(const Stream stream, context.NewStream());
    ASSERT_VALUE(Blocker blocker, context.Block(stream.get()));
    ASSERT_OK(device.EnqueueFill(
        stream.get(), {.destination = memory.address(), .value = 0x3C, .width = 1, .count = size}));
    blocker.ReleaseAfter(std::chrono::milliseconds(20));
    ASSERT_OK(
        device.EnqueueCopy(stream.get(), {.destination = Location::Host(destination.data()),
                                          .source = Location::On(device.id(), memory.address()),
                                          .size = Bytes(size)}));
    // No synchronisation in between.
    EXPECT_TRUE(SameBytes(bytes, destination));
  }
}

KEEL_CONFORMANCE_CASE(Copies, StayOnOneDevice) {
  Device& device = context.device();
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(Bytes(kSizes.back() * 2 + 64)));
  ASSERT_VALUE(const Stream stream, context.NewStream());
  for (const std::uint64_t size : kSizes) {
    SCOPED_TRACE(size);
    const DeviceAddress source = memory.address() + 1_B;
    const DeviceAddress destination = source + Bytes(size);  // neighbours do not overlap
    const std::vector<std::byte> bytes = Pattern(size, static_cast<std::uint32_t>(size) + 1);
    ASSERT_OK(context.WriteBytes(source, bytes));
    ASSERT_OK(
        device.EnqueueCopy(stream.get(), {.destination = Location::On(device.id(), destination),
                                          .source = Location::On(device.id(), source),
                                          .size = Bytes(size)}));
    ASSERT_OK(stream.Synchronize(InTime()));
    EXPECT_TRUE(context.HoldsBytes(destination, bytes));
    EXPECT_TRUE(context.HoldsBytes(source, bytes));
  }
}

// Each device has the same layout, and so perhaps the same addresses: only the pair of device and
// address says where the bytes are.
KEEL_CONFORMANCE_CASE(Copies, NameTheDeviceOnBothSides, .devices = 2, .all_devices = true) {
  constexpr Bytes kSize = 256_KiB;
  const int count = context.device_count();
  std::vector<PlainMemory> sources;
  std::vector<PlainMemory> destinations;
  for (int i = 0; i < count; ++i) {
    ASSERT_VALUE(PlainMemory source, context.NewPlain(kSize, i));
    ASSERT_VALUE(PlainMemory destination, context.NewPlain(kSize, i));
    ASSERT_OK(context.WriteBytes(source.address(),
                                 Pattern(kSize.count(), static_cast<std::uint32_t>(i)), i));
    sources.push_back(std::move(source));
    destinations.push_back(std::move(destination));
  }
  for (int from = 0; from < count; ++from) {
    const int to = (from + 1) % count;
    // On a stream of either side, and of a third device where there is one.
    for (const int runs : {from, to, (from + 2) % count}) {
      SCOPED_TRACE(testing::Message() << from << " to " << to << " on a stream of " << runs);
      Device& runner = context.device(runs);
      ASSERT_VALUE(const Stream stream, context.NewStream(runs));
      const DeviceAddress target = destinations[static_cast<std::size_t>(to)].address();
      ASSERT_OK(context.WriteBytes(target, Pattern(kSize.count(), 999), to));
      ASSERT_OK(runner.EnqueueCopy(
          stream.get(), {.destination = Location::On(context.device(to).id(), target),
                         .source = Location::On(context.device(from).id(),
                                                sources[static_cast<std::size_t>(from)].address()),
                         .size = kSize}));
      ASSERT_OK(stream.Synchronize(InTime()));
      EXPECT_TRUE(
          context.HoldsBytes(target, Pattern(kSize.count(), static_cast<std::uint32_t>(from)), to));
    }
  }
  for (int i = 0; i < count; ++i) {
    EXPECT_TRUE(context.HoldsBytes(sources[static_cast<std::size_t>(i)].address(),
                                   Pattern(kSize.count(), static_cast<std::uint32_t>(i)), i));
  }
}

KEEL_CONFORMANCE_CASE(Copies, MayRunOnAStreamOfAnotherDevice, .devices = 2) {
  constexpr Bytes kSize = 64_KiB;
  Device& owner = context.device(0);
  Device& runner = context.device(1);
  ASSERT_VALUE(const PlainMemory a, context.NewPlain(kSize, 0));
  ASSERT_VALUE(const PlainMemory b, context.NewPlain(kSize, 0));
  ASSERT_VALUE(const HostMemory pinned, HostMemory::Create(context.shared(0), kSize));
  ASSERT_VALUE(const Stream stream, context.NewStream(1));
  const std::vector<std::byte> bytes = Pattern(kSize.count(), 6);
  std::memcpy(pinned.data(), bytes.data(), bytes.size());
  ASSERT_OK(runner.EnqueueCopy(stream.get(), {.destination = Location::On(owner.id(), a.address()),
                                              .source = Location::Host(pinned.data()),
                                              .size = kSize}));
  ASSERT_OK(runner.EnqueueCopy(stream.get(), {.destination = Location::On(owner.id(), b.address()),
                                              .source = Location::On(owner.id(), a.address()),
                                              .size = kSize}));
  std::vector<std::byte> back(kSize.count());
  ASSERT_OK(runner.EnqueueCopy(stream.get(), {.destination = Location::Host(back.data()),
                                              .source = Location::On(owner.id(), b.address()),
                                              .size = kSize}));
  ASSERT_OK(stream.Synchronize(InTime()));
  EXPECT_TRUE(SameBytes(bytes, back));
}

KEEL_CONFORMANCE_CASE(Copies, OfZeroBytesAreNothingToDo) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  const Location on_device = Location::On(device.id(), memory.address());
  const std::vector<std::byte> pageable(16);
  const Location nowhere = Location::On(device.id(), DeviceAddress(0));
  EXPECT_OK(device.EnqueueCopy(
      stream.get(), {.destination = on_device, .source = Location::Host(pageable.data())}));
  EXPECT_OK(device.EnqueueCopy(stream.get(), {.destination = on_device, .source = on_device}));
  EXPECT_OK(device.EnqueueCopy(stream.get(), {.destination = nowhere, .source = on_device}));
  EXPECT_OK(device.EnqueueCopy(stream.get(),
                               {.destination = Location::Host(nullptr), .source = nowhere}));
  // The stream is still looked at.
  EXPECT_CODE(kInvalidArgument,
              device.EnqueueCopy(StreamHandle{}, {.destination = on_device, .source = on_device}));
  EXPECT_OK(stream.Synchronize(InTime()));
}

KEEL_CONFORMANCE_CASE(Copies, ThatOverlapAreRefused) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(64_KiB));
  const auto copy = [&](Bytes to, Bytes from) {
    return device.EnqueueCopy(stream.get(),
                              {.destination = Location::On(device.id(), memory.address() + to),
                               .source = Location::On(device.id(), memory.address() + from),
                               .size = 4_KiB});
  };
  EXPECT_CODE(kInvalidArgument, copy(0_B, 0_B));
  EXPECT_CODE(kInvalidArgument, copy(1_B, 0_B));
  EXPECT_CODE(kInvalidArgument, copy(0_B, 4095_B));
  EXPECT_OK(copy(0_B, 4_KiB));
  EXPECT_OK(stream.Synchronize(InTime()));
}

// The rule that keeps a device alive: what can be seen when the call is made fails there.
KEEL_CONFORMANCE_CASE(Copies, ToWhereNothingIsMappedHarmNothing,
                      .needs = {&Capabilities::virtual_memory}) {
  Device& device = context.device();
  const Bytes granule = context.granule();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory plain, context.NewPlain(granule * 2));
  ASSERT_VALUE(AddressRange range, AddressRange::Create(context.shared(), granule * 3));
  ASSERT_VALUE(PhysicalMemory memory, PhysicalMemory::Create(context.shared(), granule));
  const std::array grants = {AccessGrant{device.id(), Access::kReadWrite}};
  ASSERT_VALUE(Mapping mapping, Mapping::Create(range, Offset(granule.count()), memory, grants));
  const std::vector<std::byte> bytes = Pattern(granule.count(), 5);
  ASSERT_OK(context.WriteBytes(mapping.address(), bytes));
  std::vector<std::byte> pageable(granule.count() * 2);
  ASSERT_VALUE(const HostMemory pinned, HostMemory::Create(context.shared(), granule * 2));

  const Location on_plain = Location::On(device.id(), plain.address());
  const std::array<Location, 3> partners = {on_plain, Location::Host(pageable.data()),
                                            Location::Host(pinned.data())};
  const DeviceAddress mapped = mapping.address();
  struct Bad {
    const char* what;
    DeviceAddress address;
    Bytes size;
  };
  const std::array<Bad, 6> bad = {{{"reserved, not mapped", range.address(), 16_B},
                                   {"one byte before", mapped - 1_B, 16_B},
                                   {"one byte behind", mapped + granule - 15_B, 16_B},
                                   {"longer than the mapping", mapped, granule + 1_B},
                                   {"not even reserved", DeviceAddress(0x1000), 16_B},
                                   {"no address", DeviceAddress(0), 16_B}}};
  for (const Bad& range_of_copy : bad) {
    SCOPED_TRACE(range_of_copy.what);
    const Location there = Location::On(device.id(), range_of_copy.address);
    for (const Location& partner : partners) {
      EXPECT_CODE(kInvalidArgument, device.EnqueueCopy(stream.get(), {.destination = there,
                                                                      .source = partner,
                                                                      .size = range_of_copy.size}));
      EXPECT_CODE(kInvalidArgument, device.EnqueueCopy(stream.get(), {.destination = partner,
                                                                      .source = there,
                                                                      .size = range_of_copy.size}));
    }
  }
  EXPECT_OK(stream.Synchronize(InTime()));
  EXPECT_TRUE(context.HoldsBytes(mapped, bytes));
  EXPECT_TRUE(context.Works());
}

KEEL_CONFORMANCE_CASE(Copies, RangesThatWrapAreRefused) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(64_KiB));
  std::vector<std::byte> pageable(64);
  const Location on_device = Location::On(device.id(), memory.address());
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  for (const Bytes size : {Bytes(most), Bytes(most - memory.address().value() + 1), 1_TiB}) {
    SCOPED_TRACE(ToString(size));
    EXPECT_CODE(kInvalidArgument,
                device.EnqueueCopy(stream.get(), {.destination = on_device,
                                                  .source = Location::Host(pageable.data()),
                                                  .size = size}));
    EXPECT_CODE(kInvalidArgument,
                device.EnqueueCopy(stream.get(), {.destination = Location::Host(pageable.data()),
                                                  .source = on_device,
                                                  .size = size}));
  }
  EXPECT_CODE(kInvalidArgument,
              device.EnqueueCopy(stream.get(),
                                 {.destination = Location::On(device.id(), DeviceAddress(most - 7)),
                                  .source = on_device,
                                  .size = 64_B}));
  EXPECT_TRUE(context.Works());
}

KEEL_CONFORMANCE_CASE(Copies, UnknownPlacesAreRefused) {
  Device& device = context.device();
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_VALUE(const PlainMemory memory, context.NewPlain(4_KiB));
  const Location good = Location::On(device.id(), memory.address());
  const Location stranger = Location::On(static_cast<DeviceId>(0x7FFFFFFF), memory.address());
  for (const Location& bad : {stranger, Location::Host(nullptr)}) {
    EXPECT_CODE(
        kInvalidArgument,
        device.EnqueueCopy(stream.get(), {.destination = good, .source = bad, .size = 64_B}));
    EXPECT_CODE(
        kInvalidArgument,
        device.EnqueueCopy(stream.get(), {.destination = bad, .source = good, .size = 64_B}));
  }
  EXPECT_TRUE(context.Works());
}

}  // namespace
}  // namespace keel::hal::conformance
