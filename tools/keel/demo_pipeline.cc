#include "demo_pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "callables.h"
#include "demo_workers.h"
#include "format.h"
#include "keel/task/orchestrator.h"

namespace keel::cli {
namespace {

std::uint32_t BitsOf(float value) { return std::bit_cast<std::uint32_t>(value); }

constexpr std::size_t kRequests = kPipelineRequests;
constexpr std::uint32_t kRows = 4;    // of a request
constexpr std::uint32_t kWidth = 64;  // of a layer, both ways
constexpr std::size_t kFloats = std::size_t{kRows} * kWidth;
constexpr std::size_t kExpertFloats = std::size_t{kWidth} * kWidth;
constexpr std::size_t kLayers = 2;
constexpr std::array<task::WorkerId, kLayers> kWorkers{1, 3};
// Of weights that are sent along, unless the user says otherwise: more of that is measured with
// fewer requests.
constexpr Bytes kSentAlong = 4_GiB;

// All numbers are small integers, and so are their sums: exact in any order, fused or not.
struct Layer {
  static Layer Create(std::uint32_t number, std::uint32_t experts) {
    Layer layer;
    layer.number = number;
    layer.experts = experts;
    layer.weights.resize(experts * kExpertFloats);
    std::uint32_t state = 2654435761U * (number + 1);
    for (float& weight : layer.weights) {
      state = state * 1664525U + 1013904223U;
      weight = static_cast<float>(static_cast<int>(state >> 30) - 1);
    }
    return layer;
  }

  Bytes size() const { return Bytes(weights.size() * sizeof(float)); }
  // Which of its sets of weights a request uses.
  std::uint64_t ExpertOf(std::size_t request) const {
    return (request * 7919 + number * 104729) % experts;
  }
  void Compute(std::size_t request, const float* x, float* y) const {
    const float* const w = weights.data() + ExpertOf(request) * kExpertFloats;
    for (std::size_t row = 0; row < kRows; ++row) {
      for (std::size_t column = 0; column < kWidth; ++column) {
        float sum = 0;
        for (std::size_t i = 0; i < kWidth; ++i) {
          sum += x[row * kWidth + i] * w[i * kWidth + column];
        }
        y[row * kWidth + column] = sum > 0 ? sum : 0;
      }
    }
  }

  std::uint32_t number = 0;
  std::uint32_t experts = 0;
  std::vector<float> weights;
};

// What goes through the layers: what comes in, and what each layer makes of it.
struct Requests {
  Requests() : x(kRequests * kFloats), made{x, x}, expected{x, x} {
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<float>(static_cast<int>(i * 2654435761U >> 29) - 3);
    }
  }

  const float* InputOf(std::size_t layer, std::size_t request) const {
    return (layer == 0 ? x : made[layer - 1]).data() + request * kFloats;
  }
  float* OutputOf(std::size_t layer, std::size_t request) {
    return made[layer].data() + request * kFloats;
  }
  void ComputeExpected(const std::vector<Layer>& layers) {
    for (std::size_t request = 0; request < kRequests; ++request) {
      const float* from = x.data() + request * kFloats;
      for (const Layer& layer : layers) {
        float* const to = expected[layer.number].data() + request * kFloats;
        layer.Compute(request, from, to);
        from = to;
      }
    }
  }
  // So that a result that was not written is noticed.
  void Poison() {
    for (std::vector<float>& each : made) {
      std::memset(each.data(), 0xff, each.size() * sizeof(float));
    }
  }
  Status Check(std::size_t requests, std::string_view how) const {
    for (std::size_t layer = 0; layer < kLayers; ++layer) {
      for (std::size_t i = 0; i < requests * kFloats; ++i) {
        if (BitsOf(made[layer][i]) == BitsOf(expected[layer][i])) continue;
        return Internal(fmt::format(
            "with weights that {}, element {} of request {} after layer {} is {}; the "
            "host computes {}",
            how, i % kFloats, i / kFloats, layer + 1, made[layer][i], expected[layer][i]));
      }
    }
    return OkStatus();
  }

  // Of the results' bits (FNV-1a): equal on every device and with every transport.
  std::uint64_t Digest() const {
    std::uint64_t digest = 0xcbf29ce484222325U;
    for (const float result : made.back()) {
      digest = (digest ^ std::bit_cast<std::uint32_t>(result)) * 0x100000001b3U;
    }
    return digest;
  }

  std::vector<float> x;
  std::array<std::vector<float>, kLayers> made;
  std::array<std::vector<float>, kLayers> expected;
};

struct Traffic {
  std::size_t requests = 0;
  std::uint64_t to_devices = 0;
  std::uint64_t from_devices = 0;

