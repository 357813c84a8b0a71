#include "bench_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <iterator>
#include <memory>
#include <optional>
#include <span>

#include "format.h"
#include "keel/base/log.h"
#include "keel/graph/executable.h"
#include "keel/graph/rerecorder.h"
#include "keel/hal/event.h"
#include "keel/hal/graph.h"
#include "keel/hal/instrumented.h"
#include "keel/hal/module.h"
#include "keel/hal/standard_kernels.h"
#include "keel/hal/stream.h"

namespace keel::cli {
namespace {

using graph::Argument;
using graph::BindingAccess;
using graph::BindingId;
using graph::Policy;
using hal::KernelArg;
using Clock = std::chrono::steady_clock;

constexpr std::pair<Moving, std::string_view> kMovings[] = {
    {Moving::kNone, "none"}, {Moving::kOne, "one"}, {Moving::kHalf, "half"}, {Moving::kAll, "all"}};
constexpr std::pair<Way, std::string_view> kWays[] = {
    {Way::kBare, "bare"},     {Way::kEager, "eager"},          {Way::kRerecord, "re-record"},
    {Way::kUpdate, "update"}, {Way::kResident, "resident"},    {Way::kInPlace, "in-place"},
    {Way::kCopy, "copy"},     {Way::kCopyTable, "copy-table"}, {Way::kPatch, "patch"},
    {Way::kRemap, "remap"},   {Way::kRetrace, "retrace"},      {Way::kAuto, "auto"}};

// Of each kernel: so few that the time is that of launching.
constexpr std::uint64_t kElements = 64;
constexpr Bytes kUsed{kElements * sizeof(float)};
constexpr hal::LaunchDims kDims{.grid = {1, 1, 1}, .block = {64, 1, 1}};

constexpr std::uint32_t kMostBindings = 64;
// Every other one is copied out as well.
static_assert(kMostBindings + kMostBindings / 2 == hal::kernels::kMostRows,
              "so that one more makes a table of the rows");
// Buffers beyond those that a step uses: so many steps pass before a binding is again where it was,
// more than there are traces in a slot's cache.
constexpr std::uint32_t kSpare = 16;
constexpr Bytes kSmall = 4_KiB;
constexpr Bytes kLarge = 1_MiB;

// Steps that are on their way at once: no more, so that nobody waits for a slot while the host's
// time is taken.
constexpr int kSlots = 4;
constexpr std::uint64_t kBatch = kSlots;
// Fewer than a device's queue holds; beyond that a launch waits.
constexpr std::uint64_t kMostLaunches = 900;
constexpr std::uint64_t kWarmUp = kSlots + 2;
constexpr std::uint64_t kAutoWarmUp = 96;              // then it has chosen
constexpr std::uint64_t kRetraceWarmUp = 10 * kSlots;  // then the caches of traces are full
constexpr std::uint64_t kCountedSteps = 2 * kBatch;
constexpr int kTurns = 5;
constexpr std::size_t kLeastRounds = 2;  // of a turn
constexpr std::size_t kMostRounds = 2000;
constexpr std::uint64_t kSpinMicros = 20'000;

Deadline Patience() { return Deadline::After(std::chrono::seconds(60)); }

struct Shape {
  std::uint32_t commands = 0;
  Moving moving = Moving::kNone;
  Bytes bytes;
  bool traced = false;
  Way way = Way::kBare;

  std::uint32_t bindings() const { return std::min(commands, kMostBindings); }
  std::uint32_t moving_bindings() const {
    switch (moving) {
      case Moving::kNone:
        return 0;
      case Moving::kOne:
        return 1;
      case Moving::kHalf:
        return bindings() / 2;
      case Moving::kAll:
        break;
    }
    return bindings();
  }
};

// The device, its memory and a kernel, for all cases.
struct Place {
  static Result<std::shared_ptr<Place>> Create(std::shared_ptr<hal::Device> device,
                                               const memory::AllocatorConfig& config) {
    auto place = std::make_shared<Place>();
    KEEL_ASSIGN(place->module, hal::Module::LoadStandard(device));
    KEEL_ASSIGN(place->axpy, place->module.Find(hal::kernels::kAxpy));
    KEEL_ASSIGN(place->spin, place->module.Find(hal::kernels::kSpin));
    KEEL_ASSIGN(place->stream, hal::Stream::Create(device));
    KEEL_ASSIGN(place->memory, memory::DeviceMemory::Create(device, config));
    place->device = std::move(device);
    return place;
  }

