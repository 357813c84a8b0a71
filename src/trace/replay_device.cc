#include "trace/replay_device.h"

#include <array>
#include <span>
#include <thread>
#include <utility>

namespace keel::trace {

enum class ReplayDevice::Call : std::uint8_t {
  kCreate,
  kMap,
  kSetAccess,
  kUnmap,
  kRelease,
  kReserve,
  kFreeAddress,
  kAllocatePlain,
  kFreePlain,
};

namespace {

struct Point {
  double mib = 0;
  double us = 0;
};
struct Cost {
  const char* name;
  std::array<Point, 6> points;
};

// Medians on a data-centre GPU of 2023 for one handle of so many MiB; between two points a line,
// beyond the last in proportion. benchmarks/reference.json says where they are from.
constexpr std::array<Cost, 9> kCosts = {{
    {"CreateMemory", {{{2, 11}, {8, 10}, {32, 11}, {64, 12}, {256, 15}, {1024, 75}}}},
    {"Map", {{{2, 1}, {8, 1}, {32, 1}, {64, 1}, {256, 1}, {1024, 1}}}},
    {"SetAccess", {{{2, 26}, {8, 25}, {32, 40}, {64, 43}, {256, 43}, {1024, 74}}}},
    {"Unmap", {{{2, 18}, {8, 17}, {32, 25}, {64, 25}, {256, 25}, {1024, 35}}}},
    {"ReleaseMemory", {{{2, 14}, {8, 16}, {32, 30}, {64, 47}, {256, 107}, {1024, 444}}}},
    {"ReserveAddress", {{{2, 3}, {8, 3}, {32, 3}, {64, 3}, {256, 3}, {1024, 3}}}},
    {"FreeAddress", {{{2, 3}, {8, 3}, {32, 3}, {64, 3}, {256, 3}, {1024, 3}}}},
    {"AllocatePlain", {{{2, 39}, {8, 41}, {32, 50}, {64, 63}, {256, 140}, {1024, 450}}}},
    {"FreePlain", {{{2, 38}, {8, 40}, {32, 50}, {64, 62}, {256, 140}, {1024, 450}}}},
}};
// Neither depends on the size.
constexpr std::size_t kReserveCall = 5;

double CostOf(std::size_t call, Bytes size) {
  const auto& points = kCosts[call].points;
  const double mib = static_cast<double>(size.count()) / (1 << 20);
  if (mib <= points.front().mib) return points.front().us;
  for (std::size_t i = 1; i < points.size(); ++i) {
    if (mib > points[i].mib) continue;
    const Point& a = points[i - 1];
    const Point& b = points[i];
    return a.us + (b.us - a.us) * (mib - a.mib) / (b.mib - a.mib);
  }
  if (call >= kReserveCall && call <= kReserveCall + 1) return points.back().us;
  return points.back().us * mib / points.back().mib;
}

}  // namespace

template <class Function>
auto ReplayDevice::Charge(Call call, Bytes size, Function function) {
  const auto index = static_cast<std::size_t>(call);
  ++calls_[kCosts[index].name];
  const auto before = std::chrono::steady_clock::now();
  auto result = function();
  const auto took = std::chrono::steady_clock::now() - before;
  driver_ns_ += wrapped()->info().simulated
                    ? static_cast<std::int64_t>(CostOf(index, size) * 1000)
                    : std::chrono::duration_cast<std::chrono::nanoseconds>(took).count();
  return result;
}

void ReplayDevice::SetTime(std::int64_t time_us) {
  time_ns_ = time_us * 1000;
  if (!real_work_) return;
  const auto before = Clock::now();
  std::this_thread::sleep_until(began_ + std::chrono::microseconds(time_us));
  slept_ns_ += std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - before).count();
}

std::int64_t ReplayDevice::now_ns() const {
  if (!real_work_) return time_ns_ + driver_ns_ + waited_ns_;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - began_).count();
}

Result<DeviceAddress> ReplayDevice::AllocatePlain(Bytes size) {
  KEEL_ASSIGN(const DeviceAddress address, Charge(Call::kAllocatePlain, size, [&] {
                return ForwardingDevice::AllocatePlain(size);
              }));
  plain_[address] = size;
  return address;
}

Status ReplayDevice::FreePlain(DeviceAddress address) {
  const Bytes size = plain_[address];
  plain_.erase(address);
  // It waits until nothing can use the memory any more.
  waited_ns_ += lag_ns_;
  return Charge(Call::kFreePlain, size, [&] { return ForwardingDevice::FreePlain(address); });
}

Result<hal::MemoryHandle> ReplayDevice::CreateMemory(Bytes size,
                                                     const hal::MemoryOptions& options) {
  KEEL_ASSIGN(const hal::MemoryHandle memory, Charge(Call::kCreate, size, [&] {
                return ForwardingDevice::CreateMemory(size, options);
              }));
  memory_[memory] = size;
  return memory;
}

Status ReplayDevice::ReleaseMemory(hal::MemoryHandle memory) {
  const Bytes size = memory_[memory];
  memory_.erase(memory);
  return Charge(Call::kRelease, size, [&] { return ForwardingDevice::ReleaseMemory(memory); });
}

Result<DeviceAddress> ReplayDevice::ReserveAddress(Bytes size, Bytes alignment,
                                                   DeviceAddress hint) {
  return Charge(Call::kReserve, size,
                [&] { return ForwardingDevice::ReserveAddress(size, alignment, hint); });
}

Status ReplayDevice::FreeAddress(DeviceAddress address, Bytes size) {
  return Charge(Call::kFreeAddress, size,
                [&] { return ForwardingDevice::FreeAddress(address, size); });
}

Status ReplayDevice::Map(DeviceAddress address, Bytes size, Offset offset,
                         hal::MemoryHandle memory) {
  return Charge(Call::kMap, size,
                [&] { return ForwardingDevice::Map(address, size, offset, memory); });
}

Status ReplayDevice::Unmap(DeviceAddress address, Bytes size) {
  return Charge(Call::kUnmap, size, [&] { return ForwardingDevice::Unmap(address, size); });
}

Status ReplayDevice::SetAccess(DeviceAddress address, Bytes size,
                               std::span<const hal::AccessGrant> grants) {
  return Charge(Call::kSetAccess, size,
                [&] { return ForwardingDevice::SetAccess(address, size, grants); });
}

Status ReplayDevice::DestroyEvent(hal::EventHandle event) {
  reached_at_.erase(event);
  return ForwardingDevice::DestroyEvent(event);
}

Status ReplayDevice::RecordEvent(hal::EventHandle event, hal::StreamHandle stream) {
  ++calls_["RecordEvent"];
  if (real_work_) return ForwardingDevice::RecordEvent(event, stream);
  reached_at_[event] = now_ns() + lag_ns_;
  return OkStatus();
}

Result<hal::Completion> ReplayDevice::QueryEvent(hal::EventHandle event) {
  ++calls_["QueryEvent"];
  if (real_work_) return ForwardingDevice::QueryEvent(event);
  const auto found = reached_at_.find(event);
  const bool reached = found == reached_at_.end() || found->second <= now_ns();
  return reached ? hal::Completion::kDone : hal::Completion::kPending;
}

Status ReplayDevice::SynchronizeEvent(hal::EventHandle event, Deadline deadline) {
  ++calls_["SynchronizeEvent"];
  if (real_work_) return ForwardingDevice::SynchronizeEvent(event, deadline);
  const auto found = reached_at_.find(event);
  if (found != reached_at_.end() && found->second > now_ns()) {
    waited_ns_ += found->second - now_ns();
  }
  return OkStatus();
}

}  // namespace keel::trace
