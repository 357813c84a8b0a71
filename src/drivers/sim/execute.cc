#include "drivers/sim/execute.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <random>
#include <span>
#include <thread>
#include <utility>

#include "drivers/sim/controller.h"
#include "drivers/sim/machine.h"
#include "drivers/sim/sim_device.h"
#include "drivers/sim/stream.h"
#include "hal/host_call_scope.h"

namespace keel::sim {
namespace {

using hal::Access;

std::chrono::microseconds RandomDelay(SimStream& stream) {
  const std::int64_t most = stream.device().machine().config().delay_us;
  if (most == 0) return std::chrono::microseconds(0);
  // Half of the commands go at once: a race needs one stream to run ahead of another.
  if ((stream.random()() & 1) == 0) return std::chrono::microseconds(0);
  return std::chrono::microseconds(
      std::uniform_int_distribution<std::int64_t>(0, most)(stream.random()));
}

class Context final : public KernelContext {
 public:
  Context(const StoredKernel& launch, int ordinal, SimStream& stream)
      : launch_(launch), ordinal_(ordinal), stream_(stream) {}

  // Pins every declared buffer.
  Status Prepare() {
    std::vector<MemoryUse> uses;
    for (std::size_t i = 0; i < launch_.args.size(); ++i) {
      const hal::KernelArg& arg = launch_.args[i];
      if (!arg.is_buffer()) continue;
      uses.push_back(
          {ordinal_, arg.address().value(), arg.extent(), launch_.kernel->parameters[i].access});
    }
    auto pointers = stream_.device().machine().PinAll(uses, held_, /*may_wait=*/true);
    if (!pointers.ok()) return Fault(pointers.status());
    std::size_t next = 0;
    buffers_.resize(launch_.args.size());
    for (std::size_t i = 0; i < launch_.args.size(); ++i) {
      if (!launch_.args[i].is_buffer()) continue;
      buffers_[i] = {(*pointers)[next++], launch_.args[i].extent().count()};
    }
    return OkStatus();
  }

  Status fault() const { return fault_; }

  const hal::LaunchDims& dims() const override { return launch_.dims; }
  std::size_t arg_count() const override { return launch_.args.size(); }

  std::byte* Translate(DeviceAddress address, Bytes size, Access access) override {
    const MemoryUse use{ordinal_, address.value(), size, access};
    // Waiting could wait for this very kernel; what moved under a running kernel is a fault.
    auto pointers = stream_.device().machine().PinAll({&use, 1}, held_, /*may_wait=*/false);
    if (pointers.ok()) return pointers->front();
    if (fault_.ok()) fault_ = Fault(pointers.status());
    return nullptr;
  }

 private:
  std::span<std::byte> RawBuffer(std::size_t i) override { return buffers_[i]; }
  const void* RawValue(std::size_t i, std::size_t) const override { return launch_.args[i].data(); }
  Status Fault(const Status& cause) const {
    return DeviceLost(fmt::format("kernel '{}': {}", launch_.kernel->name, cause.message()));
  }

  const StoredKernel& launch_;
  const int ordinal_;
  SimStream& stream_;
  HeldMemory held_;
  std::vector<std::span<std::byte>> buffers_;
  Status fault_;
};

// What was fine when it was queued and is not any more.
Status Fault(const char* what, const Status& cause) {
  return DeviceLost(fmt::format("{}: {}", what, cause.message()));
}

// A word is written in one piece, as on real devices: a kernel of another stream may be waiting for
// it.
void CopyBytes(std::byte* to, const std::byte* from, std::size_t size) {
  if (size != sizeof(std::uint64_t) ||
      reinterpret_cast<std::uintptr_t>(to) % alignof(std::uint64_t) != 0) {
    std::memcpy(to, from, size);
    return;
  }
  std::uint64_t word = 0;
  std::memcpy(&word, from, size);
  std::atomic_ref(*reinterpret_cast<std::uint64_t*>(to)).store(word, std::memory_order_relaxed);
}

// Runs one command; a visitor by overload.
class Runner {
 public:
  Runner(int ordinal, SimStream& stream)
      : ordinal_(ordinal), stream_(stream), machine_(stream.device().machine()) {}

  Status operator()(const hal::EmptyNode&) const { return OkStatus(); }

  Status operator()(const StoredKernel& launch) const {
    if (launch.kernel->orchestration != nullptr) return RunOrchestration(launch, ordinal_, stream_);
    Context context(launch, ordinal_, stream_);
    KEEL_TRY(context.Prepare());
    launch.kernel->function(context);
    return context.fault();
  }

  Status operator()(const StoredCopy& copy) const {
    HeldMemory held;
    std::vector<MemoryUse> uses;
    const bool staged = !copy.staged_source.empty();
    if (!copy.pageable_destination)
      uses.push_back(Use(copy.destination, copy.size, Access::kWrite));
    if (!staged) uses.push_back(Use(copy.source, copy.size, Access::kRead));
    const auto pointers = machine_.PinAll(uses, held, /*may_wait=*/true);
    if (!pointers.ok()) return Fault("copy", pointers.status());
    std::byte* to = copy.pageable_destination
                        ? reinterpret_cast<std::byte*>(copy.destination.address)
                        : pointers->front();
    const std::byte* from = staged ? copy.staged_source.data() : pointers->back();
    CopyBytes(to, from, copy.size.count());
    return OkStatus();
  }