  std::shared_ptr<hal::Device> device;
  hal::Module module;
  hal::KernelHandle axpy;
  hal::KernelHandle spin;
  hal::Stream stream;
  std::shared_ptr<memory::DeviceMemory> memory;
};

// The program's kernels at some addresses: each adds to one binding from another. Those with an
// even number are read, the others written.
std::uint32_t ReadBy(std::uint32_t command, std::uint32_t bindings) {
  return 2 * command % bindings;
}
std::uint32_t WrittenBy(std::uint32_t command, std::uint32_t bindings) {
  return (2 * command + 1) % bindings;
}
template <class Addresses>
Status EnqueueKernels(hal::Device& device, hal::StreamHandle stream, hal::KernelHandle axpy,
                      const Shape& shape, Addresses address) {
  for (std::uint32_t i = 0; i < shape.commands; ++i) {
    const std::array args = {KernelArg::In(address(ReadBy(i, shape.bindings())), kUsed),
                             KernelArg::InOut(address(WrittenBy(i, shape.bindings())), kUsed),
                             KernelArg::Value(0.5F), KernelArg::Value(kElements)};
    KEEL_TRY(device.LaunchKernel(stream, {.kernel = axpy, .dims = kDims, .args = args}));
  }
  return OkStatus();
}

// Where the bindings are. The first few move: each step they are one buffer further.
class Buffers {
 public:
  Buffers() = default;
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  ~Buffers() {
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

  // Those that move are physical memory where that is remapped.
  Status Allocate(std::shared_ptr<Place> place, const Shape& shape) {
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
        KEEL_TRY(device->EnqueueFill(
            place_->stream.get(), {.destination = buffer.address, .count = shape.bytes.count()}));
      }
      buffers_.push_back(std::move(buffer));
    }
    return place_->stream.Synchronize(Patience());
  }

  std::uint32_t moving() const { return moving_; }
  const graph::Buffer& At(std::uint32_t binding, std::uint64_t step) const {
    return binding < moving_ ? buffers_[(binding + step) % pool_]
                             : buffers_[pool_ + binding - moving_];
  }

 private:
  std::shared_ptr<Place> place_;
  std::uint32_t moving_ = 0;
  std::uint32_t pool_ = 0;
  std::vector<graph::Buffer> buffers_;
};

// One way to run the steps.
class Runner {
 public:
  Runner() = default;
  virtual ~Runner() = default;
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;
  // Queues one.
  virtual Status Step(std::uint64_t step) = 0;
  // By the last step.
  virtual Bytes copied() const { return Bytes(0); }
};

class Bare : public Runner {
 public:
  static Result<std::unique_ptr<Bare>> Create(const std::shared_ptr<Place>& place,
                                              const Shape& shape, const Buffers& buffers) {
    auto made = std::make_unique<Bare>();
    made->stream_ = place->stream.get();
    KEEL_ASSIGN(hal::Capture capture, hal::Capture::Begin(place->device, made->stream_));
    KEEL_TRY(EnqueueKernels(*place->device, made->stream_, place->axpy, shape,
                            [&](std::uint32_t binding) { return buffers.At(binding, 0).address; }));
    KEEL_ASSIGN(const hal::Graph graph, capture.End());
    KEEL_ASSIGN(made->exec_, hal::GraphExec::Create(graph));
    return made;
  }
  Status Step(std::uint64_t /*step*/) override { return exec_.Launch(stream_); }

 private:
  hal::StreamHandle stream_;
  hal::GraphExec exec_;
};

class Eager : public Runner {
 public:
  Eager(std::shared_ptr<Place> place, const Shape& shape, const Buffers& buffers)
      : place_(std::move(place)), shape_(shape), buffers_(buffers) {}
  Status Step(std::uint64_t step) override {
    return EnqueueKernels(
        *place_->device, place_->stream.get(), place_->axpy, shape_,
        [&](std::uint32_t binding) { return buffers_.At(binding, step).address; });
  }

