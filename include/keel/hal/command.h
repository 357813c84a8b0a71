// Commands: what can be put on a stream, and what can be a node of a graph.
//
// The same records serve both: Device::LaunchKernel(stream, launch) puts a launch on a stream,
// Device::AddNode(graph, {}, launch) makes a node of it, Device::SetNodeParams rewrites one in an
// instantiated graph. A record only refers to its arguments: they are read before the primitive
// returns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <variant>

#include "keel/hal/types.h"

namespace keel::hal {

// One argument of a kernel: a buffer (address, extent, what the kernel does with it) or a value.
// Extents are a promise about what the kernel touches: a real device ignores it, the simulated one
// holds the kernel to it.
//
// A value of up to kMaxValue bytes is in the argument; a larger one is referred to, as far as
// kMaxArguments goes for all arguments of a launch together. Each takes its size rounded up to 8.
class KernelArg {
 public:
  static constexpr std::size_t kMaxValue = 16;
  static constexpr std::size_t kMaxArguments = 4096;

  static KernelArg In(DeviceAddress address, Bytes extent) {
    return Buffer(address, extent, Access::kRead);
  }
  static KernelArg Out(DeviceAddress address, Bytes extent) {
    return Buffer(address, extent, Access::kWrite);
  }
  static KernelArg InOut(DeviceAddress address, Bytes extent) {
    return Buffer(address, extent, Access::kReadWrite);
  }
  template <class T>
  static KernelArg Value(const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kMaxValue);
    KernelArg arg;
    arg.size_ = sizeof(T);
    std::memcpy(arg.value_, &value, sizeof(T));
    return arg;
  }

  // Of a type that only the caller knows; `size` is at most kMaxValue.
  static KernelArg ValueOf(const void* bytes, std::size_t size) {
    KernelArg arg;
    arg.size_ = static_cast<std::uint32_t>(size);
    std::memcpy(arg.value_, bytes, size);
    return arg;
  }

  // Of any size. Beyond kMaxValue the bytes stay the caller's, who keeps them as they are until the
  // primitive that reads them returns.
  static KernelArg ValueAt(const void* bytes, std::size_t size) {
    if (size <= kMaxValue) return ValueOf(bytes, size);
    KernelArg arg;
    arg.size_ = static_cast<std::uint32_t>(size);
    std::memcpy(arg.value_, static_cast<const void*>(&bytes), sizeof(bytes));
    return arg;
  }

  bool is_buffer() const { return access_ != Access::kNone; }
  Access access() const { return access_; }  // kNone for a value
  Bytes extent() const { return extent_; }
  DeviceAddress address() const {
    std::uint64_t address = 0;
    std::memcpy(&address, value_, sizeof(address));
    return DeviceAddress(address);
  }
  // The bytes that the kernel gets: the value, or the address of the buffer.
  const void* data() const {
    if (size_ <= kMaxValue) return value_;
    const void* bytes = nullptr;
    std::memcpy(static_cast<void*>(&bytes), value_, sizeof(bytes));
    return bytes;
  }
  std::size_t size() const { return size_; }

 private:
  static KernelArg Buffer(DeviceAddress address, Bytes extent, Access access) {
    KernelArg arg = Value(address.value());
    arg.extent_ = extent;
    arg.access_ = access;
    return arg;
  }

  alignas(16) unsigned char value_[kMaxValue] = {};
  Bytes extent_;
  std::uint32_t size_ = 0;
  Access access_ = Access::kNone;
};

struct KernelLaunch {
  KernelHandle kernel{};
  LaunchDims dims{};
  std::span<const KernelArg> args{};
};

struct Copy {
  Location destination{};
  Location source{};
  Bytes size{};
};

// Writes `value`, `width` bytes wide (1, 2 or 4), `count` times. It must fit in that width.
struct Fill {
  DeviceAddress destination{};  // aligned to `width`
  std::uint32_t value = 0;
  std::uint32_t width = 1;
  std::uint64_t count = 0;
};

// A function that runs on a host thread when the stream reaches it. It must not throw, must not
// call any primitive of any device (it would wait for itself), and does not run at all if the
// device is lost before: give back nothing in it that must be given back.
using HostFunction = void (*)(void* data);
struct HostCall {
  HostFunction function = nullptr;
  void* data = nullptr;
};

// Writes 64 bits when the stream reaches it, after everything before it is visible. The address
// is device memory or the device address of pinned host memory, aligned to 8.
struct ValueWrite {
  DeviceAddress destination{};
  std::uint64_t value = 0;
};

// Holds the stream until the 64 bits at the address meet the condition.
enum class WaitCondition : std::uint8_t {
  kGreaterOrEqual,  // (int64_t)(memory - value) >= 0: cyclic, so that a counter may wrap
  kEqual,           // memory == value
  kAnd,             // (memory & value) != 0
};
struct ValueWait {
  DeviceAddress source{};
  std::uint64_t value = 0;
  WaitCondition condition = WaitCondition::kGreaterOrEqual;
};

// Nodes only: another graph, copied as it is now; and a node that does nothing but join others.
struct ChildGraph {
  GraphHandle graph{};
};
struct EmptyNode {};

using Command =
    std::variant<EmptyNode, KernelLaunch, Copy, Fill, HostCall, ValueWrite, ValueWait, ChildGraph>;

}  // namespace keel::hal
