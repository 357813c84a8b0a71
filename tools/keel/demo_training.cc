#include "demo_training.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <chrono>
#include <utility>
#include <vector>

#include "format.h"
#include "keel/graph/executable.h"
#include "keel/graph/rerecorder.h"
#include "keel/hal/module.h"
#include "keel/hal/standard_kernels.h"
#include "keel/hal/stream.h"
#include "keel/memory/device_buffer.h"

namespace keel::cli {
namespace {

using graph::Argument;
using graph::BindingAccess;
using graph::BindingId;
using graph::Policy;
using Floats = memory::DeviceBuffer<float>;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kBatch = 32;
constexpr std::uint64_t kInputs = 16;
constexpr std::uint64_t kHidden = 32;
constexpr std::uint64_t kOutputs = 4;
constexpr float kRate = 1.0F;
constexpr std::uint64_t kSteps = 300;
constexpr std::size_t kBatches = 8;
constexpr int kSlots = 2;
// Steps at the beginning that are not counted: the first ones record.
constexpr std::uint64_t kWarmUp = 4;

std::uint64_t Blocks(std::uint64_t elements) { return (elements + 127) / 128; }

// The same numbers everywhere, from -1 to 1.
std::vector<float> Noise(std::size_t count, std::uint32_t seed) {
  std::vector<float> values(count);
  for (float& value : values) {
    seed = seed * 1664525U + 1013904223U;
    const std::int32_t upper = static_cast<std::int32_t>(seed) / 65536;
    value = static_cast<float>(upper) / 32768.0F;
  }
  return values;
}

// What the network is to learn: products of inputs.
std::vector<float> Targets(const std::vector<float>& inputs) {
  std::vector<float> targets;
  for (std::uint64_t row = 0; row < kBatch; ++row) {
    for (std::uint64_t j = 0; j < kOutputs; ++j) {
      targets.push_back(inputs[row * kInputs + j] * inputs[row * kInputs + j + kOutputs]);
    }
  }
  return targets;
}

// The step as a program. Batches and losses are elsewhere in every step; weights stay; everything
// between is scratch.
class Network {
 public:
  // `moving` is the policy of what moves.
  static Result<Network> Create(const hal::Module& module, Policy moving) {
    Network network;
    KEEL_ASSIGN(network.matmul_, module.Find(hal::kernels::kMatMul));
    KEEL_ASSIGN(network.relu_, module.Find(hal::kernels::kRelu));
    KEEL_ASSIGN(network.relu_grad_, module.Find(hal::kernels::kReluGrad));
    KEEL_ASSIGN(network.mse_, module.Find(hal::kernels::kMse));
    KEEL_ASSIGN(network.axpy_, module.Find(hal::kernels::kAxpy));
    KEEL_TRY(network.Build(moving));
    return network;
  }

  static constexpr std::array<std::uint64_t, 3> kWeights = {
      (kInputs * kHidden), (kHidden * kHidden), (kHidden * kOutputs)};

  const std::shared_ptr<const graph::Program>& program() const { return program_; }
  // In the order of the program's bindings.
  BindingId x, target, loss;
  std::array<BindingId, 3> weights;

 private:
  static Bytes Size(std::uint64_t floats) { return Bytes(floats * sizeof(float)); }
  static hal::LaunchDims Dims(std::uint64_t elements) {
    return {.grid = {static_cast<std::uint32_t>(Blocks(elements)), 1, 1}, .block = {128, 1, 1}};
  }

  // c (m x n) = a (m x k) * b (k x n).
  static void MatMul(graph::ProgramBuilder& builder, hal::KernelHandle kernel, BindingId a,
                     BindingId b, BindingId c, unsigned transposed, std::uint64_t m,
                     std::uint64_t n, std::uint64_t k) {
    builder.Kernel(kernel, Dims(m * n),
                   {Argument::In(a), Argument::In(b), Argument::Out(c), Argument::Value(transposed),
                    Argument::Value(m), Argument::Value(n), Argument::Value(k)});
  }