 private:
  const std::shared_ptr<Place> place_;
  const Shape shape_;
  const Buffers& buffers_;
};

class Rerecorded : public Runner {
 public:
  Rerecorded(std::unique_ptr<graph::Rerecorder> rerecorder, hal::StreamHandle stream,
             const Shape& shape, const Buffers& buffers)
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
  const Buffers& buffers_;
  std::vector<DeviceAddress> addresses_;
};

class Replayed : public Runner {
 public:
  Replayed(std::unique_ptr<graph::Executable> executable, hal::StreamHandle stream,
           const Buffers& buffers)
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
  const Buffers& buffers_;
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
    case Way::kEager:
    case Way::kRerecord:
    case Way::kUpdate:
    case Way::kAuto:
      break;
  }
  return Policy::kAuto;
}

Result<std::shared_ptr<const graph::Program>> MakeProgram(const Place& place, const Shape& shape) {
  graph::ProgramBuilder builder("bench");
  std::vector<graph::Operand> uses;
  for (std::uint32_t i = 0; i < shape.bindings(); ++i) {
    const bool written = i % 2 != 0;
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

Result<std::unique_ptr<Runner>> MakeRunner(const std::shared_ptr<Place>& place, const Shape& shape,
                                           const Buffers& buffers) {
  const hal::StreamHandle stream = place->stream.get();
  std::unique_ptr<Runner> runner;
  if (shape.way == Way::kBare) {
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
              graph::Executable::Create(program, place->memory, {.slots = kSlots}));
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

// A runner, its buffers, and how far it is.
class Trial {
 public:
  static Result<std::unique_ptr<Trial>> Create(std::shared_ptr<Place> place, const Shape& shape) {
    auto trial = std::make_unique<Trial>();
    trial->place_ = std::move(place);
    KEEL_TRY(trial->buffers_.Allocate(trial->place_, shape));
    KEEL_ASSIGN(trial->runner_, MakeRunner(trial->place_, shape, trial->buffers_));
    const std::uint64_t launches = shape.way == Way::kEager ? shape.commands : 1;
    trial->batch_ = std::clamp<std::uint64_t>(kMostLaunches / launches, 1, kBatch);
    const std::uint64_t steps = shape.way == Way::kAuto      ? kAutoWarmUp
                                : shape.way == Way::kRetrace ? kRetraceWarmUp
                                                             : kWarmUp;
    for (std::uint64_t i = 0; i < steps; i += trial->batch_) KEEL_TRY(trial->Batch());
    return trial;
  }

  // Queues some steps, and waits until they are done.
  Status Batch() {
    KEEL_TRY(Queue());
    return place_->stream.Synchronize(Patience());
  }

  // Until the time is up: what the calling thread took for a step of each batch.
  Status HostRounds(std::chrono::microseconds budget, std::vector<double>& us) {
    return Rounds(budget, us, [&]() -> Result<double> {
      const Clock::time_point begin = Clock::now();
      KEEL_TRY(Queue());
      const std::chrono::duration<double, std::micro> took = Clock::now() - begin;
      KEEL_TRY(place_->stream.Synchronize(Patience()));
      return took.count() / static_cast<double>(batch_);
    });
  }

  // And what the device took. A kernel keeps it from beginning until all of a batch is queued, so
  // that it never waits for the host.
  Status DeviceRounds(std::chrono::microseconds budget, std::vector<double>& us) {
    const std::shared_ptr<hal::Device>& device = place_->device;
    const hal::StreamHandle stream = place_->stream.get();
    const bool timing = device->capabilities().event_timing;
    KEEL_ASSIGN(const hal::HostMemory flag, hal::HostMemory::Create(device, 8_B));
    KEEL_ASSIGN(const DeviceAddress flag_address, flag.address());
    KEEL_ASSIGN(const hal::Event begin, hal::Event::Create(device, {.timing = timing}));
    KEEL_ASSIGN(const hal::Event end, hal::Event::Create(device, {.timing = timing}));
    const std::atomic_ref open(*static_cast<std::uint64_t*>(flag.data()));
    const std::array args = {KernelArg::InOut(flag_address, 8_B),
                             KernelArg::Value(std::uint64_t{1}), KernelArg::Value(kSpinMicros)};
    return Rounds(budget, us, [&]() -> Result<double> {
      open.store(0);
      KEEL_TRY(device->LaunchKernel(stream, {.kernel = place_->spin, .args = args}));
      KEEL_TRY(begin.Record(stream));
      Status queued = Queue();
      if (queued.ok()) queued = end.Record(stream);
      const Clock::time_point released = Clock::now();
      open.store(1);
      KEEL_TRY(queued);
      KEEL_TRY(place_->stream.Synchronize(Patience()));
      const std::chrono::duration<double, std::micro> took = Clock::now() - released;
      double step_us = took.count();
      if (timing) {
        KEEL_ASSIGN(const double ms, device->ElapsedMilliseconds(begin.get(), end.get()));
        step_us = ms * 1000;
      }
      return step_us / static_cast<double>(batch_);
    });
  }

  // `counted` is what the steps' calls go through.
  Status Count(hal::InstrumentedDevice& counted, GraphCost& cost) {
    const std::uint64_t first = step_;
    double copied = 0;
    std::array<std::uint64_t, hal::kPrimitiveCount> calls{};
    while (step_ - first < kCountedSteps) {
      const std::uint64_t before = step_;
      counted.ResetCounts();
      KEEL_TRY(Queue());
      for (std::size_t i = 0; i < calls.size(); ++i) {
        calls[i] += counted.calls(static_cast<hal::Primitive>(i));
      }
      copied += static_cast<double>((runner_->copied() * (step_ - before)).count());
      KEEL_TRY(place_->stream.Synchronize(Patience()));
    }
    const auto steps = static_cast<double>(step_ - first);
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (calls[i] == 0) continue;
      cost.driver_calls.emplace_back(hal::PrimitiveName(static_cast<hal::Primitive>(i)),
                                     static_cast<double>(calls[i]) / steps);
    }
    cost.bytes_copied = copied / steps;
    return OkStatus();
  }

 private:
  Status Queue() {
    for (std::uint64_t i = 0; i < batch_; ++i) KEEL_TRY(runner_->Step(step_++));
    return OkStatus();
  }

  // The first brings back what others have driven out of the caches meanwhile.
  template <class Round>
  static Status Rounds(std::chrono::microseconds budget, std::vector<double>& us, Round round) {
    KEEL_TRY(round().status());
    const Clock::time_point until = Clock::now() + budget;
    for (std::size_t i = 0; i < kLeastRounds || (i < kMostRounds && Clock::now() < until); ++i) {
      KEEL_ASSIGN(const double value, round());
      us.push_back(value);
    }
    return OkStatus();
  }

  std::shared_ptr<Place> place_;
  Buffers buffers_;
  std::unique_ptr<Runner> runner_;
  std::uint64_t batch_ = 1;
  std::uint64_t step_ = 0;
};

// Two places: calls are counted apart from what is timed.
struct Setup {
  std::shared_ptr<Place> timed;
  std::shared_ptr<Place> counted;
  std::shared_ptr<hal::InstrumentedDevice> counter;
  std::chrono::microseconds budget{0};
};

// All ways to run one program with one set of buffers. They take turns, because no machine is the
// same for seconds: what is compared was measured side by side.
class Group {
 public:
  Group(Setup setup, std::vector<Shape> shapes)
      : setup_(std::move(setup)), shapes_(std::move(shapes)) {}

  // The first call measures all.
  Result<GraphCost> Cost(std::size_t i) {
    if (costs_.empty()) {
      const Status status = Measure();
      if (!status.ok()) {
        costs_.clear();
        return status;
      }
    }
    return costs_[i];
  }

 private:
  Status Measure() {
    for (const Shape& shape : shapes_) {
      GraphCost& cost = costs_.emplace_back(GraphCost{.commands = shape.commands,
                                                      .moving = shape.moving,
                                                      .bytes = shape.bytes,
                                                      .traced = shape.traced,
                                                      .way = shape.way});
      KEEL_ASSIGN(const auto trial, Trial::Create(setup_.counted, shape));
      KEEL_TRY(trial->Count(*setup_.counter, cost));
    }
    std::vector<std::unique_ptr<Trial>> trials;
    for (const Shape& shape : shapes_) {
      KEEL_ASSIGN(trials.emplace_back(), Trial::Create(setup_.timed, shape));
    }
    std::vector<std::vector<double>> host(trials.size());
    std::vector<std::vector<double>> device(trials.size());
    for (int turn = 0; turn < kTurns; ++turn) {
      for (std::size_t k = 0; k < trials.size(); ++k) {
        const std::size_t i = turn % 2 == 0 ? k : trials.size() - 1 - k;
        KEEL_TRY(trials[i]->HostRounds(setup_.budget / kTurns, host[i]));
        KEEL_TRY(trials[i]->DeviceRounds(setup_.budget / kTurns, device[i]));
      }
    }
    for (std::size_t i = 0; i < trials.size(); ++i) {
      costs_[i].host_us = Median(std::move(host[i]));
      costs_[i].device_us = Median(std::move(device[i]));
    }
    return OkStatus();
  }

  const Setup setup_;
  const std::vector<Shape> shapes_;
  std::vector<GraphCost> costs_;
};

bool MakesSense(const Shape& shape, const hal::Capabilities& can) {
  const std::uint32_t moving = shape.moving_bindings();
  switch (shape.way) {
    case Way::kResident:
    case Way::kInPlace:
      return moving == 0;
    case Way::kCopyTable:
      return shape.bindings() == kMostBindings;
    case Way::kUpdate:
      return can.graph_update;
    case Way::kPatch:
      return !shape.traced && can.node_update;
    case Way::kRemap:
      return moving != 0 && shape.bytes == kLarge && can.virtual_memory;
    case Way::kRetrace:
      return shape.traced;
    case Way::kBare:
    case Way::kEager:
    case Way::kRerecord:
    case Way::kCopy:
    case Way::kAuto:
      break;
  }
  return true;
}

template <class T>
bool Wanted(const std::vector<T>& wanted, const T& value) {
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), value) != wanted.end();
}

