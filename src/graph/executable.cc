#include "keel/graph/executable.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "graph/executable_state.h"
#include "keel/base/log.h"
#include "keel/graph/scratch_arena.h"

namespace keel::graph {
namespace {

constexpr int kMostSlots = 64;
// A healthy device takes a thousandth of it.
constexpr std::chrono::seconds kMeasuring{3};

Status CheckOptions(const Program& program, const Layout& layout,
                    const memory::DeviceMemory& memory, const ExecutableOptions& options) {
  if (options.slots < 1 || options.slots > kMostSlots) {
    return InvalidArgument(
        fmt::format("{} slots: there can be 1 to {}", options.slots, kMostSlots));
  }
  if (options.kept_traces < 1) {
    return InvalidArgument(fmt::format("kept_traces is {}: at least 1", options.kept_traces));
  }
  if (options.warm_up < -1) {
    return InvalidArgument(fmt::format("warm_up is {}: -1, or a number of steps", options.warm_up));
  }
  if (options.scratch != nullptr &&
      options.scratch->memory()->device()->id() != memory.device()->id()) {
    return InvalidArgument(fmt::format("the scratch arena is on {}, and program '{}' on {}",
                                       options.scratch->memory()->name().ToString(), program.name(),
                                       memory.name().ToString()));
  }
  if (options.scratch != nullptr && options.scratch->size() < layout.arena_bytes) {
    return InvalidArgument(fmt::format("program '{}' needs {} of scratch; the arena has {}",
                                       program.name(), keel::ToString(layout.arena_bytes),
                                       keel::ToString(options.scratch->size())));
  }
  const hal::Capabilities& can = memory.device()->capabilities();
  if (!can.kernels) {
    return Unimplemented("this device runs no kernels, which mark the end of a step");
  }
  if (!can.graphs && options.mode == Mode::kGraph) {
    return Unimplemented("this device has no graphs: use Mode::kEager");
  }
  if (options.alias_outputs && !can.virtual_memory) {
    return Unimplemented("this device cannot map memory twice: alias_outputs needs virtual memory");
  }
  return OkStatus();
}

// What `auto` reckons with, if nobody says.
Result<PrimitiveCosts> CostsFor(const Program& program,
                                const std::shared_ptr<memory::DeviceMemory>& memory) {
  Result<PrimitiveCosts> costs = CostsOf(memory, Deadline::After(kMeasuring));
  if (costs.status().code() != StatusCode::kDeadlineExceeded) return costs;
  Log(LogLevel::kWarn,
      fmt::format(
          "`auto` reckons in '{}' with what devices cost in general, because {} could not be "
          "measured in time: {}",
          program.name(), memory->name().ToString(), costs.status().ToString()));
  return PrimitiveCosts{};
}

}  // namespace

// --- Executable ----------------------------------------------------------------------------------

Result<std::unique_ptr<Executable>> Executable::Create(std::shared_ptr<const Program> program,
                                                       std::shared_ptr<memory::DeviceMemory> memory,
                                                       ExecutableOptions options) {
  if (program == nullptr) return InvalidArgument("no program");
  if (memory == nullptr) return InvalidArgument("no device memory");
  KEEL_ASSIGN(Layout made, Layout::Of(*program, memory->device()->capabilities(),
                                      options.scratch != nullptr, options.alias_outputs));
  const auto layout = std::make_shared<const Layout>(std::move(made));
  KEEL_TRY(CheckOptions(*program, *layout, *memory, options));
  PrimitiveCosts costs;
  if (options.costs) {
    costs = *options.costs;
  } else if (layout->dynamic != 0) {
    KEEL_ASSIGN(costs, CostsFor(*program, memory));
  }
  auto choices = std::make_shared<AutoPolicy>(*layout, costs);
  return std::unique_ptr<Executable>(new Executable(MakeSharedHere<ExecutableState>(
      std::move(program), std::move(memory), std::move(options), layout, std::move(choices))));
}

Executable::Executable(std::shared_ptr<ExecutableState> state) : state_(std::move(state)) {}
Executable::~Executable() = default;

const Program& Executable::program() const { return *state_->program; }
const std::shared_ptr<memory::DeviceMemory>& Executable::memory() const { return state_->memory; }

Status Executable::Bind(BindingId binding, Buffer buffer) {
  return state_->Bind(binding.index, std::move(buffer));
}

Result<Lease> Executable::Acquire(hal::StreamHandle stream, Deadline deadline) {
  if (!stream) return InvalidArgument("no stream");
  KEEL_ASSIGN(Slot* const slot, state_->Acquire(stream, deadline));
  Lease lease;
  lease.state_ = state_;
  lease.slot_ = slot;
  return lease;
}

Policy Executable::policy(BindingId binding) const { return state_->choices->at(binding.index); }
ExecutableStats Executable::stats() const { return state_->Stats(); }
Status Executable::Synchronize(Deadline deadline) { return state_->Synchronize(deadline); }
Status Executable::Close(Deadline deadline) { return state_->Close(deadline); }

// --- Lease ---------------------------------------------------------------------------------------

Lease::Lease(Lease&& other) noexcept
    : state_(std::move(other.state_)), slot_(std::exchange(other.slot_, nullptr)) {}

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this != &other) {
    Release();
    state_ = std::move(other.state_);
    slot_ = std::exchange(other.slot_, nullptr);
  }
  return *this;
}

