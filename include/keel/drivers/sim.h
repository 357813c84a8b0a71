// The simulated accelerator's own interface: what exists beside the device layer, to configure it,
// to give it kernels and to steer its streams in tests.
//
// KEEL_SIM (read once, when the built-in driver is first used) and SimConfig have these keys:
//   devices:N        how many (default 1, 1..64)
//   memory:SIZE      capacity of each (default 16GiB)
//   granularity:SIZE of virtual memory, a power of two from 4KiB (default 2MiB)
//   unified:0|1      one address space for all devices, or one each, overlapping (default 1)
//   peers:all|none   who can access whom at the start (default all; none if not unified)
//   arena:SIZE       addresses of one device (default: 4TiB, less for many devices, and in a
//                    build with ThreadSanitizer 128GiB for all together)
//   mappings:N       of the host kernel's memory mappings, the most to use (default: seven eighths
//                    of vm.max_map_count)
//   seed:N           with delay: the seed of the random delays (default 1)
//   delay:MICROS     each command is delayed by a random time up to this (default 0: none)
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "keel/base/bytes.h"
#include "keel/base/export.h"
#include "keel/base/result.h"
#include "keel/hal/command.h"
#include "keel/hal/driver.h"

namespace keel::sim {

struct SimConfig {
  int devices = 1;
  Bytes memory = 16_GiB;
  Bytes granularity = 2_MiB;
  bool unified = true;
  bool peers = true;
  Bytes arena{};              // zero: chosen
  std::int64_t mappings = 0;  // zero: chosen
  std::uint64_t seed = 1;
  std::int64_t delay_us = 0;
};

// `source` names where the text came from, for errors.
KEEL_EXPORT Result<SimConfig> ParseSimConfig(std::string_view source, std::string_view text);

// A driver of its own, apart from the built-in one: other devices, other memory.
KEEL_EXPORT Result<std::unique_ptr<hal::Driver>> CreateSimDriver(const SimConfig& config);

// --- Kernels ---------------------------------------------------------------------------------

// What a kernel sees while it runs. Only valid during the call.
class KEEL_EXPORT KernelContext {
 public:
  virtual ~KernelContext() = default;
  virtual const hal::LaunchDims& dims() const = 0;
  virtual std::size_t arg_count() const = 0;

  // Argument i, a buffer: its bytes, as far as the launch declared them. Checked already.
  template <class T>
  std::span<T> Buffer(std::size_t i) {
    const std::span<std::byte> bytes = RawBuffer(i);
    return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  // Argument i, a value.
  template <class T>
  T Value(std::size_t i) const {
    T value;
    std::memcpy(&value, RawValue(i, sizeof(T)), sizeof(T));
    return value;
  }
  // A range that no argument declared (an address found in a table). Null if the device may not
  // do that there: the device is then lost when the kernel returns, which it should do at once.
  virtual std::byte* Translate(DeviceAddress address, Bytes size, hal::Access access) = 0;

 private:
  virtual std::span<std::byte> RawBuffer(std::size_t i) = 0;
  virtual const void* RawValue(std::size_t i, std::size_t size) const = 0;
};

// Runs the whole grid. Must not throw and must not call primitives. Other streams run at the same
// time: memory that the host or another stream may touch meanwhile needs atomic access.
using KernelFunction = void (*)(KernelContext& context);

struct KernelParameter {
  hal::Access access = hal::Access::kNone;  // kNone: a value
  std::uint32_t size = 0;                   // of a value, in bytes
  static constexpr KernelParameter In() { return {hal::Access::kRead, 8}; }
  static constexpr KernelParameter Out() { return {hal::Access::kWrite, 8}; }
  static constexpr KernelParameter InOut() { return {hal::Access::kReadWrite, 8}; }
  template <class T>
  static constexpr KernelParameter Value() {
    return {hal::Access::kNone, sizeof(T)};
  }
};

struct KernelDefinition {
  std::string_view name;
  KernelFunction function = nullptr;
  std::span<const KernelParameter> parameters;  // must live as long as the definition is used
};

// Makes a set of kernels known to every simulated device of the process, under a name for
// ModuleSource::Registered. kAlreadyExists if the name is taken. The definitions are copied.
KEEL_EXPORT Status RegisterKernels(std::string_view set, std::span<const KernelDefinition> kernels);

// A shared object is a module if it exports this function, which returns its kernels:
//   extern "C" const keel::sim::ModuleKernels* keel_sim_module();
struct ModuleKernels {
  const KernelDefinition* kernels = nullptr;
  std::size_t count = 0;
};
inline constexpr const char* kModuleEntry = "keel_sim_module";

// --- Steering ----------------------------------------------------------------------------------

// What a test can do to a simulated device, beyond the device layer. Thread-safe.
class KEEL_EXPORT Controls {
 public:
  virtual ~Controls() = default;
  // The stream starts no further command until it is released. Counted: hold twice, release twice.
  virtual Status HoldStream(hal::StreamHandle stream) = 0;
  virtual Status ReleaseStream(hal::StreamHandle stream) = 0;
  // Whether this device can access memory of `peer` from now on. Access that was set stays.
  // kFailedPrecondition if addresses are not unified.
  virtual Status SetPeer(hal::DeviceId peer, bool allowed) = 0;
  // Loses the device as a fault would, with this message.
  virtual void Lose(std::string_view reason) = 0;
  // Physical bytes in use, those kept by mappings included.
  virtual Bytes used() const = 0;
  // Of the kernel's memory mappings, how many the device's address space takes now.
  virtual std::size_t host_mappings() const = 0;
};

// The controls of a simulated device, also one inside a wrapper; null for any other device. They
// live as long as the device.
KEEL_EXPORT Controls* FindControls(hal::Device& device);

}  // namespace keel::sim
