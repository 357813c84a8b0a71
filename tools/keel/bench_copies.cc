// keel bench h2d: copies between pageable host memory and the device, until the bytes are there.

#include <cstddef>
#include <utility>

#include "keel/hal/memory.h"
#include "keel/hal/stream.h"
#include "keel/memory/host_allocator.h"
#include "keel/memory/staging.h"
#include "measure.h"

namespace keel::cli {
namespace {

constexpr Bytes kSmallest = 4_KiB;
constexpr Bytes kLargest = 256_MiB;
constexpr std::uint64_t kStep = 4;

// Both of one direction, in turns.
Result<std::vector<Measurement>> Copies(const BenchSetting& setting, bool to_device, Bytes size) {
  const std::shared_ptr<hal::Device>& device = setting.device;
  KEEL_ASSIGN(const hal::Stream stream, hal::Stream::Create(device));
  KEEL_ASSIGN(const hal::PlainMemory memory, hal::PlainMemory::Create(device, size));
  std::vector<std::byte> pageable(size.count(), std::byte{1});
  memory::Staging staging(std::make_shared<memory::HostAllocator>(
                              device, memory::HostAllocatorOptions::From(setting.config)),
                          setting.config);

  const hal::Location there = hal::Location::On(device->id(), memory.address());
  const hal::Location here = hal::Location::Host(pageable.data());
  const auto repeated = [&](auto copy) {
    return [&stream, copy](std::uint64_t count) -> Status {
      for (std::uint64_t i = 0; i < count; ++i) {
        KEEL_TRY(copy());
        KEEL_TRY(stream.Synchronize());
      }
      return OkStatus();
    };
  };
  const auto own = [&] {
    return device->EnqueueCopy(stream.get(), {.destination = to_device ? there : here,
                                              .source = to_device ? here : there,
                                              .size = size});
  };
  const auto staged = [&] {
    return to_device ? staging.CopyToDevice(stream.get(), memory.address(), pageable.data(), size)
                     : staging.CopyToHost(stream.get(), pageable.data(), memory.address(), size);
  };
  // What is copied from must have been written: untouched memory is quicker than any.
  KEEL_TRY(staging.CopyToDevice(stream.get(), memory.address(), pageable.data(), size));
  KEEL_ASSIGN(const std::vector<double> ns, MediansNs({repeated(own), repeated(staged)}));
  std::vector<Measurement> measurements;
  for (const bool is_staged : {false, true}) {
    measurements.push_back(
        {.name = to_device ? "to device" : "to host",
         .parameters = {{"way", is_staged ? "staged" : "own"}, {"size", size.count()}},
         .unit = Measurement::Unit::kGigabytesPerSecond,
         .value = static_cast<double>(size.count()) / ns[is_staged ? 1 : 0]});
  }
  return measurements;
}

}  // namespace

std::vector<BenchCase> CopyCases(const BenchSetting& setting) {
  std::vector<BenchCase> cases;
  for (const bool to_device : {true, false}) {
    for (Bytes size = kSmallest; size <= kLargest; size = size * kStep) {
      cases.push_back({(to_device ? "to device, " : "to host, ") + ToString(size),
                       [=] { return Copies(setting, to_device, size); }});
    }
  }
  return cases;
}

}  // namespace keel::cli