Lease::~Lease() { Release(); }

void Lease::Release() noexcept {
  if (slot_ == nullptr) return;
  state_->Release(*std::exchange(slot_, nullptr));
  state_.reset();
}

namespace {
Status NoLease() { return FailedPrecondition("this lease has no slot: it was moved from"); }
}  // namespace

std::uint32_t Lease::slot() const { return slot_ != nullptr ? slot_->index() : 0; }

Result<DeviceAddress> Lease::address(BindingId binding) const {
  if (slot_ == nullptr) return NoLease();
  KEEL_TRY(state_->CheckId(binding.index));
  const DeviceAddress home = slot_->home(binding.index);
  if (state_->layout->bindings[binding.index].policy == Policy::kInPlace) return home;
  return FailedPrecondition(
      fmt::format("binding '{}' (policy {}) is not worked on in place: bind a buffer",
                  state_->program->bindings()[binding.index].name,
                  PolicyName(state_->choices->at(binding.index))));
}

Status Lease::Bind(BindingId binding, const Buffer& buffer) {
  if (slot_ == nullptr) return NoLease();
  if (slot_->use.mark != 0) return FailedPrecondition("the lease's step was launched already");
  return state_->BindStep(*slot_, binding.index, buffer);
}

Status Lease::Launch(Deadline deadline) {
  return slot_ != nullptr ? state_->Launch(*slot_, deadline) : NoLease();
}

const ReplayReport& Lease::report() const {
  static const ReplayReport kNothing;
  return slot_ != nullptr ? slot_->use.report : kNothing;
}

bool Lease::done() const {
  if (slot_ == nullptr || slot_->use.mark == 0) return false;
  return state_->Ended(*slot_);
}

Status Lease::Wait(Deadline deadline) {
  return slot_ != nullptr ? state_->Wait(*slot_, deadline) : NoLease();
}

Result<HeldOutput> Lease::Hold(BindingId binding) {
  if (slot_ == nullptr) return NoLease();
  KEEL_TRY(state_->Hold(*slot_, binding.index));
  HeldOutput output;
  output.state_ = state_;
  output.slot_ = slot_;
  output.address_ = slot_->read_at(binding.index);
  output.size_ = state_->layout->bindings[binding.index].size;
  return output;
}

// --- HeldOutput ----------------------------------------------------------------------------------

HeldOutput::HeldOutput(HeldOutput&& other) noexcept
    : state_(std::move(other.state_)),
      slot_(std::exchange(other.slot_, nullptr)),
      address_(std::exchange(other.address_, {})),
      size_(std::exchange(other.size_, {})),
      readers_(std::move(other.readers_)) {}

HeldOutput& HeldOutput::operator=(HeldOutput&& other) noexcept {
  if (this != &other) {
    CloseOrWarn();
    state_ = std::move(other.state_);
    slot_ = std::exchange(other.slot_, nullptr);
    address_ = std::exchange(other.address_, {});
    size_ = std::exchange(other.size_, {});
    readers_ = std::move(other.readers_);
  }
  return *this;
}

HeldOutput::~HeldOutput() { CloseOrWarn(); }

void HeldOutput::CloseOrWarn() noexcept {
  const std::shared_ptr<ExecutableState> state = state_;
  const Status status = Close();
  // On a lost device, and in a forked child, nobody reads any more.
  if (!status.ok() && state->memory->device()->Health().ok()) {
    Log(LogLevel::kWarn, "an output was let go while it may be read: " + status.ToString());
  }
}

Status HeldOutput::RecordUse(hal::StreamHandle stream) {
  if (slot_ == nullptr) return FailedPrecondition("this output was let go");
  readers_.push_back(stream);
  return OkStatus();
}

Status HeldOutput::Close() {
  if (slot_ == nullptr) return OkStatus();
  Status status = state_->LetGo(*std::exchange(slot_, nullptr), readers_);
  state_.reset();
  readers_.clear();
  address_ = {};
  return status;
}

}  // namespace keel::graph
