#include "graph_ways.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <utility>

#include "keel/base/log.h"
#include "keel/graph/program.h"
#include "keel/graph/rerecorder.h"
#include "keel/hal/graph.h"
#include "keel/hal/standard_kernels.h"

namespace keel::cli {
namespace {

using graph::Argument;
using graph::BindingAccess;
using graph::BindingId;
using graph::Policy;
using hal::KernelArg;

// Of each kernel: so few that the time is that of launching.
constexpr std::uint64_t kElements = 64;
constexpr Bytes kUsed{kElements * sizeof(float)};
constexpr hal::LaunchDims kDims{.grid = {1, 1, 1}, .block = {64, 1, 1}};

// Every other one is copied out as well.
static_assert(kMostBindings + kMostBindings / 2 == hal::kernels::kMostRows,
              "so that one more makes a table of the rows");
// GraphBuffers beyond those that a step uses: so many steps pass before a binding is again where it
// was, more than there are traces in a slot's cache.
constexpr std::uint32_t kSpare = 16;
// The program's kernels at some addresses: each adds to one binding from another. Those with an
// even number are read, the others written.
std::uint32_t ReadBy(std::uint32_t command, std::uint32_t bindings) {
  return 2 * command % bindings;
}
std::uint32_t WrittenBy(std::uint32_t command, std::uint32_t bindings) {
  return (2 * command + 1) % bindings;
}
bool Written(std::uint32_t binding) { return binding % 2 != 0; }

template <class Addresses>
std::array<KernelArg, 4> KernelArgs(std::uint32_t command, const GraphShape& shape,
                                    Addresses address) {
  return {KernelArg::In(address(ReadBy(command, shape.bindings())), kUsed),
          KernelArg::InOut(address(WrittenBy(command, shape.bindings())), kUsed),
          KernelArg::Value(0.5F), KernelArg::Value(kElements)};
}

template <class Addresses>
Status EnqueueKernels(hal::Device& device, hal::StreamHandle stream, hal::KernelHandle axpy,
                      const GraphShape& shape, Addresses address) {
  for (std::uint32_t i = 0; i < shape.commands; ++i) {
    const auto args = KernelArgs(i, shape, address);
    KEEL_TRY(device.LaunchKernel(stream, {.kernel = axpy, .dims = kDims, .args = args}));
  }
  return OkStatus();
}

}  // namespace

Deadline Patience() { return Deadline::After(std::chrono::seconds(60)); }

Result<std::shared_ptr<GraphPlace>> GraphPlace::Create(std::shared_ptr<hal::Device> device,
                                                       const memory::AllocatorConfig& config) {
  auto place = std::make_shared<GraphPlace>();
  KEEL_ASSIGN(place->module, hal::Module::LoadStandard(device));
  KEEL_ASSIGN(place->axpy, place->module.Find(hal::kernels::kAxpy));
  KEEL_ASSIGN(place->spin, place->module.Find(hal::kernels::kSpin));
  KEEL_ASSIGN(place->stream, hal::Stream::Create(device));
  KEEL_ASSIGN(place->memory, memory::DeviceMemory::Create(device, config));
  place->device = std::move(device);
  return place;
}

GraphBuffers::~GraphBuffers() {
  if (place_ == nullptr) return;
  Status status = place_->stream.Synchronize(Patience());
  for (const graph::Buffer& buffer : buffers_) {
    if (status.ok() && buffer.address) {
      status = place_->memory->allocator().Free(buffer.address);
    }
  }
  if (!status.ok()) {
    Log(LogLevel::kWarn, "the benchmark's buffers could not be freed: " + status.ToString());
  }
}

Status GraphBuffers::Allocate(std::shared_ptr<GraphPlace> place, const GraphShape& shape) {
  place_ = std::move(place);
  moving_ = shape.moving_bindings();
  pool_ = moving_ == 0 ? 0 : moving_ + kSpare;
  const std::shared_ptr<hal::Device>& device = place_->device;
  const std::uint32_t all = pool_ + shape.bindings() - moving_;
  for (std::uint32_t i = 0; i < all; ++i) {
    graph::Buffer buffer{.size = shape.bytes};
    if (shape.way == Way::kRemap && i < pool_) {
      const auto size = AlignUp(shape.bytes, device->capabilities().granularity.minimum);
      KEEL_ASSIGN(hal::PhysicalMemory physical, hal::PhysicalMemory::Create(device, *size));
      buffer.memory = std::make_shared<const hal::PhysicalMemory>(std::move(physical));
    } else {
      KEEL_ASSIGN(buffer.address,
                  place_->memory->allocator().Allocate(shape.bytes, place_->stream.get()));
      KEEL_TRY(device->EnqueueFill(place_->stream.get(),
                                   {.destination = buffer.address, .count = shape.bytes.count()}));
    }
    buffers_.push_back(std::move(buffer));
  }
  return place_->stream.Synchronize(Patience());
}

namespace {

// With the driver's own copies, where they are wanted: of as many bytes as move, before the
// kernels, and of as many as are written of those, after them. Each is one piece, which no other
// way has, and nobody reads what is copied.
class Bare : public GraphRunner {
 public:
  static Result<std::unique_ptr<Bare>> Create(const std::shared_ptr<GraphPlace>& place,
                                              const GraphShape& shape,
                                              const GraphBuffers& buffers) {
    auto made = std::make_unique<Bare>();
    made->place_ = place;
    hal::Device& device = *place->device;
    KEEL_ASSIGN(const hal::Graph graph, hal::Graph::Create(place->device));
    std::optional<hal::NodeHandle> before;
    const auto add = [&](const hal::Command& command) -> Status {
      const std::span<const hal::NodeHandle> dependencies =
          before ? std::span(&*before, 1) : std::span<const hal::NodeHandle>();
      KEEL_ASSIGN(before, device.AddNode(graph.get(), dependencies, command));
      return OkStatus();
    };
    const std::uint32_t moving = shape.way == Way::kBareCopies ? shape.moving_bindings() : 0;
    const Bytes in = shape.bytes * moving;
    if (moving != 0) {
      KEEL_TRY(made->AllocateBlocks(in));
      KEEL_TRY(add(made->CopyOf(0, in)));
    }
    const auto address = [&](std::uint32_t binding) { return buffers.At(binding, 0).address; };
    for (std::uint32_t i = 0; i < shape.commands; ++i) {
      const auto args = KernelArgs(i, shape, address);
      KEEL_TRY(add(hal::KernelLaunch{.kernel = place->axpy, .dims = kDims, .args = args}));
    }
    const Bytes out = shape.bytes * (moving / 2);  // every other one is written
    if (!out.empty()) KEEL_TRY(add(made->CopyOf(1, out)));
    made->copied_ = in + out;
    KEEL_ASSIGN(made->exec_, hal::GraphExec::Create(graph));
    return made;
  }
  ~Bare() override {
    Status status = place_->stream.Synchronize(Patience());
    for (const DeviceAddress block : blocks_) {
      if (status.ok()) status = place_->memory->allocator().Free(block);
    }
    if (!status.ok()) {
      Log(LogLevel::kWarn, "the benchmark's blocks could not be freed: " + status.ToString());
    }
  }
  Status Step(std::uint64_t /*step*/) override { return exec_.Launch(place_->stream.get()); }
  Bytes copied() const override { return copied_; }