  double PerRequest() const {
    return static_cast<double>(to_devices + from_devices) / static_cast<double>(requests);
  }
};

// What the workers say that they copied, since `before`.
Traffic CopiedSince(const std::vector<task::WorkerReport>& before,
                    const task::Orchestrator& orchestrator, std::size_t requests) {
  Traffic traffic{.requests = requests};
  const std::vector<task::WorkerReport> after = orchestrator.Report();
  for (std::size_t i = 0; i < after.size(); ++i) {
    traffic.to_devices += after[i].bytes_to_device - before[i].bytes_to_device;
    traffic.from_devices += after[i].bytes_from_device - before[i].bytes_from_device;
  }
  return traffic;
}

class Pipeline {
 public:
  Pipeline(const StepContext& context, task::Orchestrator& orchestrator, task::Callable layer,
           const std::vector<Layer>& layers, Requests& requests)
      : context_(context),
        orchestrator_(orchestrator),
        layer_(layer),
        layers_(layers),
        requests_(requests) {}

  // The weights go to their workers once, and the tasks to the weights. All requests are under way
  // at a time: that the second layer waits for the first follows from what they read and write.
  Result<Traffic> RunResident() {
    const std::vector<task::WorkerReport> before = orchestrator_.Report();
    task::Orchestrator::Scope scope(orchestrator_);
    requests_.Poison();
    std::vector<task::Tensor> weights;
    for (const Layer& layer : layers_) {
      const task::WorkerId worker = kWorkers[layer.number];
      KEEL_ASSIGN(const DeviceAddress address, scope.Malloc(worker, layer.size()));
      KEEL_TRY(orchestrator_.CopyTo(worker, address, layer.weights.data(), layer.size()));
      weights.push_back(task::Tensor::Resident(address, task::DataType::kFloat32, ShapeOf(layer)));
    }
    std::vector<task::TaskHandle> tasks;
    for (std::size_t request = 0; request < kRequests; ++request) {
      for (const Layer& layer : layers_) {
        // Where an address alone does not say whose it is.
        KEEL_ASSIGN(tasks.emplace_back(),
                    Submit(request, layer, weights[layer.number], kWorkers[layer.number]));
      }
    }
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      KEEL_TRY(tasks[i].Wait(DemoPatience()));
      const std::optional<task::WorkerId> ran = tasks[i].worker();
      if (ran != kWorkers[i % kLayers]) {
        return Internal(fmt::format("layer {} of request {} did not run on worker {}",
                                    i % kLayers + 1, i / kLayers, kWorkers[i % kLayers]));
      }
      context_.progress(i, 2 * tasks.size());
    }
    KEEL_TRY(requests_.Check(kRequests, "stay"));
    const Traffic traffic = CopiedSince(before, orchestrator_, kRequests);
    KEEL_TRY(scope.Close());
    return traffic;
  }

  // The same tasks on the same workers, with weights on the host. One request at a time: weights
  // under way take memory.
  Result<Traffic> RunSent() {
    const std::vector<task::WorkerReport> before = orchestrator_.Report();
    requests_.Poison();
    const std::size_t count = SentRequests();
    for (std::size_t request = 0; request < count; ++request) {
      task::TaskHandle last;
      for (const Layer& layer : layers_) {
        const auto weights =
            task::Tensor::Host(layer.weights.data(), task::DataType::kFloat32, ShapeOf(layer));
        KEEL_ASSIGN(last, Submit(request, layer, weights, kWorkers[layer.number]));
      }
      KEEL_TRY(last.Wait(DemoPatience()));
      context_.progress(count + request, 2 * count);
    }
    KEEL_TRY(requests_.Check(count, "are sent along"));
    return CopiedSince(before, orchestrator_, count);
  }

 private:
  std::size_t SentRequests() const {
    if (context_.options.sent_along != 0) return context_.options.sent_along;
    std::uint64_t size = 0;
    for (const Layer& layer : layers_) size += layer.size().count();
    return std::clamp<std::size_t>(kSentAlong.count() / size, 1, kRequests);
  }
  static std::array<std::uint32_t, 3> ShapeOf(const Layer& layer) {
    return {layer.experts, kWidth, kWidth};
  }

  Result<task::TaskHandle> Submit(std::size_t request, const Layer& layer,
                                  const task::Tensor& weights, task::WorkerId worker) {
    constexpr std::array<std::uint32_t, 2> kShape{kRows, kWidth};
    task::Arguments arguments;
    arguments
        .Add(task::Tag::kIn, task::Tensor::Host(requests_.InputOf(layer.number, request),
                                                task::DataType::kFloat32, kShape))
        .Add(task::Tag::kIn, weights)
        .Add(task::Tag::kOut, task::Tensor::Host(requests_.OutputOf(layer.number, request),
                                                 task::DataType::kFloat32, kShape))
        .AddScalar(layer.ExpertOf(request));
    return orchestrator_.Submit(layer_, arguments, {.worker = worker, .timeout = {}});
  }

