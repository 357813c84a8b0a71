// What the tests of this layer share: a simulated device whose calls are counted, memory on it, its
// kernels, and arrays of floats to put in and take out.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/slot.h"
#include "hal/sim_devices_test.h"
#include "keel/graph/executable.h"
#include "keel/hal/module.h"
#include "keel/hal/standard_kernels.h"
#include "keel/hal/stream.h"
#include "keel/memory/process_memory.h"

namespace keel::graph {

using hal::IsOk;
using hal::Need;
using hal::Primitive;

inline constexpr std::size_t kFloats = 256;
inline constexpr Bytes kSize{kFloats * sizeof(float)};
inline constexpr hal::LaunchDims kDims{.grid = {1, 1, 1}, .block = {64, 1, 1}};

inline Deadline Soon() { return Deadline::After(std::chrono::seconds(60)); }

inline std::vector<float> Same(float value, std::size_t count = kFloats) {
  return std::vector<float>(count, value);
}

// One device, with everything that a program needs. Several may be made on one driver.
class Bench {
 public:
  explicit Bench(std::shared_ptr<hal::Device> inner)
      : inner_(std::move(inner)),
        device_(hal::Instrumented(inner_)),
        module_(Need(hal::Module::LoadStandard(inner_))),
        stream_(Need(hal::Stream::Create(inner_))),
        memory_(Need(memory::DeviceMemory::Create(device_, {}))) {}

  hal::InstrumentedDevice& device() { return *device_; }
  const std::shared_ptr<hal::Device>& inner() { return inner_; }
  const std::shared_ptr<memory::DeviceMemory>& memory() { return memory_; }
  hal::StreamHandle stream() const { return stream_.get(); }
  sim::Controls& controls() { return *sim::FindControls(*inner_); }
  hal::KernelHandle Kernel(std::string_view name) const { return Need(module_.Find(name)); }

  Buffer Allocate(Bytes size = kSize) {
    return {.address = Need(memory_->allocator().Allocate(size, stream())), .size = size};
  }
  void Free(const Buffer& buffer) { EXPECT_TRUE(IsOk(memory_->allocator().Free(buffer.address))); }
  // Filled with `value`, when it returns.
  Buffer Filled(float value, std::size_t count = kFloats) {
    const Buffer buffer = Allocate(Bytes(count * sizeof(float)));
    Write(buffer, std::vector<float>(count, value));
    return buffer;
  }
  // Physical memory in one handle, which the test sees at `buffer.address`.
  struct Place {
    Buffer buffer;
    hal::Mapping seen;
  };
  Place MakePlace(float value) {
    const Bytes size = *AlignUp(kSize, inner_->capabilities().granularity.minimum);
    auto memory = std::make_shared<const hal::PhysicalMemory>(
        Need(hal::PhysicalMemory::Create(inner_, size)));
    const hal::AddressRange range = Need(hal::AddressRange::Create(inner_, size));
    const hal::AccessGrant grant{.device = inner_->id(), .access = hal::Access::kReadWrite};
    Place place;
    place.seen = Need(hal::Mapping::Create(range, Offset(0), *memory, {&grant, 1}));
    place.buffer = {.address = place.seen.address(), .size = kSize, .memory = std::move(memory)};
    Write(place.buffer, Same(value));
    return place;
  }
  void Write(const Buffer& buffer, const std::vector<float>& values) {
    Write(buffer.address, values);
  }
  void Write(DeviceAddress to, const std::vector<float>& values) {
    EXPECT_TRUE(IsOk(memory_->CopyToDevice(stream(), to, values.data(),
                                           Bytes(values.size() * sizeof(float)), Soon())));
  }
  std::vector<float> Read(DeviceAddress from, std::size_t count = kFloats) {
    std::vector<float> values(count);
    EXPECT_TRUE(IsOk(
        memory_->CopyToHost(stream(), values.data(), from, Bytes(count * sizeof(float)), Soon())));
    return values;
  }
  std::vector<float> Read(const Buffer& buffer, std::size_t count = kFloats) {
    return Read(buffer.address, count);
  }

  // Calls since the last ResetCounts that record, instantiate or capture.
  std::uint64_t RecordingCalls() const {
    std::uint64_t calls = 0;
    for (const Primitive each :
         {Primitive::kBeginCapture, Primitive::kEndCapture, Primitive::kCreateGraph,
          Primitive::kAddNode, Primitive::kInstantiate, Primitive::kUpdateExec}) {
      calls += device_->calls(each);
    }
    return calls;
  }

