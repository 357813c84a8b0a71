// ProcessMemory: the allocators of the process, one set for each device that it uses.
//
// Whoever needs device memory and did not make an allocator of its own asks here: a plugin, the
// Python package, the C interface and C++ code then share what a device has, its limit and its
// statistics.
//
//   KEEL_ASSIGN(auto memory, memory::ProcessMemory::Global().For());        // the default device
//   KEEL_ASSIGN(auto other, memory::ProcessMemory::Global().For({.driver = "sim", .ordinal = 1}));
//   KEEL_ASSIGN(DeviceAddress block, memory->allocator().Allocate(64_MiB, stream));
//
// A set is made when it is first asked for, once, whichever threads ask: the device is opened and
// its allocators are configured by KEEL_ALLOC_CONF. A mistake there is the error of every call, and
// names the key. Devices of one driver that the process uses are each other's peers: each may reach
// the other's memory, as far as the hardware allows.
//
// How long: until the end of the process, and beyond the end of main. Nothing is given back at
// exit, when a vendor's library may be gone already; the system takes it. A set that was handed out
// lives as long as somebody holds it, also after Forget and Shutdown.
//
// A device that is lost keeps its set: memory can be freed, everything else is kDeviceLost. Forget,
// with nobody holding the set any more, closes the device, and the next For opens it anew.
//
// A child that was forked after the process began to use a device gets kFailedPrecondition from
// everything here: it must be started with exec (Python: the method "spawn"). One that was forked
// before is a process like any other.
//
// Any thread, any time, for every function.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "keel/base/export.h"
#include "keel/base/result.h"
#include "keel/hal/device_name.h"
#include "keel/hal/driver.h"
#include "keel/memory/allocator_config.h"
#include "keel/memory/device_allocator.h"
#include "keel/memory/event_pool.h"
#include "keel/memory/host_allocator.h"
#include "keel/memory/staging.h"

namespace keel::memory {

// What belongs to one device. Each part has its own contract; all are safe from any thread.
class KEEL_EXPORT DeviceMemory {
 public:
  // For a device outside of the registry.
  static Result<std::shared_ptr<DeviceMemory>> Create(std::shared_ptr<hal::Device> device,
                                                      const AllocatorConfig& config);
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  const std::shared_ptr<hal::Device>& device() const { return device_; }
  // "sim:0"
  hal::DeviceName name() const;
  EventPool& events() { return events_; }
  DeviceAllocator& allocator() { return *allocator_; }
  // Pinned host memory.
  HostAllocator& host() { return *host_; }
  // Copies between pageable host memory and the device.
  Staging& staging() { return staging_; }

  // Copies that are over for the host when they return, in the order of the stream: the source may
  // be reused, the bytes are in the destination. Pageable memory is staged; pinned memory, any
  // driver's or the HostAllocator's, is transferred as it is: the stream is waited for, even after
  // the deadline. On an error a part of the destination may have been written. kFailedPrecondition
  // for pinned memory while the stream is being captured: that is what the two below are for.
  Status CopyToDevice(hal::StreamHandle stream, DeviceAddress destination, const void* source,
                      Bytes size, Deadline deadline = Deadline::Never());
  Status CopyToHost(hal::StreamHandle stream, void* destination, DeviceAddress source, Bytes size,
                    Deadline deadline = Deadline::Never());
  // Copies that are queued when they return. The host memory must be pinned (kInvalidArgument) and
  // stay as it is until the stream is past them; HostAllocator::RecordUse sees to that for its own.
  Status EnqueueCopyToDevice(hal::StreamHandle stream, DeviceAddress destination,
                             const void* source, Bytes size);
  Status EnqueueCopyToHost(hal::StreamHandle stream, void* destination, DeviceAddress source,
                           Bytes size);

 private:
  DeviceMemory(std::shared_ptr<hal::Device> device, std::unique_ptr<DeviceAllocator> allocator,
               const AllocatorConfig& config);
  Status Transfer(hal::StreamHandle stream, const hal::Copy& copy, Deadline deadline);

  const std::shared_ptr<hal::Device> device_;
  EventPool events_;
  const std::unique_ptr<DeviceAllocator> allocator_;
  const std::shared_ptr<HostAllocator> host_;
  Staging staging_;
};

class KEEL_EXPORT ProcessMemory {
 public:
  // The process's, over hal::Registry::Global() and KEEL_ALLOC_CONF. Never destroyed.
  static ProcessMemory& Global();

  // The registry must outlive it.
  ProcessMemory(hal::Registry& registry, Result<AllocatorConfig> config);
  ~ProcessMemory();
  ProcessMemory(const ProcessMemory&) = delete;
  ProcessMemory& operator=(const ProcessMemory&) = delete;

  // The set of a device; of no name, that of device 0 of the default driver, as `keel info` marks
  // it. Looks it up under a lock: keep the pointer. kNotFound names the device that is not there,
  // and those that are.
  Result<std::shared_ptr<DeviceMemory>> For(const hal::DeviceName& name = {});
  // The full name of a device that is there, with its driver; opens nothing. kNotFound as above.
  Result<hal::DeviceName> FullName(const hal::DeviceName& name = {}) const;
  // The sets that there are, by driver and number; makes none.
  Result<std::vector<std::shared_ptr<DeviceMemory>>> List() const;

  // The next For of this device makes a new set. kNotFound: there is none, or no such device.
  Status Forget(const hal::DeviceName& name);
  // Forgets all. For tests, and for a program that wants its devices closed before it goes on.
  Status Shutdown();

 private:
  // Driver and ordinal: what a name stands for.
  struct Key {
    hal::Driver* driver = nullptr;
    int ordinal = 0;
    friend bool operator<(const Key& a, const Key& b) {
      return std::pair(a.driver->name(), a.ordinal) < std::pair(b.driver->name(), b.ordinal);
    }
  };
  Result<Key> Resolve(const hal::DeviceName& name) const;
  bool used() const { return used_.load(std::memory_order_acquire) != 0; }
  // OK, but in a child that was forked after the first use.
  Status Here() const;
  struct Sets;

  hal::Registry& registry_;
  const Result<AllocatorConfig> config_;
  // The generation of forks in which a device was first used, plus 1; 0: none was. Set before the
  // set is made, so that a child that is forked meanwhile is refused as well.
  std::atomic<std::uint64_t> used_{0};
  std::unique_ptr<Sets> sets_;
};

}  // namespace keel::memory
