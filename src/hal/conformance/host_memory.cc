// Pinned host memory: allocated, and registered.

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <limits>

#include "hal/conformance/context.h"

namespace keel::hal::conformance {
namespace {

Bytes PageSize() { return Bytes(static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE))); }

// Pages of ordinary memory, which this owns.
class Pages {
 public:
  explicit Pages(Bytes size)
      : size_(size),
        data_(mmap(nullptr, size.count(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                   0)) {}
  ~Pages() {
    if (data_ != MAP_FAILED) munmap(data_, size_.count());
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  std::byte* data() const { return data_ == MAP_FAILED ? nullptr : static_cast<std::byte*>(data_); }
  Bytes size() const { return size_; }

 private:
  const Bytes size_;
  void* const data_;
};

KEEL_CONFORMANCE_CASE(HostMemory, IsPageAlignedAndTheHostsToUse) {
  for (const std::uint64_t size : {1ull, 100ull, 4096ull, 4097ull, 1ull << 20}) {
    SCOPED_TRACE(size);
    ASSERT_VALUE(HostMemory memory, HostMemory::Create(context.shared(), Bytes(size)));
    ASSERT_NE(memory.data(), nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % PageSize().count(), 0u);
    std::memset(memory.data(), 0x5A, size);
    EXPECT_EQ(static_cast<unsigned char*>(memory.data())[size - 1], 0x5A);
    EXPECT_OK(memory.Close());
  }
}

KEEL_CONFORMANCE_CASE(HostMemory, SizesThatCannotBeAreRefused) {
  Device& device = context.device();
  EXPECT_CODE(kInvalidArgument, device.AllocateHost(Bytes(0), {}));
  EXPECT_CODE(kResourceExhausted, device.AllocateHost(Bytes(1ull << 62), {}));
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  EXPECT_CODE(kResourceExhausted, device.AllocateHost(Bytes(most), {}));
  EXPECT_TRUE(context.Works());
}

KEEL_CONFORMANCE_CASE(HostMemory, WriteCombinedCarriesBytesToTheDevice) {
  constexpr Bytes kSize = 64_KiB;
  ASSERT_VALUE(HostMemory memory,
               HostMemory::Create(context.shared(), kSize, {.write_combined = true}));
  ASSERT_VALUE(const PlainMemory on_device, context.NewPlain(kSize));
  ASSERT_VALUE(const Stream stream, context.NewStream());
  const std::vector<std::byte> bytes = Pattern(kSize.count(), 1);
  std::memcpy(memory.data(), bytes.data(), bytes.size());
  ASSERT_OK(context.device().EnqueueCopy(
      stream.get(), {.destination = Location::On(context.device().id(), on_device.address()),
                     .source = Location::Host(memory.data()),
                     .size = kSize}));
  ASSERT_OK(stream.Synchronize(InTime()));
  EXPECT_TRUE(context.HoldsBytes(on_device.address(), bytes));
}

KEEL_CONFORMANCE_CASE(HostMemory, FreeTakesOnlyWhatWasReturned) {
  Device& device = context.device();
  ASSERT_VALUE(HostMemory memory, HostMemory::Create(context.shared(), 64_KiB));
  std::vector<std::byte> pageable(4096);
  EXPECT_CODE(kInvalidArgument, device.FreeHost(nullptr));
  EXPECT_CODE(kInvalidArgument, device.FreeHost(pageable.data()));
  EXPECT_CODE(kInvalidArgument, device.FreeHost(static_cast<std::byte*>(memory.data()) + 4096));
  std::memset(memory.data(), 1, 65536);
  EXPECT_OK(memory.Close());
}

KEEL_CONFORMANCE_CASE(HostMemory, WhatWasFreedIsGone, .stale_handles = true) {
  Device& device = context.device();
  ASSERT_VALUE(void* const pointer, device.AllocateHost(64_KiB, {}));
  ASSERT_OK(device.FreeHost(pointer));
  EXPECT_CODE(kInvalidArgument, device.FreeHost(pointer));
  EXPECT_CODE(kInvalidArgument, device.GetHostAddress(pointer));
}

KEEL_CONFORMANCE_CASE(HostMemory, EveryByteHasAnAddress) {
  Device& device = context.device();
  ASSERT_VALUE(HostMemory memory, HostMemory::Create(context.shared(), 64_KiB));
  const auto* base = static_cast<const std::byte*>(memory.data());
  ASSERT_VALUE(const DeviceAddress first, device.GetHostAddress(base));
  EXPECT_TRUE(first);
  for (const std::size_t at : {1u, 8u, 4096u, 65535u}) {
    ASSERT_VALUE(const DeviceAddress inside, device.GetHostAddress(base + at));
    EXPECT_EQ(inside, first + Bytes(at));
  }
}

KEEL_CONFORMANCE_CASE(HostMemory, PageableMemoryHasNoAddress) {
  Device& device = context.device();
  const std::vector<std::byte> pageable(4096);
  const int on_stack = 0;
  EXPECT_CODE(kInvalidArgument, device.GetHostAddress(pageable.data()));
  EXPECT_CODE(kInvalidArgument, device.GetHostAddress(&on_stack));
  EXPECT_CODE(kInvalidArgument, device.GetHostAddress(nullptr));
}

KEEL_CONFORMANCE_CASE(HostMemory, CommandsReachItAtItsAddress) {
  Device& device = context.device();
  ASSERT_VALUE(HostMemory memory, HostMemory::Create(context.shared(), 64_KiB));
  ASSERT_VALUE(const DeviceAddress address, memory.address());
  ASSERT_VALUE(const Stream stream, context.NewStream());
  std::memset(memory.data(), 0, 65536);
  ASSERT_OK(device.EnqueueFill(
      stream.get(), {.destination = address + 4_KiB, .value = 7, .width = 4, .count = 1024}));
  ASSERT_OK(stream.Synchronize(InTime()));
  const auto* words = static_cast<const std::uint32_t*>(memory.data());
  EXPECT_EQ(words[1023], 0u);
  EXPECT_EQ(words[1024], 7u);
  EXPECT_EQ(words[2047], 7u);
  EXPECT_EQ(words[2048], 0u);
}

KEEL_CONFORMANCE_CASE(HostMemory, EveryDeviceReachesIt, .devices = 2, .all_devices = true,
                      .needs = {&Capabilities::kernels}) {
  constexpr std::uint64_t kWords = 256;
  const std::uint64_t count = static_cast<std::uint64_t>(context.device_count());
  ASSERT_VALUE(HostMemory memory, HostMemory::Create(context.shared(0), Bytes(count * kWords * 4)));
  auto* words = static_cast<std::uint32_t*>(memory.data());
  std::vector<Stream> streams;
  for (int i = 0; i < context.device_count(); ++i) {
    // Each device fills its own part, at the address that it itself sees.
    ASSERT_VALUE(const DeviceAddress address,
                 context.device(i).GetHostAddress(words + static_cast<std::uint64_t>(i) * kWords));
    ASSERT_VALUE(Stream stream, context.NewStream(i));
    ASSERT_OK(
        context.LaunchFill(stream.get(), address, 100u + static_cast<std::uint32_t>(i), kWords, i));
    streams.push_back(std::move(stream));
  }
  for (const Stream& stream : streams) ASSERT_OK(stream.Synchronize(InTime()));
  for (std::uint64_t i = 0; i < count; ++i) {
    EXPECT_EQ(words[i * kWords], 100 + i);
    EXPECT_EQ(words[(i + 1) * kWords - 1], 100 + i);
  }
}

KEEL_CONFORMANCE_CASE(HostMemory, RegisteredMemoryIsPinned,
                      .needs = {&Capabilities::host_registration}) {
  Device& device = context.device();
  const Pages pages(PageSize() * 16);
  ASSERT_NE(pages.data(), nullptr);
  const std::vector<std::byte> bytes = Pattern(pages.size().count(), 1);
  std::memcpy(pages.data(), bytes.data(), bytes.size());
  ASSERT_VALUE(HostRegistration registration,
               HostRegistration::Create(context.shared(), pages.data(), pages.size()));
  // Registering changes nothing in it.
  EXPECT_EQ(std::memcmp(pages.data(), bytes.data(), bytes.size()), 0);
  ASSERT_VALUE(const DeviceAddress address, device.GetHostAddress(pages.data()));
  ASSERT_VALUE(const DeviceAddress inside, device.GetHostAddress(pages.data() + 5000));
  EXPECT_EQ(inside, address + 5000_B);
  // Both ways to use it: as the host side of a copy, and at its address.
  ASSERT_VALUE(const PlainMemory on_device, context.NewPlain(pages.size()));
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_OK(device.EnqueueCopy(stream.get(),
                               {.destination = Location::On(device.id(), on_device.address()),
                                .source = Location::Host(pages.data()),
                                .size = pages.size()}));
  ASSERT_OK(device.EnqueueFill(
      stream.get(), {.destination = address + 4_KiB, .value = 0xEE, .width = 1, .count = 4096}));
  ASSERT_OK(stream.Synchronize(InTime()));
  EXPECT_TRUE(context.HoldsBytes(on_device.address(), bytes));
  EXPECT_EQ(pages.data()[4096], std::byte{0xEE});
  EXPECT_EQ(pages.data()[8191], std::byte{0xEE});
  EXPECT_EQ(pages.data()[8192], bytes[8192]);
  ASSERT_OK(registration.Close());
  EXPECT_CODE(kInvalidArgument, device.GetHostAddress(pages.data()));
  // Still the host's memory, and can be registered again.
  EXPECT_EQ(pages.data()[4096], std::byte{0xEE});
  ASSERT_VALUE(HostRegistration again,
               HostRegistration::Create(context.shared(), pages.data(), pages.size()));
  EXPECT_OK(again.Close());
}

KEEL_CONFORMANCE_CASE(HostMemory, RegistrationNeedsNoAlignment,
                      .needs = {&Capabilities::host_registration}) {
  Device& device = context.device();
  const Pages pages(PageSize() * 8);
  ASSERT_NE(pages.data(), nullptr);
  std::byte* start = pages.data() + 100;
  ASSERT_VALUE(HostRegistration registration,
               HostRegistration::Create(context.shared(), start, 10000_B));
  ASSERT_VALUE(const DeviceAddress address, device.GetHostAddress(start));
  ASSERT_VALUE(const Stream stream, context.NewStream());
  ASSERT_OK(device.EnqueueFill(
      stream.get(), {.destination = address, .value = 0x11, .width = 1, .count = 10000}));
  ASSERT_OK(stream.Synchronize(InTime()));
  EXPECT_EQ(start[-1], std::byte{0});
  EXPECT_EQ(start[0], std::byte{0x11});
  EXPECT_EQ(start[9999], std::byte{0x11});
  EXPECT_EQ(start[10000], std::byte{0});
  EXPECT_OK(registration.Close());
}

KEEL_CONFORMANCE_CASE(HostMemory, RegistrationsDoNotOverlap,
                      .needs = {&Capabilities::host_registration}) {
  Device& device = context.device();
  const Bytes page = PageSize();
  const Pages pages(page * 16);
  ASSERT_NE(pages.data(), nullptr);
  std::byte* at = pages.data() + page.count() * 4;
  ASSERT_VALUE(HostRegistration registration,
               HostRegistration::Create(context.shared(), at, page * 4));
  const std::ptrdiff_t step = static_cast<std::ptrdiff_t>(page.count());
  EXPECT_CODE(kAlreadyExists, device.RegisterHost(at, page * 4));
  EXPECT_CODE(kAlreadyExists, device.RegisterHost(at, page));
  EXPECT_CODE(kAlreadyExists, device.RegisterHost(at + step, page));
  EXPECT_CODE(kAlreadyExists, device.RegisterHost(at - step, page * 2));
  EXPECT_CODE(kAlreadyExists, device.RegisterHost(at + 3 * step, page * 2));
  EXPECT_CODE(kAlreadyExists, device.RegisterHost(at - step, page * 8));
  // Neighbours do not overlap.
  ASSERT_VALUE(HostRegistration before,
               HostRegistration::Create(context.shared(), at - step, page));
  ASSERT_VALUE(HostRegistration after,
               HostRegistration::Create(context.shared(), at + 4 * step, page));
  // Allocated pinned memory is pinned already.
  ASSERT_VALUE(HostMemory allocated, HostMemory::Create(context.shared(), page * 4));
  EXPECT_CODE(kAlreadyExists, device.RegisterHost(allocated.data(), page));
}

KEEL_CONFORMANCE_CASE(HostMemory, BadRegistrationsAreRefused,
                      .needs = {&Capabilities::host_registration}) {
  Device& device = context.device();
  const Pages pages(PageSize() * 4);
  ASSERT_NE(pages.data(), nullptr);
  EXPECT_CODE(kInvalidArgument, device.RegisterHost(nullptr, PageSize()));
  EXPECT_CODE(kInvalidArgument, device.RegisterHost(pages.data(), Bytes(0)));
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  EXPECT_CODE(kInvalidArgument, device.RegisterHost(pages.data(), Bytes(most)));
  EXPECT_CODE(kInvalidArgument, device.UnregisterHost(nullptr));
  EXPECT_CODE(kInvalidArgument, device.UnregisterHost(pages.data()));
  ASSERT_VALUE(HostRegistration registration,
               HostRegistration::Create(context.shared(), pages.data(), pages.size()));
  EXPECT_CODE(kInvalidArgument, device.UnregisterHost(pages.data() + 4096));
  // Each kind is given back its own way.
  EXPECT_CODE(kInvalidArgument, device.FreeHost(pages.data()));
  ASSERT_VALUE(HostMemory allocated, HostMemory::Create(context.shared(), PageSize()));
  EXPECT_CODE(kInvalidArgument, device.UnregisterHost(allocated.data()));
  EXPECT_OK(registration.Close());
  EXPECT_CODE(kInvalidArgument, device.UnregisterHost(pages.data()));
}

KEEL_CONFORMANCE_CASE(HostMemory, WhatDoesNotExistCannotBePinned,
                      .needs = {&Capabilities::host_registration}) {
  auto* hole = static_cast<std::byte*>(nullptr);
  {
    const Pages gone(PageSize() * 4);
    hole = gone.data();
  }
  ASSERT_NE(hole, nullptr);
  const Status status = context.device().RegisterHost(hole, PageSize() * 4);
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(context.Works());
}

}  // namespace
}  // namespace keel::hal::conformance
