// The small values that the device layer's primitives take and return.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "keel/base/bytes.h"

namespace keel::hal {

// One opened device of this process, whatever its driver. Never zero, never reused: a device that
// was closed and opened again has another id. It names a device in a (device, address) pair.
enum class DeviceId : std::uint32_t { kNone = 0 };

// A primitive's handle: the vendor's own value in 64 bits, so that it costs nothing. Zero is "no
// handle". A handle is not an owner; the owning classes are in stream.h, event.h, memory.h,
// graph.h and module.h.
template <class Tag>
struct Handle {
  std::uint64_t value = 0;
  constexpr explicit operator bool() const { return value != 0; }
  friend constexpr auto operator<=>(Handle, Handle) = default;
};
using StreamHandle = Handle<struct StreamTag>;
using EventHandle = Handle<struct EventTag>;
using MemoryHandle = Handle<struct MemoryTag>;  // physical memory
using ModuleHandle = Handle<struct ModuleTag>;
using KernelHandle = Handle<struct KernelTag>;  // lives as long as its module
using GraphHandle = Handle<struct GraphTag>;
using NodeHandle = Handle<struct NodeTag>;  // lives as long as its graph
using ExecHandle = Handle<struct ExecTag>;  // an instantiated graph

// Expected outcomes of looking at work: never an error, and an error is never one of these.
enum class Completion { kPending, kDone };

// What a device may do with a page, and what a command does with a buffer.
enum class Access : std::uint8_t { kNone = 0, kRead = 1, kWrite = 2, kReadWrite = 3 };
constexpr bool Allows(Access granted, Access wanted) {
  return (static_cast<unsigned>(wanted) & ~static_cast<unsigned>(granted)) == 0;
}

struct AccessGrant {
  DeviceId device = DeviceId::kNone;
  Access access = Access::kNone;  // kNone, kRead or kReadWrite
};

struct MemoryInfo {
  Bytes free;   // what the device could still give, to anybody
  Bytes total;  // its capacity
};

struct MemoryOptions {
  // Can be exported to another process. Fixed at creation.
  bool exportable = false;
  // Other hardware (a network card) may read and write it directly; needs
  // Capabilities::rdma_memory.
  bool rdma = false;
};

struct HostOptions {
  // Faster for the device to read, very slow for the host to read.
  bool write_combined = false;
};

struct StreamOptions {
  // Lower is more urgent; clamped to what the device has. 0 is the default.
  int priority = 0;
};

struct EventOptions {
  // Can be given to ElapsedMilliseconds. Costs a little more to record.
  bool timing = false;
};

// Where a byte is: in host memory, or at an address of one device.
struct Location {
  DeviceId device = DeviceId::kNone;  // kNone: host memory
  std::uint64_t address = 0;

  static Location Host(const void* pointer) {
    return {DeviceId::kNone, reinterpret_cast<std::uintptr_t>(pointer)};
  }
  static Location On(DeviceId device, DeviceAddress address) { return {device, address.value()}; }

  bool on_host() const { return device == DeviceId::kNone; }
  friend bool operator==(const Location&, const Location&) = default;
};

// How a thread's calls, and a capture, treat calls that are unsafe while somebody records.
enum class CaptureMode : std::uint8_t {
  kGlobal,       // as capture: forbids unsafe calls to every thread. As thread mode: obeys all
  kThreadLocal,  // as capture: to the thread that began it. As thread mode: obeys own captures
  kRelaxed,      // as capture: to nobody. As thread mode: obeys none
};

enum class CaptureState : std::uint8_t {
  kNone,         // not capturing
  kActive,       // capturing
  kInvalidated,  // capturing, and broken by an illegal call: only EndCapture helps
};

enum class DefaultStream : std::uint8_t {
  kLegacy,     // the one that all threads share
  kPerThread,  // the calling thread's own
};

struct LaunchDims {
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block{1, 1, 1};
  Bytes shared_memory{};
};

// Granularity of virtual memory: sizes of physical memory and reservations, and addresses of
// mappings, are multiples of it.
struct Granularity {
  Bytes minimum;
  Bytes recommended;
};

}  // namespace keel::hal