  const StepContext& context_;
  task::Orchestrator& orchestrator_;
  const task::Callable layer_;
  const std::vector<Layer>& layers_;
  Requests& requests_;
};

std::string Describe(std::string_view name, const Traffic& traffic) {
  return fmt::format("{:<13} {:>8} {:>12} {:>13} {:>13}", name, traffic.requests,
                     ToString(Bytes(traffic.to_devices)), ToString(Bytes(traffic.from_devices)),
                     ToString(Bytes(static_cast<std::uint64_t>(traffic.PerRequest()))));
}

nlohmann::ordered_json ToJson(const Traffic& traffic) {
  return {{"requests", traffic.requests},
          {"bytes_to_devices", traffic.to_devices},
          {"bytes_from_devices", traffic.from_devices},
          {"bytes_per_request", traffic.PerRequest()}};
}

constexpr Bytes kSmallest(kLayers* kExpertFloats * sizeof(float));

// Of each layer.
std::uint32_t ExpertsOf(Bytes weights) {
  return static_cast<std::uint32_t>(weights.count() / kSmallest.count());
}

std::string TransportWord(task::Transport transport) {
  switch (transport) {
    case task::Transport::kThread:
      return "thread";
    case task::Transport::kProcess:
      return "process";
    case task::Transport::kMpi:
      break;
  }
  return "mpi";
}

}  // namespace

Status CheckPipelineWeights(Bytes weights) {
  // What is more than that is no task's.
  constexpr Bytes kLargest = 1_TiB;
  if (weights >= kSmallest && weights <= kLargest) return OkStatus();
  return InvalidArgument(fmt::format("weights of {}: at least {} and at most {}", ToString(weights),
                                     ToString(kSmallest), ToString(kLargest)));
}

std::string PipelineMissing(const hal::Capabilities& capabilities) {
  return capabilities.kernels ? "" : "the device runs no kernels";
}

Result<Shown> RunPipeline(const StepContext& context) {
  KEEL_TRY(CheckPipelineWeights(context.options.weights));
  KEEL_ASSIGN(const hal::ModuleSource kernels, context.device->StandardKernels());
  KEEL_ASSIGN(const task::Image image, LayerImage(kernels));
  std::vector<Layer> layers;
  layers.reserve(kLayers);
  for (std::uint32_t i = 0; i < kLayers; ++i) {
    layers.push_back(Layer::Create(i, ExpertsOf(context.options.weights)));
  }
  Requests requests;
  requests.ComputeExpected(layers);

  KEEL_ASSIGN(DemoWorkers workers, DemoWorkers::Create(context));
  task::Orchestrator& orchestrator = workers.orchestrator();
  KEEL_ASSIGN(const task::Callable layer, orchestrator.Register(image));
  Pipeline pipeline(context, orchestrator, layer, layers, requests);
  KEEL_ASSIGN(const Traffic resident, pipeline.RunResident());
  const std::uint64_t digest = requests.Digest();
  KEEL_ASSIGN(const Traffic sent, pipeline.RunSent());
  KEEL_TRY(orchestrator.Unregister(layer));
  KEEL_TRY(workers.Close());

  const double ratio = sent.PerRequest() / resident.PerRequest();
  const Bytes weights = layers[0].size() * kLayers;
  const std::string from =
      kernels.kind == hal::ModuleSource::Kind::kRegistered
          ? "built into the device"
          : fmt::format("an image of {}", ToString(Bytes(kernels.image.size())));
  return Shown{
      .lines = {fmt::format("{};", workers.description()),
                fmt::format("two layers of {} on workers {} and {}; kernels: {}",
                            ToString(layers[0].size()), kWorkers[0], kWorkers[1], from),
                "every result the host's to the last bit",
                fmt::format("{:<13} {:>8} {:>12} {:>13} {:>13}", "WEIGHTS", "REQUESTS",
                            "TO DEVICES", "FROM DEVICES", "PER REQUEST"),
                Describe("resident", resident), Describe("sent along", sent),
                fmt::format("{:.1f} times fewer bytes are copied", ratio)},
      .details = {{"transport", TransportWord(context.options.transport)},
                  {"workers", DemoWorkers::kCount},
                  {"devices", workers.device_count()},
                  {"kernels", from},
                  {"weights_bytes", weights.count()},
                  {"digest", fmt::format("{:016x}", digest)},
                  {"resident", ToJson(resident)},
                  {"sent_along", ToJson(sent)},
                  {"ratio", ratio}},
  };
}

}  // namespace keel::cli
