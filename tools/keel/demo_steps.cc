#include "demo_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <utility>

#include "demo_pipeline.h"
#include "demo_training.h"
#include "format.h"
#include "keel/hal/event.h"
#include "keel/hal/graph.h"
#include "keel/hal/memory.h"
#include "keel/hal/module.h"
#include "keel/hal/standard_kernels.h"
#include "keel/hal/stream.h"

namespace keel::cli {
namespace {

using Clock = std::chrono::steady_clock;

template <class T>
std::span<T> View(const hal::HostMemory& memory) {
  return {static_cast<T*>(memory.data()), memory.size().count() / sizeof(T)};
}

// A recognisable "nobody wrote here", so that a copy that did not happen is noticed.
void Poison(const hal::HostMemory& memory) {
  std::memset(memory.data(), 0xff, memory.size().count());
}

hal::Copy ToDevice(const hal::Device& device, DeviceAddress to, const hal::HostMemory& from) {
  return {.destination = hal::Location::On(device.id(), to),
          .source = hal::Location::Host(from.data()),
          .size = from.size()};
}

hal::Copy ToHost(const hal::Device& device, const hal::HostMemory& to, DeviceAddress from) {
  return {.destination = hal::Location::Host(to.data()),
          .source = hal::Location::On(device.id(), from),
          .size = to.size()};
}

template <class Expected>
Status CheckEach(std::span<const float> actual, Expected expected) {
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (actual[i] != expected(i)) {
      return Internal(
          fmt::format("element {} is {}; the host computes {}", i, actual[i], expected(i)));
    }
  }
  return OkStatus();
}

// --- Two streams and an event ------------------------------------------------------------------

std::string StreamsMissing(const hal::Capabilities& capabilities) {
  return capabilities.kernels ? "" : "the device runs no kernels";
}

Result<Shown> RunStreams(const StepContext& context) {
  constexpr std::uint64_t kCount = 1 << 20;
  constexpr Bytes kSize(kCount * sizeof(float));
  // All values are small multiples of a half: every device, with or without fused
  // multiply-add, gets the same bits as the host.
  constexpr float kScale = 2.5F;
  constexpr std::uint64_t kUnits = 4;
  const std::shared_ptr<hal::Device> device = context.device;

  KEEL_ASSIGN(const hal::Module module, hal::Module::LoadStandard(device));
  KEEL_ASSIGN(const hal::KernelHandle axpy, module.Find(hal::kernels::kAxpy));
  KEEL_ASSIGN(const hal::HostMemory x, hal::HostMemory::Create(device, kSize));
  KEEL_ASSIGN(const hal::HostMemory y, hal::HostMemory::Create(device, kSize));
  KEEL_ASSIGN(const hal::HostMemory result, hal::HostMemory::Create(device, kSize));
  KEEL_ASSIGN(const hal::PlainMemory device_x, hal::PlainMemory::Create(device, kSize));
  KEEL_ASSIGN(const hal::PlainMemory device_y, hal::PlainMemory::Create(device, kSize));
  KEEL_ASSIGN(const hal::Stream upload, hal::Stream::Create(device));
  KEEL_ASSIGN(const hal::Stream compute, hal::Stream::Create(device));
  KEEL_ASSIGN(const hal::Event uploaded, hal::Event::Create(device));
  const FinishWork finish(*device);

  const std::span<float> host_x = View<float>(x);
  const std::span<float> host_y = View<float>(y);
  for (std::size_t i = 0; i < kCount; ++i) {
    host_x[i] = static_cast<float>(i % 4096);
    host_y[i] = static_cast<float>(i % 1000);
  }
  Poison(result);
  context.progress(1, kUnits);

  const Clock::time_point start = Clock::now();
  KEEL_TRY(device->EnqueueCopy(upload.get(), ToDevice(*device, device_x.address(), x)));
  KEEL_TRY(device->EnqueueCopy(upload.get(), ToDevice(*device, device_y.address(), y)));
  KEEL_TRY(uploaded.Record(upload.get()));
  KEEL_TRY(device->WaitEvent(compute.get(), uploaded.get()));
  const std::array args = {hal::KernelArg::In(device_x.address(), kSize),
                           hal::KernelArg::InOut(device_y.address(), kSize),
                           hal::KernelArg::Value(kScale), hal::KernelArg::Value(kCount)};
  KEEL_TRY(device->LaunchKernel(
      compute.get(),
      {.kernel = axpy, .dims = {.grid = {1024, 1, 1}, .block = {256, 1, 1}}, .args = args}));
  KEEL_TRY(device->EnqueueCopy(compute.get(), ToHost(*device, result, device_y.address())));
  context.progress(2, kUnits);
  KEEL_TRY(compute.Synchronize(DemoPatience()));
  const Seconds took = Clock::now() - start;
  context.progress(3, kUnits);

  KEEL_TRY(CheckEach(View<const float>(result),
                     [&](std::size_t i) { return host_y[i] + kScale * host_x[i]; }));
  context.progress(4, kUnits);

  return Shown{
      .lines = {fmt::format("y += {} * x over {} floats", kScale, FormatCount(kCount)),
                "copies on one stream, the kernel on another,",
                fmt::format("an event between them; {} moved in {}", ToString(kSize * 3),
                            FormatDuration(took))},
      .details = {{"elements", kCount},
                  {"bytes_moved", (kSize * 3).count()},
                  {"work_seconds", took.count()}},
  };
}

// --- One memory at two addresses ---------------------------------------------------------------

std::string AliasMissing(const hal::Capabilities& capabilities) {
  return capabilities.virtual_memory ? "" : "the device has no virtual memory";
}

Result<Shown> RunAlias(const StepContext& context) {
  constexpr std::uint64_t kUnits = 4;
  constexpr std::uint32_t kFilled = 0x6b65656c;
  const std::shared_ptr<hal::Device> device = context.device;
  const Bytes size = device->capabilities().granularity.minimum;
  const std::array grants = {hal::AccessGrant{device->id(), hal::Access::kReadWrite}};

  KEEL_ASSIGN(const hal::HostMemory written, hal::HostMemory::Create(device, size));
  KEEL_ASSIGN(const hal::HostMemory read, hal::HostMemory::Create(device, size));
  KEEL_ASSIGN(const hal::PhysicalMemory memory, hal::PhysicalMemory::Create(device, size));
  KEEL_ASSIGN(const hal::AddressRange first_range, hal::AddressRange::Create(device, size));
  KEEL_ASSIGN(const hal::AddressRange second_range, hal::AddressRange::Create(device, size));
  KEEL_ASSIGN(const hal::Mapping first,
              hal::Mapping::Create(first_range, Offset(0), memory, grants));
  KEEL_ASSIGN(const hal::Mapping second,
              hal::Mapping::Create(second_range, Offset(0), memory, grants));
  KEEL_ASSIGN(const hal::Stream stream, hal::Stream::Create(device));
  const FinishWork finish(*device);
  context.progress(1, kUnits);

  const std::span<std::uint32_t> pattern = View<std::uint32_t>(written);
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    pattern[i] = static_cast<std::uint32_t>(i * 2654435761U);
  }
  Poison(read);
  KEEL_TRY(device->EnqueueCopy(stream.get(), ToDevice(*device, first.address(), written)));
  KEEL_TRY(device->EnqueueCopy(stream.get(), ToHost(*device, read, second.address())));
  KEEL_TRY(stream.Synchronize(DemoPatience()));
  context.progress(2, kUnits);
  if (std::memcmp(written.data(), read.data(), size.count()) != 0) {
    return Internal(fmt::format("what was written at {} is not what {} holds",
                                ToString(first.address()), ToString(second.address())));
  }