  Status Build(Policy moving) {
    graph::ProgramBuilder builder("training");
    const auto bind = [&](std::string name, std::uint64_t floats, BindingAccess access,
                          Policy policy = Policy::kAuto) {
      return builder.Bind(
          {.name = std::move(name), .size = Size(floats), .access = access, .policy = policy});
    };
    x = bind("x", kBatch * kInputs, BindingAccess::kIn, moving);
    target = bind("target", kBatch * kOutputs, BindingAccess::kIn, moving);
    loss = bind("loss", 1, BindingAccess::kOut, moving);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      weights[i] = bind(fmt::format("w{}", i + 1), kWeights[i], BindingAccess::kResident);
    }
    const auto scratch = [&](std::string name, std::uint64_t floats) {
      return bind(std::move(name), floats, BindingAccess::kScratch);
    };
    const BindingId z1 = scratch("z1", kBatch * kHidden);
    const BindingId h1 = scratch("h1", kBatch * kHidden);
    const BindingId z2 = scratch("z2", kBatch * kHidden);
    const BindingId h2 = scratch("h2", kBatch * kHidden);
    const BindingId y = scratch("y", kBatch * kOutputs);
    const BindingId dy = scratch("dy", kBatch * kOutputs);
    const BindingId dh2 = scratch("dh2", kBatch * kHidden);
    const BindingId dh1 = scratch("dh1", kBatch * kHidden);
    std::array<BindingId, 3> dw{};
    for (std::size_t i = 0; i < dw.size(); ++i) {
      dw[i] = scratch(fmt::format("dw{}", i + 1), kWeights[i]);
    }
    using hal::kernels::kTransposedA;
    using hal::kernels::kTransposedB;
    const auto relu = [&](BindingId from, BindingId to) {
      builder.Kernel(relu_, Dims(kBatch * kHidden),
                     {Argument::In(from), Argument::Out(to), Argument::Value(kBatch * kHidden)});
    };
    const auto relu_grad = [&](BindingId made, BindingId gradient) {
      builder.Kernel(
          relu_grad_, Dims(kBatch * kHidden),
          {Argument::In(made), Argument::InOut(gradient), Argument::Value(kBatch * kHidden)});
    };
    MatMul(builder, matmul_, x, weights[0], z1, 0, kBatch, kHidden, kInputs);
    relu(z1, h1);
    MatMul(builder, matmul_, h1, weights[1], z2, 0, kBatch, kHidden, kHidden);
    relu(z2, h2);
    MatMul(builder, matmul_, h2, weights[2], y, 0, kBatch, kOutputs, kHidden);
    builder.Kernel(
        mse_, Dims(kBatch * kOutputs),
        {Argument::In(y), Argument::In(target), Argument::Out(dy), Argument::Out(loss),
         Argument::Value(1.0F / (kBatch * kOutputs)), Argument::Value(kBatch * kOutputs)});
    MatMul(builder, matmul_, h2, dy, dw[2], kTransposedA, kHidden, kOutputs, kBatch);
    MatMul(builder, matmul_, dy, weights[2], dh2, kTransposedB, kBatch, kHidden, kOutputs);
    relu_grad(h2, dh2);
    MatMul(builder, matmul_, h1, dh2, dw[1], kTransposedA, kHidden, kHidden, kBatch);
    MatMul(builder, matmul_, dh2, weights[1], dh1, kTransposedB, kBatch, kHidden, kHidden);
    relu_grad(h1, dh1);
    MatMul(builder, matmul_, x, dh1, dw[0], kTransposedA, kInputs, kHidden, kBatch);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      builder.Kernel(axpy_, Dims(kWeights[i]),
                     {Argument::In(dw[i]), Argument::InOut(weights[i]), Argument::Value(-kRate),
                      Argument::Value(kWeights[i])});
    }
    KEEL_ASSIGN(program_, std::move(builder).Build());
    return OkStatus();
  }

  hal::KernelHandle matmul_, relu_, relu_grad_, mse_, axpy_;
  std::shared_ptr<const graph::Program> program_;
};

// What the network works on.
struct Data {
  static Result<Data> Create(const std::shared_ptr<memory::DeviceMemory>& memory,
                             hal::StreamHandle stream) {
    Data data;
    const auto upload = [&](const std::vector<float>& values) -> Result<Floats> {
      KEEL_ASSIGN(Floats floats, Floats::Create(memory, stream, values.size()));
      KEEL_TRY(floats.CopyFrom(values));
      return floats;
    };
    for (std::uint32_t i = 0; i < kBatches; ++i) {
      const std::vector<float> inputs = Noise(kBatch * kInputs, i);
      KEEL_ASSIGN(data.x.emplace_back(), upload(inputs));
      KEEL_ASSIGN(data.targets.emplace_back(), upload(Targets(inputs)));
    }
    for (std::size_t i = 0; i < data.weights.size(); ++i) {
      KEEL_ASSIGN(data.weights[i], Floats::Create(memory, stream, Network::kWeights[i]));
    }
    KEEL_ASSIGN(data.losses, Floats::Create(memory, stream, kSteps));
    return data;
  }

