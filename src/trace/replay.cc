#include "keel/trace/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "keel/hal/stream.h"
#include "keel/memory/device_allocator.h"
#include "trace/replay_device.h"

namespace keel::trace {
namespace {

constexpr std::uint64_t kProgressEvery = 1 << 16;

struct Live {
  DeviceAddress address;
  std::uint64_t size = 0;
  hal::StreamHandle stream;
};

// All of the block, by words.
Status Fill(hal::Device& device, const Live& block, std::uint32_t value) {
  constexpr std::uint32_t kWidth = 4;
  if (block.address == DeviceAddress() || block.size < kWidth) return OkStatus();
  return device.EnqueueFill(block.stream, {.destination = block.address,
                                           .value = value,
                                           .width = kWidth,
                                           .count = block.size / kWidth});
}

}  // namespace

Result<ReplayResult> Replay(const Snapshot& snapshot, int recorded_device,
                            std::shared_ptr<hal::Device> device, const ReplayOptions& options) {
  if (recorded_device < 0 || static_cast<std::size_t>(recorded_device) >= snapshot.devices.size()) {
    return InvalidArgument(fmt::format("the recording has no device {}: it has {}", recorded_device,
                                       snapshot.devices.size()));
  }
  const std::vector<Event>& events = snapshot.devices[static_cast<std::size_t>(recorded_device)];
  ReplayResult result;
  result.lag_us = options.lag.count();
  if (events.empty()) return result;
  // A log that knows no second moment of a free has it at the first.
  const bool completes = std::any_of(events.begin(), events.end(), [](const Event& event) {
    return event.action == Action::kFreeCompleted;
  });
  const Action freed = completes ? Action::kFreeCompleted : Action::kFreeRequested;

  const auto model =
      std::make_shared<ReplayDevice>(std::move(device), options.lag, options.real_work);
  std::unordered_map<std::uint64_t, hal::Stream> streams;  // outlive the allocator
  telemetry::EventLog log;
  KEEL_ASSIGN(const std::unique_ptr<memory::DeviceAllocator> allocator,
              memory::DeviceAllocator::Create(
                  model, {.config = options.config, .log = &log, .now_ns = [&model] {
                            return model->now_ns();
                          }}));
  std::unordered_map<std::uint64_t, Live> live;
  std::uint64_t requested = 0;
  const std::uint64_t sample_every =
      options.samples == 0 ? 0 : (events.size() - 1) / options.samples + 1;
  const auto take_sample = [&](std::uint64_t done) {
    const telemetry::MemoryStats stats = allocator->Stats();
    result.samples.push_back({done, static_cast<std::uint64_t>(stats.allocated_bytes.all.current),
                              static_cast<std::uint64_t>(stats.reserved_bytes.all.current)});
  };
  const auto began = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Event& event = events[i];
    model->SetTime(event.time_us - events.front().time_us);
    if (sample_every != 0 && i != 0 && i % sample_every == 0) take_sample(i);
    if (options.progress && i % kProgressEvery == 0) options.progress(i);
    if (event.action == Action::kAlloc) {
      auto stream = streams.find(event.stream);
      if (stream == streams.end()) {
        KEEL_ASSIGN(hal::Stream created, hal::Stream::Create(model));
        stream = streams.emplace(event.stream, std::move(created)).first;
      }
      ++result.operations;
      const Result<DeviceAddress> address =
          allocator->Allocate(Bytes(event.size), stream->second.get());
      if (!address.ok() && address.status().code() != StatusCode::kResourceExhausted) {
        return address.status();
      }
      requested += event.size;
      result.peak_requested = std::max(result.peak_requested, requested);
      if (!address.ok()) ++result.ooms;
      Live& block = live[event.address];
      block = {address.ok() ? *address : DeviceAddress(), event.size, stream->second.get()};
      if (options.real_work) KEEL_TRY(Fill(*model, block, 1));
    } else if (event.action == freed) {
      const auto found = live.find(event.address);
      if (found == live.end()) continue;  // from before the recording
      ++result.operations;
      requested -= found->second.size;
      if (options.real_work) KEEL_TRY(Fill(*model, found->second, 2));
      KEEL_TRY(allocator->Free(found->second.address));
      live.erase(found);
    }
  }
  if (sample_every != 0) take_sample(events.size());
  const auto took =
      std::chrono::steady_clock::now() - began - std::chrono::nanoseconds(model->slept_ns());
  result.recorded_us = events.back().time_us - events.front().time_us;
  result.ns_per_operation = result.operations == 0
                                ? 0
                                : std::chrono::duration<double, std::nano>(took).count() /
                                      static_cast<double>(result.operations);
  result.driver_calls = model->calls();
  result.driver_us = model->driver_ns() / 1000;
  const telemetry::MemoryStats stats = allocator->Stats();
  result.peak_allocated = static_cast<std::uint64_t>(stats.allocated_bytes.all.peak);
  result.peak_reserved = static_cast<std::uint64_t>(stats.reserved_bytes.all.peak);
  return result;
}

}  // namespace keel::trace
