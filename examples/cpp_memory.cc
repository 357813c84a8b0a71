// Memory of a device from C++: buffers, a kernel on two streams, statistics, and what runs out.
// docs/cpp.md walks through it.
#include <keel/hal/event.h>
#include <keel/hal/module.h>
#include <keel/hal/standard_kernels.h>
#include <keel/hal/stream.h>
#include <keel/memory/device_buffer.h>
#include <keel/memory/process_memory.h>
#include <keel/telemetry/tags.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

using namespace keel;
using memory::DeviceBuffer;

constexpr std::size_t kCount = 1 << 20;

Status Run() {
  // The allocators of the process for the default device; every part of the program gets these.
  KEEL_ASSIGN(const auto memory, memory::ProcessMemory::Global().For());
  const std::shared_ptr<hal::Device>& device = memory->device();
  KEEL_ASSIGN(const auto stream, hal::Stream::Create(device));
  KEEL_ASSIGN(const auto other, hal::Stream::Create(device));
  KEEL_ASSIGN(const auto ready, hal::Event::Create(device));

  // What is allocated in this scope is tagged, in statistics and in snapshots.
  const telemetry::ScopedTag tag("weights");
  KEEL_ASSIGN(auto weights, DeviceBuffer<float>::Create(memory, stream.get(), kCount));
  KEEL_ASSIGN(auto change, DeviceBuffer<float>::Create(memory, stream.get(), kCount));
  KEEL_TRY(weights.CopyFrom(std::vector<float>(kCount, 1.0F)));
  KEEL_TRY(change.Fill(0.0F));

  // change += 2 * weights, on another stream: first wait for what this one has queued, then say
  // that the other uses the memory.
  KEEL_TRY(ready.Record(stream.get()));
  KEEL_TRY(device->WaitEvent(other.get(), ready.get()));
  KEEL_ASSIGN(const auto kernels, hal::Module::LoadStandard(device));
  KEEL_ASSIGN(const auto axpy, kernels.Find(hal::kernels::kAxpy));
  const std::array args = {hal::KernelArg::In(weights.address(), weights.bytes()),
                           hal::KernelArg::InOut(change.address(), change.bytes()),
                           hal::KernelArg::Value(2.0F),
                           hal::KernelArg::Value(std::uint64_t{kCount})};
  KEEL_TRY(device->LaunchKernel(
      other.get(),
      {.kernel = axpy, .dims = {.grid = {64, 1, 1}, .block = {256, 1, 1}}, .args = args}));
  KEEL_TRY(weights.RecordUse(other.get()));
  KEEL_TRY(weights.Close());  // freed now, and reused when the other stream is done with it

  KEEL_TRY(ready.Record(other.get()));
  KEEL_TRY(device->WaitEvent(stream.get(), ready.get()));
  std::vector<float> result(kCount);
  KEEL_TRY(change.CopyTo(result));
  for (const float each : result) {
    if (each != 2.0F) return Internal("the device computed something else");
  }

  const telemetry::MemoryStats stats = memory->allocator().Stats();
  std::printf("%s: %lld bytes allocated, %lld reserved\n", memory->name().ToString().c_str(),
              static_cast<long long>(stats.allocated_bytes.all.current),
              static_cast<long long>(stats.reserved_bytes.all.current));

  // A request that cannot be met is a status, with a report of several lines.
  const auto huge = DeviceBuffer<float>::Create(memory, stream.get(), std::size_t{1} << 50);
  if (huge.status().code() != StatusCode::kResourceExhausted) {
    return Internal("a device of a million gigabytes?");
  }
  std::printf("%s\n", huge.status().ToString().c_str());

  // Streams go before the allocators do: tell them.
  KEEL_TRY(change.Close());
  KEEL_TRY(memory->allocator().ForgetStream(other.get()));
  return memory->allocator().ForgetStream(stream.get());
}

}  // namespace

int main() {
  const Status status = Run();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