  // And the other way round.
  Poison(read);
  KEEL_TRY(device->EnqueueFill(stream.get(), {.destination = second.address(),
                                              .value = kFilled,
                                              .width = sizeof(kFilled),
                                              .count = size.count() / sizeof(kFilled)}));
  KEEL_TRY(device->EnqueueCopy(stream.get(), ToHost(*device, read, first.address())));
  KEEL_TRY(stream.Synchronize(DemoPatience()));
  context.progress(3, kUnits);
  for (const std::uint32_t value : View<const std::uint32_t>(read)) {
    if (value != kFilled) {
      return Internal(fmt::format("what was filled at {} is not what {} holds",
                                  ToString(second.address()), ToString(first.address())));
    }
  }
  context.progress(4, kUnits);

  return Shown{
      .lines = {fmt::format("one memory of {} at two addresses:", ToString(size)),
                fmt::format("{} and {}", ToString(first.address()), ToString(second.address())),
                "written through either, read through the other"},
      .details = {{"bytes", size.count()},
                  {"addresses", {ToString(first.address()), ToString(second.address())}}},
  };
}

// --- A graph, recorded once and replayed -------------------------------------------------------

std::string GraphMissing(const hal::Capabilities& capabilities) {
  if (!capabilities.kernels) return "the device runs no kernels";
  return capabilities.graphs ? "" : "the device records no graphs";
}

