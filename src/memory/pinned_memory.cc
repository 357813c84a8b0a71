#include "memory/pinned_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/ranges.h"
#include "memory/host_segments.h"
#include "memory/numa_policy.h"

namespace keel::memory {
namespace {

constexpr std::uint64_t kPage = HostSegments::kPage;

// The pages from `begin` to `end`, by the calling thread.
void Touch(std::byte* begin, const std::byte* end, int numa_node) {
  const ScopedNumaNode node(numa_node);
  for (volatile std::byte* page = begin; page < end; page += kPage) *page = std::byte{0};
}

void TouchAll(void* data, Bytes size, const PinnedOptions& options) {
  const std::uint64_t pages = size.count() / kPage;
  const auto parts = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(options.threads), 1,
                                               std::max<std::uint64_t>(pages, 1));
  auto* const bytes = static_cast<std::byte*>(data);
  const auto part = [&](std::uint64_t index) { return bytes + index * pages / parts * kPage; };
  std::vector<std::jthread> threads;
  std::uint64_t next = 1;
  try {
    for (; next < parts; ++next) {
      threads.emplace_back([from = part(next), to = part(next + 1), node = options.numa_node] {
        Touch(from, to, node);
      });
    }
  } catch (const std::system_error&) {
    // Then the rest is the caller's.
  }
  Touch(part(0), part(1), options.numa_node);
  if (next < parts) Touch(part(next), part(parts), options.numa_node);
}

Result<RegisteredPages> Register(const std::shared_ptr<hal::Device>& device, Bytes size,
                                 const PinnedOptions& options) {
  void* const data =
      mmap(nullptr, size.count(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return ResourceExhausted(fmt::format("the system has no {} of memory to pin: {}",
                                         ToString(size), std::system_category().message(errno)));
  }
  if (options.prefault || options.threads > 1) TouchAll(data, size, options);
  const ScopedNumaNode node(options.numa_node);
  if (Status registered = device->RegisterHost(data, size); !registered.ok()) {
    munmap(data, size.count());
    return registered;
  }
  return RegisteredPages(device, {.pointer = data, .size = size});
}

}  // namespace

Status RegisteredPagesTraits::GiveBack(hal::Device& device, const Handle& handle) {
  Status status = device.UnregisterHost(handle.pointer);
  // Memory that is still registered stays; on a lost device nothing uses it any more.
  if (status.ok() || status.code() == StatusCode::kDeviceLost) {
    munmap(handle.pointer, handle.size.count());
  }
  return status;
}

std::string RegisteredPagesTraits::Describe(const Handle& handle) {
  return fmt::format("UnregisterHost {} of {}", handle.pointer, ToString(handle.size));
}

Result<PinnedMemory> PinnedMemory::Create(const std::shared_ptr<hal::Device>& device, Bytes size,
                                          const PinnedOptions& options) {
  const ScopedRange range("pin host memory");
  PinnedMemory memory;
  if (options.registered) {
    KEEL_ASSIGN(memory.owner_, Register(device, size, options));
    return memory;
  }
  {
    const ScopedNumaNode node(options.numa_node);
    KEEL_ASSIGN(memory.owner_, hal::HostMemory::Create(device, size, options.host));
  }
  if (options.prefault) TouchAll(memory.data(), size, options);
  return memory;
}

}  // namespace keel::memory