 private:
  Status AllocateBlocks(Bytes size) {
    for (int i = 0; i < 2; ++i) {
      KEEL_ASSIGN(const DeviceAddress block,
                  place_->memory->allocator().Allocate(size, place_->stream.get()));
      blocks_.push_back(block);
    }
    return OkStatus();
  }
  hal::Copy CopyOf(std::size_t to, Bytes size) const {
    const auto on = [&](std::size_t i) {
      return hal::Location::On(place_->device->id(), blocks_[i]);
    };
    return {on(to), on(1 - to), size};
  }

  std::shared_ptr<GraphPlace> place_;
  std::vector<DeviceAddress> blocks_;
  hal::GraphExec exec_;
  Bytes copied_;
};

class Eager : public GraphRunner {
 public:
  Eager(std::shared_ptr<GraphPlace> place, const GraphShape& shape, const GraphBuffers& buffers)
      : place_(std::move(place)), shape_(shape), buffers_(buffers) {}
  Status Step(std::uint64_t step) override {
    return EnqueueKernels(
        *place_->device, place_->stream.get(), place_->axpy, shape_,
        [&](std::uint32_t binding) { return buffers_.At(binding, step).address; });
  }

 private:
  const std::shared_ptr<GraphPlace> place_;
  const GraphShape shape_;
  const GraphBuffers& buffers_;
};

class Rerecorded : public GraphRunner {
 public:
  Rerecorded(std::unique_ptr<graph::Rerecorder> rerecorder, hal::StreamHandle stream,
             const GraphShape& shape, const GraphBuffers& buffers)
      : rerecorder_(std::move(rerecorder)), stream_(stream), buffers_(buffers) {
    for (std::uint32_t i = 0; i < shape.bindings(); ++i) {
      addresses_.push_back(buffers.At(i, 0).address);
    }
  }
  Status Step(std::uint64_t step) override {
    for (std::uint32_t i = 0; i < buffers_.moving(); ++i) {
      addresses_[i] = buffers_.At(i, step).address;
    }
    return rerecorder_->Run(stream_, addresses_);
  }

 private:
  const std::unique_ptr<graph::Rerecorder> rerecorder_;
  const hal::StreamHandle stream_;
  const GraphBuffers& buffers_;
  std::vector<DeviceAddress> addresses_;
};

class Replayed : public GraphRunner {
 public:
  Replayed(std::unique_ptr<graph::Executable> executable, hal::StreamHandle stream,
           const GraphBuffers& buffers)
      : executable_(std::move(executable)), stream_(stream), buffers_(buffers) {}
  Status Step(std::uint64_t step) override {
    KEEL_ASSIGN(graph::Lease lease, executable_->Acquire(stream_, Patience()));
    for (std::uint32_t i = 0; i < buffers_.moving(); ++i) {
      KEEL_TRY(lease.Bind(BindingId{i}, buffers_.At(i, step)));
    }
    KEEL_TRY(lease.Launch(Patience()));
    copied_ = lease.report().copied_in + lease.report().copied_out;
    return OkStatus();
  }
  Bytes copied() const override { return copied_; }