// The work that is recorded: x is copied in, y += x, sum = x + y, sum is copied out. Each round
// leaves a trace in y, so that one too few or too many shows in the result.
class GraphWork {
 public:
  static Result<GraphWork> Create(const std::shared_ptr<hal::Device>& device) {
    GraphWork work;
    KEEL_ASSIGN(work.module_, hal::Module::LoadStandard(device));
    KEEL_ASSIGN(work.axpy_, work.module_.Find(hal::kernels::kAxpy));
    KEEL_ASSIGN(work.add_, work.module_.Find(hal::kernels::kAdd));
    KEEL_ASSIGN(work.x_, hal::HostMemory::Create(device, kSize));
    KEEL_ASSIGN(work.y_, hal::HostMemory::Create(device, kSize));
    KEEL_ASSIGN(work.sum_, hal::HostMemory::Create(device, kSize));
    KEEL_ASSIGN(work.device_x_, hal::PlainMemory::Create(device, kSize));
    KEEL_ASSIGN(work.device_y_, hal::PlainMemory::Create(device, kSize));
    KEEL_ASSIGN(work.device_sum_, hal::PlainMemory::Create(device, kSize));
    for (std::size_t i = 0; i < kCount; ++i) {
      View<float>(work.x_)[i] = static_cast<float>(1 + i % 15);
      View<float>(work.y_)[i] = static_cast<float>(i % 100);
    }
    return work;
  }

  // y as it was before the first round.
  Status Reset(hal::Device& device, const hal::Stream& stream) const {
    Poison(sum_);
    KEEL_TRY(device.EnqueueCopy(stream.get(), ToDevice(device, device_y_.address(), y_)));
    return stream.Synchronize(DemoPatience());
  }

  Status EnqueueRound(hal::Device& device, const hal::Stream& stream) const {
    constexpr hal::LaunchDims kDims{.grid = {16, 1, 1}, .block = {256, 1, 1}, .shared_memory = {}};
    const std::array axpy_args = {hal::KernelArg::In(device_x_.address(), kSize),
                                  hal::KernelArg::InOut(device_y_.address(), kSize),
                                  hal::KernelArg::Value(1.0F), hal::KernelArg::Value(kCount)};
    const std::array add_args = {hal::KernelArg::In(device_x_.address(), kSize),
                                 hal::KernelArg::In(device_y_.address(), kSize),
                                 hal::KernelArg::Out(device_sum_.address(), kSize),
                                 hal::KernelArg::Value(kCount)};
    KEEL_TRY(device.EnqueueCopy(stream.get(), ToDevice(device, device_x_.address(), x_)));
    KEEL_TRY(
        device.LaunchKernel(stream.get(), {.kernel = axpy_, .dims = kDims, .args = axpy_args}));
    KEEL_TRY(device.LaunchKernel(stream.get(), {.kernel = add_, .dims = kDims, .args = add_args}));
    return device.EnqueueCopy(stream.get(), ToHost(device, sum_, device_sum_.address()));
  }

  Status Check(std::uint64_t rounds) const {
    const std::span<const float> x = View<const float>(x_);
    const std::span<const float> y = View<const float>(y_);
    return CheckEach(View<const float>(sum_),
                     [&](std::size_t i) { return y[i] + static_cast<float>(rounds + 1) * x[i]; });
  }

 private:
  static constexpr std::uint64_t kCount = 4096;
  static constexpr Bytes kSize{kCount * sizeof(float)};

  hal::Module module_;
  hal::KernelHandle axpy_;
  hal::KernelHandle add_;
  hal::HostMemory x_;
  hal::HostMemory y_;
  hal::HostMemory sum_;
  hal::PlainMemory device_x_;
  hal::PlainMemory device_y_;
  hal::PlainMemory device_sum_;
};

