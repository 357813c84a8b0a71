// ReplayDevice: a device in the time of a recording. Events are reached when the recording's clock,
// moved on by the replay, is `lag` past the moment at which they were recorded; calls that manage
// memory take what they take, measured on a real device, by a table of measured costs on a
// simulated one. Everything else is the wrapped device.
//
// With real work there is no model: events are the wrapped device's, time is the clock's, and
// SetTime waits until the recording's time has come.
//
// For one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "keel/hal/forwarding_device.h"

namespace keel::trace {

class ReplayDevice : public hal::ForwardingDevice {
 public:
  using Clock = std::chrono::steady_clock;

  ReplayDevice(std::shared_ptr<hal::Device> device, std::chrono::microseconds lag, bool real_work)
      : ForwardingDevice(std::move(device)),
        lag_ns_(lag.count() * 1000),
        real_work_(real_work),
        began_(Clock::now()) {}

  // The recording is at this time now.
  void SetTime(std::int64_t time_us);
  // That, with what calls of the driver and waiting have added to it.
  std::int64_t now_ns() const;

  std::int64_t driver_ns() const { return driver_ns_; }
  // Waiting for the recording's time to come.
  std::int64_t slept_ns() const { return slept_ns_; }
  const std::map<std::string, std::uint64_t>& calls() const { return calls_; }

  Result<DeviceAddress> AllocatePlain(Bytes size) override;
  Status FreePlain(DeviceAddress address) override;
  Result<hal::MemoryHandle> CreateMemory(Bytes size, const hal::MemoryOptions& options) override;
  Status ReleaseMemory(hal::MemoryHandle memory) override;
  Result<DeviceAddress> ReserveAddress(Bytes size, Bytes alignment, DeviceAddress hint) override;
  Status FreeAddress(DeviceAddress address, Bytes size) override;
  Status Map(DeviceAddress address, Bytes size, Offset offset, hal::MemoryHandle memory) override;
  Status Unmap(DeviceAddress address, Bytes size) override;
  Status SetAccess(DeviceAddress address, Bytes size,
                   std::span<const hal::AccessGrant> grants) override;

  Status DestroyEvent(hal::EventHandle event) override;
  Status RecordEvent(hal::EventHandle event, hal::StreamHandle stream) override;
  Result<hal::Completion> QueryEvent(hal::EventHandle event) override;
  Status SynchronizeEvent(hal::EventHandle event, Deadline deadline) override;

 private:
  enum class Call : std::uint8_t;
  // Makes the call, and adds it and its cost to the books.
  template <class Function>
  auto Charge(Call call, Bytes size, Function function);

  const std::int64_t lag_ns_;
  const bool real_work_;
  const Clock::time_point began_;
  std::int64_t time_ns_ = 0;
  std::int64_t driver_ns_ = 0;
  std::int64_t waited_ns_ = 0;
  std::int64_t slept_ns_ = 0;
  std::map<std::string, std::uint64_t> calls_;
  std::map<hal::MemoryHandle, Bytes> memory_;
  std::map<DeviceAddress, Bytes> plain_;
  std::map<hal::EventHandle, std::int64_t> reached_at_;
};

}  // namespace keel::trace