 private:
  const std::unique_ptr<graph::Executable> executable_;
  const hal::StreamHandle stream_;
  const GraphBuffers& buffers_;
  Bytes copied_;
};

Policy PolicyOf(Way way) {
  switch (way) {
    case Way::kResident:
      return Policy::kResident;
    case Way::kInPlace:
      return Policy::kInPlace;
    case Way::kCopy:
    case Way::kCopyTable:
      return Policy::kCopy;
    case Way::kPatch:
      return Policy::kPatch;
    case Way::kRemap:
      return Policy::kRemap;
    case Way::kRetrace:
      return Policy::kRetrace;
    case Way::kBare:
    case Way::kBareCopies:
    case Way::kEager:
    case Way::kRerecord:
    case Way::kUpdate:
    case Way::kAuto:
      break;
  }
  return Policy::kAuto;
}

Result<std::shared_ptr<const graph::Program>> MakeProgram(const GraphPlace& place,
                                                          const GraphShape& shape) {
  graph::ProgramBuilder builder("bench");
  std::vector<graph::Operand> uses;
  for (std::uint32_t i = 0; i < shape.bindings(); ++i) {
    const bool written = Written(i);
    graph::BindingSpec spec{.name = fmt::format("b{}", i),
                            .size = shape.bytes,
                            .access = written ? BindingAccess::kInOut : BindingAccess::kIn,
                            .policy = PolicyOf(shape.way)};
    if (shape.way == Way::kRemap && i >= shape.moving_bindings()) {
      spec.access = BindingAccess::kResident;
      spec.policy = Policy::kAuto;
    }
    uses.push_back({.binding = builder.Bind(std::move(spec)),
                    .access = written ? hal::Access::kReadWrite : hal::Access::kRead});
  }
  if (shape.way == Way::kCopyTable) {
    // Nobody's: it is there for its row.
    builder.Bind({.name = "extra", .size = kUsed, .policy = Policy::kCopy});
  }
  if (shape.traced) {
    builder.Traced(
        "kernels", std::move(uses), [axpy = place.axpy, shape](const graph::TraceContext& context) {
          return EnqueueKernels(
              context.device(), context.stream(), axpy, shape,
              [&](std::uint32_t binding) { return context.address(BindingId{binding}); });
        });
  } else {
    for (std::uint32_t i = 0; i < shape.commands; ++i) {
      const BindingId read{ReadBy(i, shape.bindings())};
      const BindingId written{WrittenBy(i, shape.bindings())};
      builder.Kernel(
          place.axpy, kDims,
          {Argument::In(read, Bytes(0), kUsed), Argument::InOut(written, Bytes(0), kUsed),
           Argument::Value(0.5F), Argument::Value(kElements)});
    }
  }
  return std::move(builder).Build();
}

}  // namespace

Result<std::unique_ptr<GraphRunner>> MakeRunner(const std::shared_ptr<GraphPlace>& place,
                                                const GraphShape& shape,
                                                const GraphBuffers& buffers) {
  const hal::StreamHandle stream = place->stream.get();
  std::unique_ptr<GraphRunner> runner;
  if (shape.way == Way::kBare || shape.way == Way::kBareCopies) {
    KEEL_ASSIGN(runner, Bare::Create(place, shape, buffers));
    return runner;
  }
  if (shape.way == Way::kEager) {
    runner = std::make_unique<Eager>(place, shape, buffers);
    return runner;
  }
  KEEL_ASSIGN(auto program, MakeProgram(*place, shape));
  if (shape.way == Way::kRerecord || shape.way == Way::kUpdate) {
    KEEL_ASSIGN(auto rerecorder, graph::Rerecorder::Create(program, place->memory,
                                                           shape.way == Way::kUpdate
                                                               ? graph::Rerecording::kUpdate
                                                               : graph::Rerecording::kInstantiate));
    runner = std::make_unique<Rerecorded>(std::move(rerecorder), stream, shape, buffers);
    return runner;
  }
  KEEL_ASSIGN(auto executable,
              graph::Executable::Create(program, place->memory, {.slots = kGraphSlots}));
  if (shape.way != Way::kInPlace) {
    for (std::uint32_t i = buffers.moving(); i < shape.bindings(); ++i) {
      KEEL_TRY(executable->Bind(BindingId{i}, buffers.At(i, 0)));
    }
  }
  if (shape.way == Way::kCopyTable) {
    KEEL_TRY(executable->Bind(BindingId{shape.bindings()}, buffers.At(0, 0)));
  }
  runner = std::make_unique<Replayed>(std::move(executable), stream, buffers);
  return runner;
}

}  // namespace keel::cli