 private:
  std::shared_ptr<hal::Device> inner_;
  std::shared_ptr<hal::InstrumentedDevice> device_;
  hal::Module module_;
  hal::Stream stream_;
  std::shared_ptr<memory::DeviceMemory> memory_;
};

inline std::vector<Operand> ReadsAndWrites(BindingId a, BindingId b, BindingId sum) {
  return {{a, hal::Access::kRead}, {b, hal::Access::kRead}, {sum, hal::Access::kWrite}};
}

// sum = a + b, as the function of a traced or an eager command that `uses` these bindings. `calls`
// counts, where there is one.
inline TraceFunction Adds(hal::KernelHandle add, BindingId a, BindingId b, BindingId sum,
                          int* calls = nullptr) {
  return [=](const TraceContext& context) -> Status {
    if (calls != nullptr) ++*calls;
    const std::array arguments = {hal::KernelArg::In(context.address(a), kSize),
                                  hal::KernelArg::In(context.address(b), kSize),
                                  hal::KernelArg::Out(context.address(sum), kSize),
                                  hal::KernelArg::Value(std::uint64_t{kFloats})};
    return context.device().LaunchKernel(context.stream(),
                                         {.kernel = add, .dims = kDims, .args = arguments});
  };
}

struct LeaseTestPeer {
  // How often a binding was looked at, from the lease's beginning on.
  static std::uint64_t Looks(const Lease& lease) { return lease.slot_->use.looks; }
};

using Bound = std::vector<std::pair<BindingId, Buffer>>;

// A step from its beginning to its end. `report` is filled also when it fails.
inline Status RunStep(Executable& executable, hal::StreamHandle stream, const Bound& bound = {},
                      ReplayReport* report = nullptr) {
  KEEL_ASSIGN(Lease lease, executable.Acquire(stream, Soon()));
  for (const auto& [binding, buffer] : bound) KEEL_TRY(lease.Bind(binding, buffer));
  const Status launched = lease.Launch(Soon());
  if (report != nullptr) *report = lease.report();
  KEEL_TRY(launched);
  return lease.Wait(Soon());
}

inline bool Has(const ReplayReport& report, ActionKind kind, Reason reason) {
  return std::any_of(report.actions().begin(), report.actions().end(), [&](const Action& action) {
    return action.kind == kind && action.reason == reason;
  });
}

class GraphTest : public ::testing::Test {
 protected:
  void SetUp() override { SetLogLevel(LogLevel::kOff); }
  void TearDown() override { SetLogLevel(LogLevel::kWarn); }

  explicit GraphTest(const sim::SimConfig& config = {.devices = 1,
                                                     .memory = 1_GiB,
                                                     .arena = 60_GiB})
      : driver_(Need(sim::CreateSimDriver(config))), bench_(Need(driver_->Open(0))) {}

  // sum = a + b; total += 2 * sum.
  struct Adding {
    BindingId a, b, sum, total;
    std::shared_ptr<const Program> program;
  };
  Adding MakeAdding(Policy inputs, Policy outputs, BindingAccess total = BindingAccess::kInOut) {
    ProgramBuilder builder("adding");
    Adding made;
    made.a = builder.Bind({.name = "a", .size = kSize, .policy = inputs});
    made.b = builder.Bind({.name = "b", .size = kSize, .policy = inputs});
    made.sum = builder.Bind(
        {.name = "sum", .size = kSize, .access = BindingAccess::kOut, .policy = outputs});
    made.total =
        builder.Bind({.name = "total",
                      .size = kSize,
                      .access = total,
                      .policy = total == BindingAccess::kResident ? Policy::kAuto : outputs});
    builder.Kernel(bench_.Kernel(hal::kernels::kAdd), kDims,
                   {Argument::In(made.a), Argument::In(made.b), Argument::Out(made.sum),
                    Argument::Value(std::uint64_t{kFloats})});
    builder.Kernel(bench_.Kernel(hal::kernels::kAxpy), kDims,
                   {Argument::In(made.sum), Argument::InOut(made.total), Argument::Value(2.0F),
                    Argument::Value(std::uint64_t{kFloats})});
    made.program = Need(std::move(builder).Build());
    return made;
  }

  std::unique_ptr<hal::Driver> driver_;
  Bench bench_;
};

}  // namespace keel::graph