template <class T, std::size_t N>
std::string_view NameIn(const std::pair<T, std::string_view> (&list)[N], T value) {
  const auto* found = std::find_if(std::begin(list), std::end(list),
                                   [&](const auto& each) { return each.first == value; });
  return found->second;
}

template <class T, std::size_t N>
std::vector<std::string> NamesIn(const std::pair<T, std::string_view> (&list)[N]) {
  std::vector<std::string> names;
  for (const auto& [value, name] : list) names.emplace_back(name);
  return names;
}

}  // namespace

std::string_view MovingName(Moving moving) { return NameIn(kMovings, moving); }
std::string_view WayName(Way way) { return NameIn(kWays, way); }
std::vector<std::string> MovingNames() { return NamesIn(kMovings); }
std::vector<std::string> WayNames() { return NamesIn(kWays); }

Result<std::vector<GraphCase>> GraphCases(const BenchSetting& setting,
                                          const GraphBenchOptions& options) {
  const hal::Capabilities& can = setting.device->capabilities();
  if (!can.kernels || !can.graphs) {
    return Unimplemented(fmt::format("this device has no {}", can.kernels ? "graphs" : "kernels"));
  }
  Setup setup{.budget = std::chrono::milliseconds(options.quick ? 4 : 30)};
  KEEL_ASSIGN(setup.timed, Place::Create(setting.device, setting.config));
  setup.counter = hal::Instrumented(setting.device);
  KEEL_ASSIGN(setup.counted, Place::Create(setup.counter, setting.config));
  std::vector<GraphCase> cases;
  for (const bool traced : {false, true}) {
    for (const std::uint32_t commands : kGraphCommands) {
      const bool long_one = commands > 100 && options.commands.empty();
      if (!Wanted(options.commands, commands) || (options.quick && long_one)) continue;
      for (const Bytes bytes : {kSmall, kLarge}) {
        if (options.quick && bytes == kLarge) continue;
        for (const auto& [moving, moving_name] : kMovings) {
          if (!Wanted(options.moving, std::string(moving_name))) continue;
          std::vector<Shape> shapes;
          for (const auto& [way, way_name] : kWays) {
            const Shape shape{commands, moving, bytes, traced, way};
            if (!Wanted(options.ways, std::string(way_name)) || !MakesSense(shape, can)) continue;
            shapes.push_back(shape);
          }
          const auto group = std::make_shared<Group>(setup, shapes);
          for (std::size_t i = 0; i < shapes.size(); ++i) {
            cases.push_back({fmt::format("{} {} commands, {} moving, {}, {}", FormatCount(commands),
                                         traced ? "traced" : "explicit", moving_name,
                                         ToString(bytes), WayName(shapes[i].way)),
                             [group, i] { return group->Cost(i); }});
          }
        }
      }
    }
  }
  return cases;
}

}  // namespace keel::cli