  // As before the first step.
  Status Reset() {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      std::vector<float> values = Noise(Network::kWeights[i], static_cast<std::uint32_t>(100 + i));
      const float scale = i == 0 ? 0.4F : 0.2F;
      for (float& value : values) value *= scale;
      KEEL_TRY(weights[i].CopyFrom(values));
    }
    return losses.Fill(-1);
  }

  DeviceAddress LossAt(std::uint64_t step) const {
    return losses.address() + Bytes(step * sizeof(float));
  }

  std::vector<Floats> x;
  std::vector<Floats> targets;
  std::array<Floats, 3> weights;
  Floats losses;  // one for each step
};

struct Run {
  std::vector<float> losses;
  double calls = 0;  // of the driver, per step
  Seconds host{0};   // of the calling thread, per step
};

// All steps, each queued by `step`. Two at a time, so that the thread's time is its own: neither
// a queue nor a slot is waited for in it.
template <class Step>
Result<Run> Train(const StepContext& context, const hal::Stream& stream, Data& data,
                  std::uint64_t done, Step step) {
  KEEL_TRY(data.Reset());
  KEEL_TRY(stream.Synchronize(DemoPatience()));
  Run run;
  std::uint64_t calls = 0;
  for (std::uint64_t i = 0; i < kSteps; i += kSlots) {
    const std::uint64_t calls_before = context.device->calls();
    const Clock::time_point begin = Clock::now();
    for (std::uint64_t j = i; j < i + kSlots; ++j) KEEL_TRY(step(j));
    if (i >= kWarmUp) {
      run.host += Clock::now() - begin;
      calls += context.device->calls() - calls_before;
    }
    KEEL_TRY(stream.Synchronize(DemoPatience()));
    context.progress(done + i, 3 * kSteps);
  }
  run.losses.resize(kSteps);
  KEEL_TRY(data.losses.CopyTo(run.losses));
  run.host /= kSteps - kWarmUp;
  run.calls = static_cast<double>(calls) / (kSteps - kWarmUp);
  return run;
}

Result<Run> TrainReplayed(const StepContext& context, const hal::Stream& stream,
                          const std::shared_ptr<memory::DeviceMemory>& memory,
                          const Network& network, Data& data, std::uint64_t done,
                          graph::Mode mode) {
  KEEL_ASSIGN(const auto executable, graph::Executable::Create(network.program(), memory,
                                                               {.slots = kSlots, .mode = mode}));
  for (std::size_t i = 0; i < data.weights.size(); ++i) {
    KEEL_TRY(executable->Bind(network.weights[i], {.address = data.weights[i].address(),
                                                   .size = data.weights[i].bytes()}));
  }
  KEEL_ASSIGN(
      Run run, Train(context, stream, data, done, [&](std::uint64_t step) -> Status {
        const Floats& x = data.x[step % kBatches];
        const Floats& target = data.targets[step % kBatches];
        KEEL_ASSIGN(graph::Lease lease, executable->Acquire(stream.get(), DemoPatience()));
        KEEL_TRY(lease.Bind(network.x, {.address = x.address(), .size = x.bytes()}));
        KEEL_TRY(lease.Bind(network.target, {.address = target.address(), .size = target.bytes()}));
        KEEL_TRY(lease.Bind(network.loss, {.address = data.LossAt(step), .size = 4_B}));
        return lease.Launch(DemoPatience());
      }));
  KEEL_TRY(executable->Close(DemoPatience()));
  return run;
}