struct RoundCost {
  double calls = 0;  // of the driver, per round
  Seconds enqueue;   // what the calling thread spends on one round
  Seconds whole;     // from the first call to the end of the work, per round
};

// Runs `enqueue` so often, waits, checks the result.
template <class Enqueue>
Result<RoundCost> Measure(const StepContext& context, const GraphWork& work,
                          const hal::Stream& stream, std::uint64_t rounds, std::uint64_t done,
                          std::uint64_t total, Enqueue enqueue) {
  constexpr std::uint64_t kBetweenUpdates = 50;
  KEEL_TRY(work.Reset(*context.device, stream));
  const std::uint64_t calls_before = context.device->calls();
  Seconds enqueue_time(0);
  const Clock::time_point start = Clock::now();
  for (std::uint64_t round = 0; round < rounds;) {
    const std::uint64_t end = std::min(round + kBetweenUpdates, rounds);
    const Clock::time_point batch = Clock::now();
    for (; round < end; ++round) KEEL_TRY(enqueue());
    enqueue_time += Clock::now() - batch;
    context.progress(done + round, total);
  }
  const std::uint64_t calls = context.device->calls() - calls_before;
  KEEL_TRY(stream.Synchronize(DemoPatience()));
  const Seconds whole = Clock::now() - start;
  KEEL_TRY(work.Check(rounds));
  const auto count = static_cast<double>(rounds);
  return RoundCost{static_cast<double>(calls) / count, enqueue_time / count, whole / count};
}

std::string Describe(const RoundCost& cost) {
  return fmt::format("{:.2f} driver calls, launch {}, done in {}", cost.calls,
                     FormatDuration(cost.enqueue), FormatDuration(cost.whole));
}

nlohmann::ordered_json ToJson(const RoundCost& cost) {
  return {{"driver_calls", cost.calls},
          {"enqueue_seconds", cost.enqueue.count()},
          {"whole_seconds", cost.whole.count()}};
}

Result<Shown> RunGraph(const StepContext& context) {
  constexpr std::uint64_t kReplays = 1000;
  constexpr std::uint64_t kUnits = 2 * kReplays;
  hal::Device& device = *context.device;

  KEEL_ASSIGN(const GraphWork work, GraphWork::Create(context.device));
  KEEL_ASSIGN(const hal::Stream stream, hal::Stream::Create(context.device));
  const FinishWork finish(device);

  KEEL_ASSIGN(const RoundCost one_by_one, Measure(context, work, stream, kReplays, 0, kUnits, [&] {
                return work.EnqueueRound(device, stream);
              }));

  KEEL_ASSIGN(hal::Capture capture, hal::Capture::Begin(context.device, stream.get()));
  KEEL_TRY(work.EnqueueRound(device, stream));
  KEEL_ASSIGN(const hal::Graph graph, capture.End());
  KEEL_ASSIGN(const std::vector<hal::NodeInfo> nodes, device.GetNodes(graph.get()));
  KEEL_ASSIGN(const hal::GraphExec exec, hal::GraphExec::Create(graph));
  KEEL_ASSIGN(const RoundCost replayed, Measure(context, work, stream, kReplays, kReplays, kUnits,
                                                [&] { return exec.Launch(stream.get()); }));
  if (replayed.calls != 1.0) {
    return Internal(fmt::format("a replay made {:.2f} driver calls, not 1", replayed.calls));
  }

  return Shown{
      .lines = {fmt::format("{} nodes (copies, kernels) recorded once, replayed {} times",
                            nodes.size(), FormatCount(kReplays)),
                "replay:     " + Describe(replayed), "one by one: " + Describe(one_by_one)},
      .details = {{"nodes", nodes.size()},
                  {"replays", kReplays},
                  {"replay", ToJson(replayed)},
                  {"one_by_one", ToJson(one_by_one)}},
  };
}

constexpr DemoStep kSteps[] = {
    {"streams", "A computation over two streams", StreamsMissing, RunStreams},
    {"alias", "One memory at two addresses", AliasMissing, RunAlias},
    {"graph", "A graph, recorded and replayed", GraphMissing, RunGraph},
    {"training", "A network, trained in three ways", TrainingMissing, RunTraining},
    {"pipeline", "Two layers on two of four workers", PipelineMissing, RunPipeline},
};

}  // namespace

std::span<const DemoStep> DemoSteps() { return kSteps; }

}  // namespace keel::cli