  Status operator()(const hal::Fill& fill) const {
    const Bytes size(fill.count * fill.width);
    HeldMemory held;
    const auto pointers = PinOne(fill.destination, size, Access::kWrite, held);
    if (!pointers.ok()) return Fault("fill", pointers.status());
    std::byte* to = pointers->front();
    switch (fill.width) {
      case 1:
        std::memset(to, static_cast<int>(fill.value), size.count());
        break;
      case 2:
        std::fill_n(reinterpret_cast<std::uint16_t*>(to), fill.count,
                    static_cast<std::uint16_t>(fill.value));
        break;
      default:
        std::fill_n(reinterpret_cast<std::uint32_t*>(to), fill.count, fill.value);
    }
    return OkStatus();
  }

  Status operator()(const hal::HostCall& call) const {
    hal::HostCallScope scope;
    call.function(call.data);
    return OkStatus();
  }

  Status operator()(const hal::ValueWrite& write) const {
    HeldMemory held;
    const auto pointers = PinOne(write.destination, Bytes(8), Access::kWrite, held);
    if (!pointers.ok()) return Fault("value write", pointers.status());
    std::atomic_ref(*reinterpret_cast<std::uint64_t*>(pointers->front()))
        .store(write.value, std::memory_order_release);
    return OkStatus();
  }

  Status operator()(const hal::ValueWait& wait) const {
    // Nobody tells us when memory changes: look often at first, then ever more rarely.
    auto pause = std::chrono::microseconds(1);
    while (!stream_.Cancelled()) {
      {
        HeldMemory held;  // released between looks: the memory may be remapped meanwhile
        const auto pointers = PinOne(wait.source, Bytes(8), Access::kRead, held);
        if (!pointers.ok()) return Fault("value wait", pointers.status());
        const std::uint64_t value =
            std::atomic_ref(*reinterpret_cast<std::uint64_t*>(pointers->front()))
                .load(std::memory_order_acquire);
        if (Meets(value, wait)) return OkStatus();
      }
      std::this_thread::sleep_for(pause);
      pause = std::min(pause * 2, std::chrono::microseconds(500));
    }
    return OkStatus();
  }

  Status operator()(const std::shared_ptr<const Program>& child) const {
    return RunProgram(*child, stream_);
  }

 private:
  static bool Meets(std::uint64_t value, const hal::ValueWait& wait) {
    switch (wait.condition) {
      case hal::WaitCondition::kGreaterOrEqual:
        return static_cast<std::int64_t>(value - wait.value) >= 0;
      case hal::WaitCondition::kEqual:
        return value == wait.value;
      case hal::WaitCondition::kAnd:
        return (value & wait.value) != 0;
    }
    return true;
  }

  MemoryUse Use(const CopySide& side, Bytes size, Access access) const {
    // Pinned host memory is the same to every device.
    const int ordinal = side.ordinal == CopySide::kHost ? ordinal_ : side.ordinal;
    return {ordinal, side.address, size, access};
  }

  Result<std::vector<std::byte*>> PinOne(DeviceAddress address, Bytes size, Access access,
                                         HeldMemory& held) const {
    const MemoryUse use{ordinal_, address.value(), size, access};
    return machine_.PinAll({&use, 1}, held, /*may_wait=*/true);
  }

  const int ordinal_;
  SimStream& stream_;
  Machine& machine_;
};

}  // namespace

Status RunCommand(const StoredCommand& command, int ordinal, SimStream& stream) {
  if (const auto delay = RandomDelay(stream); delay.count() > 0) std::this_thread::sleep_for(delay);
  return std::visit(Runner(ordinal, stream), command);
}

Status RunProgram(const Program& program, SimStream& stream) {
  if (stream.device().machine().config().delay_us == 0) {
    for (const Program::Node& node : program.nodes) {
      if (stream.Cancelled()) return OkStatus();
      KEEL_TRY(RunCommand(node.command, node.ordinal, stream));
    }
    return OkStatus();
  }
  std::vector<std::size_t> missing(program.nodes.size());
  std::vector<std::vector<std::size_t>> after(program.nodes.size());
  std::vector<std::size_t> ready;
  for (std::size_t i = 0; i < program.nodes.size(); ++i) {
    missing[i] = program.nodes[i].dependencies.size();
    for (const std::uint32_t index : program.nodes[i].dependencies) after[index].push_back(i);
    if (missing[i] == 0) ready.push_back(i);
  }
  while (!ready.empty() && !stream.Cancelled()) {
    std::swap(ready[stream.random()() % ready.size()], ready.back());
    const std::size_t i = ready.back();
    ready.pop_back();
    KEEL_TRY(RunCommand(program.nodes[i].command, program.nodes[i].ordinal, stream));
    for (const std::size_t next : after[i]) {
      if (--missing[next] == 0) ready.push_back(next);
    }
  }
  return OkStatus();
}

}  // namespace keel::sim