Result<Run> TrainRerecorded(const StepContext& context, const hal::Stream& stream,
                            const std::shared_ptr<memory::DeviceMemory>& memory,
                            const Network& network, Data& data, std::uint64_t done) {
  KEEL_ASSIGN(const auto rerecorder, graph::Rerecorder::Create(network.program(), memory,
                                                               graph::Rerecording::kInstantiate));
  std::vector<DeviceAddress> addresses(network.program()->bindings().size());
  for (std::size_t i = 0; i < data.weights.size(); ++i) {
    addresses[network.weights[i].index] = data.weights[i].address();
  }
  return Train(context, stream, data, done, [&](std::uint64_t step) {
    addresses[network.x.index] = data.x[step % kBatches].address();
    addresses[network.target.index] = data.targets[step % kBatches].address();
    addresses[network.loss.index] = data.LossAt(step);
    return rerecorder->Run(stream.get(), addresses);
  });
}

Status CheckSame(const Run& run, std::string_view name, const Run& reference) {
  for (std::size_t i = 0; i < kSteps; ++i) {
    if (std::bit_cast<std::uint32_t>(run.losses[i]) !=
        std::bit_cast<std::uint32_t>(reference.losses[i])) {
      return Internal(fmt::format("the loss of step {} is {} {} and {} command by command", i,
                                  run.losses[i], name, reference.losses[i]));
    }
  }
  return OkStatus();
}

std::string Describe(std::string_view name, const Run& run) {
  return fmt::format("{:<12} {:>9} {:>13.2f} {:>13.6f}", name, FormatDuration(run.host), run.calls,
                     run.losses.back());
}

nlohmann::ordered_json ToJson(const Run& run) {
  return {{"host_seconds", run.host.count()},
          {"driver_calls", run.calls},
          {"first_loss", run.losses.front()},
          {"last_loss", run.losses.back()}};
}

}  // namespace

std::string TrainingMissing(const hal::Capabilities& capabilities) {
  if (!capabilities.kernels) return "the device runs no kernels";
  if (!capabilities.graphs) return "the device records no graphs";
  return capabilities.node_update ? "" : "the device does not update graphs";
}

Result<Shown> RunTraining(const StepContext& context) {
  KEEL_ASSIGN(const hal::Module module, hal::Module::LoadStandard(context.device));
  KEEL_ASSIGN(const Network network, Network::Create(module, Policy::kCopy));
  // Command by command nothing is in a slot's way: at the caller's addresses.
  KEEL_ASSIGN(const Network direct, Network::Create(module, Policy::kPatch));
  KEEL_ASSIGN(const hal::Stream stream, hal::Stream::Create(context.device));
  KEEL_ASSIGN(const auto memory, memory::DeviceMemory::Create(context.device, {}));
  KEEL_ASSIGN(Data data, Data::Create(memory, stream.get()));
  const FinishWork finish(*context.device);

  KEEL_ASSIGN(const Run eager,
              TrainReplayed(context, stream, memory, direct, data, 0, graph::Mode::kEager));
  KEEL_ASSIGN(const Run rerecorded,
              TrainRerecorded(context, stream, memory, network, data, kSteps));
  KEEL_ASSIGN(const Run steady, TrainReplayed(context, stream, memory, network, data, 2 * kSteps,
                                              graph::Mode::kGraph));
  KEEL_TRY(CheckSame(rerecorded, "re-recorded", eager));
  KEEL_TRY(CheckSame(steady, "replayed", eager));
  if (!(eager.losses.back() < eager.losses.front() / 4)) {
    return Internal(fmt::format("the network did not learn: its loss went from {} to {}",
                                eager.losses.front(), eager.losses.back()));
  }
  // The launch; and where the inputs are, if that goes with it.
  const double calls = context.device->capabilities().node_update ? 2.0 : 1.0;
  if (steady.calls != calls) {
    return Internal(
        fmt::format("a replayed step made {:.2f} driver calls, not {}", steady.calls, calls));
  }
  const std::size_t commands = network.program()->commands().size();
  return Shown{
      .lines = {fmt::format("{} kernels a step, {} steps, batches at {} addresses;", commands,
                            kSteps, kBatches),
                fmt::format("every loss the same to the last bit, from {:.6f} on",
                            eager.losses.front()),
                fmt::format("{:<12} {:>9} {:>13} {:>13}", "", "HOST/STEP", "DRIVER CALLS",
                            "LOSS AT END"),
                Describe("eager", eager), Describe("re-recorded", rerecorded),
                Describe("steady", steady)},
      .details = {{"steps", kSteps},
                  {"commands", commands},
                  {"eager", ToJson(eager)},
                  {"re_recorded", ToJson(rerecorded)},
                  {"steady", ToJson(steady)}},
  };
}

}  // namespace keel::cli
